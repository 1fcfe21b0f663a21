"""An agent is named by its path, by its dotted name, or as one of the agents of a folder."""

from __future__ import annotations

import io
import json

import pytest

from evaltui.runs.run_file import RunFile
from tests.commands.command_line import call
from tests.project.layouts import AGENT, eval_set, nested_agents, uv_package, write
from tests.stored_runs import interrupt


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with two agents in a package that is installed nowhere, the current folder."""
    folder = nested_agents(tmp_path, "...shared")
    write(folder.parent / "till" / "tills.evalset.json", eval_set("tills"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(capsys) -> str:
    """The sets that were run and passed."""
    printed = capsys.readouterr()
    assert "1 passed" in printed.out, printed.err + printed.out
    return printed.out.split(" ")[0]


@pytest.mark.parametrize(
    "words",
    [
        ["src/my_app/agents/desk"],
        ["-m", "my_app.agents.desk"],
        ["-m", "my_app.agents.desk", "greets:greets"],
        ["greets", "-m", "my_app.agents.desk.agent"],
        ["-m", "my_app.agents.desk.agent:root_agent"],
        [".", "--agent", "desk"],
        [".", "--agent", "my_app.agents.desk"],
    ],
)
def test_an_agent_is_run_however_it_is_named(words, project, capsys):
    assert call("run", *words, "--workers", "1") == 0
    assert ran(capsys) == "greets"


def test_an_attribute_is_the_agent(project, capsys):
    agents = project / "src" / "my_app" / "agents"
    (agents / "__init__.py").write_text("def clerk(message, session):\n    return 'from the clerk'\n")
    write(agents / "clerks.evalset.json", eval_set("clerks", "from the clerk"))
    assert call("run", "-m", "my_app.agents:clerk", "clerks") == 0
    assert ran(capsys) == "clerks"
    assert call("run", "-m", "my_app.agents:clrk", "clerks") == 3
    assert "my_app.agents:clrk: my_app.agents has no clrk. Did you mean clerk?" in " ".join(
        capsys.readouterr().out.split()
    )


def test_every_command_takes_the_dotted_name(project, capsys, monkeypatch):
    name = ["-m", "my_app.agents.desk"]
    assert call("run", *name) == 0
    assert call("run", *name) == 0
    capsys.readouterr()
    assert call("runs", *name) == 0
    assert capsys.readouterr().out.count("· greets\n") == 2
    assert call("compare", *name, "last", "last") == 0
    assert call("metrics", *name) == 0
    assert "Metrics of desk" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO("hi\n"))
    assert call("chat", *name) == 0
    assert "HELLO" in capsys.readouterr().out
    turns = write(project / "turns.txt", "hi\n")
    assert call("record", *name, "greets", "--case", "new", "--turns", turns) == 0
    cases = json.loads((project / "src/my_app/agents/desk/greets.evalset.json").read_text())["eval_cases"]
    assert [case["eval_id"] for case in cases] == ["greets", "new"]


def test_a_run_by_a_dotted_name_is_resumed_by_it(project, capsys):
    name = "my_app.agents:clerk"
    agents = project / "src" / "my_app" / "agents"
    (agents / "__init__.py").write_text("def clerk(message, session):\n    return 'from the clerk'\n")
    write(agents / "clerks.evalset.json", eval_set("clerks", "from the clerk"))
    assert call("run", "-m", name, "clerks") == 0
    (log,) = (agents / ".evaltui" / "runs").glob("*.sqlite")
    assert RunFile(log).header.module == name
    interrupt(log, 0)
    capsys.readouterr()
    assert call("run", "-m", name, "--resume", "last") == 0
    assert "1 passed" in capsys.readouterr().out


def test_a_run_is_not_resumed_once_what_the_agent_imports_has_changed(project, capsys):
    assert call("run", "src/my_app/agents/desk") == 0
    (log,) = project.glob("src/my_app/agents/desk/.evaltui/runs/*.sqlite")
    interrupt(log, 1)
    write(project / "src" / "my_app" / "tools.py", "def shout(text):\n    return text\n")
    assert call("run", "src/my_app/agents/desk", "--resume", "last") == 2
    assert "cannot be resumed: ../../tools.py changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", ".", "--agent", "dsk"], "--agent: no agent dsk in ., which has {both}. Did you mean desk?"),
        (["run", "."], ". has several agents: {both}. Name one of them, or give its name with --agent"),
        (["gaps", "."], ". has several agents: {both}. Name one of them"),
        (["chat", "src", "-m", "my_app.agents.desk"], "-m names the agent; leave out src"),
        (["run", "http://x/app", "-m", "my_app"], "-m names the agent; leave out http://x/app"),
        (["run"], "the following arguments are required: AGENT_DIR"),
        (["runs"], "the following arguments are required: AGENT_DIR"),
        (["run", "-m", "my_app", "--home", "."], "--home needs an agent with a URL, such as {url}"),
        (["run", "-m", "src/x"], "-m: 'src/x' is not a dotted name such as {name}. Give a path without -m"),
    ],
)
def test_what_names_no_agent_is_refused(words, said, project, capsys):
    assert call(*words) == 2
    agents = "src/my_app/agents/desk, src/my_app/agents/till"
    url, name = "http://127.0.0.1:8000/my_app", "my_app.agents.desk"
    assert capsys.readouterr().err == f"evaltui {words[0]}: {said.format(both=agents, url=url, name=name)}\n"


def test_a_name_that_several_have_is_refused(tmp_path, monkeypatch, capsys):
    for agent in ("a/desk", "b/desk"):
        write(tmp_path / agent / "agent.py", AGENT)
    monkeypatch.chdir(tmp_path)
    assert call("run", ".", "--agent", "desk") == 2
    assert capsys.readouterr().err == (
        "evaltui run: --agent: desk may be a/desk or b/desk. Give more of the path\n"
    )


def test_agents_of_one_name_are_not_mixed_up(tmp_path, monkeypatch, capsys):
    text = "from agent.words import WORD\n\ndef root_agent(message, session):\n    return WORD\n"
    for project in ("a", "b"):
        folder = tmp_path / project / "src" / "agent"
        write(tmp_path / project / "pyproject.toml")
        write(folder / "__init__.py")
        write(folder / "agent.py", text)
        write(folder / "words.py", f"WORD = 'from {project}'\n")
        write(folder / f"{project}.evalset.json", eval_set(project, f"from {project}"))
    monkeypatch.chdir(tmp_path)
    for project in ("a", "b"):
        assert call("run", ".", "--agent", f"{project}/src/agent") == 0
        assert ran(capsys) == project
    monkeypatch.chdir(tmp_path / "b")
    assert call("run", "-m", "agent") == 0
    assert ran(capsys) == "b"


def test_of_one_agent_the_name_is_that_of_a_sub_agent(tmp_path, capsys):
    folder = uv_package(tmp_path)
    assert call("run", folder, "--agent", "billing") == 3
    assert "--agent billing" in " ".join(capsys.readouterr().out.split())
