"""Finds and imports an agent, and chooses its adapter: in the child process, or where an object was made."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.model.errors import ErrorInfo
from ..core.model.events import Json
from ..core.model.variants import Change
from ..project.folders import agent_folder
from ..project.packages import install_command
from ..text.values import did_you_mean
from .adapters.base import AgentAdapter, AgentLoadError
from .adapters.function import FunctionAdapter
from .case_run import EventLine, LoadedAgent
from .errors import AgentBrokenError, RequestFailedError, describe_error
from .model_gate import ModelGate, gating
from .own_modules import load_env_file, name_of, use_own_modules
from .protocol import Message, encode
from .variants import AppliedChanges, VariantError

if TYPE_CHECKING:
    from .native.agent import Agent


def load_agent(load: Message) -> Any:
    """The agent of a message `load`: imported, or behind a network.

    Raises AgentLoadError, or any error of the agent's own code.
    """
    return _remote_agent(load) if load["url"] else import_agent(Path(load["agent_dir"]), load["module"])


def import_agent(agent_dir: Path, module: str = "") -> Any:
    """The agent object of a directory, package or file.

    Looks for `app` (an ADK App) in the package and in its module `agent`, then for `root_agent` and
    `get_agent_async` in them, then for `root_agent.yaml`. `module` is the dotted name to import it by, "" for
    the usual one; with `name:attribute` the agent is that attribute. Raises AgentLoadError with what to do,
    or any error of the agent's own code.
    """
    agent_dir = agent_dir.resolve()
    name, _, attribute = module.partition(":")
    use_own_modules(agent_dir, name)
    try:
        agent = _attribute(agent_dir, name, attribute) if attribute else _first_agent(agent_dir)
    except ModuleNotFoundError as error:
        package = _package(error.name or "")
        if package is None:
            raise
        raise AgentLoadError(_missing_package(package, agent_dir)) from error
    if agent is None:
        raise AgentLoadError(_no_agent_message(agent_dir))
    return agent


# The package to install where a module of a framework is missing.
_PACKAGES = {
    "agents": "openai-agents",
    "google": "google-adk",
    "langchain": "langchain",
    "langchain_core": "langchain-core",
    "langgraph": "langgraph",
    "pydantic_ai": "pydantic-ai",
}


def _package(module: str) -> str | None:
    """The framework package of a missing module; None where the framework is there, or for another module."""
    return _PACKAGES.get("google" if module.startswith("google.adk") else module)


def _missing_package(package: str, agent: Path) -> str:
    version = ".".join(map(str, sys.version_info[:2]))
    command = install_command(agent_folder(agent), package, Path(sys.executable))
    missing = f"{package}, which is not installed for Python {version} ({sys.prefix})"
    return f"this agent needs {missing}: {command}"


def _attribute(agent_dir: Path, name: str, attribute: str) -> Any:
    """The agent that is an attribute of a module: `desk`, `Desk.agent`. Raises AgentLoadError."""
    is_package = agent_dir.is_dir() and (agent_dir / "__init__.py").is_file()
    file = agent_dir / "__init__.py" if is_package else agent_dir
    value: Any = importlib.import_module(name) if file.is_dir() else _import(name, file)
    for part in attribute.split("."):
        if not hasattr(value, part):
            owner = getattr(value, "__name__", type(value).__name__)
            hint = did_you_mean(part, [name for name in dir(value) if not name.startswith("_")])
            raise AgentLoadError(f"{name}:{attribute}: {owner} has no {part}{hint}")
        value = getattr(value, part)
    if value is None:
        raise AgentLoadError(f"{name}:{attribute} is None")
    return value


def _first_agent(agent_dir: Path) -> Any:
    for modules in _modules(agent_dir):
        # An App goes first in all modules: it has plugins and settings that its root agent lacks.
        apps = [app for module in modules if _is_app(app := getattr(module, "app", None))]
        roots = [
            getattr(module, name, None) for module in modules for name in ("root_agent", "get_agent_async")
        ]
        # A submodule is an attribute of its package too.
        candidates = [
            agent for agent in (*apps, *roots) if agent is not None and not isinstance(agent, ModuleType)
        ]
        if candidates:
            return candidates[0]
    if (agent_dir / "root_agent.yaml").is_file():
        return _from_yaml(agent_dir / "root_agent.yaml")
    return None


def _is_app(candidate: Any) -> bool:
    # Compares names, so that google-adk need not be imported.
    kinds = type(candidate).__mro__
    return any(kind.__name__ == "App" and kind.__module__.startswith("google.adk.") for kind in kinds)


def _modules(agent_dir: Path) -> Iterator[list[ModuleType]]:
    """The modules that may define the agent, in groups. A later group is imported only if the earlier ones
    have no agent.

    As in `adk eval`, the module that a package imports as its `agent` goes before the package itself.
    """
    name = name_of(agent_dir).name
    if agent_dir.is_file():
        yield [_import(name, agent_dir)]
        return
    if (agent_dir / "__init__.py").is_file():
        package = _import(name, agent_dir / "__init__.py")
        inner = getattr(package, "agent", None)
        yield [inner, package] if isinstance(inner, ModuleType) else [package]
    if (agent_dir / "agent.py").is_file():
        yield [_import(f"{name}.agent", agent_dir / "agent.py")]


def _import(name: str, file: Path) -> ModuleType:
    module = importlib.import_module(name)
    if Path(module.__file__ or "").resolve() != file:
        raise AgentLoadError(
            f"{file} cannot be imported as {name}: {module.__file__ or 'a built-in module'} has that name; "
            "rename the agent's folder"
        )
    return module


def _from_yaml(path: Path) -> Any:
    try:
        from .adapters.adk.adapter import agent_from_yaml
    except ModuleNotFoundError as error:
        raise AgentLoadError(_missing_package("google-adk", path)) from error
    return agent_from_yaml(path)


def _no_agent_message(agent_dir: Path) -> str:
    if not agent_dir.exists():
        return f"{agent_dir} does not exist"
    files = [name for name in ("__init__.py", "agent.py") if (agent_dir / name).is_file()]
    if agent_dir.is_dir() and not files:
        return f"{agent_dir} holds no agent: it has no agent.py, __init__.py or root_agent.yaml"
    where = " and ".join(files) or agent_dir.name
    verb = "define" if len(files) > 1 else "defines"
    return f"{where} in {agent_dir} {verb} no root_agent, app or get_agent_async"


def _remote_agent(load: Message) -> AgentAdapter:
    """The adapter of the agent at the `url` of a message `load`, since nothing is imported; the variables of
    its `headers` may be in the `.env` of its folder.

    It sends no request yet. Raises AgentLoadError.
    """
    load_env_file(Path(load["agent_dir"]))
    url: str = load["url"]
    headers = [(name, variable) for name, variable in load["headers"]]
    if url.startswith("a2a:"):
        return _a2a_adapter(url.removeprefix("a2a:"), headers)
    from .adapters.remote.adk_api import AdkApiAdapter

    return AdkApiAdapter(url, headers)


def _a2a_adapter(url: str, headers: Sequence[tuple[str, str]]) -> AgentAdapter:
    try:
        from .adapters.remote.a2a import A2AAdapter
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("a2a", "google"):
            raise
        command = install_command(Path(sys.prefix), "'evaltui[a2a]'", Path(sys.executable))
        raise AgentLoadError(f"A2A agents need a2a-sdk 1.0 or later: {command}") from error
    return A2AAdapter(url, headers)


async def make_adapter(
    agent: Any, agent_name: str | None, applied: AppliedChanges | None = None
) -> AgentAdapter:
    """The adapter of an agent object. Awaits `get_agent_async` first, and applies the changes of the variant
    to the agent.

    Raises AgentLoadError where no framework can run it.
    """
    if isinstance(agent, AgentAdapter):
        if agent_name is not None:
            raise AgentLoadError(f"--agent {agent_name}: an agent behind a network is run as it is served")
        return agent
    if inspect.isroutine(agent) and agent.__name__ == "get_agent_async":
        agent = agent()
        agent = await agent if inspect.isawaitable(agent) else agent
        # In ADK it returns the agent and an exit stack; many return only the agent.
        agent = agent[0] if isinstance(agent, tuple) else agent
    framework = _framework_of(agent)
    if applied is not None:
        change_agent(applied, agent, framework.name if framework else "")
    if framework is not None and framework.has_sub_agents:
        return framework.adapter(agent, agent_name)
    if agent_name is not None:
        names = " and ".join(framework.title for framework in _FRAMEWORKS if framework.has_sub_agents)
        raise AgentLoadError(f"--agent {agent_name}: only agents of {names} have sub-agents")
    if framework is not None:
        return framework.adapter(agent)
    if callable(agent):
        return FunctionAdapter(agent, getattr(agent, "__name__", type(agent).__name__))
    raise AgentLoadError(
        f"root_agent is a {type(agent).__name__}, which evaltui cannot drive: it takes a google-adk agent "
        "or App, an agent of the OpenAI Agents SDK or of Pydantic AI, an evaltui.Agent, or a callable "
        "root_agent(message, session)"
    )


class _Framework(NamedTuple):
    """A framework whose agents an adapter drives."""

    name: str
    title: str
    """Its name in messages."""
    home: str
    """The module of its agent classes, or a package around it."""
    adapter_path: str
    """The module below `adapters`, and the class of the adapter in it: `function:FunctionAdapter`."""
    has_sub_agents: bool = False
    """Whether an agent below the root can be run as the root."""
    method: str = ""
    """A method of its agents, where users may have modules of the same name."""

    def adapter(self, *args: Any) -> AgentAdapter:
        """Imports the adapter, and makes one for an agent."""
        module, _, name = self.adapter_path.partition(":")
        adapter: AgentAdapter = getattr(importlib.import_module(f".adapters.{module}", __package__), name)(
            *args
        )
        return adapter


_FRAMEWORKS = (
    _Framework("adk", "google-adk", "google.adk", "adk.adapter:AdkAdapter", has_sub_agents=True),
    _Framework(
        "openai-agents",
        "openai-agents",
        "agents.agent",
        "openai_agents.adapter:OpenAIAgentsAdapter",
        has_sub_agents=True,
        method="as_tool",
    ),
    _Framework("native", "evaltui", f"{__package__}.native.agent", "native:NativeAdapter"),
    _Framework("langgraph", "langgraph", "langgraph", "langgraph.adapter:LangGraphAdapter"),
    _Framework("pydantic-ai", "pydantic-ai", "pydantic_ai", "pydantic_ai.adapter:PydanticAIAdapter"),
)


def _framework_of(agent: Any) -> _Framework | None:
    """The framework of an agent, told by the modules of its classes: none is imported for it."""
    for kind in type(agent).__mro__:
        for framework in _FRAMEWORKS:
            is_of_it = f"{kind.__module__}.".startswith(f"{framework.home}.")
            if is_of_it and (not framework.method or hasattr(kind, framework.method)):
                return framework
    return None


def change_agent(applied: AppliedChanges, agent: Any, framework: str) -> None:
    """Applies the variant's changes of model, config and instruction to the agent object. Raises VariantError
    where the agent has no such setting."""
    of_object = [
        change for change in applied.variant.changes if change.kind in ("model", "config", "instruction")
    ]
    if of_object and framework == "adk":
        from .adapters.adk.agents import change_agents

        change_agents(agent, of_object, applied)
    elif of_object and framework == "native":
        _change_native_agent(agent, of_object, applied)
    elif of_object:
        what = f"an agent of {framework}" if framework else "a function"
        raise VariantError(
            f"{of_object[0].key} cannot be changed in {what}, only env, git and agent can: read the model or "
            "prompt from an environment variable"
        )
    applied.require_some()


def _change_native_agent(agent: Agent, changes: Sequence[Change], applied: AppliedChanges) -> None:
    """Applies changes to a native agent. Raises VariantError for an unknown agent or field name."""
    for change in changes:
        if change.kind != "config" and change.name not in ("", agent.name):
            hint = did_you_mean(change.name, [agent.name]) or f". The agent is {agent.name}"
            raise VariantError(f"{change.key}: no agent {change.name!r}{hint}")
        match change.kind:
            case "model":
                before = agent.model if isinstance(agent.model, str) else agent.model.name
                if applied.set(f"{agent.name}.model", before, str(change.value)):
                    agent.model = str(change.value)
            case "config":
                from .model_config import field_of, with_field

                config = with_field(agent.config, change.name, change.value)
                before, after = (field_of(side, change.name) for side in (agent.config, config))
                if applied.set(f"{agent.name}.{change.key}", before, after):
                    agent.config = config
            case _:
                if applied.set(f"{agent.name}.instruction", agent.instruction, str(change.value)):
                    agent.instruction = str(change.value)


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
