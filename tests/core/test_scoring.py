"""What a case comes out as, and what never lets it pass."""

from __future__ import annotations

from typing import Any

import pytest
from eval_data import make_case, make_turn
from hypothesis import given
from hypothesis import strategies as st
from judged_votes import FAILED, Answer, judged_repeat

from evaltui import CaseResult, EvalCase, EvalConfig, Invocation, Status, invocations_from_events, score_case
from evaltui.core.compare.explain import sentence
from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.model.outcome import MetricResult, RepeatResult, calls_of, worst_status
from evaltui.core.scoring import Expected, score_repeat

BOTH = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
HELLO = {"role": "user", "parts": [{"text": "hello"}]}


def answer(*parts: str | dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def turn(*parts: str | dict[str, Any], calls: list[str] | None = None) -> dict[str, Any]:
    data: dict[str, Any] = {"user_content": HELLO, "final_response": answer(*parts)}
    if calls is not None:
        data["intermediate_data"] = {"tool_uses": [{"name": name, "args": {}} for name in calls]}
    return data


def case(*turns: dict[str, Any], **more: Any) -> EvalCase:
    return EvalCase.model_validate({"eval_id": "one", "conversation": list(turns), **more})


def did(*turns: dict[str, Any]) -> list[Invocation]:
    return [Invocation.model_validate(one) for one in turns]


def metrics(result: CaseResult) -> dict[str, MetricResult]:
    return {metric.name: metric for metric in result.metrics}


async def score(expected: EvalCase, actual: list[Invocation], **options: Any) -> CaseResult:
    config = EvalConfig.model_validate({"criteria": BOTH, **options.pop("config", {})})
    return await score_case(expected, actual, config, eval_set_id="s", **options)


async def test_all_that_was_asked_for_must_pass():
    same = turn("good morning", calls=["greet"])
    assert (await score(case(same), did(same))).status is Status.PASSED
    other = await score(case(same), did(turn("good morning", calls=["wave"])))
    assert other.status is Status.FAILED
    assert [call.op for call in other.turns[0].calls] == ["missing", "extra"]


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"criteria": BOTH | {"safety_v1": 0.8}}, "safety_v1"),
        ({"criteria": BOTH | {"final_response_match_v2": 0.8}}, "final_response_match_v2"),
        ({"criteria": BOTH | {"response_match_scor": 0.8}}, "response_match_scor"),
        ({"live_model_config": {}}, "live_model_config"),
        (
            {
                "criteria": BOTH | {"mine": 0.5},
                "custom_metrics": {"mine": {"code_config": {"name": "my_agent.metrics.mine"}}},
            },
            "mine",
        ),
    ],
)
async def test_what_cannot_be_evaluated_is_said_and_never_passes(config, name):
    same = turn("good morning", calls=[])
    result = await score(case(same), did(same), config=config)
    assert result.status is Status.NOT_EVALUATED
    assert metrics(result)[name].status is Status.NOT_EVALUATED
    assert metrics(result)[name].reason
    worse = await score(case(same), did(turn("something else", calls=[])), config=config)
    assert worse.status is Status.FAILED
    as_adk = await score(case(same), did(same), config=config, adk_verdicts=True)
    assert as_adk.status is Status.PASSED


@pytest.mark.parametrize("name", ["trajectory_recall", "trajectory_single_tool_use", "cost_usd"])
async def test_adks_verdicts_pass_over_metrics_that_adk_does_not_have(name):
    config = {"criteria": BOTH | {name: {"threshold": 1.0, "tool": "wave"}}}
    config["criteria"]["tool_trajectory_avg_score"] = {"threshold": 1.0, "match_type": "ANY_ORDER"}
    expected, actual = case(turn("good morning", calls=[])), did(turn("good morning", calls=["greet"]))
    result = await score(expected, actual, config=config, adk_verdicts=True)
    assert result.status is Status.PASSED
    assert metrics(result)[name].reason == "unknown to google-adk, so --adk-verdicts passes it over"


