"""Call a custom metric function with ADK's signature. Runs only in a child process of its own."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from evaltui.core.events import Json


async def score(request: Json) -> Json:
    """What the function says, as JSON: `overall_score`, `overall_eval_status` (its name) and
    `per_invocation_results` (`score`, `eval_status`).

    The function gets google-adk's types if its module uses google-adk, else ours of the same shape.
    Raises whatever the function raises, and TypeError where it returns something else.
    """
    folder = Path(request["agent_folder"])
    for place in (str(folder), str(folder.parent)):
        if place not in sys.path:
            sys.path.insert(0, place)
    function = _find(request["path"], folder.name)
    metric, invocation = _types()
    returned = function(
        metric.model_validate({**request["metric"], "threshold": None}),
        _invocations(invocation, request["actual"]),
        _invocations(invocation, request["expected"]),
        None,
    )
    return _plain(await returned if inspect.isawaitable(returned) else returned, request["path"])


def _find(path: str, package: str) -> Callable[..., Any]:
    module_name, _, name = path.rpartition(".")
    if not module_name:
        raise ValueError(f"code_config.name {path!r} is not a path such as my_agent.metrics.my_metric")
    module = _import(module_name, package)
    found = getattr(module, name, None)
    if not callable(found):
        raise AttributeError(f"{module.__file__} has no function {name!r} (code_config.name is {path!r})")
    function: Callable[..., Any] = found
    return function


def _import(module_name: str, package: str) -> ModuleType:
    head, _, rest = module_name.partition(".")
    if head == "agent" and rest:
        # `adk eval` loads the agent's package under the name `agent`; here that is its module agent.py.
        return importlib.import_module(f"{package}.{rest}")
    return importlib.import_module(module_name)


def _types() -> tuple[Any, Any]:
    if "google.adk" in sys.modules:
        from google.adk.evaluation.eval_case import Invocation as AdkInvocation
        from google.adk.evaluation.eval_metrics import EvalMetric as AdkMetric

        return AdkMetric, AdkInvocation
    from evaltui.core.config import EvalMetric
    from evaltui.core.evalset import Invocation

    return EvalMetric, Invocation


def _invocations(model: Any, data: list[Json] | None) -> list[Any] | None:
    return None if data is None else [model.model_validate_json(json.dumps(one)) for one in data]


def _plain(returned: Any, path: str) -> Json:
    try:
        return {
            "overall_score": returned.overall_score,
            "overall_eval_status": returned.overall_eval_status.name,
            "per_invocation_results": [
                {"score": one.score, "eval_status": one.eval_status.name}
                for one in returned.per_invocation_results
            ],
        }
    except AttributeError:
        raise TypeError(
            f"{path} returned a {type(returned).__name__}; it must return an EvaluationResult"
        ) from None
