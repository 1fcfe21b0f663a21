"""The Python that an agent's folder names starts only where the agent, or a function of the user's, runs."""

import json
import shutil
import sys

import pytest

from evaltui.commands.command_table import COMMAND_NAMES
from tests.commands.command_line import call
from tests.eval_data import make_case, make_turn

AGENT = """
def root_agent(message, session):
    return "Good day."


def judge(prompt):
    return '{"reasoning": "So it is.", "is_the_agent_response_valid": "valid"}'
"""
TURN = make_turn("Hello", "Good day.")
SET = {"eval_set_id": "desk", "eval_cases": [make_case("greets", TURN)]}
IDLE = {
    "lint": ["."],
    "runs": ["."],
    "report": ["."],
    "compare": [".", "last", "last"],
    "merge": [".", "last"],
    "export": [".", "--run", "last", "-o", "exported.json"],
    "gaps": ["."],
    "inspect": ["trace.json"],
    "import": ["trace.json", "--into", "imported.evalset.json", "--case", "other"],
    "score": ["trace.json", "--sets", "desk.evalset.json"],
    "schema": ["evalset"],
    "migrate": ["old.json", "new.evalset.json"],
    "new": ["other"],
    "help": ["cost"],
}
# They run the agent, list the packages of its Python, last until somebody leaves, or find nothing to rename.
OTHERS = {"run", "chat", "record", "metrics", "demo", "listen", "serve", "rename"}
ESTIMATES = {
    "an estimate": ["run", ".", "--estimate"],
    "an estimate of a variant": ["run", ".", "--estimate", "--variant", "other:agent=other"],
}
MODULES = {
    "an estimate of a module": ["run", "-m", "nowhere", "--estimate"],
    "runs of a module": ["runs", "-m", "nowhere"],
    "a tool that is not there": ["rename", "tool", "nowhere", "there", "."],
}


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """An agent with a stored run and its traces."""
    folder = tmp_path_factory.mktemp("idle") / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    (folder / "desk.evalset.json").write_text(json.dumps(SET))
    (folder / "old.json").write_text(json.dumps([{"query": "Hello", "reference": "Good day."}]))
    assert call("run", folder, "--python", sys.executable) == 0
    assert call("export", folder, "--run", "last", "-o", folder / "trace.json") == 0
    return folder


@pytest.fixture(params=["pyproject.toml", ".venv"])
def desk(request, scored, tmp_path, monkeypatch):
    """The same, whose Python leaves a mark when it is started."""
    folder = tmp_path / "desk"
    shutil.copytree(scored, folder)
    python = folder / ".venv" / "bin" / "python" if request.param == ".venv" else folder / "python.sh"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(f'#!/bin/sh\ntouch "{folder}/started"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    if request.param == ".venv":
        (folder / ".venv" / "pyvenv.cfg").write_text("home = /usr\n")
    else:
        (folder / "pyproject.toml").write_text('[tool.evaltui]\npython = "./python.sh"\n')
    monkeypatch.chdir(folder)
    return folder


def test_every_command_is_in_the_table():
    assert set(COMMAND_NAMES) == set(IDLE) | OTHERS


def test_commands_that_run_nothing_do_not_start_it(desk, capsys):
    commands = {name: [name, *words] for name, words in IDLE.items()} | ESTIMATES
    codes = {name: call(*words) for name, words in commands.items()}
    assert codes == dict.fromkeys(commands, 0), capsys.readouterr().err
    assert {call(*words) for words in MODULES.values()} == {2}
    assert not (desk / "started").exists()


def test_a_score_by_a_function_of_the_users_names_it_with_the_python(desk, capsys, fresh_hosts):
    criterion = {"threshold": 1.0, "judge_model_options": {"judge_model": "agent:judge", "num_samples": 1}}
    config = {"criteria": {"final_response_match_v2": criterion}}
    (desk / "test_config.json").write_text(json.dumps(config))
    assert call("score", "trace.json", "--sets", "desk.evalset.json", "--report", "json") == 0
    (python,) = {*desk.glob("python.sh"), *desk.glob(".venv/bin/python")}
    found_by = "pyproject.toml" if python.suffix else ".venv"
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert f"function agent:judge starts {python} (from {found_by})" in notes
    assert (desk / "started").exists()
