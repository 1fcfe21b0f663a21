"""What a case that has not run yet expects."""

from __future__ import annotations

from evaltui.core.diff import expectation_of
from evaltui.core.evalset import EvalCase, Invocation, full_text, tool_calls
from evaltui.core.show import show_value, visible, visible_lines
from evaltui.tui.pages.calls import write_expected_call
from evaltui.tui.pages.case_result import EXPECTATIONS
from evaltui.tui.pages.writer import Page

_MAX_VALUE = 400


def write_expectation(page: Page, case: EvalCase) -> None:
    state = case.session_input.state if case.session_input else {}
    for title, values in (
        ("Starts with the state", state),
        ("Ends with the state", case.final_session_state),
    ):
        if values:
            page.blank()
            page.row((title, "bold"))
            for key, value in values.items():
                page.hanging([(f"  {visible(key)}  ", "dim"), (show_value(value, _MAX_VALUE), "")], 4)
    for number, turn in enumerate(case.conversation or []):
        _write_turn(page, number, turn)
    if case.conversation_scenario is not None:
        scenario = case.conversation_scenario
        page.blank()
        page.row(("Simulated user", "bold"))
        page.labelled("begins", [(_shown(scenario.starting_prompt), "")])
        page.labelled("plan", [(_shown(scenario.conversation_plan), "")])


def _write_turn(page: Page, number: int, turn: Invocation) -> None:
    page.blank()
    page.turns[number] = len(page.lines)
    page.row((f"Turn {number + 1}", "bold"), (f"  {EXPECTATIONS[expectation_of(turn)]}", "dim"))
    page.labelled("user", [(_shown(full_text(turn.user_content)), "")])
    for call in tool_calls(turn.intermediate_data):
        write_expected_call(page, call.name or "", call.args)
    if answer := full_text(turn.final_response):
        page.labelled("answer", [(_shown(answer), "")])


def _shown(text: str) -> str:
    return "\n".join(visible_lines(text))
