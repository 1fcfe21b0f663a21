"""What was done becomes what is expected, as little of the file as possible being another one."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, Invocation, texts_before
from evaltui.core.model.json_values import camel
from evaltui.core.model.outcome import Call, Status, TurnResult, calls_of
from evaltui.core.model.text_diff import IntermediateDiff, ResponseDiff
from evaltui.core.scoring import score_case
from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.accepting import Accepting
from evaltui.documents.editing.set import CaseEditor
from evaltui.documents.edits import EditError
from evaltui.documents.values import copy_of, edits_of
from tests.changed_values import after as after_change

MODEST = settings(max_examples=100, deadline=None)

scalars = st.sampled_from([None, True, 0, 1, 2.5, "", "a", "1"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2),
    max_leaves=5,
)
args = st.none() | st.dictionaries(st.sampled_from(["a", "b", "c.d", "user_id"]), values, max_size=3)
trajectories = st.lists(st.tuples(st.sampled_from("fgh"), args), max_size=5)
texts = st.none() | st.sampled_from(["It is done.", "The light is on.", "Straße äöü", "one\ntwo words"])
kinds = st.sampled_from(["lists", "answered lists", "events", "answered events", "absent"])


def call_part(name, args, number):
    call = {"id": f"id{number}", "name": name, "args": args}
    return {key: value for key, value in call.items() if value is not None}


def response(name, number, of):
    return {"id": f"id{number}", "name": name, "response": {"said": of}}


def grouped(trajectory, together):
    """Calls in groups: with `together[n]`, call n came with the one before."""
    groups = []
    for number, (name, args) in enumerate(trajectory):
        if not number or not together[number % len(together)]:
            groups.append([])
        groups[-1].append((number, name, args))
    return groups


def events_of(trajectory, together, author="agent", answered=True, of="now"):
    events = []
    for group in grouped(trajectory, together):
        made = [{"function_call": call_part(name, args, n)} for n, name, args in group]
        events.append({"author": author, "content": {"parts": made, "role": "model"}})
        if answered:
            answers = [{"function_response": response(name, n, of)} for n, name, _ in group]
            events.append({"author": author, "content": {"parts": answered and answers, "role": "user"}})
    return {"invocation_events": events}


def lists_of(trajectory, answered):
    found = {"tool_uses": [call_part(name, args, n) for n, (name, args) in enumerate(trajectory)]}
    if answered:
        found["tool_responses"] = [response(name, n, "before") for n, (name, _) in enumerate(trajectory)]
    return found


def intermediate(kind, trajectory, together):
    if kind == "absent":
        return None
    if kind.endswith("lists"):
        return lists_of(trajectory, kind.startswith("answered"))
    return events_of(trajectory, together, "old_agent", kind.startswith("answered"), "before")


def turn_of(kind, trajectory, text, together=(False,), said="hi", thought=False):
    turn = {"user_content": {"parts": [{"text": said}], "role": "user"}}
    parts = [{"text": "let me see", "thought": True}] * thought + [{"text": text}] * (text is not None)
    if parts:
        turn["final_response"] = {"parts": parts, "role": "model"}
    if (data := intermediate(kind, trajectory, together)) is not None:
        turn["intermediate_data"] = data
    return turn


FIELDS = {
    "eval_id",
    "final_response",
    "final_session_state",
    "function_call",
    "function_response",
    "intermediate_data",
    "invocation_events",
    "tool_responses",
    "tool_uses",
    "user_content",
}


def in_camel(value):
    if isinstance(value, dict):
        return {camel(key) if key in FIELDS else key: in_camel(item) for key, item in value.items()}
    return [in_camel(item) for item in value] if isinstance(value, list) else value


def set_of(*turns, camel_keys=False, state=None, before=1):
    case = {"eval_id": "c", "conversation": list(turns)}
    if state is not None:
        case["final_session_state"] = state
    other = {"eval_id": "other", "conversation": [turn_of("lists", [("f", {"n": 1})], "x")]}
    cases = [*([other] * before), case, other]
    return {"eval_set_id": "s", "eval_cases": in_camel(cases) if camel_keys else cases}


def actual_of(trajectory, text="It is done.", together=(False,), thought=False, said="hi"):
    data = turn_of("absent", [], text, said=said, thought=thought)
    data["intermediate_data"] = events_of(trajectory, together)
    return Invocation.model_validate_json(json.dumps(data))


def accept(data, what, *args):
    copy = copy_of(data)
    getattr(Accepting(CaseEditor(copy, 1)), what)(*args)
    return copy


def rows_of(data, actual, turn=0, case=1):
    expected = [Call(call.name, call.arguments) for call in CaseEditor(data, case).turn(turn).calls]
    return align_calls(expected, calls_of(actual.intermediate_data))


def results_of(data, *actual, expectation="these calls"):
    """What turns were scored with, as far as accepting looks at it."""
    return [
        TurnResult(expectation, rows_of(data, did, turn), ResponseDiff(None, None))
        for turn, did in enumerate(actual)
    ]


def case_accepted(data, actual, state=None):
    return accept(data, "case", results_of(data, *actual), actual, state)


def calls_accepted(data, actual):
    return accept(data, "calls", 0, rows_of(data, actual), actual)


def named(data, turn=0, case=1):
    return [(call.name, call.arguments) for call in CaseEditor(data, case).turn(turn).calls]


async def scored(data, actual, case=1, state=None, config=None):
    model = EvalCase.model_validate_json(json.dumps(data["eval_cases"][case]))
    return await score_case(model, actual, config or EvalConfig.default(), eval_set_id="s", final_state=state)


turns = st.tuples(kinds, trajectories, texts, trajectories, texts, st.booleans())
togethers = st.lists(st.booleans(), min_size=1, max_size=4)


# Everything


@MODEST
@given(
    st.lists(turns, min_size=1, max_size=3),
    togethers,
    st.booleans(),
    st.none() | st.dictionaries(st.sampled_from("xyz"), values, min_size=1, max_size=3),
    st.dictionaries(st.sampled_from("xyz"), values, max_size=3),
)
async def test_an_accepted_case_passes(given_turns, together, camel_keys, state, final):
    data = set_of(
        *(
            turn_of(kind, calls, text, together, thought=thought)
            for kind, calls, text, _, _, thought in given_turns
        ),
        camel_keys=camel_keys,
        state=state,
    )
    actual = [
        actual_of(made, answer, together, thought=thought) for _, _, _, made, answer, thought in given_turns
    ]
    after = after_change(data, case_accepted(data, actual, final))
    assert after["eval_cases"][0] == data["eval_cases"][0]
    assert after["eval_cases"][2] == data["eval_cases"][2]
    for turn, (kind, *_) in enumerate(given_turns):
        if kind != "absent":
            assert (
                CaseEditor(after, 1).turn(turn).intermediate.shape
                == CaseEditor(data, 1).turn(turn).intermediate.shape
            )
    text = json.dumps(after["eval_cases"][1])
    assert not any(f'"{name if camel_keys else camel(name)}"' in text for name in FIELDS)
    result = await scored(after, actual, state=final)
    metrics = {metric.name: metric for metric in result.metrics}
    assert metrics["tool_trajectory_avg_score"].score == 1.0
    assert not result.state
    for turn, score in enumerate(metrics["response_match_score"].per_invocation):
        if given_turns[turn][4]:
            assert score.score == 1.0
    assert edits_of(case_accepted(after, actual, final)) == []


@MODEST
@given(kinds, trajectories, trajectories, togethers, st.booleans(), st.data())
def test_calls_accepted_one_by_one_in_any_order_lead_to_all_of_them(
    kind, expected, made, together, camel_keys, data
):
    file = set_of(turn_of(kind, expected, "x", together), camel_keys=camel_keys)
    actual = actual_of(made, "x", together)
    # Each one takes at least one off the cost of the alignment, which is this at most.
    for _ in range(len(expected) + len(made)):
        rows = rows_of(file, actual)
        if differing := [n for n, row in enumerate(rows) if row.op != "same"]:
            row = data.draw(st.sampled_from(differing))
            file = after_change(file, accept(file, "call", 0, rows, row, actual))
    assert named(file) == [(call.name, call.args) for call in calls_of(actual.intermediate_data)]


@MODEST
@given(args, args, st.sampled_from(["lists", "answered events"]), st.booleans(), st.data())
def test_an_accepted_argument_is_the_only_thing_that_changes(before, now, kind, camel_keys, data):
    file = set_of(turn_of(kind, [("g", {}), ("f", before), ("g", {})], "x"), camel_keys=camel_keys)
    actual = actual_of([("g", {}), ("f", now), ("g", {})], "x")
    rows = rows_of(file, actual)
    if rows[1].op == "same":
        return
    arg = data.draw(st.sampled_from([arg for arg in rows[1].args if arg.op != "same"]))
    after = after_change(file, accept(file, "argument", 0, rows, 1, arg.path))
    assert [call for call in named(after) if call[0] == "g"] == [("g", {}), ("g", {})]
    left = {one.path: one for one in rows_of(after, actual)[1].args if one.op != "same"}
    assert arg.path not in left
    beside = [one for one in rows[1].args if one.path != arg.path and one.op != "same"]
    in_a_list = arg.path.endswith("]") and arg.op in ("missing", "extra")
    if not in_a_list:
        assert {one.path: one for one in beside} == left
    # Nothing but the arguments of this one call.
    restored = copy.deepcopy(after)
    for one, other in zip(
        CaseEditor(file, 1).turn(0).calls, CaseEditor(restored, 1).turn(0).calls, strict=True
    ):
        at = restored
        for step in other.path:
            at = at[step]
        at.pop("args", None)
        if one.arguments is not None:
            at["args"] = one.arguments
    assert restored == file


@MODEST
@given(turns, togethers, st.sampled_from([None, 2, 4]))
def test_an_accepted_turn_touches_no_line_but_its_own(turn, together, indent):
    kind, calls, text, made, answer, thought = turn
    others = [
        turn_of("answered lists", [("f", {"n": 1})], "before"),
        turn_of("events", [("g", {})], "behind"),
    ]
    data = set_of(others[0], turn_of(kind, calls, text, together), others[1])
    document = JsonDocument(json.dumps(data, indent=indent))
    actual = actual_of(made, answer, together, thought=thought)
    path = ("eval_cases", 1, "conversation")
    before = document.text_at(path)
    around = document.text.split(before)
    texts = [document.text_at((*path, number)) for number in (0, 2)]
    result = TurnResult("these calls", rows_of(data, actual, 1), ResponseDiff(None, None))
    document = document.edited(edits_of(accept(data, "turn", 1, result, actual)))
    assert document.text.split(document.text_at(path)) == around
    assert [document.text_at((*path, number)) for number in (0, 2)] == texts
    if kind != "absent" and calls == made and text == answer:
        assert document.text_at(path) == before


# One by one


def light(**args):
    return [("set_light", {"room": "Kitchen", "on": False, **args})]


def test_a_nested_argument_is_changed_where_it_is():
    data = set_of(turn_of("lists", light(tags=["a", {"x": 1, "y": 1}]), "x"))
    rows = rows_of(data, actual_of(light(tags=["b", {"x": 2, "y": 2}]), "x"))
    after = after_change(data, accept(data, "argument", 0, rows, 0, "tags[1].x"))
    assert named(after) == light(tags=["a", {"x": 2, "y": 1}])


def test_elements_that_only_one_list_has_come_and_go_together():
    data = set_of(turn_of("lists", [("f", {"long": [1, 2, 3], "short": [1]})], "x"))
    actual = actual_of([("f", {"long": [1], "short": [1, 2, 3]})], "x")
    rows = rows_of(data, actual)
    after = after_change(data, accept(data, "argument", 0, rows, 0, "short[2]"))
    after = after_change(after, accept(after, "argument", 0, rows_of(after, actual), 0, "long[1]"))
    assert named(after) == [("f", {"long": [1], "short": [1, 2, 3]})]


def test_a_call_keeps_its_id_and_gets_the_response_to_its_new_arguments():
    data = set_of(turn_of("answered lists", light(), "x"))
    actual = actual_of(light(on=True), "x")
    after = after_change(data, accept(data, "call", 0, rows_of(data, actual), 0, actual))
    turn = after["eval_cases"][1]["conversation"][0]["intermediate_data"]
    assert turn["tool_uses"] == [{"id": "id0", "name": "set_light", "args": {"room": "Kitchen", "on": True}}]
    assert turn["tool_responses"] == [response("set_light", 0, "now")]
    unanswered = set_of(turn_of("lists", light(), "x"))
    after = after_change(unanswered, accept(unanswered, "call", 0, rows_of(data, actual), 0, actual))
    assert "tool_responses" not in after["eval_cases"][1]["conversation"][0]["intermediate_data"]


def test_a_call_that_stays_keeps_its_response():
    data = set_of(turn_of("answered events", [("f", {"n": 1}), ("g", {})], "x"))
    actual = actual_of([("f", {"n": 1}), ("g", {"new": 1})], "x")
    after = after_change(data, calls_accepted(data, actual))
    assert [one.response["said"] for one in CaseEditor(after, 1).turn(0).responses] == ["before", "now"]


def test_a_new_call_comes_with_its_author_and_its_response_as_a_step_of_its_own():
    data = set_of(turn_of("answered events", [("f", {}), ("h", {})], "x"))
    actual = actual_of([("f", {}), ("g", {"n": 1}), ("h", {})], "x")
    after = after_change(data, calls_accepted(data, actual))
    events = after["eval_cases"][1]["conversation"][0]["intermediate_data"]["invocation_events"]
    assert [(event["author"], len(event["content"]["parts"])) for event in events] == [
        ("old_agent", 1),
        ("old_agent", 1),
        ("agent", 1),
        ("agent", 1),
        ("old_agent", 1),
        ("old_agent", 1),
    ]
    assert events[3]["content"]["parts"][0]["function_response"]["response"] == {"said": "now"}
    assert named(after) == [("f", {}), ("g", {"n": 1}), ("h", {})]


def test_a_call_that_came_with_another_one_joins_it():
    data = set_of(turn_of("answered events", [("f", {})], "x"))
    actual = actual_of([("f", {}), ("g", {})], "x", together=(True,))
    after = after_change(data, calls_accepted(data, actual))
    events = after["eval_cases"][1]["conversation"][0]["intermediate_data"]["invocation_events"]
    assert [len(event["content"]["parts"]) for event in events] == [2, 2]


def test_rows_about_other_calls_are_refused():
    data = set_of(turn_of("lists", light(), "x"))
    actual = actual_of(light(on=True), "x")
    rows = rows_of(data, actual)
    changed = set_of(turn_of("lists", light(on="maybe"), "x"))
    with pytest.raises(EditError, match="review the result"):
        accept(changed, "argument", 0, rows, 0, "on")


# Answer


def answer_of(data, parts):
    data["eval_cases"][1]["conversation"][0]["final_response"] = {"parts": parts, "role": "model"}
    return data


def answered(*parts):
    data = turn_of("lists", [], None) | {"final_response": {"parts": list(parts), "role": "model"}}
    return Invocation.model_validate_json(json.dumps(data))


def parts_after(data, actual):
    after = after_change(data, accept(data, "answer", 0, actual))
    return after["eval_cases"][1]["conversation"][0].get("final_response", {}).get("parts")


FILE = {"inline_data": {"mime_type": "image/png", "data": "aGk="}}


def test_thoughts_never_become_expected_text():
    data = set_of(turn_of("lists", [], "Before."))
    assert parts_after(data, answered({"text": "hm", "thought": True}, {"text": "Now."})) == [
        {"text": "Now."}
    ]


def test_of_an_answer_of_thoughts_only_what_was_said_before_it_is_the_text():
    events = [{"author": "a", "content": {"parts": [{"text": "I look."}], "role": "model"}}]
    actual = turn_of("absent", [], None, thought=True) | {"intermediate_data": {"invocation_events": events}}
    data = set_of(turn_of("lists", [], "Before."))
    assert parts_after(data, Invocation.model_validate(actual)) == [{"text": "I look."}]


def test_other_parts_of_the_expected_answer_stay():
    hm = {"text": "hm", "thought": True}
    data = answer_of(set_of(turn_of("lists", [], "")), [hm, {"text": "One."}, FILE, {"text": "Two."}])
    assert parts_after(data, answered({"text": "Three."})) == [hm, {"text": "Three."}, FILE]
    assert parts_after(data, answered({"text": "1"}, {"text": "2"}, {"text": "3"})) == [
        hm,
        {"text": "1"},
        FILE,
        {"text": "2"},
        {"text": "3"},
    ]


def test_an_equal_text_in_other_parts_stays_as_it_is():
    data = set_of(turn_of("lists", [], "One.\nTwo."))
    assert edits_of(accept(data, "answer", 0, answered({"text": "One."}, {"text": "Two."}))) == []


def test_where_nothing_was_said_no_answer_is_expected():
    assert parts_after(set_of(turn_of("lists", [], "Before.", thought=True)), answered()) is None
    data = answer_of(set_of(turn_of("lists", [], "")), [{"text": "One."}, FILE])
    assert parts_after(data, answered()) == [FILE]


# State


def test_one_key_of_the_final_state_is_accepted_and_nothing_else():
    data = set_of(turn_of("lists", [], "x"), state={"light": {"on": True, "level": 3}, "gone": 1, "same": 1})
    final = {"light": {"on": False, "level": 4, "new": 1}, "same": 1.0, "other": 2}
    after = after_change(data, accept(data, "state", "light.on", final))
    assert after["eval_cases"][1]["final_session_state"]["light"] == {"on": False, "level": 3}
    after = after_change(data, accept(data, "state", "light.new", final))
    assert after["eval_cases"][1]["final_session_state"]["light"] == {"on": True, "level": 3, "new": 1}
    after = after_change(data, accept(data, "state", "gone", final))
    assert after["eval_cases"][1]["final_session_state"]["gone"] is None


# The whole case


async def test_a_turn_that_was_not_reached_stays_and_what_came_after_the_last_one_is_left_out():
    data = set_of(turn_of("lists", light(), "x"), turn_of("lists", light(), "y"))
    after = after_change(data, case_accepted(data, [actual_of([], "z")]))
    assert named(after, 0) == []
    assert named(after, 1) == light()
    more = [actual_of(light(on=True), "z")] * 3
    two = results_of(data, *more[:2])
    after = after_change(data, accept(data, "case", two, more, None))
    assert len(after["eval_cases"][1]["conversation"]) == 2


CRITERIA = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}


@pytest.mark.parametrize("mode", ["skip", "context"])
async def test_what_a_mark_leaves_out_stays_as_it_is(mode):
    marks = [{"set": "s", "case": "c", "turn": 0, "mode": mode}]
    config = EvalConfig.model_validate({"criteria": CRITERIA, "evaltui": {"turns": marks}})
    data = set_of(turn_of("lists", light(), "x"), turn_of("lists", [], "y"))
    actual = [actual_of(light(on=True), "z"), actual_of([], "w")]
    before = await scored(data, actual, config=config)
    after = after_change(data, accept(data, "case", before.turns, actual, None))
    assert named(after, 0) == light()
    first = after["eval_cases"][1]["conversation"][0]["final_response"]["parts"][0]["text"]
    assert first == ("z" if mode == "skip" else "x")
    assert (await scored(after, actual, config=config)).status is Status.PASSED


async def test_what_a_rule_lets_pass_stays_as_it_is():
    rules = [{"tool": "set_light", "arg": "at", "match": "ignore"}]
    config = EvalConfig.model_validate({"criteria": CRITERIA, "evaltui": {"rules": rules}})
    data = set_of(turn_of("lists", light(at=[1, 2], level=1), "x"))
    actual = [actual_of(light(at=[3], level=2), "x")]
    before = await scored(data, actual, config=config)
    after = after_change(data, accept(data, "case", before.turns, actual, None))
    assert named(after) == light(at=[1, 2], level=2)
    assert (await scored(after, actual, config=config)).status is Status.PASSED


def test_a_simulated_user_has_no_turns_to_accept():
    data = set_of()
    case = data["eval_cases"][1]
    del case["conversation"]
    case["conversation_scenario"] = {"starting_prompt": "x", "conversation_plan": "y"}
    with pytest.raises(EditError, match="simulated"):
        accept(data, "case", [], [actual_of([])], None)


# Texts before the answer

short_texts = st.lists(st.sampled_from(["one", "one two", "two three", "four\nfive"]), max_size=4)
said_steps = st.lists(st.sampled_from(["one", "one two", "three", "f()", "g()"]), max_size=6)
answers = st.sampled_from([None, "It is done.", "thought"])


def texts_data(shape, steps):
    """Texts, one of several parts among them, and calls, in their order where the shape has one."""
    if shape == "lists":
        said = [["desk", [{"text": part} for part in one.split("\n")]] for one in steps if one[-1] != ")"]
        return {"tool_uses": [{"name": one[:-2]} for one in steps if one[-1] == ")"]} | (
            {"intermediate_responses": said} if said else {}
        )
    made = []
    for one in steps:
        parts = [{"text": part} for part in one.split("\n")]
        if one[-1] == ")":
            parts = [{"function_call": {"name": one[:-2], "args": {}}}]
        made.append({"author": "desk", "content": {"parts": parts, "role": "model"}})
    return {"invocation_events": made}


def turn_saying(shape, steps, answer):
    turn = turn_of("absent", [], None if answer == "thought" else answer, thought=answer == "thought")
    return turn | {"intermediate_data": texts_data(shape, steps)}


WITH_TEXTS = EvalConfig.model_validate({"evaltui": {"criteria": {"intermediate_match_score": 1.0}}})


def said_in(data):
    model = EvalCase.model_validate_json(json.dumps(data["eval_cases"][1]))
    return [text for _, text in texts_before(model.conversation[0], thoughts=False)]


@given(st.sampled_from(["lists", "events"]), short_texts, answers, said_steps, answers, st.booleans())
async def test_an_accepted_case_passes_with_its_texts_and_never_expects_new_ones(
    shape, expected, answer, steps, said, whole
):
    data = set_of(turn_saying(shape, expected, answer))
    actual = [Invocation.model_validate(turn_saying("events", steps, said))]
    before = await scored(data, actual, config=WITH_TEXTS)
    came = [text for _, text in texts_before(actual[0], thoughts=False)]
    what = ("case", before.turns, actual, None) if whole else ("turn", 0, before.turns[0], actual[0])
    after = after_change(data, accept(data, *what))
    assert after["eval_cases"][0] == data["eval_cases"][0]
    assert said_in(after) == (came if said_in(data) else [])
    again = await scored(after, actual, config=WITH_TEXTS)
    (metric,) = (one for one in again.metrics if one.name == "intermediate_match_score")
    assert metric.status is (Status.PASSED if said_in(after) else Status.NOT_EVALUATED)
    assert not [one for one in again.turns[0].calls if one.op != "same"]
    assert edits_of(accept(after, "case", again.turns, actual, None)) == []


@given(st.sampled_from(["lists", "events"]), short_texts.filter(bool), said_steps, st.data())
async def test_texts_accepted_one_by_one_lead_to_all_of_them(shape, expected, steps, data):
    file = set_of(turn_saying(shape, expected, "x"))
    actual = Invocation.model_validate(turn_saying("events", steps, "x"))
    for _ in range(len(expected) + len(steps)):
        rows = (await scored(file, [actual], config=WITH_TEXTS)).turns[0].intermediate
        if differing := [n for n, row in enumerate(rows) if row.expected != row.actual]:
            row = data.draw(st.sampled_from(differing))
            before = said_in(file)
            file = after_change(file, accept(file, "text", 0, rows, row, actual))
            wanted = [one.actual if n == row else one.expected for n, one in enumerate(rows)]
            assert said_in(file) == [text for text in wanted if text is not None] != before
    if said_in(file):
        assert said_in(file) == [text for _, text in texts_before(actual, thoughts=False)]


def test_a_new_text_comes_where_it_was_said_and_one_that_stays_keeps_its_author():
    data = set_of(turn_saying("events", ["one", "f()", "g()"], "x"))
    made = turn_saying("events", ["one two", "f()", "three", "g()"], "x")
    for event in made["intermediate_data"]["invocation_events"]:
        event["author"] = "clerk"
    rows = [
        IntermediateDiff("desk", "one", "one two", 0.5),
        IntermediateDiff("clerk", None, "three"),
    ]
    after = after_change(data, accept(data, "texts", 0, rows, Invocation.model_validate(made)))
    events = after["eval_cases"][1]["conversation"][0]["intermediate_data"]["invocation_events"]
    assert [(event["author"], *event["content"]["parts"][0]) for event in events] == [
        ("desk", "text"),
        ("desk", "function_call"),
        ("clerk", "text"),
        ("desk", "function_call"),
    ]
    with pytest.raises(EditError, match="texts changed since"):
        accept(after, "texts", 0, rows, Invocation.model_validate(made))
