"""A large set is validated by another process, with the same outcome; whatever happens to that."""

import json
import subprocess

import pytest
from eval_data import make_case, make_turn

from evaltui.project.eval_set_file import read_eval_set_file, validated
from evaltui.workbench.cases import validating_apart
from evaltui.workbench.cases.validating_apart import validate_apart

TURN = make_turn("x" * 3000)
LARGE = 500


def read(path):
    return read_eval_set_file(path, "", path.parent)


def write(folder, cases, **first):
    path = folder / "s.evalset.json"
    named = [make_case(f"case {number}", TURN) for number in range(cases)]
    named[0] |= first
    path.write_text(json.dumps({"eval_set_id": "s", "description": "large", "eval_cases": named}, indent=1))
    return path


@pytest.fixture
def started(monkeypatch):
    """Every command that was started as a process."""
    commands = []

    class Noted(subprocess.Popen):
        def __init__(self, command, **kwargs):
            commands.append(command)
            super().__init__(command, **kwargs)

    monkeypatch.setattr(validating_apart.subprocess, "Popen", Noted)
    return commands


@pytest.fixture
def given_back(monkeypatch):
    """How often memory was given back."""
    times = []
    monkeypatch.setattr(validating_apart, "return_memory", lambda: times.append(True))
    return times


@pytest.mark.parametrize(
    "first", [{}, {"conversation": 1, "surprise": 1}, {"eval_id": "case 1", "creation_timestamp": "soon"}]
)
def test_a_large_set_is_what_it_would_be_if_it_were_read_here(tmp_path, started, first):
    path = write(tmp_path, LARGE, **first)
    there, here = validate_apart(read(path)), validated(read(path))
    assert len(started) == 1
    assert there.eval_set == here.eval_set
    assert there.problems == here.problems
    assert [one.problems for one in there.cases] == [one.problems for one in here.cases]
    assert [one.data() for one in there.cases] == [one.data() for one in here.cases]
    assert there.fingerprint == here.fingerprint
    assert there.document.text == path.read_text()
    assert there.cases == there.document.cases


def test_a_small_set_starts_no_process_and_leaves_no_memory_behind(tmp_path, started, given_back):
    assert len(validate_apart(read(write(tmp_path, 2))).cases) == 2
    assert not started
    assert not given_back
    validate_apart(read(write(tmp_path, LARGE)))
    assert len(given_back) == 1


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "print('no pickle')"])
def test_it_is_read_here_where_no_process_can(tmp_path, monkeypatch, code):
    path = write(tmp_path, LARGE)

    class Failing(subprocess.Popen):
        def __init__(self, command, **kwargs):
            super().__init__([command[0], "-c", code], **kwargs)

    monkeypatch.setattr(validating_apart.subprocess, "Popen", Failing)
    assert validate_apart(read(path)).case("case 499")


def test_it_is_read_here_where_no_process_can_be_started(tmp_path, monkeypatch):
    path = write(tmp_path, LARGE)
    monkeypatch.setattr(validating_apart.sys, "executable", str(tmp_path / "gone"))
    assert validate_apart(read(path)).case("case 499")


def test_a_file_that_is_not_there_is_a_problem(tmp_path):
    gone = validate_apart(read(tmp_path / "gone.evalset.json"))
    assert gone.eval_set is None
    assert "no such file" in str(gone.problems[0])


def test_what_was_read_is_validated_although_the_file_is_another_one_by_now(tmp_path):
    file = read(write(tmp_path, LARGE, conversation=1))
    write(tmp_path, LARGE)
    assert len(validate_apart(file).errors) == 1
    assert not validate_apart(read(file.path)).errors
