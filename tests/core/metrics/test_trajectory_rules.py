"""Call metrics by rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import call_pairs, metric_input, turn

from evaltui.core.matching.rules import rules_of_case
from evaltui.core.metrics.registry import run_metric
from evaltui.core.model.arg_rule import ArgRule

AVG = "tool_trajectory_avg_score"


def rules(*some):
    return rules_of_case([ArgRule.model_validate(one) for one in some], "s", "c")


def call(name, **args):
    return {"name": name, "args": args}


def score(expected, actual, *some, name=AVG, match_type="EXACT"):
    given_ = metric_input(
        name,
        expected=[turn(*expected)],
        actual=[turn(*actual, recorded=True)],
        criterion={"match_type": match_type},
        rules=rules(*some),
    )
    return run_metric(given_)


NEAR = {"tool": "f", "arg": "n", "match": {"approx": {"abs": 3}}}
# Either of the calls made is near to the first one expected; only one choice leaves none over.
CROSSED = [call("f", n=1), call("f", n=5)], [call("f", n=4), call("f", n=1)]


@pytest.mark.parametrize("match_type", ["EXACT", "IN_ORDER", "ANY_ORDER"])
def test_a_difference_that_a_rule_lets_pass_is_none(match_type):
    sides = [call("f", n=1, q="x"), call("g")], [call("f", n=3, q="x"), call("g")]
    assert score(*sides, match_type=match_type).score == 0.0
    assert score(*sides, NEAR, match_type=match_type).score == 1.0
    assert score(*sides, {**NEAR, "tool": "g"}, match_type=match_type).score == 0.0
    further = [call("f", n=9, q="x"), call("g")]
    result = score(sides[0], further, NEAR, match_type=match_type)
    assert (result.score, result.per_invocation[0].reason) == (0.0, "f: arguments differ")


def test_match_types_stay_what_they_are():
    expected, actual = [call("f", n=1), call("g")], [call("g"), call("h"), call("f", n=2)]
    by_type = {kind: score(expected, actual, NEAR, match_type=kind).score for kind in ("EXACT", "IN_ORDER")}
    assert by_type == {"EXACT": 0.0, "IN_ORDER": 0.0}
    assert score(expected, actual, NEAR, match_type="ANY_ORDER").score == 1.0


def test_no_call_is_left_over_where_another_choice_needs_none_to_be():
    assert score(*CROSSED, NEAR, match_type="ANY_ORDER").score == 1.0
    assert score(*CROSSED, NEAR, name="trajectory_recall").score == 1.0
    assert score(*CROSSED, NEAR, name="trajectory_precision").score == 1.0
    # In their order the second one is too far away.
    assert score(*CROSSED, NEAR, match_type="IN_ORDER").score == 0.0


def test_shares_of_calls():
    expected, actual = [call("f", n=1), call("g")], [call("f", n=2), call("f", n=3), call("h")]
    assert score(expected, actual, NEAR, name="trajectory_recall").score == 0.5
    precision = score(expected, actual, NEAR, name="trajectory_precision")
    assert precision.score == 1 / 3
    assert precision.per_invocation[0].reason == "2 of 3 calls unexpected: f, h"


@given(call_pairs(), st.sampled_from(["EXACT", "IN_ORDER", "ANY_ORDER"]))
def test_rules_that_say_nothing_here_change_nothing(sides, match_type):
    elsewhere = [{"tool": name, "arg": "no_such", "match": "ignore"} for name in ("get_time", "set_light")]
    for name in (AVG, "trajectory_recall", "trajectory_precision"):
        assert score(*sides, *elsewhere, name=name, match_type=match_type) == score(
            *sides, name=name, match_type=match_type
        )


@given(call_pairs(), st.sampled_from(["EXACT", "IN_ORDER", "ANY_ORDER"]))
def test_everything_ignored_is_ignore_args(sides, match_type):
    everything = [
        {"tool": name, "arg": "*", "match": "ignore"}
        for name in ("get_time", "set_light", "transfer_to_agent")
    ]
    expected, actual = [[turn(*calls)] for calls in sides]
    criterion = {"match_type": match_type, "ignore_args": True}
    by_criterion = run_metric(metric_input(AVG, expected=expected, actual=actual, criterion=criterion))
    assert score(*sides, *everything, match_type=match_type) == by_criterion
