"""Accepting what the agent did: what there is to choose, what would change, one step for undo."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time

import pytest
from eval_data import make_case, make_set, make_turn

from evaltui.core.model.case_id import CaseId
from evaltui.documents.values import put
from evaltui.views.cause import differences_of
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.agent.background import Progress
from evaltui.workbench.result.acceptable import (
    choices_in_list,
    choices_in_result,
    refuses_in_list,
    refuses_in_result,
)
from evaltui.workbench.result.accepting import accept, effects, propose
from evaltui.workbench.result.stored_results import RunResults, _cached_result
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

HOUSE = """
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        session.state["said"] = message
        if message == "crash":
            raise ValueError("boom")
        if message == "light off":
            yield tool_call("set_light", {"room": "Kitchen", "on": "no", "level": 2})
            yield tool_call("notify", {})
        yield text("The kitchen light is now off.")
"""
LIGHT = {"name": "set_light", "args": {"room": "Kitchen", "on": False, "level": 1}}
OFF = "The kitchen light is now off."


def turn(said, answer, *calls):
    return make_turn(said, answer, list(calls))


@pytest.fixture
def house(write_agent):
    folder = write_agent(HOUSE, name="house")
    cases = {
        "fine": [turn("hello", OFF)],
        "dark": [turn("hello", OFF), turn("light off", "Done, it is dark in there.", LIGHT)],
        "wrong": [turn("hello", "Something else entirely.")],
        "crashes": [turn("crash", "x")],
    }
    cases = [make_case(eval_id, *turns) for eval_id, turns in cases.items()]
    cases[2]["final_session_state"] = {"said": "goodbye"}
    data = make_set("lights", *cases)
    (folder / "lights.evalset.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def many(house):
    cases = [make_case(f"case_{n}", turn(f"hello {n}", "Else.")) for n in range(40)]
    data = make_set("lights", *cases)
    (house / "lights.evalset.json").write_text(json.dumps(data, indent=2), encoding="utf-8")
    return house


async def ran(folder, until, select="dark"):
    workbench = Workbench(folder)
    await workbench.open()
    path = workbench.sets.listed[0].path
    workbench.navigation.select(Selection(path.name, select))
    workbench.runs.run_all()
    await until(lambda: workbench.runs.current.over)
    return workbench, path


def titles(choices):
    return [choice.title for choice in choices]


def chosen(workbench, title):
    return next(choice for choice in choices_in_result(workbench.editing) if choice.title == title)


def changed(proposal):
    return [
        f"{line.number} {line.op} {line.text.strip()}" for file in proposal.changes for line in file.lines
    ]


async def test_from_the_selected_difference_to_every_failing_case(house, until):
    workbench, _ = await ran(house, until)
    assert titles(choices_in_result(workbench.editing)) == ["Whole case", "All 3 failing in view"]
    workbench.navigation.select_difference(DifferenceAt("argument", 1, 0, "on"))
    assert titles(choices_in_result(workbench.editing)) == [
        "This argument",
        "This call",
        "Calls of this turn",
        "Response of this turn",
        "This turn",
        "Whole case",
        "All 3 failing in view",
    ]
    workbench.navigation.select_difference(DifferenceAt("answer", 1))
    assert titles(choices_in_result(workbench.editing))[:3] == [
        "This response",
        "Calls of this turn",
        "This turn",
    ]
    workbench.navigation.set_filter("dark")
    assert titles(choices_in_result(workbench.editing))[-1] == "Whole case"


async def test_a_set_that_was_broken_meanwhile_is_named(house, until):
    workbench, path = await ran(house, until)
    choice = chosen(workbench, "Whole case")
    path.write_text('{"eval_set_id": "x')
    proposal = await propose(workbench.editing, choice)
    assert "not valid JSON" in proposal.problem
    assert not proposal.changes


async def test_every_failing_case_is_one_step_and_what_cannot_be_accepted_is_named(house, until):
    workbench, path = await ran(house, until)
    before = path.read_text()
    proposal = await propose(workbench.editing, chosen(workbench, "All 3 failing in view"))
    assert [file.cases for file in proposal.changes] == [2]
    assert proposal.remarks == ("1 of 3 cases left out: Incomplete: run ended with an error   r  Run case",)
    assert accept(workbench.editing, proposal)
    for name in ("dark", "wrong"):
        await until(lambda name=name: workbench.outcomes.status(CaseId(path.name, name)) == "PASSED")
    assert workbench.editing.dirty_cases(path) == {"dark", "wrong"}
    workbench.editing.undo()
    assert workbench.editing.open_file(path).document.text == before
    assert workbench.editing.undo_label is None


@pytest.mark.parametrize("key", ["eval_cases", "evalCases"])
async def test_the_effect_is_shown_whatever_the_spelling_of_the_set(house, until, key):
    path = house / "lights.evalset.json"
    path.write_text(path.read_text().replace("eval_cases", key))
    workbench, _ = await ran(house, until, select="wrong")
    proposal = await propose(workbench.editing, chosen(workbench, "Whole case"))
    [(before, after)] = [both async for both in effects(workbench, proposal, 1)]
    assert (before.status, after.status) == ("FAILED", "PASSED")


async def test_in_the_list_the_marked_cases_come_before_the_selected_one(house, until):
    workbench, path = await ran(house, until, select="fine")
    assert titles(choices_in_list(workbench.editing)) == ["All 3 failing in view"]
    workbench.navigation.select(Selection(path.name, "dark"))
    assert titles(choices_in_list(workbench.editing)) == ["Whole case", "All 3 failing in view"]
    workbench.navigation.marking.toggle([CaseId(path.name, "wrong"), CaseId(path.name, "fine")])
    (choice,) = choices_in_list(workbench.editing)
    assert choice.title == "All 2 marked"
    proposal = await propose(workbench.editing, choice)
    assert any("No difference in calls, response or state" in remark for remark in proposal.remarks)
    assert accept(workbench.editing, proposal)
    assert not workbench.navigation.marking
    await until(lambda: workbench.outcomes.status(CaseId(path.name, "wrong")) == "PASSED")


async def test_a_value_of_the_final_state(house, until):
    workbench, _ = await ran(house, until, select="wrong")
    workbench.navigation.select_difference(DifferenceAt("state", path="said"))
    proposal = await propose(workbench.editing, chosen(workbench, "This value"))
    assert [line.split(" ", 1)[1] for line in changed(proposal)] == [
        '- "said": "goodbye"',
        '+ "said": "hello"',
    ]


async def test_differences_are_listed_as_they_are_selected(house, until):
    workbench, path = await ran(house, until)
    found = list(differences_of(workbench.outcomes.get(CaseId(path.name, "dark")).result))
    assert found == [
        DifferenceAt("argument", 1, 0, "on"),
        DifferenceAt("argument", 1, 0, "level"),
        DifferenceAt("call", 1, 1),
        DifferenceAt("answer", 1),
    ]
    workbench.navigation.select_difference(found[2])
    assert workbench.navigation.difference == found[2]
    workbench.navigation.select(Selection(path.name, "wrong"))
    assert workbench.navigation.difference is None
    workbench.navigation.select(Selection(path.name, "dark"))
    assert workbench.navigation.difference == found[2]


async def test_why_nothing_can_be_accepted(house, until, open_workbench):
    workbench = await open_workbench(house)
    path = workbench.sets.listed[0].path
    assert refuses_in_list(workbench.editing) == "Not run   r  Run case"
    workbench.runs.run_all()
    await until(lambda: workbench.runs.current.over)
    workbench.navigation.select(Selection(path.name, "crashes"))
    assert "ended with an error" in refuses_in_result(workbench.editing)
    workbench.navigation.select(Selection(path.name))
    assert refuses_in_result(workbench.editing) == "No case selected"
    assert refuses_in_list(workbench.editing) is None


async def test_what_has_changed_since_the_run_is_said(house, until):
    workbench, path = await ran(house, until)
    later = time.time() + 60
    os.utime(house / "agent.py", (later, later))
    workbench.navigation.select_difference(DifferenceAt("argument", 1, 0, "on"))
    assert not (await propose(workbench.editing, chosen(workbench, "This argument"))).remarks
    with (house / "agent.py").open("a") as file:
        file.write("# more")
    workbench.editing.do(
        "say", path, lambda eval_set: eval_set.case(1).turn(1).user.set_text("light off, please")
    )
    proposal = await propose(workbench.editing, chosen(workbench, "This argument"))
    assert proposal.remarks == (
        "agent.py changed after run 1   r  Run case",
        "the user message of turn 2 changed after run 1   r  Run case",
    )
    assert proposal.changes


@pytest.mark.parametrize("where", ["here", "on disk"])
async def test_a_session_that_was_changed_since_the_run_is_said(house, until, where):
    workbench, path = await ran(house, until)
    workbench.navigation.select_difference(DifferenceAt("argument", 1, 0, "on"))
    case = workbench.navigation.selection.case
    session = {"app_name": "house", "user_id": "me", "state": {"room": "attic"}}
    if where == "here":
        number = workbench.sets.listed[0].number(case.eval_id)
        place = ("eval_cases", number, "session_input")
        assert workbench.editing.do("change the state", path, lambda one: put(one.data, place, session))
    else:
        data = json.loads(path.read_text())
        (changed,) = [one for one in data["eval_cases"] if one["eval_id"] == case.eval_id]
        changed["session_input"] = session
        path.write_text(json.dumps(data))
    proposal = await propose(workbench.editing, chosen(workbench, "This argument"))
    assert proposal.remarks == ("what the case gives the agent changed after run 1   r  Run case",)


async def test_what_was_shown_is_what_is_done(house, until):
    workbench, path = await ran(house, until)
    proposal = await propose(workbench.editing, chosen(workbench, "Whole case"))
    workbench.editing.do("say", path, lambda eval_set: eval_set.case(0).turn(0).user.set_text("hi"))
    text = workbench.editing.open_file(path).document.text
    assert not accept(workbench.editing, proposal)
    assert "changed on disk" in workbench.messages.notice.text
    assert workbench.editing.open_file(path).document.text == text


async def test_a_run_whose_log_is_gone_cannot_be_accepted(house, until):
    workbench, path = await ran(house, until)
    workbench.runs.current.log.unlink()
    proposal = await propose(workbench.editing, chosen(workbench, "Whole case"))
    assert proposal.problem == "Run log of run 1 was deleted; run again"
    assert not proposal.changes
    assert not workbench.editing.is_dirty(path)


async def test_of_many_cases_each_is_validated_once(many, until, monkeypatch):
    from evaltui.core.model import validation

    workbench, path = await ran(many, until, "case_0")
    validated, check = [], validation.validate_case
    monkeypatch.setattr(
        validation, "validate_case", lambda raw: validated.append(raw["eval_id"]) or check(raw)
    )
    proposal = await propose(workbench.editing, chosen(workbench, "All 40 failing in view"))
    assert accept(workbench.editing, proposal)
    assert sorted(validated) == sorted(f"case_{number}" for number in range(40))
    await until(lambda: workbench.outcomes.counts_of() == {"PASSED": 40})
    accepted = workbench.editing.document(path).text
    validated.clear()
    workbench.editing.undo()
    assert workbench.editing.document(path).text == path.read_text(encoding="utf-8")
    workbench.editing.redo()
    assert workbench.editing.document(path).text == accepted
    assert validated == []


async def test_what_is_taken_back_before_it_was_scored_is_not_scored(many, until):
    workbench, path = await ran(many, until, "case_0")
    proposal = await propose(workbench.editing, chosen(workbench, "All 40 failing in view"))
    assert accept(workbench.editing, proposal)
    # Some of them are scored, one is being scored.
    await until(lambda: workbench.outcomes.counts_of()["PASSED"] > 2)
    workbench.editing.undo()
    await workbench.outcomes.rescored([path])
    assert workbench.outcomes.counts_of() == {"FAILED": 40}


async def test_what_many_cases_did_is_read_beside_the_loop_and_can_be_cancelled(many, until, monkeypatch):
    workbench, path = await ran(many, until, "case_0")
    read, events_of, go_on = [], workbench.outcomes.traces.events_of, threading.Event()

    def held(case):
        read.append(case)
        assert len(read) < 3 or go_on.wait(15)
        return events_of(case)

    monkeypatch.setattr(workbench.outcomes.traces, "events_of", held)
    choice = chosen(workbench, "All 40 failing in view")
    _cached_result.cache_clear()
    readers, read_result, here = [], RunResults.read, threading.current_thread()
    monkeypatch.setattr(
        RunResults,
        "read",
        lambda log, place: readers.append(threading.current_thread()) or read_result(log, place),
    )
    progress = Progress()
    proposing = asyncio.create_task(propose(workbench.editing, choice, progress))
    # The loop goes on although the third case is being read.
    await until(lambda: len(read) == 3)
    assert (progress.done, progress.total) == (3, 40)
    proposing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await proposing
    go_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert len(read) == 3
    assert readers
    assert here not in readers
    assert not workbench.editing.is_dirty(path)
