"""What other programs change is shown where nothing is edited or run: eval sets, configs and runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.messages import Messages
from evaltui.workbench.result.outcomes import Outcomes

if TYPE_CHECKING:
    from evaltui.files.watching import Changed

# Seconds between two looks at which runs there are.
_EVERY = 1.0


class Following:
    """Reads again what has changed in the agent's folder, the `given` files and folders, and its runs.

    `reload` looks again which sets there are. Nothing is run, and no agent imported.
    """

    def __init__(
        self,
        agent: AgentState,
        outcomes: Outcomes,
        given: Sequence[str | Path],
        reload: Callable[[], Awaitable[None]],
        messages: Messages,
    ) -> None:
        self.version = 0
        """Another one whenever there are other runs."""
        self._agent = agent
        self._outcomes = outcomes
        self._given = given
        self._reload = reload
        self._messages = messages
        self._logs: Sequence[Path] = ()
        # When the log of each run that is over was written.
        self._over: dict[Path, int] = {}
        self._ready = asyncio.Event()
        # Results are read for one reason at a time.
        self._reading = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Reads what earlier runs say of each case, and follows what changes from now on."""
        self._agent.followed = True
        self._tasks = [
            asyncio.create_task(self._told(one)) for one in (self._follow_files(), self._follow_runs())
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _told(self, following: Coroutine[None, None, None]) -> None:
        try:
            await following
        except Exception as error:  # whatever it is, the workbench goes on and says so
            self._messages.say(f"Changes on disk are no longer shown: {type(error).__name__}: {error}")

    async def _follow_files(self) -> None:
        # It builds on a library that the first frame does not wait for.
        from evaltui.files.watching import WatchedFiles

        is_remote = bool(self._agent.address.url)
        files = WatchedFiles(self._agent.dir, self._given, only_env=is_remote)
        try:
            await files.follow(self._on_save, self._ready.set)
        finally:
            self._ready.set()

    async def _on_save(self, change: Changed) -> None:
        if change.code:
            self._agent.code_changed(change.code)
        if change.sets:
            await self._reload()
        await self._read_results()

    async def _follow_runs(self) -> None:
        # What is saved from now on is not missed; what was saved since the sets were read may have been.
        await self._ready.wait()
        await self._reload()
        while True:
            await self.read_runs()
            await asyncio.sleep(_EVERY)

    async def read_runs(self) -> None:
        """Shows what has been run since the last look, by other processes too."""
        logs, over = await asyncio.to_thread(self._look)
        is_new, self._over = over != self._over, over
        if is_new or logs != self._logs:
            self._logs = logs
            self.version += 1
            self._outcomes.runs_changed()
        if is_new:
            await self._read_results()

    def _look(self) -> tuple[Sequence[Path], dict[Path, int]]:
        """In a thread: the logs of runs, and when those of runs that are over were written."""
        from evaltui.runs.run_file import is_being_written

        logs = self._agent.store.files()
        over = {}
        for log in logs:
            # One that is pruned meanwhile is gone the next time.
            with suppress(OSError):
                written = log.stat().st_mtime_ns
                if self._over.get(log) == written or not is_being_written(log):
                    over[log] = written
        return logs, over

    async def _read_results(self) -> None:
        async with self._reading:
            await self._outcomes.restore()
