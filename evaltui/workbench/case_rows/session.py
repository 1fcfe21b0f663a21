"""The rows of what a case starts from and must end with: its session, its state and its final state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from evaltui.core.editing.json_paths import field_path, field_value
from evaltui.core.editing.session import DEFAULT_APP_NAME, DEFAULT_USER_ID, SessionField, StateEditor
from evaltui.core.editing.set import CaseEditor, EditBuilder
from evaltui.core.jsondoc.edits import Edit
from evaltui.core.model.json_values import value_at
from evaltui.core.model.problems import Problem
from evaltui.core.model.tool_schema import check_state
from evaltui.workbench.fields import (
    Field,
    FieldError,
    Operation,
    Row,
    RowSource,
    remove_at,
    required_text,
    unknown_fields,
    value_field,
)

_KNOWN = ("app_name", "user_id", "session_id", "state")
_FIELDS: tuple[tuple[SessionField, str, str], ...] = (
    ("app_name", "app", DEFAULT_APP_NAME),
    ("user_id", "user", DEFAULT_USER_ID),
    ("session_id", "id", "a new one in each run"),
)


# Session input


def session_rows(source: RowSource) -> Iterator[Row]:
    session = source.editor.session
    if session.exists:
        for number, (name, word, default) in enumerate(_FIELDS):
            yield _session_row(source, name, word, default, "session" if number == 0 else "")
        for key, value in unknown_fields(value_at(source.editor.data, session.path), _KNOWN):
            path = (*session.path, key)
            shown = json.dumps(value, ensure_ascii=False)
            unknown = ("session", "unknown", key)
            yield Row(unknown, "part", "", key, value, shown, delete=remove_at(path), path=path)
    else:
        # Whoever wants names or an id of a session finds them below `session` then.
        field = Field(
            "set the user of the session",
            "",
            "line",
            lambda text: source.build(lambda case: case.session.change("user_id", text)),
        )
        shown = "what ADK begins with, and an empty state"
        row_id = ("session", "user_id")
        yield Row(row_id, "fact", "session", shown=shown, quiet=True, field=field, path=session.path)
    yield from _state_rows(source)


def _session_row(source: RowSource, field: SessionField, word: str, default: str, label: str) -> Row:
    session = source.editor.session
    value = field_value(source.editor.data, session.path, field)
    text = value if isinstance(value, str) else ""

    def change(typed: str) -> EditBuilder:
        return source.build(lambda case: case.session.change(field, typed))

    remove_session = Operation(
        "remove the session input",
        source.build(lambda case: case.session.remove()),
        ("session", "user_id"),
    )
    return Row(
        ("session", field),
        "part",
        label,
        word,
        value=text,
        shown=None if text else default,
        quiet=not text,
        field=Field(f"change the session's {word}", text, "line", change),
        delete=Operation("remove the session id", change("")) if field == "session_id" else remove_session,
        path=session.field_path(field),
    )


# States


@dataclass(frozen=True)
class _State:
    """One of the two states of a case."""

    source: RowSource
    id: str
    label: str
    of: Callable[[CaseEditor], StateEditor]

    @property
    def editor(self) -> StateEditor:
        return self.of(self.source.editor)

    def build(self, edit: Callable[[StateEditor], list[Edit]]) -> EditBuilder:
        return self.source.build(lambda case: edit(self.of(case)))

    @property
    def add(self) -> Operation:
        state = self.editor.value
        number = 1
        while (key := "key" if number == 1 else f"key_{number}") in state:
            number += 1
        label = f"add a key to the {self.label}"
        return Operation(label, self.build(lambda editor: editor.put(key, "")), (self.id, len(state)), "name")

    def rows(self, problems: list[Problem]) -> Iterator[Row]:
        """The keys of the state, each a row."""
        path, state = self.editor.path, self.editor.value
        for number, (key, value) in enumerate(state.items()):
            found = tuple(problem for problem in problems if problem.path[0] == key)
            yield replace(self._row(number, key, value, state), path=(*path, key), findings=found)

    def _row(self, number: int, key: str, value: Any, state: dict[str, Any]) -> Row:

        def rename(typed: str) -> EditBuilder:
            if typed != key and typed in state:
                raise FieldError(f"there is {typed!r} already")
            wanted = required_text("a key")(typed)
            return self.build(lambda editor: editor.rename(key, wanted))

        return Row(
            (self.id, number),
            "part",
            self.label if number == 0 else "",
            key,
            value=value,
            is_json=True,
            field=value_field(
                f"change {key} of the {self.label}",
                value,
                lambda typed: self.build(lambda editor: editor.put(key, typed)),
            ),
            rename=Field(
                f"rename {key} of the {self.label}",
                key,
                "line",
                rename,
                then=Operation("go to its value", None, (self.id, number), "value"),
            ),
            adds=(self.add,),
            delete=Operation(
                f"remove {key} from the {self.label}", self.build(lambda editor: editor.remove(key))
            ),
        )


def _state(source: RowSource) -> _State:
    return _State(source, "state", "state", lambda case: case.session.state)


def _final_state(source: RowSource) -> _State:
    return _State(source, "final_state", "final state", lambda case: case.final_state)


def add_to_states(source: RowSource) -> tuple[Operation, ...]:
    """Adding a key to either state."""
    return _state(source).add, _final_state(source).add


def _state_rows(source: RowSource) -> Iterator[Row]:
    state, exists = _state(source), source.editor.session.exists
    if not state.editor.value:
        path = state.editor.path if exists else None
        yield Row(("state",), "fact", "state", shown="empty", quiet=True, adds=(state.add,), path=path)
        return
    saved = field_value(source.saved, field_path(source.saved, (), "session_input"), "state")
    yield from state.rows(check_state(saved, state.editor.value) if isinstance(saved, dict) else [])


def final_state_rows(source: RowSource) -> Iterator[Row]:
    state = _final_state(source)
    if not state.editor.value:
        row_id = ("final_state",)
        path = state.editor.path
        shown = "not checked"
        yield Row(row_id, "fact", "final state", shown=shown, quiet=True, adds=(state.add,), path=path)
        return
    before = value_at(source.editor.data, source.editor.session.state.path)
    yield from state.rows(check_state(before, state.editor.value) if isinstance(before, dict) else [])
