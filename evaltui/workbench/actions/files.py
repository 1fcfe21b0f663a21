"""Saving, undo, criteria, and the versions of a file that was changed twice."""

from __future__ import annotations

from functools import partial

from evaltui.text.figures import show_number
from evaltui.workbench.actions.action import Action, Scope, action, not_read
from evaltui.workbench.workbench import Workbench

_in_criteria = partial(action, where=(Scope.CRITERIA,))
_in_versions = partial(action, where=(Scope.VERSIONS,))
_in_leaving = partial(action, where=(Scope.LEAVING,))


def _nothing_unsaved(workbench: Workbench) -> str | None:
    return None if workbench.editing.unsaved() or workbench.draft else "No unsaved changes"


def _no_set(workbench: Workbench) -> str | None:
    if workbench.navigation.selection.path is None:
        return "No set selected"
    return None


def _save(workbench: Workbench) -> None:
    workbench.editing.save_all()


_EDITS = (Scope.MAIN, Scope.CRITERIA, Scope.CRITERIA_EFFECT)

FILES: tuple[Action, ...] = (
    action(
        "save",
        "Save all",
        "Save every file with unsaved changes",
        "ctrl+s",
        where=_EDITS,
        do=_save,
        refusal=_nothing_unsaved,
        rank=1,
        word=lambda workbench: (
            f"save ●{show_number(len(unsaved))}" if (unsaved := workbench.editing.unsaved()) else "save"
        ),
        footer="save",
        acts=True,
    ),
    action(
        "undo",
        "Undo",
        "Undo the last change in any file",
        "u",
        "ctrl+z",
        where=_EDITS,
        do=lambda workbench: workbench.editing.undo(),
        refusal=lambda workbench: None if workbench.editing.undo_label else "Nothing to undo",
        rank=2,
        acts=True,
    ),
    action(
        "redo",
        "Redo",
        "Redo the last undone change",
        "U",
        "ctrl+y",
        where=_EDITS,
        do=lambda workbench: workbench.editing.redo(),
        refusal=lambda workbench: None if workbench.editing.redo_label else "Nothing to redo",
        rank=2,
        acts=True,
    ),
    action(
        "import_traces",
        "Import traces…",
        "Add a conversation of recorded traces as a case: type, paste or drag the path of the file",
        "I",
        where=(Scope.CASES, Scope.START),
        refusal=not_read,
        footer="import",
        acts=True,
    ),
    action(
        "criteria",
        "Edit criteria",
        "Choose metrics, thresholds and options for this set",
        "m",
        refusal=_no_set,
        rank=6,
        footer="criteria",
    ),
    _in_criteria(
        "add_criterion",
        "Add metric",
        "Add the metric, or a rubric",
        "space",
        "o",
        rank=2,
        footer="add",
        acts=True,
    ),
    _in_criteria(
        "lower",
        "Lower value",
        "Lower the threshold, or choose the previous value",
        "left",
        "h",
        rank=0,
        footer="lower",
        acts=True,
    ),
    _in_criteria(
        "higher",
        "Raise value",
        "Raise the threshold, or choose the next value",
        "right",
        "l",
        rank=0,
        footer="raise",
        acts=True,
    ),
    _in_criteria(
        "much_lower",
        "Lower by more",
        "Lower the threshold by a larger step",
        "shift+left",
        "H",
        footer="lower more",
        acts=True,
    ),
    _in_criteria(
        "much_higher",
        "Raise by more",
        "Raise the threshold by a larger step",
        "shift+right",
        "L",
        footer="raise more",
        acts=True,
    ),
    _in_criteria(
        "edit_criterion", "Edit value", "Type the value", "enter", "e", rank=0, footer="edit", acts=True
    ),
    _in_criteria(
        "remove_criterion",
        "Remove",
        "Remove the metric, option, context mark or rule",
        "delete",
        "D",
        rank=2,
        acts=True,
    ),
    _in_criteria("raw_config", "Edit JSON", "Edit the JSON of the config", "f4", footer="JSON", acts=True),
    _in_versions("keep_mine", "Keep mine", "Keep my version of this case", "left", "h"),
    _in_versions("take_theirs", "Take theirs", "Take the version on disk of this case", "right", "l"),
    _in_versions(
        "keep_all_mine",
        "Keep all mine",
        "Keep my version of every conflict",
        "H",
        "shift+left",
        footer="all mine",
    ),
    _in_versions(
        "take_all_theirs",
        "Take all theirs",
        "Take the version on disk of every conflict",
        "L",
        "shift+right",
        footer="all theirs",
    ),
    _in_leaving(
        "save_and_leave", "Save and quit", "Save every file, then quit", "s", "enter", "ctrl+s", acts=True
    ),
    _in_leaving("discard_and_leave", "Discard and quit", "Discard unsaved changes, then quit", "d"),
)
