"""Received sessions: each is paired with its nearest case, scored, and stored as a run."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaltui.core.compare.explain import summary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, tool_calls
from evaltui.core.model.events import CALLS, parts_in
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.documents.own_folder import make_own_folder
from evaltui.project.agent_address import AgentAddress
from evaltui.project.folders import agent_folder
from evaltui.project.hosts import in_url
from evaltui.project.packages import require_extra
from evaltui.project.workspace import open_workspace
from evaltui.runner.plan import CaseDone, Noted
from evaltui.runs.execution import RunSelected, RunUpdate, run
from evaltui.runs.resuming import functions_now
from evaltui.runs.scoring import TracesToScore, messages_of
from evaltui.runs.selection import RunRequest
from evaltui.runs.sets import FileSets
from evaltui.runs.store import SESSIONS
from evaltui.text.figures import counted, show_size
from evaltui.text.values import cut, visible
from evaltui.traces.conversations import Conversations, RecordedConversation, conversations_in
from evaltui.traces.drafting import missing_content
from evaltui.traces.pairing import CaseToPair, pair
from evaltui.traces.receiver import OTLP_PORT
from evaltui.traces.receiver.intake import Counts, Intake
from evaltui.traces.receiver.spool import LARGEST_SESSION, SPOOL, Spool, SpoolError, open_spool

QUIET = 3.0
"""Seconds without a new span after which a trace whose first span has ended is complete."""
QUIET_UNROOTED = 30.0
"""Seconds as QUIET, for a trace whose first span has not come: it failed, or another program has it."""
# Traces that are asked for in one query.
_AT_ONCE = 100


@dataclass(frozen=True)
class CompletedSession:
    """A conversation to which nothing was added for a moment; it comes again when there is more of it."""

    id: str
    conversation: RecordedConversation | None
    """None where none can be made of it."""
    problem: str = ""
    """Why there is none, a sentence; "" where there is one."""
    warnings: tuple[str, ...] = ()
    """Warnings: parts that were left out, a sentence each."""


def completed_sessions(spool: Spool, now: float, *, ending: bool = False) -> Iterator[CompletedSession]:
    """The sessions that are complete at a moment, in seconds since 1970; each is done with when the next one
    is asked for. When the listener is `ending`, a trace whose first span has ended is not waited for."""
    rooted, unrooted = now + 1 if ending else now - QUIET, now - QUIET_UNROOTED
    # Of a session that is handed on before all of its traces were looked at, turns would be missing.
    while traces := spool.quiet_traces(rooted, unrooted, _AT_ONCE):
        spool.settle([(trace, size, _sessions_in(spool, trace, size)) for trace, size in traces])
    # Those of a listener that ended before it was done with them, too.
    yield from _waiting(spool)


def _sessions_in(spool: Spool, trace: str, size: int) -> list[str]:
    if size > LARGEST_SESSION:
        return [trace]
    return [conversation.id for conversation in _conversations(spool, [trace]).conversations]


def _waiting(spool: Spool) -> Iterator[CompletedSession]:
    for session in spool.waiting():
        if session.bytes > LARGEST_SESSION:
            size, most = show_size(session.bytes), show_size(LARGEST_SESSION)
            yield CompletedSession(session.id, None, f"{size} of spans; sessions of up to {most} are scored")
        elif not session.is_whole:
            yield CompletedSession(session.id, None, "its first turns are no longer stored")
        else:
            conversations = _conversations(spool, spool.traces_of(session.id))
            mine = next(
                (
                    conversation
                    for conversation in conversations.conversations
                    if conversation.id == session.id
                ),
                None,
            )
            others = [visible(conversation.id) for conversation in conversations.conversations]
            problem = f"its spans are of session {others[0]}" if others else "its spans are of no agent"
            yield CompletedSession(session.id, mine, "" if mine else problem, conversations.warnings)
            if others and not mine:
                spool.leave(session.id)
        spool.handed_on(session.id)


def _conversations(spool: Spool, traces: list[str]) -> Conversations:
    try:
        return conversations_in(spool.read(traces))
    except (ValueError, RecursionError) as error:
        # A single trace that cannot be read must not keep others from being read.
        return Conversations((), (f"cannot be read: {error}",))


Pattern = tuple[str, ...]
"""The tool names that a turn calls, in order."""

_MAX_MESSAGE = 50


@dataclass(frozen=True)
class ScoredSession:
    """A session scored against its nearest case."""

    id: str
    messages: tuple[str, ...]
    """The user's messages, by turn."""
    turns: int
    conversation: RecordedConversation | None = None
    """The conversation; None where its spans do not make up one."""
    case: CaseId | None = None
    """The case that scored it; None without a near case."""
    is_paired: bool = False
    """Whether the session belongs to the case; otherwise they are only similar."""
    expected: EvalCase | None = None
    """The case that scored it; None without a result."""
    config: EvalConfig | None = None
    """The config that scored it; None without a result."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """The fingerprints of its functions that scored the session, by their paths."""
    result: CaseResult | None = None
    """The result; None without a case, and where it could not be scored."""
    problem: str = ""
    """Why it has no case or no result, as a sentence."""
    log: Path | None = None
    """Its run log; None where it was not scored or not stored."""
    new_patterns: tuple[Pattern, ...] = ()
    """Call patterns of its turns that no case has."""
    remarks: tuple[str, ...] = ()
    """Remarks on the session, each a sentence."""

    @property
    def status(self) -> Status:
        """The status of its result; NOT_EVALUATED without one."""
        return self.result.status if self.result is not None else Status.NOT_EVALUATED

    @property
    def case_in_words(self) -> str:
        """Its case in words: `where_is_order`, `like where_is_order` or `no case`."""
        if self.case is None:
            return "no case"
        return f"{'' if self.is_paired else 'like '}{visible(self.case.eval_id)}"

    @property
    def why(self) -> str:
        """The reason for its verdict, in a line; the user's first message where there is no reason."""
        message = next((f'"{visible(cut(text, _MAX_MESSAGE))}"' for text in self.messages if text), "")
        if self.result is None or (self.status is Status.NOT_EVALUATED and not self.is_paired):
            # The turns of a case that it is only like are none that are missing.
            turns = counted(self.turns, "turn") if self.turns else ""
            return "  ".join(filter(None, (turns, message, visible(self.problem))))
        reason = summary(self.result)
        if self.status is not Status.PASSED:
            return reason
        passed = sum(metric.status is Status.PASSED for metric in self.result.metrics)
        return "  ".join(filter(None, (f"{counted(passed, 'metric')} passed", reason, message)))


