"""The rows of a turn, and what can be done to it as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from evaltui.core.editing.json_paths import field_path, field_value
from evaltui.core.editing.turn import EXPECTATION_KINDS, ExpectationKind
from evaltui.core.model.json_values import spelt, value_at
from evaltui.text.values import show_value
from evaltui.workbench.case_rows.calls import call_rows, intermediate_rows, response_rows
from evaltui.workbench.case_rows.messages import message_rows
from evaltui.workbench.case_rows.rubrics import rubric_rows
from evaltui.workbench.case_rows.turn_source import TurnSource, add_turn
from evaltui.workbench.fields import Operation, Row, RowSource, remove_at, unknown_fields

EXPECTATION_TEXTS: dict[ExpectationKind, str] = {
    "calls": "expects these calls",
    "none": "must call nothing",
    "unspecified": "says nothing of calls: scored as no calls",
    "unchecked": "calls are not checked",
}
CONTEXT_TEXT = "context: run, not scored"
_LABELS: dict[ExpectationKind, str] = {
    "calls": "expect these calls",
    "none": "expect no call",
    "unspecified": "say nothing of calls",
    "unchecked": "leave the calls unchecked",
}
_KNOWN = (
    "invocation_id",
    "user_content",
    "final_response",
    "intermediate_data",
    "creation_timestamp",
    "duration",
    "model_duration",
    "tool_duration",
    "rubrics",
    "app_details",
)


def turn_rows(source: RowSource, number: int) -> list[Row]:
    turn = TurnSource(source, number)
    return [
        _heading(turn),
        *message_rows(turn, "user"),
        *call_rows(turn),
        *response_rows(turn),
        *intermediate_rows(turn),
        *message_rows(turn, "answer"),
        *rubric_rows(source, number),
        *_agents(turn),
        *_unknown(turn),
    ]


def _heading(turn: TurnSource) -> Row:
    number, count = turn.number, turn.source.editor.turn_count
    expectation = turn.editor.expectation

    def move(step: int) -> Operation:
        to = max(0, min(number + step, count - 1))
        return Operation(
            f"move turn {number + 1} {'up' if step < 0 else 'down'}",
            turn.build(lambda editor: editor.move(to)),
            ("turn", to),
        )

    return Row(
        turn.id(),
        "turn",
        f"Turn {number + 1}",
        shown=CONTEXT_TEXT if expectation.context else EXPECTATION_TEXTS[expectation.kind],
        quiet=True,
        turn=number,
        adds=turn.additions(add_turn(turn.source, number + 1)),
        insert=add_turn(turn.source, number),
        duplicate=Operation(
            f"duplicate turn {number + 1}",
            turn.build(lambda editor: editor.duplicate()),
            ("turn", number + 1),
        ),
        delete=Operation(
            f"delete turn {number + 1}",
            turn.build(lambda editor: editor.delete()),
            ("turn", min(number, count - 2)) if count > 1 else ("turns",),
        ),
        move=move,
        path=turn.editor.path,
    )


# What is shown only


def _agents(turn: TurnSource) -> Iterator[Row]:
    data = turn.source.editor.data
    path = field_path(data, turn.editor.path, "app_details")
    details = field_value(data, path, "agent_details")
    for key, agent in details.items() if isinstance(details, dict) else ():
        if not isinstance(agent, dict):
            continue
        tools = agent.get(spelt("tool_declarations", agent))
        count = f", {len(tools)} tools" if isinstance(tools, list) and tools else ""
        yield Row(
            turn.id("agent", key),
            "part",
            "agent",
            f"{agent.get('name', key)}{count}",
            shown=str(agent.get("instructions") or ""),
            quiet=True,
            turn=turn.number,
            adds=turn.additions(add_turn(turn.source, turn.number + 1)),
            path=path,
        )


def _unknown(turn: TurnSource) -> Iterator[Row]:
    path = turn.editor.path
    for key, value in unknown_fields(value_at(turn.source.editor.data, path), _KNOWN):
        yield Row(
            turn.id("unknown", key),
            "fact",
            key,
            value=value,
            shown=show_value(value, 400),
            quiet=True,
            turn=turn.number,
            adds=turn.additions(add_turn(turn.source, turn.number + 1)),
            delete=remove_at((*path, key)),
            path=(*path, key),
        )


# What any row of a turn may change


def next_expectation(source: RowSource, number: int) -> tuple[Operation, int]:
    """The next of the four kinds of expectation, and how many calls are taken out by it."""
    turn = TurnSource(source, number)
    kind = turn.editor.expectation.kind
    wanted = EXPECTATION_KINDS[(EXPECTATION_KINDS.index(kind) + 1) % len(EXPECTATION_KINDS)]
    label = f"turn {number + 1}: {_LABELS[wanted]}"
    edit = turn.build(lambda editor: editor.set_expectation(wanted))
    if wanted == "calls" and not turn.calls:
        # One is added, whose name is typed next.
        return Operation(label, edit, turn.id("call", 0), "value"), 0
    return Operation(label, edit), len(turn.calls) if wanted in ("none", "unspecified") else 0


def toggle_context(source: RowSource, number: int) -> Operation:
    turn = TurnSource(source, number)
    on = not turn.editor.expectation.context
    label = f"turn {number + 1}: run it without scoring" if on else f"turn {number + 1}: score it"
    return Operation(label, turn.build(lambda editor: editor.set_context(on=on)))


def attach(source: RowSource, number: int, payload: bytes, mime_type: str) -> Operation:
    edit = TurnSource(source, number).build(lambda turn: turn.user.attach_file(payload, mime_type))
    return Operation("attach a file", edit)
