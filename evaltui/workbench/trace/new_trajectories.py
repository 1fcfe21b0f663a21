"""Trajectories of received sessions that no case of the agent's sets has, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import EvalCase
from evaltui.runs.sessions import Pattern, ScoredSession, expected_patterns
from evaltui.traces.drafting import unusable
from evaltui.traces.missing import not_expected
from evaltui.workbench.cases.open_sets import OpenSets


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
    """Those that cases have, unsaved ones too, and some of the cases, when they were read last."""

    def __init__(self, sets: OpenSets) -> None:
        self._sets = sets
        self.known: frozenset[Pattern] = frozenset()
        self.cases: Mapping[CaseId, EvalCase | None] = {}
        """The cases that were asked for; None for one that is gone."""

    async def read(self, cases: Collection[CaseId]) -> None:
        self.known, self.cases = await asyncio.to_thread(self._read, cases)

    def _read(self, wanted: Collection[CaseId]) -> tuple[frozenset[Pattern], dict[CaseId, EvalCase | None]]:
        patterns: set[Pattern] = set()
        cases: dict[CaseId, EvalCase | None] = dict.fromkeys(wanted)
        for listed in self._sets.listed:
            file = self._sets.open(listed.path)
            # A set with errors has no models.
            for stored in file.cases if file.eval_set is not None else ():
                case, eval_case = CaseId(file.case_path, stored.eval_id), stored.model()
                patterns.update(expected_patterns(eval_case))
                if case in cases:
                    cases[case] = eval_case
        return frozenset(patterns), cases
