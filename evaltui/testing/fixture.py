"""What tests written in Python ask for: results of cases, and runs of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import RunResult
from evaltui.core.model.problems import EvalSetError
from evaltui.files.workspace import SelectionError, open_workspace, select
from evaltui.runner.evaluation import evaluate
from evaltui.testing.case_runs import CaseRuns, CaseToTest

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalSet


class Evaluator:
    """Runs agents against eval sets with the options of the pytest session; paths are seen from `folder`."""

    def __init__(self, runs: CaseRuns, folder: Path) -> None:
        self._runs = runs
        self._folder = folder

    async def run(
        self,
        agent: str | Path,
        eval_sets: str | Path | EvalSet | Sequence[str | Path | EvalSet],
        config: EvalConfig | None = None,
        **options: Any,
    ) -> RunResult:
        """As `evaltui.evaluate`, whose options go before those of pytest."""
        given = (
            [eval_sets]
            if isinstance(eval_sets, str | Path) or not isinstance(eval_sets, Sequence)
            else eval_sets
        )
        sets = [self._folder / one if isinstance(one, str | Path) else one for one in given]
        settings = self._runs.settings_of(self._folder / agent) | options
        return await evaluate(self._folder / agent, sets, config, **settings)

    def run_sync(self, *given: Any, **options: Any) -> RunResult:
        """As `run`, for tests that are no coroutines."""
        # In a thread: a loop may run in that of the test.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self.run(*given, **options)).result()


def cases_of_marker(test: pytest.Item | Any, runs: CaseRuns) -> list[CaseToTest]:
    """The cases of the eval sets that the marker `evaltui` of a test names. Raises pytest.UsageError."""
    marker = test.get_closest_marker("evaltui")
    if marker is None or "agent" not in marker.kwargs:
        raise pytest.UsageError(
            f"{test.nodeid}: evaltui_case needs a marker: @pytest.mark.evaltui(agent=DIR, sets=[…])"
        )
    folder = test.path.parent
    agent_dir = folder / marker.kwargs["agent"]
    config = marker.kwargs.get("config")
    named = (
        [marker.kwargs["sets"]]
        if isinstance(marker.kwargs.get("sets"), str)
        else marker.kwargs.get("sets", ())
    )
    try:
        chosen = select(open_workspace(agent_dir), [str(_set(folder, one)) for one in named])
    except (SelectionError, EvalSetError) as error:
        raise pytest.UsageError(f"{test.nodeid}: {error}") from error
    scored_by = folder / config if config else None
    return [
        CaseToTest(CaseId(one.case_path, case.eval_id), one.path, agent_dir, len(one.cases), scored_by)
        for one, eval_ids in chosen
        for case in one.cases
        if eval_ids is None or case.eval_id in eval_ids
    ]


def _set(folder: Path, name: str) -> str | Path:
    """A file beside the test, or the id of a set."""
    return folder / name if (folder / name).exists() else name
