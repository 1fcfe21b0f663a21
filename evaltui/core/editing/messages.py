"""A message of the user or of the agent: its texts, and what else is in it."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from evaltui.core.editing.json_paths import dicts, in_style
from evaltui.core.jsondoc.edits import Edit, EditError, Insert, Put, Remove
from evaltui.core.model.json_values import list_at, spelt, value_at
from evaltui.core.model.problems import JsonPath


@dataclass(frozen=True)
class TextPart:
    """A text of a message that is no thought."""

    text: str
    part: int
    """Its index in `parts`."""
    path: JsonPath
    """The path of the part."""


@dataclass(frozen=True)
class MessageEditor:
    """A message of a turn, which need not be there yet."""

    data: Any
    """The parsed JSON of the eval set."""
    path: JsonPath
    role: Literal["user", "model"]
    """Whose message it is, which is written where the message is new."""

    @property
    def exists(self) -> bool:
        return isinstance(value_at(self.data, self.path), dict)

    @property
    def parts_path(self) -> JsonPath:
        return (*self.path, "parts")

    @property
    def parts(self) -> list[Any]:
        return list_at(self.data, self.parts_path)

    @property
    def texts(self) -> list[TextPart]:
        """The texts in order, without thoughts."""
        return [
            TextPart(part["text"], index, (*self.parts_path, index))
            for index, part in dicts(self.parts)
            if isinstance(part.get("text"), str) and not part.get("thought")
        ]

    def set_text(self, text: str, part: int | None = None) -> list[Edit]:
        """Change one text, the first one where no part is named; everything else stays.

        A message without a text gets one at its end, a turn without the message gets that.
        """
        chosen = [one for one in self.texts if part is None or one.part == part]
        if part is not None and not chosen:
            raise EditError(f"part {part + 1} of this message is not a text")
        if chosen:
            return [Put((*chosen[0].path, "text"), text)] if chosen[0].text != text else []
        return self.add_part({"text": text})

    def replace_texts(self, texts: Iterable[str]) -> list[Edit]:
        """Make these its texts, in their order; other parts stay, and so do texts that are the same."""
        wanted, known = list(texts), self.texts
        if not known:
            return self.add_parts([{"text": text} for text in wanted])
        edits: list[Edit] = []
        for old, text in zip(known, wanted, strict=False):
            edits += self.set_text(text, old.part)
        edits += [Remove(old.path) for old in reversed(known[len(wanted) :])]
        behind = known[-1].part + 1
        for count, text in enumerate(wanted[len(known) :]):
            edits.append(Insert(self.parts_path, behind + count, {"text": text}))
        return edits

    def add_part(self, part: dict[str, Any]) -> list[Edit]:
        """Add a part at the end of the message, which is made where there is none."""
        return self.add_parts([part])

    def add_parts(self, parts: list[dict[str, Any]]) -> list[Edit]:
        if not self.exists:
            return [Put(self.path, {"parts": parts, "role": self.role})]
        known = value_at(self.data, self.parts_path)
        if not isinstance(known, list):
            return [Put(self.parts_path, parts)]
        return [Insert(self.parts_path, len(known) + count, part) for count, part in enumerate(parts)]

    def attach_file(self, payload: bytes, mime_type: str) -> list[Edit]:
        """Add a file at the end, in base64 of the URL-safe alphabet, which is how genai writes it."""
        encoded = base64.urlsafe_b64encode(payload).decode("ascii")
        blob = in_style(self.data, self.path, {"data": encoded, "mime_type": mime_type})
        return self.add_part(in_style(self.data, self.path, {"inline_data": blob}))

    def remove_part(self, part: int) -> list[Edit]:
        if not 0 <= part < len(self.parts):
            raise EditError(f"this message has no part {part + 1}")
        return [Remove((*self.parts_path, part))]

    def set_response(self, part: int, field: Literal["name", "response"], value: Any) -> list[Edit]:
        """Change the name or the response of the part that is a function response."""
        response = response_in(self.parts[part]) if 0 <= part < len(self.parts) else None
        if response is None:
            raise EditError(f"part {part + 1} of this message is no response")
        key = spelt("function_response", self.parts[part])
        unchanged = response.get(field) == value
        return [] if unchanged else [Put((*self.parts_path, part, key, field), value)]

    def remove(self) -> list[Edit]:
        """Take the whole message out."""
        holder = value_at(self.data, self.path[:-1])
        return [Remove(self.path)] if self.path[-1] in holder else []


def response_in(part: Any) -> dict[str, Any] | None:
    """The function response that a part is; None where it is none."""
    found = part.get(spelt("function_response", part)) if isinstance(part, dict) else None
    return found if isinstance(found, dict) else None
