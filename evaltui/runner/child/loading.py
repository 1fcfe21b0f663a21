"""Finds and imports an agent, and picks the adapter that drives it. Runs only in the child process."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ...files.folders import agent_folder
from ...files.packages import install_command
from ...text.values import did_you_mean
from ..protocol import Message
from .adapters.base import AgentAdapter, AgentLoadError
from .adapters.changes import AppliedChanges
from .own_modules import load_env_file, name_of, use_own_modules
from .variants import finish_variant


def load_agent(load: Message) -> Any:
    """The agent that a message `load` names: imported, or behind a network.

    Raises AgentLoadError, or whatever the agent's own code raises.
    """
    return _remote_agent(load) if load["url"] else import_agent(Path(load["agent_dir"]), load["module"])


def import_agent(agent_dir: Path, module: str = "") -> Any:
    """The object that a directory, package or file offers as its agent.

    Looks for `app` (an ADK App) in the package and in its module `agent`, then for `root_agent` and
    `get_agent_async` in them, then for `root_agent.yaml`. `module` is the dotted name that it is imported by,
    "" for the usual one; of `name:attribute` the agent is the attribute. Raises AgentLoadError with what to
    do, or whatever the agent's own code raises.
    """
    agent_dir = agent_dir.resolve()
    name, _, attribute = module.partition(":")
    use_own_modules(agent_dir, name)
    try:
        found = _attribute(agent_dir, name, attribute) if attribute else _first_agent(agent_dir)
    except ModuleNotFoundError as error:
        package = _package(error.name or "")
        if package is None:
            raise
        raise AgentLoadError(_needs(package, agent_dir)) from error
    if found is None:
        raise AgentLoadError(_nothing_found(agent_dir))
    return found


# What is to be installed where a module of a framework is missing.
_PACKAGES = {
    "agents": "openai-agents",
    "google": "google-adk",
    "langchain": "langchain",
    "langchain_core": "langchain-core",
    "langgraph": "langgraph",
    "pydantic_ai": "pydantic-ai",
}


def _package(module: str) -> str | None:
    """The framework that is missing; None where it is a part of one that is there, or anything else."""
    return _PACKAGES.get("google" if module.startswith("google.adk") else module)


def _needs(package: str, agent: Path) -> str:
    version = ".".join(map(str, sys.version_info[:2]))
    command = install_command(agent_folder(agent), package, Path(sys.executable))
    missing = f"{package}, which is not installed for Python {version} ({sys.prefix})"
    return f"this agent needs {missing}: {command}"


def _attribute(agent_dir: Path, name: str, attribute: str) -> Any:
    """The agent that is an attribute of a module: `desk`, `Desk.agent`. Raises AgentLoadError."""
    is_package = agent_dir.is_dir() and (agent_dir / "__init__.py").is_file()
    file = agent_dir / "__init__.py" if is_package else agent_dir
    found: Any = importlib.import_module(name) if file.is_dir() else _import(name, file)
    for part in attribute.split("."):
        if not hasattr(found, part):
            owner = getattr(found, "__name__", type(found).__name__)
            hint = did_you_mean(part, [one for one in dir(found) if not one.startswith("_")])
            raise AgentLoadError(f"{name}:{attribute}: {owner} has no {part}{hint}")
        found = getattr(found, part)
    if found is None:
        raise AgentLoadError(f"{name}:{attribute} is None")
    return found


def _first_agent(agent_dir: Path) -> Any:
    for modules in _modules(agent_dir):
        # An App has plugins and settings that its root agent alone has not, so it goes first in all of them.
        apps = [app for module in modules if _is_app(app := getattr(module, "app", None))]
        roots = [
            getattr(module, name, None) for module in modules for name in ("root_agent", "get_agent_async")
        ]
        # A submodule is an attribute of its package too.
        found = [one for one in (*apps, *roots) if one is not None and not isinstance(one, ModuleType)]
        if found:
            return found[0]
    if (agent_dir / "root_agent.yaml").is_file():
        return _from_yaml(agent_dir / "root_agent.yaml")
    return None


def _is_app(found: Any) -> bool:
    # By names, so that google-adk is not imported to find out.
    kinds = type(found).__mro__
    return any(kind.__name__ == "App" and kind.__module__.startswith("google.adk.") for kind in kinds)


def _modules(agent_dir: Path) -> Iterator[list[ModuleType]]:
    """The modules that may define the agent; what comes later is imported only if nothing was in the earlier.

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
        raise AgentLoadError(_needs("google-adk", path)) from error
    return agent_from_yaml(path)