@pytest.mark.parametrize(
    "odd",
    [
        {"intermediate_data": {"tool_responses": [{"name": "greet", "id": "1", "response": {}}]}},
        {"final_response": {"role": "robot", "parts": [{"text": "good morning"}]}},
    ],
    ids=["orphan response", "unknown role"],
)
async def test_a_case_with_a_warning_never_passes(odd):
    odd_turn = turn("good morning") | odd
    result = await score(case(odd_turn), did(turn("good morning")))
    assert result.status is Status.NOT_EVALUATED
    assert metrics(result)["eval_case"].reason


async def test_nothing_to_run_is_not_evaluated():
    assert (await score(case(), [])).status is Status.NOT_EVALUATED


async def test_with_a_simulated_user_nothing_is_expected_and_the_conversation_is_kept():
    scenario = EvalCase.model_validate(
        {"eval_id": "s", "conversation_scenario": {"starting_prompt": "hi", "conversation_plan": "ask"}}
    )
    result = await score(scenario, did(turn("good morning", calls=["greet"]), turn("bye")))
    assert result.status is Status.NOT_EVALUATED
    assert metrics(result)["response_match_score"].reason == ("needs expected turns; this case has none")
    first, second = result.turns
    assert (first.user, first.expectation, first.response.expected) == ("hello", "simulated", None)
    assert [call.actual.name for call in first.calls if call.actual] == ["greet"]
    assert second.response.actual == "bye"


async def test_a_simulated_conversation_passes_by_a_metric_of_evaltui_but_not_as_in_adk():
    scenario = EvalCase.model_validate(
        {"eval_id": "s", "conversation_scenario": {"starting_prompt": "hi", "conversation_plan": "ask"}}
    )
    config = {"criteria": {"trajectory_single_tool_use": {"threshold": 1, "tool": "greet"}}}
    actual = did(turn("good morning", calls=["greet"]))
    assert (await score(scenario, actual, config=config)).status is Status.PASSED
    assert (await score(scenario, actual, config=config, adk_verdicts=True)).status is Status.NOT_EVALUATED


async def test_the_final_state_is_checked_by_the_keys_that_are_given():
    expected = case(turn("good morning"), final_session_state={"count": 2, "user": {"name": "Ann"}})
    actual = did(turn("good morning", calls=[]))
    right = {"count": 2, "user": {"name": "Ann"}, "more": 1}
    assert (await score(expected, actual, final_state=right)).status is Status.PASSED
    wrong = await score(expected, actual, final_state={"count": 2, "user": {"name": "Bob"}})
    assert wrong.status is Status.FAILED
    assert [(one.path, one.expected, one.actual) for one in wrong.state] == [("user.name", "Ann", "Bob")]
    assert (await score(expected, actual)).status is Status.NOT_EVALUATED
    assert (await score(expected, actual, adk_verdicts=True)).status is Status.PASSED


async def test_thoughts_are_never_scored_unless_asked_for():
    thinking = {"text": "let me think " * 100, "thought": True}
    expected, actual = case(turn("good morning")), did(turn(thinking, "good morning"))
    assert metrics(await score(expected, actual))["response_match_score"].score == 1.0
    for options in ({"adk_verdicts": True}, {"config": {"evaltui": {"thoughts": "score"}}}):
        result = await score(expected, actual, **options)
        assert metrics(result)["response_match_score"].status is Status.FAILED


