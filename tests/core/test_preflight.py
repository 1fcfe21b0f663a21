"""What is said of metrics before a run: one test for each reason."""

from __future__ import annotations

from typing import Any

import pytest

from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.metrics.preflight import (
    SCENARIO,
    CaseOfSet,
    SetToCheck,
    check_metric,
    preflight,
    problems_text,
    withheld_metrics,
)
from evaltui.core.metrics.registry import METRICS
from evaltui.core.metrics.requirements import Facts, Readiness
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.stored_cases import StoredCase, StoredCases

RUBRICS = "rubric_based_tool_use_quality_v1"
MATCH = "final_response_match_v2"
HERE = Facts(GeminiAccess(), lambda _: True)
NO_KEY = Facts(GeminiAccess("GOOGLE_API_KEY is not set", "set it"), lambda _: False)


def said(text: str) -> dict[str, Any]:
    return {"parts": [{"text": text}]}


def turn(answer: str | None = "hello", **more: Any) -> dict[str, Any]:
    final = {} if answer is None else {"final_response": said(answer)}
    return {"user_content": said("hi"), **final, **more}


def case(eval_id: str, *turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"eval_id": eval_id, "conversation": list(turns or [turn()]), **more}


def simulated(eval_id: str, **more: Any) -> dict[str, Any]:
    scenario = {"starting_prompt": "hi", "conversation_plan": "ask"}
    return {"eval_id": eval_id, "conversation_scenario": scenario, **more}


def rubric(kind: str | None = None) -> dict[str, Any]:
    return {"rubric_id": "polite", "rubric_content": {"text_property": "It is polite."}, "type": kind}


def judged(model: str, **options: Any) -> dict[str, Any]:
    return {"threshold": 0.5, "judge_model_options": {"judge_model": model, **options}}


def to_check(cases: list[dict[str, Any]], criteria: dict[str, Any], set_id: str = "s", **config: Any):
    return SetToCheck(
        set_id,
        [EvalCase.model_validate(one) for one in cases],
        EvalConfig.model_validate({"criteria": criteria, **config}),
    )


def check(name: str, value: Any = 0.5, facts: Facts = HERE, *, cases: Any = None, **config: Any):
    checks = preflight([to_check(cases or [case("one")], {name: value}, **config)], facts)
    return next(one for one in checks if one.metric == name)


def test_nothing_is_said_of_what_runs():
    one = check("tool_trajectory_avg_score", facts=NO_KEY)
    assert one.is_fine
    assert (one.readiness, one.cases, one.reason) == (Readiness.RUNS, 1, "")
    assert problems_text([one]) == ""


def test_a_judge_needs_a_key():
    one = check("safety_v1", facts=NO_KEY)
    assert one.readiness is Readiness.CANNOT
    assert one.reason == "GOOGLE_API_KEY is not set. set it, or list the metric under evaltui.optional"
    assert check("safety_v1").is_fine


def test_a_judge_that_is_no_gemini_model_needs_a_function():
    one = check(MATCH, judged("azure/gpt-4o"))
    assert one.why == "the judge azure/gpt-4o is not a Gemini model"
    assert '"judge_model": "my_agent.models:my_judge"' in one.fix
    elsewhere = Facts(GeminiAccess(serves_other_names=True), lambda _: True)
    assert check(MATCH, judged("azure/gpt-4o"), elsewhere).is_fine


@pytest.mark.parametrize("model", ["gemini/gemini-2.5-flash", "gemni-2.5-flash"])
def test_a_name_that_is_nearly_right_gets_the_right_one(model):
    assert "Did you mean gemini-2.5-flash?" in check(MATCH, judged(model)).fix


def test_a_function_that_judges_needs_no_key_but_its_module():
    assert check(MATCH, judged("my_agent.judges:ask"), Facts(NO_KEY.gemini, lambda _: True)).is_fine
    asked = []
    one = check(MATCH, judged("my_agent.judges:ask"), Facts(HERE.gemini, asked.append))
    assert asked == ["my_agent.judges"]
    assert one.why.startswith("no module my_agent.judges")


