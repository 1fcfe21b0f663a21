"""A google-adk agent that asks a person goes on with the response, also from a past."""

from __future__ import annotations

import pytest

pytest.importorskip("google.adk")

from requesting_agents import BOOKING, DESK, response, root_agent
from talking import over_the_wire, user

from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.agents.adapters.base import Reporter, SessionSpec, recording
from evaltui.core.conversation.drafting import TurnDraft, draft_case
from evaltui.core.conversation.replay import past_of_turns, steps_of_invocation
from evaltui.core.conversation.waiting import WaitingCalls, waiting_calls
from evaltui.core.model.eval_set import Invocation

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore")]

CONFIRM, INPUT = "adk_request_confirmation", "adk_request_input"


async def talk(source, messages, cuts=()):
    """Say the messages, responses to what waits; in a new session, with a new agent, at the cuts."""
    turns = []
    reporter = Reporter(lambda event: (turns[-1].append(event), waiting.on_event(event)))
    waiting, session = WaitingCalls(), None
    for number, message in enumerate(messages):
        if session is None or number in cuts:
            past = over_the_wire(past_of_turns(turns))
            session = await AdkAdapter(root_agent(source)).new_session(SessionSpec(), reporter, past)
            waiting = WaitingCalls()
            waiting.on_past(past)
        turns.append([])
        reporter.turn = number
        content = waiting.resolved(message, number)
        reporter.event("user", content)
        with recording(reporter):
            await session.send(content)
    return turns, await session.state()


def came_of(turns):
    """What tools returned and what was said in the last turn."""
    parts = [
        part for event in turns[-1] if event.kind != "user" for part in (event.content or {}).get("parts", ())
    ]
    results = [part["function_response"]["response"] for part in parts if "function_response" in part]
    return [*results, *(part["text"] for part in parts if part.get("text"))]


CONVERSATIONS = {
    "asked by the tool": (
        DESK,
        [user("wire"), response(CONFIRM, {"confirmed": True, "payload": {"at_most": 2}})],
        {"wired": 2},
    ),
    "one after another": (
        DESK,
        [
            user("approve pay"),
            response("approve", {"ok": True}),
            user("hello"),
            response(CONFIRM, {"confirmed": True}),
        ],
        {"paid": 3},
    ),
    "a workflow": (
        BOOKING,
        [user("hi"), response(INPUT, {"result": "Oslo"}), response(INPUT, {"name": "Ada", "age": 5})],
        "Booked for Ada, 5.",
    ),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_a_response_goes_on_with_what_waits_wherever_the_conversation_is_cut(name):
    source, messages, answer = CONVERSATIONS[name]
    for cuts in ((), *((cut,) for cut in range(1, len(messages))), range(len(messages))):
        turns, state = await talk(source, messages, cuts)
        assert answer in came_of(turns)
        assert waiting_calls(turns) == []
        assert state.get("begun", 1) == 1


async def test_what_is_asked_is_known():
    turns, _ = await talk(BOOKING, [user("hi"), response(INPUT, {"result": "Oslo"})])
    (call,) = waiting_calls(turns)
    assert (call.name, call.args["message"], call.args["payload"]) == (
        INPUT,
        "Who goes to Oslo?",
        {"to": "Oslo"},
    )
    assert call.args["response_schema"]["required"] == ["name", "age"]


async def goes_on_from_a_case(source, message, answer):
    """What came of a response after a turn as a case of it expects that turn."""
    turns, _ = await talk(source, [message])
    case = draft_case("one", [TurnDraft(turns[0])], app_name="", user_id="", state={}).case
    turn = Invocation.model_validate(case["conversation"][0])
    past = steps_of_invocation(turn, 0)
    heard = [[]]
    reporter = Reporter(heard[0].append)
    reporter.turn = 1
    session = await AdkAdapter(root_agent(source)).new_session(SessionSpec(), reporter, over_the_wire(past))
    waiting = WaitingCalls()
    waiting.on_past(past)
    with recording(reporter):
        await session.send(waiting.resolved(answer, 1))
    return came_of(heard)


async def test_a_confirmation_goes_on_from_a_turn_as_a_case_expects_it():
    confirmed = response(CONFIRM, {"confirmed": True, "payload": {"at_most": 2}})
    assert {"wired": 2} in await goes_on_from_a_case(DESK, user("wire"), confirmed)
    assert {"paid": 3} in await goes_on_from_a_case(DESK, user("pay"), response(CONFIRM, {"confirmed": True}))


async def test_a_workflow_says_that_it_cannot():
    with pytest.raises(ValueError, match="a workflow cannot continue from expected turns"):
        await goes_on_from_a_case(BOOKING, user("hi"), response(INPUT, {"result": "Oslo"}))
