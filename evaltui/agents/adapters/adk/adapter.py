"""Runs a google-adk agent. All facts on ADK here are of version 2.13."""

from __future__ import annotations

import copy
import functools
import json
import sys
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.version import __version__
from google.adk.workflow import BaseNode
from google.genai import types
from opentelemetry import _logs, metrics, trace

from ....core.model.events import Json, Step
from ..base import (
    DEFAULT_APP_NAME,
    DEFAULT_USER_ID,
    AgentAdapter,
    AgentInfo,
    AgentInput,
    AgentLoadError,
    AgentSession,
    Reporter,
    SessionSpec,
    ToolInfo,
    close_quietly,
    source_places,
)
from .agents import (
    Toolsets,
    agents_below,
    find_agent,
    model_name,
)
from .calls import report, watch_calls
from .events import events_of, state_json

if TYPE_CHECKING:
    from google.adk.telemetry import TelemetryConfig


def agent_from_yaml(path: Path) -> BaseNode:
    """The agent of a `root_agent.yaml`.

    Raises AgentLoadError where ADK's own loader refuses it, and any error of the modules that it names.
    """
    # Only these agents need YAML, which is slow to import.
    from google.adk.agents.config_agent_utils import from_config

    try:
        return from_config(str(path))
    except (OSError, ValueError) as error:
        if error.__cause__ is not None:
            raise
        raise AgentLoadError(f"{path}: ADK cannot load this agent: {error}") from error


class AdkAdapter(AgentAdapter):
    """The adapter for an `App`, an agent, or a node that ADK's Runner accepts as its root.

    `agent_name` runs the agent of that name below the root as the root, within the same App. Raises
    AgentLoadError for another object, and for an unknown name.
    """

    input = AgentInput("google-adk", temporary_state=False)

    def __init__(self, agent: object, agent_name: str | None = None) -> None:
        root = agent.root_agent if isinstance(agent, App) else agent
        if not isinstance(root, BaseNode):
            raise AgentLoadError(
                f"the agent is a {type(root).__name__}; google-adk runs an App, an agent or a workflow node"
            )
        self._root = root if agent_name is None else find_agent(root, agent_name)
        app = agent if isinstance(agent, App) else App(name=DEFAULT_APP_NAME, root_agent=root)
        self._app = app.model_copy(update={"root_agent": self._root})
        self._agents = {self._root.name, *(agent.name for agent in agents_below(self._root))}
        self._toolsets = Toolsets()
        watch_calls()
        skip_import_of_remote_agents()

    async def open(self) -> AgentInfo:
        notes = await self._toolsets.open(self._root)
        return AgentInfo(
            name=self._root.name,
            framework="adk",
            version=f"google-adk {__version__}",
            model=model_name(self._root),
            tools=self._describe_tools(),
            sub_agents=tuple(agent.name for agent in agents_below(self._root)),
            plugins=tuple(plugin.name for plugin in self._app.plugins),
            notes=tuple(notes),
            places=source_places(self._functions()),
        )

    def _describe_tools(self) -> tuple[ToolInfo, ...]:
        """The tools of the agent and of those below it; for equal names the first."""
        infos: dict[str, ToolInfo] = {}
        for agent in (self._root, *agents_below(self._root)):
            for info in self._toolsets.describe_tools(agent):
                infos.setdefault(info.name, info)
        return tuple(infos.values())

    def _functions(self) -> dict[str, Any]:
        """The functions of all agents' tools by name; of equal names the root's counts."""
        agents = [*agents_below(self._root), self._root]
        return {
            name: function for agent in agents for name, function in self._toolsets.functions(agent).items()
        }

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AdkSession:
        # Services of its own, so that not even state of the app or the user reaches another case.
        runner = Runner(
            app=self._app,
            app_name=spec.app_name or None,
            session_service=InMemorySessionService(),
            artifact_service=InMemoryArtifactService(),
            memory_service=InMemoryMemoryService(),
        )
        session = await runner.session_service.create_session(
            app_name=runner.app_name,
            user_id=spec.user_id or DEFAULT_USER_ID,
            session_id=spec.session_id or str(uuid.uuid4()),
            state=copy.deepcopy(spec.state),
        )
        for event in events_of(past, self._root.name, self._agents):
            await runner.session_service.append_event(session, event)
        return AdkSession(runner, session, reporter)

    async def close(self) -> None:
        # Never `Runner.close`: it closes toolsets in other tasks, and plugins that other sessions use.
        await self._toolsets.close()
        for plugin in self._app.plugins:
            await close_quietly(f"plugin {plugin.name}", plugin.close)


