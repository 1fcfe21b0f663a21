"""Hosts that are started before the pool of a run needs them, and import their agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evaltui.core.model.events import Json
from evaltui.core.model.variants import VARIANT_ERROR
from evaltui.files.agent_address import AgentAddress
from evaltui.runner.errors import AgentBrokenError
from evaltui.runner.parent.supervisor import Host, import_limit


@dataclass(frozen=True)
class HostSettings:
    """What every host of a run is started with."""

    agent: AgentAddress
    timeout: float
    """Seconds per case."""
    started: float = field(default_factory=time.monotonic)
    """A `time.monotonic()`, from which on the import of the agent takes its time."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What they have in their environment besides `environ`."""
    folder: Path | None = None
    """The folder that they work in; None for that of this process."""
    environ: Mapping[str, str] | None = None
    """The environment of this process; None for the one it has when a host starts."""

    @property
    def import_limit(self) -> float:
        """Seconds in which the agent has to be imported."""
        return import_limit(self.timeout)


@dataclass(frozen=True)
class StartedHost:
    """A host that is importing its agent. `close` is what is to be done with it in the end."""

    settings: HostSettings
    host: Host
    loading: asyncio.Task[Json]
    close: Callable[[Host], Awaitable[None]] = Host.close

    async def end(self) -> None:
        """End the host and whatever it has left behind; nothing happens where that was done."""
        await self.close(self.host)

    async def kill(self) -> None:
        """The same, by force."""
        await self.host.kill()


def spawn_host(settings: HostSettings) -> Host:
    """Start the process of a host, which imports nothing of the agent yet."""
    agent = settings.agent
    return Host(
        python=agent.python,
        problem=agent.problem,
        variables=settings.variables,
        folder=settings.folder,
        environ=settings.environ,
    )


def start_host(settings: HostSettings, host: Host | None = None) -> StartedHost:
    """Have a host import the agent, a new one or one that was spawned for these settings."""
    host = host or spawn_host(settings)
    return StartedHost(settings, host, begin_loading(host, settings))


class VariantError(ValueError):
    """Why an agent cannot be changed as its variant says, a sentence."""


async def require_variant(started: StartedHost) -> None:
    """Wait until the agent is there as its variant has it. Raises VariantError where it does not fit.

    Other errors of an agent are told by the run.
    """
    if started.settings.agent.variant is None:
        return
    try:
        await started.loading
    except AgentBrokenError as broken:
        if broken.error.type == VARIANT_ERROR:
            raise VariantError(broken.error.message) from broken


def begin_loading(
    host: Host, settings: HostSettings, after: Collection[asyncio.Task[None]] = ()
) -> asyncio.Task[Json]:
    """Have a host import the agent as soon as these tasks are done."""

    async def load() -> Json:
        if after:
            await asyncio.wait(after)
        return await host.load(settings.agent, settings.started, settings.import_limit)

    loading = asyncio.create_task(load())
    # Whoever needs the host hears of a broken agent; nobody may need it.
    loading.add_done_callback(lambda task: task.cancelled() or task.exception())
    return loading
