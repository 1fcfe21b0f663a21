"""How agents and hosts fail: exceptions of the user's code and of recorded calls, as data and back."""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ..core.model.errors import NO_KEY, ErrorInfo, ErrorKind
from ..core.model.events import Json
from ..text.figures import counted
from .exception_kinds import kind_of, missing_key, nearest_first, refusal_in_words
from .own_code import EVALTUI, is_own_code

# In a host, evaltui has another name; recordings have its public one.
_PACKAGE = __name__.partition(".")[0]
# Characters.
_MAX_MESSAGE_LENGTH = 10_000
_MAX_TRACEBACK_LENGTH = 100_000
_MAX_EXCERPT_LENGTH = 200


class PlacedError(BaseException):
    """An exception that says itself where it happened: in no line of the user's code, but at a server."""

    where: str
    """The request, such as `POST http://127.0.0.1:8000/run_sse`."""
    server_traceback: str = ""
    """The traceback that the server has sent; "" where it has sent none."""


def describe_error(error: BaseException, agent_dir: Path | None = None) -> Json:
    """`type`, `message`, `traceback`, `where` (the innermost own frame) and `kind` of an exception as JSON
    data; where a model has no key, the message says which one and where to set it.

    Frames of evaltui and of the import machinery are left out of the traceback. Never raises: of an exception
    that cannot be printed, its type and place are left.
    """
    if isinstance(error, PlacedError):
        return {
            "type": type(error).__name__,
            "message": message_of(error),
            "traceback": cut_text(error.server_traceback, _MAX_TRACEBACK_LENGTH),
            "where": error.where,
            "kind": kind_of(error),
        }
    described = {
        "type": type(error).__name__,
        "message": cut_text(refusal_in_words(error), _MAX_MESSAGE_LENGTH) or message_of(error),
        "traceback": cut_text(_traceback(error), _MAX_TRACEBACK_LENGTH),
        "where": _where(error),
        "kind": kind_of(error),
    }
    if key := missing_key(error):
        folder = agent_dir.parent if agent_dir and agent_dir.is_file() else agent_dir
        env = f"{folder.resolve().name}/.env or " if folder else ""
        message = f"{key} is not set. Set it in {env}the environment."
        described |= {"type": NO_KEY, "message": message, "where": "", "kind": ErrorKind.CONFIG}
    return described


def message_of(error: BaseException) -> str:
    """The message of an exception, cut where it is too long; never raises.

    A syntax error's is without its file and line, which are its place.
    """
    try:
        if isinstance(error, SyntaxError) and isinstance(error.filename, str):
            message = str(error.msg)
        else:
            message = str(error)
    # `__str__` is the user's code, and may do anything.
    except BaseException as raised:
        return f"(no message: __str__ raised {type(raised).__name__})"
    return cut_text(message, _MAX_MESSAGE_LENGTH)


