"""Finds and imports the user's code: an agent's folder, functions by path. Runs only in the child process."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ...files.folders import agent_folder, env_file
from ...files.packages import install_command
from ..errors import is_own_code
from .adapters.base import AgentAdapter, AgentLoadError


class _FromSource(SourceFileLoader):
    """Never trusts a `.pyc`: two saves within a second and of one size give a stale one."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code = self.source_to_code(self.get_data(path), path)
        assert isinstance(code, CodeType)
        return code


def _own_folder_finder(folder: str) -> FileFinder:
    if not folder or not Path(folder).is_dir() or not is_own_code(str(Path(folder) / "x.py")):
        raise ImportError(f"{folder} is not the user's own code")
    return FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromSource, SOURCE_SUFFIXES))


def import_agent(agent_dir: Path) -> Any:
    """The object that a directory, package or file offers as its agent.

    Looks for `app` (an ADK App) in the package and in its module `agent`, then for `root_agent` and
    `get_agent_async` in them, then for `root_agent.yaml`. Raises AgentLoadError with what to do, or whatever
    the agent's own code raises.
    """
    agent_dir = agent_dir.resolve()
    use_own_modules(agent_dir)
    try:
        found = _first_agent(agent_dir)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("google.adk") or error.name == "google":
            raise AgentLoadError(_needs_adk(agent_dir)) from error
        raise
    if found is None:
        raise AgentLoadError(_nothing_found(agent_dir))
    return found


def _needs_adk(agent: Path) -> str:
    version = ".".join(map(str, sys.version_info[:2]))
    command = install_command(agent_folder(agent), "google-adk", Path(sys.executable))
    return (
        f"this agent needs google-adk, which is not installed for Python {version} ({sys.prefix}): {command}"
    )


def use_own_modules(agent_dir: Path) -> None:
    """Have the agent's own modules found before any other, as they are now, with the environment they expect.

    Doing it again changes nothing.
    """
    load_env_file(agent_dir)
    if _own_folder_finder not in sys.path_hooks:
        sys.path_hooks.insert(0, _own_folder_finder)
        sys.path_importer_cache.clear()
    own = [str(folder) for folder in own_folders(agent_dir)]
    if sys.path[: len(own)] != own:
        sys.path[:0] = own


def own_folders(agent_dir: Path) -> list[Path]:
    """Where the agent's own modules are looked for before anything else."""
    own = agent_folder(agent_dir.resolve())
    return [own.parent, own]


def load_env_file(agent_dir: Path) -> None:
    """Set what the `.env` of an agent says. Raises AgentLoadError where nothing is there that reads it."""
    # As google-adk 2.13: values that are set already win.
    if os.environ.get("ADK_DISABLE_LOAD_DOTENV", "").lower() in ("1", "true"):
        return
    if (found := env_file(agent_dir)) is not None:
        try:
            from dotenv import load_dotenv
        except ModuleNotFoundError as error:
            raise AgentLoadError(
                f"{found}: python-dotenv is not installed for this Python. Run pip install python-dotenv, "
                "or set ADK_DISABLE_LOAD_DOTENV=1 to ignore the file"
            ) from error
        load_dotenv(found, override=False)


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
    if agent_dir.is_file():
        yield [_import(agent_dir.stem, agent_dir)]
        return
    if (agent_dir / "__init__.py").is_file():
        package = _import(agent_dir.name, agent_dir / "__init__.py")
        inner = getattr(package, "agent", None)
        yield [inner, package] if isinstance(inner, ModuleType) else [package]
    if (agent_dir / "agent.py").is_file():
        yield [_import(f"{agent_dir.name}.agent", agent_dir / "agent.py")]


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
        from .adapters.adk import agent_from_yaml
    except ModuleNotFoundError as error:
        raise AgentLoadError(_needs_adk(path)) from error
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


