from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaltui.files.runs import RunLog, find_run, latest_run, read_run
from evaltui.files.workspace import SelectionError


def result(number: int) -> dict[str, object]:
    return {"eval_set_id": "s", "eval_id": f"case {number}", "status": "PASSED"}


def test_a_log_is_read_as_it_was_written(tmp_path):
    log = RunLog.create(tmp_path, {"agent": "my_agent", "selected": {"s": ["case 1"]}})
    log.event({"seq": 1, "t": 0.5, "kind": "text", "content": {"parts": [{"text": "grüße 🌻\n\ud83d"}]}})
    log.result(result(1))
    log.event({"seq": 2, "t": 0.7, "kind": "user"})
    log.close({"status": "PASSED"})
    run = read_run(log.path)
    assert run.header["agent"] == "my_agent"
    assert {"version", "evaltui", "python", "started"} <= run.header.keys()
    assert run.results == (result(1),)
    assert run.complete
    assert run.footer == {"status": "PASSED"}
    assert [event["seq"] for event in run.events()] == [1, 2]
    assert next(run.events())["content"]["parts"][0]["text"] == "grüße 🌻\n\ud83d"
    first, *_ = log.path.read_text().splitlines()
    assert json.loads(first)["kind"] == "header"
    assert (log.path.parent, log.path.stem) == (tmp_path / ".evaltui" / "runs", run.id)
    assert (tmp_path / ".evaltui" / ".gitignore").read_text() == "*\n"


def test_the_users_own_gitignore_stays(tmp_path):
    (tmp_path / ".evaltui").mkdir()
    (tmp_path / ".evaltui" / ".gitignore").write_text("runs/\n")
    RunLog.create(tmp_path, {}).close()
    assert (tmp_path / ".evaltui" / ".gitignore").read_text() == "runs/\n"


def test_the_log_of_a_single_file_agent_is_beside_it(tmp_path):
    (tmp_path / "agent.py").touch()
    log = RunLog.create(tmp_path / "agent.py", {})
    log.close()
    assert log.path.parent == tmp_path / ".evaltui" / "runs"
    assert latest_run(tmp_path / "agent.py") == log.path


def test_results_are_on_disk_at_once_and_events_soon(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    log = RunLog.create(tmp_path, {})
    log.event({"seq": 1, "kind": "text"})
    assert list(read_run(log.path).events()) == []
    log.result(result(1))
    run = read_run(log.path)
    assert (run.results, [event["seq"] for event in run.events()]) == ((result(1),), [1])
    assert not run.complete
    now = 101.0
    log.event({"seq": 2, "kind": "text"})
    assert [event["seq"] for event in run.events()] == [1, 2]
    log.close()
    assert not read_run(log.path).complete


def _json(line: bytes) -> dict[str, object] | None:
    try:
        return json.loads(line)
    except ValueError:
        return None


def test_a_log_cut_anywhere_is_read_up_to_the_cut(tmp_path):
    log = RunLog.create(tmp_path, {"agent": "a"})
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
        assert len(run.results) == kinds.count("case_result")
        assert len(list(run.events())) == kinds.count("text")
        assert run.complete == ("footer" in kinds)
    log.path.write_bytes(whole[: header - 5])
    with pytest.raises(ValueError, match="is not a run log"):
        read_run(log.path)


def test_a_killed_run_leaves_every_result(tmp_path):
    code = (
        "import sys; from pathlib import Path; from evaltui.files.runs import RunLog\n"
        "log = RunLog.create(Path(sys.argv[1]), {})\n"
        "for number in range(8): log.result({'eval_id': str(number)})\n"
        "print('ready', flush=True)\n"
        "while True: log.event({'seq': 1, 'kind': 'text', 'data': {'text': 'x' * 999}})\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    run = read_run(latest_run(tmp_path))
    assert [one["eval_id"] for one in run.results] == [str(number) for number in range(8)]
    assert not run.complete
    assert all(event["kind"] == "text" for event in run.events())


def test_what_is_no_log_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    for text in ("", "{}\n", '{"seq": 1}\n', "hello\n", '{"kind":"footer"}\n'):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"x\.jsonl is not a run log"):
            read_run(path)
    path.write_text('{"kind":"header","version":99,"evaltui":"9.9"}\n')
    with pytest.raises(ValueError, match="another version of evaltui"):
        read_run(path)
    path.write_text('{"kind":"header","version":1}\n{"kind":"case_result",\n{"kind":"footer"}\n')
    with pytest.raises(ValueError, match="is damaged"):
        read_run(path)
    with pytest.raises(OSError, match="none"):
        read_run(tmp_path / "none.jsonl")


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / ".evaltui").write_text("in the way")
    with pytest.raises(OSError, match="evaltui"):
        RunLog.create(tmp_path, {})


def test_finding_runs(tmp_path):
    assert latest_run(tmp_path) is None
    assert find_run(tmp_path, "last") is None
    assert find_run(tmp_path, "2025") is None
    folder = tmp_path / ".evaltui" / "runs"
    folder.mkdir(parents=True)
    ids = ["20250101T000000.000Z-aaaaaa", "20250101T000000.000Z-ab", "20250203T000000.000Z-000000"]
    for run_id in ids:
        (folder / f"{run_id}.jsonl").touch()
    (folder / "20259999-notes.txt").touch()
    paths = [folder / f"{run_id}.jsonl" for run_id in ids]
    assert latest_run(tmp_path) == find_run(tmp_path, "last") == paths[2]
    assert find_run(tmp_path, "202502") == paths[2]
    assert find_run(tmp_path, ids[1]) == paths[1]
    assert find_run(tmp_path, ids[0]) == paths[0]
    assert find_run(tmp_path, "nothing") is None
    assert find_run(tmp_path, str(paths[0])) == paths[0]
    assert find_run(Path("/"), str(paths[0])) == paths[0]
    with pytest.raises(SelectionError, match=f"'20250101' begins the ids of 2 runs: {ids[0]}, {ids[1]}"):
        find_run(tmp_path, "20250101")


def test_ids_sort_by_time(tmp_path):
    logs = []
    for _ in range(3):
        log = RunLog.create(tmp_path, {})
        log.close()
        logs.append(log.path.stem.split("Z-")[0])
    assert logs == sorted(logs)
