"""Metrics over tool calls, without google-adk."""

import pytest
from metric_cases import metric_input, turn

from evaltui.core.metrics.metric import CriterionError
from evaltui.core.metrics.trajectory import (
    ignores_args,
    tool_trajectory_avg_score,
    trajectory_precision,
    trajectory_recall,
    trajectory_single_tool_use,
)
from evaltui.core.model.outcome import Status

AVG = "tool_trajectory_avg_score"
PRECISION = "trajectory_precision"
RECALL = "trajectory_recall"
SINGLE = "trajectory_single_tool_use"


def call(name, **args):
    return {"name": name, "args": args}


def avg(expected, actual, criterion=None, **options):
    return tool_trajectory_avg_score(
        metric_input(AVG, expected=expected, actual=actual, criterion=criterion, **options)
    )


@pytest.mark.parametrize("compute", [tool_trajectory_avg_score, trajectory_precision, trajectory_recall])
def test_unusable_criterion_names_what_is_allowed(compute):
    given_ = metric_input(AVG, expected=[], criterion={"matchType": "FUZZY", "ignore_args": "perhaps"})

    with pytest.raises(CriterionError) as raised:
        compute(given_)
    assert "match_type must be EXACT, IN_ORDER or ANY_ORDER, not 'FUZZY'" in str(raised.value)
    assert "ignore_args must be true or false, not 'perhaps'" in str(raised.value)


def test_metric_without_a_threshold_is_refused():
    with pytest.raises(CriterionError, match="has no threshold"):
        avg([turn()], [turn()], threshold=None)


@pytest.mark.parametrize(
    ("expected", "actual", "reason"),
    [
        (
            [call("a", x=1)],
            [call("a", x=2), "b"],
            "turn 1: a: arguments differ, b unexpected",
        ),
        (["a", "b"], ["b"], "turn 1: a missing"),
        (["a", "b"], ["b", "a"], "turn 1: calls out of order"),
        ([call("a", x=1), call("a", x=2)], [call("a", x=1)], "turn 1: a missing"),
        (["a"], ["a"], ""),
    ],
)
def test_reason_names_what_differs(expected, actual, reason):
    assert avg([turn(*expected)], [turn(*actual)]).reason == reason


def test_failed_turns_are_counted_from_one_and_only_the_first_are_named():
    result = avg([turn("a")] * 6, [turn("a")] + [turn()] * 5)

    assert result.reason == "turn 2: a missing; turn 3: a missing; turn 4: a missing; 2 turns more"
    assert result.score == pytest.approx(1 / 6)
    assert [entry.status for entry in result.per_invocation] == [Status.PASSED] + [Status.FAILED] * 5


def test_passing_mean_still_tells_which_turn_failed():
    result = avg([turn("a"), turn("a")], [turn("a"), turn("b")], threshold=0.5)

    assert (result.status, result.score) == (Status.PASSED, 0.5)
    assert result.reason == "turn 2: a missing, b unexpected"


def test_marked_turns_are_left_out_of_the_mean():
    result = avg(
        [turn("a"), turn("a"), turn("a")],
        [turn("b"), turn("a"), turn("b")],
        context=frozenset([0]),
        skip_calls=frozenset([2]),
    )

    assert (result.score, result.status) == (1.0, Status.PASSED)
    assert [entry.status for entry in result.per_invocation] == [
        Status.NOT_EVALUATED,
        Status.PASSED,
        Status.NOT_EVALUATED,
    ]
    assert "context" in result.per_invocation[0].reason
    assert "not checked" in result.per_invocation[2].reason


@pytest.mark.parametrize(
    ("name", "compute"),
    [(AVG, tool_trajectory_avg_score), (RECALL, trajectory_recall), (SINGLE, trajectory_single_tool_use)],
)
def test_nothing_left_to_score_is_not_evaluated(name, compute):
    marked = metric_input(
        name,
        expected=[turn("a")],
        actual=[turn("b")],
        skip_calls=frozenset([0]),
        criterion={"tool": "a"},
    )
    empty = metric_input(name, expected=[], actual=[], criterion={"tool": "a"})

    assert (compute(marked).status, compute(marked).score) == (Status.NOT_EVALUATED, None)
    assert "no turn to score" in compute(marked).reason
    assert len(compute(marked).per_invocation) == 1
    assert compute(empty).status is Status.NOT_EVALUATED
    assert compute(empty).reason == "no turn to score"


