"""What keys do in one place only: lists, and what lies over the screen."""

from __future__ import annotations

from evaltui.workbench.actions.action import LISTS, Action, Scope


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
