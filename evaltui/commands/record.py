"""`evaltui record`: sends messages from a file to an agent, and saves the conversation as a case."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.agents.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.commands.chat_lines import (
    ChatLines,
    host_settings,
    read_initial_session,
    secrets_to_hide,
    send_turn,
)
from evaltui.commands.exit_codes import HAD_ERRORS
from evaltui.commands.output import (
    UsageError,
    require_one_agent,
    write_stderr,
    write_stdout,
)
from evaltui.commands.target_set import add_to_set, find_set, never_passes_in, require_free
from evaltui.core.conversation.drafting import CaseDraft, TurnDraft, draft_case, without_secrets
from evaltui.core.conversation.responding import ResponseError, content_of, expected_call
from evaltui.core.conversation.waiting import waiting_calls
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.eval_set import DEFAULT_USER_ID
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import ErrorInfo
from evaltui.core.model.problems import Problem
from evaltui.documents.json_text import decode
from evaltui.project.configs import scores_outputs
from evaltui.project.folders import app_name
from evaltui.project.settings import secrets_of
from evaltui.runner.conversation import Conversation
from evaltui.runner.interrupts import run_interruptible
from evaltui.text.figures import counted
from evaltui.text.values import paragraphs, visible


@dataclass(frozen=True)
class _Recording:
    """The messages of a new case, and its eval set."""

    messages: Sequence[str]
    session: Json
    eval_id: str
    path: Path


def record(options: argparse.Namespace) -> int:
    """Records a case and adds it to its set; exit code 3 where the agent failed: nothing is written then."""
    recording = _prepare(options)
    drafted = run_interruptible(_record(options, recording))
    if drafted is None:
        return HAD_ERRORS
    add_to_set(recording.path, [drafted])
    turns = counted(len(recording.messages), "turn")
    done = f"{recording.path}: case {recording.eval_id} with {turns}"
    # The case is there, whether or not anybody reads that it is.
    with contextlib.suppress(BrokenPipeError):
        write_stdout(f"{visible(done)}\n")
    if reason := never_passes_in(recording.path, drafted):
        write_stderr(f"evaltui record: case {recording.eval_id} {reason}")
    return 0


def _prepare(options: argparse.Namespace) -> _Recording:
    """Raises UsageError or EvalSetError for what could not be recorded, before the agent is started."""
    agent_dir: Path = options.agent_dir
    require_one_agent(options)
    if not options.case:
        raise UsageError("--case: Case id is missing")
    messages = _messages(options.turns)
    path = find_set(agent_dir, options.set, in_project=not options.url)
    if path.exists():
        require_free(path, [options.case])
    session = read_initial_session(options.initial_session)
    if session:
        # ADK makes the session of a case under these names, and cannot do without.
        session["app_name"] = session["app_name"] or app_name(agent_dir)
        session["user_id"] = session["user_id"] or DEFAULT_USER_ID
    return _Recording(messages, session, options.case, path)


def _messages(turns: str) -> list[str]:
    """The blocks of a file between blank lines; `-` is standard input."""
    try:
        data = sys.stdin.buffer.read() if turns == "-" else Path(turns).read_bytes()
    except OSError as error:
        raise UsageError(f"--turns: {turns} cannot be read: {error.strerror}") from error
    text = decode(data)
    if isinstance(text, Problem):
        raise UsageError(f"--turns: {turns} {text}")
    messages = paragraphs(text)
    if not messages:
        raise UsageError(f"--turns: {turns} is empty; write user messages, separated by blank lines")
    return messages


async def _record(options: argparse.Namespace, recording: _Recording) -> CaseDraft | None:
    """Sends every message to the agent; returns the case, or None after a failure, which is shown."""
    lines = ChatLines("record", secrets_to_hide(options.agent_dir))
    conversation = Conversation(host_settings(options), lines.printed)
    turns: list[TurnDraft] = []
    try:
        state = await conversation.open(recording.session)
        lines.on_session((conversation.info or {}).get("name", ""), state)
        for message in recording.messages:
            waiting = waiting_calls([turn.events for turn in turns])
            if (call := expected_call(waiting)) is not None:
                lines.show_request(call, waiting)
            lines.show_user_message(message)
            content = content_of(message, waiting)
            turns.append(TurnDraft(await send_turn(conversation, len(turns), content, lines)))
        drafted = draft_case(
            recording.eval_id,
            turns,
            app_name=recording.session.get("app_name", ""),
            user_id=recording.session.get("user_id", ""),
            # What the agent's own code sets stays there: it is tested, and may be keys.
            state=recording.session.get("state") or {},
            outputs=scores_outputs(recording.path),
        )
        if drafted.marks:
            lines.note("the agent does not send its tool calls: the case does not check them")
        masked = without_secrets(drafted.case, secrets_of(options.agent_dir))
        return replace(drafted, case=masked)
    except AgentBrokenError as broken:
        what, error = "Cannot load agent", broken.error
    except (RequestFailedError, HostLostError) as lost:
        what, error = f"turn {len(turns) + 1} failed", lost.error
    except ResponseError as refused:
        lines.note(f"nothing recorded: turn {len(turns) + 1} responds to a waiting call: {refused}")
        return None
    except ValueError as invalid:
        what = "a case cannot hold this"
        error = ErrorInfo(type(invalid).__name__, str(invalid), kind=ErrorKind.AGENT)
    finally:
        await conversation.close()
    lines.failed(f"nothing recorded: {what}", error)
    return None
