"""Editing sets, cases and fields; accepting and relaxing differences."""

from __future__ import annotations

from types import ModuleType

from evaltui.workbench.actions.action import Action, no_cases, refuse_until_read
from evaltui.workbench.result.acceptable import refuses_in_list, refuses_in_result
from evaltui.workbench.workbench import Workbench


def _set_editing() -> ModuleType:
    """The module for set editing, imported when it is first needed: the first frame edits nothing."""
    from evaltui.workbench.cases import set_editing

    return set_editing


def _no_editable_case(workbench: Workbench) -> str | None:
    navigation, sets = workbench.navigation, workbench.sets
    if not navigation.chosen:
        return "No case selected" if sets.listed else "No eval sets yet"
    if navigation.selection.turn is not None and not navigation.marking:
        return "Turns are edited in the case pane"
    paths = {sets.file_of(case.path) for case in navigation.chosen}
    return next(filter(None, map(workbench.editing.refuses_to_edit, paths)), None)


def _cannot_paste(workbench: Workbench) -> str | None:
    return (
        "No case copied or cut"
        if workbench.navigation.marking.clipboard is None
        else _file_read_only(workbench)
    )


def _cannot_convert(workbench: Workbench) -> str | None:
    eval_set = workbench.sets.by_case_path(workbench.navigation.selection.path)
    if eval_set is None:
        return "Nothing selected"
    if eval_set.format is None:
        return f"{eval_set.path.name} is unreadable: {eval_set.problems[0]}"
    if eval_set.format == "eval set":
        return f"{eval_set.path.name} has the current format; nothing to convert"
    return None


def _file_read_only(workbench: Workbench) -> str | None:
    return workbench.editing.refuses_to_edit(workbench.navigation.file)


def _no_case(workbench: Workbench) -> str | None:
    return "No case selected" if workbench.navigation.selection.case is None else None


def _case_read_only(workbench: Workbench) -> str | None:
    return _no_case(workbench) or _file_read_only(workbench)


def _json_read_only(workbench: Workbench) -> str | None:
    if _no_case(workbench):
        return workbench.editing.refuses_whole(workbench.navigation.file)
    return _file_read_only(workbench)


def _no_place(workbench: Workbench) -> str | None:
    """Why a new case cannot be added. Without any set, a set is created first."""
    if reason := refuse_until_read(workbench):
        return reason
    return _file_read_only(workbench) if workbench.sets.listed else None


def _cannot_relax(workbench: Workbench) -> str | None:
    at = workbench.navigation.difference
    if at is None:
        return "No difference selected"
    if at.kind == "state":
        return "The final state has no threshold: accept or edit it"
    return _file_read_only(workbench)


