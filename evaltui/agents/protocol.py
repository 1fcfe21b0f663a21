"""Messages of parent and host: JSON, one object per line, over a socket of their own.

Parent to host: `preload` {agent_dir, steps, seal}, `load` {agent_dir, home, agent_name, module, url,
headers, variant, t0, seal}, `run` {id, session, turns or simulated_user, recorded?}, `chat` {id,
session, past}, `say` {id, chat, turn, content}, `end` {id, chat}, `import` {id, path, agent_folder},
`metric` {id, path, agent_folder, metric, scores_turns, actual, expected, scenario, without} or {id, path,
agent_folder, source, file, first_line, instance}, `ask` {id,
judge, prompt, config, agent_folder}, `cancel` {id}, `go` {id, call}, `close`.
Host to parent: `preloaded`, `opened` {read?, written?}, `loaded` {info, files}, `broken` {error},
`event` {id, event}, `recorded` {id, line}, `call` {id, call}, `done` {id} with {state}, {result,
where}, {turns}, {files}, {text, cut_off, usages, version} or nothing, `failed` {id, error, usages?},
`brought_in` {steps} when it is closed, `fatal` {error}.

`variant` is a variant as JSON, null for none: of an instruction with its text, and with what is changed
already in `done`, see `AppliedChanges`. `home` is the folder of its eval sets.
`preload` may come before `load`, and imports what an earlier host told in `brought_in`: the names of
libraries' modules in order, and what the agent changed in the environment in between.
`run`, `say` and `ask` have `gated`, patterns of models, where calls of these are limited: `call` then tells
that a live one is to be made or is over, and `go` that it may be made; see `ModelGate`.
`recorded` is what is known of the recording of the case, `line` what is told of it: see
`call_recorder`. `files` are the user's own modules that were imported, as absolute paths. `opened` are the
files of the user's that the process has opened and not told yet; it comes before what these led to.
`simulated_user` is a `SimulatedUser` as JSON, with the `agent_folder`, where a function that plays it
is; null for one that the process imports as any other.
`seal` is what every line of the host begins with: the agent, which lives in the same process, can write to
the socket too, and what it writes is no message.
`event` is a line of its own form, `E<id> <event as JSON>`: the parent reads it once, and writes it to the log
as it came.
`usages` are tokens as genai's usage metadata, by attempt: an attempt that failed may have spent some.
`id` is the number of a request, and of what answers it. `run` is a whole conversation; `chat` opens one that
begins at the end of `past` (steps) and stays open until `end`. Each `say` is a turn of the one whose `chat`
request had the number `chat`; cancelling it ends that turn alone. Runs and chats may go on side by side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..core.conversation.waiting import CallPlace
from ..text.values import finite_json

VERSION = 1

Message = dict[str, Any]


class Reply(NamedTuple):
    """The answer of a model, or of a function in its place, to a prompt."""

    text: str
    cut_off: str = ""
    """Why the text says no more, such as `MAX_TOKENS`; "" where it came to its end."""
    usages: Sequence[Message] = ()
    """Tokens as genai's usage metadata, of each attempt that told them; the last one is that of the text."""
    version: str = ""
    """The model that the response names; "" where it names none."""


def places_to_json(places: Mapping[str, CallPlace]) -> Message:
    return {call_id: [place.turn, place.number] for call_id, place in places.items()}


def places_of(request: Message) -> dict[str, CallPlace]:
    """Where the calls that a request's responses name by id were made."""
    return {call_id: CallPlace(*place) for call_id, place in request.get("places", {}).items()}


# Bound before the agent is imported, which may replace `json.loads` and `json.dumps` in its process.
_written = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_read = json.JSONDecoder().decode
# The first letter of an event's line, which is passed on without being parsed.
_EVENT = b"E"


def encode(message: Message) -> bytes:
    """One line. Numbers that JSON does not have are sent as text; TypeError for what is no JSON data."""
    try:
        text = _written(message)
    except ValueError:
        text = _written(finite_json(message))
    return text.encode("ascii") + b"\n"


def encode_event(request: int, event: Message) -> bytes:
    """One line: an event of a request, as `decode_event` reads it. Raises TypeError as `encode`."""
    return b"%s%d %s" % (_EVENT, request, encode(event))


def decode_event(text: str) -> Message:
    """The event of a message `event`. Raises DisturbedChannelError."""
    return decode_message(text)


class Lines:
    """Puts chunks of a stream together to lines of any length. `rest` is the size of the line that is not at
    its end yet, in bytes."""

    def __init__(self) -> None:
        # Joined once the line is whole: adding to a long text again and again would copy it each time.
        self._parts: list[bytes] = []
        self.rest = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        first, *others = chunk.split(b"\n")
        self._parts.append(first)
        self.rest += len(first)
        if not others:
            return []
        *whole, rest = b"".join(self._parts), *others
        self._parts, self.rest = [rest], len(rest)
        return whole


class DisturbedChannelError(ValueError):
    """Another writer has written into the middle of a message."""


class SealedLines:
    """Reads messages from a stream to which others write too: `on_stray` gets all bytes without the seal."""

    def __init__(self, seal: str, on_stray: Callable[[bytes], None]) -> None:
        self._seal = seal.encode("ascii")
        self._on_stray = on_stray
        self._lines = Lines()

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """Raises DisturbedChannelError for a message that cannot be read."""
        for line in self._lines.feed(chunk):
            stray, seal, text = line.partition(self._seal)
            if stray:
                self._on_stray(stray)
            if seal:
                yield _message(text)


def _message(line: bytes) -> Message:
    if not line.startswith(_EVENT):
        return decode_message(line)
    request, _, event = line[len(_EVENT) :].partition(b" ")
    try:
        return {"op": "event", "id": int(request), "event": event.decode("ascii")}
    except ValueError as error:
        raise DisturbedChannelError("an event of the host cannot be read") from error


def decode_message(text: str | bytes) -> Message:
    """The message in a line without events. Raises DisturbedChannelError."""
    try:
        message: Message = _read(text if isinstance(text, str) else text.decode())
    except ValueError as error:
        raise DisturbedChannelError("a message of the host cannot be read") from error
    return message


@dataclass(frozen=True)
class FilesOpened:
    """The user's own files that processes of the agent, its metrics and judges have opened so far."""

    read: frozenset[Path] = frozenset()
    written: frozenset[Path] = frozenset()

    def __or__(self, other: FilesOpened) -> FilesOpened:
        if self.read >= other.read and self.written >= other.written:
            return self
        return FilesOpened(self.read | other.read, self.written | other.written)
