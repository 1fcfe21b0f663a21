"""The pages about a trace and a conversation as text: axis, rows, times, requests, frames."""

from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest

from evaltui.core.model.events import CALLS, Event
from evaltui.core.model.outcome import Call, CallDiff, ErrorInfo, TurnResult
from evaltui.core.model.spending import ModelSpending, Spending
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.core.trace.spans import SpanTree, request_of, time_spent
from evaltui.text.lines import draw
from evaltui.tui.chat.page import ChatTotals, write_inspected, write_row
from evaltui.tui.trace.page import Columns, axis_line, cut_text, span_line, write_time_spent
from evaltui.tui.trace.span import write_expected, write_head, write_request
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.chat.conversation import ChatTurn, Transcript, TurnStage
from evaltui.workbench.chat.rows import Row, RowKind


def said(role, text):
    return {"role": role, "parts": [{"text": text}]}


def call_part(name, **args):
    return {"role": "model", "parts": [{"function_call": {"name": name, "args": args}}]}


USAGE = {"prompt_token_count": 612, "candidates_token_count": 38, "cached_content_token_count": 512}
TOOLS = [{"name": "set_light", "parameters": {"properties": {"location": {}, "status": {}}}}]
EVENTS = [
    Event("console", turn=None, t=0.5, data={"text": "imported", "source": "stdout"}),
    Event("user", said("user", "Warm the kitchen"), turn=0, t=1.0),
    Event(
        "model_request",
        agent="home",
        turn=0,
        t=2.0,
        id="m1",
        data={
            "model": "gemini",
            "system_instruction": "Be **brief**.",
            "tools": TOOLS,
            "contents": [said("user", "Warm the kitchen")],
        },
    ),
    Event(
        "model_response", call_part("set_temperature"), agent="home", turn=0, t=3.0, parent="m1", usage=USAGE
    ),
    Event("tool_call", call_part("set_temperature", degrees="19"), agent="home", turn=0, t=3.0, id="c1"),
    Event(
        "tool_result",
        {"parts": [{"function_response": {"name": "set_temperature", "response": {"ok": True}}}]},
        agent="home",
        turn=0,
        t=3.5,
        parent="c1",
        duration=0.5,
    ),
    Event(
        "model_request",
        agent="home",
        turn=0,
        t=4.0,
        id="m2",
        data={
            "model": "gemini",
            "system_instruction": "Be **brief**.",
            "tools": TOOLS,
            "contents_before": 1,
            "contents": [call_part("set_temperature", degrees="19")],
        },
    ),
    Event("model_response", said("model", "Done."), agent="home", turn=0, t=5.0, parent="m2"),
]


@pytest.fixture
def tree():
    tree = SpanTree()
    tree.add(EVENTS)
    return tree


def text(lines):
    return [draw(line, color=False) for line in lines]


def written(write, *args):
    page = Page(70)
    write(page, *args)
    return text(page.lines)


def span(tree, kind, number=0):
    return [one for one in tree.spans if one.kind == kind][number]


def row(one, tree, width, **marks):
    return draw(span_line(one, Columns.of(tree), width, folded=False, **marks), color=False)


def test_the_axis_and_the_bars_have_one_scale(tree):
    axis = draw(axis_line(Columns.of(tree), 100), color=False)
    tool = row(span(tree, "tool"), tree, 100, op="changed")
    assert axis.split() == ["tokens", "0", "0.75", "s", "1.5", "s", "2.2", "s", "time"]
    assert tool.startswith('≠    tool  set_temperature  degrees "19"')
    # A third of the way, where the tool began; no bar is longer than a third of the row.
    assert axis.index("0 ") + 11 == tool.index("━")
    assert max(row(one, tree, 100).count("━") for one in tree.spans) <= 33
    model = row(span(tree, "model"), tree, 100)
    assert "gemini → set_temperature" in model
    assert "612 → 38" in model
    assert "model → text" in row(span(tree, "model", 1), tree, 100, named=False)


def test_bars_leave_arguments_whole_and_no_column_is_kept_for_tokens_that_nobody_knows():
    message = "The kitchen is warm now, the bedroom will be in an hour, and the heating is off at ten"
    called = Event("tool_call", call_part("notify", text=message), agent="home", turn=0, t=3.0, id="c1")
    asked = replace(EVENTS[3], usage=None)
    tree = SpanTree()
    tree.add([*EVENTS[:3], asked, called, replace(EVENTS[5], t=3.5)])
    axis = draw(axis_line(Columns.of(tree), 130), color=False)
    assert "tokens" not in axis
    assert f'notify  text "{message}"' in row(span(tree, "tool"), tree, 130)
    assert "━" not in row(span(tree, "tool"), tree, 110)
    assert "━" in row(span(tree, "tool"), tree, 140)


@pytest.mark.parametrize("width", [60, 100])
def test_a_span_without_an_end_may_still_end_while_its_case_runs_and_is_unknown_later(width):
    tree = SpanTree()
    tree.add(EVENTS[:3])
    asked = next(one for one in tree.spans if one.is_open)
    rows = [row(asked, tree, width, is_live=is_live) for is_live in (True, False)]
    assert [one.rstrip()[-1] for one in rows] == ["…", "—"]
    assert written(write_head, asked, 1)[0].rstrip().endswith("—")


