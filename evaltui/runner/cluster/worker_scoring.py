"""Custom metrics and judges on a worker: what the run asks for is computed as it is on one machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evaltui.core.model.events import Json
from evaltui.files.folders import agent_folder
from evaltui.runner.cluster.messages import Printed, Score, Scored
from evaltui.runner.cluster.remote_gate import RemoteGate
from evaltui.runner.errors import AgentBrokenError, HostLostError, RequestFailedError, RunStoppedError
from evaltui.runner.parent.scoring_hosts import LocalScoring
from evaltui.runner.parent.starting import HostSettings
from evaltui.runner.protocol import FilesOpened


class WorkerScoring:
    """Of one run. `put` tells the run."""

    def __init__(
        self,
        settings: HostSettings,
        gate: RemoteGate | None,
        put: Callable[[Printed | Scored, int], None],
        *,
        is_here: bool,
    ) -> None:
        """`is_here` is whether the worker is on the machine of the run."""
        self._agent = settings.agent
        self._is_here = is_here
        self._put = put
        # How many are judged at once is known to the run.
        self._hosts = LocalScoring(
            settings.agent, 1, settings.timeout, self._printed, gate, settings.variables, settings.folder
        )
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def begin(self, message: Score) -> None:
        """Answer a request."""
        self._tasks[message.number] = asyncio.create_task(self._answer(message))

    def leave(self, number: int) -> None:
        """Nobody waits for an answer any more."""
        if task := self._tasks.get(number):
            task.cancel()

    async def close(self) -> None:
        """The run is over."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._hosts.close()

    async def _answer(self, message: Score) -> None:
        answer: Json | Exception
        try:
            folder = str(agent_folder(self._agent.folder).resolve())
            answer = await self._hosts.answer(message.kind, {**message.request, "agent_folder": folder})
        except (AgentBrokenError, RequestFailedError, HostLostError, RunStoppedError) as failed:
            answer = failed
        finally:
            del self._tasks[message.number]
        opened = self._hosts.opened if self._is_here else FilesOpened()
        self._put(Scored(message.number, answer, opened), len(str(answer)))

    def _printed(self, source: str, line: str) -> None:
        self._put(Printed(None, None, source, line), len(line))
