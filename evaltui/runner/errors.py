"""An exception of the user's code, told from the user's point of view."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from evaltui.core.events import Json

_HERE = Path(__file__).resolve().parents[1]
_LIBRARIES = tuple(
    {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def is_own_code(filename: str) -> bool:
    """Whether a file is the user's: not evaltui's, not a library's, not frozen into the interpreter."""
    if filename.startswith("<"):
        return False
    path = Path(filename).resolve()
    return not any(path.is_relative_to(place) for place in (*_LIBRARIES, _HERE))


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