def test_sides_that_cannot_be_paired_are_not_evaluated():
    assert avg([turn(), turn()], [turn()]).reason == "cannot be paired: 2 turns expected, 1 turn run"
    assert avg(None, [turn()]).status is Status.NOT_EVALUATED


def share(compute, name, expected, actual, criterion=None):
    return compute(
        metric_input(name, expected=[turn(*expected)], actual=[turn(*actual)], criterion=criterion)
    )


@pytest.mark.parametrize(
    ("expected", "actual", "precision", "recall"),
    [
        ([], [], 1.0, 1.0),
        (["a"], [], 0.0, 0.0),
        ([], ["a"], 0.0, 1.0),
        (["a", "b"], ["b", "a"], 1.0, 1.0),
        (["a", "b", "c"], ["a"], 1.0, 1 / 3),
        (["a"], ["a", "b", "c"], 1 / 3, 1.0),
        (["a"], ["a", "a"], 0.5, 1.0),
        (["a", "a"], ["a"], 1.0, 0.5),
        ([call("a", x=1)], [call("a", x="1")], 0.0, 0.0),
    ],
)
def test_precision_and_recall(expected, actual, precision, recall):
    assert share(trajectory_precision, PRECISION, expected, actual).score == precision
    assert share(trajectory_recall, RECALL, expected, actual).score == recall


def test_precision_and_recall_say_which_calls():
    precise = share(trajectory_precision, PRECISION, ["a"], ["a", "b", "c"])
    complete = share(trajectory_recall, RECALL, ["a", "b"], ["a"])

    assert precise.reason == "turn 1: 2 of 3 calls unexpected: b, c"
    assert complete.reason == "turn 1: 1 of 2 expected calls missing: b"


def test_precision_can_ignore_args():
    result = share(trajectory_precision, PRECISION, [call("a", x=1)], [call("a", x=2)], {"ignore_args": True})

    assert result.score == 1.0


def single(actual, criterion, **marks):
    return trajectory_single_tool_use(metric_input(SINGLE, actual=actual, criterion=criterion, **marks))


@pytest.mark.parametrize("key", ["tool", "tool_name", "toolName"])
def test_single_tool_use_in_any_turn(key):
    result = single([turn("a"), turn("b", "c", recorded=True)], {key: "c"})

    assert (result.score, result.status) == (1.0, Status.PASSED)
    assert [entry.score for entry in result.per_invocation] == [0.0, 1.0]


def test_single_tool_never_used():
    result = single([turn("a"), turn()], {"tool": "c"})

    assert (result.score, result.status, result.reason) == (0.0, Status.FAILED, "no turn called c")


def test_single_tool_used_only_in_a_turn_that_is_not_checked():
    result = single([turn("c"), turn("a")], {"tool": "c"}, skip_calls=frozenset([0]))

    assert result.status is Status.FAILED


def test_single_tool_use_needs_the_name_of_the_tool():
    result = single([turn("a")], {})

    assert result.status is Status.NOT_EVALUATED
    assert '"tool" key' in result.reason
    with pytest.raises(CriterionError, match="must be the name of a tool, not 3"):
        single([turn("a")], {"tool": 3})


@pytest.mark.parametrize(
    ("name", "criterion", "ignored"),
    [
        (AVG, {"ignore_args": True}, True),
        (AVG, {}, False),
        (AVG, {"ignore_args": "perhaps"}, False),
        ("my_metric", {"ignore_args": True}, False),
    ],
)
def test_whether_a_metric_ignores_args(name, criterion, ignored):
    assert ignores_args(metric_input(name, criterion=criterion).metric) is ignored
