"""Checks of answers: they follow their case, and every front end has their verdict."""

from __future__ import annotations

import json

import pytest
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from fake_runs import FakeRuns

from evaltui.documents.editing.references import References
from tests.changed_values import changed
from tests.commands.command_line import call

ANSWER = {"set": "lights", "case": "late", "turn": 1, "contains": ["off"]}


def config(*answers):
    return {"evaltui": {"answers": [dict(answer) for answer in answers]}}


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (lambda to: to.rename_set("lights", "night"), [{**ANSWER, "set": "night"}]),
        (lambda to: to.move_cases([(("lights", "late"), ("lights", "b"))]), [{**ANSWER, "case": "b"}]),
        (lambda to: to.renumber_turns(("lights", "late"), lambda turn: turn + 1), [{**ANSWER, "turn": 2}]),
        (lambda to: to.renumber_turns(("lights", "late"), lambda turn: None), []),
        (lambda to: to.renumber_turns(("lights", "early"), lambda turn: None), [ANSWER]),
        (lambda to: to.remove_cases("lights", ["late"]), []),
        (
            lambda to: to.add_copied(to.copied([(("lights", "late"), ("lights", "late_2"))])),
            [ANSWER, {**ANSWER, "case": "late_2"}],
        ),
    ],
)
def test_a_check_follows_its_case_and_turn(change, after):
    data = changed(config(ANSWER), change, References)
    assert data.get("evaltui", {}).get("answers", []) == after


def test_a_check_of_a_case_in_any_set_goes_with_a_new_name():
    any_set = {"case": "late", "contains": ["off"]}
    pairs = [(("lights", "late"), ("lights", "later"))]
    data = changed(config(any_set), lambda to: to.move_cases(pairs), References)
    assert data == config(any_set, {**any_set, "set": "lights", "case": "later"})


@pytest.fixture
def folder(write_agent):
    folder = write_agent("def root_agent(message, session):\n    return 'The kitchen light is not off.'")
    write_eval_set(folder, "lights", make_case("late", make_turn("hi", "The kitchen light is off.")))
    return folder


def run(folder, tmp_path, *answers):
    write_test_config(folder, criteria={"response_match_score": 0.8}, **config(*answers))
    report = tmp_path / "report.json"
    code = call("run", folder, "--report", f"json={report}")
    return code, json.loads(report.read_text())


def test_a_negated_answer_passes_without_a_check_and_fails_with_it(folder, tmp_path):
    assert run(folder, tmp_path)[0] == 0
    code, report = run(folder, tmp_path, {"set": "lights", "case": "late", "not_contains": ["not off"]})
    assert code == 1
    metric = next(metric for metric in report["cases"][0]["metrics"] if metric["name"] == "answer_rules")
    assert (metric["score"], metric["threshold"], metric["status"]) == (0.0, 1.0, "FAILED")
    assert metric["reason"] == 'turn 1: has "not off"'


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({**ANSWER, "case": "lat"}, "no case 'lat' in lights. Did you mean late?"),
        ({**ANSWER, "turn": 4}, "no turn 4: late has 1 turn, counted from 0"),
        ({"regex": "(a|aa)+$"}, "can be very slow"),
        ({"contain": ["x"]}, "contain"),
    ],
)
def test_lint_knows_what_a_check_gets_wrong(folder, capsys, answer, said):
    write_test_config(folder, criteria={"response_match_score": 0.8}, **config(answer))
    call("lint", folder)
    out = capsys.readouterr().out
    assert "evaltui.answers[0]" in out
    assert said in out


RESPONSES, CALLS = {"response_match_score": 0.8}, {"tool_trajectory_avg_score": 1.0}
ON = {"set": "lights", "case": "late", "turn": 1, "contains": ["on"]}
OFF = {**ON, "contains": ["off"]}
SKIP = {"set": "lights", "case": "late", "turn": 0, "mode": "skip"}


@pytest.mark.parametrize(
    ("criteria", "block", "statuses"),
    [
        (RESPONSES, {"answers": [ON]}, ["PASSED", "PASSED"]),
        (RESPONSES, {"answers": [OFF]}, ["PASSED", "FAILED"]),
        ({}, {"answers": [ON]}, ["NOT_EVALUATED", "PASSED"]),
        (RESPONSES | CALLS, {"turns": [SKIP]}, ["PASSED", "PASSED"]),
        (CALLS, {"turns": [SKIP]}, ["NOT_EVALUATED", "PASSED"]),
        (RESPONSES | CALLS, {"turns": [SKIP, {**SKIP, "turn": 1}]}, ["PASSED", "PASSED"]),
    ],
)
async def test_a_turn_has_the_verdict_of_the_metrics_that_are_to_score_it(
    tmp_path, criteria, block, statuses, open_workbench
):
    turns = make_turn("hi", "it is off", []), make_turn("bye", "on", [])
    write_eval_set(tmp_path, "lights", make_case("late", *turns))
    write_test_config(tmp_path, criteria=criteria, evaltui=block)
    (tmp_path / "agent.py").write_text("root_agent = None")
    workbench = await open_workbench(tmp_path, run_service=FakeRuns())
    workbench.runs.run_all()
    await workbench.runs.finished()
    (case,) = workbench.sets.every_case()
    assert workbench.outcomes.turn_statuses(case, workbench.outcomes.get(case)) == statuses
