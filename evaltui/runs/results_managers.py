"""Results handed to a results manager of google-adk, which keeps them as it keeps its own."""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path
from typing import Any, Protocol

from evaltui.core.compare.run_result import RunResult
from evaltui.project.folders import app_name
from evaltui.project.settings import secrets_of
from evaltui.runner.plan import RunPlan
from evaltui.runs.adk_document import AdkResult

_GCS = "gs://"
_NEEDS = "needs google-adk with Google Cloud's libraries. Run pip install 'google-adk[gcp]'"


class ResultsManager(Protocol):
    """`EvalSetResultsManager` of google-adk, as far as it is used here."""

    def save_eval_set_result(self, app_name: str, eval_set_id: str, eval_case_results: list[Any]) -> None: ...


def is_gcs(place: str | Path | None) -> bool:
    """Whether results are meant to go to Google Cloud Storage."""
    return isinstance(place, str) and place.startswith(_GCS)


def gcs_manager(uri: str) -> ResultsManager:
    """google-adk's manager for a bucket, `gs://BUCKET`.

    Raises ModuleNotFoundError without its libraries, ValueError for another form and for a bucket that does
    not exist, and what Google's client raises where it finds no project or credentials.
    """
    bucket, _, inner = uri.removeprefix(_GCS).partition("/")
    if not bucket or inner:
        raise ValueError(
            f"results_dir: {uri!r} is not gs://BUCKET; google-adk chooses the folders in a bucket"
        )
    try:
        module: Any = importlib.import_module("google.adk.evaluation.gcs_eval_set_results_manager")
    except ImportError as error:
        raise ModuleNotFoundError(f"results_dir {uri} {_NEEDS}", name=error.name) from error
    # As ADK's own commands do it.
    manager: ResultsManager = module.GcsEvalSetResultsManager(
        bucket_name=bucket, project=os.environ.get("GOOGLE_CLOUD_PROJECT")
    )
    return manager


def save_results(manager: ResultsManager, plan: RunPlan, result: RunResult, app: str | None = None) -> None:
    """Hand over the results of a run, set by set.

    `app` is the app's name, None for that of the agent's folder. Raises what the manager raises.
    """
    models: Any = importlib.import_module("google.adk.evaluation.eval_result")
    name = app or app_name(plan.agent_dir)
    secrets = secrets_of(plan.agent_dir)
    for eval_set in plan.sets:
        results = AdkResult(eval_set, secrets)
        for case in result.cases:
            if case.id.path == eval_set.case_path:
                results.add(case)
        _, text = results.document(name, time.time())
        saved = models.EvalSetResult.model_validate_json(text)
        manager.save_eval_set_result(name, eval_set.eval_set_id, saved.eval_case_results)
