"""Intermediate responses in a result: beside the expected ones, and as differences."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from example_runs import passed, report
from fake_runs import FakeRuns
from pilots import screen_text, turn, until, write_cases

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.scoring import score_case
from evaltui.reports.details import case_details
from evaltui.reports.html.case_view import case_view
from evaltui.reports.html.page import html_report
from evaltui.reports.html.painting import sides
from evaltui.reports.markdown_report import markdown_report
from evaltui.text.lines import cells, draw
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.dialogs.accept import AcceptScreen
from evaltui.tui.result.case_result import ShownCase, write_case_result
from evaltui.tui.widgets.writer import Page
from evaltui.views.cause import differences_of
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.result.acceptable import choices_in_result
from evaltui.workbench.result.accepting import accept, propose
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef, Selection
from evaltui.workbench.workbench import Workbench

ASKED = {
    "criteria": {"response_match_score": 0.5},
    "evaltui": {"criteria": {"intermediate_match_score": 0.8}},
}
NOT_ASKED = {"criteria": {"tool_trajectory_avg_score": 1}}


def saying(*texts):
    one = turn("where is it", "It is here.")
    one["intermediate_data"]["intermediate_responses"] = [["desk", [{"text": text}]] for text in texts]
    return one


EXPECTED = [saying("I look it up.", "Found something!")]
MADE = [saying("I look it up for you now.", "By the way")]


def outcome(config, made=MADE):
    case, actual = (
        EvalCase.model_validate({"eval_id": "a", "conversation": one}) for one in (EXPECTED, made)
    )
    used = EvalConfig.model_validate(config)
    result = asyncio.run(score_case(case, actual.conversation, used))
    return CaseOutcome(ResultInMemory.of(result), RunRef(1), StoredCase.of(case), used)


def page_of(scored, width):
    page = Page(width, 180)
    write_case_result(page, ShownCase(scored, place="home.evalset.json:8"))
    assert all(cells(line) <= page.width for line in page.lines)
    return page, [" ".join(draw(line, color=False).split()) for line in page.lines]


def test_both_sides_stand_beside_each_other_and_are_differences_where_the_metric_failed():
    scored = outcome(ASKED)
    page, lines = page_of(scored, 140)
    assert "desk: I look it up. ≠ desk: I look it up for you now. 0.73" in lines
    assert "desk: Found something! missing −" in lines
    assert "+ desk: By the way unexpected" in lines
    places = [DifferenceAt("text", 0, text=place) for place in range(3)]
    assert [one.at for one in page.differences] == places == list(differences_of(scored.result))
    narrow = page_of(scored, 76)[1]
    assert "− desk: Found something! missing" in narrow


def test_texts_that_no_metric_scores_are_no_differences():
    made = [saying("I look it up for you now.")]
    made[0]["intermediate_data"]["tool_uses"] = [{"name": "look"}]
    page, lines = page_of(outcome(NOT_ASKED, made), 140)
    assert [one.at.kind for one in page.differences] == ["call"]
    assert "desk: I look it up. ~ desk: I look it up for you now. not scored" in lines
    assert page_of(outcome(ASKED, EXPECTED), 140)[0].differences == []


def run_of(result):
    return report(replace(result, eval_set_id=passed().eval_set_id))


@pytest.mark.parametrize(("config", "differs"), [(ASKED, True), (NOT_ASKED, False)])
def test_the_html_report_has_both_sides(config, differs):
    result = outcome(config).result
    (turn,) = case_view(result, {}, "").repeats[0].turns
    assert [tuple(draw(side or [], color=False) for side in sides(row)) for row in turn.texts] == [
        ("desk: I look it up.", "desk: I look it up for you now."),
        ("desk: Found something!", ""),
        ("", "desk: By the way"),
    ]
    ops, notes = ["within", "", ""], ["not scored"] * 3
    if differs:
        ops, notes = ["changed", "missing", "extra"], ["0.73", "missing", "unexpected"]
    assert [(one.op, one.note, one.differs) for one in turn.texts] == [
        (op, note, differs) for op, note in zip(ops, notes, strict=True)
    ]
    page = "".join(html_report(run_of(result)))
    assert page.index("I look it up<") < page.index("Found something!") < page.index("By the way")


def test_the_markdown_report_has_both_sides():
    page = markdown_report(run_of(outcome(ASKED).result))
    assert (
        "before    ≠ 0.73  desk: I look it up{+ for you now+}.\n    before    − missing  desk: Found" in page
    )


def test_the_console_report_has_both_sides():
    lines = [draw(line, color=False) for line in case_details(outcome(ASKED).result, 100)]
    before = [line.strip() for line in lines if line.strip().startswith("before")]
    assert before == [
        "before    ≠ 0.73  desk: I look it up{+ for you now+}.",
        "before    − missing  desk: Found something!",
        "before    + unexpected  desk: By the way",
    ]


async def test_the_next_difference_leads_to_the_row_of_the_expected_text(tmp_path):
    (tmp_path / "agent.py").touch()
    path = write_cases(tmp_path, "desk", {"a": EXPECTED})
    (tmp_path / "test_config.json").write_text(json.dumps(ASKED), encoding="utf-8")
    made = [Invocation.model_validate(one) for one in MADE]
    app = WorkbenchApp(Workbench(tmp_path, run_service=FakeRuns(lambda case, repeat: made)))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: app.workbench.sets.listed)
        app.workbench.navigation.select(Selection(path.name, "a"))
        app.workbench.runs.run_all()
        await until(pilot, lambda: "desk: I look it up for you now." in screen_text(app))
        await pilot.press("n", "n")
        await until(pilot, lambda: app.workbench.navigation.difference == DifferenceAt("text", 0, text=1))
        await pilot.press("e")
        await until(pilot, lambda: "turn 1 › desk:" in screen_text(app))


async def test_a_text_or_all_of_a_turn_are_accepted_after_the_change_is_shown(tmp_path):
    (tmp_path / "agent.py").touch()
    path = write_cases(tmp_path, "desk", {"a": EXPECTED, "b": [turn("where is it", "Nowhere.")]})
    (tmp_path / "test_config.json").write_text(json.dumps(ASKED), encoding="utf-8")
    made = [Invocation.model_validate(one) for one in MADE]
    workbench = Workbench(tmp_path, run_service=FakeRuns(lambda case, repeat: made))
    app = WorkbenchApp(workbench)

    def expected(number=0):
        data = workbench.editing.document(path).value["eval_cases"][number]["conversation"][0]
        pairs = data["intermediate_data"].get("intermediate_responses", [])
        return [part["text"] for _, parts in pairs for part in parts]

    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: workbench.sets.listed)
        workbench.navigation.select(Selection(path.name, "a"))
        workbench.runs.run_all()
        await until(pilot, lambda: "desk: I look it up for you now." in screen_text(app))
        await pilot.press("n", "n")
        await until(pilot, lambda: workbench.navigation.difference == DifferenceAt("text", 0, text=1))
        assert [choice.title for choice in choices_in_result(workbench.editing)] == [
            *("This text", "Texts of this turn", "Whole case", "All 2 failing in view")
        ]
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AcceptScreen))
        await until(pilot, lambda: "still fails" in screen_text(app))
        assert '["desk", [{"text": "Found' in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: expected() == ["I look it up."])
        assert workbench.editing.undo_label == "accept intermediate response of turn 1"
        # Every case, of which one says nothing of such texts.
        whole = choices_in_result(workbench.editing)[-1]
        assert accept(workbench.editing, await propose(workbench.editing, whole))
        assert (expected(), expected(1)) == (["I look it up for you now.", "By the way"], [])
        await until(pilot, lambda: workbench.outcomes.status(CaseId(path.name, "a")) == "PASSED")
