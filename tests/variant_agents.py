"""Agents and sets that variants are run on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from eval_data import make_case, make_turn, write_eval_set

NATIVE = """
    from evaltui import Agent
    root_agent = Agent(name="greeter", model="gemini-a", instruction="Greet.")
"""


def write_cases(folder: Path, expected: str, eval_ids: Iterable[str] = ("one",)) -> Path:
    """A set `greetings` whose cases say their id and expect an answer, in which `{}` stands for it."""
    cases = [
        make_case(eval_id, make_turn(eval_id, expected.format(eval_id), intermediate_data={}))
        for eval_id in eval_ids
    ]
    return write_eval_set(folder, "greetings", *cases)
