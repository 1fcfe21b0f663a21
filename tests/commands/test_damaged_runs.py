"""Files of runs and result files of others, damaged ones and binary ones are named wherever a run is read."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import call

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.compare.run_comparison import compare
from evaltui.core.compare.run_summary import summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import MetricResult, RepeatResult, Status
from evaltui.core.secrets import Secrets
from evaltui.project.run_settings import RunSettings
from evaltui.reports.json_report import json_report
from evaltui.reports.stored import stored_report
from evaltui.runs.history import case_history, open_run
from evaltui.runs.listing import read_row
from evaltui.runs.resuming import finished_repeats
from evaltui.runs.run_file import Ending, RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_kind import ROOT_AGENT
from evaltui.runs.run_writer import begin_run
from evaltui.runs.store import RunStore
from tests.stored_runs import FOREIGN

CASE = CaseId("evals/lights.evalset.json", "night")
WRONG: tuple[Any, ...] = (None, 7, -1, "x", [1], {"a": 1}, True, 1e300)


@pytest.fixture
def log(tmp_path) -> Path:
    """The file of a run of one case, beside a good one."""
    return [keep(tmp_path) for _ in range(2)][1]


def keep(agent: Path) -> Path:
    (agent / "agent.py").touch()
    lights = SelectedSet(CASE.path, "lights", (CASE.eval_id,), {"criteria": {"m": 0.5}}, whole=True)
    log = begin_run(RunStore(agent), RunHeader((lights,), RunSettings(runs=1), files={"agent.py": "1"}))
    log.set_agent({"name": "home", "model": "gemini"})
    log.start(CASE, "lights", 0)
    named = {"path": CASE.path, "set": "lights", "case": CASE.eval_id, "repeat": 0, "turn": 0, "t": 0.5}
    log.add_event(
        Event.from_json({"kind": "user", "content": {"role": "user", "parts": [{"text": "dark"}]}, **named})
    )
    call_part = {"function_call": {"name": "dim", "args": {"to": 5}}}
    log.add_event(
        Event.from_json({"kind": "tool_call", "content": {"role": "model", "parts": [call_part]}, **named})
    )
    turn = Invocation.model_validate({"user_content": {"role": "user", "parts": [{"text": "dark"}]}})
    metric = MetricResult("m", 0.2, 0.5, Status.FAILED)
    repeat = RepeatResult(Status.FAILED, (metric,), actual=(turn,), seconds=1.0)
    log.add_repeat(CASE, "lights", 0, repeat)
    result = case_over_repeats("lights", CASE.eval_id, [repeat], "all", CASE.path)
    log.add_case(summarize(result), result)
    log.close(Ending(Status.FAILED, 1.5))
    return log.path


def test_runs_that_may_not_be_read_are_named_and_the_next_one_is_stored(tmp_path, log, monkeypatch, capsys):
    connect, access = sqlite3.connect, os.access

    def refuse(database: str, **options: Any) -> sqlite3.Connection:
        if log.name in database:
            raise sqlite3.OperationalError("unable to open database file")
        return connect(database, **options)

    monkeypatch.setattr(sqlite3, "connect", refuse)
    assert keep(tmp_path).is_file()
    assert call("runs", tmp_path) == 0
    assert f"{log.stem}  cannot be read\n    {log}: unable to open" in capsys.readouterr().out
    monkeypatch.setattr(os, "access", lambda path, mode: path != log.parent and access(path, mode))
    assert call("runs", tmp_path) == 2
    assert f"{log.parent}: cannot be read: no permission" in capsys.readouterr().err


def read_everywhere(log: Path) -> None:
    """Whatever reads runs; what is no run is an OSError or a ValueError with a sentence."""
    agent = log.parent.parent.parent
    case_history(RunStore(agent), ROOT_AGENT, CASE)
    for read in (lambda path: finished_repeats(RunFile(path)), lambda path: read_row(path)):
        with suppress(OSError, ValueError):
            read(log)
    with suppress(OSError, ValueError):
        run = open_run(log)
        compare(run.summary, run.summary)
        for case in run.summary.cases:
            for of_case in (run.case, run.events):
                with suppress(OSError, ValueError):
                    of_case(case)
        "".join(json_report(stored_report(run, Secrets())))


def damaged(data: Any) -> Iterator[Any]:
    """The data with one member gone, or something else in its place, anywhere in it."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield {name: one for name, one in data.items() if name != key}
            yield from ({**data, key: wrong} for wrong in WRONG)
            yield from ({**data, key: other} for other in damaged(value))
    elif isinstance(data, list) and data:
        yield from ([wrong, *data[1:]] for wrong in WRONG)
        yield from ([other, *data[1:]] for other in damaged(data[0]))


def damages(file: Path) -> Iterator[tuple[str, Any]]:
    """Changes of everything that the file says: each a statement and its value."""
    with closing(sqlite3.connect(file)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            yield f"DELETE FROM {table} WHERE ? IS NULL", None
            rows = db.execute(f"SELECT * FROM {table}")
            columns = [name for name, *_ in rows.description]
            for column, value in zip(columns, rows.fetchone() or (), strict=False):
                statement = f"UPDATE OR IGNORE {table} SET {column} = ?"
                yield from ((statement, wrong) for wrong in (None, 7, -1, "x", b"\xff", 1e300, "[1]", "{"))
                if isinstance(value, str) and value.startswith("{"):
                    yield from ((statement, json.dumps(other)) for other in damaged(json.loads(value)))


def test_everything_in_a_run_may_be_missing_or_of_another_kind(log, thorough):
    whole = log.read_bytes()
    number = 0
    for statement, value in list(damages(log)):
        number += 1
        # All of them take a while.
        if thorough or not number % 7:
            log.write_bytes(whole)
            with suppress(sqlite3.IntegrityError), closing(sqlite3.connect(log)) as db, db:
                db.execute(statement, (value,))
            read_everywhere(log)
    assert number > 500


def test_every_part_of_the_file_may_be_overwritten(log):
    whole = log.read_bytes()
    for place in range(0, len(whole), 1024):
        log.write_bytes(whole[:place] + bytes(range(256)) + whole[place + 256 :])
        read_everywhere(log)
        log.write_bytes(whole[:place])
        read_everywhere(log)


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_run_is_named_and_hides_no_other(log, text, capsys):
    agent = log.parent.parent.parent
    log.write_bytes(text)
    read_everywhere(log)
    assert call("runs", agent) == 0
    out = capsys.readouterr().out
    assert "cannot be read" in out
    assert "✗ 1" in out or "1 failed" in out
    assert call("compare", agent, log.stem, "last") == 2
    assert log.stem in capsys.readouterr().err


def test_a_result_file_of_google_adk_of_any_shape(tmp_path):
    metric = {
        "metric_name": "m",
        "score": 0.5,
        "eval_status": 1,
        "details": {"rubric_scores": [{"score": 1}]},
    }
    turn = {"actual_invocation": {"user_content": {}}, "eval_metric_results": [metric]}
    entry = {"eval_id": "a", "final_eval_status": 1, "overall_eval_metric_results": [metric]}
    whole = {
        "eval_set_id": "lights",
        "creation_timestamp": 1767323045.0,
        "eval_case_results": [{**entry, "eval_metric_result_per_invocation": [turn]}],
    }
    path = tmp_path / "x.evalset_result.json"
    for other in damaged(whole):
        path.write_text(json.dumps(other))
        with suppress(OSError, ValueError):
            open_run(path)
        with suppress(OSError, ValueError):
            read_row(path)
