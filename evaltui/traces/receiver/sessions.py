"""From the spool to sessions: which conversations are complete, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evaltui.text.figures import show_size
from evaltui.traces.conversations import Conversations, RecordedConversation, conversations_in
from evaltui.traces.receiver.spool import LARGEST_SESSION, Spool

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
            problem = "" if mine else "its spans are of no agent"
            yield CompletedSession(session.id, mine, problem, conversations.warnings)
        spool.handed_on(session.id)


def _conversations(spool: Spool, traces: list[str]) -> Conversations:
    try:
        return conversations_in(spool.read(traces))
    except (ValueError, RecursionError) as error:
        # A single trace that cannot be read must not keep others from being read.
        return Conversations((), (f"cannot be read: {error}",))
