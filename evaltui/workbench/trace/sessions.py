"""Sessions that agents send to the workbench while it is open: receiving, listing, and making cases of them.

Importing this loads the models: the workbench imports it when a user starts to receive sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from evaltui.core.metrics.normal_config import score_alike
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.project.packages import MissingExtraError
from evaltui.runs.selection import RunRequest
from evaltui.runs.sessions import (
    Address,
    Pattern,
    ScoredSession,
    expected_patterns,
    functions_of_agent,
    open_listener,
)
from evaltui.traces.drafting import not_expected, unusable
from evaltui.traces.receiver import OTLP_PORT
from evaltui.traces.receiver.spool import SpoolError, SpoolInUseError
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.chat import imported
from evaltui.workbench.chat.conversation import Transcript
from evaltui.workbench.messages import Messages, SessionsReceived
from evaltui.workbench.state import READ_ONLY

CaseNow = tuple[EvalCase, EvalConfig | None, Mapping[str, str]] | None
"""A case with its config, which is None where it has errors, and the fingerprints of the functions of that;
None for a deleted case."""


@dataclass(frozen=True)
class NewTrajectory:
    """A sequence of calls in turns of sessions that no case expects."""

    calls: Pattern
    sessions: int
    """The number of sessions with it."""
    example: ScoredSession
    """The session that a case can cover best, in the fewest turns."""


def new_trajectories(
    sessions: Sequence[ScoredSession], known_patterns: Collection[Pattern]
) -> list[NewTrajectory]:
    """The new trajectories, the most frequent first; `known_patterns` are those of the current cases."""
    having: dict[Pattern, list[ScoredSession]] = {}
    for session in sessions:
        for pattern in session.new_patterns:
            if pattern not in known_patterns:
                having.setdefault(pattern, []).append(session)
    trajectories = [NewTrajectory(calls, len(some), min(some, key=_gaps)) for calls, some in having.items()]
    return sorted(trajectories, key=lambda trajectory: (-trajectory.sessions, trajectory.calls))


def _gaps(session: ScoredSession) -> tuple[int, int]:
    turns = session.conversation.turns if session.conversation else ()
    return sum(bool(unusable(turn)) + len(list(not_expected(turn))) for turn in turns), len(turns)


# Of those that came first, the run logs stay.
_MAX_SESSIONS = 500


class ReceivedSessions:
    """The sessions received since the workbench was opened."""

    def __init__(self, agent: AgentState, sets: OpenSets, messages: Messages) -> None:
        self._agent = agent
        self._sets = sets
        # As last read: the trajectories that cases expect, unsaved ones too, and the cases of the sessions.
        self._patterns: frozenset[Pattern] = frozenset()
        self._cases: Mapping[CaseId, CaseNow] = {}
        # Number of readings that were started: of several at once, the last one has the newest cases.
        self._readings = 0
        self._messages = messages
        self._by_id: dict[str, ScoredSession] = {}
        self._listening: asyncio.Task[None] | None = None
        self.new_trajectories: list[NewTrajectory] = []
        """The trajectories of sessions that no case expects, compared with the cases as last read."""
        self.url = ""
        """The address that agents send to; "" while not listening."""
        self.problem = ""
        """Why the workbench is not listening, as a sentence; "" for no problem."""

    @property
    def sessions(self) -> list[ScoredSession]:
        """The sessions, the last completed one first."""
        return list(reversed(self._by_id.values()))

    async def read_cases(self) -> None:
        """Reads the trajectories of cases again, and the cases that sessions were scored by."""
        case_ids = {session.case for session in self._by_id.values() if session.case is not None}
        self._readings += 1
        number = self._readings
        patterns, cases = await asyncio.to_thread(self._read, case_ids)
        if number == self._readings:
            self._patterns, self._cases = patterns, cases
            self._received()

    def _read(self, case_ids: Collection[CaseId]) -> tuple[frozenset[Pattern], dict[CaseId, CaseNow]]:
        patterns: set[Pattern] = set()
        cases: dict[CaseId, CaseNow] = dict.fromkeys(case_ids)
        for listed in self._sets.listed:
            file = self._sets.open(listed.path)
            # A set with errors has no models.
            for stored in file.cases if file.eval_set is not None else ():
                case, eval_case = CaseId(file.case_path, stored.eval_id), stored.model()
                patterns.update(expected_patterns(eval_case))
                if case in cases:
                    config = file.config.config if file.config else None
                    functions = functions_of_agent(config, self._agent.address) if config else {}
                    cases[case] = eval_case, config, functions
        return frozenset(patterns), cases

    def outdated_by(self, session: ScoredSession) -> str:
        """`case` or `config`, where the session was scored by another version, or it is deleted or broken
        now; else ""."""
        if session.case is None or session.case not in self._cases:
            return ""
        now = self._cases[session.case]
        if now is None or now[0] != session.expected:
            return "case"
        _, config, functions = now
        if session.config is None:
            return ""
        is_same = config and score_alike(config, session.config) and functions == session.functions
        return "" if is_same else "config"

    def _received(self) -> None:
        self.new_trajectories = new_trajectories(self.sessions, self._patterns)
        self._messages.publish(SessionsReceived())

    def new_patterns(self, session: ScoredSession) -> tuple[Pattern, ...]:
        """The call patterns of its turns that no case expects, compared with the cases as last read."""
        return tuple(pattern for pattern in session.new_patterns if pattern not in self._patterns)

    @property
    def is_on(self) -> bool:
        return self._listening is not None

    def start(self, port: int = OTLP_PORT) -> None:
        """Starts to listen on this machine; 0 takes a free port."""
        if self._agent.read_only:
            self.problem = READ_ONLY
        elif self._listening is None:
            self.problem = ""
            self._listening = asyncio.create_task(self._listen(port))

    async def stop(self) -> None:
        """Stops to listen; incomplete sessions are scored the next time."""
        task, self._listening = self._listening, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.url = ""
        self._messages.publish(SessionsReceived())

    async def _listen(self, port: int) -> None:
        request = RunRequest(self._agent.address, settings=self._agent.settings)
        try:
            async with open_listener(request, Address(port=port), self._sets.config) as listener:
                self.url = listener.url
                self._messages.publish(SessionsReceived())
                async for session in listener.sessions():
                    self._by_id.pop(session.id, None)
                    self._by_id[session.id] = session
                    while len(self._by_id) > _MAX_SESSIONS:
                        del self._by_id[next(iter(self._by_id))]
                    if session.case is None or session.case in self._cases:
                        self._received()
                    else:
                        # The listener has scored it by the files, without unsaved edits.
                        await self.read_cases()
        except (SpoolInUseError, SpoolError, MissingExtraError) as error:
            self.problem = str(error)
        except OSError as error:
            self.problem = f"Port {port}: {error.strerror or error}"
        finally:
            self.url = ""
        self._listening = None
        self._messages.publish(SessionsReceived())
        self._messages.say(f"Not listening: {self.problem}")


def transcript_of(session: ScoredSession) -> Transcript:
    """The conversation as a chat transcript. Raises ValueError where there is none."""
    if session.conversation is None:
        raise ValueError(session.problem)
    return imported.transcript_of(session.conversation)[0]
