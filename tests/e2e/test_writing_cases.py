"""From an agent without any eval set to three cases of two turns with calls, by keyboard alone, at 80x24."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Terminal

pytest.importorskip("google.adk")
pytestmark = [pytest.mark.e2e, pytest.mark.compat]

AGENT = """
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types


    def look_up(name: str) -> str:
        "Look a person up."
        return "found " + name


    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            last = llm_request.contents[-1].parts[-1]
            if last.function_response:
                part = types.Part(text=last.function_response.response["result"])
            else:
                part = types.Part.from_function_call(name="look_up", args={"name": last.text.split()[-1]})
            yield LlmResponse(content=types.Content(role="model", parts=[part]))


    root_agent = LlmAgent(name="finder", model=Scripted(model="scripted"), tools=[look_up])
"""


@pytest.fixture
def finder(write_agent):
    folder = write_agent(AGENT, name="finder")
    (folder / "__init__.py").write_text("from . import agent\n", encoding="utf-8")
    terminal = Terminal([sys.executable, "-m", "evaltui", "finder"], folder.parent)
    yield folder, terminal
    terminal.close()


def write_turn(terminal: Terminal, name: str) -> None:
    """The field of what the user says is open."""
    terminal.type(f"Who is {name}")
    terminal.wait_for(f"Who is {name}")
    terminal.press("ctrl+j", "o")
    terminal.wait_for("enter apply")
    terminal.type("loo")
    terminal.wait_for("Look a person up.")
    terminal.press("tab")
    terminal.press("tab")
    terminal.wait_for("name")
    terminal.type(name)
    terminal.press("tab")
    terminal.type(f"found {name}")
    terminal.wait_for(f"found {name}")
    terminal.press("ctrl+j")


def test_three_cases_by_keyboard_pass_here_and_in_adk(finder):
    folder, terminal = finder
    terminal.wait_for("An empty case")
    terminal.press("o")
    terminal.wait_for("for the first case")
    terminal.type("people")
    terminal.press("enter")
    for number, names in enumerate([("Ada", "Bob"), ("Cyd", "Dan"), ("Eve", "Fay")], 1):
        if number > 1:
            terminal.press("1", "o")
        terminal.wait_for(f"id           case_{number}")
        terminal.wait_for("ctrl+j apply")
        write_turn(terminal, names[0])
        terminal.press("g", "o")
        terminal.wait_for("Turn 2")
        write_turn(terminal, names[1])
    terminal.press("ctrl+s")
    terminal.wait_for("Saved people.evalset.json")
    terminal.press("R")
    terminal.wait_for("Run 1: 3 passed")
    terminal.press("q")
    assert terminal.exit_code() == 0
    path = folder / "people.evalset.json"
    calls = [
        [turn["intermediate_data"]["tool_uses"] for turn in case["conversation"]]
        for case in json.loads(path.read_text(encoding="utf-8"))["eval_cases"]
    ]
    assert [[use["args"] for (use,) in case] for case in calls] == [
        [{"name": "Ada"}, {"name": "Bob"}],
        [{"name": "Cyd"}, {"name": "Dan"}],
        [{"name": "Eve"}, {"name": "Fay"}],
    ]
    adk = Path(sys.executable).with_name("adk")
    done = subprocess.run([adk, "eval", folder, path], capture_output=True, text=True, check=False)
    assert "Tests passed: 3" in done.stdout, done.stdout + done.stderr
