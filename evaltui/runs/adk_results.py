"""google-adk's folder of eval results, and its result files as results of evaltui.

Reads `EvalSetResult` of google-adk 1.4 to 2.13, in snake_case or camelCase, and ignores unknown keys.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
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
from evaltui.core.model.json_values import field_of, list_or_empty
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
from evaltui.core.model.problems import Problem
from evaltui.core.secrets import Secrets
from evaltui.documents.files import write_privately
from evaltui.documents.json_text import parse, read_text
from evaltui.documents.own_folder import keep_out_of_git, make_private_folder, refuse_link
from evaltui.project.folders import agent_file, agent_folder
from evaltui.project.run_settings import RunSettings
from evaltui.runs.run_file import Ending, RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter
from evaltui.runs.store import ADK_SUFFIX, is_adk_result

# Source: google-adk 2.13, LocalEvalSetResultsManager.
FOLDER = Path(".adk", "eval_history")
# Of the results that were written here the run logs say more.
SESSION_PREFIX = "evaltui-"
# Of the result that google-adk left, and that is kept as a run besides: the id of that run.
RUN_ID_KEY = "evaltui_run"


def write_adk_result(agent_dir: Path, result_id: str, text: str | Iterable[str]) -> Path:
    """Writes the text of an `EvalSetResult`, whole or in pieces, and returns the file.

    Raises OSError where the agent's folder is not writable, or a link in it is unsafe.
    """
    folder = agent_folder(agent_dir) / FOLDER
    refuse_link(folder.parent)
    refuse_link(folder)
    if not folder.parent.exists():
        make_private_folder(folder.parent)
        # google-adk makes it without, and leaves it to its user.
        keep_out_of_git(folder.parent)
    if not folder.exists():
        make_private_folder(folder)
    path = folder / f"{result_id}{ADK_SUFFIX}"
    write_privately(path, chain([text] if isinstance(text, str) else text, ["\n"]))
    return path


def adk_results(agent_dir: Path) -> list[Path]:
    """The result files of an agent, the oldest first, including those written by evaltui; none for a
    single-file agent in a shared folder."""
    if agent_file(agent_dir):
        return []
    paths = (agent_folder(agent_dir) / FOLDER).glob(f"*{ADK_SUFFIX}")
    files = [file for file in paths if file.is_file()]
    return sorted(files, key=lambda file: (file.stat().st_mtime, file.name))


def is_own(path: Path) -> bool:
    """Whether a result file belongs to a run log of evaltui. Raises OSError."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return False
        # Such a file may be large, and of one that was written here the beginning is enough.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            marks = (f'"session_id": "{SESSION_PREFIX}', f'"{RUN_ID_KEY}": "')
            return any(text.find(mark.encode()) >= 0 for mark in marks)


