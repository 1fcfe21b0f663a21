"""What is known of an agent that is not open: its source, its eval sets, its Python, its last run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from evaltui.files.agent_address import AgentAddress
from evaltui.files.agent_source import AgentFacts, agent_facts
from evaltui.files.interpreters import OWN, InterpreterError, find_interpreter, noted_version
from evaltui.files.run_settings import SettingsError, run_settings
from evaltui.files.workspace import open_workspace
from evaltui.runs.listing import RunRow, newest_run
from evaltui.runs.run_kind import RunKind
from evaltui.runs.store import RunStore


class SetPreview(NamedTuple):
    """An eval set, not validated."""

    eval_set_id: str
    cases: int
    problem: str
    """Why its file cannot be read; "" where it can."""


@dataclass(frozen=True)
class AgentPreview:
    """None for what is not read yet."""

    facts: AgentFacts | None = None
    sets: tuple[SetPreview, ...] | None = None
    python: str | None = None
    """Such as `Python 3.12 (.venv)`; its path where no file has its version."""
    python_problem: str = ""
    """Why there is no Python for it; "" where there is one."""
    last_run: RunRow | None = None
    """None also where there is none."""
    is_complete: bool = False


async def read_preview(agent_dir: Path) -> AsyncIterator[AgentPreview]:
    """What is known of an agent, more each time; nothing of it is imported."""
    preview = AgentPreview()
    for read in (_with_source, _with_sets, _with_python, _with_last_run):
        preview = await asyncio.to_thread(read, preview, agent_dir)
        yield preview


def _with_source(preview: AgentPreview, agent_dir: Path) -> AgentPreview:
    facts = agent_facts(agent_dir) if agent_dir.exists() else AgentFacts(problem="No such file or folder")
    return replace(preview, facts=facts)


def _with_sets(preview: AgentPreview, agent_dir: Path) -> AgentPreview:
    sets = (
        SetPreview(
            one.eval_set_id,
            len(one.cases),
            "" if one.format else "; ".join(problem.message for problem in one.problems[:1]),
        )
        for one in open_workspace(agent_dir).sets
    )
    return replace(preview, sets=tuple(sets))


def _with_python(preview: AgentPreview, agent_dir: Path) -> AgentPreview:
    try:
        interpreter = find_interpreter(agent_dir)
    except (InterpreterError, SettingsError) as error:
        return replace(preview, python_problem=str(error))
    # An agent that is not open has its Python not started.
    version = sys.version_info[:2] if interpreter == OWN else noted_version(interpreter.path)
    shown = f"Python {'.'.join(map(str, version))}" if version else str(interpreter.path)
    return replace(preview, python=f"{shown} ({interpreter.reason or 'of evaltui'})")


def _with_last_run(preview: AgentPreview, agent_dir: Path) -> AgentPreview:
    try:
        store = RunStore.of(agent_dir, run_settings(agent_dir))
    except SettingsError:
        return replace(preview, is_complete=True)
    return replace(preview, last_run=newest_run(store, RunKind.of(AgentAddress(agent_dir))), is_complete=True)
