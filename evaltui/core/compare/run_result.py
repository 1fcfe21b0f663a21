"""The result of a run, as the public functions return it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from evaltui.core.compare.explain import sentence
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.spending import Spending, total
from evaltui.core.secrets import Secrets
from evaltui.text.figures import short_list, show_number
from evaltui.text.values import without_commands


@dataclass(frozen=True, repr=False)
class RunResult:
    """The result of a run."""

    cases: Sequence[CaseResult]
    """Results in the order of selection; in a large run, each is read on demand."""
    status: Status
    """The worst status of its cases."""
    in_process: bool = False
    """Whether the agent was an object, run in the evaluating process."""
    log: Path | None = None
    """The run's file; None for a run without one."""
    stopped: str = ""
    """Why cases did not run, such as a spent budget, as a sentence; "" where all ran."""

    secrets: Secrets = field(default=Secrets(), compare=False)
    """Masks secrets of the agent in messages."""

    @property
    def spent(self) -> Spending | None:
        """Spending of all cases; None where it is unknown."""
        return total(case.spent for case in self.cases)

    @property
    def passed(self) -> bool:
        """Whether every selected case passed, flaky ones by their policy; False without cases."""
        return bool(self.cases) and all(case.passed for case in self.cases)

    def __bool__(self) -> bool:
        """Whether the run passed, so that `assert evaluate(…)` works."""
        return self.passed

    def case(self, eval_id: str, eval_set_id: str | None = None) -> CaseResult:
        """The result of a case; `eval_set_id` is needed where several sets have the id.

        Raises KeyError for a missing or ambiguous case.
        """
        matches = [result for result in self.cases if result.eval_id == eval_id]
        if eval_set_id is not None:
            matches = [result for result in matches if result.eval_set_id == eval_set_id]
        if len(matches) != 1:
            ids = [result.eval_set_id for result in matches] or [result.eval_id for result in self.cases]
            problem = "is a case of" if matches else "is no case, only"
            raise KeyError(f"{eval_id} {problem} {short_list(ids)}")
        return matches[0]

    def raise_if_failed(self) -> None:
        """Raises CasesFailedError unless every case passed."""
        if not self.passed:
            raise CasesFailedError(self)

    def to_pandas(self) -> Any:
        """A data frame with a row for each metric of each repeat. Raises ImportError without pandas.

        A repeat without metrics, such as one that ended with an error, has a row without a metric; a case
        without a result has a row without a repeat.
        """
        rows = [
            {
                "eval_set_id": case.eval_set_id,
                "eval_id": case.eval_id,
                "case_status": str(case.status),
                "repeat": number,
                "seconds": None if repeat is None else repeat.seconds,
                "metric": None if metric is None else metric.name,
                "score": None if metric is None else metric.score,
                "threshold": None if metric is None else metric.threshold,
                "status": str(next(part for part in (metric, repeat, case) if part is not None).status),
                "reason": sentence(case if repeat is None else repeat) if metric is None else metric.reason,
            }
            for case in self.cases
            for number, repeat in (*enumerate(case.repeats),) or ((None, None),)
            for metric in (None if repeat is None else repeat.metrics) or (None,)
        ]
        return import_module("pandas").DataFrame(rows)

    def __repr__(self) -> str:
        bad = [case for case in self.cases if not case.passed]
        count = f"{show_number(len(self.cases) - len(bad))} of {show_number(len(self.cases))} passed"
        shown = [case.in_words for case in bad[:3]]
        more = [f"{show_number(len(bad) - 3)} more"] * (len(bad) > 3)
        more += [self.stopped] if self.stopped else []
        status = f"{self.status}, run in this process" if self.in_process else self.status
        return f"<{type(self).__name__} {status}: {' | '.join((count, *shown, *more))}>"


class CasesFailedError(AssertionError):
    """Cases of a run did not pass; the message has a line for each."""

    def __init__(self, result: RunResult) -> None:
        failed = [case for case in result.cases if not case.passed]
        lines = [f"{case.eval_id} {case.status}: {sentence(case)}".removesuffix(": ") for case in failed]
        lines = [*lines, *filter(None, [result.stopped])] or ["no case was run"]
        super().__init__(without_commands(result.secrets.mask_text("\n".join(lines))))
        self.result = result
