"""The rows of a simulated user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from evaltui.core.editing.json_paths import field_path, field_value
from evaltui.core.editing.set import EditBuilder
from evaltui.core.model.aliases import camel
from evaltui.core.model.json_values import value_at
from evaltui.core.model.personas import PREBUILT_PERSONAS
from evaltui.core.model.problems import JsonPath
from evaltui.workbench.fields import CaseSource, Completion, Field, FieldError, Operation, Row, value_of


def scenario_rows(source: CaseSource) -> Iterator[Row]:
    path = source.editor.scenario.path
    yield Row(("scenario",), "section", "Simulated user", path=path)

    def set_prompt(text: str) -> EditBuilder:
        return source.build(lambda case: case.scenario.set_starting_prompt(text))

    def set_plan(text: str) -> EditBuilder:
        return source.build(lambda case: case.scenario.set_plan(text))

    fields = (("starting_prompt", "begins", set_prompt), ("conversation_plan", "plan", set_plan))
    for name, label, change in fields:
        value = field_value(source.data, path, name)
        text = value if isinstance(value, str) else ""
        yield Row(
            ("scenario", name),
            "fact",
            label,
            value=text,
            shown=None if text else "(nothing)",
            quiet=not text,
            field=Field(f"change what the simulated user {label}", text, "text", change),
            path=field_path(source.data, path, name),
        )
    yield _persona(source, field_path(source.data, path, "user_persona"))


def _persona(source: CaseSource, path: JsonPath) -> Row:
    persona = value_at(source.data, path)

    def change(typed: str) -> EditBuilder:
        value = value_of(typed.strip()) if typed.strip() else None
        if isinstance(value, str) and value not in PREBUILT_PERSONAS:
            raise FieldError(f"the built-in personas are {', '.join(PREBUILT_PERSONAS)}")
        if value is not None and not isinstance(value, str | dict):
            raise FieldError("must be the name of a built-in persona, or one of your own as a JSON object")
        return source.build(lambda case: case.scenario.set_persona(value))

    remove = Operation("remove the persona", source.build(lambda case: case.scenario.set_persona(None)))
    row_id = ("scenario", "user_persona")
    if isinstance(persona, dict):
        text = json.dumps(persona, ensure_ascii=False, indent=2)
        field = Field("change the persona", text, "json", change)
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
        field=Field("choose the persona", text, "value", change, tuple(map(Completion, PREBUILT_PERSONAS))),
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
