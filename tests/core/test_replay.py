"""The past of a conversation, from what happened and from what a case expects."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from eval_data import make_turn
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.conversation.replay import past_of_turns, steps_of_invocation
from evaltui.core.conversation.waiting import WaitingCalls
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.events import Event, Step, is_made_id, split_step


def content(*parts, role="model"):
    return {"parts": [{"text": part} if isinstance(part, str) else part for part in parts], "role": role}


def call(name, args=None, **more):
    return {"function_call": {"name": name, "args": args or {}, **more}}


def result(name, response=None, **more):
    return {"function_response": {"name": name, "response": response or {}, **more}}


def invocation(**fields):
    return Invocation.model_validate_json(
        json.dumps({"user_content": content("Hello", role="user"), **fields})
    )


def lists(uses=(), responses=(), texts=()):
    return {
        "tool_uses": [use["function_call"] for use in uses],
        "tool_responses": [response["function_response"] for response in responses],
        "intermediate_responses": [[author, content(*parts)["parts"]] for author, *parts in texts],
    }


def told(steps):
    """Each step as its author and what it says: texts, "name?" for calls, "name!" for results."""

    def said(part):
        if "function_call" in part:
            return part["function_call"]["name"] + "?"
        return part["function_response"]["name"] + "!" if "function_response" in part else part["text"]

    return [(step.author, *(said(part) for part in step.parts)) for step in steps]


def ids(steps, kind):
    return [part[kind].get("id") for step in steps for part in step.parts if kind in part]


def pairs(steps):
    return list(zip(ids(steps, "function_call"), ids(steps, "function_response"), strict=True))


def test_a_turn_of_texts_only():
    (user, answer) = steps_of_invocation(
        invocation(final_response=content("Hi!"), creation_timestamp=12.5), turn=3
    )
    assert (user.author, user.turn, user.timestamp) == ("user", 3, 12.5)
    assert user.content == content("Hello", role="user")
    assert (answer.author, answer.turn, answer.content, answer.final) == ("", 3, content("Hi!"), True)
    assert len({user.id, answer.id}) == 2


@pytest.mark.parametrize("final", [None, {"parts": []}, {}])
def test_a_turn_without_an_answer_is_what_the_user_says(final):
    assert told(steps_of_invocation(invocation(final_response=final), 0)) == [("user", "Hello")]


def test_of_the_lists_texts_come_first_then_each_call_with_its_result():
    steps = steps_of_invocation(
        invocation(
            intermediate_data=lists(
                [call("find"), call("book")],
                [result("find"), result("book")],
                [["helper", "Let me look."]],
            ),
            final_response=content("Done."),
        ),
        0,
    )
    assert told(steps) == [
        ("user", "Hello"),
        ("helper", "Let me look."),
        ("", "find?"),
        ("", "find!"),
        ("", "book?"),
        ("", "book!"),
        ("", "Done."),
    ]
    assert [step.final for step in steps] == [False, True, False, False, False, False, True]


def test_ids_are_made_where_there_are_none_and_pair():
    data = lists([call("f"), call("g"), call("f")], [result("f", {"n": 1}), result("f", {"n": 2})])
    steps = steps_of_invocation(invocation(intermediate_data=data), 2)
    first, g, second = ids(steps, "function_call")
    assert ids(steps, "function_response") == [first, second]
    assert len({first, g, second}) == 3
    assert all(map(is_made_id, (first, g, second)))
    again = steps_of_invocation(invocation(intermediate_data=data), 3)
    assert not {first, g, second} & set(ids(again, "function_call"))


def test_ids_that_are_given_are_kept_and_lent_to_the_other_half():
    data = lists(
        [call("f", id="a"), call("f"), call("g"), call("h", id="d")],
        [result("h", id="d"), result("g", id="c"), result("f"), result("f", id="b")],
    )
    steps = steps_of_invocation(invocation(intermediate_data=data), 0)
    assert pairs(steps) == [("a", "a"), ("b", "b"), ("c", "c"), ("d", "d")]


def test_an_id_that_is_made_is_none_that_is_given():
    data = lists([call("f"), call("f", id="call-0.1")])
    made, given_id = ids(steps_of_invocation(invocation(intermediate_data=data), 0), "function_call")
    assert given_id == "call-0.1"
    assert made != given_id


def test_a_result_without_a_call_is_kept_without_an_id():
    data = lists([call("f")], [result("g")])
    steps = steps_of_invocation(invocation(intermediate_data=data), 0)
    assert told(steps)[1:] == [("", "f?"), ("", "g!")]
    assert ids(steps, "function_response") == [None]


def test_a_transfer_in_the_lists_is_one_and_says_who_goes_on():
    transfer = call("transfer_to_agent", {"agent_name": "billing"})
    data = lists([call("look"), transfer, call("pay")], [result("look")])
    steps = steps_of_invocation(invocation(intermediate_data=data, final_response=content("Paid.")), 0)
    assert told(steps)[1:] == [
        ("", "look?"),
        ("", "look!"),
        ("", "transfer_to_agent?"),
        ("", "transfer_to_agent!"),
        ("billing", "pay?"),
        ("billing", "Paid."),
    ]
    assert [step.transfer for step in steps] == [None] * 4 + ["billing", None, None]


@pytest.mark.parametrize("args", [{}, {"agent_name": 5}, {"agent_name": None}])
def test_a_transfer_to_nobody_is_a_call_like_others(args):
    data = lists([call("transfer_to_agent", args)])
    steps = steps_of_invocation(invocation(intermediate_data=data), 0)
    assert told(steps)[1:] == [("", "transfer_to_agent?")]


def test_recorded_events_keep_authors_thoughts_and_what_was_used():
    thought = {"text": "Hm.", "thought": True}
    data = {
        "invocation_events": [
            {
                "author": "root",
                "content": content(thought, call("find", id="x")),
                "usage_metadata": {"total_token_count": 7},
                "model_version": "m-1",
            },
            {"author": "root", "content": content(result("find", {"n": 1}, id="x"), role="user")},
            {"author": "root"},
        ]
    }
    steps = steps_of_invocation(
        invocation(intermediate_data=data, final_response=content(thought, "Found.")), 0
    )
    assert told(steps) == [
        ("user", "Hello"),
        ("root", "Hm.", "find?"),
        ("root", "find!"),
        ("root", "Hm.", "Found."),
    ]
    assert steps[1].parts[0] == thought
    assert (steps[1].usage, steps[1].model_version) == ({"total_token_count": 7}, "m-1")
    assert pairs(steps) == [("x", "x")]


def test_an_answer_that_no_event_stands_for_is_the_last_agents():
    transfer = call("transfer_to_agent", {"agent_name": "billing"})
    events = [
        {"author": "root", "content": content(transfer)},
        {"author": "root", "content": content(result("transfer_to_agent", {"result": None}), role="user")},
    ]
    answered = {"author": "billing", "content": content("One moment.")}
    for recorded in (events, [*events, answered]):
        (*_, last) = steps_of_invocation(
            invocation(
                intermediate_data={"invocation_events": recorded}, final_response=content("All paid.")
            ),
            0,
        )
        assert (last.author, last.parts) == ("billing", [{"text": "All paid."}])


def test_a_call_that_ends_its_turn_is_said_once_and_long_running():
    asked = content("May I?", call("approve", id="x"))
    steps = steps_of_invocation(
        invocation(
            intermediate_data={"invocation_events": [{"author": "root", "content": asked}]},
            final_response=asked,
        ),
        0,
    )
    assert told(steps) == [("user", "Hello"), ("root", "May I?", "approve?")]
    assert steps[-1].long_running == ("x",)
    assert steps[-1].final


NAMES = st.sampled_from(["f", "g", "transfer_to_agent"])
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
USED = st.one_of(st.none(), st.sampled_from(["a", "b", "call-0.1"]))


@st.composite
def expected_lists(draw):
    calls = [
        call(name, {"agent_name": "x"}, **({"id": one} if one else {}))
        for name, one in draw(st.lists(st.tuples(NAMES, USED), max_size=5))
    ]
    results = [
        result(name, {"n": n}, **({"id": one} if one else {}))
        for n, (name, one) in enumerate(draw(st.lists(st.tuples(NAMES, USED), max_size=5)))
    ]
    return calls, results


@given(expected_lists())
def test_no_call_or_result_is_lost_and_results_follow_their_calls(both):
    calls, results = both
    steps = steps_of_invocation(invocation(intermediate_data=lists(calls, results)), 0)
    names = [
        part["function_call"]["name"] for step in steps for part in step.parts if "function_call" in part
    ]
    assert names == [one["function_call"]["name"] for one in calls]
    numbers = [
        part["function_response"]["response"].get("n")
        for step in steps
        for part in step.parts
        if "function_response" in part
    ]
    assert sorted(n for n in numbers if n is not None) == list(range(len(results)))
    assert all(ids(steps, "function_call"))


PARTS = st.one_of(
    st.builds(
        lambda text, thought: {"text": text} | ({"thought": True} if thought else {}), TEXTS, st.booleans()
    ),
    st.just({"inline_data": {"mime_type": "image/png", "data": "cG5n"}}),
)


@st.composite
def recorded_turns(draw):
    """The events of turns: each a message, rounds of calls with their results, and an answer."""
    turns = []
    for turn in range(draw(st.integers(1, 3))):
        numbers = iter(range(100))
        steps = []
        for round_ in range(draw(st.integers(0, 2))):
            calls = [
                call("f", {"n": n}, id=f"adk-{turn}-{next(numbers)}") for n in range(draw(st.integers(1, 2)))
            ]
            agent = draw(st.sampled_from(["root", "billing"]))
            said = draw(st.lists(PARTS, max_size=1))
            steps.append(Step(agent, content(*said, *calls), id=f"{round_}", state={"k": turn}))
            answers = [result("f", {"ok": 1}, id=one["function_call"]["id"]) for one in calls]
            steps.append(Step(agent, content(*answers, role="user"), id=f"{round_}r"))
        answer = content(draw(TEXTS), *draw(st.lists(PARTS, max_size=1)))
        steps.append(Step("root", answer, final=True, id="last"))
        user = Event("user", content(draw(TEXTS), role="user"), turn=turn)
        events = [replace(event, turn=turn) for step in steps for event in split_step(step)]
        noise = Event("model_request", turn=turn, data={"model": "m"})
        piece = Event("text", content("la"), turn=turn, data={"partial": True})
        nested = Event("text", content("within"), turn=turn, data={"nested": True, "step": "n"})
        turns.append([user, noise, piece, nested, *events])
    return turns


@given(recorded_turns())
def test_a_recorded_case_has_the_past_of_what_was_recorded(turns):
    happened = past_of_turns(turns)
    recorded = [
        step
        for turn, one in enumerate(invocations_from_events([event for turn in turns for event in turn]))
        for step in steps_of_invocation(one, turn)
    ]
    shown = [(step.turn, step.author, step.content) for step in happened]
    assert [(step.turn, step.author, step.content) for step in recorded] == shown


def test_the_past_of_turns_counts_them_anew_and_leaves_out_what_did_not_last():
    turns = [
        [
            Event("user", content("a", role="user"), turn=4, data={"timestamp": 1.5}),
            Event("model_request", turn=4),
            Event("text", content("A"), turn=4, agent="bot", data={"step": "step-1", "partial": True}),
            Event("text", content("A"), turn=4, agent="bot", data={"step": "step-2", "final": True}),
            Event(
                "state",
                turn=4,
                agent="bot",
                data={"step": "step-2", "delta": {"n": 1, "m": None}, "removed": ["m"]},
            ),
        ],
        [
            Event("user", content("b", role="user"), turn=7),
            Event("text", content("inner"), turn=7, data={"nested": True, "step": "x"}),
            Event("error", turn=7, data={"message": "no luck"}),
            Event("transfer", turn=7, agent="bot", data={"step": "step-3", "to": "other"}),
        ],
    ]
    past = past_of_turns(turns)
    assert [(step.turn, step.author, step.id) for step in past] == [
        (0, "user", ""),
        (0, "bot", "step-2"),
        (1, "user", ""),
        (1, "bot", "step-3"),
    ]
    assert past[0].timestamp == 1.5
    assert (past[1].state, past[1].removed) == ({"n": 1, "m": None}, ("m",))
    assert past[3].transfer == "other"


STEPS = st.builds(
    Step,
    author=st.sampled_from(["user", "bot"]),
    content=st.none() | st.builds(content, TEXTS) | st.just({}),
    final=st.booleans(),
    usage=st.none() | st.just({}) | st.just({"total_token_count": 3}),
    turn=st.none() | st.integers(0, 3),
    timestamp=st.sampled_from([0.0, 1.25]),
    state=st.none() | st.just({}) | st.just({"a": None}),
    removed=st.sampled_from([(), ("a",)]),
    long_running=st.sampled_from([(), ("x", "y")]),
    framework=st.none() | st.just({"isolation_scope": "x"}),
)


@given(STEPS)
def test_a_step_survives_json(step):
    assert Step.from_json(json.loads(json.dumps(step.to_json()))) == step


def test_requests_and_calls_that_are_responded_to_wait_after_an_expected_turn():
    turn = Invocation.model_validate(
        make_turn(
            "go",
            calls=[
                {"name": "adk_request_input", "args": {"message": "Who?"}},
                {"name": "approve", "args": {}, "id": "later"},
                {"name": "search", "args": {}, "id": "done"},
            ],
        )
    )
    waiting = WaitingCalls()
    waiting.on_past(steps_of_invocation(turn, 0, {"later"}))
    assert [call.name for call in waiting.calls] == ["adk_request_input", "approve"]
