"""An agent finds the environment, the working directory and the modules that it finds in `adk web`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.project.layouts import eval_set, write

PROBE = """
import json, os, sys
from pathlib import Path
names = ("NEAR", "FAR", "SHELL", "JOINED", "EMPTY")
told = {"cwd": os.getcwd(), "path": sys.path[0], "name": __name__}
told |= {name: os.environ.get(name) for name in names}
Path(os.environ["PROBE"]).write_text(json.dumps(told))

def root_agent(message, session):
    return "hello"
"""
ADK_PROBE = (
    PROBE.partition("\ndef root_agent")[0]
    + """
from google.adk.agents import BaseAgent
from google.adk.events import Event
from google.genai import types

class Greeter(BaseAgent):
    async def _run_async_impl(self, ctx):
        yield Event(author=self.name, content=types.ModelContent("hello"))

root_agent = Greeter(name="probe")
"""
)
NEAR = "NEAR=near\nSHELL=file\nJOINED=${SHELL}-${NEAR}\nEMPTY=\n"
FAR = "NEAR=far\nFAR=far\n"


def project(root: Path, probe: str) -> Path:
    """A project with an agent in `src/agents/probe`; returns the folder of its agents."""
    write(root / "pyproject.toml")
    write(root / "src" / "agents" / "probe" / "__init__.py", "from . import agent\n")
    write(root / "src" / "agents" / "probe" / "agent.py", probe)
    write(root / "src" / "agents" / "probe" / "probes.evalset.json", eval_set("probes"))
    return root / "src" / "agents"


def told(root: Path, *command: str, **environ: str) -> dict[str, Any]:
    """What the agent writes down when it is imported by a command in a folder beside it."""
    out = root / "told.json"
    out.unlink(missing_ok=True)
    (root / "here").mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, *command],
        cwd=root / "here",
        env={**os.environ, "PROBE": str(out), **environ},
        input="exit\n",
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def run_by_evaltui(root: Path, **environ: str) -> dict[str, Any]:
    return told(root, "-m", "evaltui", "run", "../src/agents/probe", **environ)


def test_the_nearest_env_file_counts_alone_and_what_is_set_stays(tmp_path):
    agents = project(tmp_path, PROBE)
    write(tmp_path / ".env", FAR)
    write(agents / ".env", NEAR)
    found = run_by_evaltui(tmp_path, SHELL="shell")
    assert found == {
        "cwd": str(tmp_path / "here"),
        "path": str(agents),
        "name": "probe.agent",
        "NEAR": "near",
        "FAR": None,
        "SHELL": "shell",
        # Within the file its own values count.
        "JOINED": "file-near",
        "EMPTY": "",
    }


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("places", "environ"),
    [
        ([], {}),
        (["."], {"SHELL": "shell"}),
        (["src/agents"], {}),
        (["src/agents/probe"], {"SHELL": "shell"}),
        (["src/agents/probe"], {"ADK_DISABLE_LOAD_DOTENV": "yes"}),
        ([".", "src/agents"], {"SHELL": "shell"}),
        (["here"], {}),
    ],
)
def test_it_is_as_in_adk(places, environ, tmp_path):
    pytest.importorskip("google.adk")
    project(tmp_path, ADK_PROBE)
    for number, place in enumerate(places):
        write(tmp_path / place / ".env", NEAR if number or len(places) == 1 else FAR)
    by_adk = told(tmp_path, "-m", "google.adk.cli", "run", "../src/agents/probe", **environ)
    assert run_by_evaltui(tmp_path, **environ) == by_adk
