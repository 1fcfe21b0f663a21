"""What an edit, its undo, a save and a merge read of a large set: counted, not timed."""

from __future__ import annotations

import json
import threading
import time

import pytest

from evaltui.core.jsondoc import chunks, spans
from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.edits import Put
from evaltui.core.model import validation
from evaltui.files import journal
from evaltui.files.journal import Journal, recoverable
from evaltui.files.saving import fingerprint
from evaltui.workbench.workbench import Workbench
from tests.recovered_texts import after

CASES = 400


def case(number, text="hello"):
    turn = {"user_content": {"parts": [{"text": text}]}, "final_response": {"parts": [{"text": text}]}}
    return {"eval_id": f"case {number}", "conversation": [turn]}


def written(cases):
    return json.dumps({"eval_set_id": "large", "eval_cases": cases}, indent=2)


@pytest.fixture
def large(write_agent):
    folder = write_agent("def root_agent(message, session): return message")
    (folder / "large.evalset.json").write_text(written([case(number) for number in range(CASES)]))
    return folder


@pytest.fixture
async def opened(large, until):
    workbench = Workbench(large)
    await workbench.open()
    path = workbench.sets.listed[0].path
    await until(lambda: workbench.sets.opened(path))
    yield workbench, path
    await workbench.close()


@pytest.fixture
def read(monkeypatch):
    """Characters that were parsed of documents, and how many cases were made models."""
    counts = {"characters": 0, "models": 0}
    decode_at, loads, validate_case = spans.decode_at, json.loads, validation.validate_case

    def decoded(text, position):
        value, end = decode_at(text, position)
        counts["characters"] += end - position
        return value, end

    def loaded(text, **kwargs):
        counts["characters"] += len(text)
        return loads(text, **kwargs)

    def validated(data):
        counts["models"] += 1
        return validate_case(data)

    monkeypatch.setattr(spans, "decode_at", decoded)
    monkeypatch.setattr(chunks, "decode_at", decoded)
    monkeypatch.setattr(json, "loads", loaded)
    monkeypatch.setattr(validation, "validate_case", validated)

    def counted():
        found = dict(counts)
        counts.update(characters=0, models=0)
        return found

    return counted


def answer(number, text):
    return lambda eval_set: eval_set.case(number).turn(0).answer.set_text(text)


SIZE = len(json.dumps(case(100), indent=2))


async def test_an_edit_and_its_undo_read_the_case_and_those_beside_it(opened, read):
    workbench, path = opened
    for text in ("h", "he", "hel"):
        assert workbench.editing.do("answer", path, answer(200, text), typing="field")
        done = read()
        assert done["models"] == 1
        assert done["characters"] < 15 * SIZE
    assert workbench.editing.dirty_cases(path) == {"case 200"}
    workbench.editing.undo()
    done = read()
    assert done["models"] <= 1
    assert done["characters"] < 15 * SIZE
    assert not workbench.editing.is_dirty(path)
    assert workbench.editing.open_file(path).document.text == path.read_text()


async def test_an_edit_does_not_wait_until_the_set_is_validated(large, read, until):
    workbench = Workbench(large)
    await workbench.open()
    path = workbench.sets.listed[0].path
    read()
    assert workbench.editing.do("answer", path, answer(200, "sooner"))
    done = read()
    assert done["models"] == 0
    assert done["characters"] < 15 * SIZE
    now = workbench.sets.now(path)
    assert now.cases[200].data()["conversation"][0]["final_response"]["parts"] == [{"text": "sooner"}]
    assert not now.is_validated
    await until(lambda: workbench.sets.opened(path))
    assert workbench.sets.opened(path).case("case 200") is now.cases[200]
    assert read()["models"] == CASES
    assert workbench.editing.do("answer", path, answer(200, "later"))
    assert read()["models"] == 1
    await workbench.close()


async def test_an_edit_of_every_case_reads_each_of_them_a_few_times(opened, read):
    workbench, path = opened
    document = workbench.editing.data(path) and workbench.editing.open_file(path).document
    read()
    edits = [
        Put(("eval_cases", number, "conversation", 0, "final_response", "parts", 0, "text"), "other")
        for number in range(CASES)
    ]
    splices = document.apply(edits)
    assert len(splices) == CASES
    assert read()["characters"] < 6 * CASES * SIZE


async def test_a_merging_save_looks_at_what_others_changed_and_at_nothing_else(opened, read):
    workbench, path = opened
    assert workbench.editing.do("answer", path, answer(200, "mine"))
    theirs = [case(number) for number in range(CASES)]
    theirs[3] = case(3, "theirs")
    path.write_text(written(theirs))
    read()
    assert await workbench.editing.save(path)
    done = read()
    # The one of theirs, and mine as it stands in their file.
    assert done["models"] == 2
    assert done["characters"] < 15 * SIZE
    saved = json.loads(path.read_text())["eval_cases"]
    assert saved[3] == theirs[3]
    assert saved[200]["conversation"][0]["final_response"]["parts"] == [{"text": "mine"}]
    read()
    workbench.editing.undo()
    done = read()
    assert done["models"] == 1
    assert done["characters"] < 24 * SIZE
    assert [one.eval_id for one in workbench.sets.listed[0].cases] == [f"case {n}" for n in range(CASES)]


async def test_what_was_changed_outside_alone_is_read_alone(opened, read):
    workbench, path = opened
    workbench.editing.data(path)
    theirs = [case(number) for number in range(CASES)]
    theirs[3] = case(3, "theirs")
    path.write_text(written(theirs))
    read()
    await workbench.editing.look_outside()
    done = read()
    assert done["models"] == 1
    assert done["characters"] < 8 * SIZE
    assert workbench.sets.opened(path).value["eval_cases"][3] == theirs[3]


def test_a_large_text_is_packed_for_the_journal_while_edits_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_LARGE", 100)
    may_pack, is_packed, packed = threading.Event(), threading.Event(), journal._packed

    def waiting(base):
        may_pack.wait(15)
        is_packed.set()
        return packed(base)

    monkeypatch.setattr(journal, "_packed", waiting)
    path = tmp_path / "large.evalset.json"
    document = JsonDocument(written([case(number) for number in range(5)]))
    path.write_text(document.text)
    own = Journal.open(tmp_path, path, document.copy(), fingerprint(document.text))
    own.append("first", document.apply([Put(("eval_cases", 1, "n"), 1)]))
    own.append("second", document.apply([Put(("eval_cases", 2, "n"), 2)]))
    assert not is_packed.is_set()
    assert own.path.read_text().count("\n") == 3
    may_pack.set()
    until_written(own.path, 4)
    own.append("third", document.apply([Put(("eval_cases", 3, "n"), 3)]))
    own._file.close()
    (found,) = recoverable(tmp_path)
    assert after(found) == document.text
    assert [step.label for step in found.steps()] == ["first", "second", "third"]


def until_written(path, lines):
    end = time.monotonic() + 15
    while path.read_text().count("\n") < lines:
        assert time.monotonic() < end
        time.sleep(0.01)
