"""The rows of a case: its id, what it starts from and must end with, its turns or its simulated user."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from evaltui.core.model.json_values import camel, value_at
from evaltui.core.model.modes import PREBUILT_PERSONAS
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.tags import tags_in, typed_tags, typed_tags_problem
from evaltui.documents.editing.json_paths import field_path, field_value
from evaltui.documents.editing.references import References
from evaltui.documents.editing.set import EditBuilder, SetEditor
from evaltui.text.figures import show_local
from evaltui.text.keys import key_of
from evaltui.text.values import did_you_mean
from evaltui.workbench.case.fields import (
    Completion,
    Field,
    FieldError,
    Operation,
    Row,
    RowSource,
    remove_at,
    unknown_fields,
    value_of,
    with_problems,
)
from evaltui.workbench.case.rows.folding import folded
from evaltui.workbench.case.rows.members import with_members
from evaltui.workbench.case.rows.session import add_to_states, final_state_rows, session_rows
from evaltui.workbench.case.rows.turn_source import add_row, add_rubric, add_turn, rubric_rows
from evaltui.workbench.case.rows.turns import turn_rows


def scenario_rows(source: RowSource) -> Iterator[Row]:
    path = source.editor.scenario.path
    yield Row(("scenario",), "section", "Simulated user", path=path)

    def set_prompt(text: str) -> EditBuilder:
        return source.build(lambda case: case.scenario.set_starting_prompt(text))

    def set_plan(text: str) -> EditBuilder:
        return source.build(lambda case: case.scenario.set_plan(text))

    fields = (("starting_prompt", "prompt", set_prompt), ("conversation_plan", "plan", set_plan))
    for name, label, change in fields:
        value = field_value(source.editor.data, path, name)
        text = value if isinstance(value, str) else ""
        yield Row(
            ("scenario", name),
            "fact",
            label,
            value=text,
            shown=None if text else "empty",
            quiet=not text,
            field=Field(f"change {label} of the simulated user", text, "text", change),
            path=field_path(source.editor.data, path, name),
        )
    yield _persona(source, field_path(source.editor.data, path, "user_persona"))


def _persona(source: RowSource, path: JsonPath) -> Row:
    persona = value_at(source.editor.data, path)

    def change(typed: str) -> EditBuilder:
        value = value_of(typed.strip()) if typed.strip() else None
        if isinstance(value, str) and value not in PREBUILT_PERSONAS:
            hint = did_you_mean(value, PREBUILT_PERSONAS)
            raise FieldError(f"Built-in personas: {', '.join(PREBUILT_PERSONAS)}{hint}")
        if value is not None and not isinstance(value, str | dict):
            raise FieldError("Must be a built-in persona or a JSON object")
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
    rows = [replace(row, adds=(*row.adds, *_others(row, below))) for row in _folded(source, rows)]
    found = [problem for problem in source.problems if problem.path[: len(path)] == path]
    return with_problems(rows, found)


def _folded(source: RowSource, rows: list[Row]) -> Iterable[Row]:
    """The rows with members of values, without those in folded turns and calls."""
    if source.toggled is None:
        return rows
    return folded(with_members(rows, source.toggled), source.toggled)


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
        source.build(lambda case: case.insert_turn(case.turn_count)),
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
    field = Field("rename case", old, "line", rename)
    yield Row(("id",), "fact", "id", value=old, field=field, rename=field, path=path)
    if tags := tags_in(editor.config, editor.reference[0]).get(editor.eval_id):
        yield _tags(source, tags)
    created = field_value(source.editor.data, editor.path, "creation_timestamp")
    if isinstance(created, int | float) and created:
        yield Row(("created",), "fact", "created", value=_moment(created))


def _tags(source: RowSource, tags: Sequence[str]) -> Row:
    def change(typed: str) -> EditBuilder:
        if problem := typed_tags_problem(typed):
            raise FieldError(problem)
        return replaced(typed_tags(typed))

    def replaced(wanted: Sequence[str]) -> EditBuilder:
        removed = {tag for tag in tags if tag not in wanted}
        reference = source.editor.reference
        return lambda current: References(current.config).change_tags([reference], wanted, removed)

    shown = " ".join(tags)
    field = Field("change tags", shown, "line", change)
    return Row(
        ("tags",), "fact", "tags", value=shown, field=field, delete=Operation("remove tags", replaced(()))
    )


def _moment(timestamp: float) -> str:
    try:
        return show_local(datetime.fromtimestamp(timestamp, UTC))
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
                shown=f"Conversation is empty   {key_of('add_below')}  Add turn",
                quiet=True,
                adds=(add_turn(source, 0),),
            )
    if source.editor.is_simulated:
        yield from scenario_rows(source)
