"""Versions of Python and of the packages that an agent imports, on this machine and on others."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from evaltui.project.interpreters import python_version
from evaltui.project.packages import site_packages

_PYTHON = "Python"


def versions_of(modules: Iterable[str], python: Path | None) -> dict[str, str]:
    """Versions by name of the packages that have any of these modules in a Python, and of Python itself."""
    names = {module.partition(".")[0] for module in modules}
    versions = {
        package.name: package.version
        for package in _installed(python)
        if not names.isdisjoint(_modules(package))
    }
    return {**versions, _PYTHON: _version(python)}


def _version(python: Path | None) -> str:
    """`3.12`: others are as good as the same."""
    version = sys.version_info[:2] if python is None else python_version(python)
    return ".".join(map(str, version))


def _installed(python: Path | None) -> Iterable[Distribution]:
    if python is None:
        return distributions()
    return distributions(path=[str(folder) for folder in site_packages(python)])


def _modules(package: Distribution) -> Collection[str]:
    """The names that a package is imported by."""
    listed = package.read_text("top_level.txt")
    if listed is not None:
        return listed.split()
    return {path.parts[0].removesuffix(".py") for path in package.files or () if path.suffix == ".py"}


def differing(versions: Mapping[str, str], python: Path | None) -> tuple[str, ...]:
    """Clauses such as `google-adk 2.12.0 instead of 2.13.0` on what a Python has otherwise, None for
    evaltui's own."""
    if not versions:
        return ()
    # Of two with one name, the first is imported.
    installed = {
        _key(package.name): package.version for package in reversed([*_installed(python)]) if package.name
    }
    if _PYTHON in versions:
        installed[_key(_PYTHON)] = _version(python)
    return tuple(_differing(versions, installed))


def _differing(versions: Mapping[str, str], installed: Mapping[str, str]) -> Iterator[str]:
    for name, version in sorted(versions.items()):
        here = installed.get(_key(name))
        if here is None:
            yield f"{name} is missing ({version})"
        elif here != version:
            yield f"{name} {here} instead of {version}"


def _key(name: str) -> str:
    """Names of packages are the same whatever their case and separators."""
    return re.sub(r"[-_.]+", "-", name).lower()
