"""google-adk's own judged metrics, with a model that answers from a script. Imported where google-adk is."""

import asyncio
from functools import cache

from eval_data import make_case
from google.adk.evaluation.eval_case import EvalCase, Invocation
from google.adk.evaluation.eval_metrics import EvalMetric
from google.adk.evaluation.final_response_match_v2 import FinalResponseMatchV2Evaluator
from google.adk.evaluation.rubric_based_final_response_quality_v1 import (
    RubricBasedFinalResponseQualityV1Evaluator,
)
from google.adk.evaluation.rubric_based_multi_turn_trajectory_evaluator import (
    RubricBasedMultiTurnTrajectoryEvaluator,
)
from google.adk.evaluation.rubric_based_tool_use_quality_v1 import RubricBasedToolUseV1Evaluator
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.genai import types
from judge_cases import ANSWERS, CALLS, MATCH, WHOLE

_EVALUATORS = {
    MATCH: FinalResponseMatchV2Evaluator,
    ANSWERS: RubricBasedFinalResponseQualityV1Evaluator,
    CALLS: RubricBasedToolUseV1Evaluator,
    WHOLE: RubricBasedMultiTurnTrajectoryEvaluator,
}
_MODEL = "scripted-judge"


class _ScriptedLlm(BaseLlm):
    @classmethod
    def supported_models(cls):
        return [_MODEL]

    async def generate_content_async(self, llm_request, stream=False):
        answer = _SCRIPT.pop(0)
        if answer is None:
            raise RuntimeError("the model failed")
        yield _response(answer)


_SCRIPT: list = []
LLMRegistry.register(_ScriptedLlm)


def validity_by_adk(text):
    """The score that google-adk finds in an answer about an answer."""
    return _of_answers().convert_auto_rater_response_to_score(_response(text)).score


def fulfilment_by_adk(text, rubrics):
    """The verdicts that google-adk finds in an answer about rubrics: `(id, score, rationale)`."""
    evaluator = _evaluator(ANSWERS, rubrics=rubrics)
    evaluator.create_effective_rubrics_list(None)
    found = evaluator.convert_auto_rater_response_to_score(_response(text)).rubric_scores
    return [(one.rubric_id, one.score, one.rationale) for one in found]


@cache
def _of_answers():
    return _evaluator(MATCH)


def _response(text):
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


def _evaluator(name, *, samples=1, threshold=0.5, rubrics=()):
    criterion = {
        "threshold": threshold,
        "judge_model_options": {"judge_model": _MODEL, "num_samples": samples},
        "rubrics": list(rubrics),
    }
    return _EVALUATORS[name](EvalMetric.model_validate({"metric_name": name, "criterion": criterion}))


def judged_by_adk(name, turns, script, *, samples=1, threshold=0.5, case_rubrics=(), rubrics=()):
    """google-adk's EvaluationResult; None where it raises. A None in the script is a model that fails."""
    # It brings in much of Google Cloud, which takes seconds: not while tests are collected.
    from google.adk.evaluation import local_eval_service

    case = EvalCase.model_validate(make_case("case", *turns, rubrics=list(case_rubrics) or None))
    actual = [Invocation.model_validate(turn | {"rubrics": None}) for turn in turns]
    _SCRIPT[:] = script
    try:
        local_eval_service._copy_eval_case_rubrics_to_actual_invocations(case, actual)
        local_eval_service._copy_invocation_rubrics_to_actual_invocations(case.conversation, actual)
        evaluator = _evaluator(name, samples=samples, threshold=threshold, rubrics=rubrics)
        return asyncio.run(evaluator.evaluate_invocations(actual, case.conversation))
    except ValueError:
        return None
