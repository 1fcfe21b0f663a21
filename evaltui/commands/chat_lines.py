"""A conversation line by line, in any terminal and through a pipe: a line once written stays.

What is said and done goes to stdout as it comes, errors and what the agent prints go to stderr.
"""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from evaltui.commands.output import (
    agent_to_run,
    settings_of,
    width,
    write_lines,
    write_stderr,
    write_stdout,
)
from evaltui.core.conversation.responding import request_of
from evaltui.core.conversation.waiting import REQUESTS, WaitingCall
from evaltui.core.model.events import Event, Json, output_text, parts_in, spoken_texts
from evaltui.core.model.outcome import ErrorInfo
from evaltui.core.model.problems import EvalSetError, errors_in
from evaltui.core.secrets import Secrets
from evaltui.project.eval_sets import read_session
from evaltui.project.settings import secrets_of
from evaltui.runner.conversation import Conversation
from evaltui.runner.starting import HostSettings
from evaltui.text.figures import show_size
from evaltui.text.lines import Line, cut
from evaltui.text.values import (
    show_change,
    show_value,
    visible,
    visible_block,
    visible_lines,
    without_commands,
)

_MAX_RESULT = 100
_MAX_PAYLOAD = 400


class ChatLines:
    """Writes a conversation, event by event. `command` is the one in error messages.

    `unread` turns true when nobody reads stdout any more; nothing raises for that. `secrets` are masked; None
    where all is shown.
    """

    def __init__(self, command: str, secrets: Secrets | None = None) -> None:
        self.unread = False
        self._secrets = secrets
        self._command = command
        self._agent = ""
        self._state: Json = {}
        self._in_line = False
        self._streamed = ""
        # The last word of what streams in, until it is whole, and whose it is.
        self._word = ""
        self._speaker: Event | None = None
        self._held_back: list[str] = []

    def on_session(self, agent: str, state: Json | None) -> None:
        """A session is open: events by another agent than this one are shown with its name. `state` is None
        where it is unknown."""
        self._agent = agent
        self._state = dict(state or {})
        self._streamed = ""

    def on_event(self, event: Event) -> None:
        # Texts are masked as they are written: some of them come in pieces.
        if self._secrets is not None and event.kind != "text":
            event = self._secrets.masked(event)
        self._guarded(self._show, event)

    def _plain(self, text: str) -> str:
        return text if self._secrets is None else self._secrets.mask_text(text)

    def show_user_message(self, message: str) -> None:
        """Shows the messages of a conversation that are not typed."""
        first, *more = visible_lines(self._plain(message))
        self._guarded(
            write_lines,
            [[("> ", "muted"), (first, "bold")], *([("  ", ""), (line, "bold")] for line in more)],
        )

    def show_request(self, call: WaitingCall, waiting: Sequence[WaitingCall]) -> None:
        """Writes the question of the first waiting call."""
        self._guarded(write_lines, list(_request_lines(call, len(waiting))))

    def printed(self, source: str, line: str) -> None:
        """A line on the agent's stdout or stderr; a text that streams in is not broken for it."""
        self._held_back.append(f"| {visible(self._plain(line))}")
        if not self._in_line or self.unread:
            self._show_held_back()

    def note(self, text: str) -> None:
        self._show_on_stderr([f"evaltui {self._command}: {visible(self._plain(text))}"])

    def failed(self, what: str, error: ErrorInfo) -> None:
        """`what` is the beginning of a sentence, such as `turn 2 failed`; the traceback follows."""
        error = error if self._secrets is None else self._secrets.masked(error)
        head, *below = visible_lines(str(error))
        # Without a frame of the user's own it is the message once more.
        if error.traceback and not error.traceback.startswith(error.type):
            below = visible_lines(error.traceback)
        self._show_on_stderr([f"evaltui {self._command}: {what}: {head}", *(f"  {line}" for line in below)])

    def echoed(self) -> None:
        """The terminal has shown a key, such as `^C`, where the next line would begin."""
        self._in_line = True

    def end_turn(self) -> None:
        self._streamed = ""
        self._guarded(self._end_line)

    def _guarded(self, write: Callable[..., None], *what: object) -> None:
        # An exception in what listens to events would end the channel to the agent.
        if self.unread:
            return
        try:
            write(*what)
        except OSError:
            self.unread = True

    def _show(self, event: Event) -> None:
        match event.kind:
            case "text":
                self._show_text(event)
            case "tool_call" | "tool_result":
                self._rows(_tool_rows(event), event)
            case "transfer":
                self._rows([[("↳ ", "muted"), (f"transfer to {visible(event.data['to'])}", "")]], event)
            case "output":
                self._rows(self._output_rows(event), event)
            case "state":
                self._rows(self._state_rows(event), event)
            case "error":
                if event.data.get("text_is_void"):
                    # The answer begins again from its start.
                    self._end_line()
                    self._streamed = ""
                self._show_on_stderr([f"! {line}" for line in visible_lines(_error_text(event.data))])

    def _show_text(self, event: Event) -> None:
        parts = parts_in(event.content)
        thoughts = [part["text"] for part in parts if part.get("text") and part.get("thought")]
        texts = spoken_texts([event.content])
        nested = event.data.get("nested")
        if event.data.get("partial"):
            if not nested:
                self._stream("".join(texts), event)
            return
        self._rows(
            ([("thought  ", "muted"), (visible(self._plain(text)), "muted")] for text in thoughts), event
        )
        if nested:
            self._rows(([(visible(self._plain(text)), "")] for text in texts), event)
        else:
            self._show_whole(texts, event)
        self._rows(([(chip, "")] for part in parts if (chip := _file(part))), event)

    def _stream(self, piece: str, event: Event) -> None:
        if not piece:
            return
        self._streamed += piece
        self._speaker = event
        if self._secrets is None:
            self._write(piece, event)
            return
        # A key may come in two pieces.
        whole = self._word + piece
        end = max(whole.rfind(space) for space in " \n\t") + 1
        end = min(end, len(whole) - self._secrets.open_tail(whole))
        self._word = whole[end:]
        if end:
            self._write(whole[:end], event)

    def _end_word(self) -> None:
        word, self._word = self._word, ""
        if word and self._speaker is not None:
            self._write(word, self._speaker)

    def _show_whole(self, texts: list[str], event: Event) -> None:
        """Writes a text as a whole; a part of it may have been streamed already."""
        whole = "".join(texts)
        if self._streamed.startswith(whole):
            self._streamed = self._streamed[len(whole) :]
            self._end_word()
            return
        if whole.startswith(self._streamed) and self._streamed:
            texts = [self._word + whole[len(self._streamed) :]]
            self._word = ""
        else:
            self._end_line()
        self._streamed = ""
        self._write("\n".join(texts), event)
        self._end_line()

    def _write(self, text: str, event: Event) -> None:
        who = "" if self._in_line else self._who(event)
        shown = without_commands(who + visible_block(self._plain(text)))
        write_stdout(shown)
        self._in_line = not shown.endswith("\n")

    def _end_line(self) -> None:
        self._end_word()
        if self._in_line:
            self._in_line = False
            write_stdout("\n")
        self._show_held_back()

    def _show_held_back(self) -> None:
        held, self._held_back = self._held_back, []
        if held:
            write_stderr(*held)

    def _rows(self, rows: Iterable[Line], event: Event) -> None:
        indent = "    " if event.data.get("nested") else "  "
        for row in rows:
            self._end_line()
            line = [(f"{indent}{self._who(event)}", "muted"), *row]
            write_lines([cut(line, width()) if sys.stdout.isatty() else line])

    def _who(self, event: Event) -> str:
        return "" if event.agent in ("", self._agent) else f"{visible(event.agent)}: "

    def _output_rows(self, event: Event) -> Iterator[Line]:
        node = str(event.data.get("node") or "")
        first, *more = visible_lines(output_text(event.data["output"]))
        yield [("output  ", "muted"), (f"{visible(node)}  " if node else "", "bold"), (first, "")]
        yield from ([("  ", ""), (line, "")] for line in more)

    def _state_rows(self, event: Event) -> Iterator[Line]:
        for key, value in event.data["delta"].items():
            before, after = show_change(self._state.get(key), value)
            change = f"  {before} → {after}" if key in self._state else f" = {after}"
            yield [("state  ", "muted"), (f"{visible(key)}{change}", "")]
            self._state[key] = value

    def _show_on_stderr(self, lines: Iterable[str]) -> None:
        self._guarded(self._end_line)
        write_stderr(*lines)


