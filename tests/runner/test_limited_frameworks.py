"""Agents of frameworks whose models refuse above a quota, in the environment that has the frameworks."""

from __future__ import annotations

import pytest
from environments import environment_python
from openai_server import OpenAIServer

from evaltui import EvalConfig, EvalSet, Status, evaluate

# Their own clients would try again by themselves, each for itself.
OPENAI = '''
    from agents import Agent, ModelSettings, OpenAIResponsesModel, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    @function_tool
    def price(order: int) -> str:
        """The price of an order."""
        return f"{order} dollars"

    model = OpenAIResponsesModel("gpt-5", AsyncOpenAI(max_retries=0))
    root_agent = Agent(name="desk", model=model, tools=[price])
'''
PYDANTIC = '''
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from openai import AsyncOpenAI

    model = OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(openai_client=AsyncOpenAI(max_retries=0)))
    root_agent = Agent(model)

    @root_agent.tool_plain
    def price(order: int) -> str:
        """The price of an order."""
        return f"{order} dollars"
'''


def eval_set(count: int) -> EvalSet:
    turn = {
        "user_content": {"role": "user", "parts": [{"text": "order 7"}]},
        "final_response": {"role": "model", "parts": [{"text": "It is 7 dollars."}]},
    }
    cases = [{"eval_id": f"case_{number}", "conversation": [turn]} for number in range(count)]
    return EvalSet.model_validate({"eval_set_id": "many", "eval_cases": cases})


@pytest.mark.usefixtures("fresh_hosts")
@pytest.mark.parametrize("source", [OPENAI, PYDANTIC], ids=["openai-agents", "pydantic-ai"])
async def test_what_is_refused_is_asked_again(write_agent, monkeypatch, source: str):
    python = environment_python("EVALTUI_FRAMEWORKS_PYTHON")
    config = EvalConfig(criteria={"response_match_score": 1.0})
    with OpenAIServer() as openai:
        openai.use(monkeypatch)
        openai.refuses = {2, 3, 6}

        result = await evaluate(
            write_agent(source), eval_set(4), config, python=python, limits={"gpt-*": {"rpm": 1000}}
        )

    assert [case.error for case in result.cases] == [None] * 4
    assert result.status is Status.PASSED
    assert len(openai.asked) == 4 * 2 + 3
    assert any(case.repeats[0].throttled > 0.1 for case in result.cases)
