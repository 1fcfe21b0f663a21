"""The results of a set as google-adk's `EvalSetResult`, for `adk web` and other readers.

The format is that of google-adk 2.13 without fields that its reader fills in. Of reasons, it has only
rationales of judges; the other reports have all of them.
"""

from __future__ import annotations

import importlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from evaltui.core.compare.judged import Finding, findings, findings_in, was_judged
from evaltui.core.compare.run_result import RunResult
from evaltui.core.metrics.registry import info_of
from evaltui.core.model.base_model import dump
from evaltui.core.model.eval_set import DEFAULT_USER_ID, EvalCase, Invocation
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import CaseResult, MetricResult, RepeatResult, Status
from evaltui.core.secrets import Secrets
from evaltui.project.folders import app_name
from evaltui.project.settings import secrets_of
from evaltui.runner.plan import RunPlan, SetPlan
from evaltui.runs.adk_results import EXPLANATION, SESSION_PREFIX
from evaltui.text.values import valid_json_text

_PASSED, _FAILED, _NOT_EVALUATED, _INFORMATIONAL = 1, 2, 3, 4
# As in ADK, a run that raised failed, and a metric that raised was not evaluated.
_RUN_STATUSES = {Status.PASSED: _PASSED, Status.FAILED: _FAILED, Status.ERROR: _FAILED}
_METRIC_STATUSES = {Status.PASSED: _PASSED, Status.FAILED: _FAILED, Status.INFORMATIONAL: _INFORMATIONAL}
# What ADK refuses in the id of a result, and what no file name should have.
_REFUSED_IN_IDS = re.compile(r"[/\\\x00-\x1f\x7f\ud800-\udfff]")


def result_id_of(app_name: str, eval_set_id: str, created: float) -> str:
    """The id of a result as in ADK, without characters that file names do not allow."""
    return _REFUSED_IN_IDS.sub("_", f"{app_name}_{eval_set_id}_{created}")


def adk_result(
    eval_set: SetPlan, cases: Iterable[CaseResult], app_name: str, created: float, secrets: Secrets
) -> tuple[str, Iterator[str]]:
    """The id of the results of a set, and their JSON text in pieces; each repeat of a case is an entry, and a
    case that did not run is one that was not evaluated.

    `created` is in seconds since 1970. The id is ADK's `{app}_{set}_{time}`, with replacements for characters
    that a file name does not allow. The session ids are not known to any server, because sessions end with
    the agent's process. Secrets are masked in texts, not in ids of sets and cases.
    """
    result_id = result_id_of(app_name, eval_set.eval_set_id, created)
    head = {
        "eval_set_result_id": result_id,
        "eval_set_result_name": result_id,
        "eval_set_id": eval_set.eval_set_id,
    }
    return result_id, _pieces(valid_json_text(head), eval_set, cases, created, secrets)


def _pieces(
    head: str, eval_set: SetPlan, cases: Iterable[CaseResult], created: float, secrets: Secrets
) -> Iterator[str]:
    numbers = {eval_id: number for number, eval_id in enumerate(eval_set.eval_ids)}
    config = eval_set.config.scoring()
    criteria: Json = config.get("criteria", {}) | config.get("evaltui", {}).get("criteria", {})
    yield f'{head[:-1]}, "eval_case_results": ['
    number, ids = 0, dict[str, str]()

    def written(data: Json) -> str:
        return valid_json_text(data | ids)

    repeats = ((case.eval_id, case.repeats) for case in cases)
    for eval_id, repeats_of_case in _with_cases_not_run(repeats, eval_set.eval_ids):
        expected = eval_set.cases[numbers[eval_id]] if eval_id in numbers else None
        ids = {"eval_set_id": eval_set.eval_set_id, "eval_id": eval_id}
        # Else whoever reads the file takes the others for all.
        for repeat in repeats_of_case or (RepeatResult(Status.NOT_EVALUATED),):
            number += 1
            session = {"session_id": f"{SESSION_PREFIX}{created}-{number}"}
            entry = valid_json_text(ids | _run(criteria, expected, repeat) | session)
            before = ", " if number > 1 else ""
            yield before + secrets.mask_json(entry, written)
    yield f'], "creation_timestamp": {created}}}'


def _with_cases_not_run(
    repeats: Iterable[tuple[str, Sequence[RepeatResult]]], selected: Iterable[str]
) -> Iterator[tuple[str, Sequence[RepeatResult]]]:
    not_run = dict.fromkeys(selected)
    for eval_id, of_case in repeats:
        not_run.pop(eval_id, None)
        yield eval_id, of_case
    yield from ((eval_id, ()) for eval_id in not_run)


def _run(criteria: Json, case: EvalCase | None, repeat: RepeatResult) -> Json:
    return {
        "final_eval_status": _RUN_STATUSES.get(repeat.status, _NOT_EVALUATED),
        "overall_eval_metric_results": [
            _metric(criteria, metric, metric.score, metric.status)
            | _details(metric)
            | _overall_rubrics(metric)
            for metric in repeat.metrics
        ],
        "eval_metric_result_per_invocation": list(_turns(criteria, case, repeat)),
        "user_id": repeat.user_id or _user(case),
    }


def _user(case: EvalCase | None) -> str:
    session = case.session_input if case else None
    return session.user_id if session and session.user_id else DEFAULT_USER_ID


