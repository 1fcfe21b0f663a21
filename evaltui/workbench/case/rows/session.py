"""The rows of a case's session input and final state, of unknown members, and their folding."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from evaltui.core.model.eval_set import DEFAULT_USER_ID
from evaltui.core.model.json_values import text_or_empty, value_at
from evaltui.core.model.problems import JsonPath, Problem
from evaltui.core.model.tool_schema import check_state
from evaltui.documents.editing.json_paths import field_path, field_value
from evaltui.documents.editing.session import DEFAULT_APP_NAME, SessionField, StateEditor
from evaltui.documents.editing.set import CaseEditor, EditBuilder
from evaltui.documents.values import put
from evaltui.text.figures import counted
from evaltui.workbench.case.fields import (
    Field,
    Operation,
    Row,
    RowId,
    RowSource,
    object_of,
    remove_member,
    unknown_fields,
)
from evaltui.workbench.case.rows.members import Members

SESSION: RowId = ("session",)


def fold_rows(rows: Iterable[Row], toggled: frozenset[RowId]) -> Iterator[Row]:
    """The rows without those inside closed rows.

    By default turns and calls are open and the session is closed; `toggled` rows are the other way round.
    """
    closed: Row | None = None
    hidden: list[Row] = []
    for row in rows:
        if closed is not None:
            if row.id[: len(closed.id)] == closed.id:
                hidden.append(row)
                continue
            yield _close_row(closed, hidden)
            closed, hidden = None, []
        if row.role not in ("turn", "call") and row.id != SESSION:
            yield row
        elif (row.id in toggled) == (row.id == SESSION):
            yield replace(row, fold="open")
        else:
            closed = row
    if closed is not None:
        yield _close_row(closed, hidden)


def _close_row(row: Row, hidden: list[Row]) -> Row:
    """The closed row with a preview of its content, and the problems inside."""
    problems = tuple(
        _with_path(hidden_row, problem) for hidden_row in hidden for problem in hidden_row.findings
    )
    row = replace(row, fold="closed", findings=(*row.findings, *problems))
    if row.role == "turn":
        text = next(
            (
                hidden_row.value
                for hidden_row in hidden
                if hidden_row.id[2:3] == ("user",) and hidden_row.value
            ),
            "",
        )
        calls = counted(sum(hidden_row.role == "call" for hidden_row in hidden), "call")
        return replace(row, preview=str(text).partition("\n")[0], shown=calls)
    if row.role == "call":
        arguments = {
            hidden_row.name: hidden_row.value
            for hidden_row in hidden
            if hidden_row.name and not hidden_row.level
        }
        return replace(row, preview=arguments)
    return row


def _with_path(row: Row, problem: Problem) -> Problem:
    """A problem of a hidden row, with its whole path."""
    if row.path is None or problem.path[: len(row.path)] == row.path:
        return problem
    return replace(problem, path=(*row.path, *problem.path))


_SESSION_KEYS = ("app_name", "user_id", "session_id", "state")
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
        for key, value in unknown_fields(value_at(source.editor.data, session.path), _SESSION_KEYS):
            path = (*session.path, key)
            shown = json.dumps(value, ensure_ascii=False)
            unknown = ("session", "unknown", key)
            yield Row(unknown, "part", "", key, value, shown, delete=remove_member(path), path=path)
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
    text = text_or_empty(value)

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
    """One of the two session states of a case: initial and final."""

    source: RowSource
    id: str
    label: str
    of: Callable[[CaseEditor], StateEditor]

    @property
    def editor(self) -> StateEditor:
        return self.of(self.source.editor)

    @property
    def _members(self) -> Members:
        return Members(self.editor.value, self.editor.path, (self.id,), owner=self.label)

    @property
    def add(self) -> Operation:
        def build(key: str, value: Any) -> EditBuilder:
            return self.source.build(lambda case: self.of(case).put(key, value))

        return self._members.add(f"add key to {self.label}", "key", build)

    def rows(self, before: Any, empty: str, path: JsonPath | None) -> Iterator[Row]:
        """The keys of the state, each a row; without any, one row that shows `empty` and is at `path`.

        Its values are checked against those of the state `before`, where that is known.
        """
        state = self.editor.value
        if not state:
            yield Row((self.id,), "fact", self.label, shown=empty, quiet=True, adds=(self.add,), path=path)
            return
        problems = check_state(before, state) if isinstance(before, dict) else []
        for number, row in enumerate(self._members.rows()):
            at_key = tuple(problem for problem in problems if problem.path[0] == row.name)
            label = self.label if number == 0 else ""
            yield replace(row, label=label, adds=(self.add,), findings=at_key)


def _state(source: RowSource) -> _State:
    return _State(source, "state", "state", lambda case: case.session.state)


def _final_state(source: RowSource) -> _State:
    return _State(source, "final_state", "final state", lambda case: case.final_state)


def add_to_states(source: RowSource) -> tuple[Operation, ...]:
    """The operations that add a key to either state."""
    return _state(source).add, _final_state(source).add


def final_state_rows(source: RowSource) -> Iterator[Row]:
    state = _final_state(source)
    before = value_at(source.editor.data, source.editor.session.state.path)
    return state.rows(before, "not checked", state.editor.path)
