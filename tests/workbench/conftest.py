"""Eval sets on disk, and waiting for what a run tells."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import waiting

Until = Callable[[Callable[[], object]], Awaitable[None]]


def case(eval_id: str, *turns: tuple[str, str]) -> dict[str, Any]:
    """A case of `(what the user says, which answer is expected)`."""
    conversation = [
        {
            "user_content": {"role": "user", "parts": [{"text": said}]},
            "final_response": {"role": "model", "parts": [{"text": expected}]},
            "intermediate_data": {"tool_uses": []},
        }
        for said, expected in turns
    ]
    return {"eval_id": eval_id, "conversation": conversation}


@pytest.fixture
def write_set() -> Callable[..., Path]:
    """Writes cases of one turn, id to `(said, expected)`, as an eval set file; returns its path."""

    def write(
        folder: Path, name: str = "greetings", set_id: str | None = None, **cases: tuple[str, str]
    ) -> Path:
        data = {
            "eval_set_id": set_id or name,
            "eval_cases": [case(eval_id, turn) for eval_id, turn in cases.items()],
        }
        path = folder / f"{name}.evalset.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        return path

    return write


@pytest.fixture
def until() -> Until:
    return partial(waiting.until, seconds=waiting.PATIENCE_WITH_PROCESSES)
