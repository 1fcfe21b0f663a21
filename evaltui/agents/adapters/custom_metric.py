"""Calls the user's metric functions. Runs only in a child process of its own."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import math
import sys
from collections.abc import Callable, Iterable
from numbers import Real
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from ...core.model.events import Json
from ..errors import describe_error
from ..functions import find_function
from ..own_code import own_modules
from ..own_modules import use_own_modules


class _Types(NamedTuple):
    metric: Any
    criterion: Any
    invocation: Any
    event: Any
    scenario: Any


class CustomMetricError(TypeError):
    """A function returned a value that is not an EvaluationResult."""


async def import_function(request: Json) -> Json:
    """Imports a function and the types of its arguments. Returns the user's `files` that have been imported
    so far. Raises any error of the import."""
    if "source" in request:
        _evaluate_of(request)
    else:
        _imported_function(request)
    return {"files": own_modules()}


async def score(request: Json) -> Json:
    """Scores a case: by `_instance_score` for code, by `_scores` for a function that `scores_turns`, else by
    `_evaluation`."""
    if "source" in request:
        return await _instance_score(request)
    return await (_scores(request) if request["scores_turns"] else _evaluation(request))


async def _evaluation(request: Json) -> Json:
    """Calls a function with ADK's signature. Returns its `EvaluationResult` as JSON, with the names of
    statuses and without the invocations, and `where` the function is.

    Raises any error of the function, TypeError where it does not accept the arguments, and CustomMetricError
    where it returns another value.
    """
    path = request["path"]
    function, types = _imported_function(request)
    _check_arguments(
        function,
        4,
        f"{path} does not take the four arguments that ADK gives; one of (actual, expected, criterion) "
        f'is asked for under evaltui.criteria, as {{"threshold": 1.0, "function": "{path}"}}',
    )
    scenario = request["scenario"]
    returned = function(
        types.metric.model_validate({**request["metric"], "threshold": None}),
        _invocations(types, request["actual"]),
        None if request["expected"] is None else _invocations(types, request["expected"]),
        None if scenario is None else types.scenario.model_validate(scenario),
    )
    result = await returned if inspect.isawaitable(returned) else returned
    return {"result": _evaluation_data(result, path), "where": _where(function)}


async def _scores(request: Json) -> Json:
    """Calls a function in short form for each turn. Returns as JSON its `score`, or the `error` that it
    raised.

    The turns in `without` are not scored. Raises TypeError where it does not accept the arguments.
    """
    path = request["path"]
    function, types = _imported_function(request)
    _check_arguments(
        function,
        3,
        f"{path} does not take the three arguments (actual, expected, criterion); one with ADK's signature "
        "belongs under custom_metrics, and its threshold under criteria",
    )
    criterion = types.criterion.model_validate(request["metric"]["criterion"])
    actual = _invocations(types, request["actual"])
    expected: list[Any] = [None] * len(actual)
    if request["expected"] is not None:
        expected = _invocations(types, request["expected"])
    turns: list[Json] = []
    for number, (actual_turn, expected_turn) in enumerate(zip(actual, expected, strict=True)):
        if number in request["without"]:
            turns.append({})
            continue
        try:
            returned = function(actual_turn, expected_turn, criterion)
            turns.append(
                {"score": _score(await returned if inspect.isawaitable(returned) else returned, path)}
            )
        except Exception as error:
            # The other turns have their own scores.
            described = describe_error(error)
            turns.append({"error": {**described, "where": described["where"] or _where(function)}})
    return {"turns": turns}


async def _instance_score(request: Json) -> Json:
    """Calls the function `evaluate(instance)` of agents-cli. Returns as JSON its `score` and `explanation`,
    and `where` the function is.

    Raises any error of the code, and CustomMetricError where it returns anything else.
    """
    evaluate = _evaluate_of(request)
    # As in agents-cli, a case is scored in a thread: such a function may wait for its own model.
    returned, error = await asyncio.to_thread(_returned, evaluate, request["instance"])
    if error is not None:
        raise error
    return {"result": _instance_data(returned, request["path"]), "where": _where(evaluate)}


def _returned(function: Callable[..., Any], argument: Any) -> tuple[Any, Exception | None]:
    """The value of a call, or its error, whose traceback then has no frames of threads."""
    try:
        return function(argument), None
    except Exception as error:
        return None, error


_compiled: dict[tuple[str, str], Callable[..., Any]] = {}


def _evaluate_of(request: Json) -> Callable[..., Any]:
    """The function `evaluate` of a code, which is run once. Its lines are those of the user's file.

    Raises any error of the code, and TypeError where it has no such function.
    """
    place, file = request["path"], request["file"]
    source = request["source"] or Path(file).read_text(encoding="utf-8")
    if (place, source) in _compiled:
        return _compiled[place, source]
    use_own_modules(Path(request["agent_folder"]).resolve())
    # Lines of the file above the code are empty ones of the module.
    text = "\n" * (request["first_line"] - 1) + source
    namespace: dict[str, Any] = {"__file__": file} if file else {}
    exec(compile(text, file or f"<{place}>", "exec"), namespace)
    evaluate = namespace.get("evaluate")
    if not callable(evaluate):
        raise TypeError(f"{place} defines no function evaluate(instance)")
    return _compiled.setdefault((place, source), evaluate)


def _instance_data(returned: Any, place: str) -> Json:
    """The score and the explanation; a number alone is a score, and so is a result of the evaluation SDK."""
    if isinstance(returned, dict) and "score" in returned:
        score, explanation = returned["score"], returned.get("explanation")
    elif hasattr(returned, "metric_name") and hasattr(returned, "score"):
        score, explanation = returned.score, getattr(returned, "explanation", None)
        if problem := getattr(returned, "error_message", None):
            raise CustomMetricError(f"{place}: {problem}")
    elif isinstance(returned, Real):
        score, explanation = returned, None
    else:
        raise CustomMetricError(
            f"{place}: evaluate returned {_with_article(returned)}; it must return a number, or a dict with "
            '"score" and "explanation"'
        )
    try:
        number = None if score is None else float(score)
    except (TypeError, ValueError):
        raise CustomMetricError(f"{place}: the score {score!r} is not a number") from None
    if number is not None and not math.isfinite(number):
        raise CustomMetricError(f"{place}: the score is {number}")
    return {"score": number, "explanation": None if explanation is None else str(explanation)}


def _imported_function(request: Json) -> tuple[Callable[..., Any], _Types]:
    module, _, name = request["path"].rpartition(".")
    if not module:
        raise ValueError(f"{request['path']!r} is not a path such as my_agent.metrics.my_metric")
    function = find_function(module, name, Path(request["agent_folder"]))
    return function, _types(sys.modules.get(getattr(function, "__module__", ""), None))


def _check_arguments(function: Callable[..., Any], count: int, otherwise: str) -> None:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        raise TypeError(otherwise) from None
    except ValueError:
        # Some functions that are written in C have no signature.
        return


def _types(module: ModuleType | None) -> _Types:
    """The argument types for a function of this module: ADK's where it is installed, but evaltui's where the
    module uses those."""
    modules = [] if module is None else list(_homes(vars(module).values()))
    uses_adk = any(home.startswith("google.adk") for home in modules)
    uses_ours = any(home.partition(".")[0] == __name__.partition(".")[0] for home in modules)
    if uses_adk or (not uses_ours and _is_adk_installed()):
        from google.adk.evaluation import eval_case, eval_metrics

        return _types_in(eval_metrics, eval_case)
    from ...core.model import config, eval_set

    return _types_in(config, eval_set)


def _types_in(metrics: Any, cases: Any) -> _Types:
    return _Types(
        metrics.EvalMetric,
        metrics.BaseCriterion,
        cases.Invocation,
        cases.InvocationEvent,
        cases.ConversationScenario,
    )


def _homes(values: Iterable[Any]) -> Iterable[str]:
    """The modules that define these values."""
    for value in values:
        if isinstance(value, ModuleType):
            yield value.__name__
        elif isinstance(value, type | FunctionType):
            yield value.__module__ or ""


def _is_adk_installed() -> bool:
    try:
        return importlib.util.find_spec("google.adk.evaluation") is not None
    except ModuleNotFoundError:
        return False


def _invocations(types: _Types, data: list[Json]) -> list[Any]:
    # From JSON text, because only then are bytes read as base64.
    fitting = (_fitting(invocation, types) for invocation in data)
    invocations = [types.invocation.model_validate_json(json.dumps(invocation)) for invocation in fitting]
    for invocation in invocations:
        details = invocation.app_details
        for agent in details.agent_details.values() if details else ():
            agent.tool_declarations = [_tool(declared) for declared in agent.tool_declarations]
    return invocations


def _fitting(data: Json, types: _Types) -> Json:
    """An invocation for the agent's own google-adk: older versions have fewer fields and refuse others, and
    need `content` in every event."""
    invocation = _known_fields(data, types.invocation)
    if events := (invocation.get("intermediate_data") or {}).get("invocation_events"):
        fitting = [{"content": None} | _known_fields(event, types.event) for event in events]
        invocation["intermediate_data"] = {**invocation["intermediate_data"], "invocation_events": fitting}
    return invocation


def _known_fields(data: Json, model: Any) -> Json:
    if model.model_config.get("extra") != "forbid":
        return data
    return {name: value for name, value in data.items() if name in model.model_fields}


def _tool(declared: Any) -> Any:
    """A genai Tool, as google-adk uses them in an evaluation; a declaration that is not valid stays as it
    is."""
    from google.genai.types import Tool

    try:
        return Tool.model_validate(declared)
    except ValueError:
        return declared


def _score(returned: Any, path: str) -> float | None:
    if returned is None:
        return None
    if not isinstance(returned, Real):
        raise TypeError(
            f"{path} returned {_with_article(returned)}; it must return a number, True, False or None"
        )
    score = float(returned)
    if not math.isfinite(score):
        raise ValueError(f"{path} returned {score}, which is not a score")
    return score


def _evaluation_data(returned: Any, path: str) -> Json:
    if not isinstance(getattr(returned, "per_invocation_results", None), list):
        raise CustomMetricError(
            f"{path} returned {_with_article(returned)}; it must return an EvaluationResult"
        )
    try:
        return {
            "overall_score": _plain(returned.overall_score),
            "overall_eval_status": returned.overall_eval_status.name,
            "overall_rubric_scores": _rubric_scores(returned.overall_rubric_scores),
            "per_invocation_results": [
                {
                    "score": _plain(result.score),
                    "eval_status": result.eval_status.name,
                    "rubric_scores": _rubric_scores(result.rubric_scores),
                }
                for result in returned.per_invocation_results
            ],
        }
    except AttributeError as error:
        raise CustomMetricError(f"{path} returned an invalid EvaluationResult: {error}") from None


def _rubric_scores(scores: Iterable[Any] | None) -> list[Json]:
    return [
        {"rubric_id": rubric.rubric_id, "rationale": rubric.rationale, "score": _plain(rubric.score)}
        for rubric in scores or ()
    ]


def _plain(score: Any) -> Any:
    """A number as JSON has it; another value becomes text, which is refused where the result is read."""
    if score is None or isinstance(score, str | bool | int | float):
        return score
    return float(score) if isinstance(score, Real) else str(score)


def _with_article(value: Any) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _where(function: Callable[..., Any]) -> str:
    """`metrics.py:12 in my_metric`"""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    return f"{Path(code.co_filename).name}:{code.co_firstlineno} in {code.co_name}"
