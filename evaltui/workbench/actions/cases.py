"""The list of cases: new cases and sets, copies, names; and questions about them."""

from __future__ import annotations

from functools import partial
from types import ModuleType

from evaltui.workbench.actions.action import Action, Scope, action, not_read
from evaltui.workbench.cases.chosen_cases import refuses_cases, refuses_paste, refuses_to_convert
from evaltui.workbench.workbench import Workbench


def _set_editing() -> ModuleType:
    """Imported when it is first needed: the first frame edits nothing."""
    from evaltui.workbench.cases import set_editing

    return set_editing


_in_list = partial(action, where=(Scope.CASES,), refusal=lambda workbench: refuses_cases(workbench.editing))


def _no_place(workbench: Workbench) -> str | None:
    """Why there cannot be a new case; where there is no set at all, one is made first."""
    if reason := not_read(workbench):
        return reason
    return workbench.editing.refuses_to_edit(workbench.navigation.file) if workbench.sets.listed else None


def _no_case(workbench: Workbench) -> str | None:
    return "No case selected" if workbench.navigation.selection.case is None else None


def _no_cases(workbench: Workbench) -> str | None:
    return None if any(eval_set.cases for eval_set in workbench.sets.listed) else "No cases yet"


TREE: tuple[Action, ...] = (
    _in_list(
        "edit_case",
        "Edit case",
        "Go to the case and edit it",
        "e",
        refusal=_no_case,
        footer="edit",
        acts=True,
    ),
    _in_list(
        "new_case",
        "New case",
        "Add a case below this one",
        "o",
        where=(Scope.CASES, Scope.START),
        refusal=_no_place,
        rank=3,
        acts=True,
    ),
    _in_list(
        "new_set",
        "New set…",
        "Create an eval set in a file of its own",
        "O",
        where=(Scope.CASES, Scope.START),
        refusal=not_read,
        footer="new set",
        acts=True,
    ),
    _in_list(
        "duplicate_case",
        "Duplicate case",
        "Duplicate the case below itself",
        "d",
        do=lambda workbench: _set_editing().duplicate(workbench.editing),
        footer="duplicate",
        acts=True,
    ),
    _in_list(
        "rename",
        "Rename…",
        "Rename the case or the set",
        "f2",
        refusal=lambda workbench: workbench.editing.refuses_to_edit(workbench.navigation.file),
        footer="rename",
        acts=True,
    ),
    _in_list(
        "delete_case",
        "Delete case",
        "Delete the case and its rules; undo restores both",
        "delete",
        "D",
        do=lambda workbench: _set_editing().delete(workbench.editing),
        footer="delete",
        acts=True,
    ),
    _in_list(
        "move_case_up",
        "Move case up",
        "Move the case up in its set",
        "K",
        "shift+up",
        do=lambda workbench: _set_editing().move(workbench.editing, step=-1),
        footer="move up",
        acts=True,
    ),
    _in_list(
        "move_case_down",
        "Move case down",
        "Move the case down in its set",
        "J",
        "shift+down",
        do=lambda workbench: _set_editing().move(workbench.editing, step=1),
        footer="move down",
        acts=True,
    ),
    _in_list(
        "mark_case",
        "Mark case",
        "Mark the case, or all cases of a set; actions then apply to all marked cases",
        "v",
        refusal=_no_cases,
        footer="mark",
    ),
    _in_list(
        "mark_failing",
        "Mark failing cases",
        "Mark the cases that did not pass; in any variant if the newest run is a matrix",
        "Z",
        refusal=_no_cases,
        footer="mark failing",
    ),
    _in_list(
        "tag_case",
        "Tag case…",
        "Change the tags of the case, or of all marked cases",
        "number_sign",
        where=(Scope.CASES, Scope.CASE, Scope.RESULT),
        footer="tag",
        acts=True,
    ),
    _in_list(
        "copy_case",
        "Copy case",
        "Copy the case, to paste it in any set",
        "C",
        do=lambda workbench: _set_editing().copy(workbench.editing),
        footer="copy",
        acts=True,
    ),
    _in_list(
        "cut_case",
        "Cut case",
        "Cut the case, to paste it in any set",
        "X",
        do=lambda workbench: _set_editing().copy(workbench.editing, cut=True),
        footer="cut",
        acts=True,
    ),
    _in_list(
        "paste_case",
        "Paste case",
        "Paste below this case, or at the end of a set",
        "P",
        do=lambda workbench: _set_editing().paste(workbench.editing),
        refusal=lambda workbench: refuses_paste(workbench.editing),
        rank=4,
        footer="paste",
        acts=True,
    ),
    _in_list(
        "convert",
        "Convert format…",
        "Preview a dataset or a file of an old format as an eval set, and write it to a new file",
        "M",
        refusal=lambda workbench: refuses_to_convert(workbench.sets, workbench.navigation.selection),
        rank=2,
        footer="convert",
        acts=True,
    ),
    action(
        "find_case",
        "Find case…",
        "Find a case by letters of its id, set or text",
        "ctrl+g",
        refusal=_no_cases,
        footer="find",
    ),
)
