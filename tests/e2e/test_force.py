"""An app that hangs ends all the same, and its terminal is one for a shell then."""

import sys
import termios

import pytest
from terminal import Terminal

from evaltui.runner.interrupts import INTERRUPTED

pytestmark = pytest.mark.e2e

HANGS = """
import time
from evaltui.runner import interrupts
from evaltui.tui.ending import EndingApp
from textual.widgets import Static

interrupts.FORCE_AFTER = 0.1

class Hanging(EndingApp):
    def compose(self):
        yield Static("it runs")

    async def leave(self, code):
        time.sleep(1000)

Hanging().run_to_the_end()
"""


def test_an_app_that_hangs_is_ended_by_force_and_gives_its_terminal_back(tmp_path):
    terminal = Terminal([sys.executable, "-c", HANGS], tmp_path)
    try:
        before = termios.tcgetattr(terminal._pty)
        terminal.wait_for("it runs")
        assert termios.tcgetattr(terminal._pty)[3] != before[3]
        terminal.process.terminate()
        assert terminal.exit_code() == INTERRUPTED
        assert "ended by force" in terminal.last_words
        assert termios.tcgetattr(terminal._pty)[3] == before[3]
    finally:
        terminal.close()
