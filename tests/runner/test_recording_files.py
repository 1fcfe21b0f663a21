"""The file of recordings: nothing of others is lost, and what says the same is not written."""

from __future__ import annotations

import threading

import pytest

from evaltui.core.model.problems import EvalSetError
from evaltui.core.recordings.entry import Shared, ToolCall, line_text
from evaltui.runner.recording_files import read_recordings, recordings_path, save_recordings


def call(eval_id, number=0, repeat=0):
    return ToolCall(eval_id, repeat, 0, "find", {"n": number}, {"result": number})


@pytest.fixture
def path(tmp_path):
    return recordings_path(tmp_path / "orders.evalset.json", "orders")


@pytest.mark.parametrize(
    ("eval_set_id", "name"),
    [("orders", "orders"), ("../up/and away", "%2E.%2Fup%2Fand away"), ("50%", "50%25"), ("日本", "日本")],
)
def test_recordings_are_in_a_folder_beside_the_set_whatever_it_is_called(tmp_path, eval_set_id, name):
    found = recordings_path(tmp_path / "x.evalset.json", eval_set_id)
    assert found == tmp_path / "recordings" / f"{name}.jsonl"


def test_cases_and_runs_are_sorted_and_entries_are_not(path):
    save_recordings(path, {("b", 0): [call("b", 2), call("b", 1)], ("a", 1): [call("a", repeat=1)]}, {})
    save_recordings(path, {("a", 0): [call("a")]}, {})
    lines = [call("a"), call("a", repeat=1), call("b", 2), call("b", 1)]
    assert path.read_text() == "".join(f"{line_text(line)}\n" for line in lines)
    assert read_recordings(path).entries("b", 0) == [call("b", 2), call("b", 1)]
    assert read_recordings(path).cases == {"a", "b"}


def test_a_file_that_would_say_the_same_is_left_alone(path):
    save_recordings(path, {("a", 0): [call("a")]}, {})
    before = path.stat()
    save_recordings(path, {("a", 0): [call("a")]}, {})
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_nothing_to_write_makes_no_file(path):
    save_recordings(path, {("a", 0): []}, {})
    assert not path.exists()
    assert read_recordings(path).groups == {}


def test_other_cases_keep_their_text(path):
    path.parent.mkdir()
    odd = '{"tool":"find", "kind":"tool",  "case":"b","repeat":0,"turn":0,"args":{},"result":null}'
    path.write_bytes(f"\ufeff{odd}\r\n\r\n".encode())
    assert read_recordings(path).entries("b", 0) == [ToolCall("b", 0, 0, "find", {})]
    save_recordings(path, {("a", 0): [call("a")]}, {})
    assert path.read_text() == f"{line_text(call('a'))}\n{odd}\n"


TOOL = '{"kind": "tool", "case": "a", "repeat": 0, "turn": 0, "tool": "t", "args": {}, "result": null}'
MODEL = '{"kind": "model", "case": "a", "repeat": 0, "turn": 0, "model": "m", "key": "k", "contents": ""}'
CUT = (
    "no recording: the line is cut or no JSON. Restore the file, or delete the line and record its case again"
)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("<<<<<<< ours", "conflict marker of git. Resolve the conflict, or delete the file and record again"),
        ("=======", "conflict marker of git. Resolve the conflict, or delete the file and record again"),
        (line_text(call("a"))[:-9], CUT),
        ("[1]", "`kind` is missing"),
        (
            line_text(call("a"))[:-1] + ', "case": "b"}',
            "no recording: a key is given more than once. Restore",
        ),
        (TOOL.replace('"args": {}', '"args": {"n": 1, "n": 2}'), "a key is given more than once"),
        (TOOL.replace('"repeat": 0', '"repeat": true'), "repeat has a value of the wrong type"),
        (TOOL.replace(', "result": null', ""), "neither result nor error"),
        (TOOL.replace('"result": null', '"error": null'), "neither result nor error"),
        (TOOL.replace('"result": null', '"error": "x"'), "error has a value of the wrong type"),
        (TOOL[:-1] + ', "removed": "key"}', "removed has a value of the wrong type"),
        (TOOL[:-1] + ', "removed": [1]}', "removed has a value of the wrong type"),
        (MODEL, "neither responses nor error"),
        (MODEL[:-1] + ', "responses": ["x"]}', "responses has a value of the wrong type"),
        ('{"kind": "tool", "case": "a"}', "missing 4 required"),
        (
            '{"kind": "tool", "case": 7, "repeat": 0, "turn": 0, "tool": "t", "args": {}}',
            "case has a value of the wrong type",
        ),
        (
            '{"kind": "format", "version": 2}',
            "unknown kind 'format': recorded by a newer version of evaltui? Update it, or delete the line",
        ),
        (
            line_text(call("a"))[:-1] + ', "encoding": "zip"}',
            "unknown key 'encoding' in a tool line: recorded by a newer version of evaltui?",
        ),
    ],
)
def test_a_line_that_is_no_recording_of_this_version_refuses_the_file_which_stays(path, line, why):
    path.parent.mkdir()
    path.write_text(f"{line_text(call('b'))}\n{line}\n")
    before = path.read_bytes()
    for read in (lambda: read_recordings(path), lambda: save_recordings(path, {("a", 0): [call("a")]}, {})):
        with pytest.raises(EvalSetError) as refused:
            read()
        (problem,) = refused.value.problems
        assert problem.located().startswith(f"{path}:2: ")
        assert why in problem.message
    assert path.read_bytes() == before


