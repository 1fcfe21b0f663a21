"""A project with wrong settings in a real terminal: the workbench opens, runs nothing, and goes on once they
are mended."""

from __future__ import annotations

import sys

import pytest
from terminal import Terminal

from evaltui.project.templates import create_starter
from evaltui.runs.store import RunStore

pytestmark = pytest.mark.e2e


def test_wrong_settings_are_mended_while_the_workbench_is_open(tmp_path):
    (tmp_path / ".git").mkdir()
    agent = tmp_path / "agents" / "desk"
    create_starter(agent, "native")
    project = tmp_path / "pyproject.toml"
    project.write_text('[tool.evaltui]\npython = "gone"\nresults-dir = "out"\n')
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    terminal = Terminal([sys.executable, "-m", "evaltui", "agents/desk"], tmp_path, 120, 30, environment)
    try:
        terminal.wait_for("! no usable Python")
        terminal.wait_for("where_is_order")
        terminal.wait_for("no Python at gone")
        # Takes the message away, so that the next one is that of the refused run.
        terminal.press("down")
        terminal.wait_for("No run yet")
        terminal.press("R")
        terminal.wait_for("pyproject.toml: tool.evaltui.python: no Python at gone")
        project.write_text('[tool.evaltui]\nresults-dir = "out"\nparalel = 3\n')
        terminal.press("R")
        terminal.wait_for("! settings cannot be used")
        terminal.wait_for("pyproject.toml:3: tool.evaltui.paralel is unknown. Did you mean parallel?")
        project.write_text('[tool.evaltui]\nresults-dir = "out"\n')
        terminal.press("R")
        terminal.wait_for("Run 1 finished: 3 passed")
        assert "native agent" in terminal.text
        (log,) = RunStore(agent, tmp_path / "out").files()
        assert log.parent == tmp_path / "out" / "agents" / "desk"
        terminal.press("q")
        assert terminal.exit_code() == 0
    finally:
        terminal.close()
    assert not (agent / ".evaltui" / "runs").exists()
