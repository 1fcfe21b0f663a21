"""What `evaltui chat` and `evaltui record` share."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from evaltui.commands.chat_lines import ChatLines
from evaltui.commands.usage import UsageError
from evaltui.core.model.events import Event, Json
from evaltui.core.model.old_formats import session_input
from evaltui.core.model.problems import EvalSetError, Problem
from evaltui.core.secrets import Secrets
from evaltui.files.json_text import locate, parse, read_text
from evaltui.files.settings import secrets_of
from evaltui.runner.parent.conversation import Conversation
from evaltui.runner.parent.pool import HostSettings
from evaltui.runner.parent.supervisor import IMPORT_TIMEOUT

HAD_ERRORS = 3


def host_settings(options: argparse.Namespace) -> HostSettings:
    return HostSettings(options.agent_dir, options.agent, options.timeout, IMPORT_TIMEOUT, time.monotonic())


def secrets_to_hide(agent_dir: Path) -> Secrets | None:
    """What is masked in what is printed: nothing where only a person at a terminal sees it."""
    return None if sys.stdout.isatty() and sys.stderr.isatty() else secrets_of(agent_dir)


def read_initial_session(path: Path | None) -> Json:
    """`{"app_name", "user_id", "state"}` of a file; empty where no file is given or nothing is in it.

    Raises UsageError for a file that cannot be read, EvalSetError for one that holds something else.
    """
    if path is None:
        return {}
    try:
        text = read_text(path)
    except OSError as error:
        raise UsageError(f"--initial-session: {path} cannot be read: {error.strerror}") from error
    data = parse(text) if isinstance(text, str) else text
    if isinstance(text, Problem) or isinstance(data, Problem):
        raise EvalSetError(locate([data], "", str(path)))
    session, problems = session_input(data)
    if problems:
        raise EvalSetError(locate(problems, text, str(path)))
    return session or {}


async def say(conversation: Conversation, turn: int, content: Json, lines: ChatLines) -> list[Event]:
    """One turn, shown while it happens; its events. Raises what `Conversation.say` does."""
    events: list[Event] = []

    def happened(event: Event) -> None:
        events.append(event)
        lines.take(event)

    await conversation.say(turn, content, happened)
    lines.end_turn()
    return events
