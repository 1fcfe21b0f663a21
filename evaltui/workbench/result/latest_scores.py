"""The scores of the last results of cases, compared by the criteria on disk and by the edited ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from evaltui.core.metrics.normal_config import score_alike
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.thresholds import limits_of, scores_decide
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.runs.score_table import CaseRow, ScoreTable, Side, Trial, TriedThreshold, Verdict
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.result.results import Results
from evaltui.workbench.result.stored_results import ResultRef, StoredResult
from evaltui.workbench.state import CaseOutcome, RunRef


@dataclass(frozen=True, eq=False, slots=True)
class _Source:
    """A result of a case, with the case and config that scored it."""

    id: int
    """The id of the result in the table."""
    ref: ResultRef
    stored: StoredCase | None
    """None where it is unknown, as `config`."""
    config: EvalConfig | None
    run: RunRef

    def is_of(self, case: StoredCase, eval_set_id: str) -> bool:
        """Whether the result was scored by this case, in a set with this id."""
        if self.stored is None or self.ref.figures.eval_set_id != eval_set_id:
            return False
        return self.stored is case or self.stored.says_the_same(case)


class LatestScores:
    """A table of the scores of the last results that are not stale, by the current cases; cases are numbered
    through all sets.

    While only thresholds change, no case is read again.
    """

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._start((), outcomes.results)

    def _start(self, sets: Sequence[EvalSetFile], results: Results) -> None:
        self._sets, self._results = tuple(sets), results
        self._cases = [
            CaseId(eval_set.case_path, stored.eval_id) for eval_set in sets for stored in eval_set.cases
        ]
        self._table = ScoreTable(self._cases.__getitem__)
        self._sources: dict[CaseId, list[_Source]] = {}
        self._rows: dict[CaseId, CaseRow] = {}
        self._ids = count(1)
        # Results in the table, and those of them whose verdicts scores do not tell.
        self._read: set[int] = set()
        self._decided: set[int] = set()
        self._configs: tuple[EvalConfig | None, EvalConfig | None] = None, None
        self._state: tuple[int, frozenset[CaseId], int] = -1, frozenset(), -1
        self._decides_cache: dict[tuple[int, int, bool], tuple[EvalConfig, bool]] = {}
        self._trials: dict[TriedThreshold, Trial] = {}
        self._verdicts: tuple[dict[CaseId, Verdict], dict[CaseId, Verdict]] | None = None
        self.waiting: set[CaseId] = set()
        """Cases that have to be scored before they can be compared."""
        self.unknown: set[CaseId] = set()
        """Cases that cannot be compared, because scores by one of the configs are missing."""

    @property
    def compared(self) -> int:
        """The number of cases with scores by both configs."""
        return len(self._rows) - len(self.waiting) - len(self.unknown)

    def follow(
        self, sets: Sequence[EvalSetFile], saved: EvalConfig | None, edited: EvalConfig | None
    ) -> None:
        """Updates the table with the results of the cases of these sets; a config with errors is None."""
        results, configs = self._outcomes.results, (saved, edited)
        if results is not self._results or not _are_same_sets(sets, self._sets):
            self._start(sets, results)
        state = results.version, self._outcomes.stale(), self._outcomes.rescorings
        is_same = state == self._state and all(map(_have_same_limits, self._configs, configs))
        if self._configs != configs:
            is_same = is_same and not self._decided
            self._configs, self._decides_cache, self._verdicts = configs, {}, None
        if not is_same:
            self._state = state
            self._choose()

    def _choose(self) -> None:
        """Chooses the results that tell the outcome of each case by both configs, and reads their scores."""
        results, (_, stale, _) = self._results, self._state
        rows = [CaseRow(number) for number in range(len(self._cases))]
        before, self._rows, first = self._rows, {}, 0
        sources: dict[CaseId, list[_Source]] = {}
        self.waiting, self.unknown = set(), set()
        for eval_set in self._sets:
            for case, scored in results.of(eval_set.case_path):
                number = eval_set.number(case.eval_id)
                if number is None or case in stale:
                    continue
                sources[case] = self._sources_of(case, scored, before.get(case))
                now = eval_set.cases[number]
                of_now = [source for source in sources[case] if source.is_of(now, eval_set.eval_set_id)]
                row = self._rows[case] = rows[first + number] = self._chosen(first + number, scored, of_now)
                if row.saved is None or row.edited is None:
                    is_waiting = row.edited is None and self._outcomes.is_rescored(case)
                    (self.waiting if is_waiting else self.unknown).add(case)
            first += len(eval_set.cases)
        self._sources = sources
        self._table.put_cases(rows)
        self._trials, self._verdicts = {}, None
        in_use = {source.id for of_case in sources.values() for source in of_case}
        self._table.remove(self._read - in_use)
        self._read &= in_use
        self._decided &= in_use
        decided = len(self._decided)
        self._read_scores()
        if len(self._decided) > decided:
            self._choose()

    def _sources_of(self, case: CaseId, scored: CaseOutcome, row: CaseRow | None) -> list[_Source]:
        """The result of a case, the one in the log of its run, and the earlier sources that are still in
        use."""
        before = [source for source in self._sources.get(case, ()) if source.run == scored.run]
        ran = scored.ran or (scored.stored, scored.config)
        scorings = [(scored.ref, *(ran if scored.unscored else (scored.stored, scored.config)))]
        if scored.logged is not None and scored.logged is not scored.ref:
            scorings.append((scored.logged, *ran))
        sources = [
            next(
                (
                    source
                    for source in before
                    if source.ref is ref and source.stored is stored and source.config is config
                ),
                None,
            )
            or _Source(next(self._ids), ref, stored, config, scored.run)
            for ref, stored, config in scorings
        ]
        in_use = row[1:3] if row is not None else ()
        return [*sources, *(source for source in before if source.id in in_use and source not in sources)]

    def _chosen(self, number: int, scored: CaseOutcome, sources: Sequence[_Source]) -> CaseRow:
        """The row of a case: its results for the saved and for the edited config; results that were read come
        first."""
        sources = sorted(sources, key=lambda source: source.id not in self._read)
        saved, edited = (
            next((source.id for source in sources if self._decides(source, config)), None)
            for config in self._configs
        )
        shown = next((source.id for source in sources if source.ref is scored.ref), None)
        return CaseRow(number, saved, edited, shown if edited is None else edited, scored.pass_if)

    def _decides(self, source: _Source, config: EvalConfig | None) -> bool:
        """Whether the scores of a result decide the case's outcome by a config."""
        if source.config is None or config is None:
            return False
        compare = score_alike if source.id in self._decided else scores_decide
        key = id(source.config), id(config), compare is scores_decide
        if key not in self._decides_cache:
            # With the config, so that no other one gets its number.
            self._decides_cache[key] = source.config, compare(source.config, config)
        return self._decides_cache[key][1]

    def _read_scores(self) -> None:
        """Reads the scores of chosen results."""
        stored: dict[Path, dict[int, int]] = {}
        for case, row in self._rows.items():
            for source in self._sources[case]:
                if source.id in self._read or source.id not in row[1:4]:
                    continue
                self._read.add(source.id)
                if isinstance(source.ref, StoredResult):
                    stored.setdefault(source.ref.file.path, {})[source.ref.number] = source.id
                    continue
                if self._table.add(source.id, source.ref.result):
                    self._decided.add(source.id)
        for log, results in stored.items():
            # Of what cannot be read nothing is known.
            with suppress(OSError, ValueError):
                self._decided |= self._table.add_stored(log, results)

    # Questions

    def trial(self, tried: TriedThreshold) -> Trial:
        """The effect of a threshold on the scores of a metric."""
        if tried not in self._trials:
            self._trials[tried] = self._table.trial(tried)
        return self._trials[tried]

    def verdicts(self) -> tuple[dict[CaseId, Verdict], dict[CaseId, Verdict]]:
        """The verdicts of cases that may differ, by the criteria on disk and by the edited ones."""
        if self._verdicts is None:
            sides = [
                Side(column, limits_of(config), config.evaltui.repeats.pass_if)
                for column, config in zip(("saved", "edited"), self._configs, strict=True)
                if config is not None
            ]
            if len(sides) < len(self._configs):
                return {}, {}
            saved, edited = sides
            self._verdicts = self._table.verdicts(saved, edited), self._table.verdicts(edited, saved)
        return self._verdicts


def _have_same_limits(config: EvalConfig | None, other: EvalConfig | None) -> bool:
    """Whether the same results decide the outcomes by two configs."""
    if config is None or other is None:
        return config is other
    return scores_decide(config, other) and scores_decide(other, config)


def _are_same_sets(sets: Sequence[EvalSetFile], others: Sequence[EvalSetFile]) -> bool:
    """Whether these are the same sets with the same cases."""
    return len(sets) == len(others) and all(
        eval_set.case_path == other.case_path
        and eval_set.eval_set_id == other.eval_set_id
        and eval_set.cases is other.cases
        for eval_set, other in zip(sets, others, strict=True)
    )
