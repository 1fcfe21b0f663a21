"""The fixture and the marker for tests written in Python: results of cases, and runs of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaltui.commands.output import UsageError, require_agent
from evaltui.core.compare.run_result import RunResult
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.project.remote_address import is_url
from evaltui.project.workspace import open_workspace, select
from evaltui.runs.evaluation import evaluate
from evaltui.runs.given import ConfigArgument, EvalSetsArgument
from evaltui.testing.case_runs import CaseRuns, CaseToTest


class Evaluator:
    """Runs agents against eval sets with the options of the pytest session; paths are seen from `folder`."""

    def __init__(self, runs: CaseRuns, folder: Path) -> None:
        self._runs = runs
        self._folder = folder

    async def run(
        self,
        agent: Any,
        eval_sets: EvalSetsArgument = None,
        config: ConfigArgument = None,
        **options: Any,
    ) -> RunResult:
        """Does what `evaltui.evaluate` does; its arguments go before the options of pytest.

        With `run_sync`, an agent object runs in another thread than the test, in one event loop for all.
        """
        if isinstance(agent, str | Path):
            agent = place = self._seen(agent)
            settings = self._runs.settings_of(Path(place))
            if not is_url(str(place)):
                settings["python"] = self._runs.python_of(Path(place))
        else:
            settings = self._runs.settings_of(self._folder) | {"workers": None, "home": self._folder}
        config = self._runs.config_file if config is None else self._seen(config)
        if isinstance(eval_sets, Sequence) and not isinstance(eval_sets, str):
            sets: EvalSetsArgument = [self._seen(eval_set) for eval_set in eval_sets]
        else:
            sets = self._seen(eval_sets)
        return await evaluate(agent, sets, config, **settings | options)

    def _seen(self, value: Any) -> Any:
        """A path as it is seen from the folder; a dotted name, an id, or an object, as it is."""
        if isinstance(value, str | Path) and (isinstance(value, Path) or (self._folder / value).exists()):
            return self._folder / value
        return value

    def run_sync(self, *args: Any, **options: Any) -> RunResult:
        """Does what `run` does, for tests that are no coroutines."""
        return asyncio.run_coroutine_threadsafe(self.run(*args, **options), self._runs.loop).result()


def cases_of_marker(test: pytest.Item | Any, runs: CaseRuns) -> list[CaseToTest]:
    """The cases of the eval sets that the marker `evaltui` of a test names. Raises CollectError."""
    marker = test.get_closest_marker("evaltui")
    folder = test.path.parent
    try:
        if marker is None:
            raise UsageError("evaltui_case needs a marker: @pytest.mark.evaltui(agent=DIR, sets=[…])")
        if (count := [own.name for own in test.own_markers].count("evaltui")) > 1:
            raise UsageError(f"has {count} markers evaltui, of which only one counts. Write a test for each")
        agent, config, *sets = _arguments(*marker.args, **marker.kwargs)
        agent_dir = folder / agent
        scored_by = folder / config if config else None
        if scored_by is not None and not scored_by.is_file():
            raise UsageError(f"config: {scored_by} does not exist")
        require_agent(agent_dir)
        workspace = open_workspace(agent_dir, config=scored_by or runs.config_file)
        chosen = select(workspace, [str(_set(folder, eval_set)) for eval_set in sets])
        if errors := [error for eval_set, _ in chosen for error in eval_set.errors]:
            raise EvalSetError(errors)
    except (UsageError, SelectionError, EvalSetError) as error:
        # Of this error pytest shows the text alone, not where in here it was raised.
        raise pytest.Collector.CollectError(f"{test.nodeid}: {error}") from error
    except TypeError as error:
        wrong = str(error).removeprefix("_arguments() ")
        raise pytest.Collector.CollectError(f"{test.nodeid}: marker evaltui: {wrong}") from error
    return [
        CaseToTest(
            CaseId(eval_set.case_path, case.eval_id),
            eval_set.path,
            agent_dir,
            len(eval_set.cases),
            scored_by,
            (eval_set.tags or {}).get(case.eval_id, ()),
        )
        for eval_set, eval_ids in chosen
        for case in eval_set.cases
        if eval_ids is None or case.eval_id in eval_ids
    ]


def _arguments(agent: object, sets: object = (), config: object = None) -> tuple[str | Path, ...]:
    """The agent of the marker `evaltui`, its config, "" for none, and its sets. Raises TypeError, as a call
    with wrong arguments does."""
    named = (sets,) if isinstance(sets, str | Path) else sets
    if not isinstance(agent, str | Path):
        raise TypeError(f"agent is {agent!r}, expected a folder")
    if not isinstance(named, list | tuple) or not all(isinstance(name, str | Path) for name in named):
        raise TypeError(f"sets is {sets!r}, expected files or set ids")
    if not isinstance(config, str | Path | None):
        raise TypeError(f"config is {config!r}, expected a file")
    return agent, config or "", *named


def _set(folder: Path, name: str | Path) -> str | Path:
    """A file beside the test, or the id of a set."""
    return folder / name if (folder / name).exists() else name
