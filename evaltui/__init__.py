"""A terminal workbench for LLM agents. The public names are imported when they are first used."""

from __future__ import annotations

# Nothing is imported here, which is before the program can catch Ctrl-C; type checkers take this for true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaltui.core.config import BaseCriterion, EvalConfig, EvalMetric
    from evaltui.core.evalset import ConversationScenario, EvalCase, EvalSet, Invocation, RubricScore
    from evaltui.core.metrics.custom import EvalStatus, EvaluationResult, PerInvocationResult
    from evaltui.core.outcome import CaseResult, MetricResult, RunResult, Status
    from evaltui.core.problems import EvalSetError
    from evaltui.core.record import invocations_from_events
    from evaltui.core.scoring import score_case
    from evaltui.files.eval_sets import load_eval_set
    from evaltui.runner.native.agent import Agent
    from evaltui.runner.native.scripted import Rule, ScriptedModel
    from evaltui.runner.native.tools import ToolContext
    from evaltui.runner.plan import evaluate

_HOMES = {
    "Agent": "evaltui.runner.native.agent",
    "BaseCriterion": "evaltui.core.config",
    "CaseResult": "evaltui.core.outcome",
    "ConversationScenario": "evaltui.core.evalset",
    "EvalCase": "evaltui.core.evalset",
    "EvalConfig": "evaltui.core.config",
    "EvalMetric": "evaltui.core.config",
    "EvalSet": "evaltui.core.evalset",
    "EvalSetError": "evaltui.core.problems",
    "EvalStatus": "evaltui.core.metrics.custom",
    "EvaluationResult": "evaltui.core.metrics.custom",
    "Invocation": "evaltui.core.evalset",
    "MetricResult": "evaltui.core.outcome",
    "PerInvocationResult": "evaltui.core.metrics.custom",
    "RubricScore": "evaltui.core.evalset",
    "Rule": "evaltui.runner.native.scripted",
    "RunResult": "evaltui.core.outcome",
    "ScriptedModel": "evaltui.runner.native.scripted",
    "Status": "evaltui.core.outcome",
    "ToolContext": "evaltui.runner.native.tools",
    "evaluate": "evaltui.runner.plan",
    "invocations_from_events": "evaltui.core.record",
    "load_eval_set": "evaltui.files.eval_sets",
    "score_case": "evaltui.core.scoring",
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
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
