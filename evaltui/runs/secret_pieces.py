"""Masks secrets that are cut over several events, such as a text that streams in, before they are logged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from evaltui.core.model.events import Event
from evaltui.core.secrets import Secrets
from evaltui.runner.plan import Happened

CaseRun = tuple[str, str, int]
"""The path of a case's file, the id of the case, and the repeat."""
_Stream = tuple[CaseRun, str, str]


class SecretPieces:
    """Holds events back whose texts end with what may be the beginning of a secret, until the texts behind
    them in the same stream decide that: the text that an agent streams, or a stream of the console."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held: dict[_Stream, list[Happened]] = {}

    def add(self, update: Happened) -> Iterator[Happened]:
        """The updates that can be logged now, in the order of each stream."""
        event = update.event
        if (stream := _stream(event)) is None:
            # A message that streamed is whole.
            yield from self._end([stream for stream in self._held if _is_ended_by(stream, event)])
            yield update
            return
        held = [*self._held.pop(stream, ()), update]
        text = "".join(piece for held_update in held for piece in _texts(held_update.event))
        unsettled = self._secrets.open_tail(text)
        held = self._masked(held, unsettled)
        first = len(held)
        while unsettled > 0:
            first -= 1
            unsettled -= len("".join(_texts(held[first].event)))
        if first < len(held):
            self._held[stream] = held[first:]
        yield from held[:first]

    def end(self, case: CaseRun) -> Iterator[Happened]:
        """The rest of what happened in a run of a case."""
        yield from self._end([stream for stream in self._held if stream[0] == case])

    def close(self) -> Iterator[Happened]:
        """The rest of all that happened."""
        yield from self._end(list(self._held))

    def _end(self, streams: Iterable[_Stream]) -> Iterator[Happened]:
        for stream in streams:
            yield from self._masked(self._held.pop(stream))

    def _masked(self, held: Sequence[Happened], unsettled: int = 0) -> list[Happened]:
        """The updates without the secrets that are cut over several of them; the last `unsettled` characters
        stay."""
        pieces = [text for update in held for text in _texts(update.event)]
        masked = self._secrets.in_pieces(pieces, unsettled)
        if len(pieces) < 2 or masked == pieces:
            return list(held)
        new = iter(masked)
        return [
            Happened(_with_texts(update.event, [next(new) for _ in _texts(update.event)])) for update in held
        ]


def _stream(event: Event) -> _Stream | None:
    """The stream that an event is a piece of; None where it stands for itself."""
    case = (event.path, event.case, event.repeat)
    if event.kind == "console" and "text" in event.data:
        return case, "console", str(event.data.get("source"))
    if event.kind == "text" and event.data.get("partial") and _texts(event):
        return case, "text", f"{event.agent}\n{event.branch}"
    return None


def _is_ended_by(stream: _Stream, event: Event) -> bool:
    case, kind, who = stream
    is_of_case = case == (event.path, event.case, event.repeat)
    return is_of_case and kind == "text" and (event.kind == "user" or who.startswith(f"{event.agent}\n"))


def _texts(event: Event) -> list[str]:
    if event.kind == "console":
        return [f"{event.data['text']}\n"]
    parts = (event.content or {}).get("parts") or []
    return [part["text"] for part in parts if isinstance(part.get("text"), str)]


def _with_texts(event: Event, texts: Sequence[str]) -> Event:
    if event.kind == "console":
        return replace(event, data={**event.data, "text": texts[0].removesuffix("\n")})
    rest, content = iter(texts), event.content or {}
    parts = [
        {**part, "text": next(rest)} if isinstance(part.get("text"), str) else part
        for part in content["parts"]
    ]
    return replace(event, content={**content, "parts": parts})
