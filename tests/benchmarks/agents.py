"""The same little agent in each framework, and sets of any size for it."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

_ADK = """
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types


    class Echo(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            said = llm_request.contents[-1].parts[-1].text
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))


    root_agent = LlmAgent(name="echo", model=Echo(model="echo"))
"""

_ADK_CALLS = """
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types


    def look_up(number: int) -> dict:
        '''The price of an order.'''
        return {"order": number, "price": 12.5}


    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            last = llm_request.contents[-1].parts[-1]
            if last.function_response:
                yield _response(types.Part(text=f"it costs {last.function_response.response['price']}"))
            else:
                call = types.FunctionCall(name="look_up", args={"number": int(last.text.split()[2])})
                yield _response(types.Part(function_call=call))


    def _response(part):
        return LlmResponse(
            content=types.Content(role="model", parts=[part]),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=100, candidates_token_count=20, total_token_count=120
            ),
        )


    root_agent = LlmAgent(
        name="prices", model=Scripted(model="scripted"), instruction="Answer briefly.", tools=[look_up]
    )
"""

_NATIVE = """
    from evaltui import Agent, Rule, ScriptedModel

    root_agent = Agent(
        name="echo", model=ScriptedModel([Rule(user="(?s)(.*)", reply=lambda situation: situation[1])])
    )
"""

_FUNCTION = """
    def root_agent(message, session):
        return message
"""


def adk_echo(folder: Path) -> Path:
    return write_agent(folder / "adk_echo", _ADK)


def adk_calls(folder: Path) -> Path:
    """Two model calls and one tool call per turn."""
    return write_agent(folder / "adk_calls", _ADK_CALLS)


def native_echo(folder: Path) -> Path:
    return write_agent(folder / "native_echo", _NATIVE)


def function_echo(folder: Path) -> Path:
    return write_agent(folder / "function_echo", _FUNCTION)


def write_agent(agent: Path, source: str) -> Path:
    agent.mkdir()
    (agent / "__init__.py").write_text("from . import agent\n")
    (agent / "agent.py").write_text(textwrap.dedent(source))
    return agent


def write_set(agent: Path, cases: int, padding: int = 0) -> Path:
    """A set of one-turn cases that the agent passes; `padding` characters make each of them longer."""
    data = {
        "eval_set_id": "echoes",
        "eval_cases": [
            {
                "eval_id": f"case_{number:05d}",
                "conversation": [
                    {
                        "invocation_id": "",
                        "user_content": _content("user", number, padding),
                        "final_response": _content("model", number, padding),
                    }
                ],
            }
            for number in range(cases)
        ],
    }
    path = agent / "echoes.evalset.json"
    path.write_text(json.dumps(data, indent=2))
    return path


def write_calls_set(agent: Path, cases: int) -> Path:
    """A set of one-turn cases for `adk_calls`, which passes them."""
    data = {
        "eval_set_id": "prices",
        "eval_cases": [
            {
                "eval_id": f"case_{number:05d}",
                "conversation": [
                    {
                        "invocation_id": "",
                        "user_content": _content("user", number, 0),
                        "final_response": {"role": "model", "parts": [{"text": "it costs 12.5"}]},
                        "intermediate_data": {"tool_uses": [{"name": "look_up", "args": {"number": number}}]},
                    }
                ],
            }
            for number in range(cases)
        ],
    }
    path = agent / "prices.evalset.json"
    path.write_text(json.dumps(data, indent=2))
    return path


def _content(role: str, number: int, padding: int) -> dict[str, object]:
    text = f"please say {number} to me" + " and again" * (padding // 10)
    return {"role": role, "parts": [{"text": text}]}


def write_long_set(agent: Path, cases: int) -> Path:
    """A set of cases of two turns of 60 English words with a number, which the agent passes."""
    more = "and we packed it with care so that nothing breaks on the long way to your house " * 3
    texts = [f"Your order {number} is late {more}"[:-1] + " as of now." for number in range(2 * cases)]
    contents = [[{"role": role, "parts": [{"text": text}]} for role in ("user", "model")] for text in texts]
    turns = [
        {"user_content": user, "final_response": model, "intermediate_data": {"tool_uses": []}}
        for user, model in contents
    ]
    path = agent / "orders.evalset.json"
    eval_cases = [
        {"eval_id": f"case_{number:05d}", "conversation": turns[2 * number : 2 * number + 2]}
        for number in range(cases)
    ]
    path.write_text(json.dumps({"eval_set_id": "orders", "eval_cases": eval_cases}))
    return path


def write_promptfoo(folder: Path) -> Path:
    """The same case for promptfoo, whose provider `echo` answers with the prompt."""
    case = {"vars": {"said": "hello"}, "assert": [{"type": "equals", "value": "hello"}]}
    path = folder / "promptfooconfig.json"
    path.write_text(json.dumps({"prompts": ["{{said}}"], "providers": ["echo"], "tests": [case]}))
    return path
