from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.compare.run_comparison import KINDS, circumstance_changes, compare, config_of
from evaltui.core.compare.run_summary import (
    CaseSummary,
    Circumstances,
    RunSummary,
    selected_cases,
    summarize,
)
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.judgement import JudgedBy
from evaltui.core.model.outcome import CaseResult, InvocationScore, MetricResult, RepeatResult, Status

P, F, E, FLAKY = Status.PASSED, Status.FAILED, Status.ERROR, Status.FLAKY


def summary(eval_id, status, eval_set_id="s", **fields):
    stable = {"passed": int(status is P), "policy_met": status is P}
    return CaseSummary(eval_set_id, eval_id, status, **{**stable, **fields})


def run(*cases, whole=("s",), **fields):
    return RunSummary("run", {case.id: case for case in cases}, whole=frozenset(whole), **fields)


def kinds(base, candidate):
    return {change.case.eval_id: change.kind for change in compare(base, candidate).cases}


def flaky(eval_id, met):
    return summary(eval_id, FLAKY, runs=5, passed=3, policy_met=met)


def test_every_kind():
    base = run(
        *(summary(name, P) for name in ("broke", "same", "gone", "wavers", "fails by policy", "edited")),
        *(summary(name, F) for name in ("fixed", "bad", "other trouble")),
        flaky("steadied", True),
    )
    candidate = run(
        *(summary(name, P) for name in ("same", "fixed", "new", "steadied")),
        *(summary(name, F) for name in ("broke", "bad")),
        summary("other trouble", E),
        flaky("wavers", True),
        flaky("fails by policy", False),
        summary("edited", F, expects="b"),
    )
    edited = CaseId("s", "edited")
    base.cases[edited] = replace(base.cases[edited], expects="a")
    assert kinds(base, candidate) == {
        "broke": "broken",
        "fails by policy": "broken",
        "fixed": "fixed",
        "wavers": "flaky",
        "steadied": "flaky",
        "edited": "expectation changed",
        "new": "new",
        "gone": "gone",
        "same": "unchanged",
        "bad": "unchanged",
        "other trouble": "unclear",
    }
    regressions = {change.case.eval_id for change in compare(base, candidate).regressions}
    # A failure that was one before is excused; an error is none, and nobody has met a new expectation yet.
    assert regressions == {"broke", "fails by policy", "edited", "other trouble"}


def test_what_was_not_asked_for_is_gone_nowhere_and_new_where_it_fails():
    part, whole = run(summary("a", P), whole=()), run(summary("a", P), summary("b", F))
    assert kinds(part, run(summary("a", P), summary("b", P))) == {"a": "unchanged", "b": "not run"}
    assert kinds(part, whole) == {"a": "unchanged", "b": "new"}
    assert kinds(whole, part) == {"a": "unchanged", "b": "not run"}
    assert [change.case.eval_id for change in compare(part, whole).regressions] == ["b"]
    assert compare(whole, part).regressions == ()
    not_run = summarize(CaseResult.not_run(CaseId("s", "b"), "s"))
    interrupted = run(summary("a", P), not_run)
    assert kinds(interrupted, whole)["b"] == "new"
    assert kinds(whole, interrupted)["b"] == "not run"
    assert kinds(interrupted, interrupted) == {"a": "unchanged", "b": "not run"}
    assert compare(whole, interrupted).regressions == ()
    elsewhere = run(summary("b", P, "other set"), whole=("other set",))
    assert set(kinds(whole, elsewhere).values()) == {"not run"}


def test_a_new_case_that_fails_is_not_excused():
    assert len(compare(run(), run(summary("a", F))).regressions) == 1
    assert compare(run(), run(summary("a", P))).regressions == ()


statuses = st.sampled_from([P, F, E, Status.NOT_EVALUATED, FLAKY])


@st.composite
def summaries(draw):
    status = draw(statuses)
    return CaseSummary(
        draw(st.sampled_from(["s", "t"])),
        draw(st.sampled_from("abcd")),
        status,
        runs=5 if status is FLAKY else draw(st.sampled_from([1, 5])),
        policy=draw(st.sampled_from(["all", "0.6"])),
        policy_met=draw(st.booleans()),
        scores=draw(st.dictionaries(st.sampled_from("mn"), st.floats(0, 1), max_size=2)),
        seconds=draw(st.none() | st.floats(0, 9)),
        expects=draw(st.sampled_from(["", "x", "y"])),
    )


