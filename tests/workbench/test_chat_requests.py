"""Responses to calls that wait, in a conversation that goes back, is sent again, and meets new code."""

import pytest

pytest.importorskip("google.adk")

from requesting_agents import BOOKING, write_agent

from evaltui.tui.chat.message import MessageDraft
from evaltui.workbench.chat.rows import ChatRows

# Two imports of google-adk; what goes on in a session is tried every day in test_adk_waiting.
pytestmark = [pytest.mark.adk, pytest.mark.thorough]

ADA = '{"name": "Ada", "age": 5}'


@pytest.fixture
async def booking(tmp_path, until, open_workbench):
    workbench = await open_workbench(write_agent(tmp_path / "booking", BOOKING))

    async def talk(*typed):
        for text in typed:
            draft = MessageDraft()
            workbench.chat.send(draft.content(text, draft.target(workbench.chat.waiting())))
            await until(lambda: not workbench.chat.busy)
        return said(workbench)

    workbench.talk = talk
    return workbench


def said(workbench):
    rows = ChatRows()
    rows.follow(workbench.chat.transcript)
    shown = [row.text for row in rows.rows if row.kind in ("user", "text", "request", "error")]
    return shown[-1]


async def test_a_response_goes_on_after_rewind_resend_replay_and_new_code(booking, until):
    chat = booking.chat
    assert await booking.talk("hi") == "Where to?"
    assert await booking.talk("Oslo") == "Who goes to Oslo?"
    assert await booking.talk(ADA) == "Booked for Ada, 5."
    first = [turn.content for turn in chat.transcript.turns]

    chat.rewind(2)
    await until(lambda: not chat.busy)
    draft = MessageDraft()
    assert draft.load(chat.take_proposal()) == ADA
    (call,) = chat.waiting()
    assert draft.target(chat.waiting()) == call
    assert await booking.talk('{"name": "Bo", "age": 6}') == "Booked for Bo, 6."

    turn = chat.transcript.turns[1]
    assert draft.replace_turn(turn, "") == "Oslo"
    target = draft.target(chat.waiting(turn))
    assert target.args["message"] == "Where to?"
    chat.resend(1, draft.content("Rome", target))
    await until(lambda: not chat.busy)
    assert said(booking) == "Who goes to Rome?"
    assert await booking.talk(ADA) == "Booked for Ada, 5."

    # The whole of it on new code: its calls have other ids.
    agent = booking.agent.dir / "agent.py"
    agent.write_text(agent.read_text("utf-8").replace("Booked", "Reserved"), encoding="utf-8")
    chat.replay()
    await until(lambda: not chat.busy)
    assert said(booking) == "Reserved for Ada, 5."
    turns = chat.transcript.turns
    assert [turn.stage for turn in turns] == ["done"] * 3
    assert (
        turns[1].content["parts"][0]["function_response"]["id"]
        != first[1]["parts"][0]["function_response"]["id"]
    )
    assert [turn.difference.sentence for turn in turns] == ["", "", "response differs"]
    # It never began again.
    assert chat.transcript.state == {"begun": 1}

    # The response alone, where nothing waits for it.
    chat.resend(0, turns[1].content)
    await until(lambda: not chat.busy)
    (turn,) = chat.transcript.turns
    assert "turn 1 responds to adk_request_input, but no call waits" in turn.error.message
