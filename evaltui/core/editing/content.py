"""The parts of a message: its text, and what else is in it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from evaltui.core.editing.json_paths import dicts, in_style, list_at, value_at
from evaltui.core.jsondoc.edits import Edit, EditError, Insert, Put, Remove
from evaltui.core.model.aliases import spelt
from evaltui.core.model.problems import JsonPath


@dataclass(frozen=True)
class TextPart:
    """A text of a message that is no thought; `part` is its index in `parts`, `path` that of the part."""

    text: str
    part: int
    path: JsonPath


def text_parts(data: Any, content: JsonPath) -> list[TextPart]:
    path = (*content, "parts")
    return [
        TextPart(part["text"], index, (*path, index))
        for index, part in dicts(list_at(data, path))
        if isinstance(part.get("text"), str) and not part.get("thought")
    ]


def set_text(data: Any, content: JsonPath, text: str, role: str, part: int | None = None) -> list[Edit]:
    """Change one text of a message, the first one where no part is named; everything else in it stays.

    A message without a text gets one at its end, a turn without the message gets that, said by `role`.
    """
    texts = text_parts(data, content)
    chosen = [one for one in texts if part is None or one.part == part]
    if part is not None and not chosen:
        raise EditError(f"part {part + 1} of this message is not a text")
    if chosen:
        return [Put((*chosen[0].path, "text"), text)] if chosen[0].text != text else []
    return add_part(data, content, {"text": text}, role)


def add_part(data: Any, content: JsonPath, part: dict[str, Any], role: str) -> list[Edit]:
    """Add a part at the end of a message, which is made where there is none."""
    if not isinstance(value_at(data, content), dict):
        return [Put(content, {"parts": [part], "role": role})]
    parts = value_at(data, (*content, "parts"))
    if not isinstance(parts, list):
        return [Put((*content, "parts"), [part])]
    return [Insert((*content, "parts"), len(parts), part)]


def file_part(data: Any, content: JsonPath, payload: bytes, mime_type: str) -> dict[str, Any]:
    """A part that holds a file: base64 in the URL-safe alphabet, which is how genai writes it."""
    encoded = base64.urlsafe_b64encode(payload).decode("ascii")
    blob = in_style(data, content, {"data": encoded, "mime_type": mime_type})
    return in_style(data, content, {"inline_data": blob})


def response_in(part: Any) -> dict[str, Any] | None:
    """The function response that a part is; None where it is none."""
    found = part.get(spelt("function_response", part)) if isinstance(part, dict) else None
    return found if isinstance(found, dict) else None


def put_in_response(data: Any, path: JsonPath, name: str, value: Any) -> list[Edit]:
    """Change the name or the response of the function response at a part."""
    own = (*path, spelt("function_response", value_at(data, path)), name)
    return [] if value_at(data, own[:-1]).get(name) == value else [Put(own, value)]


def remove_part(data: Any, content: JsonPath, part: int) -> list[Edit]:
    path = (*content, "parts")
    if not 0 <= part < len(list_at(data, path)):
        raise EditError(f"this message has no part {part + 1}")
    return [Remove((*path, part))]
