"""`evaltui gaps --judges`: judges on changes that no computed metric noticed, and their price before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_eval_set
from gemini_server import fails, says

AGENT = """
def root_agent(message, session):
    yield message.replace("find", "Found")
"""
JUDGE = {"judge_model": "gemini-judge", "num_samples": 1}
JUDGED = {"final_response_match_v2": {"threshold": 1.0, "judge_model_options": JUDGE}}
CHANGED = ("Found the order 8", "not", "refunded")


@pytest.fixture
def desk(tmp_path, gemini, monkeypatch):
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    write_eval_set(
        folder,
        "orders",
        make_case(
            "finds",
            make_turn("find the order 7 that is for you", "Found the order 7 that is for you", []),
            make_turn("find the order 9 that was for me", "Found the order 9 that was for me", []),
        ),
    )
    configure(folder)
    gemini.respond = judge
    monkeypatch.chdir(tmp_path)
    return folder


def configure(folder, judged=JUDGED, **evaltui):
    criteria = {"response_match_score": 0.8, "tool_trajectory_avg_score": 1.0, **judged}
    prices = {"gemini-judge": {"input_mtok": 1.0, "output_mtok": 2.0}}
    config = {"criteria": criteria, "evaltui": {"prices": prices, **evaltui}}
    (folder / "test_config.json").write_text(json.dumps(config))


def judge(request):
    """Finds a response invalid that has another number, a negation or a promise."""
    answer = request.said.split("The agent's answer:")[1].split("How to decide:")[0]
    verdict = "invalid" if any(word in answer for word in CHANGED) else "valid"
    return says(json.dumps({"reasoning": "So it is.", "is_the_agent_response_valid": verdict}))


def gaps(gemini, *words):
    """The exit code, the report, and how often a model was asked."""
    asked = len(gemini.requests)
    code = call("gaps", "desk", *words, "--report", "json=gaps.json")
    return code, json.loads(Path("gaps.json").read_text()), len(gemini.requests) - asked


def kinds_of(report):
    keys = ("noticed", "changes", "noticed_by")
    return {row["kind"]: tuple(row[key] for key in keys) for row in report["kinds"]}


def test_judges_are_asked_only_on_request_and_only_about_what_nothing_else_noticed(desk, gemini, capsys):
    call("run", "desk")
    _, before, asked = gaps(gemini)
    assert asked == 0
    assert before["left_out_metrics"] == ["final_response_match_v2"]
    capsys.readouterr()
    code, report, asked = gaps(gemini, "--judges")
    to_judge = before["to_judge"]
    assert (code, report["left_out_metrics"], report["to_judge"]) == (0, [], None)
    # Both turns of the original, and of each change its turn and those after it, whose judge sees it, too.
    texts = {(gap["turn"], gap["after"]) for row in before["kinds"] for gap in row["gaps"]}
    assert asked == to_judge["calls"] == 2 + sum(3 - turn for turn, _ in texts)
    assert 0 < report["spent"]["usd"] < 0.05
    said = f"judging {to_judge['changes']} changes: at most {asked} model calls of gemini-judge, about $"
    assert said in capsys.readouterr().err
    kinds, kinds_before = kinds_of(report), kinds_of(before)
    assert kinds_before["answer negated"] == (0, 2, {})
    assert kinds["answer negated"] == (2, 2, {"final_response_match_v2": 2})
    # The second number is one that the judge does not mind.
    assert kinds["another number"] == (1, 2, {"final_response_match_v2": 1})
    (number,) = (gap for row in report["kinds"] if row["kind"] == "another number" for gap in row["gaps"])
    assert {metric["name"]: metric["score"] for metric in number["metrics"]}["final_response_match_v2"] == 1.0
    assert kinds["answer emptied"] == kinds_before["answer emptied"] == (2, 2, {"response_match_score": 2})


def test_a_question_whose_answer_is_recorded_is_not_asked_again(desk, gemini, capsys):
    call("run", "desk", "--record", "auto")
    _, report, asked = gaps(gemini, "--judges", "--record", "auto")
    assert f"at most {asked} model calls of gemini-judge" in capsys.readouterr().err
    calls = gaps(gemini)[1]["to_judge"]["calls"]
    # Those about the original were asked in the run.
    assert asked == calls - 2
    capsys.readouterr()
    assert gaps(gemini, "--judges", "--record", "auto") == (0, {**report, "spent": any_json()}, 0)
    assert "changes: no model call, all answers are recorded" in capsys.readouterr().err
    assert gaps(gemini, "--judges", "--record", "replay")[2] == 0


class any_json:
    def __eq__(self, other):
        return True


@pytest.mark.parametrize(
    ("respond", "reason"),
    [
        (lambda request: says("I cannot say."), "final_response_match_v2: "),
        (lambda request: fails(400, "no such model"), "400 INVALID_ARGUMENT"),
    ],
)
def test_a_change_without_a_verdict_is_neither_noticed_nor_missed(desk, gemini, capsys, respond, reason):
    call("run", "desk")
    before = kinds_of(gaps(gemini)[1])
    gemini.respond = lambda request: respond(request) if "I have also" in request.said else judge(request)
    code, report, _ = gaps(gemini, "--judges")
    kinds = kinds_of(report)
    assert kinds["an invented promise"] == (0, 0, {})
    assert before["an invented promise"] == (0, 2, {})
    (row,) = (row for row in report["kinds"] if row["kind"] == "an invented promise")
    assert row["gaps"] == []
    assert [change["turn"] for change in row["not_judged"]] == [1, 2]
    assert all(reason in change["reason"] for change in row["not_judged"])
    assert report["not_judged"] == 2
    assert "NOT JUDGED" in console("--judges", capsys=capsys)
    rate = report["noticed"] / (report["changes"] + 2)
    assert code == 0
    assert call("gaps", "desk", "--judges", "--fail-under", f"{rate:.3f}1") == 3
    assert "is not decided: 2 changes not judged" in capsys.readouterr().err
    assert call("gaps", "desk", "--judges", "--fail-under", f"{rate - 0.01:.3f}") == 0


def console(*words, capsys):
    capsys.readouterr()
    call("gaps", "desk", *words)
    return capsys.readouterr().out


def test_a_judge_who_does_not_pass_the_original_judges_no_change(desk, gemini, capsys):
    call("run", "desk")
    gemini.respond = lambda request: says('{"reasoning": "", "is_the_agent_response_valid": "invalid"}')
    _, report, asked = gaps(gemini, "--judges")
    assert asked == 2
    (reason,) = {change["reason"] for row in report["kinds"] for change in row["not_judged"]}
    assert reason == "final_response_match_v2: does not pass the recorded conversation"
    assert not any(row["gaps"] for row in report["kinds"] if row["subject"] == "answers")


def test_a_budget_ends_the_questions(desk, gemini, capsys):
    call("run", "desk")
    capsys.readouterr()
    _, report, asked = gaps(gemini, "--judges", "--budget", "40tok")
    assert 0 < asked < 10
    reasons = {change["reason"] for row in report["kinds"] for change in row["not_judged"]}
    assert reasons == {"not asked: budget of 40 tokens reached"}
    assert "budget of 40 tokens reached" in capsys.readouterr().err


def test_options_of_judges_need_judges(desk, capsys):
    assert call("gaps", "desk", "--budget", "1USD") == 2
    assert "--budget needs --judges" in capsys.readouterr().err
    assert call("gaps", "desk", "--limit", "gemini*:rpm=5") == 2
    assert "--limit needs --judges" in capsys.readouterr().err


def test_a_set_of_judged_metrics_alone_is_left_to_judges(desk, gemini, capsys):
    (desk / "test_config.json").write_text(json.dumps({"criteria": JUDGED}))
    call("run", "desk")
    code, report, asked = gaps(gemini)
    assert (code, asked, report["changes"]) == (3, 0, 0)
    assert "every change is left to judges: --judges asks them" in capsys.readouterr().err
    code, report, _ = gaps(gemini, "--judges")
    assert code == 0
    assert kinds_of(report)["an invented promise"] == (2, 2, {"final_response_match_v2": 2})