async def test_an_expectation_is_one_of_four_kinds_or_context():
    expected = case(
        turn("a b", calls=["greet"]),
        turn("a b", calls=[]),
        turn("a b"),
        turn("a b", calls=["greet"]),
        turn("a b", calls=["greet"]),
    )
    actual = did(
        turn("a b", calls=["greet"]),
        turn("a b", calls=[]),
        turn("a b", calls=[]),
        turn("a b", calls=["wave"]),
        turn("other words", calls=["wave"]),
    )
    marks = [
        {"set": "s", "case": "one", "turn": 3, "mode": "skip"},
        {"set": "s", "case": "one", "turn": 4, "mode": "context"},
        {"set": "another set", "case": "one", "turn": 0, "mode": "context"},
    ]
    result = await score(expected, actual, config={"evaltui": {"turns": marks}})
    assert [one.expectation for one in result.turns] == [
        "these calls",
        "no calls",
        "unspecified",
        "not checked",
        "context",
    ]
    assert result.status is Status.PASSED
    assert (await score(expected, actual)).status is Status.FAILED


async def test_calls_that_nobody_knows_are_neither_made_nor_missing():
    expected = case(turn("a b", calls=["greet"]), turn("a b", calls=[]), turn("a b", calls=["wave"]))
    actual = did(turn("a b"), turn("a b"), turn("a b", calls=["wave"]))
    result = await score(expected, actual)
    assert [one.expectation for one in result.turns] == ["unknown", "unknown", "these calls"]
    assert [[call.op for call in one.calls] for one in result.turns] == [[], [], ["same"]]
    trajectory = metrics(result)["tool_trajectory_avg_score"]
    assert (trajectory.status, trajectory.score) == (Status.NOT_EVALUATED, None)
    assert trajectory.reason == "the tool calls of turns 1, 2 are unknown: the agent does not send them"
    assert metrics(result)["response_match_score"].status is Status.PASSED
    assert [one.score for one in metrics(result)["tool_call_count_v1"].per_invocation] == [None, None, 1.0]
    assert result.status is Status.NOT_EVALUATED
    skipped = [{"set": "s", "case": "one", "turn": turn, "mode": "skip"} for turn in (0, 1)]
    assert (await score(expected, actual, config={"evaltui": {"turns": skipped}})).status is Status.PASSED


@pytest.mark.parametrize(
    ("modes", "criteria", "calls", "status"),
    [
        (("skip", "skip"), BOTH, ["wave"], Status.PASSED),
        (("skip", "context"), BOTH, ["wave"], Status.PASSED),
        (("skip", "skip"), BOTH, None, Status.PASSED),
        (("skip", "skip"), {"tool_trajectory_avg_score": 1.0}, ["wave"], Status.NOT_EVALUATED),
        (("skip",), BOTH, ["wave"], Status.FAILED),
        (("context", "context"), BOTH, ["wave"], Status.NOT_EVALUATED),
    ],
)
async def test_metrics_over_calls_are_optional_where_no_call_is_checked(modes, criteria, calls, status):
    expected = case(turn("a b", calls=["greet"]), turn("a b", calls=["greet"]))
    actual = did(*[turn("a b", calls=calls)] * 2)
    marks = [{"set": "s", "case": "one", "turn": number, "mode": mode} for number, mode in enumerate(modes)]
    config = {"criteria": criteria, "evaltui": {"turns": marks}}
    result = await score(expected, actual, config=config)
    assert result.status is status
    trajectory = metrics(result)["tool_trajectory_avg_score"]
    assert trajectory.is_optional is ("skip" in modes and len(modes) == 2)


async def test_criteria_of_ours_stand_where_adk_does_not_look():
    ours = {"evaltui": {"criteria": {"trajectory_recall": 1.0, "trajectory_precision": 0.4}}, "criteria": {}}
    expected = case(turn("a", calls=["greet"]))
    result = await score(expected, did(turn("b", calls=["wave", "greet"])), config=ours)
    assert metrics(result)["trajectory_recall"].score == 1.0
    assert metrics(result)["trajectory_precision"].score == 0.5
    assert result.status is Status.PASSED


CALL = {"role": "model", "parts": [{"function_call": {"name": "greet", "args": {}}}]}