keys = st.frozensets(st.builds(CaseId, st.sampled_from(["s", "t"]), st.sampled_from("abcdef")), max_size=3)
configs = st.fixed_dictionaries({}, optional={"s": st.sampled_from([{}, {"criteria": {"m": 0.5}}])})
runs = st.builds(
    lambda cases, selected, whole, configs, quirks: RunSummary(
        "r",
        selected_cases([(case, case.path) for case in sorted(selected)], {case.id: case for case in cases}),
        whole,
        Circumstances(configs=configs, adk_verdicts=quirks),
    ),
    st.lists(summaries(), max_size=6),
    keys,
    st.frozensets(st.sampled_from(["s", "t"])),
    configs,
    st.booleans(),
)
IN_ONE_RUN = dict.fromkeys(("new", "gone", "not run"), "in one run")
MIRRORED = {"broken": "fixed", "fixed": "broken", **IN_ONE_RUN}


@given(runs, runs)
def test_swapping_the_runs_mirrors_the_comparison(one, other):
    forth, back = compare(one, other), compare(other, one)
    mirrored = {change.case: MIRRORED.get(change.kind, change.kind) for change in back.cases}
    assert {change.case: IN_ONE_RUN.get(change.kind, change.kind) for change in forth.cases} == mirrored
    scores = {
        change.case: {(one.metric, one.candidate, one.base) for one in change.scores} for change in back.cases
    }
    assert {
        change.case: {(one.metric, one.base, one.candidate) for one in change.scores}
        for change in forth.cases
    } == scores
    assert (forth.seconds is None) == (back.seconds is None)
    if forth.seconds and back.seconds:
        assert (forth.seconds.base, forth.seconds.candidate) == (back.seconds.candidate, back.seconds.base)


@given(runs, runs)
def test_every_case_is_there_once(one, other):
    comparison = compare(one, other)
    found = [change.case for change in comparison.cases]
    assert len(found) == len(set(found))
    assert set(found) == one.cases.keys() | other.cases.keys()
    assert sum(len(comparison.of(kind)) for kind in KINDS) == len(found)
    broken = {change.case for change in comparison.of("broken")}
    regressions = {change.case for change in comparison.regressions}
    assert broken <= regressions
    assert all(not other.cases[key].passes for key in regressions)


@given(runs)
def test_a_run_against_itself_has_no_difference(one):
    comparison = compare(one, one)
    assert {change.kind for change in comparison.cases} <= {"unchanged", "flaky", "unclear", "not run"}
    assert [change.case for change in comparison.of("not run")] == one.unfinished
    assert comparison.regressions == ()
    assert circumstance_changes(one, one) == ()


def test_policies_matter_where_runs_differ_only():
    stable = summary("a", P)
    five = summary("a", P, runs=5, passed=5, policy="0.6")
    assert kinds(run(stable), run(five)) == {"a": "unchanged"}
    lenient = replace(flaky("a", True), policy="0.6")
    (change,) = compare(run(flaky("a", False)), run(lenient)).cases
    assert (change.kind, change.reasons) == ("expectation changed", ("policy all → 0.6",))


CONFIG = {
    "criteria": {"response_match_score": 0.8},
    "evaltui": {
        "repeats": {"runs": 5},
        "rules": [{"tool": "t", "arg": "a", "match": "ignore", "set": "s", "case": "a"}],
        "turns": [{"set": "s", "case": "b", "turn": 0, "mode": "context"}],
        "thoughts": "score",
    },
}


def test_a_case_is_scored_by_what_is_about_it():
    mine, other = config_of(CONFIG, "s", "a"), config_of(CONFIG, "s", "c")
    assert mine["evaltui"] == {"rules": CONFIG["evaltui"]["rules"], "thoughts": "score"}
    assert other == {"criteria": CONFIG["criteria"], "evaltui": {"thoughts": "score"}}


def changed_config(**criteria):
    return Circumstances(configs={"s": {**CONFIG, "criteria": criteria}})


