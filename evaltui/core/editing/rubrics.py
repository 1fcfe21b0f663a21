"""The rubrics of a case, or of one of its turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from evaltui.core.editing.json_paths import (
    field_path,
    field_value,
    in_style,
    insert_at,
    put_field,
    put_member,
    remove_field,
)
from evaltui.core.jsondoc.edits import Edit, EditError, Remove
from evaltui.core.model.json_values import list_at, value_at
from evaltui.core.model.problems import JsonPath

# Source: google-adk 2.13, by which its metrics pick their rubrics from cases and turns. They pass over
# those without a type.
RUBRIC_TYPES = ("FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY", "TRAJECTORY_QUALITY")

RubricField = Literal["rubric_id", "text", "description", "type"]


@dataclass(frozen=True)
class RubricsEditor:
    data: Any
    """The parsed JSON of the eval set."""
    owner: JsonPath
    """The path of the case, or of the turn."""
    case: JsonPath
    """The path of the case, in which every rubric has an id of its own."""

    @property
    def path(self) -> JsonPath:
        return field_path(self.data, self.owner, "rubrics")

    def __len__(self) -> int:
        return len(list_at(self.data, self.path))

    def add(self, text: str, type: str = RUBRIC_TYPES[0]) -> list[Edit]:
        """A rubric at the end, with an id that nothing else in the case has: ADK refuses others."""
        path, existing = self.path, self._ids_in_case
        number = len(existing) + 1
        while f"rubric_{number}" in existing:
            number += 1
        content = in_style(self.data, path, {"text_property": text})
        rubric = {"rubric_id": f"rubric_{number}", "rubric_content": content} | (
            {"type": type} if type else {}
        )
        return [insert_at(self.data, path, len(self), in_style(self.data, path, rubric))]

    def change(self, index: int, field: RubricField, value: str) -> list[Edit]:
        """An empty description or type is taken out. Raises EditError for an id that is empty or taken."""
        path = (*self.path, index)
        if not isinstance(value_at(self.data, path), dict):
            raise EditError(f"there is no rubric {index + 1}")
        if field == "text":
            content = field_path(self.data, path, "rubric_content")
            key = str(field_path(self.data, content, "text_property")[-1])
            return [put_member(self.data, content, key, value)]
        target = field_path(self.data, path, field)
        if field == "rubric_id":
            if not value:
                raise EditError("a rubric needs an id")
            if value != value_at(self.data, target) and value in self._ids_in_case:
                raise EditError(f"there is a rubric {value!r} in this case already")
        elif not value:
            return remove_field(self.data, target)
        return put_field(self.data, target, value)

    def delete(self, index: int) -> list[Edit]:
        return [Remove((*self.path, index))]

    @property
    def _ids_in_case(self) -> set[str]:
        turns = field_path(self.data, self.case, "conversation")
        owners = [self.case, *((*turns, number) for number in range(len(list_at(self.data, turns))))]
        found: set[str] = set()
        for owner in owners:
            path = field_path(self.data, owner, "rubrics")
            ids = (
                field_value(self.data, (*path, index), "rubric_id")
                for index in range(len(list_at(self.data, path)))
            )
            found |= {value for value in ids if isinstance(value, str)}
        return found
