"""Conversations find their cases, and their turns the expected ones."""

import random

from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import EXPECTATION, TURN, USER_MESSAGE, Event
from evaltui.traces.conversations import RecordedConversation, RecordedTurn
from evaltui.traces.pairing import CaseToPair, aligned, aligned_events, pair


def turn(text, number, untold=()):
    content = {"role": "user", "parts": [{"text": text}] if text else []}
    events = (
        Event("user", content, turn=number, data={"step": f"u{number}"}),
        Event("text", {"role": "model", "parts": [{"text": f"re {text}"}]}, agent="a", turn=number),
    )
    return RecordedTurn(events, text, dict.fromkeys(untold, ""))


def conversation(*texts, id="c", **attributes):
    turns = tuple(turn(text, number) for number, text in enumerate(texts))
    return RecordedConversation(id, turns, ("t",), attributes)


def case(eval_id, *messages, set_id="s"):
    return CaseToPair(CaseId(f"{set_id}.json", eval_id), set_id, messages)


def user(*texts):
    return [{"role": "user", "parts": [{"text": text}]} for text in texts]


CASES = [case("one", "Find a lamp"), case("two", "Hello", "Bye"), case("three", "Hello", "Stay")]


def paired(*conversations, cases=CASES, attribute=""):
    found = pair(cases, conversations, attribute)
    return {key.eval_id: [one.id for one in some] for key, some in found.pairs.items()}, [
        (one.conversation.id, one.nearest and one.nearest.eval_id, one.reason) for one in found.unpaired
    ]


def test_by_attribute_then_id_then_text():
    named = {"evaltui.eval.case.id": "two"}
    assert paired(conversation("Find a lamp", id="a", **named)) == ({"two": ["a"]}, [])
    assert paired(conversation("Find a lamp", id="a", mine="one"), attribute="mine") == ({"one": ["a"]}, [])
    assert paired(conversation("Find a lamp", id="a", mine="s:two"), attribute="mine") == ({"two": ["a"]}, [])
    assert paired(conversation("whatever", id="three")) == ({"three": ["three"]}, [])
    assert paired(conversation("  find A\nlamp ", id="a")) == ({"one": ["a"]}, [])
    with_picture = conversation("Find a lamp\n[attachment not recorded: image/png]", id="a")
    assert paired(with_picture) == ({"one": ["a"]}, [])


def test_a_conversation_that_names_no_set_is_a_repeat_beside_one_that_does():
    named = {"evaltui.eval.case.id": "one"}
    told = [conversation("Find a lamp", id=name, **named, **{"evaltui.eval_set.id": name}) for name in "st"]
    by_set, unpaired = paired(*told, conversation("find a lamp", id="plain"))
    assert by_set == {"one": ["s", "plain"]}
    assert unpaired == [("t", "one", "the trace names set t")]


def test_cases_that_begin_alike_are_told_by_the_rest_of_it():
    assert paired(conversation("Hello", "Stay", id="a")) == ({"three": ["a"]}, [])
    found, unpaired = paired(conversation("Hello", "What?", id="a"))
    assert (found, unpaired) == ({}, [("a", "two", "2 cases begin like it")])


def test_what_matches_nothing_is_named_with_the_nearest():
    assert paired(conversation("Find a lamb", id="a")) == ({}, [("a", "one", "")])
    assert paired(conversation("qqqq", id="a")) == ({}, [("a", None, "")])
    assert paired(conversation("", id="a")) == ({}, [("a", None, "the user's message is not in the trace")])
    named = {"evaltui.eval.case.id": "gone"}
    assert paired(conversation("Hello", id="a", **named))[1][0][2] == "no set has a case gone"
    twins = [case("one", "x", set_id="s"), case("one", "y", set_id="t")]
    assert paired(conversation("y", id="one"), cases=twins) == ({"one": ["one"]}, [])


def test_several_conversations_of_a_case_are_its_repeats():
    assert paired(conversation("Find a lamp", id="a"), conversation("Find a lamp", id="b")) == (
        {"one": ["a", "b"]},
        [],
    )


def test_turns_are_aligned_by_what_the_user_says():
    expected = user("Hello there", "Find a lamp", "Thanks a lot")
    assert aligned(expected, conversation("hello  There", "Thanks a lot").turns) == {0: 0, 2: 1}
    assert aligned(expected, conversation("Hi", "Find a lamp, please", "x", "Thanks a lot").turns) == {2: 3}
    long = "x " * 500
    assert aligned(user(f"{long}yes"), conversation(f"{long}no").turns) == {}


def test_turns_whose_messages_are_unknown_are_aligned_by_their_places():
    expected = user("Hello there", "Find a lamp", "Thanks a lot")
    unknown = [turn("", number, [USER_MESSAGE]) for number in range(3)]
    lamp = turn("Find a lamp", 1)
    assert aligned(expected, unknown) == {0: 0, 1: 1, 2: 2}
    assert aligned(expected, [unknown[0], lamp, unknown[2]]) == {0: 0, 1: 1, 2: 2}
    # One of several expected turns, and nobody knows which.
    assert aligned(expected, unknown[:2]) == {}
    assert aligned(expected, [lamp, unknown[2]]) == {1: 0, 2: 1}
    assert aligned(expected, [unknown[0], turn("Find a lamb", 1), unknown[2]]) == {0: 0, 2: 2}


def test_missing_and_extra_turns_say_so():
    expected = user("Hello there", "Find a lamp", "Thanks a lot")
    events, places = aligned_events(expected, conversation("Hello there", "A joke?", "Thanks a lot"))
    assert places == (0, None, 2)
    found = invocations_from_events(events)
    assert [set(one.untold) for one in found] == [set(), {TURN}, set(), {EXPECTATION}]
    assert found[1].user_content.parts[0].text == "Find a lamp"
    assert found[3].user_content.parts[0].text == "A joke?"


@given(st.lists(st.sampled_from(["alpha beta", "gamma delta", "epsilon", ""]), max_size=6), st.randoms())
def test_an_alignment_keeps_the_order_and_uses_each_turn_once(messages, choice):
    held = [one for one in messages if choice.random() < 0.7]
    held.insert(choice.randint(0, len(held)), "zzz yyy")
    pairs = aligned(user(*messages), conversation(*held).turns)
    assert list(pairs.values()) == sorted(set(pairs.values()))
    assert list(pairs) == sorted(pairs)
    assert all(messages[one] == held[other] for one, other in pairs.items())
    # Nothing that both have, in order, is left out.
    assert len(pairs) == len(held) - 1


def test_a_thousand_conversations_are_paired_without_comparing_all_of_them():
    cases = [case(f"c{n}", f"question number {n}") for n in range(1000)]
    conversations = [conversation(f"question number {n}", id=f"x{n}") for n in range(1000)]
    random.Random(1).shuffle(conversations)
    found = pair(cases, conversations)
    assert not found.unpaired
    assert all(key.eval_id == f"c{one.id[1:]}" for key, (one,) in found.pairs.items())
