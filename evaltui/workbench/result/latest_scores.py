"""The scores of the last results of cases, asked by the criteria on disk and by those that are edited."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evaltui.core.metrics.normal_config import score_alike
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.thresholds import limits_of, scores_tell
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.runs.score_table import CaseRow, ScoreTable, Side, Trial, TrialOf, Verdict
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.result.results import Results
from evaltui.workbench.result.stored_results import ResultRef, StoredResult
from evaltui.workbench.state import CaseOutcome, RunRef


@dataclass(frozen=True, eq=False, slots=True)
class _Source:
    """A result of a case, and what it was scored by."""

    id: int
    """The result's in the table."""
    ref: ResultRef
    stored: StoredCase | None
    """None where nobody knows, as `config`."""
    config: EvalConfig | None
    run: RunRef

    def is_of(self, case: StoredCase, eval_set_id: str) -> bool:
        """Whether this case of a set with this id was scored."""
        if self.stored is None or self.ref.figures.eval_set_id != eval_set_id:
            return False
        return self.stored is case or self.stored.says_the_same(case)


class LatestScores:
    """Of the last results by the cases of now, without stale ones, in a table; cases are numbered through all
    sets. While nothing else changes than thresholds, no case is looked at."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._start((), outcomes.results)

    def _start(self, sets: Sequence[EvalSetFile], results: Results) -> None:
        self._sets, self._results, self._version = tuple(sets), results, results.version
        self._firsts: list[int] = []
        count = 0
        for eval_set in sets:
            self._firsts.append(count)
            count += len(eval_set.cases)
        self._table = ScoreTable(self._case_at)
        self._sources: dict[CaseId, list[_Source]] = {}
        self._rows: dict[CaseId, CaseRow] = {}
        self._ids = 0
        # Results in the table, and those of them whose verdicts scores do not tell.
        self._read: set[int] = set()
        self._decided: set[int] = set()
        self._configs: tuple[EvalConfig | None, EvalConfig | None] = None, None
        self._stale = frozenset[CaseId]()
        self._rescorings = -1
        self._told: dict[tuple[int, int, bool], tuple[EvalConfig, bool]] = {}
        self._trials: dict[TrialOf, Trial] = {}
        self._verdicts: tuple[dict[CaseId, Verdict], dict[CaseId, Verdict]] | None = None
        self._dropped: list[int] = []
        self.waiting: set[CaseId] = set()
        """Cases that are to be scored before they can be compared."""
        self.unknown: set[CaseId] = set()
        """Cases that cannot be compared, for want of scores by one of the configs."""

    @property
    def compared(self) -> int:
        """How many cases have scores by both configs."""
        return len(self._rows) - len(self.waiting) - len(self.unknown)

    def follow(
        self, sets: Sequence[EvalSetFile], saved: EvalConfig | None, edited: EvalConfig | None
    ) -> None:
        """Looks at the results of the cases of these sets as they are now; a config with errors is None."""
        results, stale = self._outcomes.results, self._outcomes.stale()
        if results is not self._results or not _are_alike(sets, self._sets):
            self._start(sets, results)
        is_same = (
            self._rescorings == self._outcomes.rescorings
            and self._stale is stale
            and not (self._decided and self._configs != (saved, edited))
            and all(map(_tell_alike, self._configs, (saved, edited)))
        )
        if self._configs != (saved, edited):
            self._configs, self._told, self._verdicts = (saved, edited), {}, None
        changed = {case for one in sets for case in results.changed_since(self._version, one.case_path)}
        self._version = results.version
        if not is_same:
            self._stale, self._rescorings = stale, self._outcomes.rescorings
            changed = {case for one in sets for case, _ in results.of(one.case_path)} | self._rows.keys()
        if changed:
            self._look(changed)

    def _look(self, cases: Collection[CaseId]) -> None:
        places = {one.case_path: (first, one) for first, one in zip(self._firsts, self._sets, strict=True)}
        rows: list[CaseRow] = []
        for case in cases:
            before = self._rows.pop(case, None)
            self.waiting.discard(case)
            self.unknown.discard(case)
            first, eval_set = places.get(case.path, (0, None))
            number = eval_set.number(case.eval_id) if eval_set else None
            if eval_set is None or number is None:
                continue
            row = CaseRow(first + number)
            scored = None if case in self._stale else self._results.get(case)
            if scored is not None:
                sources = self._sources_of(case, scored, before)
                now, eval_set_id = eval_set.cases[number], eval_set.eval_set_id
                of_now = [one for one in sources if one.is_of(now, eval_set_id)]
                row = self._rows[case] = self._chosen(row.number, scored, of_now)
                if row.saved is None or row.edited is None:
                    is_waiting = row.edited is None and self._outcomes.is_rescored(case)
                    (self.waiting if is_waiting else self.unknown).add(case)
            if row != before:
                rows.append(row)
        if rows:
            self._table.put_cases(rows)
            self._trials, self._verdicts = {}, None
        self._table.remove(self._dropped)
        self._dropped = []
        if decided := self._read_scores(cases):
            self._look(decided)

    def _sources_of(self, case: CaseId, scored: CaseOutcome, row: CaseRow | None) -> list[_Source]:
        """The result that a case has, that in the log of its run, and what told of the case before."""
        before = [one for one in self._sources.get(case, ()) if one.run == scored.run]
        ran = scored.ran or (scored.stored, scored.config)
        wanted = [(scored.ref, *(ran if scored.unscored else (scored.stored, scored.config)))]
        if scored.logged is not None and scored.logged is not scored.ref:
            wanted.append((scored.logged, *ran))
        sources = []
        for ref, stored, config in wanted:
            source = next((one for one in before if one.ref is ref and one.config is config), None)
            if source is None or source.stored is not stored:
                self._ids += 1
                source = _Source(self._ids, ref, stored, config, scored.run)
            sources.append(source)
        if row is not None:
            sources += [one for one in before if one.id in (row.saved, row.edited) and one not in sources]
        self._dropped += [one.id for one in self._sources.get(case, ()) if one not in sources]
        self._sources[case] = sources
        return sources

    def _chosen(self, number: int, scored: CaseOutcome, sources: Sequence[_Source]) -> CaseRow:
        """Which results of a case by what is expected now tell what; those that are read come first."""
        sources = sorted(sources, key=lambda one: one.id not in self._read)
        saved, edited = (
            next((one.id for one in sources if self._tells(one, config)), None) for config in self._configs
        )
        shown = next((one.id for one in sources if one.ref is scored.ref), None)
        return CaseRow(number, saved, edited, shown if edited is None else edited, scored.pass_if)

    def _tells(self, source: _Source, config: EvalConfig | None) -> bool:
        """Whether a result tells how its case comes out by a config."""
        if source.config is None or config is None:
            return False
        tells = score_alike if source.id in self._decided else scores_tell
        key = id(source.config), id(config), tells is scores_tell
        if key not in self._told:
            # With the config, so that no other one gets its number.
            self._told[key] = source.config, tells(source.config, config)
        return self._told[key][1]

    def _read_scores(self, cases: Iterable[CaseId]) -> set[CaseId]:
        """Reads what results scored; returns cases of which scores turn out not to tell the verdict."""
        stored: dict[Path, dict[int, int]] = {}
        before = len(self._decided)
        for case in cases:
            if (row := self._rows.get(case)) is None:
                continue
            for source in self._sources[case]:
                if source.id in self._read or source.id not in row[1:4]:
                    continue
                self._read.add(source.id)
                if isinstance(source.ref, StoredResult):
                    stored.setdefault(source.ref.file.path, {})[source.ref.number] = source.id
                    continue
                self._table.add(source.id, source.ref.result)
                if source.ref.result.decision is not None:
                    self._decided.add(source.id)
        for log, results in stored.items():
            # Of what cannot be read nothing is known.
            with suppress(OSError, ValueError):
                self._decided |= self._table.add_stored(log, results)
        if len(self._decided) == before:
            return set()
        return {case for case in cases if any(one.id in self._decided for one in self._sources.get(case, ()))}

    def _case_at(self, number: int) -> CaseId:
        place = bisect_right(self._firsts, number) - 1
        eval_set = self._sets[place]
        return CaseId(eval_set.case_path, eval_set.cases[number - self._firsts[place]].eval_id)

    # Questions

    def trial(self, tried: TrialOf) -> Trial:
        """What a threshold makes of the scores of a metric."""
        if tried not in self._trials:
            self._trials[tried] = self._table.trial(tried)
        return self._trials[tried]

    def verdicts(self) -> tuple[dict[CaseId, Verdict], dict[CaseId, Verdict]]:
        """How cases come out by the criteria on disk, and as they are edited: those that may differ."""
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


def _tell_alike(one: EvalConfig | None, other: EvalConfig | None) -> bool:
    """Whether the same results tell how cases come out by two configs."""
    if one is None or other is None:
        return one is other
    return scores_tell(one, other) and scores_tell(other, one)


def _are_alike(sets: Sequence[EvalSetFile], others: Sequence[EvalSetFile]) -> bool:
    """Whether these are the same sets with the same cases."""
    return len(sets) == len(others) and all(
        one.case_path == other.case_path and one.eval_set_id == other.eval_set_id and one.cases is other.cases
        for one, other in zip(sets, others, strict=True)
    )
