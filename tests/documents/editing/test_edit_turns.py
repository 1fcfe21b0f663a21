"""Turns, their texts and files, their expectations, and the marks in the config that go with them."""

import base64

import pytest
from eval_data import make_case, make_set, make_turn
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.model.problems import problems_of
from evaltui.core.model.validation import validate_case
from evaltui.documents.editing.references import References
from evaltui.documents.editing.set import CaseEditor
from evaltui.documents.editing.turn import EXPECTATION_KINDS, TurnExpectation
from evaltui.documents.edits import EditError
from evaltui.project.config_references import ScoredSets
from tests.changed_values import changed, changed_case, changed_set

IMAGE = {"inline_data": {"data": "__4_Pg==", "mime_type": "image/png"}}


def conversation(count):
    return [make_turn(f"turn {number}", invocation_id=f"i{number}") for number in range(count)]


def data_of(*given_turns):
    return make_set("s", make_case("c", *given_turns))


def turn(data, number=0):
    return data["eval_cases"][0]["conversation"][number]


def config_of(*marks):
    entries = [{"set": "s", "case": "c", "turn": number, "mode": mode} for number, mode in marks]
    return {
        "criteria": {"tool_trajectory_avg_score": 1.0},
        "evaltui": {"turns": entries, "thoughts": "score"},
    }


def test_only_the_text_of_the_user_changes():
    data = data_of({"user_content": {"parts": [IMAGE, {"text": "old"}, {"text": "second"}]}})
    after = changed_case(data, lambda case: case.turn(0).user.set_text("new\nlines"))
    assert turn(after)["user_content"] == {"parts": [IMAGE, {"text": "new\nlines"}, {"text": "second"}]}
    after = changed_case(data, lambda case: case.turn(0).user.set_text("new", part=2))
    assert turn(after)["user_content"]["parts"][1:] == [{"text": "old"}, {"text": "new"}]
    with pytest.raises(EditError, match="not a text"):
        CaseEditor(data, 0).turn(0).user.set_text("new", part=0)


@pytest.mark.parametrize("content", [{"parts": [IMAGE]}, {"parts": []}, {"parts": None}, {}])
def test_a_message_without_a_text_gets_one(content):
    data = data_of({"user_content": content})
    after = changed_case(data, lambda case: case.turn(0).user.set_text("hi"))
    assert turn(after)["user_content"]["parts"] == [*(content.get("parts") or []), {"text": "hi"}]


def test_thoughts_of_the_answer_are_kept_and_the_answer_can_go():
    thought = {"text": "hm", "thought": True}
    data = data_of({"user_content": {"parts": []}, "final_response": {"parts": [thought]}})
    after = changed_case(data, lambda case: case.turn(0).answer.set_text("yes"))
    assert turn(after)["final_response"]["parts"] == [thought, {"text": "yes"}]
    after = changed_case(after, lambda case: case.turn(0).answer.remove())
    assert "final_response" not in turn(after)
    assert changed_case(after, lambda case: case.turn(0).answer.remove()) == after
    after = changed_case(after, lambda case: case.turn(0).answer.set_text("yes"))
    assert turn(after)["final_response"] == {"parts": [{"text": "yes"}], "role": "model"}


def test_a_file_is_attached_in_the_spelling_of_the_case_and_can_be_removed():
    data = data_of({"userContent": {"parts": [{"text": "look"}]}})
    after = changed_case(data, lambda case: case.turn(0).user.attach_file(b"\xff\xfe?>", "image/png"))
    blob = turn(after)["userContent"]["parts"][1]["inlineData"]
    assert blob == {"data": "__4_Pg==", "mimeType": "image/png"}
    assert base64.urlsafe_b64decode(blob["data"]) == b"\xff\xfe?>"
    model, _ = validate_case({"evalId": "c", "conversation": [turn(after)]})
    assert model.conversation[0].user_content.parts[1].inline_data.data == b"\xff\xfe?>"
    assert changed_case(after, lambda case: case.turn(0).user.remove_part(1)) == data


def test_a_turn_is_added_in_the_spelling_of_its_case():
    data = data_of({"userContent": {"parts": []}})
    after = changed_case(data, lambda case: case.insert_turn(1, "more"))
    assert turn(after, 1) == {"userContent": {"parts": [{"text": "more"}], "role": "user"}}


def test_a_simulated_user_has_no_turns():
    data = {"eval_cases": [{"eval_id": "c", "conversation_scenario": {"starting_prompt": "a"}}]}
    with pytest.raises(EditError, match="simulated"):
        changed_case(data, lambda case: case.insert_turn(0))


def changing(name, place, number):
    def change(eval_set):
        case = eval_set.case(0)
        of = case if name == "insert_turn" else case.turn(number % case.turn_count)
        getattr(of, name)(*place)

    return change


