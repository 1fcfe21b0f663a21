"""google-adk opens our result files: its manager, its reader, and the server of `adk web`."""

import json
import warnings
from dataclasses import replace

import pytest

pytest.importorskip("google.adk")
pytest.importorskip("pandas")
from example_runs import adk_document
from google.adk.cli.fast_api import get_fast_api_app
from google.adk.evaluation.eval_result import EvalSetResult
from google.adk.evaluation.evaluator import EvalStatus
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager
from judged_metrics import INVENTED, LEFT_OUT, POLITE, RUBRICS, SENTENCES, SHORT, judged_metric
from starlette.testclient import TestClient

from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.outcome import CaseResult, ErrorInfo, RepeatResult, Status
from evaltui.core.scoring import Expected, failed_repeat, score_case
from evaltui.runs.adk_results import write_adk_result

pytestmark = [pytest.mark.adk, pytest.mark.compat]

CREATED = 1767323045.25
USAGE = {"prompt_token_count": 7, "candidates_token_count": 3, "total_token_count": 10}
ACTUAL = {
    "invocation_id": "e-1",
    "user_content": {"role": "user", "parts": [{"text": "Colder"}]},
    "final_response": {"role": "model", "parts": [{"text": "Now 20 °C."}]},
    "intermediate_data": {
        "invocation_events": [
            {
                "author": "root",
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"function_call": {"id": "c", "name": "cool", "args": {"to": float("nan")}}},
                        {"inline_data": {"data": "aGk=", "mime_type": "text/plain"}},
                    ],
                },
                "usage_metadata": USAGE,
            },
        ]
    },
    "duration": 1.5,
    "model_duration": 1.0,
    "tool_duration": 0.25,
}
EXPECTED = {
    "user_content": {"role": "user", "parts": [{"text": "Colder"}]},
    "final_response": {"role": "model", "parts": [{"text": "Now 19 °C."}]},
    "intermediate_data": {"tool_uses": [{"name": "cool", "args": {"to": 19}}]},
    "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "polite"}}],
}
CONFIG = {
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0, "matchType": "IN_ORDER"},
        "response_match_score": 0.8,
        "safety_v1": 0.5,
    },
    "evaltui": {"criteria": {"trajectory_recall": 0.5}},
}


@pytest.fixture
async def result(tmp_path):
    """A result file in an agent's folder: a case that failed, and one that raised in its second turn."""
    config = EvalConfig.model_validate(CONFIG)
    actual = [Invocation.model_validate(ACTUAL)]
    failing = EvalCase.model_validate({"eval_id": "a/night", "conversation": [EXPECTED]})
    raising = EvalCase.model_validate({"eval_id": "raising", "conversation": [EXPECTED, EXPECTED]})
    failed = await score_case(failing, actual, config, eval_set_id="lights/all")
    repeat = failed_repeat(
        Expected("lights/all", raising, config), ErrorInfo("OSError", "no", kind=None), actual, 1.0
    )
    raised = replace(failed, eval_id="raising", status=repeat.status, repeats=(repeat,))
    cases = [failing, raising]
    document = adk_document("lights/all", [failed, raised], CREATED, expected=cases, config=CONFIG)
    agent = tmp_path / "home"
    agent.mkdir()
    (agent / "agent.py").write_text("root_agent = None\n")
    return write_adk_result(agent, document["eval_set_result_id"], json.dumps(document))


async def test_the_manager_lists_and_reads_it(tmp_path, result):
    manager = LocalEvalSetResultsManager(str(tmp_path))
    (result_id,) = manager.list_eval_set_results("home")
    read = manager.get_eval_set_result("home", result_id)
    assert (read.eval_set_result_id, read.eval_set_id) == (result_id, "lights/all")
    assert result_id == f"home_lights_all_{CREATED}"
    failed, raised = read.eval_case_results
    assert failed.final_eval_status is raised.final_eval_status is EvalStatus.FAILED
    statuses = {metric.metric_name: metric.eval_status.name for metric in failed.overall_eval_metric_results}
    assert statuses == {
        "tool_trajectory_avg_score": "FAILED",
        "response_match_score": "FAILED",
        "safety_v1": "NOT_EVALUATED",
        "trajectory_recall": "FAILED",
        "tool_call_count_v1": "INFORMATIONAL",
        "inference_call_count_v1": "INFORMATIONAL",
        "token_usage_v1": "INFORMATIONAL",
        "invocation_duration_v1": "INFORMATIONAL",
    }
    trajectory, *_, tokens, seconds = failed.overall_eval_metric_results
    assert trajectory.criterion.threshold == 1.0
    assert "IN_ORDER" in trajectory.criterion.model_dump().values()
    assert tokens.details.token_usage_details.total_tokens == 10
    assert seconds.details.duration_details.framework_seconds == 0.25
    (turn,) = failed.eval_metric_result_per_invocation
    assert turn.expected_invocation.final_response.parts[0].text == "Now 19 °C."
    assert (
        turn.actual_invocation.intermediate_data.invocation_events[0].content.parts[2].inline_data.data
        == b"hi"
    )
    assert [metric.eval_status for metric in turn.eval_metric_results][:2] == [EvalStatus.FAILED] * 2
    (begun,) = raised.eval_metric_result_per_invocation
    assert begun.eval_metric_results == []


async def test_the_server_of_adk_web_lists_and_opens_it(tmp_path, result):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        app = get_fast_api_app(agents_dir=str(tmp_path), web=True, use_local_storage=False)
    client = TestClient(app)
    listed = client.get("/dev/apps/home/eval-results").json()
    assert listed == {"evalResultIds": [f"home_lights_all_{CREATED}"]}
    answer = client.get(f"/dev/apps/home/eval-results/{listed['evalResultIds'][0]}")
    assert answer.status_code == 200
    cases = answer.json()["evalCaseResults"]
    assert [(case["evalId"], case["finalEvalStatus"]) for case in cases] == [("a/night", 2), ("raising", 2)]
    assert answer.json()["creationTimestamp"] == CREATED


def test_what_judges_found_is_read():
    metrics = (judged_metric(RUBRICS, [SHORT, POLITE, LEFT_OUT]), judged_metric(SENTENCES, [INVENTED]))
    actual = (Invocation.model_validate(ACTUAL),)
    repeat = RepeatResult(Status.FAILED, metrics, actual=actual)
    case = CaseResult("c", Status.FAILED, eval_set_id="lights", repeats=(repeat,))
    document = adk_document("lights", [case], CREATED)
    (entry,) = EvalSetResult.model_validate_json(json.dumps(document)).eval_case_results
    (turn,) = entry.eval_metric_result_per_invocation
    for rubrics, sentences in (entry.overall_eval_metric_results, turn.eval_metric_results):
        assert [(one.rubric_id, one.score) for one in rubrics.details.rubric_scores] == [
            ("short", 1.0),
            ("polite", 0.0),
            ("on_topic", None),
        ]
        (found,) = sentences.details.rubric_scores
        assert (found.rubric_id, found.rationale) == (INVENTED.subject, INVENTED.rationale)
