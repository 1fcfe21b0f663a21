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
    from evaltui.core.model.eval_set import ConversationScenario, EvalCase, EvalSet, Invocation, RubricScore
    from evaltui.core.model.outcome import CaseResult, MetricResult, RunResult, Status
    from evaltui.core.model.problems import EvalSetError
    from evaltui.files.eval_sets import load_eval_set
    from evaltui.runner.child.native.agent import Agent, ToolContext
    from evaltui.runner.child.native.scripted import Rule, ScriptedModel
    from evaltui.runner.evaluation import evaluate

_HOMES = {
    "Agent": ".runner.child.native.agent",
    "BaseCriterion": ".core.model.config",
    "CaseResult": ".core.model.outcome",
    "ConversationScenario": ".core.model.eval_set",
    "EvalCase": ".core.model.eval_set",
    "EvalConfig": ".core.model.config",
    "EvalMetric": ".core.model.config",
    "EvalSet": ".core.model.eval_set",
    "EvalSetError": ".core.model.problems",
    "EvalStatus": ".core.metrics.custom",
    "EvaluationResult": ".core.metrics.custom",
    "Invocation": ".core.model.eval_set",
    "MetricResult": ".core.model.outcome",
    "PerInvocationResult": ".core.metrics.custom",
    "RubricScore": ".core.model.eval_set",
    "Rule": ".runner.child.native.scripted",
    "RunResult": ".core.model.outcome",
    "ScriptedModel": ".runner.child.native.scripted",
    "Status": ".core.model.outcome",
    "ToolContext": ".runner.child.native.agent",
    "evaluate": ".runner.evaluation",
    "invocations_from_events": ".core.conversation.invocations",
    "load_eval_set": ".files.eval_sets",
    "score_case": ".core.metrics.scoring",
}

__all__ = [
    "Agent",
    "BaseCriterion",
    "CaseResult",
    "ConversationScenario",
    "EvalCase",
    "EvalConfig",
    "EvalMetric",
    "EvalSet",
    "EvalSetError",
    "EvalStatus",
    "EvaluationResult",
    "Invocation",
    "MetricResult",
    "PerInvocationResult",
    "RubricScore",
    "Rule",
    "RunResult",
    "ScriptedModel",
    "Status",
    "ToolContext",
    "evaluate",
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
