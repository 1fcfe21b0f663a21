"""The rows of a conversation, updated while events arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from typing import Any, Literal

from evaltui.core.compare.diff import diff_state
from evaltui.core.conversation.responding import request_of
from evaltui.core.conversation.waiting import WaitingCall
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.events import Event, Json, Kind, output_text, parts_in
from evaltui.core.model.outcome import ErrorInfo, StateDiff
from evaltui.workbench.chat.conversation import ChatTurn, Transcript, TurnStage, shown_text

RowKind = Literal[
    "user",  # text and files; `who` is "you"
    "text",  # what an agent says; `partial` while it streams; duration and tokens of the turn that it ends
    "thought",
    "file",  # an agent sends a file
    "call",  # text is the tool; result and duration once there is one, `partial` while there may be
    "result",  # of a call that is not shown; text is the tool
    "request",  # text is what is asked of the user; args are its payload, and the call's of a tool
    "transfer",  # text is the agent that takes over
    "state",  # changes, before and after
    "output",  # text is the value that `who` returns, an agent or the node of a workflow
    "error",  # error
    "code",  # text are the files that changed: from here on the agent runs with them
    "difference",  # text is what is different from the turn that is repeated, "" for nothing
    "note",  # text: the turn waits, or was cancelled
    "thinking",  # the turn runs, and nothing is said just now
    "footer",  # the turn is over, and not with a text: duration, tokens
]

USER_NAME = "you"


@dataclass(frozen=True, slots=True)
class FileShown:
    """A file by type and size in bytes; None where it is only linked."""

    mime_type: str
    size: int | None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the transcript.

    `turn` is the index of its turn in the transcript. `text` comes from outside: of any length, with many
    lines. `depth` is the number of calls around it. Durations are in seconds. `events` are the events that it
    opens: for a call, the call and its results. `asks` is the kind of a request.
    """

    kind: RowKind
    turn: int
    who: str = ""
    text: str = ""
    depth: int = 0
    partial: bool = False
    files: tuple[FileShown, ...] = ()
    args: Json | None = None
    asks: str = ""
    result: Json | None = None
    changes: tuple[StateDiff, ...] = ()
    error: ErrorInfo | None = None
    duration: float | None = None
    tokens: int | None = None
    events: tuple[Event, ...] = ()


