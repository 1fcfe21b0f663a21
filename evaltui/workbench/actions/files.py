"""Undo, saving, and the files themselves."""

from __future__ import annotations

from evaltui.text.values import cut
from evaltui.workbench.actions.action import Action, Scope
from evaltui.workbench.workbench import Workbench

# Longer labels leave no room for other keys in the footer.
_LONGEST_LABEL = 26


def _nothing_to_undo(workbench: Workbench) -> str | None:
    return None if workbench.editing.undo_label else "nothing to undo"


def _nothing_to_redo(workbench: Workbench) -> str | None:
    return None if workbench.editing.redo_label else "nothing to redo"


def _nothing_unsaved(workbench: Workbench) -> str | None:
    editing = workbench.editing
    return None if editing.unsaved() or editing.unapplied.now() else "nothing is unsaved"


def _no_set(workbench: Workbench) -> str | None:
    if workbench.navigation.selection.path is None:
        return "nothing is selected: the criteria are those of a set"
    return None


def _save(workbench: Workbench) -> None:
    workbench.editing.save_all()


def _undo_word(workbench: Workbench) -> str:
    return _with_label("undo", workbench.editing.undo_label)


def _redo_word(workbench: Workbench) -> str:
    return _with_label("redo", workbench.editing.redo_label)


def _with_label(word: str, label: str | None) -> str:
    return f"{word}: {cut(label, _LONGEST_LABEL)}" if label else word


def _save_word(workbench: Workbench) -> str:
    return f"save ●{len(workbench.editing.unsaved())}"


_EDITS = (Scope.MAIN, Scope.CRITERIA)

_EVERYWHERE = (
    Action(
        "save",
        "save",
        "Save every file with unsaved changes",
        ("ctrl+s",),
        (*_EDITS, Scope.VERSIONS),
        do=_save,
        refusal=_nothing_unsaved,
        rank=1,
        word=_save_word,
    ),
    Action(
        "undo",
        "undo",
        "Take the last change back, whatever file it was in",
        ("u", "ctrl+z"),
        _EDITS,
        do=lambda workbench: workbench.editing.undo(),
        refusal=_nothing_to_undo,
        rank=2,
        word=_undo_word,
    ),
    Action(
        "redo",
        "redo",
        "Do again what was undone",
        ("U", "ctrl+y"),
        _EDITS,
        do=lambda workbench: workbench.editing.redo(),
        refusal=_nothing_to_redo,
        rank=2,
        word=_redo_word,
    ),
    Action(
        "criteria",
        "criteria",
        "Choose the metrics, thresholds and options that score the set",
        ("m",),
        refusal=_no_set,
        rank=6,
    ),
)


_CRITERIA = (
    Action(
        "add_criterion", "add", "Ask for the metric; add a rubric", ("space", "o"), (Scope.CRITERIA,), rank=0
    ),
    Action(
        "lower", "lower", "Lower the threshold, or the value before", ("left", "h"), (Scope.CRITERIA,), rank=0
    ),
    Action(
        "higher",
        "higher",
        "Raise the threshold, or the next value",
        ("right", "l"),
        (Scope.CRITERIA,),
        rank=0,
    ),
    Action("much_lower", "much lower", "Lower the threshold by more", ("shift+left", "H"), (Scope.CRITERIA,)),
    Action(
        "much_higher", "much higher", "Raise the threshold by more", ("shift+right", "L"), (Scope.CRITERIA,)
    ),
    Action("edit_criterion", "edit", "Type the value", ("enter", "e"), (Scope.CRITERIA,), rank=0),
    Action(
        "remove_criterion",
        "remove",
        "Take the metric, the option, the mark or the rule out",
        ("delete", "D"),
        (Scope.CRITERIA,),
        rank=2,
    ),
    Action("close_criteria", "close", "Back to the cases", ("escape", "q", "m"), (Scope.CRITERIA,), rank=1),
)

_VERSIONS = (
    Action("keep_mine", "keep mine", "Keep what you have of this case", ("left", "h"), (Scope.VERSIONS,)),
    Action(
        "take_theirs", "take theirs", "Take what is on disk of this case", ("right", "l"), (Scope.VERSIONS,)
    ),
    Action("keep_all_mine", "all mine", "Keep yours of all", ("H", "shift+left"), (Scope.VERSIONS,)),
    Action("take_all_theirs", "all theirs", "Take theirs of all", ("L", "shift+right"), (Scope.VERSIONS,)),
    Action("next_clash", "next", "To the next case that was changed twice", ("n",), (Scope.VERSIONS,)),
    Action("previous_clash", "previous", "To the case before", ("N",), (Scope.VERSIONS,)),
    Action("decide", "do it", "Do what was chosen: save, restore, leave", ("enter",), (Scope.VERSIONS,)),
    Action("throw_away", "discard", "Throw unsaved changes away", ("delete", "D"), (Scope.VERSIONS,)),
    Action("leave_open", "leave it", "Decide later: nothing is lost", ("escape", "q"), (Scope.VERSIONS,)),
)

FILES: tuple[Action, ...] = (*_EVERYWHERE, *_CRITERIA, *_VERSIONS)
