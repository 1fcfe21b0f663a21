"""Editing sets, cases and criteria: in their lists and field by field; accepting, undo and saving."""

from __future__ import annotations

from functools import partial

from evaltui.text.values import cut
from evaltui.workbench import set_editing
from evaltui.workbench.acceptable import refuses_in_list, refuses_in_result
from evaltui.workbench.actions.action import Action, Scope, action, not_read
from evaltui.workbench.set_editing import refuses_cases, refuses_paste, refuses_to_convert
from evaltui.workbench.workbench import Workbench


def _refuses(workbench: Workbench) -> str | None:
    if workbench.navigation.selection.case is None:
        return "select a case: it is edited here"
    return workbench.editing.refuses_to_edit(workbench.navigation.file)


_here = partial(action, where=(Scope.CASE,), refusal=_refuses)
_in_field = partial(action, where=(Scope.FIELD,))
_in_accept = partial(action, where=(Scope.ACCEPT,))
_in_criteria = partial(action, where=(Scope.CRITERIA,))
_in_versions = partial(action, where=(Scope.VERSIONS,))
_in_list = partial(action, where=(Scope.CASES,), refusal=lambda workbench: refuses_cases(workbench.editing))
_in_question = partial(action, where=(Scope.PROMPT,))


CASE = (
    _here("edit_field", "edit", "Edit what is on this line", "enter", "e", rank=1),
    _here("add_below", "add", "Add one more of what is here: a turn, a call, an argument", "o", rank=2),
    _here("add_other", "add …", "Choose what to add: an answer, a response, a rubric, a file", "A", rank=3),
    _here("insert_before", "insert", "Insert one before this: a turn, a call", "O"),
    _here("duplicate_field", "duplicate", "Duplicate this turn or this call", "d"),
    _here("delete_field", "delete", "Delete what is on this line", "delete", "D", rank=5),
    _here("move_field_up", "move up", "Move this turn or call up", "K", "shift+up"),
    _here("move_field_down", "move down", "Move this turn or call down", "J", "shift+down"),
    _here("rename_field", "rename", "Change the name on this line: of a key, an argument, a rubric", "f2"),
    _here(
        "next_kind",
        "expects",
        "Change what the turn says of calls: these, none, nothing, not checked",
        "space",
        rank=4,
    ),
    _here("context_turn", "context", "Make the turn one that is run and not scored, and back", "b"),
    _here("raw_case", "raw", "Show and edit the JSON text of the case", "f4"),
    _here("external_editor", "$EDITOR", "Edit this text, or the case, in $VISUAL or $EDITOR", "ctrl+e"),
    _in_field("end_field", "done", "Keep what is typed and leave the field", "enter", rank=0),
    _in_field("end_text", "done", "Keep what is typed and leave the text", "ctrl+j", rank=2),
    _in_field(
        "leave_field", "back", "Of a line take back what was typed, a text is kept; leave", "escape", rank=1
    ),
    _in_field("next_field", "next", "Go on with the next field", "tab", rank=3),
    _in_field("previous_field", "previous", "Go back to the field before", "shift+tab"),
    _in_field("save_field", "save", "Keep what is typed, and save every file", "ctrl+s", rank=4),
    _in_field("next_choice", "next choice", "Choose the next of what the text may become", "down"),
    _in_field("previous_choice", "previous choice", "Choose the one before", "up"),
    _in_field("field_in_editor", "$EDITOR", "Go on in $VISUAL or $EDITOR", "ctrl+e", rank=5),
)


def _refuses_to_relax(workbench: Workbench) -> str | None:
    at = workbench.navigation.difference
    if at is None:
        return "n goes to a difference: what is relaxed is an argument of a call"
    if at.kind != "argument":
        return "only an argument of a call can be relaxed: n goes on to the next difference"
    return workbench.editing.refuses_to_edit(workbench.navigation.file)


