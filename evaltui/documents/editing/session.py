"""The session that a case starts from and must end with, its simulated user, its rubrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evaltui.core.metrics.registry import RUBRIC_TYPES
from evaltui.core.model.eval_set import DEFAULT_USER_ID
from evaltui.core.model.json_values import list_at, object_or_empty, value_at
from evaltui.core.model.problems import JsonPath
from evaltui.documents.editing.json_paths import field_path, field_value, free_id, in_style
from evaltui.documents.edits import EditError
from evaltui.documents.values import append, discard, put, put_member, remove, rename

# What google-adk 2.13 takes where a case says nothing of its session.
DEFAULT_APP_NAME = "EvaluationGenerator"

SessionField = Literal["app_name", "user_id", "session_id"]


@dataclass(frozen=True)
class StateEditor:
    """The state that a session starts with, or the state that it must have in the end."""

    data: Any
    """The parsed JSON of the eval set."""
    path: JsonPath
    session: JsonPath | None = None
    """The session input that the state is in, which is made with the first key; None for the final state."""

    @property
    def value(self) -> dict[str, Any]:
        """The session state; empty without one."""
        return object_or_empty(value_at(self.data, self.path))

    def put(self, key: str, value: Any) -> None:
        if self.session is not None and not isinstance(value_at(self.data, self.session), dict):
            put(self.data, self.session, _new_session(self.data, self.session, {"state": {key: value}}))
        else:
            put_member(self.data, self.path, key, value)

    def remove(self, key: str) -> None:
        remove(self.data, (*self.path, key))

    def rename(self, key: str, name: str) -> None:
        rename(self.data, (*self.path, key), name)


@dataclass(frozen=True)
class SessionEditor:
    """The session input of a case, which need not be there."""

    data: Any
    """The parsed JSON of the eval set."""
    path: JsonPath

    @property
    def exists(self) -> bool:
        return isinstance(value_at(self.data, self.path), dict)

    def field_path(self, name: str) -> JsonPath:
        """The path of a field, there or not, in the spelling of the session."""
        return field_path(self.data, self.path, name)

    @property
    def state(self) -> StateEditor:
        return StateEditor(self.data, self.field_path("state"), self.path)

    def change(self, field: SessionField, value: str) -> None:
        """An empty session id is taken out, as an id there pins a session that then exists already.

        A case without session input gets both names, as ADK wants both in it.
        """
        path = self.field_path(field)
        if field == "session_id" and not value:
            discard(self.data, path)
        elif not self.exists:
            put(self.data, self.path, _new_session(self.data, self.path, {field: value}))
        else:
            put(self.data, path, value)

    def remove(self) -> None:
        """The case starts where ADK lets it: with its default names and an empty state."""
        discard(self.data, self.path)


def _new_session(data: Any, path: JsonPath, members: Mapping[str, Any]) -> dict[str, Any]:
    return in_style(data, path, {"app_name": DEFAULT_APP_NAME, "user_id": DEFAULT_USER_ID, **members})


@dataclass(frozen=True)
class ScenarioEditor:
    """The simulated user of a case."""

    data: Any
    """The parsed JSON of the eval set."""
    path: JsonPath

    def set_starting_prompt(self, text: str) -> None:
        put(self.data, field_path(self.data, self.path, "starting_prompt"), text)

    def set_plan(self, text: str) -> None:
        put(self.data, field_path(self.data, self.path, "conversation_plan"), text)

    def set_persona(self, persona: str | Mapping[str, Any] | None) -> None:
        """The id of a built-in persona, one of your own (`id, description, behaviors`), or none."""
        path = field_path(self.data, self.path, "user_persona")
        if persona is None:
            discard(self.data, path)
        else:
            put(self.data, path, persona)


# Source: google-adk 2.13, by which its metrics pick their rubrics from cases and turns. They pass over
# those without a type.

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

    def add(self, text: str, type: str = next(iter(RUBRIC_TYPES.values()))) -> None:
        """A rubric at the end, with an id that nothing else in the case has: ADK refuses others."""
        path, existing = self.path, self._ids_in_case
        rubric_id = free_id("rubric", len(existing) + 1, existing)
        content = in_style(self.data, path, {"text_property": text})
        rubric = {"rubric_id": rubric_id, "rubric_content": content} | ({"type": type} if type else {})
        append(self.data, path, in_style(self.data, path, rubric))

    def change(self, index: int, field: RubricField, value: str) -> None:
        """An empty description or type is taken out. Raises EditError for an id that is empty or taken."""
        path = (*self.path, index)
        if not isinstance(value_at(self.data, path), dict):
            raise EditError(f"The case has no rubric {index + 1}")
        if field == "text":
            content = field_path(self.data, path, "rubric_content")
            put_member(self.data, content, str(field_path(self.data, content, "text_property")[-1]), value)
            return
        target = field_path(self.data, path, field)
        if field == "rubric_id":
            if not value:
                raise EditError("Rubric id is missing")
            if value != value_at(self.data, target) and value in self._ids_in_case:
                raise EditError(f"{value} already exists")
        elif not value:
            discard(self.data, target)
            return
        put(self.data, target, value)

    def delete(self, index: int) -> None:
        remove(self.data, (*self.path, index))

    @property
    def _ids_in_case(self) -> set[str]:
        turns = field_path(self.data, self.case, "conversation")
        owners = [self.case, *((*turns, number) for number in range(len(list_at(self.data, turns))))]
        rubric_ids: set[str] = set()
        for owner in owners:
            path = field_path(self.data, owner, "rubrics")
            ids = (
                field_value(self.data, (*path, index), "rubric_id")
                for index in range(len(list_at(self.data, path)))
            )
            rubric_ids |= {value for value in ids if isinstance(value, str)}
        return rubric_ids
