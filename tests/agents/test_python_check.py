"""What an agent needs of its Python is told before it is run, and without importing it."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
from environments import environment_python, make_environment

from evaltui.project.agent_address import AgentAddress
from evaltui.project.interpreters import look_for_interpreter
from evaltui.runner.python_check import PythonCheck, check_python, python_lines

# Importing it would be the end of the process that does.
IMPORTED = "\nimport os\nos._exit(9)\n"
VERSION = sys.version.split()[0]
HERE = "Python {}.{}".format(*sys.version_info)


def checked(project: Path, source: str, **files: str) -> PythonCheck:
    for name, text in {"agent": source + IMPORTED, **files}.items():
        (project / "bot" / f"{name}.py").write_text(textwrap.dedent(text))
    bot = project / "bot"
    return check_python(AgentAddress(bot, interpreter=look_for_interpreter(bot)))


def shown(check: PythonCheck) -> list[str]:
    return ["".join(text for text, _ in line) for line in python_lines(check)]


def test_a_bare_environment_has_all_that_a_function_needs(project):
    make_environment(project)
    check = checked(
        project, "import json, asyncio\nfrom evaltui.events import text\nfrom evaltui import events"
    )
    python = project / ".venv" / "bin" / "python"
    assert check == PythonCheck(python, ".venv", VERSION)
    assert shown(check) == [f"Python      {VERSION}  {python}  from .venv", "google-adk  not installed"]


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("uv.lock", "uv add google-adk pyyaml"),
        ("poetry.lock", "poetry add google-adk pyyaml"),
        ("other.lock", "uv pip install --python {python} google-adk pyyaml"),
    ],
)
def test_all_that_is_missing_is_installed_by_one_command(lock, command, project):
    make_environment(project)
    (project / lock).touch()
    check = checked(
        project, "from google.adk.agents import Agent\nfrom .tools import look", tools="import yaml, json"
    )
    assert check.problem == f"google-adk, pyyaml are not installed for {HERE}"
    assert check.install == command.format(python=project / ".venv" / "bin" / "python")
    assert shown(check)[-1].endswith(check.install)


def test_what_may_do_without_is_not_missing(project):
    make_environment(project)
    source = """
        import sys
        from typing import TYPE_CHECKING
        try:
            import ujson
        except ImportError:
            ujson = None
        if TYPE_CHECKING:
            import numpy
        def root_agent(message, session):
            import pandas
    """
    assert checked(project, textwrap.dedent(source)).problem == ""


def test_modules_of_the_agents_own_are_not_missing_and_what_they_need_is(project):
    make_environment(project)
    (project / "bot" / "__init__.py").touch()
    (project / "helpers").mkdir()
    (project / "helpers" / "names.py").write_text("import httpx\n")
    check = checked(project, "from helpers import names\nfrom bot.tools import look", tools="import attr\n")
    assert check.problem == f"httpx, attrs are not installed for {HERE}"


def test_a_native_agent_needs_google_genai(project):
    make_environment(project)
    check = checked(project, "from evaltui import Agent, ScriptedModel")
    assert check.problem == f"google-genai, pydantic are not installed for {HERE}"


def test_an_env_file_needs_what_reads_it(project, monkeypatch):
    make_environment(project)
    (project / "bot" / ".env").write_text("NAME=value\n")
    assert checked(project, "import json").problem == f"python-dotenv is not installed for {HERE}"
    monkeypatch.setenv("ADK_DISABLE_LOAD_DOTENV", "1")
    assert checked(project, "import json").problem == ""


def test_a_yaml_agent_needs_google_adk(project):
    make_environment(project)
    (project / "bot" / "root_agent.yaml").write_text("name: bot\n")
    assert checked(project, "").problem == f"google-adk is not installed for {HERE}"


@pytest.mark.parametrize("about", ["google_adk-1.39.1.dist-info/METADATA", "google_adk.egg-info/PKG-INFO"])
def test_an_older_google_adk_is_named(project, about):
    make_environment(project)
    (packages,) = project.glob(".venv/lib/python3*/site-packages")
    (packages / "google" / "adk").mkdir(parents=True)
    (packages / "google" / "adk" / "__init__.py").touch()
    (packages / about).parent.mkdir()
    (packages / about).write_text("Metadata-Version: 2.1\nName: google-adk\nVersion: 1.39.1\n")
    (project / "uv.lock").touch()
    check = checked(project, "from google.adk.agents import Agent")
    assert check.problem == "google-adk 1.39.1 is too old: agents need 2.0 or later"
    assert check.install == "uv add 'google-adk>=2'"


def test_google_adk_with_its_version(project):
    (project / ".venv").symlink_to(Path(environment_python("EVALTUI_OLD_ADK_PYTHON")).parents[1])
    check = checked(project, "from google.adk.agents import Agent\nfrom google.genai import types")
    assert (check.adk, check.problem) == ("2.0.0", "")


def test_a_python_that_cannot_be_started(project):
    make_environment(project)
    python = project / ".venv" / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nexit 127\n")
    python.chmod(0o755)
    assert checked(project, "").problem == f"{python}: cannot be started as a Python (exit code 127)"
    (project / ".venv" / "pyvenv.cfg").write_text("version = 3.9.2\n")
    assert "Python 3.9 is too old (from .venv)" in checked(project, "").problem