TURN_ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "duplicate", "move", "delete"]), st.integers(0, 9), st.integers(0, 9)
    ),
    max_size=6,
)


@given(st.sets(st.integers(0, 3)), TURN_ACTIONS)
def test_marks_stay_with_their_turns(marked, actions):
    data = data_of(*conversation(4))
    config = config_of(*((number, "context") for number in sorted(marked)))
    config["evaltui"]["turns"].append({"set": "other", "case": "c", "turn": 1, "mode": "skip"})
    texts = [(f"turn {number}", number in marked) for number in range(4)]
    for kind, one, other in actions:
        if kind == "insert" or not texts:
            index = one % (len(texts) + 1)
            name, place = "insert_turn", (index,)
            texts.insert(index, ("", False))
        elif kind == "duplicate":
            name, place = "duplicate", ()
            texts.insert(one % len(texts), texts[one % len(texts)])
        elif kind == "move":
            name, place = "move", (other % len(texts),)
            count = len(texts)
            texts.insert(other % count, texts.pop(one % count))
        else:
            name, place = "delete", ()
            del texts[one % len(texts)]
        data, config = changed_set(data, config, changing(name, place, one))
    found = [
        (
            CaseEditor(data, 0).turn(number).user.texts[0].text,
            References(config).turn_mode(("s", "c"), number) == "context",
        )
        for number in range(len(texts))
    ]
    assert found == texts
    assert References(config).turn_mode(("other", "c"), 1) == "skip"
    sets = ScoredSets({"s": {"c": len(texts)}, "other": {"c": 2}}, {})
    assert problems_of("references", config, sets) == []
    assert validate_config(config)[0] is not None
    ids = [one.get("invocation_id") for one in data["eval_cases"][0]["conversation"]]
    assert len([one for one in ids if one]) == len({one for one in ids if one})


CALLS = {"tool_uses": [{"name": "a", "args": {}}], "tool_responses": [{"name": "a", "response": {}}]}
EVENTS = {
    "invocation_events": [
        {"author": "x", "content": {"parts": [{"text": "so"}, {"function_call": {"name": "a"}}]}},
        {"author": "x", "content": {"parts": [{"function_response": {"name": "a", "response": {}}}]}},
    ]
}
START = [None, CALLS, EVENTS, {}, {"tool_uses": []}, {"invocation_events": []}]


@pytest.mark.parametrize("intermediate", START)
@given(kinds=st.lists(st.sampled_from(EXPECTATION_KINDS), min_size=1, max_size=4), context=st.booleans())
def test_every_kind_of_expectation_leads_to_every_other(intermediate, kinds, context):
    data = data_of({"user_content": {"parts": []}, "intermediate_data": intermediate}, *conversation(1))
    config = config_of((1, "skip"))
    for kind in kinds:
        data, config = changed_set(
            data, config, lambda eval_set: eval_set.case(0).turn(0).set_context(on=context)
        )
        data, config = changed_set(
            data, config, lambda eval_set, kind=kind: eval_set.case(0).turn(0).set_expectation(kind)
        )
        assert CaseEditor(data, 0, config).turn(0).expectation == TurnExpectation(
            kind, context and kind != "unchecked"
        )
        assert validate_case(data["eval_cases"][0])[0] is not None
        assert validate_config(config)[0] is not None
        assert CaseEditor(data, 0, config).turn(1).expectation.kind == "unchecked"
        assert turn(data, 1) == conversation(1)[0]


def test_a_mark_makes_the_block_it_needs_and_takes_its_list_along():
    data = data_of(*conversation(1))
    for config in ({"criteria": {}}, {"criteria": {}, "evaltui": {"thoughts": "score"}}):
        _, marked = changed_set(
            data, config, lambda eval_set: eval_set.case(0).turn(0).set_expectation("unchecked")
        )
        assert References(marked).turn_mode(("s", "c"), 0) == "skip"
        _, back = changed_set(
            data, marked, lambda eval_set: eval_set.case(0).turn(0).set_expectation("unspecified")
        )
        assert back.get("evaltui", {}).get("turns") is None


def test_unchecked_leaves_the_calls_where_they_are():
    data = data_of({"user_content": {"parts": []}, "intermediate_data": CALLS})
    after, _ = changed_set(
        data, {"criteria": {}}, lambda eval_set: eval_set.case(0).turn(0).set_expectation("unchecked")
    )
    assert after == data


def test_the_last_of_several_marks_counts_and_one_is_left():
    config = config_of((0, "skip"), (1, "skip"), (0, "context"))
    assert References(config).turn_mode(("s", "c"), 0) == "context"
    after = changed(config, lambda references: references.mark_turn(("s", "c"), 0, "skip"), References)
    assert [(one["turn"], one["mode"]) for one in after["evaltui"]["turns"]] == [(1, "skip"), (0, "skip")]
