"""Computes custom metrics and asks judges on the workers of a cluster."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from evaltui.agents.errors import HostLostError
from evaltui.agents.protocol import FilesOpened
from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.core.model.events import Json
from evaltui.runner.dask.messages import LeaveScore, Score, Scored
from evaltui.runner.dask.workers import RemoteWorker, ScoreRequest
from evaltui.runner.scoring import JudgingRoom, ScoringKind

# Deaths of workers that computed only one request, until that request is to blame.
_DEATHS = 2


class ScoringOnWorkers:
    """`ScoringHosts` on workers. A request of a lost worker goes to another one, so each gets one answer.

    It uses messages instead of Dask tasks, for which a worker would have no room while it runs chunks.
    """

    def __init__(
        self, parallel: int, fit: Callable[[], Iterable[RemoteWorker]], *, is_elsewhere: bool
    ) -> None:
        """`parallel` is the number of cases that are judged at once on each worker, `fit` returns the workers
        that can be used now, `is_elsewhere` is whether they may be on other machines."""
        self._fit = fit
        self._is_elsewhere = is_elsewhere
        self.room = JudgingRoom(lambda: parallel * max(1, sum(1 for _ in fit())))
        self._numbers = itertools.count(1)
        self._open: dict[int, ScoreRequest] = {}
        self._waiting: deque[ScoreRequest] = deque()
        self._is_over = False
        self.opened = FilesOpened()

    @property
    def gemini(self) -> GeminiAccess | None:
        accesses = [worker.gemini for worker in self._fit() if worker.gemini is not None]
        if not self._is_elsewhere or not accesses or any(not access.problem for access in accesses):
            return None
        return replace(
            accesses[0],
            problem=f"{accesses[0].problem} on the workers",
            fix="Send such variables with --ship-env, or set them on the workers",
        )

    async def answer(self, kind: ScoringKind, message: Json) -> Json:
        if self._is_over:
            raise asyncio.CancelledError
        request = ScoreRequest(Score(next(self._numbers), kind, message))
        number = request.message.number
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
                worker.requests.discard(request)
                self.hand_out()

    def hand_out(self) -> None:
        """Sends waiting requests to the workers that have the fewest."""
        for _ in range(len(self._waiting)):
            request = self._waiting.popleft()
            worker = min(self._possible(request), key=lambda worker: len(worker.requests), default=None)
            if worker is None:
                self._waiting.append(request)
                continue
            request.worker = worker
            worker.requests.add(request)
            worker.send(request.message)

    def _possible(self, request: ScoreRequest) -> list[RemoteWorker]:
        workers = [(worker, worker.gemini) for worker in self._fit() if worker.gemini is not None]
        is_reached = any(not gemini.problem for _, gemini in workers)
        return [
            worker
            for worker, gemini in workers
            if not (request.message.kind == "models" and is_reached and gemini.problem)
            and not any(other.is_alone or request.is_alone for other in worker.requests)
        ]

    def on_scored(self, worker: RemoteWorker, scored: Scored) -> None:
        """Handles an answer of a worker."""
        self.opened |= scored.opened
        request = self._open.get(scored.number)
        if request is None or request.worker is not worker:
            return
        request.worker = None
        worker.requests.discard(request)
        if not request.answer.done():
            if isinstance(scored.answer, Exception):
                request.answer.set_exception(scored.answer)
            else:
                request.answer.set_result(scored.answer)
        self.hand_out()

    def lose(self, worker: RemoteWorker) -> None:
        """Gives the requests of a worker that died to others. Requests that may have killed it run alone."""
        requests, worker.requests = worker.requests, set()
        for request in sorted(requests, key=lambda request: request.message.number):
            request.worker = None
            request.deaths += len(requests) == 1
            request.is_alone = True
            if request.deaths < _DEATHS:
                self._waiting.append(request)
            elif not request.answer.done():
                what = "the worker died twice with this metric alone on it"
                error = ErrorInfo("WorkerLostError", what, kind=ErrorKind.HOST_LOST)
                request.answer.set_exception(HostLostError(error))
        self.hand_out()

    def end(self) -> None:
        """Cancels all requests when the run is over."""
        self._is_over = True
        for request in self._open.values():
            request.answer.cancel()

    async def close(self) -> None:
        """Does nothing: workers end their scoring when they leave the run."""

    async def kill(self) -> None:
        """Does nothing: the scoring hosts are killed with the hosts of the cases."""
