from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from io import FileIO
from pathlib import Path

import pytest
from evaltui.runs.log import RunLog
from evaltui.runs.log_index import index_parts
from evaltui.runs.log_reader import (
    Footer,
    StoredRun,
    events_between,
    read_header,
    read_run,
    repeats_of,
    result_of,
)

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.runs.store import RunStore, is_being_written


def result(number: int) -> CaseSummary:
    return CaseSummary("s", f"case {number}", Status.PASSED, passed=1, policy_met=True, path="s.evalset.json")


def summaries(run: StoredRun) -> tuple[CaseSummary, ...]:
    return tuple(one.summary for one in run.results)


def eval_ids(run: StoredRun) -> list[str]:
    return [one.id.eval_id for one in run.results]


def _json(line: bytes) -> dict[str, object] | None:
    try:
        return json.loads(line)
    except ValueError:
        return None


def events_in(run: StoredRun) -> list[dict[str, object]]:
    """The lines of a log that are neither torn nor of the log itself."""
    lines = (_json(line) for line in run.path.read_bytes().splitlines())
    own = ("header", "case_result", "index", "footer")
    return [data for data in lines if data and data["kind"] not in own]


def test_a_log_is_read_as_it_was_written(tmp_path):
    log = RunLog.create(RunStore(tmp_path), {"agent": "my_agent"})
    log.event({"seq": 1, "t": 0.5, "kind": "text", "content": {"parts": [{"text": "grüße 🌻\n\ud83d"}]}})
    log.result(result(1))
    log.event({"seq": 2, "t": 0.7, "kind": "user"})
    log.close({"status": "PASSED"})
    run = read_run(log.path)
    assert run.header.data["agent"] == "my_agent"
    assert {"version", "evaltui", "python", "started"} <= run.header.data.keys()
    assert summaries(run) == (result(1),)
    assert run.complete
    assert run.footer == Footer(Status.PASSED)
    assert [event["seq"] for event in events_in(run)] == [1, 2]
    assert events_in(run)[0]["content"]["parts"][0]["text"] == "grüße 🌻\n\ud83d"
    first, *_ = log.path.read_text().splitlines()
    assert json.loads(first)["kind"] == "header"
    assert (log.path.parent, log.path.stem) == (tmp_path / ".evaltui" / "runs", run.id)
    assert (tmp_path / ".evaltui" / ".gitignore").read_text() == "*\n"


def test_the_users_own_gitignore_stays(tmp_path):
    (tmp_path / ".evaltui").mkdir()
    (tmp_path / ".evaltui" / ".gitignore").write_text("runs/\n")
    RunLog.create(RunStore(tmp_path), {}).close()
    assert (tmp_path / ".evaltui" / ".gitignore").read_text() == "runs/\n"


def test_the_log_of_a_single_file_agent_is_beside_it(tmp_path):
    (tmp_path / "agent.py").touch()
    log = RunLog.create(RunStore(tmp_path / "agent.py"), {})
    log.close()
    assert log.path.parent == tmp_path / ".evaltui" / "runs"
    assert RunStore(tmp_path / "agent.py").latest() == log.path