def read_adk_result(path: Path) -> AdkRun:
    """Reads a result file of any version of google-adk.

    In files of the first versions, the JSON is in a JSON string. Raises OSError, and ValueError for a file
    that is no result.
    """
    text = read_text(path)
    data = parse(text) if isinstance(text, str) else text
    if isinstance(data, str):
        data = parse(data)
    if isinstance(data, Problem):
        raise ValueError(f"{path} is not a result file of google-adk: {data}")
    try:
        return run_from_adk(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a result file of google-adk: {error}") from error


def open_run_file(path: Path) -> RunFile:
    """Opens a run's file, a result file of google-adk as the file of a run in memory.

    The path of the cases of such a run is the id of their set. Raises the errors of `RunFile` and
    `read_adk_result`.
    """
    if not is_adk_result(path):
        return RunFile(path)
    run = read_adk_result(path)
    cases: dict[str, list[CaseResult]] = {}
    for case in run.cases:
        cases.setdefault(case.eval_set_id, []).append(case)
    header = RunHeader(
        sets=tuple(
            SelectedSet(set_id, set_id, tuple(case.eval_id for case in of_set))
            for set_id, of_set in cases.items()
        ),
        settings=RunSettings(runs=max((len(case.repeats) for case in run.cases), default=1), parallel=1),
        started=run.started if run.created else datetime.fromtimestamp(path.stat().st_mtime, UTC),
        of_adk=True,
    )
    writer = RunWriter(None, header, Secrets())
    writer.path = path
    for case in run.cases:
        add_adk_case(writer, CaseId(case.eval_set_id, case.eval_id), case)
    return writer.close(Ending(worst_status(case.status for case in run.cases)))


def add_adk_case(writer: RunWriter, case: CaseId, result: CaseResult) -> None:
    """Adds a result of google-adk to a run, with the events of its turns."""
    number = 0
    for repeat, repeat_result in enumerate(result.repeats):
        writer.start(case, result.eval_set_id, repeat)
        for turn, invocation in enumerate(repeat_result.actual):
            for event in events_of_invocation(invocation, turn):
                number += 1
                writer.add_event(
                    replace(
                        event,
                        path=case.path,
                        set=result.eval_set_id,
                        case=case.eval_id,
                        repeat=repeat,
                        seq=number,
                    )
                )
        writer.add_repeat(case, result.eval_set_id, repeat, repeat_result)
    writer.add_case(summarize(result), result)


Json = Mapping[str, Any]

_STATUSES = {1: Status.PASSED, 2: Status.FAILED, 3: Status.NOT_EVALUATED, 4: Status.INFORMATIONAL}
_ANSWER = "response_match_score"
# The id of what a judge says of an answer as a whole.
EXPLANATION = "explanation"
# Large, of no use here, and often in a shape that only the version that wrote it knows.
_LEFT_OUT_KEYS = ("app_details", "appDetails", "rubrics")


@dataclass(frozen=True)
class AdkRun:
    """An `EvalSetResult`; `created` is in seconds since 1970, 0 where it is missing."""

    id: str
    eval_set_id: str
    created: float
    cases: tuple[CaseResult, ...]

    @property
    def started(self) -> datetime:
        """The time at which it was written."""
        try:
            return datetime.fromtimestamp(self.created, UTC)
        except (OSError, OverflowError, ValueError):
            return datetime.fromtimestamp(0, UTC)


def run_from_adk(data: Any) -> AdkRun:
    """Converts the data of an `EvalSetResult`; entries of one case become its repeats.

    Raises ValueError for other data.
    """
    if not isinstance(data, dict) or not isinstance(field_of(data, "eval_case_results"), list):
        raise ValueError("`eval_case_results` is missing")
    eval_set_id = str(field_of(data, "eval_set_id") or "")
    repeats: dict[tuple[str, str], list[RepeatResult]] = {}
    for number, entry in enumerate(field_of(data, "eval_case_results")):
        if not isinstance(entry, dict):
            raise ValueError(f"`eval_case_results[{number}]` is not an object")
        # Files of the first versions name the set in a key that has another name now.
        own = field_of(entry, "eval_set_id") or field_of(entry, "eval_set_file") or eval_set_id
        repeats.setdefault((str(own), str(field_of(entry, "eval_id") or "")), []).append(_repeat(entry))
    cases = tuple(case_over_repeats(*key, results, "all") for key, results in repeats.items())
    return AdkRun(
        id=str(field_of(data, "eval_set_result_id") or ""),
        eval_set_id=eval_set_id,
        created=_number(field_of(data, "creation_timestamp")) or 0.0,
        cases=cases,
    )


def _objects(value: Any) -> Iterator[Json]:
    return (item for item in list_or_empty(value) if isinstance(item, dict))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _status(value: Any) -> Status:
    """The status for a number or a name; NOT_EVALUATED for an unknown one."""
    if isinstance(value, str) and value.upper() in Status.__members__:
        return Status[value.upper()]
    return _STATUSES.get(value, Status.NOT_EVALUATED) if isinstance(value, int) else Status.NOT_EVALUATED


def _repeat(entry: Json) -> RepeatResult:
    turns = list(_objects(field_of(entry, "eval_metric_result_per_invocation")))
    metrics = [_metric(metric, turns) for metric in _objects(field_of(entry, "overall_eval_metric_results"))]
    status = _status(field_of(entry, "final_eval_status"))
    error = None
    if status is Status.PASSED and any(metric.status is Status.FAILED for metric in metrics):
        # google-adk writes no such entry; metrics that it did not evaluate fail none.
        status = Status.FAILED
    if status is Status.FAILED and not metrics and not turns:
        # How google-adk keeps a run that raised.
        status = Status.ERROR
        error = ErrorInfo(
            "Error", "the agent raised an error, of which google-adk keeps no message", kind=None
        )
    actual = [_invocation(field_of(turn, "actual_invocation")) for turn in turns]
    expected = [_invocation(field_of(turn, "expected_invocation")) for turn in turns]
    readable = [invocation for invocation in actual if invocation is not None]
    simulated = all(field_of(turn, "expected_invocation") is None for turn in turns)
    return RepeatResult(
        status=status,
        metrics=tuple(metrics),
        error=error,
        actual=tuple(readable) if len(readable) == len(actual) else (),
        turns=tuple(_turns(expected, actual, metrics, simulated=simulated)),
        seconds=round(sum(invocation.duration or 0.0 for invocation in readable), 3),
        session_id=str(field_of(entry, "session_id") or ""),
        user_id=str(field_of(entry, "user_id") or ""),
    )


def _metric(metric: Json, turns: Sequence[Json]) -> MetricResult:
    name = str(field_of(metric, "metric_name") or "")
    by_turn = (_objects(field_of(turn, "eval_metric_results")) for turn in turns)
    of_metric = [
        next((result for result in some if field_of(result, "metric_name") == name), None) for some in by_turn
    ]
    per_turn = [
        InvocationScore(
            _number(field_of(result, "score")),
            _status(field_of(result, "eval_status")),
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
        score=_number(field_of(metric, "score")),
        threshold=_number(field_of(metric, "threshold")),
        status=_status(field_of(metric, "eval_status")),
        per_invocation=aligned,
        reason=own,
    )


def _rationales(metric: Json) -> Iterator[str]:
    for score in _rubric_scores(metric):
        if rationale := field_of(score, "rationale"):
            yield f"{field_of(score, 'rubric_id')}: {rationale}"


def _rubric_scores(metric: Json) -> Iterator[Json]:
    return _objects(field_of(field_of(metric, "details"), "rubric_scores"))


def _judgements(name: str, metric: Json, turn: Json) -> Iterator[Judgement]:
    """The judgement of each rubric in a turn, with the text of the rubric if the file has it."""
    scores = list(_rubric_scores(metric))
    texts = dict(_rubric_texts(metric, turn)) if scores else {}
    for rubric_score in scores:
        rubric_id = str(field_of(rubric_score, "rubric_id") or "")
        score = _number(field_of(rubric_score, "score"))
        is_sentence, is_whole = info_of(name).judged_item == "sentence", rubric_id == EXPLANATION
        yield Judgement(
            id="" if is_sentence or is_whole else rubric_id,
            subject=rubric_id if is_sentence else texts.get(rubric_id, ""),
            score=_number(field_of(metric, "score")) if is_whole and score is None else score,
            rationale=str(field_of(rubric_score, "rationale") or ""),
        )


def _rubric_texts(metric: Json, turn: Json) -> Iterator[tuple[str, str]]:
    for holder in (field_of(metric, "criterion"), field_of(turn, "actual_invocation")):
        for rubric in _objects(field_of(holder, "rubrics")):
            text = field_of(field_of(rubric, "rubric_content"), "text_property")
            yield str(field_of(rubric, "rubric_id") or ""), str(text or "")


def _invocation(data: Any) -> Invocation | None:
    """The invocation in the data; None for no invocation, and for an unknown format."""
    if not isinstance(data, dict):
        return None
    try:
        fields = {key: value for key, value in data.items() if key not in _LEFT_OUT_KEYS}
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
