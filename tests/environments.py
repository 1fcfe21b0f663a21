"""What tests need of the machine: Pythons for agents, with packages or without, and a browser.

Packages take long to install. So `.ci/run` makes the environments of `ENVIRONMENTS` beforehand and names
the Python of each in a variable; a test that needs one asks `environment_python` for it. By hand:

    python3 -m venv .venv-old-adk
    .venv-old-adk/bin/pip install 'google-adk==2.0.0' 'google-genai==1.72.0' 'pydantic==2.12.0'
    EVALTUI_OLD_ADK_PYTHON=$PWD/.venv-old-adk/bin/python python -m pytest tests/agents/test_other_adk.py

A new environment is a line in `ENVIRONMENTS`, and in `.ci/run` a line that installs it and a variable.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OLDEST = (3, 11)
# Nothing may be skipped for want of a Python or an environment.
IN_CI = bool(os.environ.get("EVALTUI_CI"))
ENVIRONMENTS = {
    "EVALTUI_PLAIN_PYTHON": "evaltui without google-adk",
    "EVALTUI_OLD_ADK_PYTHON": "google-adk with other google-genai and pydantic than evaltui's",
    "EVALTUI_FRAMEWORKS_PYTHON": "openai-agents, pydantic-ai-slim, langgraph and langchain",
}
"""The variable with the Python of each environment, and what is installed there."""


def environment_python(variable: str) -> str:
    """The Python of an environment of `.ci/run`; without it the test is skipped, and fails in CI."""
    python = os.environ.get(variable, "")
    if Path(python).is_file():
        return python
    message = f"{variable} names no Python with {ENVIRONMENTS[variable]}"
    if IN_CI:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


BROWSER = "EVALTUI_BROWSER"
"""The variable with the browser: an executable, or `none` where the machine cannot have one."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_path() -> str:
    """The Chromium of this machine; without it the test is skipped, and fails in CI unless that is said."""
    asked = os.environ.get(BROWSER, "")
    if asked == "none":
        pytest.skip(f"{BROWSER}=none")
    found = next(filter(None, map(shutil.which, [asked] if asked else _BROWSERS)), None)
    if found:
        return found
    message = f"no {asked or 'chromium'} here: apt-get install chromium, or name an executable in {BROWSER}"
    if IN_CI:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def pythons() -> list[str]:
    """Every Python here that agents can run in, of each version one; the one that runs this first."""
    found = {sys.version_info[:2]: sys.executable}
    installed = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    commands = [path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))]
    for executable in [*commands, *map(str, installed)]:
        shown = subprocess.run([executable, "-V"], capture_output=True, text=True)
        version = re.match(r"Python (\d+)\.(\d+)", shown.stdout)
        if version and (number := (int(version[1]), int(version[2]))) >= OLDEST:
            found.setdefault(number, executable)
    assert OLDEST in found or not IN_CI, f"no Python {'.'.join(map(str, OLDEST))} here"
    return list(found.values())


def make_environment(project: Path, python: str = sys.executable, libraries: Path | None = None) -> None:
    """A `.venv` in a project without anything, or with the packages that are in another folder."""
    subprocess.run([python, "-m", "venv", "--without-pip", project / ".venv"], check=True)
    if libraries:
        (packages,) = project.glob(".venv/lib/python3*/site-packages")
        (packages / "libraries.pth").write_text(f"{libraries}\n")
