"""The cases whose last result would be another one by the criteria as they are edited now."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from evaltui.core.jsondoc.splices import LineChange
from evaltui.core.metrics.normal_config import score_alike
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import CaseResult
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.text.outcomes import STALE
from evaltui.workbench.agent_state import AgentState
from evaltui.workbench.criteria import Criteria
from evaltui.workbench.criteria_rows import MetricRow, Row
from evaltui.workbench.kept_results import ResultInFile
from evaltui.workbench.outcomes import Outcomes
from evaltui.workbench.results import Results, needs_attention
from evaltui.workbench.scoring_again import actual_of, score_again
from evaltui.workbench.state import CaseOutcome, SameConfig

# Cases that are scored before what is known is looked at again.
_AT_ONCE = 50


class Flip(NamedTuple):
    """A case that would have another outcome."""

    case: CaseId
    before: CaseResult | ResultInFile
    """By the criteria on disk."""
    after: CaseOutcome
    """By the criteria as they are edited."""

    @property
    def passes(self) -> bool:
        """Whether it would pass."""
        return not needs_attention(self.after.kept)


@dataclass(frozen=True)
class Flips:
    """What the unsaved criteria make of the last results."""

    cases: tuple[Flip, ...] = ()
    scored: int = 0
    """Cases that are known by both."""
    waiting: int = 0
    """Cases that are being scored."""
    unknown: int = 0
    """Cases without a run log, which cannot be scored again."""
    problem: str = ""
    """Why nothing can be compared, as a sentence; "" where it can."""


@dataclass(frozen=True)
class Effect:
    """What the unsaved changes of a config do, and what it says of a row."""

    name: str
    """The file's."""
    flips: Flips
    still_failing: tuple[tuple[CaseId, CaseOutcome], ...] = ()
    """Cases that pass the current metric now, and fail by another."""
    change: tuple[LineChange, ...] = ()
    """Lines of the file."""
    written: object = None
    """What the config says of the current row; None for nothing."""
    added: tuple[LineChange, ...] = ()
    """Lines that adding the current metric would change."""
    sets: Mapping[str, str] = field(default_factory=dict)
    """Names of the sets by their path, where the config is that of several."""
    twins: frozenset[str] = frozenset()
    """Ids of cases that more than one set has."""
    stale: int = 0
    """How many of the results only another run can tell of now."""


class _Compared(NamedTuple):
    """What the results are compared by; they are all looked at again when it is another one."""

    results: Results
    saved: EvalConfig
    edited: EvalConfig
    sets: tuple[str, ...]
    asked: int
    """Which wishes to score results again have been heard."""

    def is_as(self, other: _Compared | None) -> bool:
        """Whether both are of the same."""
        if other is None or self[3:] != other[3:]:
            return False
        return all(one is before for one, before in zip(self[:3], other[:3], strict=True))


