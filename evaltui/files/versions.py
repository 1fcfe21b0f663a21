"""Versions of the packages that an agent imports, on this machine and on others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version
from pathlib import Path

from evaltui.files.packages import site_packages


def versions_of(modules: Iterable[str], python: Path | None) -> dict[str, str]:
    """By name, the packages that have any of these modules in a Python, None for evaltui's own."""
    names = {module.partition(".")[0] for module in modules}
    if python is None:
        found = distributions()
    else:
        found = distributions(path=[str(one) for one in site_packages(python)])
    return {one.name: one.version for one in found if not names.isdisjoint(_modules(one))}


def _modules(package: Distribution) -> Collection[str]:
    """The names that a package is imported by."""
    listed = package.read_text("top_level.txt")
    if listed is not None:
        return listed.split()
    return {path.parts[0].removesuffix(".py") for path in package.files or () if path.suffix == ".py"}


def differing(versions: Mapping[str, str]) -> tuple[str, ...]:
    """Clauses such as `google-adk 2.12.0 instead of 2.13.0` on what this Python has otherwise."""
    return tuple(_differing(versions))


def _differing(versions: Mapping[str, str]) -> Iterator[str]:
    for name, wanted in sorted(versions.items()):
        try:
            if (found := version(name)) != wanted:
                yield f"{name} {found} instead of {wanted}"
        except PackageNotFoundError:
            yield f"{name} is missing ({wanted})"
