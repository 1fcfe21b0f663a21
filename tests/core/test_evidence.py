"""What a difference between two runs proves, and what a rate can be relied on."""

import pytest

from evaltui.core.compare.run_comparison import compare
from evaltui.core.compare.run_summary import CaseSummary, RunSummary
from evaltui.core.compare.totals import rates, totals_of
from evaltui.core.model.outcome import Status
from evaltui.reports.json_report import comparison_json
from evaltui.text.lines import draw
from evaltui.views.comparison import comparison_lines


def rates_of(cases):
    return rates(cases, totals_of(cases))


def case(eval_id, passed, runs=1, **fields):
    status = Status.PASSED if passed == runs else Status.FLAKY if passed else Status.FAILED
    return CaseSummary("lights", eval_id, status, runs, passed, policy_met=passed == runs, **fields)


def run(name, *cases):
    return RunSummary(name, {one.id: one for one in cases}, whole=frozenset({"lights"}))


def suite(name, *passed, runs=1):
    return run(name, *(case(f"c{number}", one, runs) for number, one in enumerate(passed)))


def regressions(base, candidate, alpha=0.05):
    return [one.case.eval_id for one in compare(base, candidate, alpha).regressions]


def text(comparison):
    return "\n".join(draw(line, color=False) for line in comparison_lines(comparison, 100))


def test_cases_are_paired_by_their_verdicts():
    base = suite("base", *[0] * 7, *[1] * 33)
    comparison = compare(base, suite("now", *[1] * 7, *[1] * 32, 0))
    assert str(comparison.paired) == "better on 7, worse on 1 of 40 cases: p = 0.07"
    assert "  better on 7, worse on 1 of 40 cases: p = 0.07 (exact McNemar test)" in text(comparison)
    assert comparison_json(comparison)["paired"] == {
        "better": 7,
        "worse": 1,
        "cases": 40,
        "repeated": False,
        "p": 0.0703125,
    }
    assert str(compare(base, base).paired) == "40/40 cases same verdict"


def test_what_cannot_be_compared_is_no_pair():
    base = run("base", case("a", 1), case("b", 1, expects="x"), case("gone", 1))
    unjudged = CaseSummary("lights", "a", Status.NOT_EVALUATED)
    comparison = compare(base, run("now", unjudged, case("b", 0, expects="y"), case("new", 0)))
    assert comparison.paired.cases == 0
    assert "McNemar" not in text(comparison)


@pytest.mark.parametrize(
    ("before", "now", "p", "is_regression"),
    [
        ((5, 5), (4, 5), 0.5, False),
        ((5, 5), (2, 5), 1 / 12, False),
        ((5, 5), (1, 5), 1 / 42, True),
        ((3, 3), (0, 3), 0.05, True),
        ((2, 2), (0, 2), 1 / 6, True),
        ((2, 2), (1, 2), 0.5, False),
        ((1, 1), (0, 5), None, True),
        ((5, 5), (0, 1), None, True),
        ((1, 1), (0, 1), None, True),
    ],
)
def test_a_case_that_was_repeated_in_both_runs_needs_evidence(before, now, p, is_regression):
    comparison = compare(run("base", case("a", *before)), run("now", case("a", *now)))
    (change,) = comparison.cases
    assert change.p == (p and pytest.approx(p))
    assert change.regression is is_regression
    assert ("without evidence (p > 0.05): a" in text(comparison)) is not is_regression
    assert next(comparison_json(comparison)["cases"])["regression"] is is_regression


def test_many_cases_together_are_evidence():
    """None of six cases could prove it alone."""
    base, now = suite("base", *[5] * 12, runs=5), suite("now", *[3] * 6, *[5] * 6, runs=5)
    comparison = compare(base, now)
    assert [one.p for one in comparison.of("broken")] == [pytest.approx(2 / 9)] * 6
    assert comparison.paired.p == 2 / 64
    assert len(comparison.regressions) == 6
    assert "of 12 cases: p = 0.031" in text(comparison)
    assert regressions(base, now, alpha=0.01) == []
    # It is no evidence that as many became better.
    mixed = suite("mixed", *[5] * 3, *[3] * 4, *[5] * 5, runs=5)
    assert regressions(suite("base", *[3] * 3, *[5] * 9, runs=5), mixed) == []


def test_a_new_case_that_fails_is_a_regression_without_a_test():
    assert regressions(run("base"), run("now", case("a", 3, 5))) == ["a"]


def test_the_rates_of_a_run():
    found = rates_of([case(f"c{number}", 1) for number in range(12)] + [case(f"f{n}", 0) for n in range(4)])
    assert found.in_words == "75% (51–90%) of 16 cases"
    assert rates_of([case("a", 1)]).in_words == "100% (21–100%) of 1 case"
    assert rates_of([]) is None
    several = rates_of([case("a", 5, 5), case("b", 3, 5), case("c", 4, 5)])
    assert several.in_words == "33% (6–79%) of 3 cases, 80% (29–98%) of 15 runs"


def test_mean_scores_have_a_standard_error_where_cases_differ():
    scores = {"response_match_score": (0.5, 0.7, 0.9), "tool_trajectory_avg_score": (1.0, 1.0, 1.0)}
    cases = [case(f"c{n}", 1, scores={name: of[n] for name, of in scores.items()}) for n in range(3)]
    assert rates_of(cases).scores_in_words == "response_match_score 0.70 ± 0.12"
    assert rates_of(cases[:1]).scores_in_words == ""


def test_the_alpha_of_a_comparison_is_in_its_json():
    assert comparison_json(compare(run("base"), run("now"), 0.2))["alpha"] == 0.2
