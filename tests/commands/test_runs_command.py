import gc
import json
import time
from datetime import UTC, datetime

import psutil
import pytest
from command_line import call

from evaltui.core.model.outcome import Status
from evaltui.runs.run_file import Ending, is_being_written
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_writer import begin_run
from evaltui.runs.store import RunStore
from tests.stored_runs import add_case, change, selected, store_run, summary

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def keep(agent, statuses, ending=Ending(Status.PASSED), sets=None):  # noqa: B008
    """A run whose first cases came out so; returns its id."""
    sets = sets or {"lights": [f"case {number}" for number in range(len(statuses))]}
    cases = [(name, eval_id) for name, eval_ids in sets.items() for eval_id in eval_ids]
    summaries = [summary(*case, status) for case, status in zip(cases, statuses, strict=False)]
    chosen = [selected(name, eval_ids) for name, eval_ids in sets.items()]
    path = store_run(agent, chosen, summaries, ending, started=STARTED)
    # Within a millisecond, ids do not tell which run came first.
    number = len(list(path.parent.iterdir()))
    return path.rename(path.with_name(f"20260102T{number:06}.000Z-abcdef.sqlite")).stem


@pytest.fixture(autouse=True)
def far_east(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def listed(agent, capsys):
    assert call("runs", agent) == 0
    return capsys.readouterr().out.splitlines()


def test_an_interrupted_run_says_what_is_left(write_agent, capsys):
    agent = write_agent("")
    run = keep(agent, ["PASSED"], None, {"lights": ["one", "two", "three"], "heat": ["four"]})
    head, below = listed(agent, capsys)
    assert head == f"– run 1    {run}  2026-01-02 12:04  interrupted"
    assert below == "    1 passed, 3 not finished · lights (3 cases), heat:four"


def test_long_lines_are_cut(write_agent, capsys):
    agent = write_agent("")
    keep(agent, [], None, {f"set {number}\x1b[31m": ["a", "b"] for number in range(20)})
    lines = listed(agent, capsys)
    assert max(map(len, lines)) == 80
    assert lines[1].endswith("…")
    assert "\x1b" not in lines[1]


def test_older_ones_are_counted(write_agent, capsys):
    agent = write_agent("")
    ids = [keep(agent, ["PASSED"]) for _ in range(22)]
    lines = listed(agent, capsys)
    assert [line.split()[3] for line in lines if line.startswith("✓")] == ids[:1:-1]
    assert lines[-1].startswith("and 2 older ones in ")


def test_a_damaged_log_does_not_hide_the_others(write_agent, capsys):
    agent = write_agent("")
    good = keep(agent, ["PASSED"])
    folder = agent / ".evaltui" / "runs"
    (folder / "99991231T000000.000Z-abcdef.sqlite").write_text("not a log\n")
    (folder / "99991231T000001.000Z-abcdef.sqlite").write_text("")
    newer = keep(agent, ["PASSED"])
    change(folder / f"{newer}.sqlite", "PRAGMA user_version = 99")
    text = "\n".join(listed(agent, capsys))
    assert text.count("cannot be read") == 3
    assert good in text


def test_a_run_that_goes_on_and_one_with_a_name(write_agent, capsys):
    agent = write_agent("")
    run = keep(agent, ["PASSED"])
    assert call("runs", agent, "--name", "last", "before the change") == 0
    assert capsys.readouterr().out == f"before the change: {run}\n"
    log = begin_run(RunStore(agent), RunHeader((selected("lights", ["one"]),), started=STARTED))
    lines = listed(agent, capsys)
    assert "still running" in lines[0]
    assert lines[3] == "    before the change  1 passed · lights:case 0"
    log.close()
    assert call("runs", agent, "--name", "nothing", "x") == 2
    assert "has no run 'nothing'" in capsys.readouterr().err


def test_a_run_is_not_listed_until_its_file_is_one(write_agent, capsys):
    agent = write_agent("")
    keep(agent, ["PASSED"])
    seen = []

    class Sets(list):
        """Looks at the runs while the file is made."""

        def __iter__(self):
            seen.extend(listed(agent, capsys))
            return super().__iter__()

    begin_run(RunStore(agent), RunHeader(Sets([selected("lights", ["one"])]))).close()
    assert [line for line in seen if "cannot be read" in line] == []
    assert len(seen) == 2


def test_runs_that_were_listed_are_closed(write_agent, capsys):
    agent = write_agent("")
    for _ in range(3):
        keep(agent, ["PASSED"])
    gc.disable()
    try:
        listed(agent, capsys)
        assert [file.path for file in psutil.Process().open_files() if file.path.startswith(str(agent))] == []
    finally:
        gc.enable()


def test_results_of_google_adk_are_listed_unless_they_were_written_here(write_agent, capsys):
    agent = write_agent("")
    folder = agent / ".adk" / "eval_history"
    folder.mkdir(parents=True)
    for name, session in (("theirs", "s1"), ("ours", "evaltui-1.0-1")):
        entry = {"eval_id": "one", "final_eval_status": 1, "session_id": session}
        result = {"eval_set_id": "lights", "creation_timestamp": 1767323045.0, "eval_case_results": [entry]}
        (folder / f"{name}.evalset_result.json").write_text(json.dumps(result))
    (folder / "broken.evalset_result.json").write_text("[]")
    lines = listed(agent, capsys)
    assert any(line.startswith("✓ theirs  2026-01-02 12:04  google-adk") for line in lines)
    assert any(line.startswith("! broken  cannot be read") for line in lines)
    assert not any("ours" in line for line in lines)


def test_with_a_result_of_google_adk_only_a_run_was_kept(write_agent, capsys):
    agent = write_agent("")
    folder = agent / ".adk" / "eval_history"
    folder.mkdir(parents=True)
    case = {"eval_set_id": "lights", "eval_id": "one", "final_eval_status": 1, "session_id": "s"}
    result = {"eval_set_id": "lights", "creation_timestamp": 1767323045.0, "eval_case_results": [case]}
    (folder / "home_lights_1.evalset_result.json").write_text(json.dumps(result))
    assert call("runs", agent) == 0
    out = capsys.readouterr().out
    assert "google-adk" in out
    assert "no runs" not in out


def test_a_run_that_ends_while_it_is_listed_is_not_interrupted(write_agent, capsys, monkeypatch):
    agent = write_agent("")
    log = begin_run(RunStore(agent), RunHeader((selected("lights", ["one"]),), started=STARTED))

    def ending(path):
        add_case(log, summary("lights", "one", "PASSED"))
        log.close(Ending(Status.PASSED, 1.0))
        return is_being_written(path)

    monkeypatch.setattr("evaltui.runs.listing.is_being_written", ending)
    lines = listed(agent, capsys)
    assert lines[0].endswith("passed         1 s")
    assert lines[1] == "    1 passed · lights:one"
