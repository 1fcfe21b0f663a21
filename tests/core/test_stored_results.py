import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.judgement import JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import (
    Call,
    CallDiff,
    ErrorInfo,
    Expectation,
    InvocationScore,
    MetricResult,
    RepeatResult,
    StateDiff,
    Status,
    TurnResult,
)
from evaltui.core.model.stored_results import repeat_from_json, repeat_to_json
from evaltui.core.model.text_diff import IntermediateDiff, ResponseDiff

texts = st.text(st.characters(codec=None), max_size=8)
keys = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=4,
)
numbers = st.none() | st.floats(0, 1)
statuses = st.sampled_from(Status)
all_args = st.none() | st.dictionaries(keys | st.sampled_from(["both", "expected"]), values, max_size=2)
all_calls = st.lists(st.builds(Call, st.sampled_from("ab"), all_args), max_size=3)
responses = st.builds(ResponseDiff, st.none() | texts, st.none() | texts, numbers)
turns = st.builds(
    TurnResult,
    st.sampled_from(get_args(Expectation)),
    st.builds(align_calls, all_calls, all_calls),
    responses | texts.map(lambda text: ResponseDiff(text, text)),
    st.lists(st.tuples(texts, texts), max_size=1).map(tuple),
    texts,
    st.lists(
        st.builds(IntermediateDiff, texts, st.none() | texts, st.none() | texts, numbers), max_size=2
    ).map(tuple),
)
errors = st.builds(ErrorInfo, texts, texts, texts, texts)
# Few, so that votes share them with what they decide.
verdicts = st.sampled_from([None, 0.0, 1.0])
rationales = st.sampled_from(["", "It is so.", "It\ud800 is not."])
judgements = st.builds(
    Judgement,
    texts,
    texts,
    verdicts,
    rationales,
    st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
    st.lists(st.builds(Vote, verdicts, rationales, texts, texts), max_size=3).map(tuple),
)
judges = st.builds(JudgedBy, texts, texts, *[st.integers(0, 9)] * 4)
scores = st.builds(InvocationScore, numbers, statuses, texts, st.lists(judgements, max_size=2).map(tuple))
metrics = st.builds(
    MetricResult,
    texts,
    numbers,
    numbers,
    statuses,
    st.lists(scores, max_size=2).map(tuple),
    texts,
    st.none() | errors,
    st.dictionaries(keys, st.floats(0, 9), max_size=1),
    st.none() | judges,
)
results = st.builds(
    RepeatResult,
    statuses,
    st.lists(metrics, max_size=2).map(tuple),
    st.none() | errors,
    turns=st.lists(turns, max_size=2).map(tuple),
    state=st.lists(st.builds(StateDiff, texts, values, values), max_size=1).map(tuple),
    seconds=st.floats(0, 9),
    final_state=st.none() | st.dictionaries(keys, values, max_size=1),
    expects=texts,
    session_id=texts,
    stopped=texts,
)


@given(results)
def test_a_result_is_read_as_it_was_written(result):
    written = json.dumps(repeat_to_json(result), allow_nan=False)
    # By their text as well: 1 == 1.0 == True.
    assert repr(repeat_from_json(json.loads(written))) == repr(result)


PLAIN = RepeatResult(Status.PASSED)
HELLO = Invocation.model_validate({"user_content": {"parts": [{"text": "hello"}]}})


def test_what_the_agent_did_stands_elsewhere():
    told = replace(PLAIN, actual=(HELLO,))
    assert repeat_to_json(told) == {"status": "PASSED"}
    assert repeat_from_json({"status": "PASSED"}, [HELLO]) == told


def test_nothing_is_written_twice_or_for_nothing():
    same = Call("dim", {"to": 5, "why": None})
    turn = TurnResult(
        "these calls",
        (*align_calls([same], [same]), CallDiff("extra", None, Call("ask", None))),
        ResponseDiff("Enjoy.", "Enjoy."),
    )
    spent = MetricResult(
        "token_usage_v1", None, None, Status.INFORMATIONAL, details={"total": 5.0, "reasoning": None}
    )
    assert repeat_to_json(RepeatResult(Status.PASSED, (spent,), turns=(turn,))) == {
        "status": "PASSED",
        "metrics": [{"name": "token_usage_v1", "status": "INFORMATIONAL", "details": {"total": 5.0}}],
        "turns": [
            {
                "expectation": "these calls",
                "calls": [
                    {"op": "same", "both": {"name": "dim", "args": {"to": 5, "why": None}}},
                    {"op": "extra", "actual": {"name": "ask"}},
                ],
                "response": {"both": "Enjoy."},
            }
        ],
    }


