"""Runs an agent object in the process that created it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..core.model.errors import ErrorInfo
from ..core.model.events import Json
from .adapters.base import AgentLoadError
from .case_run import EventLine, LoadedAgent
from .errors import AgentBrokenError, RequestFailedError, describe_error
from .loading import make_adapter
from .model_gate import ModelGate, gating
from .protocol import Message, encode


class AgentObject:
    """An agent that was handed over as an object. `t0` is the `time.monotonic()` that events count from."""

    def __init__(self, agent: LoadedAgent, t0: float) -> None:
        self._agent = agent
        self._t0 = t0

    @classmethod
    async def of(cls, agent_object: Any, agent_name: str | None, t0: float) -> AgentObject:
        """Wraps an agent object. Raises ValueError for an object that is no agent, and for an unknown agent
        name."""
        try:
            return cls(LoadedAgent(await make_adapter(agent_object, agent_name)), t0)
        except AgentLoadError as error:
            raise ValueError(str(error)) from error

    async def open(self) -> Json:
        """Opens the agent and returns the AgentInfo as JSON. Called in the task that will also call `close`.
        Raises AgentBrokenError."""
        try:
            return await self._agent.open()
        except Exception as error:
            raise AgentBrokenError(ErrorInfo.from_json(describe_error(error))) from error

    async def run(
        self,
        request: Message,
        on_event: Callable[[str], None],
        on_recorded: Callable[[Json], None],
        gate: ModelGate | None = None,
    ) -> Message:
        """Runs a case; `on_event` gets each event as JSON text, and model calls go through `gate`.

        Raises RequestFailedError, also where it is cancelled: its error says where the agent was.
        """

        def send(event: Json) -> int:
            text = encode(event).decode("ascii").rstrip("\n")
            on_event(text)
            return len(text)

        try:
            with gating(gate):
                answer = await self._agent.run(_copied(request), EventLine(self._t0, send), on_recorded)
            return _copied(answer)
        except KeyboardInterrupt:
            raise
        # Also SystemExit, which would end the program that evaluates.
        except BaseException as error:
            raise RequestFailedError(ErrorInfo.from_json(describe_error(error))) from error

    async def close(self) -> None:
        """Closes the agent."""
        await self._agent.adapter.close()


def _copied(message: Message) -> Message:
    """A deep copy of a message, as another process would receive it."""
    copied: Message = json.loads(encode(message))
    return copied
