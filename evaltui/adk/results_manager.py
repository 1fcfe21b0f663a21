"""A results manager for google-adk that keeps its results among the runs of evaltui. Needs google-adk."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from google.adk.evaluation.eval_result import EvalCaseResult, EvalSetResult
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import worst_status
from evaltui.project.agent_files import files_of
from evaltui.project.run_settings import RunSettings
from evaltui.project.workspace import open_workspace
from evaltui.runs.adk_document import result_id_of
from evaltui.runs.adk_results import RUN_ID_KEY, add_adk_case, run_from_adk, write_adk_result
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import begin_run
from evaltui.runs.store import RunStore, run_id


class EvaltuiResultsManager(LocalEvalSetResultsManager):
    """Keeps results where google-adk and `adk web` look for them, and as runs that the workbench opens.

    Runs are in `.evaltui/runs` of the folder that an app has in `agents_dir`, or in `results_dir` as
    `--results-dir` has it.
    """

    def __init__(self, agents_dir: str | Path, results_dir: str | Path | None = None) -> None:
        super().__init__(agents_dir=str(agents_dir))
        self._folder = Path(agents_dir)
        self._results_dir = None if results_dir is None else Path(results_dir).absolute()

    def save_eval_set_result(
        self, app_name: str, eval_set_id: str, eval_case_results: list[EvalCaseResult]
    ) -> None:
        """Raises OSError where a folder cannot be written, ValueError for an app that can have none."""
        if not app_name or app_name in (".", "..") or "/" in app_name or "\\" in app_name:
            raise ValueError(f"app_name {app_name!r} is not the name of a folder in {self._folder}")
        agent_dir = self._folder / app_name
        agent_dir.mkdir(parents=True, exist_ok=True)
        created = time.time()
        result_id = result_id_of(app_name, eval_set_id, created)
        result = EvalSetResult(
            eval_set_result_id=result_id,
            eval_set_result_name=result_id,
            eval_set_id=eval_set_id,
            eval_case_results=eval_case_results,
            creation_timestamp=created,
        )
        data = json.loads(result.model_dump_json())
        log = _keep(RunStore(agent_dir, self._results_dir), data)
        write_adk_result(agent_dir, result_id, json.dumps(data | {RUN_ID_KEY: run_id(log)}, indent=2))


def _keep(store: RunStore, data: Json) -> Path:
    """Write an `EvalSetResult`, as JSON data, as the file of a run. Raises OSError."""
    run = run_from_adk(data)
    path, of_set = _set_of(store.agent_dir, run.eval_set_id)
    places = {eval_id: number for number, eval_id in enumerate(of_set)}
    # google-adk has them in the order in which they came to their end.
    in_order = sorted(run.cases, key=lambda case: places.get(case.eval_id, len(places)))
    cases = [replace(case, path="" if path == run.eval_set_id else path) for case in in_order]
    ids = tuple(case.eval_id for case in cases)
    selected = SelectedSet(path, run.eval_set_id, ids, {"criteria": _criteria(data)}, ids == of_set)
    header = RunHeader(
        sets=(selected,),
        settings=RunSettings(
            runs=max((len(case.repeats) for case in cases), default=1), parallel=1, adk_verdicts=True
        ),
        started=run.started if run.created else datetime.now(UTC),
        agent_dir=str(store.agent_dir),
        of_adk=True,
        files=files_of(store.agent_dir),
    )
    writer = begin_run(store, header)
    for case in cases:
        add_adk_case(writer, CaseId(path, case.eval_id), case)
    writer.close(Ending(worst_status(case.status for case in cases)))
    return writer.path


def _set_of(agent_dir: Path, eval_set_id: str) -> tuple[str, tuple[str, ...]]:
    """The path of a set's cases in `CaseId`, and their ids; its own id and none where no file is that set."""
    matches = [eval_set for eval_set in open_workspace(agent_dir).sets if eval_set.eval_set_id == eval_set_id]
    if len(matches) != 1:
        return eval_set_id, ()
    return matches[0].case_path, tuple(case.eval_id for case in matches[0].cases)


def _criteria(data: Json) -> Json:
    """The criteria of the cases that the results hold: a criterion or a threshold by metric."""
    criteria: dict[str, Any] = {}
    for case in data.get("eval_case_results", ()):
        for metric in case.get("overall_eval_metric_results", ()):
            if metric.get("threshold") is not None:
                criteria[metric["metric_name"]] = metric.get("criterion") or metric["threshold"]
    return criteria
