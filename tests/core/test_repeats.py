from itertools import combinations

import pytest
from eval_data import make_turn
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.compare.diff import align_calls
from evaltui.core.compare.repeats import case_over_repeats, pass_if_of, passes_needed
from evaltui.core.compare.run_summary import summarize
from evaltui.core.compare.totals import rates, totals_of
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.outcome import Call, RepeatResult, Status, TurnResult
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.core.statistics import pass_at_k, pass_hat_k

counts = st.integers(1, 8).flatmap(
    lambda runs: st.tuples(st.just(runs), st.integers(0, runs), st.integers(1, runs))
)


def rates_of(cases):
    return rates(cases, totals_of(cases))


@given(counts)
def test_both_are_the_share_of_all_choices_of_k_runs(count):
    runs, passed, k = count
    choices = list(combinations([number < passed for number in range(runs)], k))
    assert pass_at_k(runs, passed, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(runs, passed, k) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_what_is_not_evaluated_lowers_no_rate():
    """An error does."""
    passed, not_evaluated, error = map(RepeatResult, (Status.PASSED, Status.NOT_EVALUATED, Status.ERROR))
    assert str(over(passed, not_evaluated).rate) == "100% (21–100%)"
    assert over(passed, error).rate.rate == 0.5
    assert over(not_evaluated, not_evaluated).rate is None
    assert [rate.k for rate in over(passed, not_evaluated, passed).pass_rates] == [1, 2]
    assert over(not_evaluated).pass_rates == ()
    cases = [summarize(over(one)) for one in (passed, not_evaluated, error)]
    assert totals_of(cases).case_rate.rate == 0.5
    assert rates_of(cases).in_words.startswith("50% ")
    assert rates_of(cases[1:2]) is None
    several = [summarize(over(passed, not_evaluated)), summarize(over(error, error))]
    assert (rates_of(several).runs.mean, rates_of(several).runs.of) == (0.5, 3)


def over(*repeats, pass_if="all"):
    return case_over_repeats("s", "c", repeats, pass_if)


def said(*calls):
    uses = [{"name": name, "args": args} for name, args in calls]
    return Invocation.model_validate(make_turn("hi", calls=uses))


def ran(status, *turns):
    """A run that made these calls, turn by turn."""
    return RepeatResult(status, actual=tuple(said(*turn) for turn in turns))


P, F, E, N = Status.PASSED, Status.FAILED, Status.ERROR, Status.NOT_EVALUATED

WITHOUT_VERDICTS = {
    "all, one open": ("all", (P, P, N), N),
    "all, one failed": ("all", (P, F, N), Status.FLAKY),
    "all, none passed": ("all", (F, N, N), F),
    "all, an error": ("all", (E, N, N), E),
    "majority, met": ("majority", (P, N, P), P),
    "majority, met beside a failure": ("majority", (P, P, P, F, N), Status.FLAKY),
    "majority, open": ("majority", (P, P, F, N), N),
    "majority, not met": ("majority", (P, F, F, N), Status.FLAKY),
    "rate, open": (0.5, (P, N, N), N),
    "rate, open by the failure": (0.5, (N, P, F), N),
    "none": (0.5, (N, N, N), N),
}


@pytest.mark.parametrize(("pass_if", "statuses", "status"), WITHOUT_VERDICTS.values(), ids=WITHOUT_VERDICTS)
def test_repeats_without_a_verdict_leave_the_policy_open(pass_if, statuses, status):
    case = over(*map(ran, statuses), pass_if=pass_if)
    assert case.status is status
    assert case.passed is (statuses.count(P) >= passes_needed(pass_if, len(statuses)))
    assert case.repeats[case.deciding_repeat].status in (status, F)


def test_rates_of_a_case():
    rates = over(ran(P), ran(F), ran(P), ran(E), ran(P)).pass_rates
    assert [(rate.k, rate.pass_at_k, rate.pass_hat_k) for rate in rates] == [
        (1, 0.6, 0.6),
        (2, 0.9, 0.3),
        (3, 1.0, 0.1),
        (5, 1.0, 0.0),
    ]


@pytest.mark.parametrize("pass_if", ["all", "majority", 0.6, 1.0])
def test_a_policy_is_read_as_it_is_named(pass_if):
    assert pass_if_of(over(ran(P), pass_if=pass_if).policy) == pass_if


@pytest.mark.parametrize(
    ("pass_if", "runs", "least"),
    [("all", 4, 4), ("majority", 4, 3), ("majority", 5, 3), (0.6, 5, 3), (0.61, 5, 4), (1.0, 4, 4)],
)
def test_a_policy_is_met_from_so_many_passed_runs_on(pass_if, runs, least):
    met = [
        over(*[ran(P)] * passed, *[ran(F)] * (runs - passed), pass_if=pass_if).policy_met
        for passed in range(runs + 1)
    ]
    assert met == [passed >= least for passed in range(runs + 1)]


def test_runs_with_the_same_calls_are_one_group():
    one, other = ("dim", {"to": 5}), ("dim", {"to": 6})
    repeats = (ran(F, [other]), ran(P, [one], []), ran(P, [one]), ran(F, [one]), ran(E, []), ran(E))
    groups = over(*repeats).trajectories
    assert [(group.repeats, group.status) for group in groups] == [
        ((1, 2, 3), Status.FLAKY),
        ((4, 5), E),
        ((0,), F),
    ]
    assert groups[0].calls == ((Call("dim", {"to": 5}),),)
    assert groups[1].calls == ()


def test_calls_in_another_turn_are_another_trajectory():
    call = ("dim", None)
    result = over(ran(P, [call, call]), ran(P, [call], [call]), ran(P, [], [call]))
    assert len(result.trajectories) == 3


calls = st.lists(st.builds(Call, st.sampled_from("ab"), st.just({}) | st.just({"x": 1})), max_size=4)


@given(st.lists(calls, max_size=3), calls)
def test_a_run_from_a_log_has_the_calls_that_it_made(turns, expected):
    actual = tuple(said(*((call.name, call.args) for call in turn)) for turn in turns)
    compared = tuple(
        TurnResult("these calls", align_calls(expected, turn), ResponseDiff(None, None)) for turn in turns
    )
    assert RepeatResult(P, turns=compared).trajectory == RepeatResult(P, actual=actual).trajectory