def _turns(criteria: Json, case: EvalCase | None, repeat: RepeatResult) -> Iterator[Json]:
    expected: list[Invocation] = (case.conversation or []) if case else []
    for index, actual in enumerate(repeat.actual):
        turn: Json = {"actual_invocation": dump(actual)}
        own = expected[index].rubrics if index < len(expected) else None
        # ADK copies them there, and its readers look for their texts nowhere else.
        if rubrics := [*((case.rubrics if case else None) or []), *(own or [])]:
            turn["actual_invocation"]["rubrics"] = [dump(rubric) for rubric in rubrics]
        if index < len(expected):
            turn["expected_invocation"] = dump(expected[index])
        turn["eval_metric_results"] = [
            _metric(criteria, metric, scored.score, scored.status) | _rubrics(findings_in(metric, index))
            for metric in repeat.metrics
            if len(metric.per_invocation) == len(repeat.actual)
            for scored in [metric.per_invocation[index]]
        ]
        yield turn


def _metric(criteria: Json, metric: MetricResult, score: float | None, status: Status) -> Json:
    entry: Json = {"metric_name": metric.name, "eval_status": _METRIC_STATUSES.get(status, _NOT_EVALUATED)}
    if score is not None:
        entry["score"] = score
    if metric.threshold is not None:
        entry["threshold"] = metric.threshold
    criterion = criteria.get(metric.name)
    if isinstance(criterion, dict):
        entry["criterion"] = criterion
    return entry


def _details(metric: MetricResult) -> Json:
    details = {name: value for name, value in metric.details.items() if value is not None}
    key = info_of(metric.name).adk_details
    return {"details": {key: details}} if details and key else {}


def _rubrics(findings: Sequence[Finding]) -> Json:
    scores = [
        _rubric_score(_rubric_id(finding), finding.judgement.score, finding.why) for finding in findings
    ]
    return {"details": {"rubric_scores": scores}} if scores else {}


def _overall_rubrics(metric: MetricResult) -> Json:
    """The mean score of each rubric over the turns, with the rationales of the turns, as in ADK."""
    if not was_judged(metric):
        return {}
    by_id: dict[str, list[Finding]] = {}
    for finding in findings(metric):
        by_id.setdefault(_rubric_id(finding), []).append(finding)
    scores = []
    for rubric_id, of_rubric in by_id.items():
        judged = (finding.judgement.score for finding in of_rubric)
        rubric_scores = [score for score in judged if score is not None]
        mean = sum(rubric_scores) / len(rubric_scores) if rubric_scores else None
        scores.append(_rubric_score(rubric_id, mean, _reasons(of_rubric)))
    return {"details": {"rubric_scores": scores}}


def _reasons(findings: Sequence[Finding]) -> str:
    if len(findings) == 1:
        return findings[0].why
    return "\n".join(f"turn {finding.turn + 1}, {finding.word}: {finding.why}" for finding in findings)


def _rubric_id(finding: Finding) -> str:
    own = finding.judgement.subject if finding.subject == "sentence" else ""
    return finding.judgement.id or own or EXPLANATION


def _rubric_score(rubric_id: str, score: float | None, rationale: str) -> Json:
    entry: Json = {"rubric_id": rubric_id}
    if rationale:
        entry["rationale"] = rationale
    return entry if score is None else entry | {"score": score}


_GCS = "gs://"
_MISSING_LIBRARIES = "needs google-adk with Google Cloud's libraries. Run pip install 'google-adk[gcp]'"


class ResultsManager(Protocol):
    """The part of google-adk's `EvalSetResultsManager` that is used here."""

    def save_eval_set_result(self, app_name: str, eval_set_id: str, eval_case_results: list[Any]) -> None: ...


def is_gcs(place: str | Path | None) -> bool:
    """Whether a path of results is in Google Cloud Storage."""
    return isinstance(place, str) and place.startswith(_GCS)


def gcs_manager(uri: str) -> ResultsManager:
    """google-adk's results manager for a bucket, `gs://BUCKET`.

    Raises ModuleNotFoundError without its libraries, ValueError for an invalid path or a missing bucket, and
    the errors of Google's client for a missing project or credentials.
    """
    bucket, _, inner = uri.removeprefix(_GCS).partition("/")
    if not bucket or inner:
        raise ValueError(
            f"results_dir: {uri!r} is not gs://BUCKET; google-adk chooses the folders in a bucket"
        )
    try:
        module: Any = importlib.import_module("google.adk.evaluation.gcs_eval_set_results_manager")
    except ImportError as error:
        raise ModuleNotFoundError(f"results_dir {uri} {_MISSING_LIBRARIES}", name=error.name) from error
    # As ADK's own commands do it.
    manager: ResultsManager = module.GcsEvalSetResultsManager(
        bucket_name=bucket, project=os.environ.get("GOOGLE_CLOUD_PROJECT")
    )
    return manager


def save_results(manager: ResultsManager, plan: RunPlan, result: RunResult, app: str | None = None) -> None:
    """Saves the results of a run with a results manager, set by set.

    `app` is the name of the app, None for that of the agent's folder. Raises the errors of the manager.
    """
    models: Any = importlib.import_module("google.adk.evaluation.eval_result")
    name = app or app_name(plan.agent_dir)
    secrets = secrets_of(plan.agent_dir)
    for eval_set in plan.sets:
        cases = (case for case in result.cases if case.id.path == eval_set.case_path)
        _, pieces = adk_result(eval_set, cases, name, time.time(), secrets)
        saved = models.EvalSetResult.model_validate_json("".join(pieces))
        manager.save_eval_set_result(name, eval_set.eval_set_id, saved.eval_case_results)
