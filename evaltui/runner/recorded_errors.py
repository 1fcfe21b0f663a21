"""Exceptions that models and tools raised, as JSON data and back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from evaltui.core.model.events import Json
from evaltui.runner.errors import message_of


class RecordedError(RuntimeError):
    """Stands for a recorded exception whose class is not there, or cannot be made from its message alone."""


def error_to_json(error: Exception) -> Json:
    """`type` with its module, `message`, `args` where they say more, and `fields`: the attributes. What JSON
    cannot hold is left out."""
    kind = type(error)
    data: Json = {"type": f"{kind.__module__}:{kind.__qualname__}", "message": message_of(error)}
    if error.args != (data["message"],) and _is_json(error.args):
        data["args"] = list(error.args)
    fields = {name: value for name, value in vars(error).items() if _is_json(value)}
    return data | ({"fields": fields} if fields else {})


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
    kind: Any = sys.modules.get(module)
    for attribute in name.split("."):
        kind = getattr(kind, attribute, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        made = _made(_without_init, kind, data) or _made(_with_init, kind, data)
        if made is not None:
            return made
    stand_in: RecordedError = type(name.rpartition(".")[2], (RecordedError,), {})(data["message"])
    return stand_in


def _made(
    make: Callable[[type[Exception], Json], Exception], kind: type[Exception], data: Json
) -> Exception | None:
    """The exception, None where it does not say what the recorded one said."""
    try:
        made = make(kind, data)
        vars(made).update(data.get("fields", {}))
        return made if str(made) == data["message"] else None
    except Exception:
        # Some classes make their exceptions in ways of their own.
        return None


def _without_init(kind: type[Exception], data: Json) -> Exception:
    made = kind.__new__(kind)
    made.args = tuple(data.get("args", (data["message"],)))
    return made


def _with_init(kind: type[Exception], data: Json) -> Exception:
    return kind(*data.get("args", (data["message"],)))
