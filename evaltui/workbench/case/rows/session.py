"""The rows of a case's session input, and of the state at its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from evaltui.core.model.eval_set import DEFAULT_USER_ID
from evaltui.core.model.json_values import value_at
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.tool_schema import check_state
from evaltui.documents.editing.json_paths import field_path, field_value
from evaltui.documents.editing.session import DEFAULT_APP_NAME, SessionField, StateEditor
from evaltui.documents.editing.set import CaseEditor, EditBuilder
from evaltui.documents.values import put
from evaltui.workbench.case.fields import (
    Field,
    FieldError,
    Operation,
    Row,
    RowSource,
    object_of,
    remove_at,
    required_text,
    unknown_fields,
    value_field,
)
from evaltui.workbench.case.rows.folding import SESSION

_OF_SESSION = ("app_name", "user_id", "session_id", "state")
_FIELDS: tuple[tuple[SessionField, str, str], ...] = (
    ("app_name", "app", DEFAULT_APP_NAME),
    ("user_id", "user", DEFAULT_USER_ID),
    ("session_id", "id", "new session per run"),
)


# Session input


def session_rows(source: RowSource) -> Iterator[Row]:
    session = source.editor.session
    if session.exists:
        folds = source.toggled is not None
        if folds:
            yield _session(source)
        for number, (name, word, default) in enumerate(_FIELDS):
            row = _session_row(source, name, word, default, "session" if number == 0 and not folds else "")
            yield replace(row, level=1) if folds else row
        for key, value in unknown_fields(value_at(source.editor.data, session.path), _OF_SESSION):
            path = (*session.path, key)
            shown = json.dumps(value, ensure_ascii=False)
            unknown = ("session", "unknown", key)
            yield Row(unknown, "part", "", key, value, shown, delete=remove_at(path), path=path)
    else:
        # Whoever wants names or an id of a session finds them below `session` then.
        field = Field(
            "set session user",
            "",
            "line",
            lambda text: source.build(lambda case: case.session.change("user_id", text)),
        )
        shown = "ADK defaults, empty state"
        row_id = ("session", "user_id")
        yield Row(row_id, "fact", "session", shown=shown, quiet=True, field=field, path=session.path)
    state = _state(source)
    saved = field_value(source.saved, field_path(source.saved, (), "session_input"), "state")
    yield from state.rows(saved, "empty", state.editor.path if session.exists else None)


def _session(source: RowSource) -> Row:
    """The session in one row, with its fields inside."""
    path = source.editor.session.path
    value = value_at(source.editor.data, path)
    named = [field_value(source.editor.data, path, name) or default for name, _, default in _FIELDS]

    def change(typed: str) -> EditBuilder:
        session = object_of(typed)
        return lambda eval_set: put(eval_set.data, path, session)

    return Row(
        SESSION,
        "fact",
        "session",
        value=value,
        shown="{} · user {} · {}".format(*named),
        field=Field("change session input", json.dumps(value, ensure_ascii=False, indent=2), "json", change),
        path=path,
    )


def _session_row(source: RowSource, field: SessionField, word: str, default: str, label: str) -> Row:
    session = source.editor.session
    value = field_value(source.editor.data, session.path, field)
    text = value if isinstance(value, str) else ""

    def change(typed: str) -> EditBuilder:
        return source.build(lambda case: case.session.change(field, typed))

    remove_session = Operation(
        "remove session input",
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
        field=Field(f"change session {word}", text, "line", change),
        delete=Operation("remove session id", change("")) if field == "session_id" else remove_session,
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

    def build(self, edit: Callable[[StateEditor], object]) -> EditBuilder:
        return self.source.build(lambda case: edit(self.of(case)))

    @property
    def add(self) -> Operation:
        state = self.editor.value
        number = 1
        while (key := "key" if number == 1 else f"key_{number}") in state:
            number += 1
        label = f"add key to {self.label}"
        return Operation(label, self.build(lambda editor: editor.put(key, "")), (self.id, len(state)), "name")

    def rows(self, before: Any, empty: str, path: JsonPath | None) -> Iterator[Row]:
        """The keys of the state, each a row; without any, one row that shows `empty` and is at `path`.

        Its values are checked against those of the state `before`, where that is known.
        """
        state = self.editor.value
        if not state:
            yield Row((self.id,), "fact", self.label, shown=empty, quiet=True, adds=(self.add,), path=path)
            return
        problems = check_state(before, state) if isinstance(before, dict) else []
        for number, (key, value) in enumerate(state.items()):
            found = tuple(problem for problem in problems if problem.path[0] == key)
            row, at = self._row(number, key, value, state), (*self.editor.path, key)
            yield replace(row, path=at, value_path=at, findings=found)

    def _row(self, number: int, key: str, value: Any, state: dict[str, Any]) -> Row:

        def rename(typed: str) -> EditBuilder:
            if typed != key and typed in state:
                raise FieldError(f"{typed} already exists")
            wanted = required_text("Key")(typed)
            return self.build(lambda editor: editor.rename(key, wanted))

        return Row(
            (self.id, number),
            "part",
            self.label if number == 0 else "",
            key,
            value=value,
            is_json=True,
            field=value_field(
                f"change {key} of {self.label}",
                value,
                lambda typed: self.build(lambda editor: editor.put(key, typed)),
            ),
            rename=Field(
                f"rename {key} of {self.label}",
                key,
                "line",
                rename,
                then=Operation("Go to value", None, (self.id, number), "value"),
            ),
            adds=(self.add,),
            delete=Operation(
                f"remove {key} from {self.label}", self.build(lambda editor: editor.remove(key))
            ),
        )


def _state(source: RowSource) -> _State:
    return _State(source, "state", "state", lambda case: case.session.state)


def _final_state(source: RowSource) -> _State:
    return _State(source, "final_state", "final state", lambda case: case.final_state)


def add_to_states(source: RowSource) -> tuple[Operation, ...]:
    """Adding a key to either state."""
    return _state(source).add, _final_state(source).add


def final_state_rows(source: RowSource) -> Iterator[Row]:
    state = _final_state(source)
    before = value_at(source.editor.data, source.editor.session.state.path)
    return state.rows(before, "not checked", state.editor.path)
