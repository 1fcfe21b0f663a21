"""Conversations with an ADK agent: going back keeps the agent that had taken over."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("google.adk")

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.chat.conversation import SessionStart
from evaltui.workbench.chat.rows import ChatRows

pytestmark = pytest.mark.adk

SAMPLE = Path(__file__).parents[2] / "sample_agents" / "travel_desk"
FLIGHT, BOOK, THANKS = "Find me a flight to Oslo on 2026-09-01", "Please book it, 2 seats", "Thank you"


@pytest.fixture
async def desk(tmp_path, until, open_workbench):
    folder = shutil.copytree(SAMPLE, tmp_path / "travel_desk")
    workbench = await open_workbench(folder)

    async def talk(*messages):
        for message in messages:
            workbench.chat.send({"role": "user", "parts": [{"text": message}]})
            await until(lambda: not workbench.chat.busy)
        return [row for row in rows_of(workbench) if row.kind == "text"][-1]

    workbench.talk = talk
    return workbench


def rows_of(workbench):
    rows = ChatRows()
    rows.follow(workbench.chat.transcript)
    return rows.rows


async def test_going_back_keeps_who_had_the_conversation(desk):
    desk.chat.new(SessionStart("desk", "ann", "s1", {"home_city": "Lisbon"}))
    thanks = await desk.talk(FLIGHT, BOOK, THANKS)
    assert thanks.who == "bookings"
    before = desk.chat.transcript.state
    desk.chat.rewind(2)
    again = await desk.talk(THANKS)
    assert (again.who, again.text) == (thanks.who, thanks.text)
    assert desk.chat.transcript.state == before
    assert before["home_city"] == "Lisbon"


async def test_a_case_is_continued_without_asking_the_agent_first(desk, until):
    path = desk.sets.listed[0].path
    entry = next(case for case in desk.sets.listed[0].cases if case.outline.turns == 3)
    desk.chat.continue_from(CaseId(path.name, entry.eval_id), 2, source="case")
    await until(lambda: desk.chat.transcript is not None and not desk.chat.busy)
    assert desk.chat.transcript.broken is None
    thanks = await desk.talk(THANKS)
    assert (thanks.who, thanks.text) == ("bookings", "You are welcome. Have a good trip!")


OUTPUT_BESIDE_A_TEXT = """
    from google.adk.events.event import Event
    from google.adk.workflow import Workflow

    def node():
        return Event(message="shown", output={"value": 1})

    root_agent = Workflow(name="flow", edges=[("START", node)])
"""


async def test_a_repeated_turn_with_another_text_beside_its_output_differs(
    write_agent, until, open_workbench
):
    folder = write_agent(OUTPUT_BESIDE_A_TEXT)
    workbench = await open_workbench(folder)
    workbench.chat.new(SessionStart())
    workbench.chat.send({"role": "user", "parts": [{"text": "go"}]})
    await until(lambda: not workbench.chat.busy)
    path = folder / "agent.py"
    path.write_text(path.read_text().replace("shown", "another"))
    workbench.chat.replay()
    await until(lambda: not workbench.chat.busy)
    assert workbench.chat.transcript.turns[0].difference.sentence == "response differs"
