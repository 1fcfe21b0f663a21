"""A save: its changes in sets, the cases that are run after it, and the reaction to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId, input_fingerprint
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.trace.model_calls import NO_CALLS, ModelCalls
from evaltui.documents.saving import fingerprint_of
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.text.figures import counted, short_list
from evaltui.workbench.cases.navigation import Navigation
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.result.outcomes import Outcomes

if TYPE_CHECKING:
    from evaltui.core.model.outcome import ErrorInfo


# Seconds in which a file that cannot be read may be finished: many editors empty it before they write it.
MOMENT_SECONDS = 0.3


@dataclass(frozen=True)
class TakenOver:
    """The effect of a save of sets and configs."""

    paths: tuple[Path, ...]
    """The changed sets."""
    due: frozenset[CaseId]
    """The cases whose input for the agent has changed, and the new cases of an existing set. A set that is
    new itself is left to the user to run."""
    from_outside: bool
    """Whether another program has written any of the files."""


class SavedSets:
    """The last input of each case of the sets. `reload` lists the sets again."""

    def __init__(self, sets: OpenSets, outcomes: Outcomes, reload: Callable[[], Awaitable[None]]) -> None:
        self._sets = sets
        self._outcomes = outcomes
        self._reload = reload
        # What the agent gets to see of each case, by its set and its id.
        self._input_fingerprints: dict[Path, dict[str, str]] = {}

    async def take_over(self, files: Sequence[Path]) -> TakenOver:
        """Reads the changes of other programs."""
        if any([await asyncio.to_thread(_may_be_unfinished, path) for path in files]):
            await asyncio.sleep(MOMENT_SECONDS)
        paths = {eval_set.case_path for eval_set in self._sets.listed}
        outside = [path for path in files if not await self._is_own(path)]
        if outside:
            await self._reload()
        concerned = self._sets.scored_by(files)
        sets = [eval_set for eval_set in self._sets.listed if eval_set.path in concerned]
        due = frozenset(case for case in await self.changed_cases(sets) if case.path in paths)
        return TakenOver(tuple(eval_set.path for eval_set in sets), due, bool(outside))

    async def _is_own(self, path: Path) -> bool:
        """Whether a file is as it was last saved or read here."""
        await self._sets.files.finished()
        open_file = self._sets.files.get(path)
        if open_file is None or open_file.fingerprint is None:
            return False
        return open_file.fingerprint == await asyncio.to_thread(fingerprint_of, path)

    async def changed_cases(self, sets: Iterable[EvalSetFile]) -> set[CaseId]:
        """The cases whose input for the agent differs from that of the last call."""
        other: set[CaseId] = set()
        for eval_set in sets:
            if eval_set.format is None:
                # It cannot be read: what is known of it is what it was before.
                continue
            now = await asyncio.to_thread(_fingerprints, eval_set.cases)
            before = self._input_fingerprints.get(eval_set.path, {})
            for eval_id, fingerprint in now.items():
                case = CaseId(eval_set.case_path, eval_id)
                # A case that was renamed has the result that it had.
                is_new = eval_id not in before and self._outcomes.get(case) is None
                if is_new or before.get(eval_id, fingerprint) != fingerprint:
                    other.add(case)
            self._input_fingerprints[eval_set.path] = now
        return other


def _fingerprints(cases: Sequence[StoredCase]) -> dict[str, str]:
    """In a thread: fingerprints of the agent's input, for every case that has an id."""
    return {case.eval_id: input_fingerprint(case.data()) for case in cases if case.eval_id}


