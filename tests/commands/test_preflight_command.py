"""What `evaltui run` says before it begins: offline, without keys, with metrics that cannot run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import call
from eval_data import make_case, write_eval_set, write_test_config

CANNOT = ("safety_v1", "final_response_match_v2")
CRITERIA: dict[str, Any] = {
    "tool_trajectory_avg_score": 1.0,
    "response_match_score": 0.8,
    "safety_v1": 0.8,
    "final_response_match_v2": {
        "threshold": 0.5,
        "judge_model_options": {"judge_model": "azure/gpt-4o"},
    },
}
AGENT = """
    from pathlib import Path

    def root_agent(message, session):
        (Path(__file__).parent / "was asked").touch()
        return message
"""


def turn(text: str) -> dict[str, Any]:
    said = {"parts": [{"text": text}]}
    return {"user_content": said, "final_response": said, "intermediate_data": {"tool_uses": []}}


@pytest.fixture
def agent(write_agent) -> Path:
    folder = write_agent(AGENT)
    cases = [make_case("one", turn("all is well"))]
    write(folder, "basics", cases, {"criteria": CRITERIA})
    return folder


def write(folder: Path, name: str, cases: list[dict[str, Any]], config: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    write_eval_set(folder, name, *cases)
    (folder / "test_config.json").write_text(json.dumps(config))


def set_config(agent: Path, criteria: dict[str, Any] = CRITERIA, **block: Any) -> None:
    write_test_config(agent, criteria=criteria, evaltui=block)


def ran(agent: Path, *words: object, capsys: Any) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON report and what was said on stderr."""
    code = call("run", agent, "--report", "json=-", *words)
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else {}, err


def test_offline_two_metrics_are_scored_and_two_say_why_not(agent, capsys):
    code, report, err = ran(agent, capsys=capsys)
    assert code == 3
    lines = [line.rstrip() for line in err.splitlines()]
    assert lines[0] == "  METRIC                   RUNS FOR"
    assert lines[1] == "– safety_v1                none of 1 case"
    assert "– final_response_match_v2  none of 1 case" in lines
    assert lines[-1] == "  2 other metrics run for every case"
    assert max(map(len, lines)) <= 80
    text = " ".join(err.split())
    assert "GOOGLE_API_KEY is not set. Set it in .env, or list the metric" in text
    assert "the judge azure/gpt-4o is not a Gemini model. For other models name a function" in text
    (case,) = report["cases"]
    assert (report["status"], case["status"]) == ("NOT_EVALUATED", "NOT_EVALUATED")
    metrics = {metric["name"]: metric for metric in case["metrics"]}
    for name in ("tool_trajectory_avg_score", "response_match_score"):
        assert (metrics[name]["status"], metrics[name]["score"]) == ("PASSED", 1.0)
    checks = {check["metric"]: check for check in report["preflight"]}
    for name in CANNOT:
        assert metrics[name]["status"] == checks[name]["status"].replace("CANNOT", "NOT_EVALUATED")
        assert metrics[name]["reason"] == f"{checks[name]['why']}. {checks[name]['fix']}"
        # Nobody was asked, five times or once.
        assert (metrics[name]["per_turn"], metrics[name].get("judge")) == ([], None)


def test_an_optional_metric_that_fails_fails_the_case(agent, capsys):
    name = "trajectory_single_tool_use"
    set_config(agent, {name: {"threshold": 1, "tool": "bell"}}, optional=[name])
    assert ran(agent, capsys=capsys)[0] == 1


def test_nothing_but_optional_metrics_without_a_verdict_is_no_pass(agent, capsys):
    set_config(agent, {"safety_v1": 0.8}, optional=["safety_v1"])
    assert ran(agent, capsys=capsys)[0] == 3


def test_adk_has_no_optional_metrics_and_no_block(agent, capsys):
    ours = {"criteria": {"safety_v1": 1.0}}
    config = {"criteria": {"response_match_score": 0.8}, "evaltui": ours}
    (agent / "test_config.json").write_text(json.dumps(config))
    assert "safety_v1" in ran(agent, capsys=capsys)[2]
    code, _, err = ran(agent, "--adk-verdicts", capsys=capsys)
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("required", "says"),
    [
        (",".join(CANNOT), "nothing run; safety_v1, final_response_match_v2 cannot run here"),
    ],
)
def test_required_metrics_keep_the_run_from_beginning(agent, required, says, capsys):
    code, report, err = ran(agent, "--require", required, "--exit-zero", capsys=capsys)
    assert (code, report) == (2, {})
    assert says in err.splitlines()[-1]
    assert "✓ response_match_score" in err
    assert not (agent / "was asked").exists()
    assert not (agent / ".evaltui").exists()


def test_a_shard_needs_a_required_metric_of_another_shard_only_there(agent, capsys):
    (agent / "test_config.json").write_text(json.dumps({"criteria": {"response_match_score": 0.8}}))
    for number in range(1, 10):
        code, report, _ = ran(
            agent, "--shard", f"{number}/9", "--require", "response_match_score", capsys=capsys
        )
        assert (code, report["totals"]["failed"]) == (0, 0)
    assert ran(agent, "--shard", "1/9", "--require", "safety_v1", capsys=capsys)[0] == 2


def test_a_list_of_required_metrics_has_no_gaps(agent, capsys):
    assert ran(agent, "--require", "safety_v1,", capsys=capsys)[0] == 2


def test_sets_and_cases_that_differ_are_named(agent, capsys):
    simulated = {
        "eval_id": "two",
        "conversation_scenario": {"starting_prompt": "hi", "conversation_plan": "ask"},
    }
    judge = {"judge_model_options": {"judge_model": "my_agent.nowhere:ask"}}
    config = {"criteria": {"response_match_score": 0.8, "hallucinations_v1": {"threshold": 1.0, **judge}}}
    cases = [make_case("one", turn("all is well")), simulated]
    write(agent / "evals", "more", cases, config)
    set_config(agent, {"response_match_score": 0.8})
    code, report, err = ran(agent, capsys=capsys)
    assert code == 3
    text = " ".join(err.split())
    assert "– response_match_score 1 of 2 cases in more not for two the metric needs expected turns" in text
    assert "– hallucinations_v1 none of 2 cases in more no module my_agent.nowhere" in text
    assert "– conversation_scenario none of 1 case in more GOOGLE_API_KEY is not set" in text
    statuses = {case["eval_id"]: case for case in report["cases"] if case["eval_set_id"] == "more"}
    assert statuses["two"]["status"] == "NOT_EVALUATED"
    assert "GOOGLE_API_KEY is not set" in statuses["two"]["metrics"][0]["reason"]
    assert [case["status"] for case in report["cases"] if case["eval_set_id"] == "basics"] == ["PASSED"]
