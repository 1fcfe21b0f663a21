"""Judges, rubrics and metrics of the user's on recorded conversations; what judges say is recorded apart."""

import json

import pytest

from tests.eval_data import make_case, make_turn, write_eval_set

pytest.importorskip("opentelemetry.proto")

from tests.commands.command_line import call
from tests.gemini_server import says

AGENT = """
    from evaltui import Agent
    root_agent = Agent(name="greeter", model="gemini-test", instruction="Greet.")
"""
JUDGING = """
def judge(prompt):
    return '{"reasoning": "So it is.", "is_the_agent_response_valid": "valid"}'


def brevity(actual, expected, criterion):
    return len(actual.final_response.parts[0].text) < 20
"""
CONFIG = {
    "criteria": {
        "final_response_match_v2": {
            "threshold": 1.0,
            "judge_model_options": {"judge_model": "judging:judge", "num_samples": 1},
        },
        "rubric_based_final_response_quality_v1": {
            "threshold": 1.0,
            "judge_model_options": {"judge_model": "gemini-judge", "num_samples": 1},
            "rubrics": [{"rubric_id": "kind", "rubric_content": {"text_property": "It is kind."}}],
        },
    },
    "evaltui": {
        "criteria": {"brief": {"function": "judging.brevity", "threshold": 1.0}},
        # What a run of the agent is to keep is no business of a score.
        "tools": {"clock": "record"},
    },
}


def respond(verdict):
    said = json.dumps({"id": "kind", "rationale": "So it is.", "verdict": verdict})
    return lambda request: says(said if request.model == "gemini-judge" else f"Hello, {request.said}.")


def test_judges_of_traces_are_recorded_apart_from_those_of_runs(write_agent, gemini, monkeypatch):
    folder = write_agent(AGENT, name="greeter")
    monkeypatch.chdir(folder)
    (folder / "judging.py").write_text(JUDGING)
    (folder / "test_config.json").write_text(json.dumps(CONFIG))
    write_eval_set(folder, "greetings", make_case("one", make_turn("Ann", "Hello, Ann.")))
    gemini.respond = respond("yes")
    assert call("run", ".", "--record", "auto") == 0
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    of_run, of_score = folder / "recordings/greetings.jsonl", folder / "recordings/score/greetings.jsonl"
    before = of_run.read_bytes()

    def score(*words):
        """Exit code, the verdict of each metric, and how often a model was asked."""
        asked = len(gemini.requests)
        code = call(
            "score", "run.json", "--sets", "greetings.evalset.json", "--report", "json=r.json", *words
        )
        report = json.loads((folder / "r.json").read_text())
        # Those of the trace are over.
        assert report["model_calls"] == {"live": 0, "replayed": 0}
        (case,) = report["cases"]
        found = {one["name"]: one["status"] for one in case["metrics"] if one["status"] != "INFORMATIONAL"}
        assert of_run.read_bytes() == before
        return code, found, len(gemini.requests) - asked

    names = ("final_response_match_v2", "rubric_based_final_response_quality_v1", "brief")
    code, found, asked = score("--record", "replay")
    assert (code, found, asked) == (3, {**dict.fromkeys(names, "ERROR"), names[2]: "PASSED"}, 0)
    gemini.respond = respond("no")
    failed = dict.fromkeys(names, "PASSED") | {names[1]: "FAILED"}
    assert score("--record", "auto") == (1, failed, 1)
    lines = [json.loads(line) for line in of_score.read_text().splitlines()]
    assert {line["agent"] for line in lines} == {f"judge of {name}" for name in names[:2]}
    gemini.respond = respond("yes")
    assert score("--record", "replay") == (1, failed, 0)
    recorded = of_score.read_bytes()
    assert score() == (0, dict.fromkeys(names, "PASSED"), 1)
    assert of_score.read_bytes() == recorded
