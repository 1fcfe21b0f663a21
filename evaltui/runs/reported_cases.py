"""The cases of a run as reports ask for them: those of a run's file are read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload

from evaltui.core.compare.run_summary import CaseSummary, summarize
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import CaseResult
from evaltui.core.model.spending import Spending
from evaltui.core.secrets import Secrets
from evaltui.runs.history import KeptRun, result_of
from evaltui.runs.run_file import CaseInRun, RunFile
from evaltui.runs.run_tables import case_json


class ReportedCases(Sequence[CaseResult]):
    """Results of cases without their secrets.

    Asking for one that is in the run's file raises what `RunFile` raises. The file may be deleted meanwhile.
    """

    def __init__(
        self,
        cases: Iterable[CaseInRun | CaseResult],
        secrets: Secrets = Secrets(),  # noqa: B008
        file: RunFile | None = None,
    ) -> None:
        """`file` has the results that are not given; None where all are."""
        self._cases = tuple(cases)
        self._secrets = secrets
        self._file = file

    @classmethod
    def of_run(cls, run: KeptRun, secrets: Secrets) -> ReportedCases:
        """The selected cases of a stored run: one of its texts may have been named as a secret since.

        Raises what `RunFile` raises.
        """
        numbers = run.file.numbers if run.file else {}
        rows = (
            CaseInRun(numbers[case], case, summary) if case in numbers else run.case(case)
            for case, summary in run.summary.cases.items()
        )
        return cls(rows, secrets, run.file)

    @property
    def summaries(self) -> Iterator[CaseSummary]:
        """The summaries of the cases, in order, without reading the results."""
        for case in self._cases:
            yield case.summary if isinstance(case, CaseInRun) else summarize(case)

    @property
    def as_json(self) -> Iterator[Json]:
        """The cases as the JSON report has them: a run's file has them so."""
        for case in self._cases:
            if isinstance(case, CaseInRun):
                assert self._file is not None
                yield self._file.reported(case, self._secrets)
            else:
                yield case_json(self._secrets.masked(case))

    @property
    def costs(self) -> Iterator[tuple[str, Spending | None]]:
        """The path and the cost, None where nobody knows, of each case that has a result."""
        if self._file is not None:
            return self._file.costs
        return ((case.id.path, case.spent) for case in self if case.repeats)

    def only(self, numbers: Iterable[int]) -> ReportedCases:
        """Some of them, by their places from 0."""
        return ReportedCases((self._cases[number] for number in numbers), self._secrets, self._file)

    def by_path(self, paths: Iterable[str]) -> Mapping[str, ReportedCases]:
        """The cases by their file; for each of the paths, there are some or none."""
        numbers: dict[str, list[int]] = {path: [] for path in paths}
        for number, case in enumerate(self._cases):
            numbers[case.id.path].append(number)
        return {path: self.only(some) for path, some in numbers.items()}

    def __len__(self) -> int:
        return len(self._cases)

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...
    @overload
    def __getitem__(self, index: slice) -> ReportedCases: ...
    def __getitem__(self, index: int | slice) -> CaseResult | ReportedCases:
        if isinstance(index, slice):
            return ReportedCases(self._cases[index], self._secrets, self._file)
        case = self._cases[index]
        if isinstance(case, CaseInRun):
            assert self._file is not None
            return result_of(self._file, case, self._secrets)
        return self._secrets.masked(case)
