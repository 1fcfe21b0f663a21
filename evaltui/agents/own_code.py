"""Tells the user's own code from evaltui's and libraries', by its file."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

EVALTUI = Path(__file__).resolve().parents[1]
"""The folder of evaltui itself."""
_LIBRARY_NAMES = ("stdlib", "platstdlib", "purelib", "platlib")
# Libraries of the Pythons that other agents run in.
_LIBRARY_FOLDERS = re.compile(r"/(?:(?:site|dist)-packages|lib(?:64)?/python3\.\d+)/")
LIBRARIES = tuple({Path(sysconfig.get_path(name)).resolve() for name in _LIBRARY_NAMES})


def is_own_code(filename: str) -> bool:
    """Whether a file is the user's: not evaltui's, not a library's, not frozen into the interpreter."""
    if filename.startswith("<"):
        return False
    path = Path(filename).resolve()
    if _LIBRARY_FOLDERS.search(str(path)):
        return False
    return not any(path.is_relative_to(place) for place in (*LIBRARIES, EVALTUI))


def own_modules() -> list[str]:
    """The files of the user's that have been imported in this process, as absolute paths."""
    # A module may do anything when it is asked for an attribute.
    modules = [vars(module) for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    files = {file for module in modules if isinstance(file := module.get("__file__"), str)}
    return sorted(str(Path(file).resolve()) for file in own_files(files))


def own_files(files: Iterable[str]) -> list[str]:
    """The user's own files among many."""
    # A check of each of a thousand files on disk takes its time.
    places = (EVALTUI, *LIBRARIES, *map(sysconfig.get_path, _LIBRARY_NAMES))
    libraries = tuple(f"{place}{os.sep}" for place in places)
    return [
        file
        for file in files
        if not file.startswith(libraries) and not _LIBRARY_FOLDERS.search(file) and is_own_code(file)
    ]
