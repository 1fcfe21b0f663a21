"""Cases of a set: new, copied, renamed, deleted, and put in another order or into another set."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evaltui.core.editing import references
from evaltui.core.editing.json_paths import (
    Changes,
    case_path,
    cases_path,
    eval_id,
    eval_ids,
    in_style,
    insert_at,
    list_at,
    place,
    set_id,
    value_at,
)
from evaltui.core.jsondoc.edits import Duplicate, Edit, EditError, Insert, Move, Put, Remove


@dataclass(frozen=True)
class SetAndConfig:
    """The data of an eval set and of the config beside it; `config` is None where there is no file."""

    eval_set: Any
    config: Any = None


@dataclass(frozen=True)
class Transfer:
    """What changes where cases come from and where they go to.

    Where both sets have the same config, all of its edits are in `source`.
    """

    source: Changes
    target: Changes


def new_set_text(eval_set_id: str, created: float) -> str:
    """The text of an empty set, as google-adk 2.13 writes it; `created` in seconds since 1970."""
    data = {"eval_set_id": eval_set_id, "name": eval_set_id, "eval_cases": [], "creation_timestamp": created}
    return json.dumps(data, indent=2, ensure_ascii=False)


def set_id_problem(eval_set_id: str, taken: Iterable[str] = ()) -> str | None:
    """Why a new set should not be called so, as a sentence; the rule for its characters is that of ADK."""
    if not re.fullmatch("[A-Za-z0-9_]+", eval_set_id):
        return "a set's id is made of letters from a to z, digits and underscores"
    return f"there is a set {eval_set_id!r} already" if eval_set_id in set(taken) else None


def eval_id_problem(data: Any, case: int, wanted: str) -> str | None:
    """Why a case cannot be called so, as a sentence."""
    if not wanted:
        return "a case needs an id"
    others = [taken for number, taken in enumerate(eval_ids(data)) if number != case]
    return f"there is a case {wanted!r} in this set already" if wanted in others else None


def proposed_id(taken: Iterable[str], stem: str = "case") -> str:
    """`case_3` for the third; the next number where that is taken."""
    ids = set(taken)
    return _free(stem, len(ids) + 1, ids)


def copy_id(original: str, taken: Iterable[str]) -> str:
    """`late_2` for a copy of `late`, `late_3` for the next one and for a copy of `late_2`."""
    numbered = re.fullmatch(r"(.+)_(\d{1,9})", original)
    stem, number = (numbered[1], int(numbered[2]) + 1) if numbered else (original or "case", 2)
    return _free(stem, number, set(taken))


def _free(stem: str, number: int, taken: set[str]) -> str:
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def add_case(data: Any, index: int | None = None, wanted: str = "", text: str = "") -> list[Edit]:
    """A case with one turn, in which the user says `text`, before the one at `index`, else at the end."""
    path = cases_path(data)
    content = {"parts": [{"text": text}], "role": "user"}
    turn = in_style(data, path, {"user_content": content})
    fields = {"eval_id": wanted or proposed_id(eval_ids(data)), "conversation": [turn]}
    at = len(list_at(data, path)) if index is None else index
    return [insert_at(data, path, at, in_style(data, path, fields))]


def duplicate_case(data: Any, config: Any, case: int) -> Changes:
    """A copy right after the case, under an id of its own, with its marks and rules."""
    old = eval_id(data, case)
    new = copy_id(old, eval_ids(data))
    path = case_path(data, case)
    copy: list[Edit] = [
        Duplicate(path[:-1], case),
        Put((*path[:-1], case + 1, place(data, path, "eval_id")[-1]), new),
    ]
    marks, rules = references.copied(config, [((set_id(data), old), (set_id(data), new))])
    return Changes(copy, _append(config, marks, rules))


def rename_case(data: Any, config: Any, case: int, wanted: str) -> Changes:
    """Raises EditError for an id that is empty or taken: see `eval_id_problem`."""
    if problem := eval_id_problem(data, case, wanted):
        raise EditError(problem)
    old = eval_id(data, case)
    if wanted == old:
        return Changes()
    owner = set_id(data)
    edits: list[Edit] = [Put(place(data, case_path(data, case), "eval_id"), wanted)]
    return Changes(edits, references.cases_moved(config, [((owner, old), (owner, wanted))]))


def rename_set(data: Any, config: Any, wanted: str) -> Changes:
    """Another id for the set; its `name` follows where it was the id. Raises EditError for an empty id."""
    if not wanted:
        raise EditError("a set needs an id")
    old = set_id(data)
    edits: list[Edit] = [Put(place(data, (), "eval_set_id"), wanted)]
    if old and value_at(data, ("name",)) == old:
        edits.append(Put(("name",), wanted))
    return Changes(edits, references.set_renamed(config, old, wanted) if old else [])


def delete_cases(data: Any, config: Any, cases: Sequence[int]) -> Changes:
    """The cases are deleted with the marks and rules that name them."""
    gone = sorted(set(cases))
    left = [one for number, one in enumerate(eval_ids(data)) if number not in gone]
    ids = {eval_id(data, case) for case in gone} - set(left)
    removals: list[Edit] = [Remove(case_path(data, case)) for case in reversed(gone)]
    return Changes(removals, references.cases_removed(config, set_id(data), ids))


def move_case(data: Any, case: int, to: int) -> list[Edit]:
    """Another place in the same set; `to` is the index afterwards."""
    path = case_path(data, case)[:-1]
    to = max(0, min(to, len(list_at(data, path)) - 1))
    return [Move(path, case, to)] if to != case else []


def copy_to_set(
    source: SetAndConfig, target: SetAndConfig, cases: Sequence[int], index: int | None = None
) -> Transfer:
    """Copies of several cases, in their order, before the target's case at `index`, else at its end.

    A copy whose id is taken there gets another one. Marks and rules come along; a target without a config
    (None) takes none, so where the source has some for these cases it should be given one before.
    """
    picked = sorted(set(cases))
    pairs = _pairs(source.eval_set, target.eval_set, picked)
    shared = source.config is target.config
    marks, rules = references.copied(source.config, pairs, elsewhere=not shared)
    config_edits = [] if target.config is None else _append(target.config, marks, rules)
    inserted = Changes(
        _insertions(source.eval_set, target.eval_set, picked, [new for _, (_, new) in pairs], index),
        [] if shared else config_edits,
    )
    return Transfer(Changes([], config_edits if shared else []), inserted)


def move_to_set(
    source: SetAndConfig, target: SetAndConfig, cases: Sequence[int], index: int | None = None
) -> Transfer:
    """As `copy_to_set`, and the cases are deleted where they were."""
    copied = copy_to_set(source, target, cases, index)
    deleted = delete_cases(source.eval_set, source.config, cases)
    if source.config is not target.config:
        return Transfer(deleted, copied.target)
    moved = references.cases_moved(source.config, _pairs(source.eval_set, target.eval_set, cases))
    return Transfer(Changes(deleted.of_set, moved), copied.target)


def _pairs(
    source: Any, target: Any, cases: Sequence[int]
) -> list[tuple[references.CaseRef, references.CaseRef]]:
    """Every case as it is named in its set and as it will be named in the target."""
    taken = set(eval_ids(target))
    pairs = []
    for case in sorted(set(cases)):
        old = eval_id(source, case)
        new = copy_id(old, taken) if old in taken else old
        taken.add(new)
        pairs.append(((set_id(source), old), (set_id(target), new)))
    return pairs


def _insertions(
    source: Any, target: Any, cases: Sequence[int], ids: Sequence[str], index: int | None
) -> list[Edit]:
    path = cases_path(target)
    at = len(list_at(target, path)) if index is None else index
    copies: list[Any] = []
    for case, new in zip(cases, ids, strict=True):
        value = value_at(source, case_path(source, case))
        key = place(source, case_path(source, case), "eval_id")[-1]
        copies.append({**value, key: new} if value.get(key) != new else value)
    if not isinstance(value_at(target, path), list):
        return [Put(path, copies)]
    return [Insert(path, at + number, copy) for number, copy in enumerate(copies)]


def _append(config: Any, marks: Sequence[dict[str, Any]], rules: Sequence[dict[str, Any]]) -> list[Edit]:
    marked = references.append_to_block(config, "turns", marks)
    if marked and not isinstance(value_at(config, ("evaltui",)), dict):
        return [Put(("evaltui",), {"turns": list(marks)} | ({"rules": list(rules)} if rules else {}))]
    return [*marked, *references.append_to_block(config, "rules", rules)]