def _tool_rows(event: Event) -> Iterator[Line]:
    for part in parts_in(event.content):
        if call := part.get("function_call"):
            if call.get("name") in REQUESTS and not event.data.get("nested"):
                # It is asked at the end of the turn.
                continue
            arguments: Json = call.get("args") or {}
            args = ", ".join(f"{visible(name)} {show_value(value)}" for name, value in arguments.items())
            yield [
                ("→ ", "muted"),
                (visible(str(call.get("name"))), "bold"),
                (f"  {args}" if args else "", ""),
            ]
        elif result := part.get("function_response"):
            response = show_value(result.get("response"), _MAX_RESULT)
            yield [("← ", "muted"), (f"{visible(str(result.get('name')))}  {response}", "muted")]


def _request_lines(call: WaitingCall, count: int) -> Iterator[Line]:
    request = request_of(call)
    first, *more = visible_lines(request.message)
    yield [("? ", "muted"), (first, "bold")]
    yield from ([("  ", ""), (line, "bold")] for line in more)
    if request.payload is not None:
        yield [("  payload  ", "muted"), (show_value(request.payload, _MAX_PAYLOAD), "")]
    others = "" if count == 1 else f"; {count - 1} more to respond to"
    yield [("  takes  ", "muted"), (f"{visible(request.accepts)}{others}", "muted")]


