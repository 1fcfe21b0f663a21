"""The front door."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evaltui import cli


def call(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evaltui", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def test_version_is_told():
    done = call("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("evaltui 0.")


def test_without_a_terminal_it_refuses_politely(tmp_path):
    done = call(str(tmp_path))
    assert done.returncode == 2
    assert "evaltui run" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_unknown_command_is_a_usage_error_with_the_nearest_name():
    done = call("rum")
    assert done.returncode == 2
    assert "Did you mean run?" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_unknown_name_that_is_like_no_command_names_the_list():
    done = call("somewhere/else")
    assert done.returncode == 2
    assert "evaltui --help" in done.stderr


@pytest.mark.parametrize(
    ("command", "takes"),
    [
        ([], "AGENT_DIR"),
        (["run"], "AGENT_DIR"),
        (["runs"], "AGENT_DIR"),
        (["lint"], "PATH"),
        (["migrate"], "OLD NEW"),
        (["metrics"], "--help"),
    ],
)
def test_help_is_there(command, takes, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main([*command, "--help"])
    assert left.value.code == 0
    assert takes in capsys.readouterr().out


IMPORTS = {
    "evaltui": ["pydantic", "google.genai", "textual"],
    "evaltui.cli": ["pydantic", "google.genai", "textual", "asyncio"],
    "evaltui.files.workspace": ["google.genai", "textual"],
    "evaltui.commands.run": ["pydantic", "google.genai", "textual", "evaltui.runs.history"],
    "evaltui.commands.job": ["google.genai", "textual", "google.adk", "rouge_score", "nltk"],
    "evaltui.runs.evaluation": ["google.genai", "textual", "google.adk", "evaltui.runner.child.in_process"],
    "evaltui.adk": ["pydantic", "google.genai", "google.adk"],
    "evaltui.workbench": ["google.genai", "textual", "google.adk"],
    "evaltui.runner.child.host": ["google.genai", "textual", "google.adk"],
}


@pytest.mark.parametrize("module", IMPORTS)
def test_nothing_is_imported_before_it_is_needed(module):
    script = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = set(loaded.stdout.split())
    assert modules.isdisjoint(IMPORTS[module])


def test_a_fault_of_its_own_is_no_case_that_failed(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_dispatch", lambda words: [][len(words)])
    with pytest.raises(SystemExit) as left:
        cli.main(["run"])
    assert left.value.code == 3
    assert "IndexError: list index out of range" in capsys.readouterr().err