def _nothing_found(agent_dir: Path) -> str:
    if not agent_dir.exists():
        return f"{agent_dir} does not exist"
    looked = [name for name in ("__init__.py", "agent.py") if (agent_dir / name).is_file()]
    if agent_dir.is_dir() and not looked:
        return f"{agent_dir} holds no agent: it has no agent.py, __init__.py or root_agent.yaml"
    where = " and ".join(looked) or agent_dir.name
    verb = "define" if len(looked) > 1 else "defines"
    return f"{where} in {agent_dir} {verb} no root_agent, app or get_agent_async"


@dataclass(frozen=True)
class RemoteAgent:
    """An agent behind a network: there is nothing to import but the way to it."""

    adapter: AgentAdapter


def _remote_agent(load: Message) -> RemoteAgent:
    """The agent at the `url` of a message `load`; the variables of its `headers` may be in the `.env` of its
    folder.

    Nothing is asked yet. Raises AgentLoadError.
    """
    load_env_file(Path(load["agent_dir"]))
    url: str = load["url"]
    headers = [(name, variable) for name, variable in load["headers"]]
    if url.startswith("a2a:"):
        return RemoteAgent(_a2a_adapter(url.removeprefix("a2a:"), headers))
    from .adapters.remote.adk_api import AdkApiAdapter

    return RemoteAgent(AdkApiAdapter(url, headers))


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
    found: Any, agent_name: str | None, applied: AppliedChanges | None = None
) -> AgentAdapter:
    """The adapter for what was found; `get_agent_async` is awaited first, and what the variant of `applied`
    changes of the agent is changed.

    Raises AgentLoadError where no framework can drive it.
    """
    if isinstance(found, RemoteAgent):
        if agent_name is not None:
            raise AgentLoadError(f"--agent {agent_name}: an agent behind a network is run as it is served")
        return found.adapter
    if inspect.isroutine(found) and found.__name__ == "get_agent_async":
        found = found()
        found = await found if inspect.isawaitable(found) else found
        # ADK's contract is a pair of the agent and what closes it; a bare agent is common.
        found = found[0] if isinstance(found, tuple) else found
    framework = _framework(found)
    if applied is not None:
        finish_variant(applied, found, framework)
    if framework == "adk":
        from .adapters.adk.adapter import AdkAdapter

        return AdkAdapter(found, agent_name)
    if framework == "openai-agents":
        from .adapters.openai_agents.adapter import OpenAIAgentsAdapter

        return OpenAIAgentsAdapter(found, agent_name)
    if agent_name is not None:
        raise AgentLoadError(
            f"--agent {agent_name}: only agents of google-adk and openai-agents have sub-agents"
        )
    if framework == "native":
        from .adapters.native import NativeAdapter

        return NativeAdapter(found)
    if framework == "langgraph":
        from .adapters.langgraph.adapter import LangGraphAdapter

        return LangGraphAdapter(found)
    if framework == "pydantic-ai":
        from .adapters.pydantic_ai.adapter import PydanticAIAdapter

        return PydanticAIAdapter(found)
    if callable(found):
        from .adapters.function import FunctionAdapter

        return FunctionAdapter(found, getattr(found, "__name__", type(found).__name__))
    raise AgentLoadError(
        f"root_agent is a {type(found).__name__}, which evaltui cannot drive: it takes a google-adk agent "
        "or App, an agent of the OpenAI Agents SDK or of Pydantic AI, an evaltui.Agent, or a callable "
        "root_agent(message, session)"
    )


# Where the classes of agents come from.
_HOMES = {
    "agents.agent": "openai-agents",
    "google.adk": "adk",
    "langgraph": "langgraph",
    "pydantic_ai": "pydantic-ai",
    f"{__package__}.native.agent": "native",
}


def _framework(found: Any) -> str:
    # By the names of the modules, so that no framework is imported to find out.
    for kind in type(found).__mro__:
        for home, framework in _HOMES.items():
            if f"{kind.__module__}.".startswith(f"{home}."):
                # A module of the user's own may be called like that.
                return framework if framework != "openai-agents" or hasattr(kind, "as_tool") else "other"
    return "other"
