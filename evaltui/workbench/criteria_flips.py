"""The cases whose last result would be another one by the criteria as they are edited now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import CaseResult
from evaltui.workbench.agent_state import AgentState
from evaltui.workbench.criteria import Criteria
from evaltui.workbench.outcomes import Outcomes
from evaltui.workbench.rescoring import actual_of, score_again
from evaltui.workbench.results import needs_attention
from evaltui.workbench.state import CaseOutcome, RunRef

if TYPE_CHECKING:
    from evaltui.core.model.stored_cases import StoredCase


class Flip(NamedTuple):
    """A case that would have another outcome."""

    case: CaseId
    before: CaseResult
    """By the criteria on disk."""
    after: CaseResult
    """By the criteria as they are edited."""

    @property
    def passes(self) -> bool:
        """Whether it would pass."""
        return not needs_attention(self.after)


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


class _BySaved(NamedTuple):
    """A result by the criteria on disk, and of what it is."""

    run: RunRef
    stored: StoredCase
    config: EvalConfig
    result: CaseResult | None
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

    def now(self) -> Flips | None:
        """As far as is known; None where a config cannot be read, on disk or as it is edited."""
        saved, edited = self._criteria.saved_config(), self._criteria.config()
        if saved is None or edited is None:
            return None
        flips: list[Flip] = []
        known = waiting = unknown = 0
        same = saved is edited or saved == edited
        for case, scored in self._outcomes_of_sets():
            if scored.config is saved or scored.config == saved:
                self._by_saved[case] = _BySaved(scored.run, scored.stored, saved, scored.result)
            if same:
                continue
            before = self._known(case, scored, saved)
            if self._outcomes.is_rescored(case) or before is None:
                waiting += 1
            elif before.result is None or not (scored.config is edited or scored.config == edited):
                unknown += 1
            else:
                known += 1
                if _differ(before.result, scored.result):
                    flips.append(Flip(case, before.result, scored.result))
        flips.sort(key=lambda flip: not flip.passes)
        return Flips(tuple(flips), known, waiting, unknown)

    async def score_by_saved(self) -> None:
        """Scores what is not known yet by the criteria on disk; no agent and no model is asked."""
        saved = self._criteria.saved_config()
        if saved is None:
            return
        for case, scored in list(self._outcomes_of_sets()):
            if self._known(case, scored, saved) is not None:
                continue
            events = await asyncio.to_thread(self._outcomes.traces.events_of, case)
            new = None
            if events is not None:
                secrets = self._agent.secrets
                new = await score_again(scored, actual_of(events), scored.stored, saved, secrets)
            result = new.result if new else None
            self._by_saved[case] = _BySaved(scored.run, scored.stored, saved, result)
            await asyncio.sleep(0)

    def _known(self, case: CaseId, scored: CaseOutcome, saved: EvalConfig) -> _BySaved | None:
        known = self._by_saved.get(case)
        if known is None or known.run != scored.run or known.config != saved:
            return None
        return known if known.stored is scored.stored or known.stored.says_the_same(scored.stored) else None

    def _outcomes_of_sets(self) -> Iterator[tuple[CaseId, CaseOutcome]]:
        for eval_set in self._criteria.sets:
            for case in eval_set.cases:
                key = CaseId(eval_set.case_path, case.eval_id)
                if (scored := self._outcomes.get(key)) is not None:
                    yield key, scored


def _differ(before: CaseResult, after: CaseResult) -> bool:
    return before.status is not after.status or needs_attention(before) != needs_attention(after)
