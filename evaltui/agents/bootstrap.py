"""The first file that the Python of a host runs: makes evaltui known there under a name of its own.

Run by its path, as `python -P -u bootstrap.py PROGRAM ARGUMENT…`, PROGRAM being a module of `agents`. That
Python is the agent's: evaltui need not be installed for it, and a module of the project may be called
`evaltui`, too. So the modules of a host import each other relatively, in a package named `NAME`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

NAME = "_evaltui"
PUBLIC_NAME = "evaltui"
_FOLDER = Path(__file__).resolve().parents[1]
_HERE = Path("agents", "bootstrap.py")


class _PublicName:
    """Finds `evaltui`, with what is in it, as the modules that the host itself uses.

    Whatever else of this name the agent's own Python finds, such as a module of the project, goes before.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if top != PUBLIC_NAME:
            return None
        if sys.modules.get(top) is not sys.modules[NAME] if rest else _is_other():
            return None
        if find_spec(_private(fullname)) is None:
            return None
        # Importing the base class of loaders takes every process of an agent a hundredth of a second.
        return ModuleSpec(fullname, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(_private(spec.name))
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just written the other name into it.
        module.__spec__ = self._specs.pop(PUBLIC_NAME + module.__name__.removeprefix(NAME))


def _is_other() -> bool:
    """Whether what the agent's own Python finds under the public name is not evaltui."""
    spec = PathFinder.find_spec(PUBLIC_NAME)
    if spec is None or spec.origin is None:
        return False
    return not any((Path(place) / _HERE).is_file() for place in spec.submodule_search_locations or ())


def _private(name: str) -> str:
    return NAME + name.removeprefix(PUBLIC_NAME)


def make_known() -> None:
    """Have evaltui found under its private name, and under its public one where nothing else is."""
    spec = spec_from_file_location(NAME, _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)])
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(package)
    sys.meta_path.insert(0, _PublicName())


def command(python: str, program: str, *arguments: str) -> list[str]:
    """The command that runs a module of `agents` in some Python."""
    return [python, "-P", "-u", __file__, program, *arguments]


def environment(python: Path | None, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables for a host: in another Python than evaltui's, as if its environment were active.

    `variables` are those of this process at an earlier time; None for those of now.
    """
    environ = dict(os.environ if variables is None else variables)
    if python is None:
        return environ
    # Where evaltui's own libraries are.
    environ.pop("PYTHONHOME", None)
    environ["PATH"] = os.pathsep.join(filter(None, [str(python.parent), environ.get("PATH")]))
    if (python.parent.parent / "pyvenv.cfg").is_file():
        environ["VIRTUAL_ENV"] = str(python.parent.parent)
    return environ


if __name__ == "__main__":
    make_known()
    importlib.import_module(f"{NAME}.agents.{sys.argv.pop(1)}").main()