def test_a_replay_asks_nobody():
    replay = Facts(NO_KEY.gemini, NO_KEY.has_module, "replay")
    assert check("safety_v1", facts=replay).is_fine
    assert check(MATCH, judged("my_agent.judges:ask"), replay).is_fine
    assert check(MATCH, judged("azure/gpt-4o"), replay).readiness is Readiness.CANNOT


def test_what_is_recorded_can_be_judged_without_a_key():
    auto = Facts(NO_KEY.gemini, NO_KEY.has_module, "auto", frozenset(["s"]))
    one = check("safety_v1", facts=auto)
    assert one.readiness is Readiness.RUNS
    assert "only recorded responses" in one.why
    assert check("safety_v1", facts=Facts(NO_KEY.gemini, NO_KEY.has_module, "auto")).readiness is (
        Readiness.CANNOT
    )


def test_a_function_of_the_users_needs_its_module():
    config = {"custom_metrics": {"mine": {"code_config": {"name": "my_agent.metrics.mine"}}}}
    assert check("mine", **config).is_fine
    one = check("mine", facts=NO_KEY, **config)
    assert one.readiness is Readiness.CANNOT
    assert one.why.startswith("no module my_agent.metrics for the metric's function")


@pytest.mark.parametrize(
    ("name", "meant"), [("saftey_v1", "safety_v1"), ("politness", "politeness"), ("xyz", "`evaltui metrics`")]
)
def test_an_unknown_name_gets_the_nearest_one(name, meant):
    custom = {"politeness": {"code_config": {"name": "my_agent.metrics.politeness"}}}
    one = check(name, custom_metrics=custom)
    assert one.why == f"unknown metric {name}"
    assert meant in one.fix


@pytest.mark.parametrize(
    ("name", "criterion", "says"),
    [
        ("tool_trajectory_avg_score", {"threshold": 1, "match_type": "FUZZY"}, "match_type must be EXACT"),
        ("trajectory_single_tool_use", {"threshold": 1}, 'give the criterion a "tool" key'),
        (MATCH, judged("gemini-2.5-flash", num_samples=0), "num_samples: "),
        (RUBRICS, {"threshold": 1, "rubrics": [{"rubric_id": 3}]}, "its rubrics cannot be read"),
    ],
)
def test_a_criterion_that_cannot_be_used_is_left_to_the_metric(name, criterion, says):
    one = check(name, criterion)
    assert one.readiness is Readiness.CANNOT
    assert says in one.why
    assert "\n" not in one.why
    assert withheld_metrics([one], "s") == {}


def test_expected_turns_are_missing_where_a_user_is_simulated():
    some = check("response_match_score", cases=[case("one"), simulated("two")])
    assert some.readiness is Readiness.SOME_CASES
    assert (some.without, some.cases) == ((CaseOfSet("s", "two"),), 2)
    assert check("response_match_score", cases=[simulated("two")]).readiness is Readiness.CANNOT


def test_expected_calls_may_be_missing():
    assert check("trajectory_recall", cases=[case("one", turn("hello", intermediate_data={}))]).is_fine


def test_an_expected_answer_is_missing():
    cases = [case("one"), case("two", turn(), turn(None)), case("three", turn(None))]
    one = check(MATCH, cases=cases)
    assert one.without == (CaseOfSet("s", "two"), CaseOfSet("s", "three"))
    mark = {"set": "s", "case": "two", "turn": 1, "mode": "context"}
    assert check(MATCH, cases=cases, evaltui={"turns": [mark]}).without == (CaseOfSet("s", "three"),)


def test_intermediate_responses_are_expected_of_some_case():
    said = {"intermediate_responses": [["desk", [{"text": "I look it up."}]]]}
    with_texts = case("two", turn(intermediate_data=said))
    assert check("intermediate_match_score", cases=[case("one"), with_texts]).is_fine
    assert (
        check("intermediate_match_score", cases=[case("one")]).why == "no turn expects intermediate responses"
    )


def test_a_simulated_users_quality_needs_one():
    name = "per_turn_user_simulator_quality_v1"
    assert check(name, cases=[case("one"), simulated("two")]).without == (CaseOfSet("s", "one"),)
    assert check(name, cases=[simulated("two")]).is_fine


