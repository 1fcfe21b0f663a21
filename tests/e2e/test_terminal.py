"""The real program in a real terminal."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from eval_data import make_case, make_turn, write_eval_set
from terminal import Terminal

pytestmark = pytest.mark.e2e

SAMPLES = Path(__file__).parents[2] / "sample_agents"
EVALTUI = (sys.executable, "-m", "evaltui")
AGENT = """
def root_agent(message, session):
    return "echo " + message
"""


@pytest.fixture
def open_terminal():
    opened: list[Terminal] = []

    def start(*arguments: str, folder: Path, columns: int = 80, rows: int = 24) -> Terminal:
        terminal = Terminal([*EVALTUI, *arguments], folder, columns, rows)
        opened.append(terminal)
        return terminal

    yield start
    for terminal in opened:
        terminal.close()


@pytest.fixture
def parrot(write_agent, open_terminal):
    folder = write_agent(AGENT, name="parrot")
    write_eval_set(folder, "talk", make_case("repeats_it", make_turn("hi", "echo hi", [])))
    return open_terminal("parrot", folder=folder.parent)


@pytest.fixture
def house(tmp_path, open_terminal):
    ignored = shutil.ignore_patterns(".*", "__pycache__")
    shutil.copytree(SAMPLES / "home_automation", tmp_path / "home_automation", ignore=ignored)
    return open_terminal("home_automation", folder=tmp_path)


def test_run_a_case_see_the_verdict_and_leave(parrot):
    parrot.wait_for("○ repeats_it")
    parrot.press("r")
    parrot.wait_for("✓ repeats_it")
    parrot.press("enter")
    screen = parrot.wait_for("✓ PASSED")
    assert "parrot  function" in screen
    parrot.press("q")
    assert parrot.exit_code() == 0


def test_ended_from_outside_it_gives_the_terminal_back(parrot):
    parrot.wait_for("○ repeats_it")
    parrot.process.terminate()
    assert parrot.exit_code() == 130


def test_in_a_field_alt_and_a_key_do_what_the_key_does_elsewhere(parrot):
    parrot.wait_for("○ repeats_it")
    parrot.press("2")
    parrot.wait_for("Turn 1")
    parrot.press("j", "j", "j", "j", "j", "enter")
    parrot.wait_for("ctrl+j apply")
    parrot.type("r")
    parrot.wait_for("hir")
    parrot.press("escape")
    parrot.press("u", "enter")
    parrot.wait_for("ctrl+j apply")
    parrot.type("\x1br")
    parrot.wait_for("Run 1: 1 passed")


def test_from_a_failure_to_its_cause(house):
    house.wait_for("○ thermostat_night")
    house.press("R")
    house.wait_for("Run 1: 4 passed, 5 failed")
    house.press("/")
    house.type("thermostat_n")
    house.wait_until(lambda screen: "movie_mode" not in screen, "the filter hides nothing")
    house.press("enter", "enter")
    house.wait_for('✗ FAILED   turn 2: set_temperature: degrees is "19" (string), expected 19;')
    house.press("n", "n")
    house.wait_for("2/2")
    house.press("enter")
    house.wait_for("Nothing more to show")
    house.press("t")
    house.wait_for("tool  notify_user")
    house.resize(160, 45)
    house.wait_for("And the kitchen, but only if it is")
    house.wait_until(lambda screen: all(f" {number} " in screen for number in "12345"), "a pane is missing")
    house.resize(50, 12)
    house.wait_for("evaltui needs 60 columns and 16 rows")
    house.resize(80, 24)
    house.wait_for("tool  notify_user")
    house.press("escape")
    house.press("q")
    assert house.exit_code() == 0


def test_a_save_outside_flips_the_verdict(tmp_path, write_agent, open_terminal):
    folder = write_agent(AGENT, name="parrot")
    write_eval_set(folder, "talk", make_case("repeats", make_turn("hi", "echo hi", [])))
    terminal = open_terminal("parrot", "--watch", folder=tmp_path, columns=100)
    terminal.wait_for("● watch")
    terminal.press("r")
    terminal.wait_for("Run 1: 1 passed")
    (folder / "agent.py").write_text(AGENT.replace("echo ", "quack "), encoding="utf-8")
    terminal.wait_for("1 case rerun")
    terminal.wait_for("3 Result ✗")
    (folder / "agent.py").write_text("def root_agent(", encoding="utf-8")
    terminal.wait_for("! agent.py:1: SyntaxError")
    assert re.search("✗ repeats +stale", terminal.text)
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    terminal.wait_for("3 Result ✓")
    terminal.press("q")
    assert terminal.exit_code() == 0
