"""Queries over scores say what each result on its own says by the thresholds."""

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged_votes import SEVERAL, config_of, edges, scored

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.compare.run_summary import summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.confidence import Confidence
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.errors import NOT_RECORDED, ErrorKind
from evaltui.core.model.outcome import WORST_FIRST, ErrorInfo, MetricResult, RepeatResult, Status
from evaltui.core.thresholds import Limit, limits_of, rejudge, scores_decide
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import begin_run
from evaltui.runs.score_table import CaseRow, ScoreTable, Side, TriedThreshold
from evaltui.runs.store import RunStore

SCORES = st.one_of(st.none(), st.sampled_from((0.0, 0.25, 0.5, 0.8, 1.0, 3.0)))
LIMITS = st.sampled_from((0.0, 0.25, 0.3, 0.5, 0.8, 1.0, 4.0))
POLICIES = st.sampled_from(("all", "majority", 0.3, 0.6))
NAMES = ("response_match_score", "tool_trajectory_avg_score", "tokens")


def case_at(number):
    return CaseId("set", f"case {number}")


def config(thresholds, pass_if="all", **more):
    ours = {name: value for name, value in thresholds.items() if name == "tokens"}
    others = {name: value for name, value in thresholds.items() if name not in ours}
    block = {"criteria": ours, "repeats": {"pass_if": pass_if}, **more}
    return EvalConfig.model_validate({"criteria": others, "evaltui": block})


@st.composite
def results(draw, thresholds):
    """A result by these thresholds."""
    limits = limits_of(config(thresholds))
    repeats = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.sampled_from((*[False] * 9, True))):
            kind = draw(st.sampled_from(("ValueError", NOT_RECORDED)))
            repeats.append(RepeatResult(Status.ERROR, error=ErrorInfo(kind, "no", kind=ErrorKind.AGENT)))
            continue
        metrics = [MetricResult("token_usage_v1", 3.0, None, Status.INFORMATIONAL)]
        for name, limit in limits.items():
            score, status = draw(SCORES), draw(st.sampled_from((Status.ERROR, Status.NOT_EVALUATED)))
            status = status if score is None else limit.verdict(score)
            optional = draw(st.booleans())
            metrics.append(MetricResult(name, score, limit.threshold, status, is_optional=optional))
        if draw(st.booleans()):
            state = draw(st.sampled_from((Status.PASSED, Status.FAILED)))
            metrics.append(MetricResult("final_session_state", 1.0 * (state == "PASSED"), 1.0, state))
        repeats.append(RepeatResult(Status.PASSED, tuple(metrics)))
    by = config(thresholds)
    return rejudge(case_over_repeats("set", "case", repeats, "all", "set"), by, by)


def filled(cases, pass_if=None):
    table = ScoreTable(case_at)
    for number, result in enumerate(cases):
        table.add(number, result)
    table.put_cases(CaseRow(number, number, number, number, pass_if) for number in range(len(cases)))
    return table


def by_score(scores):
    repeats = [
        RepeatResult(Status.PASSED, (MetricResult("response_match_score", score, 0.5, Status.PASSED),))
        for score in scores
    ]
    return case_over_repeats("set", "case", repeats, "all")


@given(
    of_cases=st.lists(st.lists(SCORES, min_size=1, max_size=4), max_size=6),
    limits=st.tuples(LIMITS, LIMITS),
    pass_if=POLICIES,
    lower=st.booleans(),
)
def test_a_trial_says_what_each_case_says(of_cases, limits, pass_if, lower):
    table = filled([by_score(scores) for scores in of_cases])
    trial = table.trial(
        TriedThreshold("response_match_score", *limits, pass_if, (0.0, 1.0), lower_is_better=lower)
    )
    scored = {
        number: scores for number, scores in enumerate(of_cases) if any(one is not None for one in scores)
    }

    def passing(threshold):
        limit = Limit(threshold, lower)
        for number, scores in scored.items():
            statuses = [Status.FAILED if one is None else limit.verdict(one) for one in scores]
            if case_over_repeats("", "", [RepeatResult(one) for one in statuses], pass_if).policy_met:
                yield number

    now, before = (set(passing(limit)) for limit in limits)
    every = sorted(one for scores in scored.values() for one in scores if one is not None)
    assert (trial.scored, trial.passing) == (len(scored), len(now))
    assert [score for score, count in trial.scores for _ in range(count)] == every
    assert trial.now_pass == tuple(case_at(number) for number in sorted(now - before))
    assert trial.mean == (pytest.approx(math.fsum(every) / len(every)) if every else None)
    worst = [
        (case_at(number), (max if lower else min)(one for one in scores if one is not None))
        for number, scores in scored.items()
    ]
    assert trial.cases == tuple(sorted(worst, key=lambda one: one[1], reverse=lower))


