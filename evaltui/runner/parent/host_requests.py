"""The requests of a host that have no answer yet, and what the host tells of each."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Json
from evaltui.runner.errors import HostLostError, RequestFailedError
from evaltui.runner.parent.gate.requests import GatedRequest
from evaltui.runner.protocol import Message

# Seconds.
_SHORTEST_WAIT = 0.05

OnEvent = Callable[[str], None]
"""Gets each event as JSON text, see `decode_event`; may raise DisturbedChannelError."""
OnRecorded = Callable[[Json], None]
OnBegun = Callable[[], None]


@dataclass(eq=False)
class HostRequest:
    """A request from when it is sent until it is answered or given up."""

    number: int
    answer: asyncio.Future[Message]
    on_event: OnEvent
    on_recorded: OnRecorded
    gated: GatedRequest | None
    on_begun: OnBegun
    begun: asyncio.Future[None]
    """Done when the host has room for it; its time counts from then."""

    def begin(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)
            self.on_begun()

    def close(self) -> None:
        """Nobody waits for it any more."""
        if self.gated is not None:
            self.gated.close()
        if self.answer.done() and not self.answer.cancelled():
            self.answer.exception()


class HostRequests:
    """Of one host. `let_go` sends the host what the gate says of a call of a request."""

    def __init__(self, let_go: Callable[[int, Json], None]) -> None:
        self._let_go = let_go
        self._numbers = itertools.count(1)
        self._waiting: dict[int, HostRequest] = {}
        # When something was last sent or received, on the clock of the loop.
        self._heard = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_working(self) -> bool:
        """Whether the host still owes an answer."""
        return any(not one.answer.done() for one in self._waiting.values())

    def begin(
        self, on_event: OnEvent, on_recorded: OnRecorded, gated: GatedRequest | None, on_begun: OnBegun
    ) -> HostRequest:
        """A new request, with a number of its own."""
        number = next(self._numbers)
        loop = asyncio.get_running_loop()
        self._heard = loop.time()
        answer: asyncio.Future[Message] = loop.create_future()
        request = HostRequest(number, answer, on_event, on_recorded, gated, on_begun, loop.create_future())
        self._waiting[number] = request
        return request

    async def has_begun(self, request: HostRequest, timeout: float) -> bool:
        """Waits until the host has room for a request. False where the host is silent for `timeout` seconds
        though none of its requests is under way."""
        loop = asyncio.get_running_loop()
        while not (request.begun.done() or request.answer.done()):
            left = timeout - (loop.time() - self._heard)
            if left <= 0 and not self._is_under_way:
                return False
            events: set[asyncio.Future[Any]] = {request.begun, request.answer}
            await asyncio.wait(events, timeout=max(left, _SHORTEST_WAIT), return_when=asyncio.FIRST_COMPLETED)
        return True

    @property
    def _is_under_way(self) -> bool:
        return any(one.begun.done() and not one.answer.done() for one in self._waiting.values())

    def end(self, request: HostRequest) -> None:
        """The request is answered or given up."""
        self._waiting.pop(request.number, None)
        request.close()

    def receive(self, number: int, message: Message) -> None:
        """Take what the host tells of a request; one that was given up is past."""
        self._heard = asyncio.get_running_loop().time()
        request = self._waiting.get(number)
        if request is None:
            return
        match message:
            case {"op": "event", "event": event}:
                request.on_event(event)
            case {"op": "begun"}:
                request.begin()
            case {"op": "recorded", "line": line}:
                request.on_recorded(line)
            case {"op": "call", "call": call} if request.gated:
                request.gated.on_message(call, lambda answer: self._let_go(number, answer))
            case {"op": "done"} if not request.answer.done():
                request.answer.set_result(message)
            case {"op": "failed", "error": error} if not request.answer.done():
                failed = RequestFailedError(ErrorInfo.from_json(error))
                failed.usages = message.get("usages", ())
                request.answer.set_exception(failed)

    def lose(self, error: ErrorInfo) -> None:
        """The host is gone."""
        for request in self._waiting.values():
            if not request.answer.done():
                request.answer.set_exception(HostLostError(error))
