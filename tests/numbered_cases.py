"""Runs of cases whose outcome goes by their number, and two runs that are to be the same but for times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval_data import make_case, make_turn, write_eval_set
from example_runs import json_of

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.events import Event
from evaltui.core.secrets import Secrets
from evaltui.reports.json_report import case_result_json
from evaltui.reports.stored import stored_report
from evaltui.runs.history import StoredRun, open_run
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from tests.commands.command_line import call


def one_case(number: int) -> dict[str, Any]:
    """Its outcome goes by its number: see `act`."""
    return make_case(f"case_{number}", make_turn(f"case {number}", "right"))


def act(case: EvalCase, repeat: int) -> list[Invocation]:
    """Case 3, 13 ... fails, case 7, 17 ... raises, case 5, 15 ... passes in every second run."""
    last = int(case.eval_id.rpartition("_")[2]) % 10
    if last == 7:
        raise RuntimeError("out of order")
    text = "wrong" if last == 3 or (last == 5 and repeat % 2) else "right"
    answer = {"final_response": {"role": "model", "parts": [{"text": text}]}}
    return [
        Invocation.model_validate({**turn.model_dump(include={"user_content"}), **answer})
        for turn in case.conversation or []
    ]


def write_set(folder: Path, name: str, numbers: Sequence[int]) -> None:
    write_eval_set(folder, name, *map(one_case, numbers))


def logs_of(agent: Path, *selections: Sequence[str]) -> list[Path]:
    """A log for each selection."""
    for words in selections:
        call("run", agent, *words, "--report", "json=/dev/null")
    return RunStore(agent).files()[-len(selections) :]


def events_of(log: Path) -> list[tuple[Any, ...]]:
    """What happened in each run of a case, in order, without times."""
    found: dict[Any, list[Any]] = {}
    file = RunFile(log)
    for one in file.repeats:
        events = file.events_of(one.case).get(one.repeat, ())
        found[one.case, one.repeat] = [
            without_times(data) for data in (*map(Event.to_json, events), one.data)
        ]
    return sorted(found.items())


_TIMES = {
    "t",
    "seq",
    "seconds",
    "total_seconds",
    "duration",
    "creation_timestamp",
    "timestamp",
    "session_id",
    "id",
}


def without_times(data: Any) -> Any:
    """What two runs of the same agent have in common: no time, and no id that is made up."""
    if isinstance(data, list):
        return [without_times(one) for one in data]
    if not isinstance(data, dict):
        return data
    kept = {name: without_times(value) for name, value in data.items() if name not in _TIMES}
    is_time = "total_seconds" in data.get("details", ())
    return {"name": data["name"]} if is_time else kept


def assert_same_run(merged: Path, whole: Path) -> None:
    ours, theirs = open_run(merged), open_run(whole)
    assert ours.status is theirs.status
    assert list(ours.summary.cases) == list(theirs.summary.cases)
    for case, summary in theirs.summary.cases.items():
        mine = ours.summary.cases[case]
        assert replace(mine, seconds=0) == replace(summary, seconds=0)
        assert _report(ours, case) == _report(theirs, case)
    assert ours.summary.whole == theirs.summary.whole
    assert ours.summary.unfinished == theirs.summary.unfinished
    assert events_of(merged) == events_of(whole)
    assert _whole_report(merged) == _whole_report(whole)


def _report(run: StoredRun, case: CaseId) -> dict[str, Any]:
    """What the JSON report says of a case, without times."""
    document: dict[str, Any] = without_times(case_result_json(run.case(case)))
    return document


_OF_ONE_RUN = ("log", "started", "notes")


def _whole_report(log: Path) -> Any:
    """The JSON report of a run, but for its log, its start and its notes."""
    document = without_times(json_of(stored_report(open_run(log), Secrets())))
    return {name: value for name, value in document.items() if name not in _OF_ONE_RUN}
