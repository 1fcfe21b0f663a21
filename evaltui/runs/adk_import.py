"""Results of google-adk kept as a run of ours, which is compared and accepted like any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaltui.core.compare.run_summary import summarize
from evaltui.core.conversation.replay import events_of_invocation
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import CaseResult, RepeatResult, worst_status
from evaltui.files.agent_files import files_of
from evaltui.files.run_settings import RunSettings
from evaltui.files.workspace import open_workspace
from evaltui.runs.adk_reader import run_from_adk
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter, begin_run
from evaltui.runs.store import RunStore

Json = dict[str, Any]


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
    criteria: Json = {}
    for case in data.get("eval_case_results", ()):
        for metric in case.get("overall_eval_metric_results", ()):
            if metric.get("threshold") is not None:
                criteria[metric["metric_name"]] = metric.get("criterion") or metric["threshold"]
    return criteria
