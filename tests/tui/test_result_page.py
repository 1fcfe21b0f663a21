"""The result of a case as text: what comes first, both sides in two widths, what folds, what is live."""

from __future__ import annotations

import asyncio

import pytest
from pilots import turn

from evaltui.core.compare import explain
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import Event
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.scoring import score_case
from evaltui.text.lines import cells, draw
from evaltui.tui.result import rows as rows_page
from evaltui.tui.result.case_result import ShownCase, write_case_result
from evaltui.tui.result.running import LiveCase, RunningCase, write_live
from evaltui.tui.widgets.writer import Folding, Page
from evaltui.views.cause import differences_of, failing_differences
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, Run, RunRef

BEDROOM = {"name": "set", "args": {"room": "Bedroom", "degrees": 19}}
KITCHEN = {"name": "set", "args": {"room": "Kitchen", "degrees": 19}}
ASK = {"name": "ask", "args": {"room": "Kitchen"}}
NOTIFY = {"name": "notify", "args": {"text": "It is cold."}}
FIRST = turn("Set the bedroom", "The bedroom is set.", BEDROOM)
EXPECTED = [FIRST, turn("And the kitchen", "The kitchen is now set to 19 °C.", ASK, KITCHEN)]
WRONG = {"name": "set", "args": {"room": "Kitchen", "degrees": "19"}}
MADE = [FIRST, turn("And the kitchen", "The kitchen is set to 19 °C.", ASK, WRONG, NOTIFY)]


def outcome(expected, made, state=None, final_state=None, **config):
    case, actual = (
        EvalCase.model_validate({"eval_id": "night", "conversation": turns, "final_session_state": state})
        for turns in (expected, made)
    )
    used = EvalConfig.model_validate(config) if config else EvalConfig.default()
    result = asyncio.run(score_case(case, actual.conversation or [], used, final_state=final_state))
    return CaseOutcome(ResultInMemory.of(result), RunRef(18), StoredCase.of(case), used)


def page_of(scored, width, **shown):
    page = Page(width, 180)
    write_case_result(page, ShownCase(scored, place="home.evalset.json:8", **shown))
    return page


def lines_of(page):
    assert all(cells(line) <= page.width for line in page.lines)
    return [draw(line, color=False) for line in page.lines]


def around(lines, first, count):
    place = next(number for number, line in enumerate(lines) if line.startswith(first))
    return [" ".join(line.split()) for line in lines[place : place + count]]


@pytest.mark.parametrize(
    ("final_state", "head", "row"),
    [
        ({"mode": "night"}, "Final state ✓", "= mode night"),
        (None, "Final state –", "mode night actual unknown"),
    ],
)
def test_a_final_state_is_equal_only_where_it_is_known(final_state, head, row):
    scored = outcome(EXPECTED, EXPECTED, {"mode": "night"}, final_state)
    lines = lines_of(page_of(scored, 100, folding=Folding(all_open=True)))
    title, value = around(lines, "▾ Final state", 2)
    assert (title.startswith(f"▾ {head}"), value.replace('"', "")) == (True, row)


def test_a_click_opens_a_part_and_the_selected_turn_is_open():
    scored = outcome(EXPECTED, MADE)
    page = page_of(scored, 78)
    assert page.folds[page.turns[0]] == "turn 0"
    toggled = Folding(toggled=frozenset({"turn 0"}))
    assert len(page_of(scored, 78, folding=toggled).lines) > len(page.lines)
    assert len(page_of(scored, 78, turn=0).lines) > len(page.lines)


def test_what_differs_within_the_threshold_is_not_walked():
    result = outcome(EXPECTED, MADE).result
    assert [at.kind for at in differences_of(result)] == ["argument", "call", "answer"]
    assert [at.kind for at in failing_differences(result)] == ["argument", "call"]
    alike = outcome(EXPECTED, [FIRST, turn("And the kitchen", "The kitchen is set.", ASK, KITCHEN)]).result
    assert [at.kind for at in failing_differences(alike)] == ["answer"]


def test_a_pass_says_what_rules_allow():
    rule = {"tool": "set", "arg": "degrees", "match": "type"}
    config = {"criteria": {"tool_trajectory_avg_score": 1.0}, "evaltui": {"rules": [rule]}}
    other = {"name": "set", "args": {"room": "Bedroom", "degrees": 20}}
    scored = outcome([FIRST], [turn("Set the bedroom", "The bedroom is set.", other)], **config)
    lines = lines_of(page_of(scored, 78, height=60))
    assert lines[0] == " ✓ PASSED   allowed by rules: degrees of set"
    (allowed,) = (line for line in lines if "allowed by rule:" in line)
    assert allowed.split() == ["≃", "degrees", "19", "allowed", "by", "rule:", "type"]


