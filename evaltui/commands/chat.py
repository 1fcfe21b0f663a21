"""`evaltui chat`: a conversation with an agent, line by line, in any terminal and through a pipe."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from evaltui.agents.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.commands.chat_lines import (
    ChatLines,
    host_settings,
    read_initial_session,
    secrets_to_hide,
    send_turn,
)
from evaltui.commands.exit_codes import HAD_ERRORS
from evaltui.commands.output import require_one_agent
from evaltui.core.conversation.replay import past_of_turns
from evaltui.core.conversation.responding import ResponseError, content_of, expected_call
from evaltui.core.conversation.waiting import WaitingCall, waiting_calls
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.events import Event, Json
from evaltui.core.model.outcome import ErrorInfo
from evaltui.runner.conversation import Conversation
from evaltui.runner.interrupts import Interrupts
from evaltui.runner.starting import HostSettings

Result = TypeVar("Result")

_HOW = "ctrl+d ends, ctrl+c cancels the turn, \\ at the end continues a line"


def chat(options: argparse.Namespace) -> int:
    """Talk until the end of the input; 3 where a turn failed."""
    require_one_agent(options)
    session = read_initial_session(options.initial_session)
    settings = host_settings(options)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace", newline=None)
    with Interrupts() as interrupts, asyncio.Runner() as runner:
        return _Chat(runner, interrupts, settings, session).run()


class _Chat:
    """Reads and talks by turns. The loop runs only while the agent has its turn, so that reading a line is
    left to the terminal, with what it offers of editing and history."""

    def __init__(
        self, runner: asyncio.Runner, interrupts: Interrupts, settings: HostSettings, session: Json
    ) -> None:
        self._runner = runner
        self._interrupts = interrupts
        self._session = session
        self._lines = ChatLines("chat", secrets_to_hide(settings.agent.folder))
        self._conversation = Conversation(settings, self._lines.printed)
        self._interactive = sys.stdin.isatty()
        self._finished_turns: list[list[Event]] = []
        self._turn_number = 0
        self._is_open = False
        self._had_errors = False

    def run(self) -> int:
        try:
            if not self._open():
                return HAD_ERRORS
            self._greet()
            while (typed := self._read()) is not None:
                if typed.strip() and not self._send(typed):
                    break
                if self._lines.unread:
                    raise BrokenPipeError
            if (call := expected_call(self._waiting)) is not None:
                self._lines.note(f"{call.name} still waits for a response")
        finally:
            self._runner.run(self._conversation.close())
        return HAD_ERRORS if self._had_errors else 0

    def _greet(self) -> None:
        info = self._conversation.info or {}
        for note in info.get("notes", ()):
            self._lines.note(note)
        if self._interactive:
            self._lines.note(f"this is {info.get('name')}; {_HOW}")

    def _open(self) -> bool:
        """Starts a session with the finished turns; returns whether it is open."""
        try:
            past = past_of_turns(self._finished_turns)
            state = self._until_interrupted(self._conversation.open(self._session, past))
        except AgentBrokenError as broken:
            self._failed("Cannot load agent", broken.error)
        except (RequestFailedError, HostLostError) as failed:
            self._failed("no session", failed.error)
        except ValueError as invalid:
            error = ErrorInfo(type(invalid).__name__, str(invalid), kind=ErrorKind.AGENT)
            self._failed("cannot continue from the earlier turns", error)
        else:
            self._lines.on_session((self._conversation.info or {}).get("name", ""), state)
            self._is_open = True
        return self._is_open

    @property
    def _waiting(self) -> list[WaitingCall]:
        return waiting_calls(self._finished_turns)

    def _send(self, typed: str) -> bool:
        """Sends a message, or the response to a waiting call; returns whether to go on."""
        try:
            content = content_of(typed, self._waiting)
        except ResponseError as error:
            self._lines.note(str(error))
            self._had_errors = self._had_errors or not self._interactive
            # Through a pipe the next line was written for what comes after this response.
            return self._interactive
        self._turn(content)
        waiting = self._waiting
        if (call := expected_call(waiting)) is not None:
            self._lines.show_request(call, waiting)
        return True

    def _turn(self, content: Json) -> None:
        self._turn_number += 1
        if not (self._is_open or self._open()):
            return
        # What a turn that did not end leaves in a session is not known: the next one gets a new session.
        self._is_open = False
        try:
            events = self._until_interrupted(
                send_turn(self._conversation, len(self._finished_turns), content, self._lines)
            )
        except (RequestFailedError, HostLostError) as failed:
            self._failed(f"turn {self._turn_number} failed", failed.error)
        except KeyboardInterrupt:
            if not self._interactive or self._interrupts.received is not signal.SIGINT:
                raise
            self._interrupts.listen_again()
            self._lines.echoed()
            self._lines.note(f"turn {self._turn_number} cancelled and removed")
        else:
            self._finished_turns.append(events)
            self._is_open = True

    def _until_interrupted(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Raises KeyboardInterrupt once it is cancelled."""
        try:
            return self._runner.run(self._interrupts.run_cancellable(work))
        except asyncio.CancelledError:
            if self._interrupts.received is None:
                raise
            raise KeyboardInterrupt from None

    def _failed(self, what: str, error: ErrorInfo) -> None:
        self._had_errors = True
        self._lines.failed(what, error)

    def _read(self) -> str | None:
        """The next message or response; None at the end."""
        if not self._interactive:
            return _read_message("", "")
        # Line editing and history, where Python has been built with it; a pasted text is one message.
        with contextlib.suppress(ImportError):
            import readline

            readline.parse_and_bind("set enable-bracketed-paste on")
        shown = sys.stdout.isatty()
        prompt = "> " if expected_call(self._waiting) is None else "? "
        try:
            message = _read_message(prompt if shown else "", ". " if shown else "")
        except KeyboardInterrupt:
            if self._interrupts.received is not signal.SIGINT:
                raise
            message = None
        if message is None:
            with contextlib.suppress(OSError):
                print(file=sys.stderr)
        return message


def _read_message(prompt: str, further: str) -> str | None:
    lines: list[str] = []
    try:
        lines.append(input(prompt))
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(input(further))
    except (EOFError, OSError):
        # Linux says EIO where the terminal is gone.
        return "\n".join(lines) if lines else None
    return "\n".join(lines)