def pattern_in_words(pattern: Pattern) -> str:
    """A pattern as text: `find_order → refund`."""
    return " → ".join(visible(name) for name in pattern)


@dataclass(frozen=True)
class _Cases:
    """The cases of the agent's sets, as their files are now."""

    sets: FileSets
    files: dict[str, Path] = field(default_factory=dict)
    """Files of the sets, by path of `CaseId`."""
    to_pair: list[CaseToPair] = field(default_factory=list)
    cases: dict[CaseId, EvalCase] = field(default_factory=dict)
    patterns: set[Pattern] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    """Sentences about unreadable sets."""


async def score_session(
    session: CompletedSession, request: RunRequest, config: Path | None = None
) -> ScoredSession:
    """Pairs a session with a case of the agent's sets, scores it and stores the result.

    `request` has the agent and the settings; `config` is for all sets, None where each has its own.
    """
    if session.conversation is None:
        return ScoredSession(session.id, (), 0, problem=session.problem, remarks=session.warnings)
    conversation = session.conversation
    try:
        cases = await asyncio.to_thread(_cases_of, request, config)
    except EvalSetError as error:
        return ScoredSession(session.id, (), 0, problem=str(error), remarks=session.warnings)
    pairing = pair(cases.to_pair, [conversation])
    case = next(iter(pairing.pairs), None)
    unpaired = next(iter(pairing.unpaired), None)
    session_result = ScoredSession(
        session.id,
        tuple(turn.user for turn in conversation.turns),
        len(conversation.turns),
        conversation,
        case or (unpaired.nearest if unpaired else None),
        is_paired=case is not None,
        problem=(unpaired.reason or "no case begins like it") if unpaired else "",
        new_patterns=tuple(
            dict.fromkeys(pattern for pattern in patterns_of(conversation) if pattern not in cases.patterns)
        ),
        remarks=(*session.warnings, *cases.problems, *_remarks(conversation)),
    )
    if session_result.case is None or (unpaired and unpaired.reason):
        return session_result
    asking = replace(
        request,
        cases={cases.files[session_result.case.path]: (session_result.case.eval_id,)},
        traces=TracesToScore((conversation,), ("evaltui listen",)),
        session=session.id,
    )
    eval_case, used = (
        cases.cases[session_result.case],
        cases.sets.open(cases.files[session_result.case.path]).config,
    )
    functions = await asyncio.to_thread(functions_of_agent, used, request.agent)
    scored_by = replace(session_result, expected=eval_case, config=used, functions=functions)
    return await _score(scored_by, asking, cases.sets)


def functions_of_agent(config: EvalConfig, agent: AgentAddress) -> Mapping[str, str]:
    """The present fingerprints of the functions that a config scores by, as `functions_now` has them."""
    return functions_now([config], agent.folder, agent.interpreter.executable)


async def _score(session: ScoredSession, request: RunRequest, sets: FileSets) -> ScoredSession:
    results: list[CaseResult] = []
    notes: list[str] = []
    cases = 0

    def on_update(update: RunUpdate) -> None:
        nonlocal cases
        match update:
            case RunSelected(selected):
                cases = selected.plan.case_count
            case CaseDone(result):
                results.append(result)
            case Noted(text) if session.is_paired:
                notes.append(text)

    before = _cancellations()
    try:
        executed = await run(request, sets, on_update, None)
    except (EvalSetError, SelectionError, ValueError) as error:
        return replace(session, problem=str(error))
    if cases and (executed.status is None or _cancellations() > before):
        # A run that is cancelled ends as if nothing had happened. This session will come again.
        if executed.log is not None:
            executed.log.unlink(missing_ok=True)
        raise asyncio.CancelledError
    if not results:
        return replace(session, problem=session.problem or "not scored")
    return replace(session, result=results[0], log=executed.log, remarks=(*session.remarks, *notes))