def test_a_recording_that_cannot_be_read_says_so(path):
    path.mkdir(parents=True)
    with pytest.raises(EvalSetError, match="cannot be read: a folder has this name"):
        read_recordings(path)


def test_shared_lines_stay_as_long_as_somebody_refers_to_them(path):
    from evaltui.core.recordings.entry import ModelCall

    def asked(eval_id, instruction):
        return ModelCall(eval_id, 0, 0, "gemini", "k", "", instruction=instruction)

    shared = {name: Shared(name, text=f"text {name}") for name in "xyz"}
    save_recordings(path, {("a", 0): [asked("a", "x")], ("b", 0): [asked("b", "y")]}, shared)
    kept = read_recordings(path)
    assert kept.shared.keys() == {"x", "y"}
    assert kept.shared_by([asked("a", "x")]) == [shared["x"]]
    save_recordings(path, {("a", 0): [asked("a", "y")]}, {})
    assert read_recordings(path).shared.keys() == {"y"}


def test_of_processes_that_record_at_once_none_loses_what_another_one_wrote(path):
    names = [f"case{number}" for number in range(8)]
    threads = [
        threading.Thread(target=save_recordings, args=(path, {(name, 0): [call(name)]}, {})) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_recordings(path).cases == set(names)


def test_a_file_that_is_no_text_is_not_overwritten(path):
    path.parent.mkdir()
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(EvalSetError):
        save_recordings(path, {("a", 0): [call("a")]}, {})
    assert path.read_bytes() == b"\xff\xfe"


def test_sets_of_one_folder_that_share_an_id_do_not_share_recordings(tmp_path):
    one, other = (tmp_path / f"{name}.evalset.json" for name in "ab")
    one.write_text('{"eval_set_id": "orders", "eval_cases": []}')
    assert recordings_path(one, "orders") == tmp_path / "recordings" / "orders.jsonl"
    other.write_text('{\n "eval_cases": [],\n "evalSetId" : "ord\\u0065rs"\n}')
    paths = [recordings_path(path, "orders") for path in (one, other)]
    assert [path.name for path in paths] == ["orders (a.evalset.json).jsonl", "orders (b.evalset.json).jsonl"]
    other.write_text('{"eval_set_id": "other", "eval_cases": []}')
    assert recordings_path(one, "orders").name == "orders.jsonl"


def test_a_copy_of_a_set_that_is_named_by_its_id_leaves_it_its_recordings(tmp_path):
    sets = [tmp_path / name for name in ("orders.evalset.json", "copy.evalset.json", "orders.test.json")]
    for path in sets[:2]:
        path.write_text('{"eval_set_id": "orders", "eval_cases": []}')
    names = [recordings_path(path, "orders").name for path in sets[:2]]
    assert names == ["orders.jsonl", "orders (copy.evalset.json).jsonl"]
    sets[2].write_text(sets[0].read_text())
    names = [recordings_path(path, "orders").name for path in sets]
    assert names == [f"orders ({path.name}).jsonl" for path in sets]