def cut_text(text: str, longest: int) -> str:
    """A text of at most about so many characters, fit for UTF-8."""
    if len(text) > longest:
        left_out = counted(len(text) - longest, "character")
        text = f"{text[: longest // 2]}\n… {left_out} …\n{text[-longest // 2 :]}"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def excerpt(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_EXCERPT_LENGTH else f"{line[:_MAX_EXCERPT_LENGTH]}…"


def _traceback(error: BaseException) -> str:
    try:
        report = traceback.TracebackException.from_exception(error, compact=True)
        for each in _reports(report):
            each.stack[:] = [frame for frame in each.stack if not _is_our_frame(frame)]
        return "".join(report.format()).rstrip()
    # The same; or there are too many exceptions in each other.
    except BaseException:
        stack = traceback.extract_tb(error.__traceback__)
        frames = [frame for frame in stack if not _is_our_frame(frame)]
        lines = ["Traceback (most recent call last):\n", *traceback.StackSummary.from_list(frames).format()]
        return "".join([*lines, f"{type(error).__name__}: {message_of(error)}"])


def _is_our_frame(frame: traceback.FrameSummary) -> bool:
    path = Path(frame.filename)
    return (
        frame.filename.startswith("<frozen importlib")
        or path.is_relative_to(EVALTUI)
        or path.parent.name == "importlib"
    )


def _reports(report: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """A report and those of the exceptions behind it and in it."""
    yield report
    for inner in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if inner is not None:
            yield from _reports(inner)


def _where(error: BaseException) -> str:
    filename = getattr(error, "filename", None) if isinstance(error, SyntaxError) else None
    if isinstance(error, SyntaxError) and isinstance(filename, str):
        return f"{Path(filename).name}:{error.lineno}"
    places = (_innermost_own_frame(exception.__traceback__) for exception in nearest_first(error))
    return next(filter(None, places), "")


def _innermost_own_frame(trace: TracebackType | None) -> str:
    place = ""
    for frame, line in traceback.walk_tb(trace):
        filename = frame.f_code.co_filename
        if is_own_code(filename):
            name = frame.f_code.co_name
            place = f"{Path(filename).name}:{line}" + ("" if name == "<module>" else f" in {name}")
    return place


class RecordedError(RuntimeError):
    """Stands for a recorded exception whose class is not there, or cannot be made from its message alone."""


def error_to_json(error: Exception) -> Json:
    """`type` with its module, `message`, `args` that differ from it, and `fields`: the attributes. Values
    that are no JSON are left out."""
    kind = type(error)
    module = re.sub(f"^{_PACKAGE}(?=[.])", "evaltui", kind.__module__)
    data: Json = {"type": f"{module}:{kind.__qualname__}", "message": message_of(error)}
    args = error.args
    if isinstance(error, OSError) and error.filename is not None and len(args) == _OS_ARGS:
        # The constructor takes it out of the arguments.
        args = *args, error.filename
    if args != (data["message"],) and _is_json(args):
        data["args"] = list(args)
    if _is_validation(kind) and _is_json(errors := error.errors(include_url=False)):  # type: ignore[attr-defined]
        data["errors"] = [error.title, errors]  # type: ignore[attr-defined]
    fields = {name: value for name, value in vars(error).items() if _is_json(value)}
    return data | ({"fields": fields} if fields else {})


_OS_ARGS = 2


def _is_validation(kind: Any) -> bool:
    """Whether a class is pydantic's error, which is made from its errors only."""
    return (kind.__module__, kind.__name__) == ("pydantic_core._pydantic_core", "ValidationError")


def _validation_error(kind: Any, title: str, errors: list[Json]) -> Exception:
    made: Exception = kind.from_exception_data(
        title, [{**item, "loc": tuple(item["loc"])} for item in errors]
    )
    return made


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except Exception:
        # Its encoder calls what the user's own classes say of themselves.
        return False
    return True


def error_from_json(data: Json) -> Exception:
    """An exception of the same class, where that is loaded: a recording makes nobody import anything.

    Else one that goes by the same name."""
    module, _, name = data["type"].partition(":")
    kind: Any = sys.modules.get(re.sub("^evaltui(?=[.])", _PACKAGE, module))
    for attribute in name.split("."):
        kind = getattr(kind, attribute, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            if "errors" in data and _is_validation(kind):
                return _validation_error(kind, *data["errors"])
            made = kind.__new__(kind, *data.get("args", (data["message"],)))
            vars(made).update(data.get("fields", {}))
            if str(made) == data["message"]:
                return made
        except Exception:  # noqa: S110
            # Some classes make their exceptions in ways of their own.
            pass
    stand_in: RecordedError = type(name.rpartition(".")[2], (RecordedError,), {})(data["message"])
    return stand_in


class CallNotMadeError(RuntimeError):
    """The run makes no more model calls."""


class _HostError(Exception):
    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(str(error))
        self.error = error


class AgentBrokenError(_HostError):
    """The agent cannot be imported or opened."""


class RequestFailedError(_HostError):
    """The agent raised while it worked on a request."""

    usages: Sequence[Json] = ()
    """Tokens of the attempts to ask a model, as `Reply.usages`."""


class HostLostError(_HostError):
    """The host died or stopped answering; what it was working on has no answer."""


class RunStoppedError(Exception):
    """No further model call of the run is made, so a request that needs one has no answer."""


def late_error(what: str, trace: str = "", where: str = "") -> ErrorInfo:
    """The error of work that took longer than its time-out."""
    return ErrorInfo("TimeoutError", what, trace, where, kind=ErrorKind.TIMEOUT)
