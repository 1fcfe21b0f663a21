"""Cases that are run several times: how they vary is told, and their policy decides."""

import json

import pytest
from command_line import call

from evaltui.core.compare.repeats import trajectory_groups
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.runs.history import find_run, open_run
from evaltui.runs.store import RunStore

# Passes three runs of five: the second one gives another answer, the fourth one calls another tool as well.
AGENT = """
    from evaltui import events

    runs = 0

    async def root_agent(message, session):
        global runs
        runs += 1
        yield events.tool_call("dim", {"to": 5})
        if runs == 4:
            yield events.tool_call("ask", {})
        yield events.text("no idea" if runs == 2 else "enjoy the film")
"""
CASE = {
    "eval_id": "movie_mode",
    "conversation": [
        {
            "user_content": {"role": "user", "parts": [{"text": "movie"}]},
            "final_response": {"role": "model", "parts": [{"text": "enjoy the film"}]},
            "intermediate_data": {"tool_uses": [{"name": "dim", "args": {"to": 5}}]},
        }
    ],
}


@pytest.fixture
def agent(write_agent):
    folder = write_agent(AGENT)
    (folder / "lights.evalset.json").write_text(json.dumps({"eval_set_id": "lights", "eval_cases": [CASE]}))
    return folder


@pytest.mark.parametrize(("policy", "code", "meets"), [("all", 1, "fails"), ("0.6", 0, "meets")])
def test_three_of_five(agent, policy, code, meets, capsys):
    assert call("run", agent, "--runs", "5", "--pass-if", policy, "--parallel", "1") == code
    out = capsys.readouterr().out
    assert f"≈ movie_mode  3/5 FLAKY  {meets} policy {policy}: " in out
    assert f"  runs    ✓✗✓✗✓  3/5 FLAKY, {meets} policy {policy}  60% (23–88%)\n" in out
    assert "  pass@k  0.60  0.90  1.00  1.00\n  pass^k  0.60  0.30  0.10  0.00\n" in out
    assert (
        "  calls   2 different trajectories\n      4×  ✓✗ dim (to 5)\n      1×  ✗  dim (to 5), ask\n"
    ) in out

    run = open_run(find_run(RunStore(agent), "last"))
    case = run.case(CaseId("lights.evalset.json", "movie_mode"))
    assert (case.status, case.policy, case.policy_met) == (Status.FLAKY, policy, code == 0)
    assert [repeat.status.value for repeat in case.repeats] == ["PASSED", "FAILED"] * 2 + ["PASSED"]
    said = [repeat.actual[0].final_response.parts[0].text for repeat in case.repeats]
    assert said == ["enjoy the film", "no idea", "enjoy the film", "enjoy the film", "enjoy the film"]
    assert [turn.response.actual for repeat in case.repeats for turn in repeat.turns] == said
    assert [group.repeats for group in trajectory_groups(case)] == [(0, 1, 2, 4), (3,)]
    events = run.events(CaseId("lights.evalset.json", "movie_mode"))
    assert sorted(events) == [0, 1, 2, 3, 4]
    assert sum(event.kind == "tool_call" for event in events[3]) == 2
