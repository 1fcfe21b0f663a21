"""The rows of a case: its id, what it starts from and must end with, its turns or its simulated user."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from evaltui.core.editing.json_paths import field_path, field_value
from evaltui.core.editing.session import DEFAULT_APP_NAME, DEFAULT_USER_ID, SessionField, StateEditor
from evaltui.core.editing.set import CaseEditor, EditBuilder, SetEditor
from evaltui.core.jsondoc.edits import Edit
from evaltui.core.model.json_values import camel, value_at
from evaltui.core.model.modes import PREBUILT_PERSONAS
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.tool_schema import check_state
from evaltui.workbench.case_rows.members import with_members
from evaltui.workbench.case_rows.turn_source import add_row, add_rubric, add_turn, rubric_rows
from evaltui.workbench.case_rows.turns import turn_rows
from evaltui.workbench.fields import (
    Completion,
    Field,
    FieldError,
    Operation,
    Row,
    RowSource,
    remove_at,
    required_text,
    unknown_fields,
    value_field,
    value_of,
    with_problems,
)

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
        for number, (name, word, default) in enumerate(_FIELDS):
            yield _session_row(source, name, word, default, "session" if number == 0 else "")
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

    def build(self, edit: Callable[[StateEditor], list[Edit]]) -> EditBuilder:
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


def scenario_rows(source: RowSource) -> Iterator[Row]:
    path = source.editor.scenario.path
    yield Row(("scenario",), "section", "Simulated user", path=path)

    def set_prompt(text: str) -> EditBuilder:
        return source.build(lambda case: case.scenario.set_starting_prompt(text))

    def set_plan(text: str) -> EditBuilder:
        return source.build(lambda case: case.scenario.set_plan(text))

    fields = (("starting_prompt", "begins", set_prompt), ("conversation_plan", "plan", set_plan))
    for name, label, change in fields:
        value = field_value(source.editor.data, path, name)
        text = value if isinstance(value, str) else ""
        yield Row(
            ("scenario", name),
            "fact",
            label,
            value=text,
            shown=None if text else "(nothing)",
            quiet=not text,
            field=Field(f"change what the simulated user {label}", text, "text", change),
            path=field_path(source.editor.data, path, name),
        )
    yield _persona(source, field_path(source.editor.data, path, "user_persona"))


def _persona(source: RowSource, path: JsonPath) -> Row:
    persona = value_at(source.editor.data, path)

    def change(typed: str) -> EditBuilder:
        value = value_of(typed.strip()) if typed.strip() else None
        if isinstance(value, str) and value not in PREBUILT_PERSONAS:
            raise FieldError(f"built-in personas: {', '.join(PREBUILT_PERSONAS)}")
        if value is not None and not isinstance(value, str | dict):
            raise FieldError("must be the name of a built-in persona, or a persona as a JSON object")
        return source.build(lambda case: case.scenario.set_persona(value))

    remove = Operation("remove persona", source.build(lambda case: case.scenario.set_persona(None)))
    row_id = ("scenario", "user_persona")
    if isinstance(persona, dict):
        text = json.dumps(persona, ensure_ascii=False, indent=2)
        field = Field("change persona", text, "json", change)
        shown = _persona_text(persona)
        return Row(row_id, "fact", "persona", "", persona, shown, field=field, delete=remove, path=path)
    text = persona if isinstance(persona, str) else ""
    return Row(
        row_id,
        "fact",
        "persona",
        value=text,
        shown=None if text else "none",
        quiet=not text,
        field=Field("choose persona", text, "value", change, tuple(map(Completion, PREBUILT_PERSONAS))),
        delete=remove if text else None,
        path=path,
    )


def _persona_text(persona: dict[str, Any]) -> str:
    """A persona of one's own, a line for each thing it says."""
    lines = [f"{persona.get('id', '')}  {persona.get('description', '')}"]
    behaviors = persona.get("behaviors")
    for behavior in behaviors if isinstance(behaviors, list) else ():
        if isinstance(behavior, dict):
            lines.append(f"{behavior.get('name', '')}  {behavior.get('description', '')}")
            lines += [f"· {one}" for one in _texts(behavior, "behavior_instructions")]
            lines += [f"✗ {one}" for one in _texts(behavior, "violation_rubrics")]
    return "\n".join(lines)


