"""Agents in a Python of their project, which has never heard of evaltui: real virtual environments."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pydantic
import pytest
from environments import make_environment, pythons
from project_runs import ADK_AGENT, EXACT, evaluated, write

LIBRARIES = Path(pydantic.__file__).parents[1]
AGENT = """
    import sys
    from evaltui.events import tool_call, tool_result

    async def root_agent(message, session):
        yield tool_call("look_up", {"order": 7}, id="one")
        yield tool_result("look_up", {"price": 12.5}, id="one")
        yield f"Python {sys.version_info[1]} in {sys.prefix.rpartition('/')[2]}"
"""


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


def test_what_is_installed_where_evaltui_is_does_not_help_the_project(project):
    pytest.importorskip("google.adk")
    make_environment(project)
    write(project, ADK_AGENT, "in .venv", **EXACT)
    code, printed = evaluated(project)
    assert (code, "this agent needs google-adk" in " ".join(printed.split())) == (3, True), printed


PEOPLE = """
    import sys
    # Installed for the project, and nowhere else.
    from phrases_of_the_project import GOODBYE, VERDICT

    def judge(prompt):
        print("judged in", sys.prefix)
        return '{"is_the_agent_response_valid": "%s", "reasoning": "as agreed"}' % VERDICT

    def user(prompt):
        print("asked in", sys.prefix)
        return GOODBYE
"""
PHRASES = "GOODBYE = '</finished>'\nVERDICT = 'valid'\n"


@pytest.fixture
def people(project: Path) -> Path:
    """The agent's project has functions that judge and ask; they need what is installed for it alone."""
    make_environment(project)
    (packages,) = project.glob(".venv/lib/python3*/site-packages")
    (packages / "phrases_of_the_project.py").write_text(PHRASES)
    (project / "bot" / "people.py").write_text(textwrap.dedent(PEOPLE))
    return project


def test_a_function_that_judges_is_called_in_the_projects_python(people):
    options = {"judge_model": "bot.people:judge", "num_samples": 1}
    criterion = {"threshold": 1.0, "judge_model_options": options}
    write(people, AGENT, "whatever", criteria={"final_response_match_v2": criterion})
    code, printed = evaluated(people)
    assert (code, "1 passed" in printed) == (0, True), printed


def test_a_function_that_plays_the_user_is_called_in_the_projects_python(people):
    once = {"trajectory_single_tool_use": {"threshold": 1, "tool": "look_up"}}
    write(people, AGENT, "", evaltui={"criteria": once}, user_simulator_config={"model": "bot.people:user"})
    file = people / "bot" / "a.evalset.json"
    cases = json.loads(file.read_text())
    cases["eval_cases"] = [
        {"eval_id": "one", "conversation_scenario": {"starting_prompt": "hi", "conversation_plan": "Go."}}
    ]
    file.write_text(json.dumps(cases))
    code, printed = evaluated(people)
    assert (code, "1 passed" in printed) == (0, True), printed
    (people / ".venv").rename(people / "gone")
    code, printed = evaluated(people)
    assert (code, "No module named 'phrases_of_the_project'" in printed) == (3, True), printed


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


@pytest.mark.parametrize(
    "command",
    ["run", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("chat", "record", "metrics"))],
)
def test_a_python_that_is_too_old_is_refused_in_one_line(command, project):
    write(project, AGENT, "whatever")
    make_environment(project)
    (project / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.9.2\n")
    rest = {"record": ["a", "--case", "new", "--turns", "-"]}.get(command, [])
    words = [sys.executable, "-m", "evaltui", command, str(project / "bot"), *rest]
    done = subprocess.run(words, capture_output=True, text=True, input="hi\n")
    refusal, *page = done.stderr.splitlines()
    assert done.returncode == 2
    assert "Python 3.9 is too old (from .venv)" in refusal
    assert page in ([], [f"evaltui {command}: see `evaltui help agents`"])


def test_variables_of_the_caller_and_odd_names_change_nothing(project, monkeypatch):
    folder = project / "my b\u00f6t"
    folder.mkdir()
    make_environment(folder)
    # evaltui's own Python is told where its libraries are, which are none for another one.
    monkeypatch.setenv("PYTHONHOME", sys.base_prefix)
    monkeypatch.setenv("PYTHONPATH", str(project / "modules"))
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    (project / "modules").mkdir()
    (project / "modules" / "place.py").write_text("import os\nPLACE = os.environ['VIRTUAL_ENV']\n")
    agent = """
        import place, sys

        def root_agent(message, session):
            return f"{place.PLACE == sys.prefix} {sys.prefix.rpartition('/')[2]}"
    """
    write(project, agent, "True .venv", **EXACT)
    code, printed = evaluated(project, "--python", str(folder / ".venv"))
    assert (code, "1 passed" in printed) == (0, True), printed
    assert f"from --python {folder}/.venv/bin/python" in " ".join(printed.split())
