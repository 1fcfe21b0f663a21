"""Trajectories of received sessions that no case of the agent's sets has, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from evaltui.runs.sessions import Pattern, ScoredSession, expected_patterns
from evaltui.traces.drafting import unusable
from evaltui.traces.missing import not_expected
from evaltui.workbench.open_sets import OpenSets


@dataclass(frozen=True)
class NewTrajectory:
    """Calls that turns of sessions make, and turns of no case."""

    calls: Pattern
    sessions: int
    """How many have it."""
    example: ScoredSession
    """The one of which a case says most, in the fewest turns."""


def new_trajectories(sessions: Sequence[ScoredSession], known: Collection[Pattern]) -> list[NewTrajectory]:
    """The most frequent one first; `known` are those of the cases as they are now."""
    having: dict[Pattern, list[ScoredSession]] = {}
    for session in sessions:
        for pattern in session.new_patterns:
            if pattern not in known:
                having.setdefault(pattern, []).append(session)
    found = [NewTrajectory(calls, len(some), min(some, key=_gaps)) for calls, some in having.items()]
    return sorted(found, key=lambda one: (-one.sessions, one.calls))


def _gaps(session: ScoredSession) -> tuple[int, int]:
    turns = session.conversation.turns if session.conversation else ()
    return sum(bool(unusable(turn)) + len(list(not_expected(turn))) for turn in turns), len(turns)


class TrajectoriesOfCases:
    """Those that cases have, unsaved ones too."""

    def __init__(self, sets: OpenSets) -> None:
        self._sets = sets
        self.known: frozenset[Pattern] = frozenset()

    async def read(self) -> None:
        self.known = await asyncio.to_thread(self._read)

    def _read(self) -> frozenset[Pattern]:
        files = [self._sets.open(one.path) for one in self._sets.listed]
        # A set with errors has no models.
        cases = [case.model() for file in files if file.eval_set is not None for case in file.cases]
        return frozenset(pattern for case in cases for pattern in expected_patterns(case))
