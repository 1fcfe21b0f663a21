"""The verdict on a variant of a matrix: better, worse or undecided, by case and by metric."""

import pytest

from evaltui.core.compare.matrix import matrix_of
from evaltui.core.compare.run_summary import CaseSummary, Circumstances, RunSummary, summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.confidence import Decision
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.served import ServedModel
from evaltui.text.lines import draw
from evaltui.views.variant_verdict import verdict_lines


def case(name, passed, runs=1, decision=None, **more):
    status = Status.PASSED if passed == runs else Status.FLAKY if passed else Status.FAILED
    statuses = (Status.PASSED,) * passed + (Status.FAILED,) * (runs - passed)
    decided = None if decision is None else Decision(decision, 0.95, 50, 0.7, 0.9)
    differing = statuses if status is Status.FLAKY else ()
    scores = {"judged": passed / runs, "calls": 1.0}
    judges = {"judged": "gemini-judge (p/1)"}
    more = {"scores": scores, "judges": judges, "decision": decided} | more
    return CaseSummary("s", name, status, runs, passed, statuses=differing, **more)


def verdict_on(base, variant, config=None):
    around = Circumstances(configs={"s": config or {}})
    columns = [
        RunSummary(name, {one.id: one for one in cases}, circumstances=around)
        for name, cases in base_and(base, variant)
    ]
    matrix = matrix_of(columns)
    return matrix.verdicts[1], "\n".join(draw(line, color=False) for line in verdict_lines(matrix))


def base_and(base, variant):
    return (("base", base), ("new", variant))


SERVED = {"served": (ServedModel("agent", "m", "m-001"),)}
OTHER = {"served": (ServedModel("agent", "m", "n"),)}


NOT_RUN = summarize(CaseResult.not_run(CaseId("s", "c"), "s"))


@pytest.mark.parametrize(
    ("base", "variant", "answer"),
    [
        (case("c", 1), case("c", 1), "same"),
        (case("c", 0), case("c", 1), "better"),
        (case("c", 1), case("c", 0), "worse"),
        (case("c", 5, 5), case("c", 4, 5), "undecided"),
        (case("c", 9, 9), case("c", 1, 9), "worse"),
        (case("c", 1, 9), case("c", 9, 9), "better"),
        (case("c", 12, 12, "passes"), case("c", 0, 3, "does not pass"), "worse"),
        (case("c", 12, 12, "passes"), case("c", 6, 9, "undecided"), "undecided"),
        (case("c", 12, 12, "passes"), case("c", 23, 31, "does not pass"), "undecided"),
        (case("c", 1, **SERVED), case("c", 0, **OTHER), "undecided"),
        (case("c", 1, expects="1"), case("c", 0, expects="2"), "undecided"),
        (case("c", 1), NOT_RUN, "undecided"),
        (NOT_RUN, case("c", 1), "undecided"),
    ],
)
def test_of_a_case(base, variant, answer):
    verdict, _ = verdict_on([base], [variant])
    cases = {"better": verdict.better, "worse": verdict.worse, "undecided": verdict.undecided}
    assert {name: ids for name, ids in cases.items() if ids} == ({} if answer == "same" else {answer: ("c",)})
    assert verdict.same == (answer == "same")


FUNCTION = {"threshold": 1.0, "function": "my.metric"}


@pytest.mark.parametrize(
    ("metric", "config", "answer"),
    [
        ("seconds", {"evaltui": {"criteria": {"seconds": {"threshold": 9.0}}}}, "worse"),
        ("seconds", {"evaltui": {"criteria": {"seconds": FUNCTION}}}, "better"),
        (
            "seconds",
            {"criteria": {"seconds": {"threshold": 1.0}}, "custom_metrics": {"seconds": {"a": 1}}},
            "better",
        ),
        ("response_match_score", {"evaltui": {"criteria": {"response_match_score": FUNCTION}}}, "better"),
        (
            "response_match_score",
            {"evaltui": {"criteria": {"response_match_score": {**FUNCTION, "lower_is_better": True}}}},
            "worse",
        ),
    ],
)
def test_a_metric_of_the_user_has_its_own_direction_under_any_name(metric, config, answer):
    base, variant = ([case(f"c{n}", 1, scores={metric: score}) for n in range(9)] for score in (1.0, 2.0))
    verdict, _ = verdict_on(base, variant, config)
    assert [of_metric.answer for of_metric in verdict.metrics] == [answer]


def test_nothing_is_the_same_where_cases_did_not_run():
    verdict, text = verdict_on([case("a", 1), case("c", 1)], [case("a", 1), NOT_RUN])
    assert (verdict.answer, {metric.answer for metric in verdict.metrics}) == ("undecided", {"undecided"})
    assert "0 better, 0 worse, 1 undecided (c), 1 the same" in text
    assert verdict_on([case("a", 1)], [case("c", 1)])[0].answer == "undecided"


def test_cases_of_several_sets_are_named_with_their_set():
    base = [case("c", 1, path="a/s.json"), case("c", 0, path="b/s.json")]
    verdict, _ = verdict_on(base, [case("c", 0, path="a/s.json"), case("c", 1, path="b/s.json")])
    assert (verdict.better, verdict.worse) == (("b/s.json:c",), ("a/s.json:c",))


@pytest.mark.parametrize(
    ("better", "worse", "answer"),
    [(0, 0, "same"), (1, 3, "undecided"), (0, 6, "worse"), (7, 0, "better"), (5, 5, "undecided")],
)
def test_of_all_cases_and_of_each_metric(better, worse, answer):
    names = [f"c{number}" for number in range(20)]
    base = [case(name, int(number >= better)) for number, name in enumerate(names)]
    variant = [case(name, int(not better <= number < better + worse)) for number, name in enumerate(names)]
    verdict, text = verdict_on(base, variant)
    assert (verdict.answer, len(verdict.better), len(verdict.worse)) == (answer, better, worse)
    judged, calls = verdict.metrics
    assert (judged.metric, judged.answer, judged.better, judged.worse) == ("judged", answer, better, worse)
    assert (calls.metric, calls.answer) == ("calls", "same")
    assert text.startswith(f"new against base: {answer}")
    assert "judge  gemini-judge (p/1), same in both" in text
