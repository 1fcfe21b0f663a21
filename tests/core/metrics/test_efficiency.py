"""Calls, tokens and seconds, without google-adk."""

import pytest
from metric_cases import invocations, metric_input, turn

from evaltui.core.metrics.efficiency import (
    duration_split,
    inference_call_count_v1,
    invocation_duration_v1,
    token_usage,
    token_usage_v1,
    tool_call_count_v1,
)
from evaltui.core.model.outcome import Status


def report(compute, *actual, **options):
    return compute(metric_input(compute.__name__, actual=actual, **{"threshold": None, **options}))


def used(*usages):
    return turn(
        intermediate_data={
            "invocation_events": [{"author": "agent", "usage_metadata": usage} for usage in usages]
        }
    )


def test_calls_per_turn():
    result = report(tool_call_count_v1, turn("a", "b"), turn("a", recorded=True), turn())

    assert (result.score, result.status, result.threshold) == (1.0, Status.INFORMATIONAL, None)
    assert [entry.score for entry in result.per_invocation] == [2.0, 1.0, 0.0]


def test_model_calls_are_not_known_of_turns_that_were_not_recorded():
    events = [
        {"author": "agent", "model_version": "m"},
        {"author": "agent", "usage_metadata": {}},
        {"author": "agent", "content": {"parts": [{"text": "x"}]}},
    ]
    result = report(inference_call_count_v1, turn(), turn(intermediate_data={"invocation_events": events}))

    assert [entry.score for entry in result.per_invocation] == [None, 2.0]
    assert result.score == 2.0


def test_tokens_that_nobody_reported_are_none_and_not_zero():
    [recorded] = invocations(
        [
            used(
                {"prompt_token_count": 10, "candidates_token_count": 2, "total_token_count": 99},
                {"prompt_token_count": 5, "thoughts_token_count": 1},
            )
        ]
    )

    assert token_usage(recorded) == {
        "total_tokens": 18,
        "input_tokens": 15,
        "prompt_tokens": 15,
        "cached_tokens": None,
        "tool_use_tokens": None,
        "output_tokens": 3,
        "candidates_tokens": 2,
        "reasoning_tokens": 1,
    }


def test_mean_of_tokens_counts_turns_without_a_kind_as_zero():
    result = report(
        token_usage_v1, used({"prompt_token_count": 4, "thoughts_token_count": 2}), used({}), turn()
    )

    assert result.score == 2.0
    assert result.details["reasoning_tokens"] == pytest.approx(2 / 3)
    assert result.details["cached_tokens"] is None
    assert [entry.score for entry in result.per_invocation] == [6, None, None]


def test_seconds_of_a_turn_add_up():
    timed, split, fast = invocations(
        [
            turn(duration=2.0),
            turn(duration=2.0, model_duration=1.25, tool_duration=0.5),
            turn(duration=1.0, model_duration=1.001, tool_duration=0.0),
        ]
    )

    assert duration_split(timed)["framework_seconds"] is None
    assert duration_split(split)["framework_seconds"] == 0.25
    assert duration_split(fast)["framework_seconds"] == 0.0


def test_mean_of_seconds_is_over_timed_turns():
    result = report(invocation_duration_v1, turn(), turn(duration=1.0), turn(duration=2.0005))

    assert result.score == 1.5
    assert result.details["total_seconds"] == 1.5


def test_context_turns_cost_nothing():
    result = report(tool_call_count_v1, turn("a", "b"), turn("a"), context=frozenset([0]))

    assert result.score == 1.0
    assert [entry.status for entry in result.per_invocation] == [Status.NOT_EVALUATED, Status.INFORMATIONAL]


@pytest.mark.parametrize(
    "compute", [tool_call_count_v1, inference_call_count_v1, token_usage_v1, invocation_duration_v1]
)
def test_no_turns_and_thresholds(compute):
    assert report(compute).status is Status.INFORMATIONAL
    assert report(compute).score is None

    refused = report(compute, turn(), threshold=3.0)
    assert refused.status is Status.NOT_EVALUATED
    assert "takes no threshold" in refused.reason
