"""A project with an agent in a folder `bot`, and `evaltui run` of it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from eval_data import make_case, make_turn, write_eval_set

import evaltui

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
EXACT = {"criteria": {"response_match_score": 1.0}}


def write(project: Path, agent: str, response: str, **config: object) -> None:
    (project / "bot" / "agent.py").write_text(textwrap.dedent(agent))
    write_eval_set(project / "bot", "a", make_case("one", make_turn("hello", response)))
    (project / "bot" / "test_config.json").write_text(json.dumps(config))


def evaluated(project: Path, *options: str, evaltui_python: str = sys.executable) -> tuple[int, str]:
    """The exit code of `evaltui run`, and what it prints."""
    command = [evaltui_python, "-m", "evaltui", "run", str(project / "bot"), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(evaltui.__file__).parents[1])
    return done.returncode, done.stdout + done.stderr