class AdkSession(AgentSession):
    """One conversation, with its own runner and session service."""

    def __init__(self, runner: Runner, session: Session, reporter: Reporter) -> None:
        self._runner = runner
        self._sessions = runner.session_service
        self._app_name, self._user_id, self._id = session.app_name, session.user_id, session.id
        self._reporter = reporter

    async def send(self, content: Json) -> None:
        """Runs a turn. Raises what the agent raises, and TypeError for a content that JSON cannot hold."""
        # From JSON text, since bytes are base64 in JSON only.
        message = types.Content.model_validate_json(json.dumps(content))
        await self._require_nodes(message)
        events = self._runner.run_async(
            user_id=self._user_id, session_id=self._id, new_message=message, run_config=_run_config()
        )
        async with aclosing(events):
            async for event in events:
                report(self._reporter, event)

    async def _require_nodes(self, message: types.Content) -> None:
        """Raises ValueError for a response after which a workflow would start again.

        A workflow continues from its own notes on its nodes, which expected turns do not have.
        """
        ids = {part.function_response.id for part in message.parts or [] if part.function_response}
        if not ids or isinstance(self._runner.agent, BaseAgent):
            return
        session = await self._sessions.get_session(
            app_name=self._app_name, user_id=self._user_id, session_id=self._id
        )
        for event in session.events if session else ():
            if not event.node_info.path and any(call.id in ids for call in event.get_function_calls()):
                raise ValueError(
                    "a workflow cannot continue from expected turns. Run the case and continue from "
                    "its result, or send its turns again"
                )

    async def state(self) -> Json:
        """The session state. Raises TypeError with the path of a value that JSON cannot hold."""
        session = await self._sessions.get_session(
            app_name=self._app_name,
            user_id=self._user_id,
            session_id=self._id,
            # Without events, which would be copied.
            config=GetSessionConfig(num_recent_events=0),
        )
        return state_json(session.state) if session else {}

    async def close(self) -> None:
        await self._sessions.delete_session(
            app_name=self._app_name, user_id=self._user_id, session_id=self._id
        )


# Modules of OpenTelemetry's placeholder providers, which are used until a provider is set.
_PLACEHOLDERS = ("opentelemetry.trace", "opentelemetry.metrics", "opentelemetry._logs")


def _run_config() -> RunConfig:
    """ADK's own run config, with less telemetry where no provider receives it.

    ADK writes every request and response for OpenTelemetry, which takes an eighth of a turn's time, and only
    then looks for a receiver. The older of its two conventions skips that.
    """
    providers = trace.get_tracer_provider(), metrics.get_meter_provider(), _logs.get_logger_provider()
    # ADK 2.0 has neither the setting nor the newer convention.
    if "telemetry" in RunConfig.model_fields and all(
        type(provider).__module__.startswith(_PLACEHOLDERS) for provider in providers
    ):
        return RunConfig(telemetry=_short_telemetry())
    return RunConfig()


@functools.cache
def _short_telemetry() -> TelemetryConfig | None:
    """The config of the shorter convention; None for an ADK that has only one convention."""
    from google.adk.telemetry import TelemetryConfig

    try:
        return TelemetryConfig(genai_semconv_stability_opt_in="stable")
    except ValueError:
        return None


_REMOTE_AGENTS = "google.adk.agents.remote_a2a_agent"
# The module that defines its class.
_REMOTE_AGENT_CLASS = "google.adk.a2a.agent._remote_a2a_agent"
# The module in which ADK 2.13 checks in every turn whether a node is a remote agent.
_NODE_CHECK = "google.adk.workflow.utils._workflow_graph_utils"


class _RemoteAgentsBlocker(MetaPathFinder):
    """An import finder that fails the import of remote agents, as long as their module is not loaded."""

    def __init__(self, *, is_installed: bool) -> None:
        self._is_installed = is_installed

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname != _REMOTE_AGENTS or (self._is_installed and not _is_needless_import()):
            return
        # The error of this import without the a2a SDK, without the time that it takes.
        raise ModuleNotFoundError("No module named 'a2a'", name="a2a")


def _is_needless_import() -> bool:
    """Whether ADK imports the class only to check agents against it, when no agent can be of the class."""
    if _REMOTE_AGENT_CLASS in sys.modules:
        return False
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("importlib."):
        frame = frame.f_back
    return frame.f_globals.get("__name__") == _NODE_CHECK


@functools.cache
def skip_import_of_remote_agents() -> None:
    """Keeps ADK from importing its remote agents only to check that an agent is not remote.

    ADK 2.13 does so in every turn (`build_node`). With the a2a SDK, that takes a fifth of a second in the
    first turn, although no agent can be of a class that is not loaded. Without the SDK, Python does not
    remember that the import failed, which takes a quarter of a turn's time.
    """
    sys.meta_path.insert(0, _RemoteAgentsBlocker(is_installed=find_spec("a2a") is not None))