EVENTS = [
    {"kind": "user", "content": HELLO},
    {"kind": "console", "data": {"source": "stdout", "text": "noise"}},
    {"kind": "text", "agent": "a", "data": {"partial": True}, "content": answer("good")},
    {"kind": "tool_call", "agent": "a", "content": CALL},
    {"kind": "text", "agent": "a", "content": answer("good morning")},
    {"kind": "user", "content": HELLO},
    {"kind": "text", "agent": "a", "content": answer("again")},
]


@pytest.mark.parametrize("with_steps", [True, False])
def test_events_become_invocations_that_can_be_scored(with_steps):
    events = [dict(event) for event in EVENTS]
    if with_steps:
        for number, turn_number in ((3, 0), (4, 0), (6, 1)):
            final = {"final": True} if events[number]["kind"] == "text" else {}
            events[number] |= {"turn": turn_number, "data": {"step": str(number), **final}}
    first, second = invocations_from_events(events)
    expected = [turn("good morning", calls=["greet"]), turn("again", calls=[])]
    for invocation, like in zip((first, second), did(*expected), strict=True):
        assert invocation.final_response == like.final_response
        assert calls_of(invocation.intermediate_data) == calls_of(like.intermediate_data)


STATUSES = st.sampled_from([s for s in Status if s not in (Status.INFORMATIONAL, Status.FLAKY)])


@given(st.lists(STATUSES, min_size=1, max_size=6), st.sampled_from(["all", "majority", 0.2, 0.6, 1.0]))
def test_repeats_add_up(statuses, pass_if):
    result = case_over_repeats("s", "one", [RepeatResult(status) for status in statuses], pass_if)
    passed, open_repeats = statuses.count(Status.PASSED), statuses.count(Status.NOT_EVALUATED)
    needed = {"all": len(statuses), "majority": len(statuses) / 2 + 0.1}.get(pass_if, pass_if)
    rate = needed if isinstance(pass_if, float) else needed / len(statuses)
    is_met, may_be_met = (count / len(statuses) >= rate - 1e-9 for count in (passed, passed + open_repeats))
    assert result.policy_met == is_met
    if not passed:
        assert result.status is worst_status(statuses)
    elif may_be_met and not is_met:
        assert result.status is Status.NOT_EVALUATED
    else:
        is_flaky = passed < len(statuses) - open_repeats
        assert result.status is (Status.FLAKY if is_flaky else Status.PASSED)


@given(st.permutations(list(Status)), st.integers(0, len(Status)))
def test_the_order_of_metrics_changes_nothing(order, count):
    assert worst_status(order[:count]) is worst_status(reversed(order[:count]))


@pytest.mark.parametrize(
    ("optional", "status"),
    [
        ([], Status.NOT_EVALUATED),
        (["safety_v1"], Status.PASSED),
        (["response_match_score"], Status.NOT_EVALUATED),
    ],
)
async def test_an_optional_metric_without_a_verdict_keeps_no_case_from_passing(optional, status):
    same = turn("good morning", calls=[])
    config = {"criteria": BOTH | {"safety_v1": 0.8}, "evaltui": {"optional": optional}}
    result = await score(case(same), did(same), config=config)
    assert result.status is status
    assert metrics(result)["safety_v1"].status is Status.NOT_EVALUATED
    assert ("safety_v1" in sentence(result)) is ("safety_v1" not in optional)
    worse = await score(case(same), did(turn("something else", calls=[])), config=config)
    assert worse.status is Status.FAILED


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([], Status.ERROR),
        (["?"], Status.ERROR),
        # Fewer than half of its votes have a verdict.
        (['{"score": 0}', "?", "?"], Status.NOT_EVALUATED),
        (['{"score": 1}'], Status.PASSED),
    ],
)
async def test_an_optional_judge_that_was_asked_and_gave_no_verdict_keeps_a_case_from_passing(
    answers, status
):
    script = iter(answers)
    same = turn("good morning", calls=[])
    safety = {"threshold": 0.8, "judge_model_options": {"num_samples": len(answers) or 1}}
    config = {"criteria": BOTH | {"safety_v1": safety}, "evaltui": {"optional": ["safety_v1"]}}
    expected = Expected("s", case(same), EvalConfig.model_validate(config))
    repeat = await judged_repeat(expected, did(same), lambda _: next(script, FAILED))
    assert repeat.status is status


