"""A results manager for google-adk that keeps its results among the runs of evaltui. Needs google-adk."""

from __future__ import annotations

import json
import time
from pathlib import Path

from google.adk.evaluation.eval_result import EvalCaseResult, EvalSetResult
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager

from evaltui.runs.adk_document import result_id_of
from evaltui.runs.adk_reader import keep_adk_run
from evaltui.runs.adk_results import KEPT_AS, write_adk_result
from evaltui.runs.history import run_id
from evaltui.runs.store import RunStore


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
        log = keep_adk_run(RunStore(agent_dir, self._results_dir), data)
        write_adk_result(agent_dir, result_id, json.dumps(data | {KEPT_AS: run_id(log)}, indent=2))