@pytest.mark.parametrize(("number", "folds"), [(6, False), (7, True)])
def test_many_equal_calls_are_a_line(number, folds):
    calls = [{"name": "step", "args": {"number": place}} for place in range(number)]
    scored = outcome([turn("go", "", *calls)], [turn("go", "", *calls, NOTIFY)])
    lines = lines_of(page_of(scored, 78))
    assert (f"  ▸ = {number} equal calls" in lines) is folds


def test_of_nested_arguments_only_what_differs_is_open():
    def plan(to):
        nested = {"from": "22:00", "days": ["sat", {"to": to}], "off": True}
        return {"name": "plan", "args": {"schedule": nested, "room": {"name": "Kitchen", "floor": 1}}}

    scored = outcome([turn("go", "", plan(7))], [turn("go", "", plan(8))])
    lines = [" ".join(line.split()) for line in lines_of(page_of(scored, 78))]
    place = lines.index("− schedule.days[1].to 7 expected")
    assert lines[place + 1] == "+ schedule.days[1].to 8 actual"
    assert 'room {"name": "Kitchen", "floor": 1}' in lines
    assert any(line.startswith("▸ = ") and line.endswith("equal values") for line in lines)
    assert not any("schedule.from" in line for line in lines)


@pytest.mark.parametrize("width", [78, 116])
def test_of_a_thousand_calls_that_differ_only_the_rows_that_are_seen_are_made(monkeypatch, width):
    made, explained = [], []
    sides, call_text = rows_page.Sides, explain._call_text
    monkeypatch.setattr(explain, "_call_text", lambda *args: explained.append(args) or call_text(*args))
    monkeypatch.setattr(
        rows_page, "Sides", lambda *args, **kwargs: made.append(args) or sides(*args, **kwargs)
    )
    calls = [[{"name": "find", "args": {"query": q, "page": n}} for n in range(1000)] for q in ("old", "new")]
    page = page_of(outcome([turn("go", "", *calls[0])], [turn("go", "", *calls[1])]), width, height=40)
    assert not made
    assert len(page.lines) > 3000
    seen = [draw(line, color=False) for line in page.lines[:40]]
    assert any('"old"' in line for line in seen)
    assert 20 < len(made) <= 40
    assert len(explained) == 4
    last = page.differences[-1]
    assert 'query  "' in draw(page.lines[last.last - 1], color=False)


@pytest.mark.parametrize("width", range(60, 180, 7))
def test_no_line_of_a_wrapped_text_is_cut(width):
    text = "Hello, I look after the lights and the heating of your house, and I am glad to be of help"
    words = text.split()
    said = [turn("hi", " ".join(words[:count])) for count in range(1, len(words) + 1)]
    other = [turn("hi", " ".join(["Well,", *words[:count]])) for count in range(1, len(words) + 1)]
    unlike = [
        turn("hi", " ".join(word[::-1] for word in words[:count])) for count in range(1, len(words) + 1)
    ]
    for made in (said, other, unlike):
        page = page_of(outcome(said, made), width, folding=Folding(all_open=True))
        first, *lines = lines_of(page)[next(iter(page.turns.values())) :]
        assert first
        assert not [line for line in lines if "…" in line and not line.startswith(("▾", "▸"))]


def test_the_verdict_is_wrapped_and_never_cut():
    plan = {"name": "plan", "args": {f"room of the {floor} floor": 12 for floor in ("first", "second")}}
    scored = outcome([turn("go", "", plan, ASK)], [turn("go", "", {**plan, "args": {}}, NOTIFY)])
    lines = lines_of(page_of(scored, 78))
    head = lines[: lines.index("")]
    assert len(head) > 1
    assert "…" not in "".join(head)
    assert "  " not in " ".join(line.strip() for line in head[1:])


REPORT = "# Rooms\n\n- the **kitchen** is cold\n- the bedroom is warm\n\nSet both to `19`."
OTHER = "## Weather\n\n1. rain\n2. wind, from the *west*\n\n| day | high |\n|---|---|\n| Mon | 12 |"


