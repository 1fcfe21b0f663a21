"""Eval sets on disk, and waiting for what a run tells."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import waiting
from eval_data import make_case, make_set, make_turn

from evaltui.workbench.workbench import Workbench

Until = Callable[[Callable[[], object]], Awaitable[None]]


def case(eval_id: str, *turns: tuple[str, str]) -> dict[str, Any]:
    """A case of `(what the user says, which answer is expected)`."""
    return make_case(eval_id, *(make_turn(said, expected, []) for said, expected in turns))


@pytest.fixture
def write_set() -> Callable[..., Path]:
    """Writes cases of one turn, id to `(said, expected)`, as an eval set file; returns its path."""

    def write(
        folder: Path, name: str = "greetings", set_id: str | None = None, **cases: tuple[str, str]
    ) -> Path:
        data = make_set(set_id or name, *(case(eval_id, turn) for eval_id, turn in cases.items()))
        path = folder / f"{name}.evalset.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        return path

    return write


@pytest.fixture
def until() -> Until:
    return partial(waiting.until, seconds=waiting.PATIENCE_WITH_PROCESSES)


@pytest.fixture
async def open_workbench() -> AsyncIterator[Callable[..., Awaitable[Workbench]]]:
    """Opens a workbench, given what it takes, and closes it when the test ends."""
    workbenches = []

    async def open_until_the_end(*given: Any, **options: Any) -> Workbench:
        workbench = Workbench(*given, **options)
        workbenches.append(workbench)
        await workbench.open()
        return workbench

    yield open_until_the_end
    for workbench in workbenches:
        await workbench.close()
