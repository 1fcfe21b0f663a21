"""Working on sets and cases as a whole, in their list, and the questions that are asked on the way."""

from __future__ import annotations

from collections.abc import Callable

from evaltui.workbench import set_editing
from evaltui.workbench.actions.action import Action, Refusal, Scope, not_read
from evaltui.workbench.converting import refuses_to_convert
from evaltui.workbench.set_editing import refuses_cases, refuses_paste, refuses_set
from evaltui.workbench.workbench import Workbench


def _no_place(workbench: Workbench) -> str | None:
    """Why there cannot be a new case; where there is no set at all, one is made first."""
    if reason := not_read(workbench):
        return reason
    return refuses_set(workbench.editing) if workbench.sets.listed else None


def _refuses_cases(workbench: Workbench) -> str | None:
    return refuses_cases(workbench.editing)


def _no_case(workbench: Workbench) -> str | None:
    return "select a case first" if workbench.navigation.selection.case is None else None


def _no_cases(workbench: Workbench) -> str | None:
    return None if any(eval_set.cases for eval_set in workbench.sets.listed) else "there is no case yet"


def _in_list(
    id: str,
    title: str,
    help: str,
    *keys: str,
    do: Callable[[Workbench], None] | None = None,
    refusal: Refusal = _refuses_cases,
    rank: int | None = None,
) -> Action:
    return Action(id, title, help, keys, (Scope.CASES,), do=do, refusal=refusal, rank=rank)


def _in_question(id: str, title: str, help: str, key: str) -> Action:
    return Action(id, title, help, (key,), (Scope.PROMPT,))


TREE: tuple[Action, ...] = (
    _in_list("edit_case", "edit", "Go to the case and edit it", "e", refusal=_no_case),
    _in_list("new_case", "new case", "Write a new case after this one", "o", refusal=_no_place, rank=3),
    _in_list("new_set", "new set", "Make a new eval set, in a file of its own", "O", refusal=not_read),
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
        refusal=lambda workbench: refuses_set(workbench.editing),
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
        "ctrl+c",
        do=lambda workbench: set_editing.copy(workbench.editing),
    ),
    _in_list(
        "cut_case",
        "cut",
        "Take the case along, to move it where it is pasted",
        "ctrl+x",
        do=lambda workbench: set_editing.copy(workbench.editing, cut=True),
    ),
    _in_list(
        "paste_case",
        "paste",
        "Paste what was copied or cut after this case, on a set at its end",
        "ctrl+v",
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
    Action(
        "find_case",
        "find",
        "Go to any case, by a few letters of its id, set or text",
        ("ctrl+g",),
        refusal=_no_cases,
    ),
    _in_question("take", "take it", "Take what is typed or chosen", "enter"),
    _in_question("leave_question", "leave", "Leave everything as it was", "escape"),
    _in_question("next_answer", "down", "One line down in what is shown", "down"),
    _in_question("previous_answer", "up", "One line up in what is shown", "up"),
    _in_question("answers_down", "scroll", "One page down", "pagedown"),
    _in_question("answers_up", "page up", "One page up", "pageup"),
)
