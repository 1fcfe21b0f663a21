"""The results of google-adk as results of ours.

The shape is `EvalSetResult` of google-adk 1.4 to 2.13, in snake_case or camelCase. Read leniently: files of
older versions have keys that the models of newer ones refuse.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evaltui.core.compare.diff import expectation_of, turn_result
from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.compare.run_summary import summarize
from evaltui.core.conversation.replay import events_of_invocation
from evaltui.core.metrics.registry import info_of
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import Invocation, full_text, scored_text, unscored_texts
from evaltui.core.model.events import Event
from evaltui.core.model.json_values import spelt
from evaltui.core.model.judgement import Judgement
from evaltui.core.model.outcome import (
    CaseResult,
    ErrorInfo,
    Expectation,
    InvocationScore,
    MetricResult,
    RepeatResult,
    Status,
    TurnResult,
    worst_status,
)
from evaltui.project.agent_files import files_of
from evaltui.project.run_settings import RunSettings
from evaltui.project.workspace import open_workspace
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter, begin_run
from evaltui.runs.store import RunStore

Json = Mapping[str, Any]

_STATUSES = {1: Status.PASSED, 2: Status.FAILED, 3: Status.NOT_EVALUATED, 4: Status.INFORMATIONAL}
_ANSWER = "response_match_score"
# The id of what a judge says of an answer as a whole.
EXPLANATION = "explanation"
# Large, of no use here, and often in a shape that only the version that wrote it knows.
_LEFT_OUT = ("app_details", "appDetails", "rubrics")


@dataclass(frozen=True)
class AdkRun:
    """An `EvalSetResult`; `created` is seconds since 1970, 0 where it does not say."""

    id: str
    eval_set_id: str
    created: float
    cases: tuple[CaseResult, ...]

    @property
    def started(self) -> datetime:
        """When it was written, as far as it says."""
        try:
            return datetime.fromtimestamp(self.created, UTC)
        except (OSError, OverflowError, ValueError):
            return datetime.fromtimestamp(0, UTC)


def run_from_adk(data: Any) -> AdkRun:
    """Entries of one case are its repeats. Raises ValueError for what is no `EvalSetResult`."""
    if not isinstance(data, dict) or not isinstance(_get(data, "eval_case_results"), list):
        raise ValueError("`eval_case_results` is missing")
    eval_set_id = str(_get(data, "eval_set_id") or "")
    repeats: dict[tuple[str, str], list[RepeatResult]] = {}
    for entry in _objects(_get(data, "eval_case_results")):
        # Files of the first versions name the set in a key that has another name now.
        own = _get(entry, "eval_set_id") or _get(entry, "eval_set_file") or eval_set_id
        repeats.setdefault((str(own), str(_get(entry, "eval_id") or "")), []).append(_repeat(entry))
    cases = tuple(case_over_repeats(*key, results, "all") for key, results in repeats.items())
    return AdkRun(
        id=str(_get(data, "eval_set_result_id") or ""),
        eval_set_id=eval_set_id,
        created=_number(_get(data, "creation_timestamp")) or 0.0,
        cases=cases,
    )


def _get(data: Json, name: str) -> Any:
    return data.get(spelt(name, data))


def _objects(value: Any) -> Iterator[Json]:
    return (item for item in value or () if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _status(value: Any) -> Status:
    """A number, or a name as some writers have it; what is not known was not evaluated."""
    if isinstance(value, str) and value.upper() in Status.__members__:
        return Status[value.upper()]
    return _STATUSES.get(value, Status.NOT_EVALUATED) if isinstance(value, int) else Status.NOT_EVALUATED


def _repeat(entry: Json) -> RepeatResult:
    turns = list(_objects(_get(entry, "eval_metric_result_per_invocation")))
    metrics = [_metric(metric, turns) for metric in _objects(_get(entry, "overall_eval_metric_results"))]
    status = _status(_get(entry, "final_eval_status"))
    error = None
    if status is Status.FAILED and not metrics and not turns:
        # How google-adk keeps a run that raised.
        status = Status.ERROR
        error = ErrorInfo(
            "Error", "the agent raised an error, of which google-adk keeps no message", kind=None
        )
    actual = [_invocation(_get(turn, "actual_invocation")) for turn in turns]
    expected = [_invocation(_get(turn, "expected_invocation")) for turn in turns]
    readable = [invocation for invocation in actual if invocation is not None]
    simulated = all(_get(turn, "expected_invocation") is None for turn in turns)
    return RepeatResult(
        status=status,
        metrics=tuple(metrics),
        error=error,
        actual=tuple(readable) if len(readable) == len(actual) else (),
        turns=tuple(_turns(expected, actual, metrics, simulated=simulated)),
        seconds=round(sum(invocation.duration or 0.0 for invocation in readable), 3),
        session_id=str(_get(entry, "session_id") or ""),
        user_id=str(_get(entry, "user_id") or ""),
    )


def _metric(metric: Json, turns: Sequence[Json]) -> MetricResult:
    name = str(_get(metric, "metric_name") or "")
    by_turn = (_objects(_get(turn, "eval_metric_results")) for turn in turns)
    of_metric = [
        next((result for result in some if _get(result, "metric_name") == name), None) for some in by_turn
    ]
    per_turn = [
        InvocationScore(
            _number(_get(result, "score")),
            _status(_get(result, "eval_status")),
            judgements=tuple(_judgements(name, result, turn)),
        )
        for result, turn in zip(of_metric, turns, strict=True)
        if result is not None
    ]
    aligned = tuple(per_turn) if len(per_turn) == len(turns) else ()
    # Where there are turns, what google-adk says of them all only points to them.
    own = "" if any(turn.judgements for turn in aligned) else "; ".join(_rationales(metric))
    return MetricResult(
        name=name,
        score=_number(_get(metric, "score")),
        threshold=_number(_get(metric, "threshold")),
        status=_status(_get(metric, "eval_status")),
        per_invocation=aligned,
        reason=own,
    )


def _rationales(metric: Json) -> Iterator[str]:
    for score in _rubric_scores(metric):
        if rationale := _get(score, "rationale"):
            yield f"{_get(score, 'rubric_id')}: {rationale}"


def _rubric_scores(metric: Json) -> Iterator[Json]:
    details = _get(metric, "details")
    return _objects(_get(details, "rubric_scores")) if isinstance(details, dict) else iter(())


def _judgements(name: str, metric: Json, turn: Json) -> Iterator[Judgement]:
    """The judgement of each rubric in a turn, with the rubric's text where the file has it."""
    scores = list(_rubric_scores(metric))
    texts = dict(_rubric_texts(metric, turn)) if scores else {}
    for rubric_score in scores:
        rubric_id = str(_get(rubric_score, "rubric_id") or "")
        score = _number(_get(rubric_score, "score"))
        is_sentence, is_whole = info_of(name).judged_item == "sentence", rubric_id == EXPLANATION
        yield Judgement(
            id="" if is_sentence or is_whole else rubric_id,
            subject=rubric_id if is_sentence else texts.get(rubric_id, ""),
            score=_number(_get(metric, "score")) if is_whole and score is None else score,
            rationale=str(_get(rubric_score, "rationale") or ""),
        )