def test_a_row_that_is_cut_has_all_of_its_text(tree):
    call = span(tree, "tool")
    assert cut_text(call, Columns.of(tree), 200) == ""
    full = cut_text(call, Columns.of(tree), 30)
    assert full.startswith('tool  set_temperature  degrees "19"')
    assert full not in row(call, tree, 30)


def test_calls_that_an_agent_keeps_to_itself_took_no_time_that_is_known():
    tree = SpanTree()
    user = {"role": "user", "parts": [{"text": "hello"}]}
    kept = Event("state", turn=0, t=2.0, data={"delta": {}, "untold": [CALLS]})
    tree.add([Event("user", user, turn=0), kept])
    lines = written(write_time_spent, time_spent(tree.spans), 0, tree.unknown)
    assert [line.split()[:2] for line in lines[1:3]] == [["model", "—"], ["tool", "—"]]
    assert all(line.endswith("calls —") for line in lines[1:3])


def test_a_request_begins_with_what_is_new(tree):
    second = span(tree, "model", 1)
    lines = written(write_request, request_of(tree.spans, second.number))
    heads = [line.split(" ─")[0] for line in lines if "─" in line]
    assert heads == [
        "New since the previous request",
        "System instruction",
        "Tools",
        "Contents  + new",
        "Tool set_light",
    ]
    assert ' + model  → set_temperature  degrees "19"' in lines
    assert " set_light(location, status)" in lines
    head = written(write_head, span(tree, "model"), 1)
    assert head[0].startswith("model gemini  call 1 of turn 1")
    assert "  tokens      612 in   512 cached   38 out" in head


def test_a_call_stands_beside_what_was_expected(tree):
    expected, actual = Call("set_temperature", {"degrees": 19}), Call("set_temperature", {"degrees": "19"})
    turn = TurnResult("these calls", (CallDiff("changed", expected, actual),), ResponseDiff("Done.", "Done."))
    lines = written(write_expected, span(tree, "tool"), turn)
    assert lines[0] == "≠ argument differs"
    assert lines.index('   "degrees": 19') < lines.index('   "degrees": "19"')
    assert written(write_expected, span(tree, "tool"), None) == ["Nothing expected here"]
    unchecked = TurnResult("not checked", (CallDiff("extra", None, actual),), ResponseDiff("Done.", "Done."))
    lines = written(write_expected, span(tree, "tool"), unchecked)
    assert lines[0].startswith("Calls  not checked ")
    assert "unexpected" not in "".join(lines)


def test_a_request_to_a_person_stands_at_its_call():
    row = Row("request", 0, "home", "Unlock the door?", asks="confirmation")
    lines = text(write_row(row, 60, 12, None, unfolded=False))
    assert "● Confirmation requested" in lines[0]
    assert "│ Unlock the door?" in lines[1]


def test_the_inspector_of_a_chat_says_which_turn_changed_the_state():
    states = [{}, {"lights": {"Kitchen": "OFF", "Hall": "ON"}}, {"lights": {"Kitchen": "ON", "Hall": "ON"}}]
    turns = [
        ChatTurn(said("user", "hi"), stage=TurnStage.DONE, state_before=before, state_after=after)
        for before, after in pairwise(states)
    ]
    row = Row("call", 1, "home", "set_light", args={"status": "ON"}, result={"ok": True})
    transcript = Transcript("new chat", turns=turns)
    spent = Spending((ModelSpending("agent", "gemini-2.5-pro", calls=3, usd=0.0042, unpriced=1),))
    lines = written(write_inspected, row, turns[1], transcript, [], ChatTotals(1640, spent))
    assert lines[0] == "set_light  tool call"
    state = {line.split()[0]: line.split()[1:] for line in lines if line.startswith(" lights.")}
    assert state == {
        "lights.Kitchen": ['"ON"', "turn", "2"],
        "lights.Hall": ['"ON"', "turn", "1"],
    }
    assert "  tokens      1,640" in lines
    assert "  cost        $0.0042 + 1 unpriced call" in lines
    error = ErrorInfo("ValueError", "not today", "ValueError: not today\n  in root_agent", kind=None)
    row = Row("error", 1, "home", error=error)
    lines = written(write_inspected, row, turns[1], transcript, [], ChatTotals(0))
    assert "in root_agent" in "\n".join(lines)


def test_the_inspector_of_a_chat_is_drawn_again_after_it_went_back():
    """A change of size draws the page before the conversation has another row to show."""
    turn = ChatTurn(said("user", "hi"), stage=TurnStage.DONE)
    transcript = Transcript("new chat", turns=[turn])
    for kind in get_args(RowKind):
        row = Row(kind, 0, "home", "Done.")
        transcript.turns.clear()
        assert written(write_inspected, row, turn, transcript, [], ChatTotals(0))
