"""Everything that a case says: where it starts from, and of every turn what is said and expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from google.genai import types

from evaltui.core.config import EvalConfig
from evaltui.core.diff import expectation_of
from evaltui.core.evalset import (
    AppDetails,
    ConversationScenario,
    EvalCase,
    Intermediate,
    IntermediateData,
    Invocation,
    Rubric,
    SessionInput,
    UserPersona,
)
from evaltui.core.outcome import Expectation
from evaltui.core.show import show_value, visible
from evaltui.reports.lines import Line
from evaltui.tui.pages.calls import write_expected_call
from evaltui.tui.pages.case_result import EXPECTATIONS
from evaltui.tui.pages.content import content_spans, shown_text
from evaltui.tui.pages.writer import LABEL, Page

_MAX_VALUE = 400


def write_case(page: Page, case: EvalCase, eval_set_id: str, config: EvalConfig | None) -> None:
    """`config` is the one that scores the set: it may leave calls or whole turns unchecked."""
    page.labelled("id", [(visible(case.eval_id), "bold")])
    page.labelled("set", [(visible(eval_set_id), "")])
    if case.creation_timestamp:
        page.labelled("created", [(_moment(case.creation_timestamp), "")])
    _write_session(page, case.session_input)
    _write_final_state(page, case.final_session_state)
    _write_rubrics(page, case.rubrics)
    for name, value in (case.model_extra or {}).items():
        page.labelled(visible(name), [(show_value(value, _MAX_VALUE), "")])
    for number, turn in enumerate(case.conversation or []):
        mode = config.turn_mode(eval_set_id, case.eval_id, number) if config else None
        _write_turn(page, number, turn, _expectation(turn, mode))
    if case.conversation is not None and not case.conversation:
        page.blank()
        page.text([("The conversation is empty: there is nothing to run.", "dim")])
    if case.conversation_scenario is not None:
        _write_scenario(page, case.conversation_scenario)


def _moment(timestamp: float) -> str:
    try:
        return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{timestamp}"


def _expectation(turn: Invocation, mode: str | None) -> Expectation:
    if mode is not None:
        return "context" if mode == "context" else "not checked"
    return expectation_of(turn)


def _write_session(page: Page, session: SessionInput | None) -> None:
    if session is None:
        return
    known = [("app", session.app_name), ("user", session.user_id), ("session", session.session_id)]
    named = " · ".join(f"{name} {visible(value)}" for name, value in known if value)
    if named:
        page.labelled("session", [(named, "")])
    _write_values(page, "state", session.state)
    _write_values(page, "", session.model_extra or {})


def _write_final_state(page: Page, state: Mapping[str, Any] | None) -> None:
    if state:
        _write_values(page, "final state", state)
    else:
        page.labelled("final state", [("not checked", "dim")])


def _write_values(page: Page, label: str, values: Mapping[str, Any]) -> None:
    for number, (key, value) in enumerate(values.items()):
        name: Line = [(f"{visible(str(key))}  ", "dim")]
        page.labelled(label if number == 0 else "", [*name, (show_value(value, _MAX_VALUE), "")])


def _write_rubrics(page: Page, rubrics: Sequence[Rubric] | None) -> None:
    for number, rubric in enumerate(rubrics or []):
        text = rubric.rubric_content.text_property or rubric.description or ""
        kind = f"  ({visible(rubric.type)})" if rubric.type else ""
        page.labelled(
            "rubrics" if number == 0 else "",
            [(f"{visible(rubric.rubric_id)}{kind}  ", "dim"), (shown_text(text), "")],
        )


def _write_turn(page: Page, number: int, turn: Invocation, expectation: Expectation) -> None:
    page.blank()
    page.turns[number] = len(page.lines)
    page.row((f"Turn {number + 1}", "bold"), (f"  {EXPECTATIONS[expectation]}", "dim"))
    page.labelled("user", content_spans(turn.user_content.parts) or [("(nothing)", "dim")])
    _write_intermediate(page, turn.intermediate_data)
    if turn.final_response is None:
        page.labelled("answer", [("none is expected", "dim")])
    else:
        page.labelled("answer", content_spans(turn.final_response.parts) or [("(empty)", "dim")])
    _write_rubrics(page, turn.rubrics)
    _write_app_details(page, turn.app_details)


def _write_intermediate(page: Page, data: Intermediate | None) -> None:
    if data is None:
        return
    if isinstance(data, IntermediateData):
        for call in data.tool_uses:
            write_expected_call(page, call.name or "", call.args)
        for response in data.tool_responses:
            _write_response(page, response)
        for author, parts in data.intermediate_responses:
            _write_before(page, author, parts)
        return
    for event in data.invocation_events:
        said: list[types.Part] = []
        for part in (event.content.parts or []) if event.content else []:
            if part.function_call:
                write_expected_call(page, part.function_call.name or "", part.function_call.args)
            elif part.function_response:
                _write_response(page, part.function_response)
            else:
                said.append(part)
        _write_before(page, event.author, said)


def _write_response(page: Page, response: types.FunctionResponse) -> None:
    value = show_value(response.response, _MAX_VALUE)
    page.hanging([("  ← ", "dim"), (visible(response.name or ""), "dim"), (f"  {value}", "dim")], 6)


def _write_before(page: Page, author: str, parts: Sequence[types.Part]) -> None:
    if spans := content_spans(parts):
        page.labelled("before", [(f"{visible(author)}: ", "dim"), *spans])


def _write_app_details(page: Page, details: AppDetails | None) -> None:
    for agent in details.agent_details.values() if details else []:
        tools = f", {len(agent.tool_declarations)} tools" if agent.tool_declarations else ""
        page.labelled(
            "agent", [(f"{visible(agent.name)}{tools}  ", "dim"), (shown_text(agent.instructions), "dim")]
        )


def _write_scenario(page: Page, scenario: ConversationScenario) -> None:
    page.blank()
    page.row(("Simulated user", "bold"))
    page.labelled("begins", [(shown_text(scenario.starting_prompt), "")])
    page.labelled("plan", [(shown_text(scenario.conversation_plan), "")])
    persona = scenario.user_persona
    if isinstance(persona, str):
        page.labelled("persona", [(visible(persona), "")])
    elif persona is not None:
        _write_persona(page, persona)


def _write_persona(page: Page, persona: UserPersona) -> None:
    page.labelled("persona", [(f"{visible(persona.id)}  ", "bold"), (shown_text(persona.description), "")])
    for behavior in persona.behaviors:
        page.labelled("", [(f"{visible(behavior.name)}  ", ""), (shown_text(behavior.description), "dim")])
        for instruction in behavior.behavior_instructions:
            page.text([(shown_text(instruction), "")], [(" " * (2 + LABEL), ""), ("· ", "dim")])
        for rubric in behavior.violation_rubrics:
            page.text([(shown_text(rubric), "")], [(" " * (2 + LABEL), ""), ("✗ ", "dim")])
