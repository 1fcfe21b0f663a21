"""Calls, tokens and seconds, without google-adk."""

import pytest
from metric_cases import metric_input, turn

from evaltui.core.metrics.efficiency import (
    inference_call_count_v1,
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


def test_model_calls_are_not_known_of_turns_that_were_not_recorded():
    events = [
        {"author": "agent", "model_version": "m"},
        {"author": "agent", "usage_metadata": {}},
        {"author": "agent", "content": {"parts": [{"text": "x"}]}},
    ]
    result = report(inference_call_count_v1, turn(), turn(intermediate_data={"invocation_events": events}))

    assert [entry.score for entry in result.per_invocation] == [None, 2.0]
    assert result.score == 2.0


@pytest.mark.parametrize(("seconds", "calls"), [(None, None), (0.5, None), (0.0, 0.0)])
def test_no_model_calls_are_told_where_models_took_time_and_events_name_none(seconds, calls):
    events = [{"author": "agent", "content": {"parts": [{"text": "x"}]}}]
    actual = turn(intermediate_data={"invocation_events": events}, model_duration=seconds)

    assert report(inference_call_count_v1, actual).score == calls
    assert report(inference_call_count_v1, actual, as_adk=True).score == 0.0


def test_mean_of_tokens_counts_turns_without_a_kind_as_zero():
    result = report(
        token_usage_v1, used({"prompt_token_count": 4, "thoughts_token_count": 2}), used({}), turn()
    )

    assert result.score == 2.0
    assert result.details["reasoning_tokens"] == pytest.approx(2 / 3)
    assert result.details["cached_tokens"] is None
    assert [entry.score for entry in result.per_invocation] == [6, None, None]


def test_context_turns_cost_nothing():
    result = report(tool_call_count_v1, turn("a", "b"), turn("a"), context=frozenset([0]))

    assert result.score == 1.0
    assert [entry.status for entry in result.per_invocation] == [Status.NOT_EVALUATED, Status.INFORMATIONAL]
