"""Values that agents return as their response, such as those of an output type."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_jsonable_python

from .....core.model.events import Json, is_output, output_content


def output_fields(value: Any, said: str = "") -> Json | None:
    """The fields of a step that responds with a value; None where there is none, or the agent said it."""
    output = to_jsonable_python(value, bytes_mode="base64", fallback=str)
    if output in (None, "") or is_output(said, output):
        return None
    return {"content": output_content(output), "final": True, "output": output, "answers": True}
