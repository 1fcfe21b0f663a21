"""The front door."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from evaltui import cli

IMPORTS = {
    "evaltui": ["pydantic", "google.genai", "textual"],
    "evaltui.cli": ["pydantic", "google.genai", "textual", "asyncio"],
    "evaltui.project.workspace": ["google.genai", "textual"],
    "evaltui.commands.run": ["pydantic", "google.genai", "textual", "evaltui.runs.history"],
    "evaltui.commands.job": ["google.genai", "textual", "google.adk", "rouge_score", "nltk"],
    "evaltui.runs.evaluation": ["google.genai", "textual", "google.adk", "evaltui.agents.loading"],
    "evaltui.adk": ["pydantic", "google.genai", "google.adk"],
    "evaltui.workbench": ["google.genai", "textual", "google.adk"],
    "evaltui.agents.host": ["google.genai", "textual", "google.adk"],
}


@pytest.mark.parametrize("module", IMPORTS)
def test_nothing_is_imported_before_it_is_needed(module):
    script = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = set(loaded.stdout.split())
    assert modules.isdisjoint(IMPORTS[module])


def said(capsys, *words):
    with pytest.raises(SystemExit) as left:
        cli.main(words)
    return left.value.code, capsys.readouterr()


def test_an_option_whose_value_is_empty_is_refused(capsys):
    """As of an unset variable: `--baseline=$RUN` would be compared with the last run."""
    _, overview = said(capsys, "--help")
    commands = re.findall(r"^  (\w+) +[A-Z]", overview.out.partition("commands:")[2], re.MULTILINE)
    assert {"run", "score", "merge"} <= {*commands}
    for command in [[], *([command] for command in commands)]:
        _, help_text = said(capsys, *command, "--help")
        for name in re.findall(r"^  (?:-\w \w+, )?(-[\w-]+) [A-Z|]+(?! ?[A-Z])", help_text.out, re.MULTILINE):
            code, printed = said(capsys, *command, name, "")
            assert (code, "the value is empty" in printed.err) == (2, True), (command, name)


@pytest.mark.parametrize("words", ["help", "schema config", "lint .", "runs ."])
def test_where_its_output_has_no_space_it_says_so_in_a_line(words, tmp_path):
    (tmp_path / "agent.py").write_text("def root_agent(message, session): return message")
    (tmp_path / "bad.evalset.json").write_text("{")
    command = [sys.executable, "-m", "evaltui", *words.split()]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, text=True)
    assert (done.returncode, done.stderr) == (3, "evaltui: cannot write: No space left on device\n")


def test_a_fault_of_its_own_is_no_case_that_failed(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_dispatch", lambda words: [][len(words)])
    with pytest.raises(SystemExit) as left:
        cli.main(["run"])
    assert left.value.code == 3
    assert "IndexError: list index out of range" in capsys.readouterr().err
