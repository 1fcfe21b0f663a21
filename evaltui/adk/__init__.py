"""The functions of google-adk for evaluating from Python, under its names: a suite moves here by its import
lines."""

from __future__ import annotations

from importlib import import_module

# As in `evaltui`: each name is imported when it is first used.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaltui.adk.evaluator import AgentEvaluator, EvalCaseResponses, EvaluationGenerator
    from evaltui.adk.results_manager import EvaltuiResultsManager

_HOMES = {
    "AgentEvaluator": ".evaluator",
    "EvalCaseResponses": ".evaluator",
    "EvaluationGenerator": ".evaluator",
    "EvaltuiResultsManager": ".results_manager",
}

__all__ = ["AgentEvaluator", "EvalCaseResponses", "EvaltuiResultsManager", "EvaluationGenerator"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'evaltui.adk' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
