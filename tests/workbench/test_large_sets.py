"""What an edit, its undo, a save and a merge read of a large set: counted, not timed."""

from __future__ import annotations

import json

import pytest

from evaltui.core.model import validation
from evaltui.documents import document, nodes

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
async def opened(large, until, open_workbench):
    workbench = await open_workbench(large)
    path = workbench.sets.listed[0].path
    await until(lambda: workbench.sets.opened(path))
    return workbench, path


@pytest.fixture
def read(monkeypatch):
    """Characters that were parsed of documents, and how many cases were made models."""
    counts = {"characters": 0, "models": 0}
    decode_at, loads, validate_case = nodes.decode_at, json.loads, validation.validate_case

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

    monkeypatch.setattr(nodes, "decode_at", decoded)
    monkeypatch.setattr(document, "decode_at", decoded)
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
        extends = workbench.editing.last_step
        assert workbench.editing.do("answer", path, answer(200, text), extends=extends)
        done = read()
        assert done["models"] == 1
        assert done["characters"] < 60 * SIZE
    assert workbench.editing.dirty_cases(path) == {"case 200"}
    workbench.editing.undo()
    done = read()
    assert done["models"] <= 1
    assert done["characters"] < 60 * SIZE
    assert not workbench.editing.is_dirty(path)
    assert workbench.editing.open_file(path).document.text == path.read_text()


async def test_an_edit_does_not_wait_until_the_set_is_validated(large, read, until, open_workbench):
    workbench = await open_workbench(large)
    path = workbench.sets.listed[0].path
    read()
    assert workbench.editing.do("answer", path, answer(200, "sooner"))
    done = read()
    assert done["models"] == 0
    assert done["characters"] < 60 * SIZE
    now = workbench.sets.now(path)
    assert now.cases[200].data()["conversation"][0]["final_response"]["parts"] == [{"text": "sooner"}]
    assert not now.is_validated
    await until(lambda: workbench.sets.opened(path))
    assert workbench.sets.opened(path).case("case 200") is now.cases[200]
    assert read()["models"] == CASES
    assert workbench.editing.do("answer", path, answer(200, "later"))
    assert read()["models"] == 1


async def test_a_merging_save_looks_at_what_others_changed_and_at_nothing_else(opened, read):
    workbench, path = opened
    assert workbench.editing.do("answer", path, answer(200, "mine"))
    theirs = [case(number) for number in range(CASES)]
    theirs[3] = case(3, "theirs")
    path.write_text(written(theirs))
    read()
    assert await workbench.editing.save(path)
    done = read()
    assert done["models"] == 1
    assert done["characters"] < 60 * SIZE
    saved = json.loads(path.read_text())["eval_cases"]
    assert saved[3] == theirs[3]
    assert saved[200]["conversation"][0]["final_response"]["parts"] == [{"text": "mine"}]
    read()
    workbench.editing.undo()
    done = read()
    assert done["models"] <= 1
    assert done["characters"] < 60 * SIZE
    assert [one.eval_id for one in workbench.sets.listed[0].cases] == [f"case {n}" for n in range(CASES)]


async def test_what_was_changed_outside_alone_is_read_alone(opened, read):
    workbench, path = opened
    workbench.editing.data(path)
    theirs = [case(number) for number in range(CASES)]
    theirs[3] = case(3, "theirs")
    path.write_text(written(theirs))
    read()
    await workbench.editing.merge_outside_changes()
    done = read()
    assert done["models"] == 1
    assert done["characters"] < 60 * SIZE
    assert workbench.sets.opened(path).value["eval_cases"][3] == theirs[3]
