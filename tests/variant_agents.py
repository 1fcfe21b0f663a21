"""Agents and sets that variants are run on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

NATIVE = """
    from evaltui import Agent
    root_agent = Agent(name="greeter", model="gemini-a", instruction="Greet.")
"""


def write_cases(folder: Path, expected: str, eval_ids: Iterable[str] = ("one",)) -> Path:
    """A set `greetings` whose cases say their id and expect an answer, in which `{}` stands for it."""
    cases = [
        {
            "eval_id": eval_id,
            "conversation": [
                {
                    "user_content": {"role": "user", "parts": [{"text": eval_id}]},
                    "final_response": {"role": "model", "parts": [{"text": expected.format(eval_id)}]},
                    "intermediate_data": {},
                }
            ],
        }
        for eval_id in eval_ids
    ]
    path = folder / "greetings.evalset.json"
    path.write_text(json.dumps({"eval_set_id": "greetings", "eval_cases": cases}))
    return path
