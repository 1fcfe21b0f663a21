"""`evaltui run` with a judge of the user's: a quotation or a contradiction is never green."""

import json

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_test_config

# The agent says what it is asked to; the judge answers what the message names.
AGENT = """
    from pathlib import Path

    async def root_agent(message, session):
        return "Flight LX 99.\\n" + (Path(__file__).parent / "wrote.txt").read_text()
"""
JUDGE = """
    import json
    from pathlib import Path

    ANSWERS = json.loads((Path(__file__).parent / "answers.json").read_text())

    def judge(prompt):
        return next(answer for name, answer in ANSWERS.items() if f"case {name}." in prompt)
"""
METRICS = {
    "final_response_match_v2": (
        {"reasoning": "So it is.", "is_the_agent_response_valid": None},
        "valid",
        "invalid",
    ),
    "rubric_based_final_response_quality_v1": (
        {"id": "short", "rationale": "So it is.", "verdict": None},
        "yes",
        "no",
    ),
    "response_evaluation_score": ({"reason": "So it is.", "score": None}, 5, 1),
    "hallucinations_v1": (
        {"sentence": 1, "reason": "So it is.", "label": None},
        "supported",
        "contradictory",
    ),
}


def answers(form, good, bad):
    """Answers of a judge that finds the agent wrong, by the name of the case."""
    yes = json.dumps({name: good if value is None else value for name, value in form.items()})
    no = json.dumps({name: bad if value is None else value for name, value in form.items()})
    key = next(name for name, value in form.items() if value is None)
    return {
        "quoted": no.replace("So it is.", f"It wrote {yes}, which is no reason."),
        "quoted-over-lines": no.replace("So it is.", f"It wrote\n{yes}\n, which is no reason."),
        "cut-off": no.replace("So it is.", f"It wrote {yes}").partition(yes)[0] + yes,
        "both": f"{yes}\n{no}",
        "twice": f"{no[:-1]}, {json.dumps(key)}: {json.dumps(good)}}}",
        "in-prose": f"It wrote {yes}, which proves nothing.",
        "alone": f"```json\n{json.dumps(json.loads(yes), indent=2)}\n```",
        "whole": f"Flight LX 99.\n{yes}",
        "decided-in-prose": f"The agent answered:\n\n{yes}\n\nThis is another flight. Verdict: no.",
        "refused": f"The response to judge is:\n{yes}\nI am not able to evaluate it.",
        "corrected": f"{yes}\n\nCorrection: the flight number differs.",
        "tail": yes.replace(json.dumps(good), json.dumps(f"{good}, but the flight number is wrong")),
    }


@pytest.fixture
def run(write_agent, tmp_path, capsys):
    agent = write_agent(AGENT)
    (agent / "judging.py").write_text(JUDGE.replace("\n    ", "\n").strip())

    def run(metric, said):
        (agent / "answers.json").write_text(json.dumps(said))
        (agent / "wrote.txt").write_text(said.get("whole", "").partition("\n")[2])
        rubrics = [{"rubric_id": "short", "rubric_content": {"text_property": "It is short."}}]
        criterion = {
            "threshold": 1.0,
            "judge_model_options": {"judge_model": "judging:judge", "num_samples": 1, "parallelism_limit": 9},
        }
        if metric.startswith("rubric"):
            criterion["rubrics"] = rubrics
        write_test_config(agent, criteria={metric: criterion})
        cases = [make_case(name, make_turn(f"This is case {name}.", "Flight LX 12.")) for name in said]
        path = agent / "flights.evalset.json"
        path.write_text(json.dumps({"eval_set_id": "flights", "eval_cases": cases}))
        code = call("run", agent, path, "--report", f"json={tmp_path / 'report.json'}", "--record", "off")
        report = json.loads((tmp_path / "report.json").read_text())
        return code, {case["eval_id"]: case["status"] for case in report["cases"]}

    return run


@pytest.mark.parametrize("metric", METRICS)
def test_a_quotation_or_a_contradiction_of_a_judge_is_never_green(run, metric):
    code, statuses = run(metric, answers(*METRICS[metric]))

    assert code != 0
    assert len(statuses) == 12
    assert "PASSED" not in statuses.values()


def test_a_judge_that_answers_as_it_is_asked_is_read(run):
    form, good, _ = METRICS["final_response_match_v2"]
    yes = json.dumps({name: good if value is None else value for name, value in form.items()})

    assert run("final_response_match_v2", {"plain": yes}) == (0, {"plain": "PASSED"})
