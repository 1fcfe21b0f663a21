"""Custom metrics and judges on the workers of a cluster, as the run asks for them."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.core.model.events import Json
from evaltui.runner.cluster.messages import LeaveScore, Score, Scored
from evaltui.runner.cluster.remote_worker import RemoteWorker
from evaltui.runner.errors import HostLostError
from evaltui.runner.parent.scoring_hosts import JudgingRoom, ScoringKind
from evaltui.runner.protocol import FilesOpened

# Deaths of workers that computed nothing but one request, until that request is to blame.
_DEATHS = 2


@dataclass(eq=False)
class _Request:
    number: int
    kind: ScoringKind
    message: Json
    answer: asyncio.Future[Json]
    worker: RemoteWorker | None = None
    """Who has it; None while it waits."""
    is_alone: bool = False
    """Whether it may have ended a worker: no other is computed beside it."""
    deaths: int = 0


@dataclass
class _Load:
    """What a worker has."""

    requests: set[_Request] = field(default_factory=set)

    @property
    def is_reserved(self) -> bool:
        return any(one.is_alone for one in self.requests)


class ScoringOnWorkers:
    """`ScoringHosts`. A request that a worker is lost over goes to another one, so each has one answer."""

    def __init__(
        self, parallel: int, fit: Callable[[], Iterable[RemoteWorker]], *, is_elsewhere: bool
    ) -> None:
        """`parallel` is how many runs of cases are judged at once on each worker, `fit` those that may be
        used now. `is_elsewhere` is whether they may be on other machines."""
        self._parallel = parallel
        self._fit = fit
        self._is_elsewhere = is_elsewhere
        self.room = JudgingRoom(lambda: parallel * max(1, sum(1 for _ in fit())))
        self._numbers = itertools.count(1)
        self._open: dict[int, _Request] = {}
        self._waiting: deque[_Request] = deque()
        self._loads: dict[RemoteWorker, _Load] = {}
        self._is_over = False
        self.opened = FilesOpened()

    @property
    def gemini(self) -> GeminiAccess | None:
        if not self._is_elsewhere:
            return None
        found = [one.gemini for one in self._fit() if one.gemini is not None]
        if not found or any(not one.problem for one in found):
            return None
        return replace(
            found[0],
            problem=f"{found[0].problem} on the workers",
            fix="Send such variables with --ship-env, or set them on the workers",
        )

    async def answer(self, kind: ScoringKind, message: Json) -> Json:
        if self._is_over:
            raise asyncio.CancelledError
        number = next(self._numbers)
        request = _Request(number, kind, message, asyncio.get_running_loop().create_future())
        self._open[number] = request
        self._waiting.append(request)
        self.hand_out()
        try:
            return await request.answer
        finally:
            del self._open[number]
            if request in self._waiting:
                self._waiting.remove(request)
            if (worker := request.worker) is not None:
                worker.send(LeaveScore(number))
                self._take_from(worker, request)
                self.hand_out()

    def hand_out(self) -> None:
        """Give what waits to the workers that have the least to compute."""
        for _ in range(len(self._waiting)):
            request = self._waiting.popleft()
            worker = self._chosen(request)
            if worker is None:
                self._waiting.append(request)
                continue
            request.worker = worker
            self._loads.setdefault(worker, _Load()).requests.add(request)
            worker.send(Score(request.number, request.kind, request.message))

    def _chosen(self, request: _Request) -> RemoteWorker | None:
        least, chosen = -1, None
        workers = [(one, one.gemini) for one in self._fit() if one.gemini is not None]
        is_reached = any(not gemini.problem for _, gemini in workers)
        for worker, gemini in workers:
            if request.kind == "models" and is_reached and gemini.problem:
                continue
            load = self._loads.get(worker)
            if load is not None and (load.is_reserved or (request.is_alone and load.requests)):
                continue
            size = len(load.requests) if load else 0
            if chosen is None or size < least:
                least, chosen = size, worker
        return chosen

    def on_scored(self, worker: RemoteWorker, scored: Scored) -> None:
        """What a worker has answered."""
        self.opened |= scored.opened
        request = self._open.get(scored.number)
        if request is None or request.worker is not worker:
            return
        request.worker = None
        self._take_from(worker, request)
        if not request.answer.done():
            if isinstance(scored.answer, Exception):
                request.answer.set_exception(scored.answer)
            else:
                request.answer.set_result(scored.answer)
        self.hand_out()

    def lose(self, worker: RemoteWorker, how: str) -> None:
        """What a worker had goes to others, what may have ended it to one that has nothing else."""
        load = self._loads.pop(worker, _Load())
        for request in sorted(load.requests, key=lambda one: one.number):
            request.worker = None
            was_alone = len(load.requests) == 1
            request.deaths += was_alone
            request.is_alone = True
            if request.deaths < _DEATHS:
                self._waiting.append(request)
            elif not request.answer.done():
                what = f"the worker {how} twice with this metric alone on it"
                error = ErrorInfo("WorkerLostError", what, kind=ErrorKind.HOST_LOST)
                request.answer.set_exception(HostLostError(error))
        self.hand_out()

    def end(self) -> None:
        """The run is over, and what has no answer never has one."""
        self._is_over = True
        for request in self._open.values():
            request.answer.cancel()

    def _take_from(self, worker: RemoteWorker, request: _Request) -> None:
        if (load := self._loads.get(worker)) is not None:
            load.requests.discard(request)
            if not load.requests:
                del self._loads[worker]

    async def close(self) -> None:
        """Workers end what they have started when they leave the run."""

    async def kill(self) -> None:
        """They are killed with the cases' hosts."""