def _cancellations() -> int:
    """Number of pending cancellations of the current task."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0


def _cases_of(request: RunRequest, config: Path | None) -> _Cases:
    """Reads the current cases, in a thread. Raises EvalSetError for an unreadable config."""
    read = _Cases(FileSets(request.agent_dir, config))
    for eval_set in open_workspace(request.agent_dir).sets:
        try:
            plan = read.sets.open(eval_set.path)
        except EvalSetError as error:
            read.problems.append(f"{eval_set.path} left out: {error}".splitlines()[0])
            continue
        read.files[plan.case_path] = eval_set.path
        for number, case_id in enumerate(plan.case_ids):
            read.cases[case_id] = case = plan.cases[number]
            read.to_pair.append(CaseToPair(case_id, plan.eval_set_id, messages_of(case)))
            read.patterns.update(expected_patterns(case))
    return read


def expected_patterns(case: EvalCase) -> Iterator[Pattern]:
    """The call pattern of each turn of a case."""
    for turn in case.conversation or ():
        yield tuple(call.name or "" for call in tool_calls(turn.intermediate_data))


def patterns_of(conversation: RecordedConversation) -> Iterator[Pattern]:
    """The call patterns of turns with calls; turns that failed, and turns with unknown calls, are skipped."""
    for turn in conversation.turns:
        if CALLS in turn.untold or turn.error is not None:
            continue
        calls = [event for event in turn.events if event.kind == "tool_call" and not event.data.get("nested")]
        names = tuple(
            part["function_call"].get("name") or ""
            for event in calls
            for part in parts_in(event.content)
            if "function_call" in part
        )
        if names:
            yield names


def _remarks(conversation: RecordedConversation) -> Iterator[str]:
    for what, remedy in missing_content(conversation.turns):
        yield f"not in the trace: {what}" + (f"; {remedy}" if remedy else "")
    yield from dict.fromkeys(remark for turn in conversation.turns for remark in turn.remarks)


# Seconds between two looks at what is complete.
_POLL_SECONDS = 0.5
# Seconds after which what was received, handed on and not added to is deleted; the results stay.
_MAX_AGE = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Address:
    """The address of a listener."""

    host: str = "127.0.0.1"
    port: int = OTLP_PORT
    """The port; 0 for any free port."""
    token: str = ""
    """The required token; "" for none, which only a loopback address may have."""


class Listener:
    """A listener for spans; `open_listener` creates it."""

    def __init__(
        self, spool: Spool, request: RunRequest, counts: Counts, url: str, config: Path | None
    ) -> None:
        self._spool = spool
        self._request = request
        self._config = config
        self.counts = counts
        self.url = url
        """The endpoint for exporters."""

    async def sessions(self) -> AsyncIterator[ScoredSession]:
        """Yields every session when it is complete, and again when it continues; never ends."""
        while True:
            async for session in self._complete(ending=False):
                yield session
            await asyncio.sleep(_POLL_SECONDS)

    async def last_sessions(self) -> AsyncIterator[ScoredSession]:
        """Yields the sessions whose first span has ended, without waiting for later spans."""
        async for session in self._complete(ending=True):
            yield session

    async def _complete(self, *, ending: bool) -> AsyncIterator[ScoredSession]:
        waiting = completed_sessions(self._spool, time.time(), ending=ending)
        while (session := await asyncio.to_thread(_next_session, waiting)) is not None:
            yield await score_session(session, self._request, self._config)


def _next_session(sessions: Iterator[CompletedSession]) -> CompletedSession | None:
    try:
        return next(sessions, None)
    except sqlite3.Error as error:
        raise SpoolError(f"{SPOOL} of {SESSIONS}: {error}") from error


@asynccontextmanager
async def open_listener(
    request: RunRequest, address: Address, config: Path | None = None
) -> AsyncIterator[Listener]:
    """Receives spans during its block.

    `request` has the agent and the scoring settings; `config` is for all sets, None where each has its own.
    Raises OSError for a used port or a folder that is not
    writable, SpoolInUseError, SpoolError and MissingExtraError.
    """
    require_extra("traces")
    from evaltui.traces.receiver.http import Access, serving

    folder = make_own_folder(agent_folder(request.agent_dir), SESSIONS)
    with open_spool(folder) as spool:
        await asyncio.to_thread(spool.forget, time.time() - _MAX_AGE)
        access = Access(address.host, address.token)
        async with Intake(spool) as intake, serving(intake, access, address.port) as port:
            url = f"http://{in_url(address.host)}:{port}"
            yield Listener(spool, request, intake.counts, url, config)
