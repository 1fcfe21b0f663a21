"""Custom metrics as ADK's documentation writes them, with ADK's types and with ours of the same shape."""

from __future__ import annotations

import textwrap
from importlib.util import find_spec

import pytest

from evaltui import ConversationScenario, EvalConfig, Invocation, Status
from evaltui.core.metrics.metric import MetricInput
from evaltui.project.agent_address import AgentAddress
from evaltui.runner.scoring import LocalScoring
from evaltui.runner.verdicts import score_custom

ADK = """
from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import EvalMetric, EvalStatus
from google.adk.evaluation.evaluator import EvaluationResult, PerInvocationResult
"""
OURS = """
from evaltui import (
    ConversationScenario,
    EvalMetric,
    EvalStatus,
    EvaluationResult,
    Invocation,
    PerInvocationResult,
)
"""
METRICS = """
import asyncio


def _said(invocation):
    return "".join(part.text for part in invocation.final_response.parts)


def _result(eval_metric, scored):
    threshold = eval_metric.criterion.threshold
    results = [
        PerInvocationResult(
            actual_invocation=actual,
            expected_invocation=expected,
            score=score,
            eval_status=EvalStatus.PASSED if score >= threshold else EvalStatus.FAILED,
        )
        for actual, expected, score in scored
    ]
    overall = sum(one.score for one in results) / len(results)
    return EvaluationResult(
        overall_score=overall,
        overall_eval_status=EvalStatus.PASSED if overall >= threshold else EvalStatus.FAILED,
        per_invocation_results=results,
    )


def exact(
    eval_metric: EvalMetric,
    actual_invocations: list[Invocation],
    expected_invocations: list[Invocation] | None,
    conversation_scenario: ConversationScenario | None,
) -> EvaluationResult:
    assert isinstance(eval_metric, EvalMetric)
    assert all(isinstance(one, Invocation) for one in actual_invocations + expected_invocations)
    pairs = zip(actual_invocations, expected_invocations)
    return _result(eval_metric, [(one, other, float(_said(one) == _said(other))) for one, other in pairs])


async def planned(eval_metric, actual_invocations, expected_invocations, conversation_scenario):
    assert isinstance(conversation_scenario, ConversationScenario)
    assert expected_invocations is None
    await asyncio.sleep(0)
    plan = conversation_scenario.conversation_plan
    return _result(eval_metric, [(one, None, float(_said(one) in plan)) for one in actual_invocations])


def centred(actual, expected, criterion):
    assert isinstance(actual, Invocation) and expected is None
    return criterion.threshold - criterion.extra["less"]
"""


def turn(text: str) -> Invocation:
    content = {"parts": [{"text": text}]}
    return Invocation.model_validate({"user_content": content, "final_response": content})


@pytest.fixture
async def scored(tmp_path, write_agent):
    """Scores actual answers against expected ones by the metrics of a config, in a real process."""
    hosts = []

    async def score(metrics, config, actual, expected, scenario=None):
        write_agent("", metrics=metrics)
        host = LocalScoring(AgentAddress(tmp_path / "my_agent"), 1, 60.0, lambda source, line: None, None)
        hosts.append(host)
        wanted = None if expected is None else [turn(text) for text in expected]
        did = [turn(text) for text in actual]
        asked = [one for one in EvalConfig.model_validate(config).metrics() if one.custom_function_path]
        return [await score_custom(host, MetricInput(wanted, did, one, scenario=scenario)) for one in asked]

    yield score
    for host in hosts:
        await host.close()


def custom(name, threshold):
    code = {"code_config": {"name": f"my_agent.metrics.{name}"}}
    return {"criteria": {name: threshold}, "custom_metrics": {name: code}}


@pytest.mark.parametrize(
    "imports",
    [pytest.param(ADK, marks=pytest.mark.adk), pytest.param(OURS)],
    ids=["google-adk", "evaltui"],
)
async def test_the_same_function_with_types_from_adk_and_from_evaltui(scored, imports):
    if imports is ADK:
        pytest.importorskip("google.adk")
    metrics = imports + METRICS
    [exact] = await scored(metrics, custom("exact", 0.8), ["a", "b"], ["a", "c"])
    assert (exact.status, exact.score, exact.error) == (Status.FAILED, 0.5, None)
    assert [one.status for one in exact.per_invocation] == [Status.PASSED, Status.FAILED]
    scenario = ConversationScenario(
        starting_prompt="hi", conversation_plan="say a, then b", user_persona="NOVICE"
    )
    [planned] = await scored(metrics, custom("planned", 0.8), ["a", "b"], None, scenario)
    assert (planned.status, planned.score, planned.error) == (Status.PASSED, 1.0, None)
    criterion = {"threshold": 0.75, "function": "my_agent.metrics.centred", "extra": {"less": 0.25}}
    short = {"evaltui": {"criteria": {"centred": criterion}}}
    [centred] = await scored(metrics, short, ["a"], None, scenario)
    assert (centred.status, centred.score, centred.error) == (Status.FAILED, 0.5, None)


async def test_a_function_without_imports_gets_the_types_of_adk_where_it_is_installed(scored):
    metrics = """
        def home(actual, expected, criterion):
            homes = {type(one).__module__.partition(".")[0] for one in (actual, criterion)}
            return 1.0 if homes == {"google"} else 0.0 if homes == {"_evaltui"} else None
    """
    config = {"evaltui": {"criteria": {"home": {"threshold": 1.0, "function": "my_agent.metrics.home"}}}}
    [metric] = await scored(textwrap.dedent(metrics), config, ["a"], ["a"])
    has_adk = find_spec("google") is not None and find_spec("google.adk") is not None
    assert metric.score == (1.0 if has_adk else 0.0)