@given(data=st.data(), count=st.integers(1, 4), pass_if=POLICIES, policy_of_run=st.booleans())
def test_verdicts_by_scores_are_those_of_each_result(data, count, pass_if, policy_of_run):
    thresholds = {name: data.draw(LIMITS) for name in NAMES}
    cases = [data.draw(results(thresholds)) for _ in range(count)]
    moved = {name: data.draw(st.sampled_from((value, 0.5))) for name, value in thresholds.items()}
    for name in data.draw(st.sets(st.sampled_from(NAMES), max_size=1)):
        del moved[name]
    saved, edited = config(thresholds), config(moved, pass_if)
    assert scores_decide(saved, edited)
    table = filled(cases, "all" if policy_of_run else None)
    sides = [
        Side(column, limits_of(one), one.evaltui.repeats.pass_if)
        for column, one in (("saved", saved), ("edited", edited))
    ]
    verdicts = table.verdicts(*sides), table.verdicts(*reversed(sides))
    assert verdicts[0].keys() == verdicts[1].keys()
    for number, result in enumerate(cases):
        told = [rejudge(result, saved, one, "all" if policy_of_run else None) for one in (saved, edited)]
        expected = [(one.status, one.policy_met) for one in told]
        if case_at(number) in verdicts[0]:
            assert [tuple(one[case_at(number)]) for one in verdicts] == expected
        else:
            assert expected[0] == expected[1]


@given(SEVERAL, st.data())
def test_another_threshold_decides_as_a_judge_s_votes_by_it(metrics, data):
    others = [
        replace(metric, threshold=data.draw(st.sampled_from(edges(metric.name, metric.votes))))
        if metric.threshold is not None
        else metric
        for metric in metrics
    ]
    saved, edited = config_of(metrics), config_of(others)
    assert scores_decide(saved, edited)
    before, after = (
        case_over_repeats("set", "case", [scored(some, by)], "all", "set")
        for some, by in ((metrics, saved), (others, edited))
    )
    assert verdicts_of(rejudge(before, saved, edited)) == verdicts_of(after)
    sides = Side("saved", limits_of(saved), "all"), Side("edited", limits_of(edited), "all")
    old, new = (filled([before]).verdicts(*some) for some in (sides, sides[::-1]))
    told = [list(verdicts.values()) for verdicts in (old, new)]
    if before.status is after.status:
        assert told[0] == told[1]
    else:
        assert [some[0].status for some in told] == [before.status, after.status]


def verdicts_of(result):
    scores = {one.name: (one.score, one.threshold) for one in result.metrics if one.score is not None}
    return result.status, {one.name: one.status for one in result.metrics}, scores


def test_of_ten_thousand_cases_a_moved_threshold_asks_few_queries_and_gets_few_rows():
    cases = [by_score([number / 10_000]) for number in range(10_000)]
    table = filled(cases)
    asked, rows = [], []
    table._db.set_trace_callback(asked.append)
    query = table._rows
    table._rows = lambda *question: rows.extend(found := query(*question)) or found
    trial = table.trial(TriedThreshold(NAMES[0], 0.51, 0.5, "all", (0.0, 1.0), lower_is_better=False))
    assert (trial.scored, trial.passing, trial.cases[0]) == (10_000, 4_900, (case_at(0), 0.0))
    assert len(asked) <= 3
    assert len(rows) < 1_000
    asked.clear(), rows.clear()
    configs = ("saved", config({NAMES[0]: 0.5})), ("edited", config({NAMES[0]: 0.51}))
    sides = [Side(column, limits_of(one), "all") for column, one in configs]
    then, now = table.verdicts(*sides), table.verdicts(*reversed(sides))
    assert sum(then[case].passes and not now[case].passes for case in then) == 100
    assert len(asked) < 20
    assert len(rows) <= 2 * 102


