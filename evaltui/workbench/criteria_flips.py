"""The cases whose last result would be another one by the criteria as they are edited now."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from evaltui.core.jsondoc.splices import LineChange
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import CaseResult
from evaltui.workbench.agent_state import AgentState
from evaltui.workbench.criteria import Criteria
from evaltui.workbench.criteria_rows import MetricRow, Row
from evaltui.workbench.kept_results import ResultInFile
from evaltui.workbench.outcomes import Outcomes
from evaltui.workbench.rescoring import actual_of, score_again
from evaltui.workbench.results import needs_attention
from evaltui.workbench.state import CaseOutcome, RunRef

if TYPE_CHECKING:
    from evaltui.core.model.stored_cases import StoredCase

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


class _BySaved(NamedTuple):
    """A result by the criteria on disk, and of what it is."""

    run: RunRef
    stored: StoredCase
    config: EvalConfig
    kept: CaseResult | ResultInFile | None
    """None where it cannot be scored."""


class FlipSearch:
    """Compares the results by the criteria on disk with those by the criteria as they are edited.

    The latter come from the workbench, which scores again after every change; the former are remembered from
    before the first change, or scored here.
    """

    def __init__(self, agent: AgentState, outcomes: Outcomes, criteria: Criteria) -> None:
        self._agent = agent
        self._outcomes = outcomes
        self._criteria = criteria
        self._by_saved: dict[CaseId, _BySaved] = {}

    def now(self) -> Flips:
        """As far as is known."""
        if self._criteria.unreadable():
            return Flips(problem="Config is unreadable; results stay as they were")
        saved, edited = self._criteria.saved_config(), self._criteria.config()
        if edited is None:
            return Flips(problem="Config has errors; results stay as they were")
        if saved is None:
            return Flips(problem="Config on disk has errors; outcomes cannot be compared")
        flips: list[Flip] = []
        known = waiting = unknown = 0
        same = saved is edited or saved == edited
        is_saved, is_edited = _Same(saved), _Same(edited)
        for case, scored in self._outcomes_of_sets():
            if is_saved(scored.config):
                self._by_saved[case] = _BySaved(scored.run, scored.stored, saved, scored.kept)
            if same:
                continue
            before = self._known(case, scored, saved)
            if self._outcomes.is_rescored(case) or before is None:
                waiting += 1
            elif before.kept is None or not is_edited(scored.config):
                unknown += 1
            else:
                known += 1
                if _differ(before.kept, scored.kept):
                    flips.append(Flip(case, before.kept, scored))
        flips.sort(key=lambda flip: not flip.passes)
        return Flips(tuple(flips), known, waiting, unknown)

    def effect(self, flips: Flips, row: Row | None) -> Effect:
        """Everything that the page of a row shows."""
        criteria, sets = self._criteria, self._criteria.sets
        metric = row if isinstance(row, MetricRow) else None
        can_be_added = metric is not None and not metric.asked and metric.gates and not metric.why_not
        labels = Counter(one.eval_set_id for one in sets)
        cases = Counter(case.eval_id for one in sets for case in one.cases)
        return Effect(
            name=criteria.path.name,
            flips=flips,
            still_failing=self._still_failing(flips, metric) if metric else (),
            change=criteria.change(),
            written=criteria.written(row) if row else None,
            added=criteria.addition(metric) if can_be_added and metric else (),
            sets={
                one.case_path: one.eval_set_id if labels[one.eval_set_id] == 1 else one.case_path
                for one in sets
                if len(sets) > 1
            },
            twins=frozenset(eval_id for eval_id, count in cases.items() if count > 1),
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
        unknown = (one for one in self._outcomes_of_sets() if self._known(*one, saved) is None)
        for case, scored in list(islice(unknown, _AT_ONCE)):
            events = await asyncio.to_thread(self._outcomes.events_of, case)
            new = None
            if events is not None:
                secrets = self._agent.secrets
                new = await score_again(scored, actual_of(events), scored.stored, saved, secrets)
            self._by_saved[case] = _BySaved(scored.run, scored.stored, saved, new.kept if new else None)
            await asyncio.sleep(0)

    def _known(self, case: CaseId, scored: CaseOutcome, saved: EvalConfig) -> _BySaved | None:
        known = self._by_saved.get(case)
        if known is None or known.run != scored.run or not (known.config is saved or known.config == saved):
            return None
        return known if known.stored is scored.stored or known.stored.says_the_same(scored.stored) else None

    def _outcomes_of_sets(self) -> Iterator[tuple[CaseId, CaseOutcome]]:
        for eval_set in self._criteria.sets:
            for case in eval_set.cases:
                key = CaseId(eval_set.case_path, case.eval_id)
                if (scored := self._outcomes.get(key)) is not None:
                    yield key, scored


class _Same:
    """Whether configs, most of which are the same objects, say the same as one."""

    def __init__(self, config: EvalConfig) -> None:
        self._config = config
        # Kept, so that no other one gets the number of one that is gone.
        self._known: dict[int, tuple[EvalConfig, bool]] = {}

    def __call__(self, other: EvalConfig) -> bool:
        known = self._known.get(id(other))
        if known is None:
            known = self._known[id(other)] = other, other is self._config or other == self._config
        return known[1]


def _differ(before: CaseResult | ResultInFile, after: CaseResult | ResultInFile) -> bool:
    return before.status is not after.status or needs_attention(before) != needs_attention(after)
