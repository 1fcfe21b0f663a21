"""Problems of eval sets and configs that have exactly one right mend, as edits.

A mend never changes what evaltui reads in a file that it can read: it moves and renames what is there, and
removes what is there twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from evaltui.core.metrics.registry import is_own
from evaltui.core.model.eval_set import EvalCase, EvalSet, Invocation
from evaltui.core.model.json_values import ABSENT, camel, dicts, list_at, spelt, value_at
from evaltui.core.model.model_errors import objects_in, spellings
from evaltui.core.model.problems import JsonPath
from evaltui.documents.editing.config import ConfigEditor
from evaltui.documents.editing.json_paths import cases_path
from evaltui.documents.edits import Edit, Put, Remove, Rename, alike, apply_to_data

_ROLES = {"user_content": "user", "final_response": "model"}
_LOWER = ("lower_is_better", "lowerIsBetter")
# Where google-adk refuses what belongs to the criterion.
_PARTS_OF_CUSTOM: tuple[JsonPath, ...] = (
    ("code_config",),
    ("metric_info",),
    ("metric_info", "metric_value_info"),
)


@dataclass(frozen=True)
class Mend:
    """How a problem is mended."""

    path: JsonPath
    """Where the problem is, in the data as they are before any mend."""
    message: str
    """What is done, as a clause: `renamed to eval_cases`."""
    edits: tuple[Edit, ...]


def mends_of_set(data: Any) -> Iterator[Mend]:
    """The mends of an eval set, to be done in this order: first what is inside, since keys around it change.

    Done, they may make place for others.
    """
    if not isinstance(data, dict):
        return
    cases = cases_path(data)
    for index, case in dicts(list_at(data, cases)):
        yield from _of_case(case, (*cases, index))
    for name in EvalSet.model_fields:
        other = camel(name)
        if other == name or other not in data:
            continue
        if name not in data:
            yield Mend((other,), f"renamed to {name}, which ADK reads", (Rename((other,), name),))
        elif alike(data[name], data[other]):
            yield Mend((other,), f"removed; {name} is the same", (Remove((other,)),))


def mends_of_config(data: Any) -> Iterator[Mend]:
    """The mends of a config, as of an eval set."""
    if not isinstance(data, dict):
        return
    editor = ConfigEditor(data)
    custom = value_at(data, (key := spelt("custom_metrics", data),))
    for name, metric in custom.items() if isinstance(custom, dict) else ():
        yield from _of_custom_metric(editor, name, metric, (key, name))
    criteria = value_at(data, ("criteria",))
    for name, criterion in criteria.items() if isinstance(criteria, dict) else ():
        is_theirs = isinstance(custom, dict) and name in custom
        if _is_misplaced(name, criterion) and not is_theirs and not _in_block(data, name):
            edits = (editor.put_own_criterion(name, criterion), Remove(("criteria", name)))
            # The next one finds the block there.
            editor = ConfigEditor(apply_to_data(editor.config, edits))
            yield Mend(("criteria", name), "moved to evaltui.criteria", edits)


def _of_case(case: dict[str, Any], path: JsonPath) -> Iterator[Mend]:
    for below, data, models in objects_in(EvalCase, case):
        place = (*path, *below)
        if Invocation in models:
            for name, role in _ROLES.items():
                yield from _of_content(data, place, name, role)
        for model in models:
            yield from _twins(data, place, model)


def _of_content(turn: dict[str, Any], path: JsonPath, name: str, role: str) -> Iterator[Mend]:
    """A text in the place of a content, and a role that ADK does not know: only one can be in its place."""
    key = spelt(name, turn)
    content, path = turn.get(key), (*path, key)
    if isinstance(content, str):
        parts = {"role": role, "parts": [{"text": content}]}
        yield Mend(path, "text written as a content", (Put(path, parts),))
        return
    given = content.get("role") if isinstance(content, dict) else None
    if isinstance(given, str) and given not in _ROLES.values():
        yield Mend((*path, "role"), f"changed to {role}", (Put((*path, "role"), role),))


def _twins(data: dict[str, Any], path: JsonPath, model: type[BaseModel]) -> Iterator[Mend]:
    """Keys in both spellings with the same value. The camelCase one stays: it counts."""
    for names in spellings(model):
        if len(names) > 1 and all(name in data for name in names) and alike(*(data[name] for name in names)):
            yield Mend((*path, names[0]), f"removed; {names[1]} is the same", (Remove((*path, names[0])),))


def _of_custom_metric(editor: ConfigEditor, name: str, metric: Any, path: JsonPath) -> Iterator[Mend]:
    """`lower_is_better` in the wrong place, of a metric that is asked for."""
    criterion = editor.criterion(name)
    has_it = isinstance(criterion, dict) and any(key in criterion for key in _LOWER)
    if editor.threshold(name) is None or has_it:
        return
    found = [
        (*part, key)
        for part in _PARTS_OF_CUSTOM
        for key in _LOWER
        if isinstance(value_at(metric, (*part, key)), bool)
    ]
    if len(found) == 1:
        place: JsonPath = (*path, *found[0])
        put = editor.set_option(name, ("lower_is_better",), value_at(metric, found[0]))
        yield Mend(place, "moved to its criterion", (*put, Remove(place)))


def _is_misplaced(name: str, criterion: Any) -> bool:
    """Whether ADK would find no such metric."""
    return is_own(name) or (isinstance(criterion, dict) and "function" in criterion)


def _in_block(data: Any, name: str) -> bool:
    return value_at(data, ("evaltui", "criteria", name), ABSENT) is not ABSENT