def _texts(holder: dict[str, Any], name: str) -> list[str]:
    value = holder.get(name, holder.get(camel(name)))
    return [str(one) for one in value] if isinstance(value, list) else []


_KNOWN = (
    "eval_id",
    "conversation",
    "conversation_scenario",
    "session_input",
    "creation_timestamp",
    "rubrics",
    "final_session_state",
)


def case_rows(source: RowSource) -> list[Row]:
    """Every row of a case. Raises EditError where the set has no such case."""
    path = source.editor.path
    rows = [
        *_facts(source),
        *session_rows(source),
        *final_state_rows(source),
        *rubric_rows(source, None),
        *_unknown(source),
        *_conversation(source),
        *add_row(source),
    ]
    below = additions(source)
    rows = [
        replace(row, adds=(*row.adds, *_others(row, below))) for row in with_members(rows, source.unfolded)
    ]
    found = [problem for problem in source.problems if problem.path[: len(path)] == path]
    return with_problems(rows, found)


def additions(source: RowSource) -> tuple[Operation, ...]:
    """What can be added to a case, wherever in it one is."""
    editor = source.editor
    add_rubrics = add_rubric(source, None)
    if editor.is_simulated:
        to_conversation = Operation(
            "convert to a conversation",
            source.build(lambda case: case.to_conversation()),
            ("turn", 0),
        )
        return *add_to_states(source), add_rubrics, to_conversation
    last_turn = Operation(
        "add turn at the end",
        source.build(lambda case: case.add_turn()),
        ("turn", editor.turn_count, "user", 0),
        "value",
    )
    to_scenario = Operation(
        "convert to a scenario",
        source.build(lambda case: case.to_scenario()),
        ("scenario", "starting_prompt"),
    )
    return last_turn, *add_to_states(source), add_rubrics, to_scenario


def _others(row: Row, more: tuple[Operation, ...]) -> tuple[Operation, ...]:
    labels = {one.label for one in row.adds}
    return tuple(one for one in more if one.label not in labels)


def _facts(source: RowSource) -> Iterator[Row]:
    editor, eval_set = source.editor, SetEditor(source.editor.data)

    def rename(typed: str) -> EditBuilder:
        if problem := eval_set.eval_id_problem(typed, source.editor.number):
            raise FieldError(problem)
        return lambda current: current.rename_case(source.editor.number, typed)

    old, path = editor.eval_id, editor.field_path("eval_id")
    field = Field("rename case", old, "line", rename, live=False)
    yield Row(("id",), "fact", "id", value=old, field=field, rename=field, path=path)
    yield Row(("set",), "fact", "set", value=eval_set.eval_set_id)
    created = field_value(source.editor.data, editor.path, "creation_timestamp")
    if isinstance(created, int | float) and created:
        yield Row(("created",), "fact", "created", value=_moment(created))


def _moment(timestamp: float) -> str:
    try:
        return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{timestamp}"


def _unknown(source: RowSource) -> Iterator[Row]:
    for key, value in unknown_fields(source.editor.value, _KNOWN):
        path = (*source.editor.path, key)
        shown = json.dumps(value, ensure_ascii=False)
        row_id = ("extra", "unknown", key)
        yield Row(row_id, "fact", key, "", value, shown, quiet=True, delete=remove_at(path), path=path)


def _conversation(source: RowSource) -> Iterator[Row]:
    conversation = value_at(source.editor.data, source.editor.field_path("conversation"))
    if isinstance(conversation, list):
        for turn, raw in enumerate(conversation):
            key = source.editor.number, turn, len(conversation)
            before, rows = source.known.get(key, (None, []))
            if before is not raw:
                rows = turn_rows(source, turn)
                source.known[key] = raw, rows
            yield from rows
        if not conversation:
            yield Row(
                ("turns",),
                "hint",
                shown="Conversation is empty   o  Add turn",
                quiet=True,
                adds=(add_turn(source, 0),),
            )
    if source.editor.is_simulated:
        yield from scenario_rows(source)
