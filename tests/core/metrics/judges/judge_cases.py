"""Turns, metrics and a judge whose answers are known, for the metrics that a judge decides."""

import json

from eval_data import make_turn

from evaltui.core.metrics.judges.judge import JudgeFailedError
from evaltui.core.metrics.metric import MetricInput
from evaltui.core.metrics.registry import METRICS, run_judged_metric
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.eval_set import Invocation, Rubric
from evaltui.core.model.outcome import ErrorInfo

JUDGED = [name for name, metric in METRICS.items() if metric.judged]
MATCH = "final_response_match_v2"
ANSWERS = "rubric_based_final_response_quality_v1"
CALLS = "rubric_based_tool_use_quality_v1"
WHOLE = "rubric_based_multi_turn_trajectory_quality_v1"

FAILURE = ErrorInfo("ServerError", "503 UNAVAILABLE: try again later", kind=None)


def failed():
    return JudgeFailedError(FAILURE)


def valid(label="valid", why="It says the same."):
    return json.dumps({"reasoning": why, "is_the_agent_response_valid": label})


def verdicts(**labels):
    """An answer about rubrics, as it is asked for: `verdicts(short="yes")`."""
    entries = [
        {"id": name, "rationale": f"{name}: so it is", "verdict": each} for name, each in labels.items()
    ]
    return json.dumps({"rubrics": entries})


def lines(**labels):
    """The same as lines, as google-adk asks for it."""
    return "\n\n".join(
        f"ID: {name}\nProperty: text of {name}\nRationale: {name}: so it is\nVerdict: {each}"
        for name, each in labels.items()
    )


def rubric(name, text=None, type=None):
    content = {"text_property": f"text of {name}" if text is None else text}
    return {"rubric_id": name, "rubric_content": content} | ({"type": type} if type else {})


def said(text):
    return {"role": "model", "parts": [{"text": text}]}


def turn(user="hello", answer="Hi.", **fields):
    return make_turn(user, final_response=None if answer is None else said(answer), **fields)


def given(name, expected, actual=None, *, samples=1, threshold=0.5, case_rubrics=(), **fields):
    """A metric's input; `actual` is as expected where it is not given. `criterion` holds further keys."""
    criterion = {"threshold": threshold, "judge_model_options": {"num_samples": samples}}
    criterion |= fields.pop("criterion", {})
    return MetricInput(
        expected=None if expected is None else [Invocation.model_validate(each) for each in expected],
        actual=[Invocation.model_validate(each) for each in (expected if actual is None else actual)],
        metric=EvalMetric.model_validate({"metric_name": name, "criterion": criterion}),
        case_rubrics=[Rubric.model_validate(each) for each in case_rubrics],
        **fields,
    )


async def judged(asked, judge):
    return await run_judged_metric(asked, METRICS[asked.metric.metric_name].judged, judge)
