"""From an empty folder to a first passing case of one's own, by keyboard in a real terminal."""

from __future__ import annotations

import json
import sys

import pytest
from terminal import Terminal

pytestmark = pytest.mark.e2e
MOST_KEYS = 10


class Counted:
    """Counts the keys that are pressed besides the texts."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.keys = 0

    def press(self, key: str, then: str) -> None:
        self.terminal.press(key)
        self.keys += 1
        self.terminal.wait_for(then)


@pytest.fixture
def empty(tmp_path):
    folder = tmp_path / "desk"
    folder.mkdir()
    settings = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    terminal = Terminal([sys.executable, "-m", "evaltui"], folder, 100, 30, settings)
    yield folder, terminal
    terminal.close()


def test_from_an_empty_folder_to_a_passing_case_of_ones_own(empty):
    folder, terminal = empty
    terminal.wait_for("Create a starter agent")
    user = Counted(terminal)
    user.press("s", "orders.evalset.json  3 cases")
    user.press("enter", "Starter created: 3 cases")
    user.press("4", "enter send")
    terminal.type("Where is my order 1001?")
    user.press("enter", "Order 1001 is delivered.")
    # The way to the case is on the screen.
    terminal.wait_for("ctrl+t  Save as case")
    user.press("ctrl+t", "where_is_my_order_1001")
    user.press("enter", "exactly these calls")
    user.press("r", "Run 1: 1 passed")
    user.press("ctrl+s", "aved orders.evalset.json")
    assert user.keys <= MOST_KEYS
    cases = json.loads((folder / "orders.evalset.json").read_text(encoding="utf-8"))["eval_cases"]
    assert cases[-1]["eval_id"] == "where_is_my_order_1001"
    assert '"1001"' in json.dumps(cases[-1]["conversation"][0]["intermediate_data"])
    terminal.press("q")
    assert terminal.exit_code() == 0
