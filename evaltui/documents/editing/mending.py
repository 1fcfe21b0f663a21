"""Mends of problems of eval sets and configs where only one change is possible.

A mend moves, renames or removes duplicates, but never changes the meaning of a valid file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from evaltui.core.metrics.config_validation import IGNORED_SETTING
from evaltui.core.metrics.registry import is_own
from evaltui.core.model.eval_set import EvalCase, EvalSet, Invocation
from evaltui.core.model.events import text_content
from evaltui.core.model.json_values import (
    ABSENT,
    field_of,
    indexed_objects,
    list_at,
    object_or_empty,
    spelling_in,
    value_at,
)
from evaltui.core.model.model_errors import objects_in, spellings
from evaltui.core.model.problems import (
    DUPLICATE_KEY,
    INVALID_VALUE,
    UNKNOWN_KEY,
    Finding,
    JsonPath,
)
from evaltui.core.model.validation import UNKNOWN_ROLE, other_spellings
from evaltui.documents.editing.config import ConfigEditor
from evaltui.documents.editing.json_paths import cases_path
from evaltui.documents.edits import alike
from evaltui.documents.values import put, remove, rename

_ROLES = {"user_content": "user", "final_response": "model"}
_LOWER = ("lower_is_better", "lowerIsBetter")
# Where google-adk refuses what belongs to the criterion.
_PARTS_OF_CUSTOM: tuple[JsonPath, ...] = (
    ("code_config",),
    ("metric_info",),
    ("metric_info", "metric_value_info"),
)


# Mends of sets: first what is inside, since keys around it change


@DUPLICATE_KEY.mends("set")
def _remove_twins(data: dict[str, Any]) -> Iterator[Finding]:
    """Keys in both spellings with the same value. The camelCase one stays: it counts."""
    for holder, path, models in _objects_of_cases(data):
        for names in (names for model in models for names in spellings(model)):
            twins = [holder[name] for name in names if name in holder]
            if len(twins) > 1 and alike(*twins):
                remove(data, (*path, names[0]))
                yield (*path, names[0]), f"removed; {names[1]} is the same"


@INVALID_VALUE.mends("set")
def _wrap_texts(data: dict[str, Any]) -> Iterator[Finding]:
    """Contents that are plain texts."""
    for content, path, role in _contents(data):
        if isinstance(content, str):
            put(data, path, text_content(role, content))
            yield path, "text written as a content"


@UNKNOWN_ROLE.mends("set")
def _correct_roles(data: dict[str, Any]) -> Iterator[Finding]:
    for content, path, role in _contents(data):
        current = content.get("role") if isinstance(content, dict) else None
        if isinstance(current, str) and current not in _ROLES.values():
            put(data, (*path, "role"), role)
            yield (*path, "role"), f"changed to {role}"


@UNKNOWN_KEY.mends("set")
def _rename_keys(data: dict[str, Any]) -> Iterator[Finding]:
    for name, other in other_spellings(EvalSet):
        if other in data and name not in data:
            rename(data, (other,), name)
            yield (other,), f"renamed to {name}, which ADK reads"


@DUPLICATE_KEY.mends("set")
def _remove_twins_of_set(data: dict[str, Any]) -> Iterator[Finding]:
    for name, other in other_spellings(EvalSet):
        if other in data and name in data and alike(data[name], data[other]):
            remove(data, (other,))
            yield (other,), f"removed; {name} is the same"


def _objects_of_cases(data: Any) -> Iterator[tuple[dict[str, Any], JsonPath, Sequence[type[BaseModel]]]]:
    for index, case in indexed_objects(list_at(data, cases := cases_path(data))):
        for below, holder, models in list(objects_in(EvalCase, case)):
            yield holder, (*cases, index, *below), models


def _contents(data: Any) -> Iterator[tuple[Any, JsonPath, str]]:
    """The contents of turns, with their paths and the roles they should have."""
    for turn, path, models in _objects_of_cases(data):
        for name, role in _ROLES.items() if Invocation in models else ():
            key = spelling_in(name, turn)
            yield turn.get(key), (*path, key), role


# Mends of configs


@INVALID_VALUE.mends("config")
def _move_directions(data: dict[str, Any]) -> Iterator[Finding]:
    """Moves a misplaced `lower_is_better` of a custom metric to its criterion."""
    editor = ConfigEditor(data)
    custom = value_at(data, (key := spelling_in("custom_metrics", data),))
    for name, metric in object_or_empty(custom).items():
        criterion = editor.criterion(name)
        has_it = isinstance(criterion, dict) and any(option in criterion for option in _LOWER)
        if editor.threshold(name) is None or has_it:
            continue
        places = [
            (*part, option)
            for part in _PARTS_OF_CUSTOM
            for option in _LOWER
            if isinstance(value_at(metric, (*part, option)), bool)
        ]
        if len(places) == 1:
            place: JsonPath = (key, name, *places[0])
            editor.set_option(name, ("lower_is_better",), value_at(metric, places[0]))
            remove(data, place)
            yield place, "moved to its criterion"


@IGNORED_SETTING.mends("config")
def _move_criteria(data: dict[str, Any]) -> Iterator[Finding]:
    custom = object_or_empty(field_of(data, "custom_metrics"))
    criteria = object_or_empty(value_at(data, ("criteria",)))
    for name, criterion in list(criteria.items()):
        if _is_misplaced(name, criterion) and name not in custom and not _in_block(data, name):
            ConfigEditor(data).put_own_criterion(name, criterion)
            remove(data, ("criteria", name))
            yield ("criteria", name), "moved to evaltui.criteria"


def _is_misplaced(name: str, criterion: Any) -> bool:
    """Whether ADK does not have a metric at its place."""
    return is_own(name) or (isinstance(criterion, dict) and "function" in criterion)


def _in_block(data: Any, name: str) -> bool:
    return value_at(data, ("evaltui", "criteria", name), ABSENT) is not ABSENT
