"""A terminal workbench for LLM agents. The public names are imported when they are first used."""

from __future__ import annotations

from importlib import import_module

# Nothing is imported here, which is before the program can catch Ctrl-C; type checkers take this for true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaltui.agents.native.agent import Agent, ToolContext
    from evaltui.agents.native.models import Rule, ScriptedModel
    from evaltui.core.compare.run_result import CasesFailedError, RunResult
    from evaltui.core.conversation.invocations import invocations_from_events
    from evaltui.core.metrics.custom import EvalStatus, EvaluationResult, PerInvocationResult
    from evaltui.core.model.config import (
        BaseCriterion,
        CodeConfig,
        CustomMetricConfig,
        EvalConfig,
        EvalMetric,
        Interval,
        MetricInfo,
        MetricValueInfo,
    )
    from evaltui.core.model.criteria import (
        HallucinationsCriterion,
        JudgeModelOptions,
        LlmAsAJudgeCriterion,
        LlmBackedUserSimulatorCriterion,
        PrebuiltMetrics,
        RubricsBasedCriterion,
        ToolTrajectoryCriterion,
    )
    from evaltui.core.model.eval_set import (
        AgentDetails,
        AppDetails,
        ConversationScenario,
        EvalCase,
        EvalSet,
        IntermediateData,
        Invocation,
        InvocationEvent,
        InvocationEvents,
        Rubric,
        RubricContent,
        RubricScore,
        SessionInput,
        UserBehavior,
        UserPersona,
    )
    from evaltui.core.model.outcome import CaseResult, MetricResult, Status
    from evaltui.core.model.problems import EvalSetError
    from evaltui.core.scoring import score_case
    from evaltui.project.configs import find_config_for_test_file
    from evaltui.project.eval_sets import load_eval_set
    from evaltui.runs.evaluation import CaseResponses, evaluate, evaluate_sync, generate_responses

_HOMES = {
    "Agent": ".agents.native.agent",
    "AgentDetails": ".core.model.eval_set",
    "AppDetails": ".core.model.eval_set",
    "BaseCriterion": ".core.model.config",
    "CaseResponses": ".runs.evaluation",
    "CaseResult": ".core.model.outcome",
    "CasesFailedError": ".core.compare.run_result",
    "CodeConfig": ".core.model.config",
    "ConversationScenario": ".core.model.eval_set",
    "CustomMetricConfig": ".core.model.config",
    "EvalCase": ".core.model.eval_set",
    "EvalConfig": ".core.model.config",
    "EvalMetric": ".core.model.config",
    "EvalSet": ".core.model.eval_set",
    "EvalSetError": ".core.model.problems",
    "EvalStatus": ".core.metrics.custom",
    "EvaluationResult": ".core.metrics.custom",
    "HallucinationsCriterion": ".core.model.criteria",
    "IntermediateData": ".core.model.eval_set",
    "Interval": ".core.model.config",
    "Invocation": ".core.model.eval_set",
    "InvocationEvent": ".core.model.eval_set",
    "InvocationEvents": ".core.model.eval_set",
    "JudgeModelOptions": ".core.model.criteria",
    "LlmAsAJudgeCriterion": ".core.model.criteria",
    "LlmBackedUserSimulatorCriterion": ".core.model.criteria",
    "MetricInfo": ".core.model.config",
    "MetricResult": ".core.model.outcome",
    "MetricValueInfo": ".core.model.config",
    "PerInvocationResult": ".core.metrics.custom",
    "PrebuiltMetrics": ".core.model.criteria",
    "Rubric": ".core.model.eval_set",
    "RubricContent": ".core.model.eval_set",
    "RubricScore": ".core.model.eval_set",
    "RubricsBasedCriterion": ".core.model.criteria",
    "Rule": ".agents.native.models",
    "RunResult": ".core.compare.run_result",
    "ScriptedModel": ".agents.native.models",
    "SessionInput": ".core.model.eval_set",
    "Status": ".core.model.outcome",
    "ToolContext": ".agents.native.agent",
    "ToolTrajectoryCriterion": ".core.model.criteria",
    "UserBehavior": ".core.model.eval_set",
    "UserPersona": ".core.model.eval_set",
    "evaluate": ".runs.evaluation",
    "evaluate_sync": ".runs.evaluation",
    "find_config_for_test_file": ".project.configs",
    "generate_responses": ".runs.evaluation",
    "invocations_from_events": ".core.conversation.invocations",
    "load_eval_set": ".project.eval_sets",
    "score_case": ".core.scoring",
}

__all__ = [
    "Agent",
    "AgentDetails",
    "AppDetails",
    "BaseCriterion",
    "CaseResponses",
    "CaseResult",
    "CasesFailedError",
    "CodeConfig",
    "ConversationScenario",
    "CustomMetricConfig",
    "EvalCase",
    "EvalConfig",
    "EvalMetric",
    "EvalSet",
    "EvalSetError",
    "EvalStatus",
    "EvaluationResult",
    "HallucinationsCriterion",
    "IntermediateData",
    "Interval",
    "Invocation",
    "InvocationEvent",
    "InvocationEvents",
    "JudgeModelOptions",
    "LlmAsAJudgeCriterion",
    "LlmBackedUserSimulatorCriterion",
    "MetricInfo",
    "MetricResult",
    "MetricValueInfo",
    "PerInvocationResult",
    "PrebuiltMetrics",
    "Rubric",
    "RubricContent",
    "RubricScore",
    "RubricsBasedCriterion",
    "Rule",
    "RunResult",
    "ScriptedModel",
    "SessionInput",
    "Status",
    "ToolContext",
    "ToolTrajectoryCriterion",
    "UserBehavior",
    "UserPersona",
    "evaluate",
    "evaluate_sync",
    "find_config_for_test_file",
    "generate_responses",
    "invocations_from_events",
    "load_eval_set",
    "score_case",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("evaltui")
    if name not in _HOMES:
        raise AttributeError(f"module 'evaltui' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
