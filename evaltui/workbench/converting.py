"""A file of an old format becomes an eval set in a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.problems import Problem
from evaltui.files.eval_sets import SUFFIXES, migrated_text, read_eval_set, set_name
from evaltui.workbench.editing import Editing
from evaltui.workbench.open_sets import OpenSets
from evaltui.workbench.state import Selection

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalSet


def refuses_to_convert(sets: OpenSets, selection: Selection) -> str | None:
    """Why the selected file cannot be converted, as a sentence."""
    eval_set = sets.by_case_path(selection.path)
    if eval_set is None:
        return "nothing is selected"
    if eval_set.format is None:
        return f"{eval_set.path.name} cannot be read: {eval_set.problems[0]}"
    if eval_set.format == "eval set":
        return f"{eval_set.path.name} has no old format, so there is nothing to convert"
    return None


def converted(path: Path) -> tuple[EvalSet | None, tuple[Problem, ...]]:
    """What a file of an old format holds, None where it has errors, and its problems."""
    loaded = read_eval_set(path)
    return loaded.eval_set, loaded.problems


def name_for_converted(old: Path) -> str:
    """A name that is free, beside the old file: `late.evalset.json` for `late.test.json`."""
    name = set_name(old)
    candidates = [f"{name}.evalset.json", f"{name}_converted.evalset.json"]
    more = (f"{name}_converted_{number}.evalset.json" for number in count(2))
    return next(one for one in chain(candidates, more) if not old.with_name(one).exists())


def converted_name_problem(editing: Editing, old: Path, wanted: str) -> str | None:
    """Why the new file cannot be called so, as a sentence."""
    new = old.parent / wanted
    if not wanted.endswith(SUFFIXES) or wanted in SUFFIXES:
        return f"a set is found by its file's name, which ends in {' or '.join(SUFFIXES)}"
    if new.parent != old.parent or new.name != wanted:
        return "the new file is put beside the old one: a name without folders"
    if new.exists() or editing.open_file(new) is not None:
        return f"there is a file {wanted} already, which stays as it is"
    return None


async def convert(editing: Editing, eval_set: EvalSet, new: Path, say: Callable[[str], None]) -> bool:
    """Writes what was converted to a new file, which is selected; the old file stays as it is."""
    if not editing.new_file(new, migrated_text(eval_set, new)) or not await editing.save(new):
        return False
    say(f"wrote {new.name}; the old file is as it was")
    return True
