from __future__ import annotations

import asyncio

import pytest
from eval_data import make_case
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import metric_input

from evaltui.core.metrics.intermediate_match import align_texts, intermediate_match_score
from evaltui.core.metrics.response_match import rouge_1_f
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.outcome import Status
from evaltui.core.scoring import score_case

NAME = "intermediate_match_score"


def lists(*texts):
    return {"intermediate_responses": [["agent", [{"text": text}]] for text in texts]}


def events(*texts):
    return {"invocation_events": [{"author": "x", "content": {"parts": [{"text": text}]}} for text in texts]}


def turn(data, answer="done"):
    said = {"role": "user", "parts": [{"text": "hello"}]}
    return {
        "user_content": said,
        "intermediate_data": data,
        "final_response": {"role": "model", "parts": [{"text": answer}]},
    }


def scored(expected, actual, threshold=0.8, **marks):
    turns = {"expected": [turn(one) for one in expected], "actual": [turn(one) for one in actual]}
    return intermediate_match_score(metric_input(NAME, threshold=threshold, **turns, **marks))


@pytest.mark.parametrize("shape", [lists, events])
def test_texts_are_aligned_in_order_whoever_says_them_in_either_shape(shape):
    result = scored([lists("one two", "three four")], [shape("a word", "one two", "three five")])
    assert result.score == pytest.approx(2 * (1.0 + 0.5) / 5)
    assert result.status is Status.FAILED
    assert result.reason == "turn 1: intermediate match 0.60 (2 expected texts, 1 unexpected)"
    assert scored([shape("one two")], [lists("one two")]).score == 1.0


@pytest.mark.parametrize("nothing", [None, {}, lists(), events(), {"tool_uses": [{"name": "f"}]}, lists("")])
def test_turns_that_expect_no_text_are_not_judged(nothing):
    result = scored([nothing, lists("one")], [lists("x"), lists("one")])
    assert (result.score, result.status) == (1.0, Status.PASSED)
    assert [(one.score, one.status) for one in result.per_invocation] == [
        (None, Status.INFORMATIONAL),
        (1.0, Status.PASSED),
    ]
    alone = scored([nothing], [lists("x")])
    assert alone.status is Status.NOT_EVALUATED
    assert alone.reason == "no intermediate responses expected in any scored turn"
    assert alone.is_optional


@pytest.mark.parametrize(
    ("others", "status"),
    [
        ({}, Status.NOT_EVALUATED),
        ({"response_match_score": 0.8}, Status.PASSED),
        ({"response_match_score": 0.8, "tool_trajectory_avg_score": 1.0}, Status.FAILED),
        ({"response_match_score": 0.8, "safety_v1": 0.8}, Status.NOT_EVALUATED),
    ],
)
def test_of_a_case_that_expects_no_text_the_other_metrics_decide(others, status):
    config = EvalConfig.model_validate({"criteria": others, "evaltui": {"criteria": {NAME: 0.8}}})
    expected, actual = (
        EvalCase.model_validate(make_case("a", turn(data)))
        for data in ({"tool_uses": [{"name": "f"}]}, lists("x"))
    )
    assert asyncio.run(score_case(expected, actual.conversation, config)).status is status


def test_what_an_agent_does_not_send_is_unknown_and_no_text_is_a_miss():
    unknown = scored([lists("one"), lists("two")], [None, lists("two")])
    assert unknown.status is Status.NOT_EVALUATED
    assert unknown.reason == (
        "the intermediate responses of turn 1 are unknown: the agent does not send them"
    )
    given = metric_input(NAME, expected=[turn(lists("one"))], actual=[turn(lists("one"))])
    given.actual[0].without({"answers": "Set CAPTURE"})
    assert intermediate_match_score(given).reason == (
        "the intermediate responses of turn 1 are unknown: Set CAPTURE"
    )
    missing = scored([lists("one")], [{}])
    assert (missing.score, missing.reason) == (
        0.0,
        "turn 1: intermediate match 0.00 (1 expected text, 1 missing)",
    )


def test_context_turns_are_left_out_and_cases_without_turns_not_evaluated():
    marked = scored([lists("one"), lists("two")], [None, lists("two")], context=frozenset({0}))
    assert (marked.score, marked.status) == (1.0, Status.PASSED)
    assert scored([lists("one")], [{}], context=frozenset({0})).status is Status.NOT_EVALUATED
    simulated = metric_input(NAME, expected=None, actual=[turn(lists("one"))])
    assert intermediate_match_score(simulated).reason == "needs expected turns; this case has none"
    assert "cannot be paired" in scored([lists("one")], []).reason


texts = st.lists(st.sampled_from(["one", "one two", "two three", "three", "!", "four five"]), max_size=5)
said = texts.map(lambda found: [("x", one) for one in found])


@given(said, said)
def test_every_text_is_in_one_row_in_its_order_and_no_alignment_shares_more(expected, actual):
    rows = align_texts(expected, actual)
    assert [row.expected for row in rows if row.expected is not None] == [text for _, text in expected]
    assert [row.actual for row in rows if row.actual is not None] == [text for _, text in actual]
    assert all((row.score is None) == (None in (row.expected, row.actual)) for row in rows)
    assert sum(row.score or 0 for row in rows) == pytest.approx(most_shared(expected, actual))


def most_shared(expected, actual):
    """Tries every alignment; a common beginning belongs together anyway."""
    if not expected or not actual:
        return 0.0
    one, other = expected[0][1], actual[0][1]
    likeness = 1.0 if one == other else rouge_1_f(other, one)
    paired = likeness + most_shared(expected[1:], actual[1:])
    return max(paired, most_shared(expected[1:], actual), most_shared(expected, actual[1:]))


def test_very_many_texts_are_compared_place_by_place(monkeypatch):
    compared = []
    monkeypatch.setattr(
        "evaltui.core.metrics.intermediate_match.rouge_1_f", lambda *pair: compared.append(pair) or 0.5
    )
    rows = align_texts([("x", f"a{n}") for n in range(300)], [("x", f"b{n}") for n in range(400)])
    assert len(compared) == 300
    assert sum(row.expected is None for row in rows) == 100
