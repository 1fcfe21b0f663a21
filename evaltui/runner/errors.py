"""An exception of the user's code, told from the user's point of view."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType, TracebackType

from evaltui.core.events import Json

_HERE = Path(__file__).resolve().parents[1]
_LIBRARY_NAMES = ("stdlib", "platstdlib", "purelib", "platlib")
LIBRARIES = tuple({Path(sysconfig.get_path(name)).resolve() for name in _LIBRARY_NAMES})


def is_own_code(filename: str) -> bool:
    """Whether a file is the user's: not evaltui's, not a library's, not frozen into the interpreter."""
    if filename.startswith("<"):
        return False
    path = Path(filename).resolve()
    return not any(path.is_relative_to(place) for place in (*LIBRARIES, _HERE))


def own_modules() -> list[str]:
    """The files of the user's that have been imported in this process, as absolute paths."""
    # A module may do anything when it is asked for an attribute.
    modules = [vars(one) for one in list(sys.modules.values()) if isinstance(one, ModuleType)]
    files = {file for module in modules if isinstance(file := module.get("__file__"), str)}
    # There are a thousand and more of them, and looking at each on disk takes its time.
    libraries = tuple(f"{place}{os.sep}" for place in (*LIBRARIES, *map(sysconfig.get_path, _LIBRARY_NAMES)))
    suspects = (file for file in files if not file.startswith(libraries))
    return sorted(str(Path(file).resolve()) for file in suspects if is_own_code(file))


def describe_error(error: BaseException) -> Json:
    """`type`, `message`, `traceback` and `where` (the innermost own frame) of an exception as JSON data.

    Frames of evaltui and of the import machinery are left out of the traceback.
    """
    report = traceback.TracebackException.from_exception(error, compact=True)
    _drop_our_frames(report)
    return {
        "type": type(error).__name__,
        "message": str(error),
        "traceback": "".join(report.format()).rstrip(),
        "where": _where(error),
    }


def _drop_our_frames(report: traceback.TracebackException) -> None:
    for one in _chain(report):
        one.stack[:] = [
            frame
            for frame in one.stack
            if not frame.filename.startswith("<frozen importlib")
            and not Path(frame.filename).is_relative_to(_HERE)
            and Path(frame.filename).parent.name != "importlib"
        ]


def _chain(report: traceback.TracebackException) -> list[traceback.TracebackException]:
    links = [link for link in (report.__cause__, report.__context__) if link is not None]
    groups = report.exceptions or []
    return [report, *(one for link in (*links, *groups) for one in _chain(link))]


def _where(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if place := _innermost_own_frame(current.__traceback__):
            return place
        current = current.__cause__ or current.__context__
    return ""


def _innermost_own_frame(trace: TracebackType | None) -> str:
    place = ""
    for frame, line in traceback.walk_tb(trace):
        filename = frame.f_code.co_filename
        if is_own_code(filename):
            name = frame.f_code.co_name
            place = f"{Path(filename).name}:{line}" + ("" if name == "<module>" else f" in {name}")
    return place