# fmt: off
EDIT: tuple[Action, ...] = (
    Action("accept", "Accept…", "a", "cases case result",
        "Take the actual argument, call, response, turn or cases as expected; previews the change",
        lambda bench: refuses_in_result(bench.editing), rank=1, ranks={"cases": 40, "case": None},
        refusals={"cases": lambda bench: refuses_in_list(bench.editing)},
        acts=True),
    Action("relax", "Relax…", "x", "result",
        "Add a rule that lets this argument differ, or a check of this response; of a call, go to its metric",
        _cannot_relax, rank=2, acts=True),
    Action("edit_case", "Edit case", "e", "cases", "Go to the case and edit it", _no_case, acts=True),
    Action("new_case", "New case", "o", "cases start",
        "Add a case below this one", _no_place, rank=30, acts=True),
    Action("new_set", "New set…", "O", "cases start",
        "Create an eval set in a file of its own", refuse_until_read, acts=True),
    Action("duplicate", "Duplicate", "d", "cases case",
        "Duplicate the case, the turn or the call below itself", _no_editable_case,
        do=lambda bench: _set_editing().duplicate(bench.editing), refusals={"case": _case_read_only},
        acts=True),
    Action("rename", "Rename…", "f2", "cases case runs",
        "Rename the case, set, key, argument or rubric; name the run for `evaltui compare` and `--baseline`",
        _file_read_only, ranks={"runs": 30}, refusals={"case": _case_read_only, "runs": None}, acts=True),
    Action("rename_everywhere", "Rename everywhere…", "f3", "case",
        "Rename the tool, argument or agent in all eval sets, configs and recordings; previews the change",
        _case_read_only, acts=True),
    Action("delete", "Delete", "delete D", "cases case criteria",
        "Delete the case with its rules, the turn or call, the metric, option or rule; undo restores it",
        _no_editable_case, do=lambda bench: _set_editing().delete(bench.editing), rank=25,
        ranks={"cases": None, "case": 50}, refusals={"case": _case_read_only, "criteria": None},
        footer="remove", acts=True),
    Action("move_up", "Move up", "K shift+up", "cases case",
        "Move the case up in its set, or the turn or call in its case", _no_editable_case,
        refusals={"case": _case_read_only}, acts=True, call="move(-1)"),
    Action("move_down", "Move down", "J shift+down", "cases case",
        "Move the case down in its set, or the turn or call in its case", _no_editable_case,
        refusals={"case": _case_read_only}, acts=True, call="move(1)"),
    Action("mark_case", "Mark case", "v", "cases",
        "Mark the case, or all cases of a set; actions then apply to all marked cases", no_cases),
    Action("mark_failing", "Mark failing cases", "Z", "cases",
        "Mark the cases that did not pass; in any variant if the newest run is a matrix", no_cases),
    Action("tag_case", "Tag case…", "number_sign", "cases case result",
        "Change the tags of the case, or of all marked cases", _no_editable_case, acts=True),
    Action("copy_case", "Copy case", "C", "cases",
        "Copy the case, to paste it in any set", _no_editable_case,
        do=lambda bench: _set_editing().copy(bench.editing), acts=True),
    Action("cut_case", "Cut case", "X", "cases",
        "Cut the case, to paste it in any set", _no_editable_case,
        do=lambda bench: _set_editing().copy(bench.editing, cut=True), acts=True),
    Action("paste_case", "Paste case", "P", "cases",
        "Paste below this case, or at the end of a set", _cannot_paste,
        do=lambda bench: _set_editing().paste(bench.editing), rank=40, footer="paste", acts=True),
    Action("convert", "Convert format…", "i", "cases",
        "Preview a dataset or a file of an old format as an eval set, and write it to a new file",
        _cannot_convert, rank=20, footer="convert",
        acts=True),
    Action("find_case", "Find case…", "ctrl+g", "main",
        "Find a case by letters of its id, set or text", no_cases),
    Action("edit_value", "Edit value", "enter e", "case criteria",
        "Edit the value on this row", _case_read_only, rank=1, ranks={"criteria": 5},
        refusals={"criteria": None}, footer="edit", acts=True),
    Action("add_below", "Add below", "o", "case",
        "Add a turn, a call, an argument or another item of this kind", _case_read_only, rank=2,
        footer="add", acts=True),
    Action("add_other", "Add other…", "A", "case",
        "Choose what to add: call, response, rubric or file", _case_read_only, rank=30, footer="add…",
        acts=True),
    Action("insert_before", "Insert before", "O", "case",
        "Insert a turn or a call above this one", _case_read_only, acts=True),
    Action("next_kind", "Change call expectation", "space", "case",
        "Change the call expectation of the turn: exactly these, none, unspecified, not checked",
        _case_read_only, rank=40, footer="expects", acts=True),
    Action("context_turn", "Toggle context turn", "b", "case",
        "Run this turn without scoring it, or score it again", _case_read_only, acts=True),
    Action("edit_json", "Edit JSON", "f4", "cases case result criteria",
        "Edit the JSON of the case, of the config, or of a file without readable cases", _json_read_only,
        refusals={"criteria": None}, acts=True),
    Action("in_editor", "Edit in $EDITOR", "ctrl+e", "case field text message",
        "Edit this text, or the whole case, in $VISUAL or $EDITOR", _case_read_only,
        ranks={"field": 40, "text": 40}, refusals={"field": None, "text": None, "message": None},
        footer="$EDITOR", acts=True),
    Action("end_field", "Apply", "enter", "field", "Apply the value and close the field", rank=0),
    Action("end_text", "Apply text", "ctrl+j", "text",
        "Apply the text and close the field", rank=0, footer="apply"),
    Action("leave_field", "Cancel edit", "escape", "field text",
        "Close the field; the old value is back", rank=10, footer="cancel"),
    Action("next_field", "Next field", "tab", "field text form",
        "Take the completion, else apply the value and edit the next field", rank=20, call="step_field(1)"),
    Action("previous_field", "Previous field", "shift+tab", "field text form",
        "Apply the value and edit the previous field", call="step_field(-1)"),
    Action("save_field", "Apply and save", "ctrl+s", "field text",
        "Apply the value and save every file", rank=30, footer="save", acts=True),
)
# fmt: on
