"""Kinds of files other than eval sets, recognized by their data, with advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evaltui.core.model.datasets import is_dataset
from evaltui.core.model.json_values import indexed_objects, list_at, list_or_empty, object_or_empty


@dataclass(frozen=True)
class FileKind:
    """A kind of file that is no eval set."""

    name: str
    """Name of the kind with its article: `an ADK session`."""
    recognises: Callable[[Any], bool]
    """Tells whether JSON or YAML data is of this kind, valid or not."""
    advice: str
    """Advice for such a file, as a sentence without its period."""

    @property
    def sentence(self) -> str:
        return f"{self.name}. {self.advice}"


def file_kind(data: Any) -> FileKind | None:
    """The first kind that recognises the data; None for an eval set and for unknown data."""
    return next((kind for kind in _KINDS if kind.recognises(data)), None)


def is_eval_config(data: Any) -> bool:
    """Whether data is a config of agents-cli: names of metrics, and definitions of custom ones."""
    if not isinstance(data, dict) or "criteria" in data:
        return False
    return "metrics_to_run" in data or isinstance(data.get("custom_metrics"), list)


def is_promptfoo(data: Any) -> bool:
    """Whether data is a config of promptfoo."""
    return isinstance(data, dict) and "providers" in data and bool(data.keys() & {"prompts", "tests"})


def is_session(data: Any) -> bool:
    """Whether data is a session of google-adk, right or wrong."""
    keys = object_or_empty(data).keys()
    return "events" in keys and bool(keys & {"appName", "app_name"}) and bool(keys & {"userId", "user_id"})


def _is_result(data: Any) -> bool:
    # Earlier versions of google-adk wrote the JSON text of the result as a JSON string.
    if isinstance(data, str):
        return '"eval_case_results"' in data[:2_000]
    return isinstance(data, dict) and bool(data.keys() & {"eval_case_results", "evalCaseResults"})


def _is_trace(data: Any) -> bool:
    if isinstance(data, list):
        return any(_is_trace(entry) for _, entry in indexed_objects(data[:1]))
    if not isinstance(data, dict):
        return False
    if data.keys() & {"resourceSpans", "resource_spans", "batches"}:
        return True
    names = {"trace_id", "traceId", "traceID"}
    spans = list_or_empty(data.get("data"))
    is_jaeger = any("spans" in trace for _, trace in indexed_objects(spans))
    return is_jaeger or bool(data.keys() & names and data.keys() & {"span_id", "spanId", "spans"})


def is_scenarios(data: Any) -> bool:
    """Whether data is a file of google-adk's scenarios, right or wrong."""
    names = {"starting_prompt", "startingPrompt", "conversation_plan", "conversationPlan"}
    return any(scenario.keys() & names for _, scenario in indexed_objects(list_at(data, ("scenarios",))))


def _is_invented(data: Any) -> bool:
    return isinstance(data, dict) and "test_cases" in data and not data.keys() & {"eval_cases", "evalCases"}


_KINDS = (
    FileKind(
        "an EvaluationDataset of Google's evaluation service",
        is_dataset,
        "`evaltui run` and `evaltui score` read it as an eval set; `evaltui migrate` converts it",
    ),
    FileKind(
        "a config of agents-cli",
        is_eval_config,
        "`evaltui run` scores the datasets beside and below it by it",
    ),
    FileKind(
        "a promptfoo config",
        is_promptfoo,
        "`evaltui import FILE --into SET` makes cases of its tests",
    ),
    FileKind(
        "an ADK session",
        is_session,
        "`evaltui import FILE --into SET` makes a case of it, `evaltui inspect FILE` shows it",
    ),
    FileKind(
        "a result file of ADK",
        _is_result,
        "`evaltui report` and `evaltui compare` read it",
    ),
    FileKind(
        "a recorded trace",
        _is_trace,
        "`evaltui score` scores it, `evaltui import` makes cases of it",
    ),
    FileKind(
        "an ADK scenario file",
        is_scenarios,
        "`evaltui import FILE --into SET` makes a case of each scenario",
    ),
    FileKind(
        "a file of `test_cases`, which no ADK version reads",
        _is_invented,
        "Write them as eval_cases, see `evaltui help cases`",
    ),
)
SESSION_DATABASE = FileKind(
    "a session database of ADK",
    lambda _: False,
    "`evaltui inspect FILE` lists its sessions, `evaltui import FILE --into SET` makes cases of them",
)
