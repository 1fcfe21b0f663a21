"""The cases of an action, and why it is refused for them."""

from __future__ import annotations

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.state import Selection


def chosen(editing: Editing) -> tuple[CaseId, ...]:
    """The cases of an action: the marked ones, else the selected one."""
    if marked := editing.navigation.marking.marked:
        return tuple(marked)
    return (editing.navigation.selection.case,) if editing.navigation.selection.case else ()


def refuses_cases(editing: Editing) -> str | None:
    """Why an action on the chosen cases is refused, as a sentence."""
    cases = chosen(editing)
    if not cases:
        return "No case selected" if editing.sets.listed else "No eval sets yet"
    if editing.navigation.selection.turn is not None and not editing.navigation.marking.marked:
        return "Turns are edited in the case pane"
    paths = {editing.sets.file_of(path) for path in {case.path for case in cases}}
    return next(filter(None, map(editing.refuses_to_edit, paths)), None)


def refuses_paste(editing: Editing) -> str | None:
    if editing.navigation.marking.clipboard is None:
        return "No case copied or cut"
    return editing.refuses_to_edit(editing.navigation.file)


def refuses_to_convert(sets: OpenSets, selection: Selection) -> str | None:
    """Why the selected file cannot be converted, as a sentence."""
    eval_set = sets.by_case_path(selection.path)
    if eval_set is None:
        return "Nothing selected"
    if eval_set.format is None:
        return f"{eval_set.path.name} is unreadable: {eval_set.problems[0]}"
    if eval_set.format == "eval set":
        return f"{eval_set.path.name} has the current format; nothing to convert"
    return None