ACCEPTING: tuple[Action, ...] = (
    action(
        "accept",
        "accept",
        "Accept what was done as expected: an argument, a call, an answer, a turn, the case; shown first",
        "a",
        where=(Scope.RESULT,),
        refusal=lambda workbench: refuses_in_result(workbench.editing),
        rank=0,
    ),
    action(
        "accept_cases",
        "accept",
        "Accept what was done in the case as expected, or in all that are marked or failing; shown first",
        "a",
        where=(Scope.CASES,),
        refusal=lambda workbench: refuses_in_list(workbench.editing),
        rank=4,
    ),
    action(
        "relax",
        "relax",
        "Let this argument differ: ignore it, or say how far; shows first what that changes",
        "x",
        where=(Scope.RESULT,),
        refusal=_refuses_to_relax,
        rank=0,
    ),
    _in_accept("accept_more", "more", "Choose the next, which accepts more", "right", "l", "tab"),
    _in_accept("accept_less", "less", "Choose the one before, which accepts less", "left", "h", "shift+tab"),
    _in_accept("accept_it", "accept", "Accept what is shown; undo takes it back", "enter"),
    _in_accept("leave_it", "leave it", "Leave everything as it is", "escape", "q"),
)


# Longer labels leave no room for other keys in the footer.
_LONGEST_LABEL = 26


def _nothing_unsaved(workbench: Workbench) -> str | None:
    editing = workbench.editing
    return None if editing.unsaved() or editing.unapplied.now() else "nothing is unsaved"


def _no_set(workbench: Workbench) -> str | None:
    if workbench.navigation.selection.path is None:
        return "nothing is selected: the criteria are those of a set"
    return None


def _save(workbench: Workbench) -> None:
    workbench.editing.save_all()


def _with_label(word: str, label: str | None) -> str:
    return f"{word}: {cut(label, _LONGEST_LABEL)}" if label else word


_EDITS = (Scope.MAIN, Scope.CRITERIA)

FILES: tuple[Action, ...] = (
    action(
        "save",
        "save",
        "Save every file with unsaved changes",
        "ctrl+s",
        where=(*_EDITS, Scope.VERSIONS),
        do=_save,
        refusal=_nothing_unsaved,
        rank=1,
        word=lambda workbench: f"save ●{len(workbench.editing.unsaved())}",
    ),
    action(
        "undo",
        "undo",
        "Take the last change back, whatever file it was in",
        "u",
        "ctrl+z",
        where=_EDITS,
        do=lambda workbench: workbench.editing.undo(),
        refusal=lambda workbench: None if workbench.editing.undo_label else "nothing to undo",
        rank=2,
        word=lambda workbench: _with_label("undo", workbench.editing.undo_label),
    ),
    action(
        "redo",
        "redo",
        "Do again what was undone",
        "U",
        "ctrl+y",
        where=_EDITS,
        do=lambda workbench: workbench.editing.redo(),
        refusal=lambda workbench: None if workbench.editing.redo_label else "nothing to redo",
        rank=2,
        word=lambda workbench: _with_label("redo", workbench.editing.redo_label),
    ),
    action(
        "criteria",
        "criteria",
        "Choose the metrics, thresholds and options that score the set",
        "m",
        refusal=_no_set,
        rank=6,
    ),
    _in_criteria("add_criterion", "add", "Ask for the metric; add a rubric", "space", "o", rank=0),
    _in_criteria("lower", "lower", "Lower the threshold, or the value before", "left", "h", rank=0),
    _in_criteria("higher", "higher", "Raise the threshold, or the next value", "right", "l", rank=0),
    _in_criteria("much_lower", "much lower", "Lower the threshold by more", "shift+left", "H"),
    _in_criteria("much_higher", "much higher", "Raise the threshold by more", "shift+right", "L"),
    _in_criteria("edit_criterion", "edit", "Type the value", "enter", "e", rank=0),
    _in_criteria(
        "remove_criterion",
        "remove",
        "Take the metric, the option, the mark or the rule out",
        "delete",
        "D",
        rank=2,
    ),
    _in_criteria("close_criteria", "close", "Back to the cases", "escape", "q", "m", rank=1),
    _in_versions("keep_mine", "keep mine", "Keep what you have of this case", "left", "h"),
    _in_versions("take_theirs", "take theirs", "Take what is on disk of this case", "right", "l"),
    _in_versions("keep_all_mine", "all mine", "Keep yours of all", "H", "shift+left"),
    _in_versions("take_all_theirs", "all theirs", "Take theirs of all", "L", "shift+right"),
    _in_versions("next_clash", "next", "To the next case that was changed twice", "n"),
    _in_versions("previous_clash", "previous", "To the case before", "N"),
    _in_versions("decide", "do it", "Do what was chosen: save, restore, leave", "enter"),
    _in_versions("throw_away", "discard", "Throw unsaved changes away", "delete", "D"),
    _in_versions("leave_open", "leave it", "Decide later: nothing is lost", "escape", "q"),
)


