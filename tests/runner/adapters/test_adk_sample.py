"""The travel desk among the sample agents does what its eval set says, where that is not wrong on purpose."""

from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("google.adk")

from adk_scripted import chat

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.eval_set import EvalSet, full_text, tool_calls
from evaltui.runner.child.adapters.adk.adapter import AdkAdapter
from evaltui.runner.child.adapters.base import SessionSpec, plain_json

pytestmark = pytest.mark.adk

SAMPLES = Path(__file__).parents[3] / "sample_agents"
EVAL_SET = EvalSet.model_validate_json((SAMPLES / "travel_desk" / "travel_desk.evalset.json").read_text())


def outcome(invocations):
    return [
        (
            [(call.name, call.args) for call in tool_calls(one.intermediate_data)],
            full_text(one.final_response),
        )
        for one in invocations
    ]


@pytest.mark.parametrize("case", EVAL_SET.eval_cases, ids=lambda case: case.eval_id)
async def test_case(case, monkeypatch):
    monkeypatch.syspath_prepend(SAMPLES)
    adapter = AdkAdapter(import_module("travel_desk.agent").root_agent)
    state = case.session_input.state if case.session_input else {}
    messages = [plain_json(turn.user_content) for turn in case.conversation]
    talk = await chat(adapter, *messages, spec=SessionSpec(state=state))
    actual = outcome(invocations_from_events(talk.events))
    expected = outcome(case.conversation)
    assert [text for _, text in actual] == [text for _, text in expected]
    assert (actual == expected) == (not case.eval_id.startswith("fails_"))


async def test_the_guide_s_own_call_is_nested(monkeypatch):
    monkeypatch.syspath_prepend(SAMPLES)
    adapter = AdkAdapter(import_module("travel_desk.agent").root_agent)
    info = await adapter.open()
    assert [tool.name for tool in info.tools] == ["remember_traveller", "search_flights", "city_guide"]
    assert info.sub_agents == ("bookings",)
    talk = await chat(adapter, "What should I do in Paris?")
    outer, inner = talk.of("tool_call")
    assert talk.called() == ["city_guide", "weather_forecast"]
    assert (inner.parent, inner.data["nested"]) == (outer.id, True)
