"""A google-adk agent in an environment with another pydantic and google-genai than evaltui's."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
from environments import environment_python
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