class FlipSearch:
    """Compares the results by the criteria on disk with those by the criteria as they are edited.

    The latter come from the workbench, which scores again after every change; the former are remembered from
    before the first change, or scored here. Of many cases, those with another result are looked at again.
    """

    def __init__(self, agent: AgentState, outcomes: Outcomes, criteria: Criteria) -> None:
        self._agent = agent
        self._outcomes = outcomes
        self._criteria = criteria
        # By the criteria on disk, but for the `lost`, which cannot be scored by them.
        self._by_saved: dict[CaseId, CaseOutcome] = {}
        self._lost: set[CaseId] = set()
        self._compared: _Compared | None = None
        self._changes = outcomes.results.follow()
        # Of the cases that have a result; what is in none of them is known by both and no flip.
        self._waiting: set[CaseId] = set()
        self._unknown: set[CaseId] = set()
        self._flips: dict[CaseId, Flip] = {}
        self._count = 0

    def now(self) -> Flips:
        """As far as is known."""
        if self._criteria.unreadable():
            return Flips(problem="Config is unreadable; results stay as they were")
        saved, edited = self._criteria.saved_config(), self._criteria.config()
        if edited is None:
            return Flips(problem="Config has errors; results stay as they were")
        if saved is None:
            return Flips(problem="Config on disk has errors; outcomes cannot be compared")
        results, sets = self._outcomes.results, self._criteria.sets
        paths = tuple(one.case_path for one in sets)
        compared = _Compared(results, saved, edited, paths, self._outcomes.rescorings)
        if compared.is_as(self._compared):
            self._look_again(compared, self._changes.take())
        else:
            self._look_at_all(compared)
        if score_alike(saved, edited):
            return Flips(scored=sum(map(results.count, paths)))
        known = self._count - len(self._waiting) - len(self._unknown)
        return Flips(tuple(self._in_order(sets)), known, len(self._waiting), len(self._unknown))

    def _look_at_all(self, compared: _Compared) -> None:
        before, self._compared = self._compared, compared
        results = compared.results
        if before is None or results is not before.results:
            # `_known` looks at the configs of those that it needs.
            self._changes, self._by_saved, self._lost = results.follow(), results.copy(), set()
        elif score_alike(before.saved, compared.saved):
            self._remember(compared, self._changes.take())
        else:
            self._remember(compared, (case for path in compared.sets for case, _ in results.of(path)))
        self._waiting, self._unknown, self._flips = set(), set(), {}
        if score_alike(compared.saved, compared.edited):
            return
        cases = {case for path in compared.sets for case, _ in results.of(path)}
        self._count = len(cases)
        # After a change of a threshold that is each of them.
        self._waiting = cases & self._outcomes.rescored_soon()
        self._sort(compared, cases - self._waiting)

    def _look_again(self, compared: _Compared, changed: set[CaseId]) -> None:
        self._remember(compared, changed)
        if score_alike(compared.saved, compared.edited):
            return
        self._count = sum(compared.results.count(path) for path in compared.sets)
        self._sort(compared, changed)

    def _remember(self, compared: _Compared, cases: Iterable[CaseId]) -> None:
        """Keeps those results of cases that are by the criteria on disk."""
        is_saved = SameConfig(compared.saved)
        for case in cases:
            if (scored := compared.results.get(case)) is not None and is_saved(scored.config):
                self._by_saved[case] = scored
                self._lost.discard(case)

    def _sort(self, compared: _Compared, cases: Iterable[CaseId]) -> None:
        is_edited, is_saved = SameConfig(compared.edited), SameConfig(compared.saved)
        for case in cases:
            self._waiting.discard(case)
            self._unknown.discard(case)
            self._flips.pop(case, None)
            scored = compared.results.get(case) if case.path in compared.sets else None
            if scored is None:
                continue
            known = self._known(case, scored, is_saved)
            if known is None or self._outcomes.is_rescored(case):
                self._waiting.add(case)
            elif case in self._lost or not is_edited(scored.config):
                self._unknown.add(case)
            elif _differ(known.kept, scored.kept):
                self._flips[case] = Flip(case, known.kept, scored)

    def _in_order(self, sets: Sequence[EvalSetFile]) -> list[Flip]:
        """What passes then comes first, each in the order of the sets."""
        places = {one.case_path: (number, one) for number, one in enumerate(sets)}

        def place(flip: Flip) -> tuple[bool, int, int]:
            number, eval_set = places[flip.case.path]
            return not flip.passes, number, eval_set.number(flip.case.eval_id) or 0

        return sorted(self._flips.values(), key=place)

    def effect(self, flips: Flips, row: Row | None) -> Effect:
        """Everything that the page of a row shows."""
        criteria, sets = self._criteria, self._criteria.sets
        metric = row if isinstance(row, MetricRow) else None
        can_be_added = metric is not None and not metric.asked and metric.gates and not metric.why_not
        labels = Counter(one.eval_set_id for one in sets)
        # The cases of a single set need no name of a set.
        several = sets if len(sets) > 1 else ()
        cases = Counter(case.eval_id for one in several for case in one.cases)
        return Effect(
            name=criteria.path.name,
            flips=flips,
            still_failing=self._still_failing(flips, metric) if metric else (),
            change=criteria.change(),
            written=criteria.written(row) if row else None,
            added=criteria.addition(metric) if can_be_added and metric else (),
            sets={
                one.case_path: one.eval_set_id if labels[one.eval_set_id] == 1 else one.case_path
                for one in several
            },
            twins=frozenset(eval_id for eval_id, count in cases.items() if count > 1),
            stale=sum(self._outcomes.counts_of(one.case_path)[STALE] for one in sets),
        )

    def _still_failing(self, flips: Flips, metric: MetricRow) -> tuple[tuple[CaseId, CaseOutcome], ...]:
        flipped = {flip.case for flip in flips.cases}
        found = ((case, self._outcomes.get(case)) for case in metric.trial.now_pass if case not in flipped)
        return tuple((case, scored) for case, scored in found if scored and needs_attention(scored.kept))

    async def score_by_saved(self) -> None:
        """Scores the next cases that are not known yet by the criteria on disk, without agent and model."""
        saved = self._criteria.saved_config()
        if saved is None:
            return
        is_saved = SameConfig(saved)
        for case in list(islice(self._not_known(is_saved), _AT_ONCE)):
            if (scored := self._outcomes.get(case)) is None:
                continue
            events = await asyncio.to_thread(self._outcomes.events_of, case)
            new = None
            if events is not None:
                secrets = self._agent.secrets
                new = await score_again(scored, actual_of(events), scored.stored, saved, secrets)
            self._by_saved[case] = new or replace(scored, config=saved)
            if new is None:
                self._lost.add(case)
            else:
                self._lost.discard(case)
            self._changes.cases.add(case)
            await asyncio.sleep(0)

    def _not_known(self, is_saved: SameConfig) -> Iterator[CaseId]:
        """The cases that wait for being scored by the criteria on disk."""
        for case in self._waiting:
            scored = self._outcomes.get(case)
            if scored is not None and self._known(case, scored, is_saved) is None:
                yield case

    def _known(self, case: CaseId, scored: CaseOutcome, is_saved: SameConfig) -> CaseOutcome | None:
        """What is known of a case by the criteria on disk, if it is of the same run and the same case."""
        known = self._by_saved.get(case)
        if known is None or known.run != scored.run or not is_saved(known.config):
            return None
        stored = known.stored
        return known if stored is scored.stored or stored.says_the_same(scored.stored) else None


def _differ(before: CaseResult | ResultInFile, after: CaseResult | ResultInFile) -> bool:
    return before.status is not after.status or needs_attention(before) != needs_attention(after)