def _rubric_texts(metric: Json, turn: Json) -> Iterator[tuple[str, str]]:
    for holder in (_get(metric, "criterion"), _get(turn, "actual_invocation")):
        for rubric in _objects(_get(holder, "rubrics")) if isinstance(holder, dict) else ():
            content = _get(rubric, "rubric_content")
            text = _get(content, "text_property") if isinstance(content, dict) else None
            yield str(_get(rubric, "rubric_id") or ""), str(text or "")


def _invocation(data: Any) -> Invocation | None:
    """None for what is none, and for one in a shape that is not known here."""
    if not isinstance(data, dict):
        return None
    try:
        fields = {key: value for key, value in data.items() if key not in _LEFT_OUT}
        # As JSON, in which bytes are base64.
        return Invocation.model_validate_json(json.dumps(fields))
    except ValidationError:
        return None


def _turns(
    expected: Sequence[Invocation | None],
    actual: Sequence[Invocation | None],
    metrics: Sequence[MetricResult],
    *,
    simulated: bool,
) -> Iterator[TurnResult]:
    unknown: Expectation = "simulated" if simulated else "not checked"
    answers = next((metric.per_invocation for metric in metrics if metric.name == _ANSWER), ())
    for number, (want, did) in enumerate(zip(expected, actual, strict=True)):
        # google-adk scores thoughts as well.
        turn = turn_result(
            want,
            did,
            expectation=expectation_of(want) if want else unknown,
            expected_text=(scored_text(want, thoughts=True) or None) if want else None,
            actual_text=scored_text(did, thoughts=True) if did else None,
            response_score=answers[number].score if answers else None,
            unscored=unscored_texts(did, thoughts=True) if did else (),
        )
        yield replace(turn, user=full_text(did.user_content)) if simulated and did else turn


def keep_adk_run(store: RunStore, data: Json) -> Path:
    """Write an `EvalSetResult`, as JSON data, as the file of a run.

    Raises OSError where the store cannot be written, ValueError for what is no such result.
    """
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
        _write(writer, CaseId(path, case.eval_id), case)
    writer.close(Ending(worst_status(case.status for case in cases)))
    return writer.path


def _set_of(agent_dir: Path, eval_set_id: str) -> tuple[str, tuple[str, ...]]:
    """The path of a set's cases in `CaseId`, and their ids; its own id and none where no file is that set."""
    matches = [eval_set for eval_set in open_workspace(agent_dir).sets if eval_set.eval_set_id == eval_set_id]
    if len(matches) != 1:
        return eval_set_id, ()
    return matches[0].case_path, tuple(case.eval_id for case in matches[0].cases)


def _write(writer: RunWriter, case: CaseId, result: CaseResult) -> None:
    number = 0
    for repeat, repeat_result in enumerate(result.repeats):
        writer.start(case, result.eval_set_id, repeat)
        for event in _events(repeat_result):
            number += 1
            named = replace(
                event, path=case.path, set=result.eval_set_id, case=case.eval_id, repeat=repeat, seq=number
            )
            writer.add_event(named)
        writer.add_repeat(case, result.eval_set_id, repeat, repeat_result)
    writer.add_case(summarize(result), result)


def _events(repeat: RepeatResult) -> Iterator[Event]:
    for turn, invocation in enumerate(repeat.actual):
        yield from events_of_invocation(invocation, turn)


def _criteria(data: Json) -> Json:
    """The criteria of the cases that the results hold: a criterion or a threshold by metric."""
    criteria: dict[str, Any] = {}
    for case in data.get("eval_case_results", ()):
        for metric in case.get("overall_eval_metric_results", ()):
            if metric.get("threshold") is not None:
                criteria[metric["metric_name"]] = metric.get("criterion") or metric["threshold"]
    return criteria
