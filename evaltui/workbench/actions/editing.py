"""Editing a case field by field; accepting and relaxing its differences."""

from __future__ import annotations

from functools import partial

from evaltui.workbench.actions.action import Action, Scope, action
from evaltui.workbench.result.acceptable import refuses_in_list, refuses_in_result
from evaltui.workbench.workbench import Workbench


def _refuses(workbench: Workbench) -> str | None:
    if workbench.navigation.selection.case is None:
        return "No case selected"
    return workbench.editing.refuses_to_edit(workbench.navigation.file)


def _refuses_json(workbench: Workbench) -> str | None:
    if workbench.navigation.selection.case is None:
        return workbench.editing.refuses_whole(workbench.navigation.file)
    return _refuses(workbench)


_here = partial(action, where=(Scope.CASE,), refusal=_refuses, acts=True)
_in_line = partial(action, where=(Scope.FIELD,))
_in_text = partial(action, where=(Scope.TEXT,))
_in_field = partial(action, where=(Scope.FIELD, Scope.TEXT))
_FIELDS = (Scope.FIELD, Scope.TEXT, Scope.FORM, Scope.ACCEPT)


CASE = (
    _here("edit_field", "Edit value", "Edit the value on this row", "enter", "e", rank=1, footer="edit"),
    _here(
        "add_below",
        "Add below",
        "Add a turn, a call, an argument or another item of this kind",
        "o",
        rank=2,
        footer="add",
    ),
    _here(
        "add_other",
        "Add other…",
        "Choose what to add: call, response, rubric or file",
        "A",
        rank=3,
        footer="add…",
    ),
    _here("insert_before", "Insert before", "Insert a turn or a call above this one", "O", footer="insert"),
    _here("duplicate_field", "Duplicate", "Duplicate this turn or call", "d"),
    _here("delete_field", "Delete", "Delete this row", "delete", "D", rank=5),
    _here("move_field_up", "Move up", "Move this turn or call up", "K", "shift+up"),
    _here("move_field_down", "Move down", "Move this turn or call down", "J", "shift+down"),
    _here("rename_field", "Rename", "Rename the key, the argument or the rubric on this row", "f2"),
    _here(
        "next_kind",
        "Change call expectation",
        "Change the call expectation of the turn: exactly these, none, unspecified, not checked",
        "space",
        rank=4,
        footer="expects",
    ),
    _here(
        "context_turn",
        "Toggle context turn",
        "Run this turn without scoring it, or score it again",
        "b",
        footer="context",
    ),
    _here(
        "raw_case",
        "Edit JSON",
        "Edit the JSON text of the case, or of a file without readable cases",
        "f4",
        where=(Scope.CASES, Scope.CASE, Scope.RESULT),
        refusal=_refuses_json,
        footer="JSON",
    ),
    _here(
        "external_editor",
        "Edit in $EDITOR",
        "Edit this text, or the whole case, in $VISUAL or $EDITOR",
        "ctrl+e",
        footer="$EDITOR",
    ),
    _in_line("end_field", "Apply", "Apply the value and close the field", "enter", rank=0),
    _in_text(
        "end_text", "Apply text", "Apply the text and close the field", "ctrl+j", rank=0, footer="apply"
    ),
    _in_field(
        "leave_field",
        "Cancel edit",
        "Close the field; the old value is back",
        "escape",
        rank=1,
        footer="cancel",
    ),
    action(
        "next_field",
        "Next field",
        "Take the completion, else apply the value and edit the next field",
        "tab",
        where=_FIELDS,
        rank=2,
        footer="next field",
    ),
    action(
        "previous_field",
        "Previous field",
        "Apply the value and edit the previous field",
        "shift+tab",
        where=_FIELDS,
        footer="previous",
    ),
    _in_field(
        "save_field",
        "Apply and save",
        "Apply the value and save every file",
        "ctrl+s",
        rank=3,
        footer="save",
        acts=True,
    ),
    _in_field(
        "field_in_editor",
        "Edit in $EDITOR",
        "Edit this text in $VISUAL or $EDITOR",
        "ctrl+e",
        rank=4,
        footer="$EDITOR",
        acts=True,
    ),
)


def _refuses_to_relax(workbench: Workbench) -> str | None:
    at = workbench.navigation.difference
    if at is None:
        return "No difference selected"
    if at.kind == "state":
        return "The final state has no threshold: accept or edit it"
    return workbench.editing.refuses_to_edit(workbench.navigation.file)


ACCEPTING: tuple[Action, ...] = (
    action(
        "accept",
        "Accept…",
        "Take the actual argument, call, response, turn or case as expected; previews the change",
        "a",
        where=(Scope.RESULT,),
        refusal=lambda workbench: refuses_in_result(workbench.editing),
        rank=0,
        acts=True,
    ),
    action(
        "accept_cases",
        "Accept…",
        "Take the actual side of this case, or of all marked or failing cases, as expected; shows it first",
        "a",
        where=(Scope.CASES,),
        refusal=lambda workbench: refuses_in_list(workbench.editing),
        rank=4,
        acts=True,
    ),
    action(
        "accept_in_case",
        "Accept…",
        "Take what the agent did in this turn or case as expected; previews the change",
        "a",
        where=(Scope.CASE,),
        refusal=lambda workbench: refuses_in_result(workbench.editing),
        footer="accept",
        acts=True,
    ),
    action(
        "relax",
        "Relax…",
        "Add a rule that lets this argument differ; of a call or response, go to the metric that failed",
        "x",
        where=(Scope.RESULT,),
        refusal=_refuses_to_relax,
        rank=0,
        acts=True,
    ),
)
