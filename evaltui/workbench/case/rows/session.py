"""The rows of a case's session input and final state, of unknown members, and their folding."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from evaltui.core.model.eval_set import DEFAULT_USER_ID
from evaltui.core.model.json_values import value_at
from evaltui.core.model.problems import JsonPath, Problem
from evaltui.core.model.tool_schema import check_state, first_value, member_schema, properties_of
from evaltui.documents.editing.json_paths import field_path, field_value
from evaltui.documents.editing.session import DEFAULT_APP_NAME, SessionField, StateEditor
from evaltui.documents.editing.set import CaseEditor, EditBuilder, SetEditor
from evaltui.documents.values import duplicate, insert, move, put, remove, rename
from evaltui.text.figures import counted
from evaltui.workbench.case.fields import (
    Field,
    FieldError,
    Operation,
    Row,
    RowId,
    RowSource,
    object_of,
    remove_at,
    required_text,
    unknown_fields,
    value_field,
)
from evaltui.workbench.case.rows.nesting import first_leaf, key_completions, nest_operation

SESSION: RowId = ("session",)


def folded(rows: Iterable[Row], toggled: frozenset[RowId]) -> Iterator[Row]:
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
            yield _closed(closed, hidden)
            closed, hidden = None, []
        if row.role not in ("turn", "call") and row.id != SESSION:
            yield row
        elif (row.id in toggled) == (row.id == SESSION):
            yield replace(row, fold="open")
        else:
            closed = row
    if closed is not None:
        yield _closed(closed, hidden)


def _closed(row: Row, hidden: list[Row]) -> Row:
    """The closed row with a preview of its content, and the problems inside."""
    problems = tuple(_at(hidden_row, problem) for hidden_row in hidden for problem in hidden_row.findings)
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


def _at(row: Row, problem: Problem) -> Problem:
    """A problem of a hidden row, with its whole path."""
    if row.path is None or problem.path[: len(row.path)] == row.path:
        return problem
    return replace(problem, path=(*row.path, *problem.path))


def with_members(rows: Iterable[Row], toggled: frozenset[RowId] | None) -> Iterator[Row]:
    """The rows, where toggled objects and arrays are followed by their members.

    An empty object or array has no rows to fold; the first addition to it is a member.
    """
    for row in rows:
        if toggled is None or row.value_path is None or not isinstance(row.value, dict | list):
            yield row
            continue
        is_open = row.id in toggled
        add = _add(row) if is_open or not row.value else None
        adds = (add, *row.adds) if add is not None else row.adds
        yield replace(row, fold=("open" if is_open else "closed") if row.value else None, adds=adds)
        if is_open:
            yield from with_members(_members(row, row.value_path, add), toggled)


def _members(holder: Row, path: JsonPath, add: Operation | None) -> Iterator[Row]:
    value = holder.value
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield _item(holder, path, number, item, len(value))
    else:
        for number, (key, item) in enumerate(value.items()):
            yield replace(
                _member(holder, (*path, key), number, f".{key}", item, member_schema(holder.schema, key)),
                rename=_key_field(holder, path, number, key),
                adds=(add,) if add else (),
            )


def _member(holder: Row, path: JsonPath, number: int, name: str, value: Any, schema: Any) -> Row:
    return Row(
        _id(holder, number),
        holder.role,
        name=name,
        value=value,
        is_json=True,
        quiet=holder.quiet,
        turn=holder.turn,
        field=value_field(f"change {name}", value, lambda typed: _build(put, path, typed), schema),
        delete=Operation(f"delete {name}", _build(remove, path)),
        path=path,
        value_path=path,
        level=holder.level + 1,
        schema=schema,
    )


def _item(holder: Row, path: JsonPath, number: int, value: Any, count: int) -> Row:
    """An element of an array."""
    schema = member_schema(holder.schema, number)

    def insert_at(index: int) -> Operation:
        first = first_value(schema)
        new = first_leaf(_id(holder, index), first)
        return Operation("add item", _build(insert, path, index, first), new, "value")

    def move_by(step: int) -> Operation:
        to = max(0, min(number + step, count - 1))
        direction = "up" if step < 0 else "down"
        edit = _build(move, path, number, to) if to != number else None
        return Operation(f"move [{number}] {direction}", edit, _id(holder, to))

    return replace(
        _member(holder, (*path, number), number, f"[{number}]", value, schema),
        adds=(insert_at(number + 1),),
        insert=insert_at(number),
        duplicate=Operation(
            f"duplicate [{number}]", _build(duplicate, path, number), _id(holder, number + 1)
        ),
        move=move_by,
    )


def _add(holder: Row) -> Operation | None:
    """The operation that adds a member at the end of an object or array."""
    path, value = holder.value_path, holder.value
    if path is None:
        return None
    new = _id(holder, len(value))
    if isinstance(value, list):
        first = first_value(member_schema(holder.schema, len(value)))
        return Operation("add item", _build(insert, path, len(value), first), first_leaf(new, first), "value")
    unused = [name for name in properties_of(holder.schema) if name not in value]
    if len(unused) == 1:
        first = first_value(member_schema(holder.schema, unused[0]))
        return Operation(
            "add member", _build(put, (*path, unused[0]), first), first_leaf(new, first), "value"
        )
    key, number = "key", 1
    while key in value:
        number += 1
        key = f"key_{number}"
    return Operation("add member", _build(put, (*path, key), ""), new, "name")


def _key_field(holder: Row, path: JsonPath, number: int, key: str) -> Field:
    def change(text: str) -> EditBuilder:
        if text != key and text in holder.value:
            raise FieldError(f"{text} already exists")
        new_key = required_text("Key")(text)
        first = first_value(member_schema(holder.schema, new_key))

        def build(eval_set: SetEditor) -> None:
            rename(eval_set.data, (*path, key), new_key)
            if new_key != key and holder.value[key] == "":
                # A member that is empty begins with what its new name asks for.
                put(eval_set.data, (*path, new_key), first)

        return build

    own = _id(holder, number)
    then = Operation("Go to value", None, first_leaf(own, holder.value[key]), "value")
    properties = properties_of(holder.schema)
    if holder.role == "argument" and key not in properties:
        then = nest_operation(holder.value, path, key, holder.schema, (*holder.id, "in")) or then
    return Field(f"rename .{key}", key, "line", change, key_completions(properties, holder.value), then=then)


def _id(holder: Row, number: int) -> RowId:
    return (*holder.id, "in", number)


def _build(change: Callable[..., object], *place: Any) -> EditBuilder:
    return lambda eval_set: change(eval_set.data, *place)


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
    """One of the two session states of a case: initial and final."""

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
            at_key = tuple(problem for problem in problems if problem.path[0] == key)
            row, at = self._row(number, key, value, state), (*self.editor.path, key)
            yield replace(row, path=at, value_path=at, findings=at_key)

    def _row(self, number: int, key: str, value: Any, state: dict[str, Any]) -> Row:

        def rename(typed: str) -> EditBuilder:
            if typed != key and typed in state:
                raise FieldError(f"{typed} already exists")
            new_key = required_text("Key")(typed)
            return self.build(lambda editor: editor.rename(key, new_key))

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
    """The operations that add a key to either state."""
    return _state(source).add, _final_state(source).add


def final_state_rows(source: RowSource) -> Iterator[Row]:
    state = _final_state(source)
    before = value_at(source.editor.data, source.editor.session.state.path)
    return state.rows(before, "not checked", state.editor.path)
