"""Saving, undo, criteria, and the versions of a file that was changed twice."""

from __future__ import annotations

from evaltui.text.figures import show_number
from evaltui.workbench.actions.action import Action, refuse_until_read
from evaltui.workbench.workbench import Workbench


def _save_word(workbench: Workbench) -> str:
    unsaved = workbench.editing.unsaved()
    return f"save ●{show_number(len(unsaved))}" if unsaved else "save"


# fmt: off
FILES: tuple[Action, ...] = (
    Action("save", "Save all", "ctrl+s", "main criteria criteria_effect gaps",
        "Save every file with unsaved changes",
        lambda bench: None if bench.editing.unsaved() or bench.draft else "No unsaved changes",
        do=lambda bench: bench.editing.save_all(), rank=10, footer=_save_word, acts=True),
    Action("undo", "Undo", "u ctrl+z", "main criteria criteria_effect gaps",
        "Undo the last change in any file",
        lambda bench: None if bench.editing.undo_label else "Nothing to undo",
        do=lambda bench: bench.editing.undo(),
        rank=20, ranks={"case": 4}, acts=True),
    Action("redo", "Redo", "U ctrl+y", "main criteria criteria_effect gaps",
        "Redo the last undone change", lambda bench: None if bench.editing.redo_label else "Nothing to redo",
        do=lambda bench: bench.editing.redo(), rank=20,
        acts=True),
    Action("import_traces", "Import traces…", "I", "cases start",
        "Add a conversation of recorded traces as a case: type, paste or drag the path of the file",
        refuse_until_read, acts=True),
    Action("criteria", "Edit criteria", "m", "main",
        "Choose metrics, thresholds and options for this set",
        lambda bench: "No set selected" if bench.navigation.selection.path is None else None, rank=60,
        footer="criteria"),
    Action("add_criterion", "Add metric", "space o", "criteria",
        "Add the metric, or a rubric", rank=20, footer="add", acts=True),
    Action("lower", "Lower value", "left h", "criteria",
        "Lower the threshold, or choose the previous value", rank=0, footer="lower", acts=True,
        call="move_value(-1)"),
    Action("higher", "Raise value", "right l", "criteria",
        "Raise the threshold, or choose the next value", rank=0, footer="raise", acts=True,
        call="move_value(1)"),
    Action("much_lower", "Lower by more", "shift+left H", "criteria",
        "Lower the threshold by a larger step", acts=True, call="move_value(-1, True)"),
    Action("much_higher", "Raise by more", "shift+right L", "criteria",
        "Raise the threshold by a larger step", acts=True, call="move_value(1, True)"),
    Action("keep_mine", "Keep mine", "left h", "versions", "Keep my version of this case"),
    Action("take_theirs", "Take theirs", "right l", "versions", "Take the version on disk of this case"),
    Action("keep_all_mine", "Keep all mine", "H shift+left", "versions", "Keep my version of every conflict"),
    Action("take_all_theirs", "Take all theirs", "L shift+right", "versions",
        "Take the version on disk of every conflict"),
    Action("save_and_leave", "Save and quit", "s enter ctrl+s", "leaving",
        "Save every file, then quit", acts=True),
    Action("discard_and_leave", "Discard and quit", "d", "leaving", "Discard unsaved changes, then quit"),
)
# fmt: on