def _no_place(workbench: Workbench) -> str | None:
    """Why there cannot be a new case; where there is no set at all, one is made first."""
    if reason := not_read(workbench):
        return reason
    return workbench.editing.refuses_to_edit(workbench.navigation.file) if workbench.sets.listed else None


def _no_case(workbench: Workbench) -> str | None:
    return "select a case first" if workbench.navigation.selection.case is None else None


def _no_cases(workbench: Workbench) -> str | None:
    return None if any(eval_set.cases for eval_set in workbench.sets.listed) else "there is no case yet"


TREE: tuple[Action, ...] = (
    _in_list("edit_case", "edit", "Go to the case and edit it", "e", refusal=_no_case),
    _in_list(
        "new_case",
        "new case",
        "Write a new case after this one",
        "o",
        where=(Scope.CASES, Scope.START),
        refusal=_no_place,
        rank=3,
    ),
    _in_list(
        "new_set",
        "new set",
        "Make a new eval set, in a file of its own",
        "O",
        where=(Scope.CASES, Scope.START),
        refusal=not_read,
    ),
    _in_list(
        "duplicate_case",
        "duplicate",
        "Duplicate the case",
        "d",
        do=lambda workbench: set_editing.duplicate(workbench.editing),
    ),
    _in_list(
        "rename",
        "rename",
        "Rename the case, or the set",
        "f2",
        refusal=lambda workbench: workbench.editing.refuses_to_edit(workbench.navigation.file),
    ),
    _in_list(
        "delete_case",
        "delete",
        "Delete the case, with what the config says of it; undo brings it back",
        "delete",
        "D",
        do=lambda workbench: set_editing.delete(workbench.editing),
    ),
    _in_list(
        "move_case_up",
        "move up",
        "Move the case up in its set",
        "K",
        "shift+up",
        do=lambda workbench: set_editing.move(workbench.editing, step=-1),
    ),
    _in_list(
        "move_case_down",
        "move down",
        "Move the case down in its set",
        "J",
        "shift+down",
        do=lambda workbench: set_editing.move(workbench.editing, step=1),
    ),
    _in_list(
        "mark_case",
        "mark",
        "Mark the case, on a set all of its cases: what is done then is done to all that are marked",
        "v",
        refusal=_no_cases,
    ),
    _in_list(
        "copy_case",
        "copy case",
        "Copy the case, to paste it in any set",
        "C",
        do=lambda workbench: set_editing.copy(workbench.editing),
    ),
    _in_list(
        "cut_case",
        "cut case",
        "Cut the case; pasting moves it",
        "X",
        do=lambda workbench: set_editing.copy(workbench.editing, cut=True),
    ),
    _in_list(
        "paste_case",
        "paste",
        "Paste the copied or cut cases after this one, on a set at its end",
        "P",
        do=lambda workbench: set_editing.paste(workbench.editing),
        refusal=lambda workbench: refuses_paste(workbench.editing),
        rank=4,
    ),
    _in_list(
        "convert",
        "convert",
        "Show what a file of an old format becomes, and write that to a new file",
        "M",
        refusal=lambda workbench: refuses_to_convert(workbench.sets, workbench.navigation.selection),
        rank=2,
    ),
    action(
        "find_case",
        "find",
        "Go to any case, by a few letters of its id, set or text",
        "ctrl+g",
        refusal=_no_cases,
    ),
    _in_question("take", "take it", "Take what is typed or chosen", "enter"),
    _in_question("leave_question", "leave", "Leave everything as it was", "escape"),
    _in_question("next_answer", "down", "One line down in what is shown", "down"),
    _in_question("previous_answer", "up", "One line up in what is shown", "up"),
    _in_question("answers_down", "scroll", "One page down", "pagedown"),
    _in_question("answers_up", "page up", "One page up", "pageup"),
)
