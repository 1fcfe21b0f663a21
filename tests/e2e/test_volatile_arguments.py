"""Arguments that are other ones in each run are let pass, by keyboard; the agent is not asked again."""

from __future__ import annotations

import json
import sys

import pytest
from eval_data import make_case, make_set, make_turn
from terminal import Terminal

pytestmark = pytest.mark.e2e

AGENT = """
    from pathlib import Path
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        with Path(__file__).with_name("asked.log").open("a") as log:
            log.write("asked\\n")
        yield tool_call("find_orders", {"customer_id": "C-1", "query": "orders late", "as_of": "2026-11-20"})
        yield text("Two orders are late.")
"""
WANTED = {"customer_id": "C-1", "query": "late", "as_of": "2026-01-01"}


@pytest.fixture
def orders(write_agent):
    folder = write_agent(AGENT, name="orders")
    case = make_case(
        "late", make_turn("What is late?", "Two orders are late.", [{"name": "find_orders", "args": WANTED}])
    )
    path = folder / "orders.evalset.json"
    path.write_text(json.dumps(make_set("orders", case), indent=2), encoding="utf-8")
    terminal = Terminal([sys.executable, "-m", "evaltui", "orders"], folder.parent)
    yield folder, path, terminal
    terminal.close()


def relax(terminal: Terminal, argument: str, kind: str) -> None:
    """Go to the next difference, which is of this argument, and choose how far it may differ."""
    terminal.press("n", "x")
    terminal.wait_for(f"find_orders › {argument}")
    terminal.wait_for("no model calls")
    screen = terminal.text
    for _ in range(8):
        if f"● {kind.capitalize()}" in screen:
            break
        before = screen
        terminal.press("down")
        screen = terminal.wait_until(lambda now, before=before: now != before, f"no {kind} is proposed")
    terminal.press("enter")
    terminal.wait_until(lambda now: "x Relax" not in now, "the question did not go away")


def test_volatile_arguments_are_let_pass_and_others_are_not(orders):
    folder, path, terminal = orders
    before = path.read_text(encoding="utf-8")
    terminal.wait_for("late")
    terminal.press("r")
    terminal.wait_for("Run 1: 1 failed")
    terminal.press("3")
    screen = terminal.wait_for("−   as_of")
    shown = [name for name in ("−   customer_id", "−   query", "−   as_of") if name in screen]
    assert shown == ["−   query", "−   as_of"]
    relax(terminal, "query", "ignore")
    relax(terminal, "as_of", "regex")
    terminal.wait_for("✓ PASSED")
    terminal.press("ctrl+s")
    terminal.wait_for("Saved test_config.json")
    assert (folder / "asked.log").read_text() == "asked\n"
    assert path.read_text(encoding="utf-8") == before
    config = json.loads((folder / "test_config.json").read_text(encoding="utf-8"))
    ignored, dated = config["evaltui"]["rules"]
    assert (ignored["arg"], ignored["match"], ignored["case"]) == ("query", "ignore", "late")
    assert dated["match"] == {"regex": r"\d{4}-\d{2}-\d{2}"} or dated["match"]["regex"].count(r"\d")

    agent = folder / "agent.py"
    agent.write_text(agent.read_text(encoding="utf-8").replace('"C-1"', '"C-2"'), encoding="utf-8")
    terminal.press("r")
    terminal.wait_for("Run 2: 1 failed")
    terminal.wait_for("−   customer_id")
    terminal.press("q")
    assert terminal.exit_code() == 0