class ChatRows:
    """The rows of the transcript of the last `follow`; a changed row is replaced by a new object."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._turns: list[_TurnRows] = []

    def follow(self, transcript: Transcript | None) -> int:
        """Adds the new events; returns the index of the first changed row, `len(rows)` for no change.

        The cost depends on the number of new events only.
        """
        turns = transcript.turns if transcript else []
        first = len(self.rows)
        start = 0
        for index, turn in enumerate(turns):
            if index < len(self._turns) and self._turns[index].turn is not turn:
                first = min(first, self._cut(index, start))
            if index == len(self._turns):
                self._turns.append(_TurnRows(turn, index))
                before = 0
            else:
                before = len(self._turns[index])
            shown = self._turns[index]
            changed = shown.follow()
            if changed < max(before, len(shown)):
                self.rows[start + changed : start + before] = shown.rows_from(changed)
                first = min(first, start + changed)
            start += len(shown)
        if len(turns) < len(self._turns):
            first = min(first, self._cut(len(turns), start))
        return min(first, len(self.rows))

    def _cut(self, turn: int, start: int) -> int:
        """Removes the turns from an index on, whose rows start at `start`."""
        del self._turns[turn:]
        del self.rows[start:]
        return start


class _TurnRows:
    """The rows of one turn: those of its events, and the last ones, which show its stage."""

    def __init__(self, turn: ChatTurn, index: int) -> None:
        self.turn = turn
        self._index = index
        self._restart()

    def _restart(self) -> None:
        self._rows: list[Row] = []
        self._last: tuple[Row, ...] = ()
        self._event_count = 0
        self._state: Json | None = None
        self._calls: dict[str, int] = {}
        self._long_running: set[str] = set()
        # The calls of tools that take longer than the turn.
        self._waits: list[Row] = []
        self._depths: dict[str, tuple[Kind, int]] = {}
        self._streams: dict[tuple[str, str], dict[RowKind, int]] = {}
        self._tokens = _Tokens()
        self._new_code = self.turn.new_code
        if self._new_code:
            self._add(Row("code", self._index, text=", ".join(self._new_code)))
        message = self.turn.content
        files = tuple(map(_file, filter(_is_file, parts_in(message))))
        self._user = self._add(Row("user", self._index, USER_NAME, shown_text(message), files=files))
        self._first = 0

    def __len__(self) -> int:
        return len(self._rows) + len(self._last)

    def rows_from(self, index: int) -> Iterator[Row]:
        return islice(chain(self._rows, self._last), index, None)

    def follow(self) -> int:
        """Adds the new events; returns the index of the first changed row, the number of rows for no
        change."""
        if self.turn.new_code != self._new_code:
            self._restart()
        for event in islice(self.turn.events, self._event_count, None):
            self._add_event(event)
        self._event_count = len(self.turn.events)
        if self.turn.stage is not TurnStage.RUNNING:
            self._end_open_rows()
            self._end_last_text()
        last = tuple(self._last_rows())
        as_before = self._first == len(self._rows) and last == self._last
        first, self._first, self._last = self._first, len(self._rows), last
        return len(self) if as_before else first

    def _add(self, row: Row) -> int:
        self._rows.append(row)
        return len(self._rows) - 1

    def _replace(self, index: int, **changes: Any) -> None:
        self._rows[index] = replace(self._rows[index], **changes)
        self._first = min(self._first, index)

    # What happened

    def _add_event(self, event: Event) -> None:
        depth = self._depth(event)
        if event.id:
            self._depths[event.id] = event.kind, depth
        self._tokens.count(event)
        row = Row("text", self._index, event.agent, depth=depth, events=(event,))
        data = event.data
        self._long_running.update(data.get("long_running") or ())
        match event.kind:
            case "user":
                self._replace(self._user, events=(event,))
            case "text":
                self._take_text(row, event)
            case "model_request":
                # Another answer begins.
                self._end_stream((event.agent, event.parent))
            case "tool_call":
                self._take_call(row, event)
            case "tool_result":
                self._take_result(row, event)
            case "transfer":
                self._add(replace(row, kind="transfer", text=str(data.get("to", ""))))
            case "state":
                if changes := self._changes(data.get("delta") or {}):
                    self._add(replace(row, kind="state", changes=changes))
            case "output":
                who = str(data.get("node") or event.agent)
                self._add(replace(row, kind="output", who=who, text=output_text(data["output"])))
            case "error":
                if data.get("text_is_void"):
                    # The answer begins again from its start: what was said so far stays as it is.
                    for source in [stream for stream in self._streams if stream[0] == event.agent]:
                        self._end_stream(source)
                self._add(replace(row, kind="error", error=_error(data)))
            case _:
                # What a model answers comes as text and calls, what is printed is in the console.
                pass

    def _depth(self, event: Event) -> int:
        """The depth of an event's row: a result is as deep as its call, events inside a call are deeper."""
        if event.parent not in self._depths:
            return 1 if event.data.get("nested") else 0
        kind, depth = self._depths[event.parent]
        return depth + 1 if kind == "tool_call" and event.kind != "tool_result" else depth

    def _take_text(self, row: Row, event: Event) -> None:
        """Adds a text: the pieces of a stream share a row, which the whole text replaces."""
        source = event.agent, event.parent
        stream = self._streams.setdefault(source, {})
        partial = bool(event.data.get("partial"))
        for kind, text, files in _parts_of_text(event):
            at = stream.get(kind)
            if at is None:
                at = self._add(replace(row, kind=kind, text=text, files=files, partial=partial))
                if partial and kind != "file":
                    stream[kind] = at
            elif partial:
                self._replace(at, text=self._rows[at].text + text, events=(event,))
            else:
                self._replace(stream.pop(kind), text=text, partial=False, events=(event,))
        if not partial:
            self._end_stream(source)

    def _end_stream(self, source: tuple[str, str]) -> None:
        for index in self._streams.pop(source, {}).values():
            self._replace(index, partial=False)

    def _take_call(self, row: Row, event: Event) -> None:
        call = _first_part(event, "function_call")
        name, args = str(call.get("name", "")), call.get("args")
        waits = event.id in self._long_running and not event.data.get("nested")
        request = request_of(WaitingCall(event.id, name, args or {}, self._index, 0)) if waits else None
        if request is None or request.kind == "long-running":
            self._calls[event.id] = self._add(replace(row, kind="call", text=name, args=args, partial=True))
        if request is not None:
            payload = None if request.payload is None else {"payload": request.payload}
            asks = replace(row, kind="request", text=request.message, args=payload)
            asks = replace(asks, asks=request.kind)
            if request.kind == "long-running":
                self._waits.append(replace(asks, args=None))
            else:
                self._add(asks)

    def _take_result(self, row: Row, event: Event) -> None:
        returned = _first_part(event, "function_response")
        response = returned.get("response")
        at = self._calls.get(event.parent)
        if at is None:
            tool = str(returned.get("name", ""))
            self._add(replace(row, kind="result", text=tool, result=response, duration=event.duration))
            return
        # A tool that takes its time may answer more than once.
        self._replace(
            at,
            result=response,
            partial=False,
            duration=event.duration,
            events=(*self._rows[at].events, event),
        )

    def _changes(self, delta: Json) -> tuple[StateDiff, ...]:

        if self._state is None:
            self._state = dict(self.turn.state_before or {})
        before = {key: self._state.get(key) for key in delta}
        self._state |= delta
        return diff_state(before, delta)

    # How far it is

    def _end_open_rows(self) -> None:
        for source in list(self._streams):
            self._end_stream(source)
        for index in self._calls.values():
            if self._rows[index].partial:
                self._replace(index, partial=False)

    def _end_last_text(self) -> None:
        """Adds the duration and tokens of the turn to its last text."""
        at, took = self._last_text(), (self.turn.spent, self._tokens.total)
        if (
            at is not None
            and took[0] is not None
            and (self._rows[at].duration, self._rows[at].tokens) != took
        ):
            self._replace(at, duration=took[0], tokens=took[1])

    def _last_text(self) -> int | None:
        """The index of the text that ends the turn; None for another end."""
        at = next((n for n in reversed(range(len(self._rows))) if self._rows[n].kind != "state"), 0)
        return at if self._rows[at].kind == "text" else None

    def _last_rows(self) -> Iterator[Row]:
        turn = self.turn
        match turn.stage:
            case TurnStage.WAITING:
                yield Row("note", self._index, text="queued")
            case TurnStage.RUNNING if not self._rows[-1].partial:
                yield Row("thinking", self._index, self._speaker())
            case TurnStage.CANCELLED:
                yield Row("note", self._index, text="cancelled; the next message starts before this turn")
            case TurnStage.FAILED:
                yield Row("error", self._index, error=turn.error)
            case TurnStage.DONE:
                yield from self._waits
        if turn.stage is TurnStage.DONE and turn.difference is not None:
            yield Row("difference", self._index, text=turn.difference.sentence)
        is_over = turn.spent is not None and turn.stage is not TurnStage.RUNNING
        if is_over and self._last_text() is None:
            yield Row("footer", self._index, duration=turn.spent, tokens=self._tokens.total)

    def _speaker(self) -> str:
        """The agent of the last row that has one."""
        return next((row.who for row in reversed(self._rows) if row.who not in ("", USER_NAME)), "")


