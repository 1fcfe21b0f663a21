"""A terminal workbench for LLM agents. The public names are imported when they are first used."""

from __future__ import annotations

# Nothing is imported here, which is before the program can catch Ctrl-C; type checkers take this for true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaltui.core.conversation.invocations import invocations_from_events
    from evaltui.core.metrics.custom import EvalStatus, EvaluationResult, PerInvocationResult
    from evaltui.core.metrics.scoring import score_case
    from evaltui.core.model.config import BaseCriterion, EvalConfig, EvalMetric
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
    )
    from evaltui.core.model.outcome import CaseResult, CasesFailedError, MetricResult, RunResult, Status
    from evaltui.core.model.problems import EvalSetError
    from evaltui.files.eval_sets import load_eval_set
    from evaltui.runner.child.native.agent import Agent, ToolContext
    from evaltui.runner.child.native.scripted import Rule, ScriptedModel
    from evaltui.runner.evaluation import evaluate, evaluate_sync

_HOMES = {
    "Agent": ".runner.child.native.agent",
    "AgentDetails": ".core.model.eval_set",
    "AppDetails": ".core.model.eval_set",
    "BaseCriterion": ".core.model.config",
    "CaseResult": ".core.model.outcome",
    "CasesFailedError": ".core.model.outcome",
    "ConversationScenario": ".core.model.eval_set",
    "EvalCase": ".core.model.eval_set",
    "EvalConfig": ".core.model.config",
    "EvalMetric": ".core.model.config",
    "EvalSet": ".core.model.eval_set",
    "EvalSetError": ".core.model.problems",
    "EvalStatus": ".core.metrics.custom",
    "EvaluationResult": ".core.metrics.custom",
    "IntermediateData": ".core.model.eval_set",
    "Invocation": ".core.model.eval_set",
    "InvocationEvent": ".core.model.eval_set",
    "InvocationEvents": ".core.model.eval_set",
    "MetricResult": ".core.model.outcome",
    "PerInvocationResult": ".core.metrics.custom",
    "Rubric": ".core.model.eval_set",
    "RubricContent": ".core.model.eval_set",
    "RubricScore": ".core.model.eval_set",
    "Rule": ".runner.child.native.scripted",
    "RunResult": ".core.model.outcome",
    "ScriptedModel": ".runner.child.native.scripted",
    "SessionInput": ".core.model.eval_set",
    "Status": ".core.model.outcome",
    "ToolContext": ".runner.child.native.agent",
    "evaluate": ".runner.evaluation",
    "evaluate_sync": ".runner.evaluation",
    "invocations_from_events": ".core.conversation.invocations",
    "load_eval_set": ".files.eval_sets",
    "score_case": ".core.metrics.scoring",
}

__all__ = [
    "Agent",
    "AgentDetails",
    "AppDetails",
    "BaseCriterion",
    "CaseResult",
    "CasesFailedError",
    "ConversationScenario",
    "EvalCase",
    "EvalConfig",
    "EvalMetric",
    "EvalSet",
    "EvalSetError",
    "EvalStatus",
    "EvaluationResult",
    "IntermediateData",
    "Invocation",
    "InvocationEvent",
    "InvocationEvents",
    "MetricResult",
    "PerInvocationResult",
    "Rubric",
    "RubricContent",
    "RubricScore",
    "Rule",
    "RunResult",
    "ScriptedModel",
    "SessionInput",
    "Status",
    "ToolContext",
    "evaluate",
    "evaluate_sync",
    "invocations_from_events",
    "load_eval_set",
    "score_case",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        return import_module("importlib.metadata").version("evaltui")
    if name not in _HOMES:
        raise AttributeError(f"module 'evaltui' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