async def make_adapter(found: Any, agent_name: str | None) -> AgentAdapter:
    """The adapter for what was found; `get_agent_async` is awaited first.

    Raises AgentLoadError where no framework can drive it.
    """
    if inspect.isroutine(found) and found.__name__ == "get_agent_async":
        found = found()
        found = await found if inspect.isawaitable(found) else found
        # ADK's contract is a pair of the agent and what closes it; a bare agent is common.
        found = found[0] if isinstance(found, tuple) else found
    framework = _framework(found)
    if framework == "adk":
        from .adapters.adk import AdkAdapter

        return AdkAdapter(found, agent_name)
    if agent_name is not None:
        raise AgentLoadError(f"--agent {agent_name}: only google-adk agents have sub-agents")
    if framework == "native":
        from .adapters.native import NativeAdapter

        return NativeAdapter(found)
    if callable(found):
        from .adapters.function import FunctionAdapter

        return FunctionAdapter(found, getattr(found, "__name__", type(found).__name__))
    raise AgentLoadError(
        f"root_agent is a {type(found).__name__}, which evaltui cannot drive: it takes a google-adk agent "
        "or App, an evaltui.Agent, or a callable root_agent(message, session)"
    )


def _framework(found: Any) -> str:
    # By the names of the modules, so that no framework is imported to find out.
    homes = {base.__module__ for base in type(found).__mro__}
    if any(home == "google.adk" or home.startswith("google.adk.") for home in homes):
        return "adk"
    return "native" if f"{__package__}.native.agent" in homes else "other"


class FunctionNotFoundError(ImportError):
    """No function is at the path that was given; the message says where it was looked for."""


def find_function(module: str, name: str, agent_folder: Path) -> Callable[..., Any]:
    """The function `name` of a module in the agent's folder, beside it, or installed.

    Of an agent in `my_agent`, `my_agent.metrics`, `agent.metrics` (under which `adk eval` knows it) and
    `metrics` are the file `metrics.py` in its folder, which need not be a package. Raises
    FunctionNotFoundError, or whatever the module raises while it is imported.
    """
    folder = agent_folder.resolve()
    _make_importable(module, folder)
    found = [one for spelling in _spellings(module, folder.name) if (one := _imported(spelling)) is not None]
    for one in found:
        function = getattr(one, name, None)
        if callable(function):
            checked: Callable[..., Any] = function
            return checked
    raise FunctionNotFoundError(_missing(module, name, found, folder))


def _make_importable(module: str, folder: Path) -> None:
    use_own_modules(folder)
    if not (folder / "__init__.py").is_file() and folder.name not in sys.modules:
        # A package of this name that is installed would win over a plain folder, and so would its agent.py
        # in a folder that is called `agent`.
        spec = ModuleSpec(folder.name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[folder.name] = module_from_spec(spec)
    # The path may start further up: `agents.my_agent.metrics`.
    head = module.partition(".")[0]
    above = [str(one.parent) for one in folder.parents if one.name == head]
    sys.path += [one for one in above if one not in sys.path]


def _spellings(module: str, package: str) -> list[str]:
    head, _, rest = module.partition(".")
    if head != "agent":
        return [module]
    if not rest:
        # The module agent.py, and the package as `adk eval` calls it.
        return [f"{package}.agent", package]
    return list(dict.fromkeys([f"{package}.{rest}", module]))


def _imported(module: str) -> ModuleType | None:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # Only where it is this module that is missing, not one that it imports.
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return None
        raise


def _missing(module: str, name: str, found: list[ModuleType], folder: Path) -> str:
    if not found:
        return (
            f"no module {module}; searched in {folder} (as {folder.name}.… or agent.…), "
            f"in {folder.parent}, and in the installed packages"
        )
    last = found[-1]
    where = last.__file__ or last.__name__
    if hasattr(last, name):
        return f"{name} in {where} is not a function but of type {type(getattr(last, name)).__name__}"
    close = difflib.get_close_matches(name, [one for one in vars(last) if callable(getattr(last, one))], n=1)
    return f"{where} has no function {name}" + (f". Did you mean {close[0]}?" if close else "")