@pytest.mark.parametrize(
    ("cases", "criterion", "without"),
    [
        ([case("one")], 0.5, None),
        ([case("one"), case("two", rubrics=[rubric()])], 0.5, ["one"]),
        ([case("one"), case("two", turn(rubrics=[rubric("TOOL_USE_QUALITY")]))], 0.5, ["one"]),
        ([case("one"), simulated("two", rubrics=[rubric("FINAL_RESPONSE_QUALITY")])], 0.5, None),
        ([case("one")], {"threshold": 0.5, "rubrics": [rubric()]}, []),
    ],
)
def test_rubrics_come_from_criterion_case_or_turn(cases, criterion, without):
    one = check(RUBRICS, criterion, cases=cases)
    if without is None:
        assert one.readiness is Readiness.CANNOT
        assert "TOOL_USE_QUALITY" in one.fix
    else:
        assert [case.eval_id for case in one.without] == without
        assert one.is_fine is not bool(without)


def test_stored_cases_are_looked_at_as_models_are():
    cases = [
        case("one", turn(), turn(None)),
        case("two", rubrics=[rubric()]),
        {"evalId": "three", "conversation": [{"userContent": said("hi"), "finalResponse": said("hello")}]},
        simulated("four"),
    ]
    criteria = {RUBRICS: 0.5, MATCH: 0.5, "response_match_score": 0.5}
    plain = to_check(cases, criteria)
    stored = [StoredCase.of_data(data) for data in cases]
    assert preflight([SetToCheck("s", StoredCases(stored), plain.config)], HERE) == preflight([plain], HERE)


def test_a_user_who_cannot_be_played():
    cases = [case("one"), simulated("two")]
    checks = preflight([to_check(cases, {"hallucinations_v1": 0.5})], NO_KEY)
    one = checks[-1]
    assert (one.metric, one.cases) == (SCENARIO, 1)
    assert one.why == "GOOGLE_API_KEY is not set"
    assert SCENARIO in withheld_metrics(checks, "s")
    spoken = to_check(cases, {"hallucinations_v1": 0.5}, user_simulator_config={"type": "llm_audio"})
    assert "evaltui does not support" in preflight([spoken], HERE)[-1].why
    mine = to_check(cases, {}, user_simulator_config={"model": "my_agent.users:ask"})
    assert preflight([mine], HERE) == ()


def test_what_is_the_same_in_several_sets_is_said_once():
    sets = [to_check([case("a")], {"safety_v1": 0.5}, name) for name in ("first", "second")]
    (one,) = preflight(sets, NO_KEY)
    assert (one.sets, one.in_all, one.cases) == (("first", "second"), True, 2)


def test_what_differs_between_sets_names_them():
    mine, theirs = {"safety_v1": judged("my_agent.judges:ask")}, {"safety_v1": 0.5}
    sets = [to_check([case("a")], mine, "first"), to_check([case("a")], theirs, "second")]
    fine, other = preflight(sets, Facts(NO_KEY.gemini, lambda _: True))
    assert (fine.is_fine, fine.sets, fine.in_all) == (True, ("first",), False)
    assert (other.readiness, other.sets) == (Readiness.CANNOT, ("second",))
    checks = (fine, other)
    assert withheld_metrics(checks, "first") == {}
    assert withheld_metrics(checks, "second") == {"safety_v1": other.reason}
    assert problems_text(checks) == "safety_v1 cannot run"


def test_optional_metrics_are_known_as_such():
    one = check("safety_v1", facts=NO_KEY, evaltui={"optional": ["safety_v1"]})
    assert one.optional
    assert problems_text([one]) == ""


def test_in_short_names_few_and_counts_many():
    names = ["safety_v1", "hallucinations_v1"]
    assert problems_text(preflight([to_check([case("a")], dict.fromkeys(names, 0.5))], NO_KEY)) == (
        "safety_v1 and hallucinations_v1 cannot run"
    )
    names.append(MATCH)
    several = {**dict.fromkeys(names, 0.5), "response_match_score": 1}
    assert problems_text(preflight([to_check([case("a")], several)], NO_KEY)) == "3 metrics cannot run"


def test_every_metric_alone():
    for info in METRICS.values():
        assert check_metric(info, HERE).is_fine
        assert check_metric(info, NO_KEY).is_fine is (info.judged is None)
