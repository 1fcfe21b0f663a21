"""Going about the screen, and the program as a whole."""

from __future__ import annotations

from functools import partial

from evaltui.workbench.actions.action import LISTS, Scope, action
from evaltui.workbench.workbench import Workbench


def _no_cases(workbench: Workbench) -> str | None:
    return None if any(one.cases for one in workbench.sets.listed) else "there is no case to look for"


def _no_result(workbench: Workbench) -> str | None:
    case = workbench.navigation.selection.case
    if case is None:
        return "select a case: sets have no differences of their own"
    return None if workbench.outcomes.get(case) else "nothing run yet: r runs the case"


SCREEN = (
    action(
        "filter",
        "filter",
        "Show only some cases: words of their id and first text, or pass, fail, error, flaky",
        "slash",
        refusal=_no_cases,
        rank=5,
    ),
    action("next_pane", "next pane", "Go to the next pane", "tab", rank=6),
    action("previous_pane", "previous pane", "Go to the pane before", "shift+tab"),
    action("show_cases", "cases", "Go to the list of cases", "1"),
    action("show_case", "case", "Go to the case", "2"),
    action("show_result", "result", "Go to the result", "3"),
    action("show_chat", "chat", "Go to the conversation with the agent", "4"),
    action("show_trace", "trace", "Go to the trace: everything that happened in the case", "5"),
    action(
        "go_to_trace",
        "trace",
        "Go to the trace",
        "t",
        where=(Scope.CASES, Scope.CASE, Scope.CONSOLE, Scope.CHAT),
    ),
    action("show_console", "console", "Go to the console: what the agent printed", "6"),
    action(
        "next_difference",
        "next difference",
        "Go to the next difference between expected and actual",
        "n",
        refusal=_no_result,
    ),
    action(
        "previous_difference", "previous difference", "Go to the difference before", "N", refusal=_no_result
    ),
    action("jump", "jump", "Show the key of every pane, and go where one is pressed", "ctrl+o"),
    action("zoom", "maximise", "Give the whole screen to this pane, and back", "z"),
    action("toggle_cases", "hide cases", "Hide the list of cases, and show it again", "ctrl+b"),
    action(
        "show_event",
        "event",
        "Go to what happened at this difference, in the trace",
        "t",
        where=(Scope.RESULT,),
        refusal=_no_result,
    ),
    action(
        "show_expected",
        "edit",
        "Go to what is expected at this difference, to edit it",
        "e",
        where=(Scope.RESULT,),
        refusal=_no_result,
        rank=1,
    ),
    action("back", "back", "Back to where you came from", "backspace"),
    action("copy_json", "copy JSON", "Copy the result of the case as JSON", "Y", refusal=_no_result),
    action("copy", "copy", "Copy what is seen here: the id of the case, or the page as text", "y"),
    action(
        "help", "keys", "Show every key and what it does; choose one to do it", "question_mark", "f1", rank=7
    ),
    action("palette", "commands", "Find an action, a case, a set or a theme by its name", "ctrl+p"),
    action("quit", "quit", "Leave; a run is cancelled first", "q", "ctrl+q", rank=8),
)


_in_form = partial(action, where=(Scope.FORM,))


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

_in_details = partial(action, where=(Scope.DETAILS,))
_in_chooser = partial(action, where=(Scope.CHOOSER,))
_in_help = partial(action, where=(Scope.HELP,))
PLACES = (
    *_FORM,
    action("open", "open", "Show the result of a case; fold or unfold a set", "enter", where=(Scope.CASES,)),
    action(
        "toggle_fold",
        "fold",
        "Fold or unfold: a set its cases, a case its turns, what ran in a call, calls as expected",
        "space",
        where=(Scope.CASES, Scope.TRACE, Scope.RESULT),
    ),
    action(
        "unfold",
        "unfold",
        "Unfold, then go to the first line below",
        "right",
        "l",
        where=(Scope.CASES, Scope.TRACE),
    ),
    action(
        "fold", "fold", "Fold, then go to the line above it", "left", "h", where=(Scope.CASES, Scope.TRACE)
    ),
    _in_details("next_page", "next", "The next way to look at it", "tab", "right", "l"),
    _in_details("previous_page", "previous", "The way to look at it before", "shift+tab", "left", "h"),
    action(
        "open_details",
        "details",
        "Show it in full: a difference, an event, a printed line",
        "enter",
        where=(Scope.RESULT, Scope.TRACE, Scope.CONSOLE, Scope.CHAT),
        rank=3,
    ),
    action("line_down", "down", "One line down", "down", "j", where=LISTS),
    action("line_up", "up", "One line up", "up", "k", where=LISTS),
    action("page_down", "page down", "One page down", "pagedown", "ctrl+d", where=LISTS),
    action("page_up", "page up", "One page up", "pageup", "ctrl+u", where=LISTS),
    action("top", "top", "To the first line", "home", "g", where=LISTS),
    action("bottom", "bottom", "To the last line", "end", "G", where=LISTS),
    action(
        "keep_filter",
        "to the cases",
        "Go to the cases that the filter keeps",
        "enter",
        "down",
        where=(Scope.FILTER,),
        rank=0,
    ),
    action("clear_filter", "show all", "Show every case again", "escape", where=(Scope.FILTER,), rank=1),
    _in_details("close_details", "close", "Close the details", "escape", "q", "enter"),
    _in_help("choose", "do it", "Do what is chosen", "enter"),
    _in_chooser("open_agent", "open", "Open", "enter"),
    _in_chooser("create_starter", "starter", "Create a starter agent", "s"),
    _in_chooser("open_folder", "other folder", "Open another folder…", "o"),
    _in_chooser("leave", "quit", "Quit", "q", "escape", "ctrl+q"),
    action("close_jump", "close", "Stay where you are", "escape", "ctrl+o", where=(Scope.JUMP,)),
    _in_help("close_help", "close", "Close this help", "escape", "q", "question_mark", "f1"),
)