def test_results_of_a_run_s_file_are_as_those_in_memory(tmp_path):
    saved, edited = config({NAMES[0]: 0.5}), config({NAMES[0]: 0.9}, "majority")
    absent = MetricResult("safety_v1", None, 0.5, Status.NOT_EVALUATED)
    metrics = [
        (MetricResult(NAMES[0], 0.75, 0.5, Status.PASSED), other)
        for other in (absent, replace(absent, is_optional=True), replace(absent, status=Status.INFORMATIONAL))
    ]
    repeats = [RepeatResult(Status.PASSED, one) for one in metrics]
    error = ErrorInfo("ValueError", "no", kind=ErrorKind.AGENT)
    broken = RepeatResult(Status.ERROR, error=error)
    cases = [
        rejudge(case_over_repeats("set", f"case {number}", some, "all", "set"), saved, saved)
        for number, some in enumerate(([broken], *([one] for one in repeats), [*repeats, broken]))
    ]
    cases.append(case_over_repeats("set", "case 5", repeats[1:], "all", "set", Confidence(0.9, 5)))
    missing = RepeatResult(Status.ERROR, error=replace(error, type=NOT_RECORDED))
    cases.append(case_over_repeats("set", "case 6", [repeats[1], missing], "all", "set"))
    names = [result.eval_id for result in cases]
    run = begin_run(RunStore(tmp_path), RunHeader((SelectedSet("set", "set", tuple(names), {}),)))
    for number, result in enumerate(cases):
        for place, repeat in enumerate(result.repeats):
            run.add_repeat(case_at(number), "set", place, repeat)
        run.add_case(summarize(result), result)
    run.close(None)
    stored = ScoreTable(case_at)
    decided = stored.add_stored(run.path, {number + 1: number for number in range(len(cases))})
    assert decided == {5}
    stored.put_cases(CaseRow(number, number, number, number) for number in range(len(cases)))
    sides = Side("saved", limits_of(saved), "all"), Side("edited", limits_of(edited), "majority")
    for side, other in (sides, reversed(sides)):
        assert stored.verdicts(side, other) == filled(cases).verdicts(side, other)
    tried = TriedThreshold(NAMES[0], 0.9, 0.5, "all", (0.0, 1.0), lower_is_better=False)
    assert stored.trial(tried) == filled(cases).trial(tried)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_scores_and_totals_of_stored_cases_are_those_of_their_results(tmp_path, data):
    thresholds = dict.fromkeys(NAMES, 0.5)
    cases = [
        replace(one, eval_id=f"case {number}")
        for number, one in enumerate(data.draw(st.lists(results(thresholds), min_size=1, max_size=4)))
    ]
    selected = SelectedSet("set", "set", tuple(one.eval_id for one in cases), {})
    run = begin_run(RunStore(tmp_path), RunHeader((selected,)))
    for number, result in enumerate(cases):
        for place, repeat in enumerate(result.repeats):
            run.add_repeat(case_at(number), "set", place, repeat)
        run.add_case(summarize(result), result)
    run.close(None)
    wanted = data.draw(st.sets(st.integers(1, len(cases))))
    of_cases = {number: cases[number - 1].metrics for number in wanted}
    file = RunFile(run.path)
    assert file.deciding_scores(wanted) == {
        number: scores
        for number, metrics in of_cases.items()
        if (scores := {one.name: (one.score, one.status) for one in metrics if one.score is not None})
    }
    judged = [one for some in of_cases.values() for one in some if one.status is not Status.INFORMATIONAL]
    totals = file.metric_totals(wanted)
    assert totals.keys() == {one.name for one in judged}
    for name, total in totals.items():
        metrics = [one for one in judged if one.name == name]
        scores = [one.score for one in metrics if one.score is not None]
        passed = sum(one.status is Status.PASSED for one in metrics)
        assert (total.cases, total.passed, total.scored) == (len(metrics), passed, len(scores))
        assert total.sum == pytest.approx(sum(scores))
        statuses = [one.status for one in metrics]
        assert (total.failed, total.not_evaluated) == (
            statuses.count(Status.FAILED),
            statuses.count(Status.NOT_EVALUATED),
        )
        assert total.status is next(status for status in WORST_FIRST if status in statuses)
