"""A google-adk agent in an environment with another pydantic and google-genai than evaltui's."""

from __future__ import annotations

import json
import subprocess
import textwrap
from importlib.metadata import version
from pathlib import Path

import pytest
from environments import environment_python
from gemini_server import calls, says
from project_runs import ADK_AGENT, EXACT, evaluated, write

LIBRARIES = ("pydantic", "google-genai")
VERSIONS = """
    import json
    from importlib.metadata import version
    print(json.dumps([version(name) for name in ("pydantic", "google-genai")]))
"""


@pytest.fixture
def versions(project: Path) -> list[str]:
    """The project has an environment with other libraries; their versions."""
    python = Path(environment_python("EVALTUI_OLD_ADK_PYTHON"))
    (project / ".venv").symlink_to(python.parents[1])
    command = [python, "-c", "\n".join(line.strip() for line in VERSIONS.splitlines())]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def test_the_libraries_there_are_others_than_evaltuis(versions):
    assert all(there != version(name) for there, name in zip(versions, LIBRARIES, strict=True))


def test_an_agent_runs_with_the_libraries_of_its_project(versions, project):
    agent = ADK_AGENT.replace(
        "in {sys.prefix.rpartition('/')[2]}",
        "pydantic {sys.modules['pydantic'].VERSION}, genai {sys.modules['google.genai'].__version__}",
    )
    write(project, agent, f"pydantic {versions[0]}, genai {versions[1]}", **EXACT)
    code, printed = evaluated(project)
    assert (code, "1 passed" in printed) == (0, True), printed


def test_evaltui_without_google_adk_runs_it(versions, project):
    assert versions
    write(project, ADK_AGENT, "in .venv", **EXACT)
    code, printed = evaluated(project, evaltui_python=environment_python("EVALTUI_PLAIN_PYTHON"))
    assert (code, "1 passed" in printed) == (0, True), printed


GEMINI_AGENT = """
    from google.adk.agents import LlmAgent

    def area(width: int, height: int) -> int:
        '''The area of a rectangle.'''
        return width * height

    root_agent = LlmAgent(name="geometer", model="gemini-test", instruction="Measure.", tools=[area])
"""


def test_requests_of_its_google_genai_are_recorded_and_replayed(versions, project, gemini):
    assert versions
    write(project, GEMINI_AGENT, "It is 6.", **EXACT)
    gemini.script(calls("area", {"width": 2, "height": 3}), says("It is 6."))
    code, printed = evaluated(project, "--record", "record")
    assert (code, "1 passed" in printed, len(gemini.requests)) == (0, True, 2), printed
    code, printed = evaluated(project, "--record", "replay")
    assert (code, "2 replayed" in printed, len(gemini.requests)) == (0, True, 2), printed


METRIC = """
    from google.adk.evaluation.eval_case import Invocation
    from google.adk.evaluation.eval_metrics import EvalMetric, EvalStatus
    from google.adk.evaluation.evaluator import EvaluationResult, PerInvocationResult

    def events(metric, actual, expected, scenario):
        assert isinstance(metric, EvalMetric)
        turns = [
            PerInvocationResult(actual_invocation=one, score=1.0, eval_status=EvalStatus.PASSED)
            for one in actual
            if isinstance(one, Invocation) and one.intermediate_data.invocation_events
        ]
        score = float(len(turns))
        return EvaluationResult(
            overall_score=score, overall_eval_status=EvalStatus.PASSED, per_invocation_results=turns
        )
"""


def test_a_custom_metric_gets_the_types_of_its_google_adk(versions, project, gemini):
    assert versions
    (project / "bot" / "metrics.py").write_text(textwrap.dedent(METRIC))
    code_config = {"events": {"code_config": {"name": "bot.metrics.events"}}}
    write(project, GEMINI_AGENT, "", criteria={"events": 1.0}, custom_metrics=code_config)
    gemini.script(calls("area", {"width": 2, "height": 3}), says("It is 6."))
    code, printed = evaluated(project)
    assert (code, "1 passed" in printed) == (0, True), printed
