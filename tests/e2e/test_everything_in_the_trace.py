"""An agent with everything that hides calls elsewhere: the trace shows all of it, of a case that passes."""

from __future__ import annotations

import re
import sys

import pytest
from eval_data import make_case, make_turn, write_eval_set
from terminal import Terminal

pytest.importorskip("google.adk")
pytestmark = [pytest.mark.e2e, pytest.mark.adk]

AGENT = """
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools import LongRunningFunctionTool
    from google.adk.tools.agent_tool import AgentTool
    from google.genai import types


    class Scripted(BaseLlm):
        answers: dict

        async def generate_content_async(self, llm_request, stream=False):
            last = llm_request.contents[-1].parts[-1]
            heard = last.function_response.name if last.function_response else last.text
            answer = next(value for key, value in self.answers.items() if key in heard)
            if isinstance(answer, str):
                part = types.Part(text=answer)
            else:
                part = types.Part.from_function_call(name=answer[0], args=answer[1])
            yield LlmResponse(content=types.Content(role="model", parts=[part]))


    def look_up(order: str) -> dict:
        return {"order": order}

    def quote(item: str, tool_context) -> dict:
        tool_context.actions.skip_summarization = True
        return {"price": 3}

    def ask_manager(reason: str) -> None:
        "Takes days."

    researcher = LlmAgent(name="researcher", description="looks", tools=[look_up], model=Scripted(model="s",
        answers={"look_up": "It was shipped.", "": ("look_up", {"order": "A1"})}))
    later = LongRunningFunctionTool(func=ask_manager)
    sales = LlmAgent(name="sales", description="sells", tools=[quote, later],
        model=Scripted(model="s", answers={"refund": ("ask_manager", {"reason": "cold"}),
                                           "ask_manager": "We will see.", "": ("quote", {"item": "tea"})}))
    root_agent = LlmAgent(name="front", tools=[AgentTool(researcher)], sub_agents=[sales],
        model=Scripted(model="s", answers={"where": ("researcher", {"request": "A1"}),
                                           "researcher": "It was shipped.",
                 "buy": ("transfer_to_agent", {"agent_name": "sales"}), "": "?"}))
"""
CALLS = [
    ("where is it", [{"name": "researcher", "args": {"request": "A1"}}], "It was shipped."),
    (
        "buy tea",
        [
            {"name": "transfer_to_agent", "args": {"agent_name": "sales"}},
            {"name": "quote", "args": {"item": "tea"}},
        ],
        "",
    ),
    ("refund me", [{"name": "ask_manager", "args": {"reason": "cold"}}], ""),
]


@pytest.fixture
def shop(write_agent):
    folder = write_agent(AGENT, name="shop")
    (folder / "__init__.py").write_text("from . import agent\n", encoding="utf-8")
    turns = [make_turn(text, answer, calls) for text, calls, answer in CALLS]
    write_eval_set(folder, "shop", make_case("all", *turns))
    (folder / "test_config.json").write_text('{"criteria": {"tool_trajectory_avg_score": 1.0}}')
    terminal = Terminal([sys.executable, "-m", "evaltui", "shop"], folder.parent, 120, 90)
    yield terminal
    terminal.close()


def test_nested_transferred_skipped_and_long_running_calls_are_scored_and_seen(shop):
    shop.wait_for("all")
    shop.press("r")
    # The trajectory is 1.0: the inner call of the agent tool is no part of it, all the others are.
    shop.wait_for("Run 1 finished: 1 passed")
    shop.press("t", "z")
    shop.wait_for("agent front")
    # The case names the tools, too; only the trace says what kind of call each is.
    last_call = re.compile(r"tool +.*ask_manager")
    screen = shop.wait_until(lambda now: last_call.search(now) is not None, "the trace did not come")
    lines = [line.strip() for line in screen.splitlines()]

    def place(*words: str) -> int:
        return next(n for n, line in enumerate(lines) if all(word in line for word in words))

    order = [
        place("Turn 1", "where is it"),
        place("tool", "researcher", "request"),
        place("  agent researcher"),
        place("tool", "look_up"),
        place("Turn 2", "buy tea"),
        place("tool", "transfer_to_agent"),
        place("transfer", "⇄ sales"),
        place("  agent sales"),
        place("tool", "quote"),
        place("Turn 3", "refund me"),
        place("tool", "ask_manager"),
    ]
    assert order == sorted(order)
    shop.press("/")
    shop.type("kind:tool look_up")
    shop.wait_until(lambda now: "look_up" in now and "Turn 2" not in now, "the search did not keep it alone")
    shop.press("enter", "end", "enter")
    shop.press("left", "left")
    shop.wait_for("inside a tool call")
    shop.press("right", "right", "right", "right")
    shop.wait_for("inside researcher")
    shop.press("escape", "q")
    assert shop.exit_code() == 0
