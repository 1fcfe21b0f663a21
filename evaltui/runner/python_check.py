"""Checks, before anything is run, the packages of an agent's Python."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaltui.agents.bootstrap import command, environment
from evaltui.project.agent_address import AgentAddress
from evaltui.project.folders import agent_folder
from evaltui.project.packages import install_command, package_of
from evaltui.runner.host import not_started
from evaltui.text.figures import short_list
from evaltui.text.lines import Line
from evaltui.text.values import visible

# Seconds.
_PATIENCE = 20.0
_OLDEST_ADK = 2


@dataclass(frozen=True)
class PythonCheck:
    """Facts about an agent's Python, determined without importing the agent."""

    path: Path
    """The executable."""
    reason: str
    """The file or setting that names it; "" for the Python that evaltui runs in."""
    version: str = ""
    """The version of Python, e.g. `3.12.1`; "" for an unusable Python."""
    adk: str = ""
    """The installed version of google-adk; "" where it is not installed."""
    problem: str = ""
    """A clause about missing or too old packages, or an unusable Python; "" without a problem."""
    install: str = ""
    """Shell command that installs the missing or too old packages; "" without such packages."""


def check_python(agent: AgentAddress) -> PythonCheck:
    """Starts the agent's Python, which takes a tenth of a second, and searches it for the imports of the
    agent's files."""
    interpreter = agent.interpreter
    if interpreter.problem:
        return PythonCheck(interpreter.path, interpreter.reason, problem=interpreter.problem)
    python = interpreter.executable
    path = python or Path(sys.executable)
    arguments = command(str(path), "checking", str(agent.folder), agent.module)
    try:
        done = subprocess.run(
            arguments, env=environment(python), capture_output=True, text=True, timeout=_PATIENCE, check=True
        )
        facts = json.loads(done.stdout.splitlines()[-1])
    except subprocess.CalledProcessError as error:
        return PythonCheck(path, interpreter.reason, problem=not_started(path, error.returncode))
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        return PythonCheck(path, interpreter.reason, problem=f"{path}: gives no list of its packages")
    folder = agent_folder(agent.folder)
    packages = dict.fromkeys(map(package_of, facts["missing"]))
    if "google-adk" in packages:
        # Comes with it.
        packages.pop("google-genai", None)
    problem = ""
    if packages:
        are = "is" if len(packages) == 1 else "are"
        version = ".".join(facts["version"].split(".")[:2])
        problem = f"{short_list(list(packages))} {are} not installed for Python {version}"
    elif facts["uses_adk"] and facts["adk"] and int(facts["adk"].partition(".")[0]) < _OLDEST_ADK:
        problem = f"google-adk {facts['adk']} is too old: agents need {_OLDEST_ADK}.0 or later"
        packages = {f"'google-adk>={_OLDEST_ADK}'": None}
    install = install_command(folder, " ".join(packages), path) if packages else ""
    return PythonCheck(path, interpreter.reason, facts["version"], facts["adk"], problem, install)


def python_lines(check: PythonCheck) -> Iterator[Line]:
    """The Python, why it is the one, google-adk there, and what is missing."""
    why = f"from {check.reason}" if check.reason else "runs evaltui and the agent"
    if check.version:
        where = f"  {visible(str(check.path))}  {visible(why)}"
        yield [("Python      ", "muted"), (check.version, ""), (where, "muted")]
        yield [("google-adk  ", "muted"), (check.adk, "") if check.adk else ("not installed", "muted")]
    if check.problem:
        yield [("! ", "warning"), (visible(check.problem), "")]
    if check.install:
        yield [("  install   ", "muted"), (visible(check.install), "bold")]
