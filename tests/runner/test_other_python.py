"""Agents in a Python of their project, which has never heard of evaltui: real virtual environments."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pydantic
import pytest

import evaltui

PLAIN = os.environ.get("EVALTUI_PLAIN_PYTHON")
LIBRARIES = Path(pydantic.__file__).parents[1]
AGENT = """
    import sys
    from evaltui.events import tool_call, tool_result

    async def root_agent(message, session):
        yield tool_call("look_up", {"order": 7}, id="one")
        yield tool_result("look_up", {"price": 12.5}, id="one")
        yield f"Python {sys.version_info[1]} in {sys.prefix.rpartition('/')[2]}"
"""
ADK_AGENT = """
    import sys
    from google.adk.agents import Agent
    from google.adk.models import BaseLlm, LlmResponse
    from google.genai import types

    class Fixed(BaseLlm):
        async def generate_content_async(self, request, stream=False):
            part = types.Part(text=f"in {sys.prefix.rpartition('/')[2]}")
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    root_agent = Agent(name="desk", model=Fixed(model="fixed"))
"""


def pythons() -> list[str]:
    """Every Python here that agents can run in, of each version one; the one that runs this first."""
    found = {sys.version_info[:2]: sys.executable}
    installed = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    commands = [path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))]
    for executable in [*commands, *map(str, installed)]:
        shown = subprocess.run([executable, "-V"], capture_output=True, text=True)
        version = re.match(r"Python (\d+)\.(\d+)", shown.stdout)
        if version and (number := (int(version[1]), int(version[2]))) >= (3, 11):
            found.setdefault(number, executable)
    return list(found.values())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an agent in a folder `bot`."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bot").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bot"\n')
    return tmp_path


def make_environment(project: Path, python: str = sys.executable, libraries: Path | None = None) -> None:
    """A virtual environment without anything, or with the packages that are in another folder."""
    subprocess.run([python, "-m", "venv", "--without-pip", project / ".venv"], check=True)
    if libraries:
        (packages,) = project.glob(".venv/lib/python3*/site-packages")
        (packages / "libraries.pth").write_text(f"{libraries}\n")


def write(project: Path, agent: str, response: str, **config: object) -> None:
    (project / "bot" / "agent.py").write_text(textwrap.dedent(agent))
    turn = {
        "user_content": {"role": "user", "parts": [{"text": "hello"}]},
        "final_response": {"role": "model", "parts": [{"text": response}]},
    }
    cases = {"eval_set_id": "a", "eval_cases": [{"eval_id": "one", "conversation": [turn]}]}
    (project / "bot" / "a.evalset.json").write_text(json.dumps(cases))
    (project / "bot" / "test_config.json").write_text(json.dumps(config))


def evaluated(project: Path, *options: str, evaltui_python: str = sys.executable) -> tuple[int, str]:
    """The exit code of `evaltui run`, and what it prints."""
    command = [evaltui_python, "-m", "evaltui", "run", str(project / "bot"), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(evaltui.__file__).parents[1])
    return done.returncode, done.stdout + done.stderr


EXACT = {"criteria": {"response_match_score": 1.0}}


@pytest.mark.parametrize("python", pythons())
def test_a_function_agent_in_a_bare_environment(python, project):
    make_environment(project, python)
    version = subprocess.run([python, "-V"], capture_output=True, text=True).stdout.split(".")[1]
    write(project, AGENT, f"Python {version} in .venv", **EXACT)
    code, printed = evaluated(project)
    assert (code, "1 passed" in printed) == (0, True), printed


def test_what_is_missing_is_said_with_the_command_that_installs_it(project):
    make_environment(project)
    write(project, ADK_AGENT, "in .venv", **EXACT)
    (project / "uv.lock").touch()
    code, printed = evaluated(project)
    printed = " ".join(printed.split())
    assert code == 3
    assert "this agent needs google-adk, which is not installed for Python 3." in printed
    assert f"({project}/.venv): uv add google-adk" in printed


def test_an_adk_agent_with_the_packages_of_its_project(project):
    pytest.importorskip("google.adk")
    make_environment(project, libraries=LIBRARIES)
    write(project, ADK_AGENT, "in .venv", **EXACT)
    code, printed = evaluated(project)
    assert (code, "1 passed" in printed) == (0, True), printed


@pytest.mark.skipif(
    PLAIN is None, reason="EVALTUI_PLAIN_PYTHON names no Python with evaltui and no google-adk"
)
def test_evaltui_in_an_environment_of_its_own_drives_an_adk_agent_in_another(project):
    pytest.importorskip("google.adk")
    make_environment(project, libraries=LIBRARIES)
    write(project, ADK_AGENT, "in .venv", **EXACT)
    code, printed = evaluated(project, evaltui_python=PLAIN)
    assert (code, "1 passed" in printed) == (0, True), printed
    # The other way round: what is installed where evaltui is does not help the project.
    (project / ".venv").rename(project / "gone")
    code, printed = evaluated(project, evaltui_python=PLAIN)
    assert (code, "this agent needs google-adk" in " ".join(printed.split())) == (3, True), printed


JUDGE = """
    import sys

    def answer(prompt):
        prefix = sys.prefix.rpartition('/')[2]
        verdict = "valid" if prefix == ".venv" else "invalid"
        return '{"is_the_agent_response_valid": "%s", "reasoning": "judged in %s"}' % (verdict, prefix)
