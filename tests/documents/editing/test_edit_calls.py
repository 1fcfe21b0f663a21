"""Calls, responses and texts before the answer, in both shapes."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model.validation import validate_case
from evaltui.documents.editing.set import CaseEditor
from tests.changed_values import changed_case


def case_of(intermediate, camel=False):
    user = "userContent" if camel else "user_content"
    turn = {user: {"parts": [{"text": "hi"}], "role": "user"}}
    if intermediate is not None:
        turn["intermediateData" if camel else "intermediate_data"] = intermediate
    key = "evalId" if camel else "eval_id"
    return {"eval_set_id": "s", "eval_cases": [{key: "c", "conversation": [turn, copy.deepcopy(turn)]}]}


def lists(*given):
    return {"tool_uses": [{"name": name, "args": args} for name, args in given]}


def recorded(*groups):
    """Events of calls `(name, args)`; every group is one event, followed by one of their responses."""
    events = []
    number = 0
    for group in groups:
        made, answered = [], []
        for name, args in group:
            number += 1
            made.append({"function_call": {"id": f"id{number}", "name": name, "args": args}})
            answered.append({"function_response": {"id": f"id{number}", "name": name, "response": {}}})
        events.append({"author": "booker", "content": {"parts": made, "role": "model"}})
        events.append({"author": "booker", "content": {"parts": answered, "role": "user"}})
    return {"invocation_events": [*events, {"author": "booker", "model_version": "m"}]}


def named(data, turn=0):
    return [(call.name, call.arguments) for call in CaseEditor(data, 0).turn(turn).calls]


def test_new_keys_are_spelt_as_the_case_is():
    data = case_of(None, camel=True)
    after = changed_case(data, lambda case: case.turn(0).insert_call(0, "book"))
    assert after["eval_cases"][0]["conversation"][0]["intermediateData"] == {
        "toolUses": [{"name": "book", "args": {}}]
    }


def test_a_call_without_neighbours_is_an_event_by_the_author_around_and_before_that_of_the_answer():
    data = case_of({"invocation_events": [{"author": "booker", "model_version": "m"}]})
    after = changed_case(data, lambda case: case.turn(0).insert_call(0, "book"))
    events = after["eval_cases"][0]["conversation"][0]["intermediate_data"]["invocation_events"]
    assert events == [
        {
            "author": "booker",
            "content": {"parts": [{"function_call": {"name": "book", "args": {}}}], "role": "model"},
        },
        {"author": "booker", "model_version": "m"},
    ]


def test_deleting_a_call_takes_its_response_and_the_events_that_are_empty_then():
    data = case_of(recorded([("a", {})], [("b", {}), ("c", {})]))
    after = changed_case(data, lambda case: case.turn(0).call(0).delete())
    assert [r.name for r in CaseEditor(after, 0).turn(0).responses] == ["b", "c"]
    after = changed_case(after, lambda case: case.turn(0).call(0).delete())
    assert [r.id for r in CaseEditor(after, 0).turn(0).responses] == ["id3"]
    after = changed_case(after, lambda case: case.turn(0).call(0).delete())
    assert after["eval_cases"][0]["conversation"][0]["intermediate_data"] == {
        "invocation_events": [{"author": "booker", "model_version": "m"}]
    }


def test_a_response_that_another_call_may_have_stays():
    data = case_of(lists(("a", {}), ("a", {"n": 1})) | {"tool_responses": [{"name": "a", "response": {}}]})
    after = changed_case(data, lambda case: case.turn(0).call(0).delete())
    assert len(CaseEditor(after, 0).turn(0).responses) == 1
    after = changed_case(after, lambda case: case.turn(0).call(0).delete())
    assert CaseEditor(after, 0).turn(0).responses == []


@pytest.mark.parametrize(("call", "to"), [(0, 2), (2, 0), (0, 1), (1, 0)])
def test_a_call_alone_in_its_event_moves_with_its_response(call, to):
    data = case_of(recorded([("a", {})], [("b", {})], [("c", {})]))
    after = changed_case(data, lambda case: case.turn(0).call(call).move(to))
    events = after["eval_cases"][0]["conversation"][0]["intermediate_data"]["invocation_events"]
    order = [next(iter(event["content"]["parts"][0].values()))["id"] for event in events[:-1]]
    assert order[::2] == order[1::2]
    assert len(set(order)) == 3


def test_two_calls_of_one_name_are_told_apart_by_an_id():
    data = case_of(lists(("a", {"n": 1}), ("a", {"n": 2})))
    after = changed_case(data, lambda case: case.turn(0).call(1).add_response({}))
    assert [call.id for call in CaseEditor(after, 0).turn(0).calls] == ["", "call_1"]
    assert CaseEditor(after, 0).turn(0).responses[0].id == "call_1"


@pytest.mark.parametrize("intermediate", [None, lists(("a", {})), recorded([("a", {})])])
def test_what_is_said_before_the_answer(intermediate):
    data = case_of(intermediate)
    after = changed_case(data, lambda case: case.turn(0).add_intermediate_response("booker", "one moment"))
    after = changed_case(after, lambda case: case.turn(0).add_intermediate_response("booker", "still there"))
    after = changed_case(after, lambda case: case.turn(0).intermediate_response(1).set_text("done"))
    after = changed_case(after, lambda case: case.turn(0).intermediate_response(1).set_author("boss"))
    assert [(one.author, one.text) for one in CaseEditor(after, 0).turn(0).intermediate_responses] == [
        ("booker", "one moment"),
        ("boss", "done"),
    ]
    assert named(after) == named(data)
    assert validate_case(after["eval_cases"][0])[0] is not None
    after = changed_case(after, lambda case: case.turn(0).intermediate_response(0).delete())
    after = changed_case(after, lambda case: case.turn(0).intermediate_response(0).delete())
    assert CaseEditor(after, 0).turn(0).intermediate_responses == []


NAMES = st.sampled_from(["find", "book", "pay"])
ARGS = st.dictionaries(st.sampled_from("abc"), st.integers() | st.text(max_size=3), max_size=2)
CALLS = st.lists(st.tuples(NAMES, ARGS), min_size=1, max_size=5)
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "insert", "duplicate", "move", "delete", "rename", "replace", "put"]),
        st.integers(0, 9),
        st.integers(0, 9),
        NAMES,
        ARGS,
    ),
    max_size=6,
)


def perform(data, action):
    kind, index, other, name, args = action

    def change(case):
        turn = case.turn(0)
        count = len(turn.calls)
        if kind == "add" or count == 0:
            turn.insert_call(count, name, args)
        elif kind == "insert":
            turn.insert_call(index % count, name, args)
        else:
            call = turn.call(index % count)
            {
                "duplicate": lambda: call.duplicate(),
                "move": lambda: call.move(other % count),
                "delete": lambda: call.delete(),
                "rename": lambda: call.rename(name),
                "replace": lambda: call.replace_arguments(args),
                "put": lambda: call.put_argument(("a",), other),
            }[kind]()

    return changed_case(data, change)


def expected_after(known, action):
    kind, one, other, name, args = action
    known = copy.deepcopy(known)
    if kind == "add" or not known:
        return [*known, (name, args)]
    call = one % len(known)
    match kind:
        case "insert":
            known.insert(call, (name, args))
        case "duplicate":
            known.insert(call, known[call])
        case "move":
            known.insert(other % len(known), known.pop(call))
        case "delete":
            del known[call]
        case "rename":
            known[call] = (name, known[call][1])
        case "replace":
            known[call] = (known[call][0], args)
        case "put":
            known[call] = (known[call][0], known[call][1] | {"a": other})
    return known


def grouped(made, sizes):
    rest = list(made)
    groups = []
    for size in sizes:
        if rest:
            groups.append(rest[:size])
            rest = rest[size:]
    return [*groups, rest] if rest else groups


@given(CALLS, st.lists(st.integers(1, 3), max_size=3), ACTIONS)
def test_both_shapes_do_the_same_and_stay_what_they_are(made, sizes, actions):
    known = list(made)
    by_hand, by_run = case_of(lists(*made)), case_of(recorded(*grouped(made, sizes)))
    other_turns = [data["eval_cases"][0]["conversation"][1] for data in (by_hand, by_run)]
    for action in actions:
        known = expected_after(known, action)
        by_hand = perform(by_hand, action)
        by_run = perform(by_run, action)
        assert named(by_hand) == named(by_run) == known
    assert (
        CaseEditor(by_hand, 0).turn(0).intermediate.shape,
        CaseEditor(by_run, 0).turn(0).intermediate.shape,
    ) == ("lists", "events")
    assert [data["eval_cases"][0]["conversation"][1] for data in (by_hand, by_run)] == other_turns
    for data in (by_hand, by_run):
        model, problems = validate_case(json.loads(json.dumps(data["eval_cases"][0])))
        assert model is not None
        assert problems == []