def test_the_rationale_of_the_vote_that_decided_is_written_once():
    votes = (Vote(1.0, "It is so.", "yes"), Vote(0.0, "It is not.", "no"), Vote(None, problem="no answer"))
    turn = InvocationScore(
        0.0, Status.FAILED, judgements=(Judgement("r", "Short", 0.0, "It is not.", (), votes),)
    )
    judge = JudgedBy("gemini-2.5-flash", "rubrics/1", 3, 2)
    result = RepeatResult(Status.FAILED, (MetricResult("m", 0.0, 0.5, Status.FAILED, (turn,), judge=judge),))
    (metric,) = repeat_to_json(result)["metrics"]
    assert metric["judge"] == {"model": "gemini-2.5-flash", "prompt": "rubrics/1", "asked": 3, "answered": 2}
    assert metric["per_invocation"] == [
        {
            "score": 0.0,
            "status": "FAILED",
            "judgements": [
                {
                    "id": "r",
                    "subject": "Short",
                    "score": 0.0,
                    "votes": [
                        {"score": 1.0, "rationale": "It is so.", "label": "yes"},
                        {"score": 0.0, "rationale": "It is not.", "label": "no"},
                        {"problem": "no answer"},
                    ],
                }
            ],
        }
    ]
    assert repeat_from_json(repeat_to_json(result)) == result


def test_equal_values_of_another_type_are_both_kept():
    calls = align_calls([Call("dim", {"to": 1})], [Call("dim", {"to": True})])
    state = (StateDiff("level", 1, 1.0),)
    result = RepeatResult(
        Status.FAILED, turns=(TurnResult("no calls", calls, ResponseDiff(None, None)),), state=state
    )
    assert repr(repeat_from_json(json.loads(json.dumps(repeat_to_json(result))))) == repr(result)


def test_infinite_values_of_an_agent_become_null():
    (turn,) = repeat_to_json(
        RepeatResult(
            Status.FAILED,
            turns=(
                TurnResult(
                    "no calls", align_calls([], [Call("x", {"at": float("nan")})]), ResponseDiff(None, None)
                ),
            ),
        )
    )["turns"]
    assert turn["calls"][0]["actual"]["args"] == {"at": None}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"in": [float("nan")]}])
@pytest.mark.parametrize("args", [{}, {"at": None}, {"at": "NaN"}, {"at": 1}, None])
def test_an_expectation_that_json_has_no_word_for_is_still_missed(value, args):
    calls = align_calls([Call("x", {"at": value})], [Call("x", args)] if args is not None else [])
    state = (StateDiff("at", value, None), StateDiff("at", value, "NaN"))
    turn = TurnResult("these calls", calls, ResponseDiff(None, None))
    written = json.dumps(
        repeat_to_json(RepeatResult(Status.FAILED, turns=(turn,), state=state)), allow_nan=False
    )
    read = repeat_from_json(json.loads(written))
    assert [call.op for call in read.turns[0].calls] == ["missing" if args is None else "changed"]
    assert [arg.op for arg in read.turns[0].calls[0].args] == [arg.op for arg in calls[0].args]
    assert [diff.actual for diff in read.state] == [None, "NaN"]


@pytest.mark.parametrize(
    "data", [{}, {"status": "GREEN"}, {"status": "PASSED", "turns": [{}]}, {"status": "PASSED", "metrics": 3}]
)
def test_anything_else_is_refused(data):
    with pytest.raises(ValueError):
        repeat_from_json(data)


def test_what_a_later_version_adds_is_left_aside():
    assert repeat_from_json({"status": "PASSED", "mood": "sunny"}) == PLAIN