def _file(part: Json) -> str:
    """`[image/png 34 KB]`; "" for a part that is no file."""
    if blob := part.get("inline_data"):
        size = len(base64.urlsafe_b64decode(blob.get("data") or ""))
        return f"[{visible(blob.get('mime_type') or 'data')} {show_size(size)}]"
    if file := part.get("file_data"):
        return f"[{visible(file.get('mime_type') or 'file')} at {visible(file.get('file_uri') or '?')}]"
    return ""


def host_settings(options: argparse.Namespace) -> HostSettings:
    """The settings of the host. Raises UsageError for a wrong setting and for a missing Python."""
    timeout = settings_of(options).timeout
    return HostSettings(agent_to_run(options), timeout)


def secrets_to_hide(agent_dir: Path) -> Secrets | None:
    """The secrets to mask in the output; None where both streams are terminals."""
    return None if sys.stdout.isatty() and sys.stderr.isatty() else secrets_of(agent_dir)


def read_initial_session(path: Path | None) -> Json:
    """`{"app_name", "user_id", "state"}` of a file; empty where no file is given or nothing is in it.

    Raises EvalSetError for a file that cannot be read or holds something else.
    """
    session, problems = read_session(path)
    if errors := errors_in(problems):
        raise EvalSetError(errors)
    return session or {}


async def send_turn(conversation: Conversation, turn: int, content: Json, lines: ChatLines) -> list[Event]:
    """Runs a turn and shows it while it runs; returns its events. Raises what `Conversation.say` does."""
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        lines.on_event(event)

    await conversation.say(turn, content, on_event)
    lines.end_turn()
    return events


def _error_text(data: Json) -> str:
    """The message of an exception, with its class and place where the agent went on after it."""
    message = str(data.get("message") or "")
    if not data.get("where"):
        return message
    return str(ErrorInfo(str(data.get("type")), message, where=data["where"], kind=None))
