"""A sample agent, by keyboard: talk, make a case, see it pass, break the agent, go on from there."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from terminal import Terminal

pytestmark = pytest.mark.e2e
SAMPLE = Path(__file__).parents[2] / "sample_agents" / "home_automation"


@pytest.fixture
def house(tmp_path):
    folder = tmp_path / "home_automation"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    terminal = Terminal([sys.executable, "-m", "evaltui", "home_automation"], tmp_path)
    yield folder, terminal
    terminal.close()


def say(terminal: Terminal, text: str, answer: str) -> None:
    terminal.type(text)
    terminal.press("enter")
    terminal.wait_for(answer)


def test_a_conversation_becomes_a_case_that_fails_when_the_agent_breaks_and_is_gone_on_with(house):
    folder, terminal = house
    terminal.wait_for("turn_off_bedroom")
    terminal.press("4")
    terminal.wait_for("enter send")
    say(terminal, "Turn off the bedroom light", "The bedroom light is off.")
    assert "→ set_light" in terminal.text
    say(terminal, "Set the kitchen to 19 degrees", "The kitchen is set to 19 °C.")
    assert "→ set_temperature" in terminal.text

    terminal.press("ctrl+t")
    terminal.wait_for("ctrl+t Save as case")
    terminal.wait_for("turn_off_the_bedroom_light")
    terminal.press("enter")
    terminal.wait_for("exactly these calls")
    terminal.press("ctrl+s")
    terminal.wait_for("Saved lights.evalset.json")
    data = json.loads((folder / "lights.evalset.json").read_text(encoding="utf-8"))
    saved = data["eval_cases"][-1]
    assert saved["eval_id"] == "turn_off_the_bedroom_light"
    assert len(saved["conversation"]) == 2
    terminal.press("r")
    terminal.wait_for("Run 1: 1 passed")

    agent = folder / "agent.py"
    code = agent.read_text(encoding="utf-8")
    broken = code.replace('"degrees": int(s[2])', '"degrees": str(s[2])')
    assert broken != code
    agent.write_text(broken, encoding="utf-8")
    terminal.press("r")
    terminal.wait_for("Run 2: 1 failed")
    terminal.press("3")
    terminal.wait_for('degrees is "19" (string)')

    terminal.press("c")
    terminal.wait_for("turn 2 of 2")
    terminal.press("enter")
    terminal.wait_for("Turn off the bedroom light")
    agent.write_text(code, encoding="utf-8")
    terminal.wait_for("enter send")
    # In the field; it stands in the conversation before, too.
    terminal.wait_for("› Set the kitchen to 19 degrees")
    terminal.press("enter")
    terminal.wait_until(
        lambda screen: '{"Kitchen": 19}' in screen and "The kitchen is set to 19 °C." in screen,
        "the conversation did not go on",
    )
    terminal.wait_for("esc transcript")
    terminal.press("escape")
    terminal.wait_for(" ? help")
    terminal.press("q")
    assert terminal.exit_code() == 0