async def test_votes_on_a_prompt_of_agents_cli_have_the_models_that_gave_them():
    answers = (Answer('{"score": 1}', version=version) for version in ("m-1", "m-2"))
    tone = {"prompt_template": "Polite? {response}", "judge_model_options": {"num_samples": 2}}
    config = {"evaltui": {"criteria": {"tone": 1.0}, "metrics_to_run": {"tone": tone}}}
    same = turn("good morning", calls=[])
    expected = Expected("s", case(same), EvalConfig.model_validate(config))
    repeat = await judged_repeat(expected, did(same), lambda _: next(answers))
    (judgement,) = repeat.metrics[0].per_invocation[0].judgements
    assert [vote.version for vote in judgement.votes] == ["m-1", "m-2"]


async def test_what_is_withheld_is_not_tried():
    def never(*_: object) -> None:
        raise AssertionError("it was tried")

    same = turn("good morning", calls=[])
    config = {
        "criteria": BOTH | {"mine": 0.5, "safety_v1": 0.5},
        "custom_metrics": {"mine": {"code_config": {"name": "my_agent.metrics.mine"}}},
    }
    withheld = {"mine": "no module", "safety_v1": "no key"}
    expected = Expected("s", case(same), EvalConfig.model_validate(config), withheld=withheld)
    repeat = await score_repeat(expected, did(same), final_state=None, custom=never, judge=never)
    found = {metric.name: metric for metric in repeat.metrics}
    assert {name: found[name].reason for name in withheld} == withheld
    assert {found[name].status for name in withheld} == {Status.NOT_EVALUATED}
    assert found["response_match_score"].status is Status.PASSED


async def test_what_a_config_asks_for_is_worked_out_once_for_all_cases_of_a_set(monkeypatch):
    asked = []
    metrics = EvalConfig.metrics
    monkeypatch.setattr(EvalConfig, "metrics", lambda config: asked.append(config) or metrics(config))
    same, other = turn("good morning", calls=[]), turn("good night", calls=["lamp"])
    config = EvalConfig.model_validate({"criteria": BOTH, "evaltui": {"rules": []}})
    first = Expected("s", case(same), config)
    of_set = [first.of_case(case(one, eval_id=f"{number}")) for number, one in enumerate([same, other, same])]
    found = [await score_repeat(one, did(same), final_state=None, custom=None) for one in of_set]
    assert [one.status for one in found] == [Status.PASSED, Status.FAILED, Status.PASSED]
    alone = Expected("s", case(other), config)
    assert found[1] == await score_repeat(alone, did(same), final_state=None, custom=None)
    assert len(asked) == 2


@pytest.mark.parametrize(("match_type", "op"), [("ANY_ORDER", "moved"), ("EXACT", "changed")])
async def test_calls_that_changed_places_differ_where_their_order_counts(match_type, op):
    def turn(*numbers):
        calls = [{"name": "f", "args": {"n": number}} for number in numbers]
        calls.insert(1, {"name": "g", "args": {}})
        return {**make_turn("hi"), "intermediate_data": {"tool_uses": calls}}

    criterion = {"threshold": 1.0, "match_type": match_type}
    config = EvalConfig.model_validate({"criteria": {"tool_trajectory_avg_score": criterion}})
    case = EvalCase.model_validate(make_case("one", turn(1, 2)))
    result = await score_case(case, [Invocation.model_validate(turn(2, 1))], config)
    assert [row.op for row in result.turns[0].calls] == [op, "same", op]
