"""Finds the user's functions for metrics and judges by their paths. Runs only in the child process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.model.errors import ErrorKind
from ..text.values import did_you_mean
from .own_modules import name_of, use_own_modules


class FunctionNotFoundError(ImportError):
    """There is no function at a path; the message says where it was searched."""

    error_kind = ErrorKind.CONFIG


def find_function(module: str, name: str, agent_folder: Path | None) -> Callable[..., Any]:
    """The function `name` of a module in the agent's folder, beside it, or installed.

    For an agent in `my_agent`, the paths `my_agent.metrics`, `agent.metrics` (as in `adk eval`) and `metrics`
    are the file `metrics.py` in its folder, which need not be a package. Without a folder the module is
    imported like any other, and this process is not changed. Raises FunctionNotFoundError, or any error of
    the module's import.
    """
    if agent_folder is None:
        return _installed_function(module, name)
    folder = agent_folder.resolve()
    _make_importable(module, folder)
    modules: list[ModuleType] = []
    for module_name in _module_names(module, folder.name, _package_name(folder)):
        if (imported := _imported(module_name)) is not None:
            modules.append(imported)
            function = getattr(imported, name, None)
            if callable(function):
                checked: Callable[..., Any] = function
                return checked
    raise FunctionNotFoundError(_missing(module, name, modules, folder))


def _installed_function(module: str, name: str) -> Callable[..., Any]:
    function = getattr(_imported(module), name, None)
    if not callable(function):
        raise FunctionNotFoundError(f"no function {module}:{name} that this process can import")
    checked: Callable[..., Any] = function
    return checked


def _make_importable(module: str, folder: Path) -> None:
    use_own_modules(folder)
    if not (folder / "__init__.py").is_file() and folder.name not in sys.modules:
        # A package of this name that is installed would win over a plain folder, and so would its agent.py
        # in a folder that is called `agent`.
        spec = ModuleSpec(folder.name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[folder.name] = module_from_spec(spec)
    head = module.partition(".")[0]
    is_of_folder = head not in (folder.name, "agent", *sys.modules)
    if (
        is_of_folder
        and (spec_in_folder := PathFinder.find_spec(head, [str(folder)]))
        and spec_in_folder.loader
    ):
        # Modules in the agent's folder go before installed ones.
        sys.modules[head] = module_from_spec(spec_in_folder)
        try:
            spec_in_folder.loader.exec_module(sys.modules[head])
        except BaseException:
            del sys.modules[head]
            raise
    # The path may start further up: `agents.my_agent.metrics`.
    above = [str(parent.parent) for parent in folder.parents if parent.name == head]
    sys.path += [path for path in above if path not in sys.path]


def _package_name(folder: Path) -> str:
    """The import name of an agent's package, also where the agent is a module in it."""
    name = name_of(folder).name
    holds_more = name.split(".")[-2:-1] == [folder.name] and not (folder / folder.name).is_dir()
    return name.rpartition(".")[0] if holds_more else name


def _module_names(module: str, folder: str, package: str) -> list[str]:
    """The names under which to import a module; `package` is that of the agent in its `folder`."""
    head, _, rest = module.partition(".")
    if head not in ("agent", folder):
        return [module]
    if not rest:
        # The module agent.py, and the package as `adk eval` calls it.
        return [f"{package}.agent", package] if head == "agent" else [package]
    return list(dict.fromkeys([f"{package}.{rest}", module]))


def _imported(module: str) -> ModuleType | None:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # Only where this module is missing, not a module that it imports.
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return None
        raise


def _missing(module: str, name: str, modules: list[ModuleType], folder: Path) -> str:
    if not modules:
        return (
            f"no module {module}; searched in {folder} (as {folder.name}.… or agent.…), "
            f"in {folder.parent}, and in the installed packages"
        )
    last = modules[-1]
    where = last.__file__ or last.__name__
    if hasattr(last, name):
        return f"{name} in {where} is not a function but of type {type(getattr(last, name)).__name__}"
    functions = [attribute for attribute in vars(last) if callable(getattr(last, attribute))]
    return f"{where} has no function {name}{did_you_mean(name, functions)}"