def test_a_case_that_is_scored_otherwise_has_another_expectation():
    base = run(summary("a", P), circumstances=Circumstances(configs={"s": CONFIG}))
    stricter = run(summary("a", F), circumstances=changed_config(response_match_score=0.9))
    (change,) = compare(base, stricter).cases
    assert change.kind == "expectation changed"
    assert change.reasons == ("config: criteria.response_match_score 0.8 → 0.9",)
    unknown = run(summary("a", F))
    assert kinds(base, unknown) == {"a": "broken"}
    another = changed_config(**{f"metric_{number}": 1.0 for number in range(5)})
    (change,) = compare(base, run(summary("a", P), circumstances=another)).cases
    assert change.reasons[0] == "config: criteria.response_match_score removed"
    assert change.reasons[-1] == "config: 3 more changes"


def test_a_rule_for_one_case_does_not_change_another():
    config = {"evaltui": {"turns": [{"set": "s", "case": "a", "turn": 0, "mode": "skip"}]}}
    base = run(summary("a", P), summary("b", P), circumstances=Circumstances(configs={"s": {}}))
    now = run(summary("a", P), summary("b", P), circumstances=Circumstances(configs={"s": config}))
    assert kinds(base, now) == {"a": "expectation changed", "b": "unchanged"}
    assert circumstance_changes(base, now) == ("s: config: evaltui.turns added",)


def test_what_was_different_between_two_runs():
    base = run(
        summary("a", P, expects="1"),
        circumstances=Circumstances({"agent.py": "1", "old.py": "1", "t.py": "1"}, "root", "gemini-1"),
    )
    now = run(
        summary("a", P, expects="2"),
        circumstances=Circumstances({"agent.py": "2", "new.py": "1", "t.py": "1"}, "root", "gemini-2"),
    )
    agent = ("agent: agent.py, new.py (new), old.py (gone)", "model gemini-1 → gemini-2")
    assert circumstance_changes(base, now) == agent
    assert circumstance_changes(base, now, CaseId("s", "a")) == (*agent, "case changed")


def test_a_case_that_is_judged_otherwise_has_another_expectation():
    old, new = (summary("a", F, judges={"safety_v1": f"gemini (quality/{n})"}) for n in (1, 2))
    (change,) = compare(run(replace(old, status=P)), run(new)).cases
    assert (change.kind, change.reasons) == (
        "expectation changed",
        ("safety_v1 was judged by gemini (quality/1), now by gemini (quality/2)",),
    )
    (change,) = compare(run(replace(old, status=P)), run(old)).cases
    assert (change.kind, change.reasons) == ("broken", ())


def test_another_judge_in_the_config_is_told_once():
    old, new = (summary("a", F, judges={"safety_v1": f"{model} (quality/1)"}) for model in "ab")
    before, after = (
        changed_config(safety_v1={"threshold": 1.0, "judge_model_options": {"judge_model": model}})
        for model in "ab"
    )
    (change,) = compare(run(old, circumstances=before), run(new, circumstances=after)).cases
    assert change.reasons == ('config: criteria.safety_v1.judge_model_options.judge_model "a" → "b"',)


def test_who_judged_is_in_the_summary():
    judge = JudgedBy("gemini", "quality/1", 5, 5)
    judged = MetricResult("safety_v1", 1.0, 0.8, P, judge=judge)
    case = CaseResult("a", P, (judged,), eval_set_id="s", repeats=(RepeatResult(P, (judged,)),))
    assert summarize(case).judges == {"safety_v1": "gemini (quality/1)"}
    assert summarize(replace(case, metrics=())).judges == {}


def test_the_summary_of_a_case():
    def repeat(status, score, tokens, seconds):
        turns = tuple(InvocationScore(count, Status.INFORMATIONAL) for count in tokens)
        metrics = (
            MetricResult("m", score, 0.5, status),
            MetricResult("n", None, 0.5, Status.NOT_EVALUATED),
            MetricResult("token_usage_v1", 1.0, None, Status.INFORMATIONAL, per_invocation=turns),
        )
        return RepeatResult(status, metrics, seconds=seconds, expects="abc")

    repeats = [repeat(P, 1.0, [100, None, 20], 1.0), repeat(F, 0.2, [None], 2.0), repeat(P, 0.9, [60], 3.0)]
    found = summarize(case_over_repeats("s", "c", repeats, 0.6))
    assert found == CaseSummary(
        *("s", "c", FLAKY, 3, 2, "0.6", True, {"m": 0.7}),
        seconds=2.0,
        tokens=90.0,
        expects="abc",
        statuses=(P, F, P),
        times=(1.0, 2.0, 3.0),
    )
    assert summarize(case_over_repeats("s", "c", [RepeatResult(F)], "all")) == summary("c", F)