class _Tokens:
    """The tokens of a turn; None where no event reports them."""

    def __init__(self) -> None:
        self.total: int | None = None
        self._of_responses = False

    def count(self, event: Event) -> None:
        if event.kind == "model_response" and not self._of_responses:
            # The steps that a response is made into repeat its usage.
            self._of_responses, self.total = True, None
        usage = event.usage
        if usage is None or (self._of_responses and event.kind != "model_response"):
            return
        used = usage.get("total_token_count") or sum(
            usage.get(name) or 0 for name in ("prompt_token_count", "candidates_token_count")
        )
        self.total = (self.total or 0) + used


def _parts_of_text(event: Event) -> Iterator[tuple[RowKind, str, tuple[FileShown, ...]]]:
    """The parts of a text, those of one kind together."""
    parts = [part for part in parts_in(event.content) if _is_file(part) or _text(part)]
    for kind, own in groupby(parts, _row_kind):
        of_kind = list(own)
        if kind == "file":
            yield kind, "", tuple(map(_file, of_kind))
        else:
            yield kind, "\n".join(map(_text, of_kind)), ()


def _row_kind(part: Mapping[str, Any]) -> RowKind:
    if _is_file(part):
        return "file"
    return "thought" if part.get("thought") else "text"


def _text(part: Mapping[str, Any]) -> str:
    """The text of a part, including code that a model runs, and its output."""
    ran = part.get("executable_code") or {}
    printed = part.get("code_execution_result") or {}
    return str(part.get("text") or ran.get("code") or printed.get("output") or "")


def _is_file(part: Mapping[str, Any]) -> bool:
    return part.get("inline_data") is not None or part.get("file_data") is not None


def _file(part: Mapping[str, Any]) -> FileShown:
    inline = part.get("inline_data")
    data = inline or part.get("file_data") or {}
    name = data.get("display_name") or data.get("file_uri") or ""
    encoded = str((inline or {}).get("data") or "")
    size = len(encoded) * 3 // 4 - encoded[-2:].count("=")
    return FileShown(str(data.get("mime_type") or ""), None if inline is None else size, str(name))


def _first_part(event: Event, name: str) -> Mapping[str, Any]:
    parts = parts_in(event.content)
    return next((part[name] for part in parts if part.get(name)), {})


def _error(data: Mapping[str, Any]) -> ErrorInfo:
    message, trace, where = (str(data.get(name) or "") for name in ("message", "traceback", "where"))
    # Events of earlier versions do not tell.
    kind = ErrorKind(data["kind"]) if data.get("kind") in tuple(ErrorKind) else None
    return ErrorInfo(str(data.get("type") or "Error"), message, trace, where, kind=kind)