def test_results_are_on_disk_at_once_and_events_soon(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    log = RunLog.create(RunStore(tmp_path), {})
    log.event({"seq": 1, "kind": "text"})
    assert events_in(read_run(log.path)) == []
    log.result(result(1))
    run = read_run(log.path)
    assert (summaries(run), [event["seq"] for event in events_in(run)]) == ((result(1),), [1])
    assert not run.complete
    now = 101.0
    log.event({"seq": 2, "kind": "text"})
    assert [event["seq"] for event in events_in(run)] == [1, 2]
    log.close()
    assert not read_run(log.path).complete


def test_a_log_cut_anywhere_is_read_up_to_the_cut(tmp_path):
    log = RunLog.create(RunStore(tmp_path), {"agent": "a"})
    for number in range(3):
        log.event({"seq": number, "kind": "text", "content": {"parts": [{"text": "grüße"}]}})
        log.result(result(number))
    log.close({"status": "PASSED"})
    whole = log.path.read_bytes()
    header = whole.index(b"\n") + 1
    for cut in range(header, len(whole)):
        log.path.write_bytes(whole[:cut])
        run = read_run(log.path)
        kinds = [data["kind"] for line in whole[:cut].splitlines() if (data := _json(line))]
        assert eval_ids(run) == [f"case {number}" for number in range(kinds.count("case_result"))]
        assert len(events_in(run)) == kinds.count("text")
        assert run.complete == ("footer" in kinds)
    log.path.write_bytes(whole[: header - 5])
    with pytest.raises(ValueError, match="is not a run log"):
        read_run(log.path)


def test_a_killed_run_leaves_every_result(tmp_path):
    code = (
        "import sys; from pathlib import Path; from evaltui.runs.log import RunLog\n"
        "from evaltui.runs.store import RunStore\n"
        "from evaltui.core.compare.run_summary import CaseSummary\n"
        "from evaltui.core.model.outcome import Status\n"
        "log = RunLog.create(RunStore(Path(sys.argv[1])), {})\n"
        "for number in range(8): log.result(CaseSummary('s', str(number), Status.FAILED))\n"
        "print('ready', flush=True)\n"
        "while True: log.event({'seq': 1, 'kind': 'text', 'data': {'text': 'x' * 999}})\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    run = read_run(RunStore(tmp_path).latest())
    assert eval_ids(run) == [str(number) for number in range(8)]
    assert not run.complete
    assert all(event["kind"] == "text" for event in events_in(run))


class FullAfter(FileIO):
    """A file on a disk with room for so many bytes."""

    room = 0

    def write(self, data, /):
        fits = bytes(data)[: self.room]
        if not fits:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        type(self).room -= len(fits)
        return super().write(fits)


@pytest.mark.parametrize("room", range(0, 1200, 61))
def test_a_full_disk_ends_a_log_behind_its_last_whole_line(tmp_path, monkeypatch, room):
    monkeypatch.setattr("evaltui.runs.log.FileIO", FullAfter)
    monkeypatch.setattr(FullAfter, "room", room)
    finished: list[str] = []

    def write_all() -> None:
        log = RunLog.create(RunStore(tmp_path), {})
        for number in range(10):
            case = result(number)
            log.started(case.id, "s", 0)
            log.event({"kind": "text", "set": "s", "case": case.id.eval_id, "seq": number})
            log.result(case)
            finished.append(case.id.eval_id)
        log.close({"status": "PASSED"})

    with pytest.raises(OSError, match="No space left"):
        write_all()
    kept = RunStore(tmp_path).files()
    if not kept:
        # Not even the header had room.
        assert finished == []
        return
    assert not is_being_written(kept[0])
    read = read_run(kept[0])
    assert eval_ids(read) == finished
    assert not read.complete
    assert kept[0].read_bytes().endswith(b"\n")


def test_what_is_no_log_is_refused(tmp_path):
    path = tmp_path / "x.sqlite"
    for text in ("", "{}\n", '{"seq": 1}\n', "hello\n", '{"kind":"footer"}\n'):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"x\.sqlite is not a run log"):
            read_run(path)
    path.write_text('{"kind":"header","version":99,"evaltui":"9.9"}\n')
    with pytest.raises(ValueError, match="another version of evaltui"):
        read_run(path)
    path.write_text('{"kind":"header","version":2}\n{"kind":"case_result",\n{"kind":"footer"}\n')
    with pytest.raises(ValueError, match="is damaged"):
        read_run(path)
    with pytest.raises(OSError, match="none"):
        read_run(tmp_path / "none.sqlite")


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / ".evaltui").write_text("in the way")
    with pytest.raises(OSError, match="evaltui"):
        RunLog.create(RunStore(tmp_path), {})


def test_ids_sort_by_time(tmp_path):
    logs = []
    for _ in range(3):
        log = RunLog.create(RunStore(tmp_path), {})
        log.close()
        logs.append(log.path.stem.split("Z-")[0])
    assert logs == sorted(logs)


