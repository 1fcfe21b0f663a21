"""Result files as google-adk itself writes them are runs here."""

import pytest

from evaltui.core.model.outcome import Status
from evaltui.runs.adk_results import adk_results, is_own
from evaltui.runs.history import find_run, open_run
from evaltui.runs.store import RunStore

pytest.importorskip("google.adk.evaluation.local_eval_set_results_manager")
pytestmark = pytest.mark.compat

from google.adk.evaluation.eval_case import IntermediateData, Invocation  # noqa: E402
from google.adk.evaluation.eval_metrics import (  # noqa: E402
    BaseCriterion,
    EvalMetricResult,
    EvalMetricResultPerInvocation,
)
from google.adk.evaluation.eval_result import EvalCaseResult  # noqa: E402
from google.adk.evaluation.evaluator import EvalStatus  # noqa: E402
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager  # noqa: E402
from google.genai import types  # noqa: E402


def invocation(text, room):
    return Invocation(
        user_content=types.Content(role="user", parts=[types.Part(text="lights off")]),
        final_response=types.Content(role="model", parts=[types.Part(text=text)]),
        intermediate_data=IntermediateData(tool_uses=[types.FunctionCall(name="dim", args={"room": room})]),
    )


def test_a_run_of_google_adk(tmp_path):
    metric = EvalMetricResult(
        metric_name="tool_trajectory_avg_score",
        threshold=1.0,
        criterion=BaseCriterion(threshold=1.0),
        score=0.0,
        eval_status=EvalStatus.FAILED,
    )
    result = EvalCaseResult(
        eval_set_id="lights",
        eval_id="off",
        final_eval_status=EvalStatus.FAILED,
        overall_eval_metric_results=[metric],
        eval_metric_result_per_invocation=[
            EvalMetricResultPerInvocation(
                actual_invocation=invocation("done", "Bedroom"),
                expected_invocation=invocation("done", "Kitchen"),
                eval_metric_results=[metric],
            )
        ],
        session_id="___eval___session___1",
        user_id="someone",
    )
    LocalEvalSetResultsManager(agents_dir=str(tmp_path)).save_eval_set_result("home", "lights", [result])
    (path,) = adk_results(tmp_path / "home")
    assert not is_own(path)
    assert find_run(RunStore(tmp_path / "home"), "home_lights") == path
    case = open_run(path).case(("lights", "off"))
    assert (case.status, case.metrics[0].score, case.metrics[0].threshold) == (Status.FAILED, 0.0, 1.0)
    assert (case.repeats[0].session_id, case.repeats[0].user_id) == ("___eval___session___1", "someone")
    (diff,) = case.turns[0].calls
    assert [(arg.path, arg.expected, arg.actual) for arg in diff.args] == [("room", "Kitchen", "Bedroom")]
