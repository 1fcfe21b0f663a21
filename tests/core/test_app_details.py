"""What models were told of their agents."""

from eval_data import make_case

from evaltui import EvalCase, EvalConfig, invocations_from_events, score_case
from evaltui.core.conversation.invocations import app_details_by_turn
from evaltui.core.model.events import SIMULATED_USER, Event, text

LOOK_UP = {"name": "look_up", "description": "Looks it up."}


def asked(agent, turn, instruction="Be kind.", tools=(LOOK_UP,), **data):
    told = {"system_instruction": instruction, "tools": list(tools)} | data
    return Event("model_request", agent=agent, turn=turn, data=told)


def user(turn):
    return Event("user", {"role": "user", "parts": [{"text": "hi"}]}, turn=turn)


def test_the_first_request_of_each_agent_in_a_turn_tells():
    events = [
        user(0),
        asked("root", 0),
        asked("root", 0, "Changed while it worked."),
        asked(
            "helper", 0, {"parts": [{"text": "Help."}, {"text": "Well."}]}, [{"google_search": {}}, LOOK_UP]
        ),
        user(1),
        asked("root", 1, "It is noon.", []),
        user(2),
    ]
    told = {
        turn: {name: (one.instructions, one.tool_declarations) for name, one in details.agent_details.items()}
        for turn, details in app_details_by_turn(events).items()
    }
    assert told == {
        0: {
            "root": ("Be kind.", [{"function_declarations": [LOOK_UP]}]),
            "helper": ("Help.\nWell.", [{"function_declarations": [LOOK_UP]}, {"google_search": {}}]),
        },
        1: {"root": ("It is noon.", [])},
    }


def test_agents_inside_a_tool_and_requests_of_nobody_are_left_out():
    events = [asked("inner", 0, nested=True), asked("", 0), asked("root", 0, None, ())]
    (details,) = app_details_by_turn(events).values()
    assert {name: one.instructions for name, one in details.agent_details.items()} == {"root": ""}


async def test_invocations_have_them_on_request_and_results_do_not_keep_them():
    answer = text("hello", agent="root")
    events = [user(0), asked(SIMULATED_USER, 0), asked("root", 0), answer]
    assert invocations_from_events(events)[0].app_details is None
    (actual,) = invocations_from_events(events, app_details=True)
    assert [*actual.app_details.agent_details] == ["root"]

    case = EvalCase.model_validate(make_case("c", {"user_content": {"parts": []}}))
    (repeat,) = (await score_case(case, [actual], EvalConfig())).repeats
    assert repeat.actual[0].app_details is None
    assert repeat.actual[0].final_response == actual.final_response
