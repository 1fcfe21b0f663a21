"""Going about the screen, and the program as a whole."""

from __future__ import annotations

from evaltui.workbench.actions.action import LISTS, Action, Scope
from evaltui.workbench.workbench import Workbench


def _no_cases(workbench: Workbench) -> str | None:
    return None if any(one.cases for one in workbench.sets.listed) else "there is no case to look for"


def _no_result(workbench: Workbench) -> str | None:
    case = workbench.navigation.selection.case
    if case is None:
        return "select a case: sets have no differences of their own"
    return (
        None
        if workbench.outcomes.get(workbench.navigation.selection.case)
        else "nothing run yet: r runs the case"
    )


SCREEN = (
    Action(
        "filter",
        "filter",
        "Show only some cases: words of their id and first text, or pass, fail, error, flaky",
        ("slash",),
        refusal=_no_cases,
        rank=5,
    ),
    Action("next_pane", "next pane", "Go to the next pane", ("tab",), rank=6),
    Action("previous_pane", "previous pane", "Go to the pane before", ("shift+tab",)),
    Action("show_cases", "cases", "Go to the list of cases", ("1",)),
    Action("show_case", "case", "Go to the case", ("2",)),
    Action("show_result", "result", "Go to the result", ("3",)),
    Action("show_chat", "chat", "Go to the conversation with the agent", ("4",)),
    Action("show_trace", "trace", "Go to the trace: everything that happened in the case", ("5",)),
    Action(
        "go_to_trace",
        "trace",
        "Go to the trace",
        ("t",),
        (Scope.CASES, Scope.CASE, Scope.CONSOLE, Scope.CHAT),
    ),
    Action("show_console", "console", "Go to the console: what the agent printed", ("6",)),
    Action(
        "next_difference",
        "next difference",
        "Go to the next difference between expected and actual",
        ("n",),
        refusal=_no_result,
    ),
    Action(
        "previous_difference",
        "previous difference",
        "Go to the difference before",
        ("N",),
        refusal=_no_result,
    ),
    Action("jump", "jump", "Show the key of every pane, and go where one is pressed", ("ctrl+o",)),
    Action("zoom", "maximise", "Give the whole screen to this pane, and back", ("z",)),
    Action("toggle_cases", "hide cases", "Hide the list of cases, and show it again", ("ctrl+b",)),
    Action(
        "show_event",
        "event",
        "Go to what happened at this difference, in the trace",
        ("t",),
        (Scope.RESULT,),
        refusal=_no_result,
    ),
    Action(
        "show_expected",
        "edit",
        "Go to what is expected at this difference, to edit it",
        ("e",),
        (Scope.RESULT,),
        refusal=_no_result,
        rank=1,
    ),
    Action("back", "back", "Back to where you came from", ("backspace",)),
    Action("copy_json", "copy JSON", "Copy the result of the case as JSON", ("Y",), refusal=_no_result),
    Action("copy", "copy", "Copy what is seen here: the id of the case, or the page as text", ("y",)),
    Action(
        "help",
        "keys",
        "Show every key and what it does; choose one to do it",
        ("question_mark", "f1"),
        rank=7,
    ),
    Action("palette", "commands", "Find an action, a case, a set or a theme by its name", ("ctrl+p",)),
    Action("quit", "quit", "Leave; a run is cancelled first", ("q", "ctrl+q"), rank=8),
)


def _in_form(id: str, title: str, help: str, *keys: str) -> Action:
    return Action(id, title, help, keys, (Scope.FORM,))


_FORM = (
    _in_form("form_down", "down", "One line down", "down", "j"),
    _in_form("form_up", "up", "One line up", "up", "k"),
    _in_form("form_left", "left", "To the left; where there is a choice, the one before", "left", "h"),
    _in_form("form_right", "right", "To the right; where there is a choice, the next one", "right", "l"),
    _in_form("form_next", "next", "Go on with the next field", "tab"),
    _in_form("form_previous", "previous", "Go back to the field before", "shift+tab"),
    _in_form("form_toggle", "change", "Switch it on or off, or choose the next one", "space"),
    _in_form("form_edit", "edit", "Type what is on this line", "e", "f2"),
    _in_form("form_take", "do it", "Do what is chosen", "enter"),
    _in_form("form_leave", "leave", "Leave everything as it was", "escape", "q"),
)

PLACES = (
    *_FORM,
    Action("open", "open", "Show the result of a case; fold or unfold a set", ("enter",), (Scope.CASES,)),
    Action(
        "toggle_fold",
        "fold",
        "Fold or unfold: a set its cases, a case its turns, what ran in a call, calls as expected",
        ("space",),
        (Scope.CASES, Scope.TRACE, Scope.RESULT),
    ),
    Action(
        "unfold",
        "unfold",
        "Unfold, then go to the first line below",
        ("right", "l"),
        (Scope.CASES, Scope.TRACE),
    ),
    Action("fold", "fold", "Fold, then go to the line above it", ("left", "h"), (Scope.CASES, Scope.TRACE)),
    Action("next_page", "next", "The next way to look at it", ("tab", "right", "l"), (Scope.DETAILS,)),
    Action(
        "previous_page",
        "previous",
        "The way to look at it before",
        ("shift+tab", "left", "h"),
        (Scope.DETAILS,),
    ),
    Action(
        "open_details",
        "details",
        "Show it in full: a difference, an event, a printed line",
        ("enter",),
        (Scope.RESULT, Scope.TRACE, Scope.CONSOLE, Scope.CHAT),
        rank=3,
    ),
    Action("line_down", "down", "One line down", ("down", "j"), LISTS),
    Action("line_up", "up", "One line up", ("up", "k"), LISTS),
    Action("page_down", "page down", "One page down", ("pagedown", "ctrl+d"), LISTS),
    Action("page_up", "page up", "One page up", ("pageup", "ctrl+u"), LISTS),
    Action("top", "top", "To the first line", ("home", "g"), LISTS),
    Action("bottom", "bottom", "To the last line", ("end", "G"), LISTS),
    Action(
        "keep_filter",
        "to the cases",
        "Go to the cases that the filter keeps",
        ("enter", "down"),
        (Scope.FILTER,),
        rank=0,
    ),
    Action("clear_filter", "show all", "Show every case again", ("escape",), (Scope.FILTER,), rank=1),
    Action("close_details", "close", "Close the details", ("escape", "q", "enter"), (Scope.DETAILS,)),
    Action("choose", "do it", "Do what is chosen", ("enter",), (Scope.HELP,)),
    Action("open_agent", "open", "Open the agent that is chosen", ("enter",), (Scope.CHOOSER,), rank=0),
    Action("leave", "quit", "Leave without opening one", ("q", "escape", "ctrl+q"), (Scope.CHOOSER,), rank=1),
    Action("close_jump", "close", "Stay where you are", ("escape", "ctrl+o"), (Scope.JUMP,)),
    Action("close_help", "close", "Close this help", ("escape", "q", "question_mark", "f1"), (Scope.HELP,)),
)
