"""Editing the case that is shown, and what is done about a difference: accepting it, or letting it differ."""

from __future__ import annotations

from evaltui.workbench.acceptable import refuses_in_list, refuses_in_result
from evaltui.workbench.actions.action import Action, Refusal, Scope
from evaltui.workbench.workbench import Workbench


def _refuses(workbench: Workbench) -> str | None:
    if workbench.navigation.selection.case is None:
        return "select a case: it is edited here"
    return workbench.editing.refuses_to_edit(workbench.navigation.file)


def _here(
    id: str,
    title: str,
    help: str,
    *keys: str,
    rank: int | None = None,
    refusal: Refusal = _refuses,
) -> Action:
    return Action(id, title, help, keys, (Scope.CASE,), refusal=refusal, rank=rank)


def _in_field(id: str, title: str, help: str, *keys: str, rank: int | None = None) -> Action:
    return Action(id, title, help, keys, (Scope.FIELD,), rank=rank)


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
    Action(
        "accept",
        "accept",
        "Accept what was done as expected: an argument, a call, an answer, a turn, the case; shown first",
        ("a",),
        (Scope.RESULT,),
        refusal=lambda workbench: refuses_in_result(workbench.editing),
        rank=0,
    ),
    Action(
        "accept_cases",
        "accept",
        "Accept what was done in the case as expected, or in all that are marked or failing; shown first",
        ("a",),
        (Scope.CASES,),
        refusal=lambda workbench: refuses_in_list(workbench.editing),
        rank=4,
    ),
    Action(
        "relax",
        "relax",
        "Let this argument differ: ignore it, or say how far; shows first what that changes",
        ("x",),
        (Scope.RESULT,),
        refusal=_refuses_to_relax,
        rank=0,
    ),
    Action(
        "accept_more", "more", "Choose the next, which accepts more", ("right", "l", "tab"), (Scope.ACCEPT,)
    ),
    Action(
        "accept_less",
        "less",
        "Choose the one before, which accepts less",
        ("left", "h", "shift+tab"),
        (Scope.ACCEPT,),
    ),
    Action("accept_it", "accept", "Accept what is shown; undo takes it back", ("enter",), (Scope.ACCEPT,)),
    Action("leave_it", "leave it", "Leave everything as it is", ("escape", "q"), (Scope.ACCEPT,)),
)
