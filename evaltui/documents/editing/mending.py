"""Problems of eval sets and configs that have exactly one right mend, and the mends.

A mend never changes what evaltui reads in a file that it can read: it moves and renames what is there, and
removes what is there twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel

from evaltui.core.metrics.registry import is_own
from evaltui.core.model.eval_set import EvalCase, EvalSet, Invocation
from evaltui.core.model.json_values import ABSENT, camel, dicts, list_at, spelt, value_at
from evaltui.core.model.model_errors import objects_in, spellings
from evaltui.core.model.problems import JsonPath
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


class Mend(NamedTuple):
    """A problem that was mended."""

    path: JsonPath
    """Where it was, in the data as they were before that pass."""
    message: str
    """The change as a clause: `renamed to eval_cases`."""


def mend_set(data: Any) -> Iterator[Mend]:
    """Mends a copy of an eval set: first what is inside, since keys around it change.

    That may make place for other mends.
    """
    if not isinstance(data, dict):
        return
    cases = cases_path(data)
    for index, case in dicts(list_at(data, cases)):
        yield from _mend_case(data, case, (*cases, index))
    for name in EvalSet.model_fields:
        other = camel(name)
        if other == name or other not in data:
            continue
        if name not in data:
            rename(data, (other,), name)
            yield Mend((other,), f"renamed to {name}, which ADK reads")
        elif alike(data[name], data[other]):
            remove(data, (other,))
            yield Mend((other,), f"removed; {name} is the same")


def mend_config(data: Any) -> Iterator[Mend]:
    """Mends a copy of a config."""
    if not isinstance(data, dict):
        return
    editor = ConfigEditor(data)
    custom = value_at(data, (key := spelt("custom_metrics", data),))
    for name, metric in custom.items() if isinstance(custom, dict) else ():
        yield from _mend_custom_metric(editor, name, metric, (key, name))
    criteria = value_at(data, ("criteria",))
    for name, criterion in list(criteria.items()) if isinstance(criteria, dict) else ():
        is_theirs = isinstance(custom, dict) and name in custom
        if _is_misplaced(name, criterion) and not is_theirs and not _in_block(data, name):
            editor.put_own_criterion(name, criterion)
            remove(data, ("criteria", name))
            yield Mend(("criteria", name), "moved to evaltui.criteria")


def _mend_case(data: Any, case: dict[str, Any], path: JsonPath) -> Iterator[Mend]:
    for below, holder, models in list(objects_in(EvalCase, case)):
        place = (*path, *below)
        for model in models:
            yield from _remove_twins(data, holder, place, model)
        if Invocation in models:
            for name, role in _ROLES.items():
                yield from _mend_content(data, holder, place, name, role)


def _mend_content(data: Any, turn: dict[str, Any], path: JsonPath, name: str, role: str) -> Iterator[Mend]:
    """Mends a content that is a plain text, and an unknown role."""
    key = spelt(name, turn)
    content, path = turn.get(key), (*path, key)
    if isinstance(content, str):
        put(data, path, {"role": role, "parts": [{"text": content}]})
        yield Mend(path, "text written as a content")
        return
    current = content.get("role") if isinstance(content, dict) else None
    if isinstance(current, str) and current not in _ROLES.values():
        put(data, (*path, "role"), role)
        yield Mend((*path, "role"), f"changed to {role}")


def _remove_twins(
    data: Any, holder: dict[str, Any], path: JsonPath, model: type[BaseModel]
) -> Iterator[Mend]:
    """Keys in both spellings with the same value. The camelCase one stays: it counts."""
    for names in spellings(model):
        twins = [holder[name] for name in names if name in holder]
        if len(twins) > 1 and alike(*twins):
            remove(data, (*path, names[0]))
            yield Mend((*path, names[0]), f"removed; {names[1]} is the same")


def _mend_custom_metric(editor: ConfigEditor, name: str, metric: Any, path: JsonPath) -> Iterator[Mend]:
    """Moves a misplaced `lower_is_better` of a custom metric to its criterion."""
    criterion = editor.criterion(name)
    has_it = isinstance(criterion, dict) and any(key in criterion for key in _LOWER)
    if editor.threshold(name) is None or has_it:
        return
    places = [
        (*part, key)
        for part in _PARTS_OF_CUSTOM
        for key in _LOWER
        if isinstance(value_at(metric, (*part, key)), bool)
    ]
    if len(places) == 1:
        place: JsonPath = (*path, *places[0])
        editor.set_option(name, ("lower_is_better",), value_at(metric, places[0]))
        remove(editor.config, place)
        yield Mend(place, "moved to its criterion")


def _is_misplaced(name: str, criterion: Any) -> bool:
    """Whether ADK would find no such metric."""
    return is_own(name) or (isinstance(criterion, dict) and "function" in criterion)


def _in_block(data: Any, name: str) -> bool:
    return value_at(data, ("evaltui", "criteria", name), ABSENT) is not ABSENT
