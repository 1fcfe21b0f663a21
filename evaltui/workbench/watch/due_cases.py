"""Which cases are run after a save: what shows soonest what has changed, and costs no model call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from evaltui.core.model.case_id import CaseId
from evaltui.core.trace.model_calls import NO_CALLS, ModelCalls
from evaltui.workbench.navigation import Navigation
from evaltui.workbench.open_sets import OpenSets
from evaltui.workbench.outcomes import Outcomes
from evaltui.workbench.state import CaseOutcome


class DueCases:
    """What was saved since a run came to its end, and the cases that are to be run for it."""

    def __init__(self, sets: OpenSets, outcomes: Outcomes, navigation: Navigation) -> None:
        self.files: dict[str, None] = {}
        """The agent's files that were saved, as seen from its folder, in their order."""
        self.set_files: dict[str, None] = {}
        """The sets and configs that were saved so that cases are to be run."""
        self.cases: set[CaseId] = set()
        """Cases that have to be run whatever came of them before."""
        self.is_included: Callable[[CaseId], bool] = lambda key: True
        """Which cases are run at all."""
        self._sets = sets
        self._outcomes = outcomes
        self._navigation = navigation

    @property
    def names(self) -> tuple[str, ...]:
        """The saved files."""
        return (*self.files, *self.set_files)

    def clear(self) -> None:
        """Whatever is saved from now on is another matter."""
        self.files.clear()
        self.set_files.clear()
        self.cases.clear()

    def to_run(self) -> set[CaseId]:
        """What failed, what is selected, and what no model is needed for; not what may ask one."""
        keys = set(self.cases)
        if self.files:
            wanted = {*self._outcomes.results.attention, *self._navigation.marking.marked}
            if self._navigation.selection.case is not None:
                wanted.add(self._navigation.selection.case)
            keys |= {key for key in wanted if self._outcomes.get(key) is None or self._outcomes.is_stale(key)}
            keys |= self.free(replays=False)
        return {key for key in keys & set(self._sets.every_case()) if self.is_included(key)}

    def free(self, *, replays: bool) -> set[CaseId]:
        """The cases with an old result that asked no model then, and will not now if they ask the same;
        with `replays` those, too, whose model calls were replayed."""
        return {
            key
            for key in self.stale()
            if (scored := self._outcomes.get(key)) is not None
            and scored.calls.need_no_model
            and (replays or not scored.calls.replayed)
            and self.is_included(key)
        }

    def was_replayed(self, key: CaseId) -> bool:
        """Whether all the model calls of a case came from recordings, and there were any."""
        scored = self._outcomes.get(key)
        return scored is not None and scored.calls.replayed > 0 and not scored.calls.live

    def made_live_calls(self, key: CaseId) -> bool:
        scored = self._outcomes.get(key)
        return scored is not None and scored.calls.live > 0

    def stale(self) -> Iterator[CaseId]:
        """The cases whose result is of the agent, the case or the config as they were before."""
        results = self._outcomes.results
        for path in results.paths():
            yield from (key for key, _ in results.of(path) if self._outcomes.is_stale(key))

    def calls_of(self, keys: Iterable[CaseId]) -> ModelCalls:
        """What the cases made when they were run last; of one that was never run, nothing is known."""
        return sum((_calls(self._outcomes.get(key)) for key in keys), NO_CALLS)


def _calls(outcome: CaseOutcome | None) -> ModelCalls:
    return ModelCalls(known=False) if outcome is None else outcome.calls
