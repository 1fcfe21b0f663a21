"""An agent object run in this process, in the place of a host.

It lacks what a process of its own gives an agent: code that blocks the event loop cannot be timed out, and
the agent prints, changes and breaks things of this process.
"""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

from evaltui.agents.errors import AgentBrokenError, RequestFailedError, RunStoppedError, late_error
from evaltui.agents.model_gate import ModelGate
from evaltui.agents.protocol import FilesOpened, Message
from evaltui.core.model.events import Json
from evaltui.project.agent_address import AgentAddress
from evaltui.runner.gated_requests import GatedRequest, answered
from evaltui.runner.host import OnConsole, OnEvent, OnRecorded
from evaltui.runner.starting import HostSettings, StartedHost, started_loading

if TYPE_CHECKING:
    from evaltui.agents.in_process import AgentObject

# Seconds.
_GRACE = 1.0
_CLOSE_TIMEOUT = 5.0


class InProcessHost:
    """Runs cases on an agent object, in the event loop that it is made in."""

    alive = True
    """No case ends it without ending this process."""
    files: frozenset[Any] = frozenset()
    opened = FilesOpened()
    """Unknown: this process opens files for others, too."""

    def __init__(self, agent: AgentObject) -> None:
        self._agent = agent
        self._running: set[asyncio.Task[Message]] = set()
        self._closing = asyncio.Event()
        self._loaded: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        # Opened and closed in one task: connections of toolsets ask for that.
        self._serving = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        try:
            self._loaded.set_result(await self._agent.open())
        except AgentBrokenError as broken:
            self._loaded.set_exception(broken)
            self._loaded.exception()
            return
        await self._closing.wait()
        await self._agent.close()

    async def loaded(self, timeout: float) -> Json:
        """Wait for the AgentInfo as JSON. Raises AgentBrokenError, also after `timeout` seconds."""
        done, _ = await asyncio.wait({self._loaded}, timeout=timeout)
        if not done:
            raise AgentBrokenError(late_error(f"the agent was not opened within {timeout:g} s"))
        return self._loaded.result()

    def listen(self, on_console: OnConsole) -> None:
        """The agent prints where this process prints."""

    async def request(
        self,
        message: Message,
        timeout: float,
        on_event: OnEvent = lambda text: None,
        on_recorded: OnRecorded = lambda line: None,
        gated: GatedRequest | None = None,
    ) -> Message:
        """Run a case for at most `timeout` seconds; those that its model calls wait at `gated` do not count.

        Raises RequestFailedError, also after the time-out. Code that ignores being cancelled goes on, without
        further events. Raises RunStoppedError, too.
        """
        is_over = False
        gate = _gate_of(gated) if gated else None
        task = asyncio.create_task(
            self._agent.run(
                message,
                lambda text: None if is_over else on_event(text),
                lambda line: None if is_over else on_recorded(line),
                gate,
            )
        )
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            if await answered(task, timeout, gated):
                return task.result()
            raise await self._given_up(task, f"no response within {timeout:g} s")
        except (asyncio.CancelledError, RunStoppedError):
            await self._given_up(task, "")
            raise
        finally:
            is_over = True
            if gate is not None:
                gate.close()
            if gated is not None:
                gated.close()

    async def _given_up(self, task: asyncio.Task[Message], late: str) -> RequestFailedError:
        """Cancels a case; returns the error with its place."""
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=_GRACE)
        # Nobody waits for it again.
        self._running.discard(task)
        if not done:
            goes_on = "; the agent ignores that it is cancelled, and goes on in this process"
            return RequestFailedError(late_error(late + goes_on))
        failed = None if task.cancelled() else task.exception()
        if isinstance(failed, RequestFailedError):
            error = failed.error
            return RequestFailedError(late_error(late, error.traceback, error.where))
        return RequestFailedError(late_error(late))

    async def close(self) -> None:
        """Let the agent close what it opened; nothing happens where that was done."""
        await self.kill()
        self._closing.set()
        if not self._loaded.done():
            self._serving.cancel()
        done, _ = await asyncio.wait({self._serving}, timeout=_CLOSE_TIMEOUT)
        if not done:
            self._serving.cancel()
            warnings.warn(
                f"the agent was not closed within {_CLOSE_TIMEOUT:g} s", RuntimeWarning, stacklevel=2
            )
        elif not self._serving.cancelled() and (error := self._serving.exception()) is not None:
            # The results are in by then.
            warnings.warn(f"the agent could not be closed: {error!r}", RuntimeWarning, stacklevel=2)

    async def kill(self) -> None:
        """Cancel the cases that are under way."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=_GRACE)


def _gate_of(gated: GatedRequest) -> ModelGate:
    """The gate of a request as the agent's side sees it. Its threads may make calls as well."""
    loop = asyncio.get_running_loop()

    def send(call: Json) -> None:
        loop.call_soon_threadsafe(gated.on_message, call, lambda answer: gate.on_go(**answer))

    gate = ModelGate(gated.patterns, send, shares_loop=True)
    return gate


async def start_in_process(agent: Any, address: AgentAddress, timeout: float) -> StartedHost:
    """Open an agent object. `timeout` is that of a case, in seconds. Raises ValueError for an object that is
    no agent."""
    from evaltui.agents.in_process import AgentObject

    settings = HostSettings(address, timeout)
    host = InProcessHost(await AgentObject.of(agent, address.name, settings.started))
    loading = started_loading(host.loaded(settings.import_limit))
    return StartedHost(settings, host, loading, host.close)
