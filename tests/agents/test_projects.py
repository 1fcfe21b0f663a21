"""Agents in the packages of a project that nothing has installed: what they import is found, and nothing of
the project hides a library."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.project.layouts import AGENT, PYPROJECT, nested_agents, write

_LOAD = """\
import json, sys
from pathlib import Path
from evaltui.agents.functions import find_function
from evaltui.agents.loading import import_agent
agent, module, *paths = sys.argv[1:]
try:
    found = import_agent(Path(agent), module)
    functions = [find_function(*path.rsplit(".", 1), Path(agent)) for path in paths]
except BaseException as error:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
else:
    print(json.dumps({"module": found.__module__, "functions": [one.__module__ for one in functions]}))
"""


def load(agent: Path, module: str = "", *functions: str, cwd: Path | None = None) -> dict[str, Any]:
    """What a process says of the agent that it imports: its module, and those of functions found for it."""
    command = [sys.executable, "-P", "-c", _LOAD, str(agent), module, *functions]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("shared", "module"),
    [("my_app.shared", "desk.agent"), ("...shared", "my_app.agents.desk.agent")],
    ids=["absolute", "relative"],
)
def test_an_agent_imports_from_the_package_that_it_is_in(tmp_path, shared, module):
    folder = nested_agents(tmp_path, shared)
    write(folder / "metrics.py", "def brief(): ...\n")
    package = module.removesuffix(".agent")
    found = load(folder, "", "desk.metrics.brief", "agent.metrics.brief", "metrics.brief")
    assert found == {
        "module": module,
        "functions": [f"{package}.metrics", f"{package}.metrics", "metrics"],
    }


def test_a_single_file_in_a_package(tmp_path):
    nested_agents(tmp_path)
    text = "from ..shared import GREETING\ndef root_agent(message, session): ...\n"
    file = write(tmp_path / "src" / "my_app" / "agents" / "clerk.py", text)
    assert load(file)["module"] == "my_app.agents.clerk"


def test_a_module_of_a_subfolder_that_imports_from_above(tmp_path):
    folder = nested_agents(tmp_path)
    write(folder / "parts" / "__init__.py")
    write(
        folder / "parts" / "words.py",
        "def f():\n    from ....shared import GREETING\n    return GREETING\nf()\n",
    )
    with (folder / "agent.py").open("a") as agent:
        agent.write("from .parts import words\n")
    assert load(folder)["module"] == "my_app.agents.desk.agent"


def test_packages_without_an_init(tmp_path):
    folder = nested_agents(tmp_path, "...shared")
    for one in (tmp_path / "src").rglob("__init__.py"):
        one.unlink()
    assert load(folder)["module"] == "my_app.agents.desk.agent"


@pytest.mark.parametrize("init", ["", "raise RuntimeError('a sibling is broken')\n"])
def test_packages_above_are_imported_only_if_they_are_needed(tmp_path, init):
    folder = nested_agents(tmp_path)
    write(folder / "agent.py", AGENT)
    write(folder.parent / "__init__.py", init)
    assert load(folder)["module"] == "desk.agent"


def test_packages_at_the_root_of_a_project(tmp_path):
    write(tmp_path / "pyproject.toml", PYPROJECT.format(name="app"))
    write(tmp_path / "common" / "words.py", "WORD = 1\n")
    write(tmp_path / "settings.py", "LIMIT = 1\n")
    text = f"from common.words import WORD\nimport settings\n{AGENT}"
    assert load(write(tmp_path / "agents" / "desk" / "agent.py", text).parent)["module"] == "desk.agent"


def test_nothing_of_a_project_hides_a_library_or_stands_for_one_that_is_not_there(tmp_path):
    folder = nested_agents(tmp_path)
    write(folder / "colorsys.py")
    write(tmp_path / "src" / "colorsys.py")
    write(tmp_path / "colorsys.py")
    write(tmp_path / "wandb" / "run-1" / "files" / "config.yaml")
    text = """
    import colorsys
    colorsys.ONE_THIRD
    try:
        import wandb
    except ModuleNotFoundError:
        def root_agent(message, session): ...
    """
    write(folder / "agent.py", textwrap.dedent(text))
    assert load(folder)["module"] == "desk.agent"


@pytest.mark.parametrize(
    ("module", "path", "found"),
    [
        ("my_app.agents.desk", "agents/desk", "my_app.agents.desk.agent"),
        ("my_app.agents.desk.agent", "agents/desk/agent.py", "my_app.agents.desk.agent"),
        ("my_app.agents.desk.agent:root_agent", "agents/desk/agent.py", "my_app.agents.desk.agent"),
        ("my_app.agents:desk.agent.root_agent", "agents", "my_app.agents.desk.agent"),
        ("my_app.clerk", "clerk.py", "my_app.clerk"),
        ("my_app.clerk:other", "clerk.py", "my_app.clerk"),
    ],
)
def test_an_agent_is_imported_by_the_name_that_it_is_addressed_by(tmp_path, module, path, found):
    folder = nested_agents(tmp_path)
    write(folder.parent / "__init__.py", "from .desk import agent\n")
    write(folder / "metrics.py", "def brief(): ...\n")
    write(tmp_path / "src" / "my_app" / "clerk.py", f"{AGENT}\ndef other(message, session): ...\n")
    assert load(tmp_path / "src" / "my_app" / path, module)["module"] == found


@pytest.mark.parametrize(
    ("attribute", "error"),
    [
        ("root_agnt", "my_app.agents.desk.agent has no root_agnt. Did you mean root_agent?"),
        ("GREETING.nope", "str has no nope"),
        ("NOTHING", "my_app.agents.desk.agent:NOTHING is None"),
    ],
)
def test_an_attribute_that_is_no_agent(tmp_path, attribute, error):
    folder = nested_agents(tmp_path)
    with (folder / "agent.py").open("a") as agent:
        agent.write("NOTHING = None\n")
    name = f"my_app.agents.desk.agent:{attribute}"
    said = load(folder / "agent.py", name)["error"]
    assert said.startswith("AgentLoadError: my_app.agents.desk.agent:")
    assert said.endswith(error)
