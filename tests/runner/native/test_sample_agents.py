"""The samples that come with the project: which cases pass, and what the others are there to show."""

import importlib
import sys
from pathlib import Path

import pytest

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalSet
from evaltui.core.scoring.scoring import score_case
from evaltui.runner.child.adapters.base import Reporter, SessionSpec
from evaltui.runner.child.adapters.native.adapter import NativeAdapter

SAMPLES = Path(__file__).parents[3] / "sample_agents"
CALLS, ANSWER, STATE = "tool_trajectory_avg_score", "response_match_score", "final_session_state"

FAILING = {
    ("calculator", "calculator"): {},
    ("home_automation", "lights"): {
        "movie_mode": {CALLS},
        "good_night": {CALLS, STATE},
        "kitchen_light": {ANSWER},
    },
    ("home_automation", "thermostat"): {"thermostat_night": {CALLS}, "away_for_a_week": {STATE}},
}


async def run_case(adapter, case):
    events = []
    reporter = Reporter(events.append)
    start = case.session_input
    session = await adapter.new_session(SessionSpec(state=start.state if start else {}), reporter)
    for turn, invocation in enumerate(case.conversation):
        reporter.turn = turn
        content = invocation.user_content.model_dump(mode="json", exclude_none=True)
        reporter.event("user", content)
        await session.send(content)
    return invocations_from_events(events), await session.state()


@pytest.mark.parametrize(("sample", "eval_set_id"), FAILING)
async def test_the_cases_of_a_sample(sample, eval_set_id, monkeypatch):
    monkeypatch.syspath_prepend(str(SAMPLES))
    adapter = NativeAdapter(importlib.import_module(sample).root_agent)
    for name in (sample, f"{sample}.agent"):
        monkeypatch.delitem(sys.modules, name)
    folder = SAMPLES / sample
    config = EvalConfig.model_validate_json((folder / "test_config.json").read_text(encoding="utf-8"))
    text = (folder / f"{eval_set_id}.evalset.json").read_text(encoding="utf-8")
    eval_set = EvalSet.model_validate_json(text)
    assert eval_set.eval_set_id == eval_set_id

    failing = {}
    for case in eval_set.eval_cases:
        actual, state = await run_case(adapter, case)
        result = await score_case(case, actual, config, eval_set_id=eval_set_id, final_state=state)
        assert result.error is None
        if result.status != "PASSED":
            failing[case.eval_id] = {metric.name for metric in result.metrics if metric.status == "FAILED"}
    assert failing == FAILING[sample, eval_set_id]
