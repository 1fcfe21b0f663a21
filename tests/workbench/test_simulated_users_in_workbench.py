"""Cases with simulated users in the workbench: run, scored again, gone on with, and made a fixed case."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import SIMULATED_USER
from evaltui.documents.values import put
from evaltui.workbench.actions import ACTIONS_BY_ID, Scope
from evaltui.workbench.chat import saving
from evaltui.workbench.state import Selection

SAMPLE = Path(__file__).parents[2] / "sample_agents" / "library_desk"


@pytest.fixture
async def desk(tmp_path, until, open_workbench):
    """The library desk, all of whose cases have been run."""
    folder = tmp_path / "library_desk"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    workbench = await open_workbench(folder)
    workbench.navigation.select(Selection("desk.evalset.json"))
    workbench.runs.run_all()
    await until(lambda: workbench.runs.current is not None and workbench.runs.current.over)
    return workbench


def key(workbench, eval_id):
    return CaseId(workbench.sets.listed[0].case_path, eval_id)


def select(workbench, eval_id):
    workbench.navigation.select(Selection(*key(workbench, eval_id)))
    return key(workbench, eval_id)


async def test_what_came_of_them_also_when_they_are_scored_again(desk, until):
    without, chosen = key(desk, "reader_without_card"), key(desk, "reader_with_card")
    before = desk.outcomes.get(chosen)
    assert desk.outcomes.get(without).result.status == "FAILED"
    assert before.result.status == "PASSED"
    assert before.shown.stopped == "the simulated user ended the conversation after 3 turns"
    assert [turn.user for turn in before.shown.turns] == ["Is Dracula here?", "Yes, please.", "It is 4711."]
    # In the console there is what the agent printed.
    assert [line.text for line in desk.console if line.source == SIMULATED_USER] == []

    where = ("eval_cases", 1, "final_session_state", "reserved")
    assert desk.editing.do("change the state", desk.navigation.file, lambda one: put(one.data, where, "Emma"))
    await until(lambda: desk.outcomes.get(chosen) is not before)
    after = desk.outcomes.get(chosen)
    assert after.result.status == "FAILED"
    assert (after.shown.stopped, after.shown.turns) == (before.shown.stopped, before.shown.turns)


async def test_a_conversation_becomes_a_case_that_passes_at_once(desk, until):
    refusal = partial(ACTIONS_BY_ID["save_as_case"].refusal, scope=Scope.RESULT)
    desk.navigation.select(Selection(desk.sets.listed[0].case_path))
    assert refusal(desk) == "Case not run"
    select(desk, "on_the_shelf")
    assert refusal(desk) == "Only for simulated users; this case has its own user texts"
    select(desk, "reader_with_card")
    assert refusal(desk) is None
    transcript = (await desk.chat.origin(desk.navigation.selection.case)).last_run()
    choices = saving.propose_choices(desk.editing, transcript)
    assert [turn.text for turn in choices.turns] == ["Is Dracula here?", "Yes, please.", "It is 4711."]
    assert ["calls" in turn.has for turn in choices.turns] == [True, False, True]
    assert choices.target == desk.sets.listed[0].path

    assert saving.save(desk.agent, desk.editing, transcript, choices)
    assert desk.navigation.selection.eval_id == "is_dracula_here"
    assert desk.editing.is_dirty(desk.sets.listed[0].path)
    data = desk.editing.data(desk.sets.listed[0].path)
    case = next(one for one in data["eval_cases"] if one["eval_id"] == "is_dracula_here")
    assert "conversation_scenario" not in case
    assert SIMULATED_USER not in json.dumps(case)

    desk.runs.run_case()
    await until(lambda: desk.runs.current.over)
    scored = desk.outcomes.get(desk.navigation.selection.case)
    assert scored.result.status == "PASSED"
    trajectory = next(one for one in scored.result.metrics if one.name == "tool_trajectory_avg_score")
    assert trajectory.score == 1.0


async def test_the_conversation_can_be_gone_on_with(desk, until):
    chosen = select(desk, "reader_without_card")
    origin = await desk.chat.origin(chosen)
    assert [message["parts"][0]["text"] for message in origin.messages] == [
        "I am looking for Ulysses.",
        "Yes, please.",
        "Sorry, I have no card.",
    ]
    desk.chat.continue_from(chosen, 2)
    await until(lambda: desk.chat.transcript is not None and not desk.chat.busy)
    assert [turn.text for turn in desk.chat.transcript.turns] == ["I am looking for Ulysses.", "Yes, please."]
    desk.chat.send({"role": "user", "parts": [{"text": "My card is 0815."}]})
    await until(lambda: not desk.chat.busy)
    last = desk.chat.transcript.turns[-1]
    assert last.state_after == {"title": "Ulysses", "reserved": "Ulysses"}