def finished(tmp_path, cases):
    """A log of cases with two runs each, an event in each run, all of them mixed."""
    log = RunLog.create(RunStore(tmp_path), {})
    for repeat in range(2):
        for case in cases:
            log.started(CaseId(PATH, case), "s", repeat)
            log.event(
                {
                    "kind": "text",
                    "path": PATH,
                    "set": "s",
                    "case": case,
                    "repeat": repeat,
                    "data": {"n": repeat},
                }
            )
    for case in cases:
        for repeat in reversed(range(2)):
            log.repeat(CaseId(PATH, case), "s", repeat, {"status": "PASSED", "seconds": repeat})
        log.result(CaseSummary("s", case, Status.PASSED, runs=2, passed=2, path=PATH))
    return log


PATH = 'a "quoted" folder/s.evalset.json'
ODD = [
    "plain",
    'a "quoted" one',
    'x","eval_id":"plain',
    "\ud800 grüße",
    '"path":"s","eval_id":"plain",',
]


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "still open"])
def test_one_case_is_read_from_its_places(tmp_path, closed):
    log = finished(tmp_path, ODD)
    if closed:
        log.close({"status": "PASSED"})
    header = read_header(log.path)
    assert sum(len(part) for _, part in index_parts(log.path)) < log.path.stat().st_size / 3
    for case in ODD:
        found = result_of(log.path, header, CaseId(PATH, case), "s")
        assert (found.id.eval_id, found.summary.runs) == (case, 2)
        assert [one["seconds"] for one in repeats_of(log.path, found)] == [0, 1]
        events = events_between(log.path, found.events, found.id, "s")
        assert {number: [one.data for one in found] for number, found in events.items()} == {
            0: [{"n": 0}],
            1: [{"n": 1}],
        }
    assert result_of(log.path, header, CaseId(PATH, "nothing"), "s") is None
    assert result_of(log.path, header, CaseId("", "plain"), "") is None


def test_the_index_is_all_that_is_read_of_a_closed_log(tmp_path):
    log = finished(tmp_path, ["a", "b"])
    log.close({"status": "PASSED"})
    text = log.path.read_bytes()
    # Were these lines looked at, they would be found to be damaged.
    damaged = text.replace(b'{"kind":"case_result",', b'{"kind":"case_result";').replace(b'"text"', b'"text;')
    assert damaged != text
    log.path.write_bytes(damaged)
    assert eval_ids(read_run(log.path)) == ["a", "b"]


def test_a_log_is_told_from_one_that_is_being_written(tmp_path):
    log = RunLog.create(RunStore(tmp_path), {})
    assert is_being_written(log.path)
    log.close()
    assert not is_being_written(log.path)
    code = (
        "import sys; from pathlib import Path; from evaltui.runs.log import RunLog\n"
        "from evaltui.runs.store import RunStore\n"
        "log = RunLog.create(RunStore(Path(sys.argv[1])), {})\n"
        "print(log.path, flush=True); sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    path = Path(child.stdout.readline().decode().strip())
    assert is_being_written(path)
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()
    assert not is_being_written(path)


def test_runs_are_numbered_and_those_of_earlier_versions_counted(tmp_path):
    first = RunLog.create(RunStore(tmp_path), {})
    first.close()
    header, rest = first.path.read_text().split("\n", 1)
    assert '"number":1' in header
    # As of an earlier version.
    first.path.write_text(header.replace(',"number":1', ',"runs":1') + "\n" + rest)
    assert read_header(first.path).number is None
    assert RunStore(tmp_path).next_number() == 2
    RunLog.create(RunStore(tmp_path), {"number": 7}).close()
    assert RunStore(tmp_path).next_number() == 8


def test_runs_that_begin_at_once_in_several_processes_have_numbers_of_their_own(tmp_path):
    code = (
        "import sys; from pathlib import Path; from evaltui.runs.log import RunLog\n"
        "from evaltui.runs.store import RunStore\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for _ in range(20): RunLog.create(RunStore(Path(sys.argv[1])), {'number': 1}).close()\n"
    )
    command, pipe = [sys.executable, "-c", code, str(tmp_path)], subprocess.PIPE
    writers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 2
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    numbers = [read_header(log).number for log in RunStore(tmp_path).files()]
    assert sorted(numbers) == list(range(1, 41))