def _may_be_unfinished(path: Path) -> bool:
    """In a thread: whether JSON was cut off, or is still to be written."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64))
            return not file.read().rstrip().endswith((b"}", b"]"))
    except OSError:
        return False


class DueCases:
    """The files that were saved since the last run ended, and the cases that are run for them."""

    def __init__(self, sets: OpenSets, outcomes: Outcomes, navigation: Navigation) -> None:
        self.files: dict[str, None] = {}
        """The agent's files that were saved, as seen from its folder, in their order."""
        self.set_files: dict[str, None] = {}
        """The sets and configs whose save makes cases due."""
        self.cases: set[CaseId] = set()
        """Cases that have to be run independent of their results."""
        self.is_included: Callable[[CaseId], bool] = lambda case: True
        """Tells whether a case is run at all."""
        self._sets = sets
        self._outcomes = outcomes
        self._navigation = navigation

    @property
    def names(self) -> tuple[str, ...]:
        """The saved files."""
        return (*self.files, *self.set_files)

    def clear(self) -> None:
        """Forgets the saves so far."""
        self.files.clear()
        self.set_files.clear()
        self.cases.clear()

    def to_run(self) -> set[CaseId]:
        """The cases to run: failed and marked ones, the selected one, and those that need no model."""
        cases = set(self.cases)
        if self.files:
            candidates = {*self._outcomes.results.attention, *self._navigation.marking.marked}
            if self._navigation.selection.case is not None:
                candidates.add(self._navigation.selection.case)
            cases |= {
                case
                for case in candidates
                if self._outcomes.get(case) is None or self._outcomes.is_stale(case)
            }
            cases |= self.free(replays=False)
        return {case for case in cases & set(self._sets.every_case()) if self.is_included(case)}

    def free(self, *, replays: bool) -> set[CaseId]:
        """The cases with a stale result that made no model call, and will make none if the agent sends the
        same requests; with `replays` also those whose model calls were replayed."""
        results = self._outcomes.results
        return {
            case
            for path in results.paths()
            for case, scored in results.of(path)
            if scored.calls.need_no_model
            and (replays or not scored.calls.replayed)
            and self._outcomes.is_stale(case)
            and self.is_included(case)
        }

    def was_replayed(self, case: CaseId) -> bool:
        """Whether all the model calls of a case came from recordings, and there were any."""
        scored = self._outcomes.get(case)
        return scored is not None and scored.calls.replayed > 0 and not scored.calls.live

    def made_live_calls(self, case: CaseId) -> bool:
        scored = self._outcomes.get(case)
        return scored is not None and scored.calls.live > 0

    def calls_of(self, cases: Iterable[CaseId]) -> ModelCalls:
        """The model calls of the last runs of the cases; unknown for a case that was never run."""
        outcomes = map(self._outcomes.get, cases)
        return sum(
            (outcome.calls if outcome else ModelCalls(is_known=False) for outcome in outcomes), NO_CALLS
        )


class ReactionStep(StrEnum):
    """The stage of a reaction."""

    IMPORTING = "loading agent"
    RUNNING = "running"
    SCORING = "rescoring"
    DONE = "done"
    BROKEN = "Cannot load agent"


@dataclass(frozen=True)
class Reaction:
    """The reaction to a save."""

    changed: tuple[str, ...]
    """The saved files, relative to the agent's folder."""
    step: ReactionStep
    run: int | None = None
    """The number of the run that it led to."""
    cases: int = 0
    """How many cases are run."""
    calls: ModelCalls = NO_CALLS
    """The model calls that these cases made when they were run last."""
    rescored: int = 0
    """How many cases were scored again without the agent."""
    seconds: float | None = None
    """From the save to the last verdict; None before that."""
    at: float = field(default_factory=time.time)
    """Time of the last change of this reaction, in seconds since the epoch."""


@dataclass(frozen=True)
class Waiting:
    """The cases with a stale result."""

    cases: frozenset[CaseId] = frozenset()
    calls: ModelCalls = NO_CALLS
    """The model calls that they made in their runs."""


def join_names(names: Sequence[str]) -> str:
    """Joins names: `agent.py`, `agent.py and tools.py`, `agent.py and 3 more`."""
    if len(names) > 2:
        return short_list(names, 1)
    return " and ".join(names)


def error_line(error: ErrorInfo) -> str:
    """An error in one line: `agent.py:12: NameError: name 'tols' is not defined`."""
    where = error.where.partition(" ")[0]
    message = error.message.strip().splitlines()
    return ": ".join(part for part in (where, error.type, message[0] if message else "") if part)


def calls_in_words(calls: ModelCalls) -> str:
    """The number of calls in words: `no live model call`, `3 live model calls`, `at least 3 live model
    calls`, or an unknown number; with judge calls, ` and 5 live judge calls` follows."""
    of_models = calls.live - calls.judged
    judges = f" and {counted(calls.judged, 'live judge call')}" if calls.judged else ""
    if not calls.is_known and not of_models:
        return f"unknown number of live calls{judges}"
    if not of_models:
        return f"no live model call{judges}"
    least = "" if calls.is_known else "at least "
    return f"{least}{counted(of_models, 'live model call')}{judges}"
