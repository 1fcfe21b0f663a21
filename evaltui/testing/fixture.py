"""What tests written in Python ask for: results of cases, and runs of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import RunResult
from evaltui.core.model.problems import EvalSetError
from evaltui.files.workspace import SelectionError, open_workspace, select
from evaltui.runs.evaluation import evaluate
from evaltui.testing.case_runs import CaseRuns, CaseToTest

if TYPE_CHECKING:
    from evaltui.runs.given import ConfigGiven, EvalSetsGiven


class Evaluator:
    """Runs agents against eval sets with the options of the pytest session; paths are seen from `folder`."""

    def __init__(self, runs: CaseRuns, folder: Path) -> None:
        self._runs = runs
        self._folder = folder

    async def run(
        self,
        agent: Any,
        eval_sets: EvalSetsGiven = None,
        config: ConfigGiven = None,
        **options: Any,
    ) -> RunResult:
        """As `evaltui.evaluate`, whose options go before those of pytest.

        With `run_sync`, an agent object runs in another thread than the test, in one event loop for all.
        """
        if isinstance(agent, str | Path):
            agent = place = self._seen(agent)
            settings = self._runs.settings_of(Path(place))
        else:
            settings = self._runs.settings_of(self._folder) | {"workers": None, "home": self._folder}
        if isinstance(eval_sets, Sequence) and not isinstance(eval_sets, str):
            sets: EvalSetsGiven = [self._seen(one) for one in eval_sets]
        else:
            sets = self._seen(eval_sets)
        return await evaluate(agent, sets, self._seen(config), **settings | options)

    def _seen(self, given: Any) -> Any:
        """A path as it is seen from the folder; a dotted name, an id, or an object, as it is."""
        if isinstance(given, str | Path) and (isinstance(given, Path) or (self._folder / given).exists()):
            return self._folder / given
        return given

    def run_sync(self, *given: Any, **options: Any) -> RunResult:
        """As `run`, for tests that are no coroutines."""
        return asyncio.run_coroutine_threadsafe(self.run(*given, **options), self._runs.loop).result()


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