"""


def test_a_function_that_judges_is_called_in_the_projects_python(project):
    make_environment(project)
    (project / "bot" / "judges.py").write_text(textwrap.dedent(JUDGE))
    options = {"judge_model": "bot.judges:answer", "num_samples": 1}
    criterion = {"threshold": 1.0, "judge_model_options": options}
    write(project, AGENT, "whatever", criteria={"final_response_match_v2": criterion})
    code, printed = evaluated(project)
    assert (code, "1 passed" in printed) == (0, True), printed


METRIC = """
    import sys
    from evaltui import EvaluationResult, EvalStatus, PerInvocationResult

    def in_project(metric, actual, expected, scenario):
        score = float(sys.prefix.endswith(".venv"))
        turns = [
            PerInvocationResult(actual_invocation=one, score=score, eval_status=EvalStatus.PASSED)
            for one in actual
        ]
        return EvaluationResult(
            overall_score=score, overall_eval_status=EvalStatus.PASSED, per_invocation_results=turns
        )
"""


def test_a_custom_metric_is_computed_in_the_projects_python(project):
    make_environment(project, libraries=LIBRARIES)
    # As projects with a `src` are installed: by a path that only their own Python reads.
    (project / "src").mkdir()
    (project / "src" / "scores.py").write_text(textwrap.dedent(METRIC))
    (packages,) = project.glob(".venv/lib/python3*/site-packages")
    (packages / "project.pth").write_text(f"{project / 'src'}\n")
    code_config = {"in_project": {"code_config": {"name": "scores.in_project"}}}
    write(project, AGENT, "whatever", criteria={"in_project": 1.0}, custom_metrics=code_config)
    code, printed = evaluated(project)
    assert (code, "1 passed" in printed) == (0, True), printed


def test_another_python_can_be_asked_for(project, tmp_path):
    write(project, AGENT, "Python 3 in other", **EXACT)
    environment = tmp_path / "elsewhere"
    environment.mkdir()
    make_environment(environment)
    (environment / ".venv").rename(environment / "other")
    code, printed = evaluated(project, "--python", str(environment / "other"))
    assert "in other" in printed, printed
    code, printed = evaluated(project, "--python", str(tmp_path / "nowhere"))
    assert code == 2
    assert printed.startswith(f"evaltui run: --python: no Python at {tmp_path}/nowhere. Give an executable")


@pytest.mark.parametrize("command", ["run", "chat", "record", "metrics"])
def test_a_python_that_is_too_old_is_refused_in_one_line(command, project):
    write(project, AGENT, "whatever")
    make_environment(project)
    (project / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.9.2\n")
    rest = {"record": ["a", "--case", "new", "--turns", "-"]}.get(command, [])
    words = [sys.executable, "-m", "evaltui", command, str(project / "bot"), *rest]
    done = subprocess.run(words, capture_output=True, text=True, input="hi\n")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "Python 3.9 is too old (from .venv)" in done.stderr
