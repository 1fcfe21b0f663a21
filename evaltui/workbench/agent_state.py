"""The agent that is worked on: what is known of it, the version of its code, and its processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.events import Json
from evaltui.runner.errors import AgentBrokenError

if TYPE_CHECKING:
    # The first frame does not wait for these to be imported.
    from evaltui.core.model.outcome import ErrorInfo
    from evaltui.core.secrets import Secrets
    from evaltui.runner.parent.pool import StartedHost
    from evaltui.runner.parent.warm_hosts import WarmHosts


class AgentState:
    """One agent, and whether it can be imported.

    `changed` is called after every change. While `is_running` says that cases are being run, no process is
    started on the side.
    """

    def __init__(self, agent_dir: Path, changed: Callable[[], None], is_running: Callable[[], bool]) -> None:
        self.dir = agent_dir
        """The agent's folder."""
        self.info: Json | None = None
        """What the agent says of itself (AgentInfo as JSON); None before it was imported."""
        self.error: ErrorInfo | None = None
        """Why the last import failed; None where it did not."""
        self.code_version = 0
        """How often the agent's files have changed since the workbench was opened."""
        self._changed = changed
        self._is_running = is_running
        self._learning: asyncio.Task[None] | None = None

    @cached_property
    def secrets(self) -> Secrets:
        """What is masked in everything that is written."""
        from evaltui.files.settings import secrets_of

        return secrets_of(self.dir)

    @cached_property
    def warm_hosts(self) -> WarmHosts:
        """The processes that have imported the agent's libraries before they are needed."""
        from evaltui.runner.parent.warm_hosts import WarmHosts

        return WarmHosts(self.dir)

    def imported(self, info: Json) -> None:
        """Notes what an import of the agent has shown."""
        self.info, self.error = info, None
        self._changed()

    def failed(self, error: ErrorInfo) -> None:
        """Notes why an import of the agent failed; what was known of it is still shown."""
        self.error = error
        self._changed()

    def code_changed(self) -> None:
        """Counts a change of the agent's files: results from before are stale."""
        self.code_version += 1

    def start_host(self) -> StartedHost:
        """A process that imports the agent as it is now: the one that is kept warm, or a new one."""
        from evaltui.runner.parent.pool import HostSettings
        from evaltui.runner.parent.supervisor import CASE_TIMEOUT, IMPORT_TIMEOUT

        return self.warm_hosts.start(
            HostSettings(self.dir, None, CASE_TIMEOUT, IMPORT_TIMEOUT, time.monotonic())
        )

    def keep_host_warm(self) -> None:
        """Prepares a process for the next run, with the libraries that the last one needed."""
        if not self._is_running():
            self.warm_hosts.prepare()

    def learn_tools(self) -> None:
        """Asks the agent in the background what tools it has, once."""
        if self.info is None and self._learning is None and not self._is_running():
            self._learning = asyncio.create_task(self._learn_tools())

    async def _learn_tools(self) -> None:
        started = self.start_host()
        try:
            self.imported(await started.loading)
        except AgentBrokenError as broken:
            self.failed(broken.error)
        finally:
            await started.end()

    async def close(self) -> None:
        """Ends the agent's processes."""
        if self._learning is not None:
            self._learning.cancel()
            await asyncio.wait([self._learning])
        await self.warm_hosts.close()
