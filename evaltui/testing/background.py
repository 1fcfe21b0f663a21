"""Runs in a thread of their own, whose cases somebody else waits for one by one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult
from evaltui.runner.parent.execution import follow_plan
from evaltui.runner.parent.pool import HostSettings, StartedHost
from evaltui.runner.parent.supervisor import IMPORT_TIMEOUT
from evaltui.runner.plan import CaseDone, Happened, Noted
from evaltui.runs.execution import RunUpdate
from evaltui.runs.execution import run as run_and_keep
from evaltui.runs.selection import RunRequest, select
from evaltui.runs.sets import FileSets

StartHost = Callable[[HostSettings], StartedHost]


class NoResultError(Exception):
    """The run is over, and there is no result of a case; the message says why."""


class BackgroundLoop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        # Nobody waits for it where pytest itself is ended.
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="evaltui", daemon=True
        )
        self._thread.start()
        self._ready.wait()

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._ready.set()
        await self._stopped.wait()

    def stop(self) -> None:
        """End the thread once everything that was begun in it is over."""
        self.loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()


class BackgroundRun:
    """Cases of one agent, run by one plan in the background."""

    def __init__(
        self, request: RunRequest, sets: FileSets, start_host: StartHost, *, keeps_log: bool
    ) -> None:
        """`keeps_log` is whether the run is kept among those of the agent."""
        self.request = request
        self.notes: list[str] = []
        """Remarks on the run."""
        self.log: Path | None = None
        """Where the run is kept; None until it is over, and where it is not."""
        self.seconds = 0.0
        """How long it took; 0 until it is over."""
        self._sets = sets
        self._start = start_host
        self._keeps_log = keeps_log
        self._results: dict[CaseId, CaseResult] = {}
        self._printed: defaultdict[CaseId, list[str]] = defaultdict(list)
        self._changed = threading.Condition()
        self._task: asyncio.Task[None] | None = None
        self._is_unwanted = False
        self._failure: BaseException | None = None
        self._is_over = False

    @property
    def config(self) -> Path | None:
        """The config of all of its sets; None where each has its own."""
        return self._sets.config

    @property
    def results(self) -> dict[CaseId, CaseResult]:
        """Of the cases that are done."""
        with self._changed:
            return dict(self._results)

    def start(self, loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
        """Begin to run in an event loop; `then` is called there when the run is over."""
        self._loop = loop
        asyncio.run_coroutine_threadsafe(self._work(then), loop)

    def result(self, case: CaseId) -> CaseResult:
        """The result of a case, waited for.

        Raises NoResultError where there is none, or what the whole run ended with, such as an EvalSetError.
        """
        with self._changed:
            self._changed.wait_for(lambda: case in self._results or self._is_over)
            if case in self._results:
                return self._results[case]
        if self._failure is not None:
            raise self._failure
        raise NoResultError("; ".join(self.notes) or "the run was cancelled")

    def printed(self, case: CaseId) -> str:
        """What the agent printed during a case, as far as it is known whose it was."""
        with self._changed:
            return "\n".join(self._printed.get(case, ()))

    def end(self) -> None:
        """Cancel what is still running, and wait until its processes are gone."""
        self._loop.call_soon_threadsafe(self._cancel)
        with self._changed:
            self._changed.wait_for(lambda: self._is_over)

    def _cancel(self) -> None:
        self._is_unwanted = True
        if self._task is not None:
            self._task.cancel()

    async def _work(self, then: Callable[[], None]) -> None:
        began, self._task = time.monotonic(), asyncio.current_task()
        try:
            if not self._is_unwanted:
                await self._execute()
        except Exception as error:
            self._failure = error
        finally:
            with self._changed:
                self._is_over = True
                self.seconds = time.monotonic() - began
                self._changed.notify_all()
            then()

    async def _execute(self) -> None:
        if self._keeps_log:
            executed = await run_and_keep(self.request, self._sets, self._on_update, self._start_host)
            self.log = executed.log
            return
        host = self._start_host()
        try:
            selected = await asyncio.to_thread(select, self.request, self._sets)
            self.notes += selected.notes
            with suppress(asyncio.CancelledError):
                await follow_plan(selected.plan, self._on_update, first=host)
        finally:
            await host.end()

    def _start_host(self) -> StartedHost:
        request = self.request
        return self._start(
            HostSettings(request.agent, request.settings.timeout, IMPORT_TIMEOUT, time.monotonic())
        )

    def _on_update(self, update: RunUpdate) -> None:
        match update:
            case CaseDone(result):
                with self._changed:
                    self._results[result.id] = result
                    self._changed.notify_all()
            case Happened(event):
                if event.kind == "console" and event.case:
                    with self._changed:
                        self._printed[CaseId(event.path, event.case)].append(str(event.data.get("text", "")))
            case Noted(text):
                self.notes.append(text)