@pytest.mark.parametrize("width", [78, 116])
def test_long_markdown_is_drawn_as_such_on_both_sides(width):
    page = page_of(outcome([turn("go", REPORT)], [turn("go", OTHER)]), width)
    text = "\n".join(lines_of(page))
    for shown in ("Rooms", "• the kitchen is cold", "Weather", "1. rain", "Mon  12"):
        assert shown in text
    assert "**kitchen**" not in text
    assert "| day |" not in text
    roles = {part.strip(): role for line in page.lines for part, role in line}
    assert "bold" in roles["kitchen"]
    assert "accent" in roles["Weather"]


def test_words_that_changed_are_tinted_within_markdown():
    page = page_of(
        outcome([turn("go", REPORT)], [turn("go", REPORT.replace("cold", "warm"))]), 116, height=60
    )
    tinted = {part.strip(): role for line in page.lines for part, role in line if "-hi" in role}
    assert {text: role.split()[0] for text, role in tinted.items()} == {"cold": "exp-hi", "warm": "act-hi"}
    heading = [role for line in page.lines for part, role in line if part.startswith("# Rooms")]
    assert heading == ["bold accent"] * 2


def test_what_stands_above_a_result_stays_there_where_the_page_fits():
    page = Page(116, 180)
    page.row(("Cannot load agent", "bold"))
    write_case_result(page, ShownCase(outcome(EXPECTED, MADE), height=60))
    lines = lines_of(page)
    assert lines[0] == "Cannot load agent"
    assert lines[page.turns[0]].startswith("▾ Turn 1")


@pytest.mark.parametrize("width", [78, 116])
def test_a_stale_result_has_faint_scores_and_says_why(width):
    note = [("stale: agent.py changed after run 18", "warning")]
    page = page_of(outcome(EXPECTED, MADE), width, note=note)
    assert lines_of(page)[0] == " ✗ FAILED   stale: agent.py changed after run 18"
    strip = [role for line in page.lines for _, role in line if "surface" in role]
    assert strip
    assert set(strip) == {"surface faint"}


# Before there is a result


def event(kind, turn_number, t, part=None, **data):
    content = {"parts": [part]} if part else None
    return Event(kind, content, turn=turn_number, t=t, data=data)


def called(t, number, call):
    return event("tool_call", number, t, {"function_call": call})


def test_a_running_case_fills_in_beside_what_is_expected():
    case = EvalCase.model_validate({"eval_id": "night", "conversation": [*EXPECTED, turn("Thanks", "")]})
    events = [
        event("user", 0, 0.1, {"text": "Set the bedroom"}),
        called(0.2, 0, BEDROOM),
        event("user", 1, 0.4, {"text": "And the kitchen"}),
        called(0.6, 1, ASK),
        event("text", 1, 0.7, {"text": "The kitchen"}, partial=True),
    ]
    asking = [event("model_request", 0, 0.2, model="gemini-2.5-flash")]
    page = Page(116, 180)
    flying = [RunningCase("night", 3, events), RunningCase("other", 1, asking)]
    write_live(page, LiveCase(case, events, Run(19, "all"), 30.0, "home.evalset.json:8", None, flying))
    lines = lines_of(page)
    assert lines[0].startswith(" ◐ RUNNING   Turn 2 of 3  streaming")
    assert "timeout 30 s" in lines[2]
    assert around(lines, "▸ Turn 1 =", 1) == ["▸ Turn 1 = Set the bedroom 1/1 call 0.10 s"]
    assert around(lines, "▾ Turn 2 ◐", 1) == ["▾ Turn 2 ◐ And the kitchen 1/2 calls so far"]
    assert any(line.split() == ["ask", "=", "ask"] for line in lines)
    assert any(line.endswith("The kitchen▋") for line in lines)
    assert around(lines, "  Turn 3 ○", 1) == ["Turn 3 ○ Thanks queued"]
    assert lines[-1].startswith("  ◐ other  turn 1 of 1   waiting for gemini-2.5-flash")
    assert page.differences == []
    whole = [*events, event("text", 1, 0.9, {"text": "The kitchen is set."})]
    page = Page(116, 180)
    live = LiveCase(case, whole, Run(19, "all"), 30.0, "", None, (), is_judged=True)
    write_live(page, live)
    assert lines_of(page)[0] == " ◐ RUNNING   Turn 2 of 3  waiting for judge"
    assert any(line.endswith(" The kitchen is set.▋") for line in lines_of(page))
