"""What keys do in one place only: lists, and what lies over the screen."""

from __future__ import annotations

from evaltui.workbench.actions.action import LISTS, Action, Scope

PLACES = (
    Action("open", "open", "Show the result of a case; fold or unfold a set", ("enter",), (Scope.CASES,)),
    Action(
        "toggle_fold", "fold", "Fold or unfold: a set its cases, a case its turns", ("space",), (Scope.CASES,)
    ),
    Action("unfold", "unfold", "Unfold, then go to the first line below", ("right", "l"), (Scope.CASES,)),
    Action("fold", "fold", "Fold, then go to the line above it", ("left", "h"), (Scope.CASES,)),
    Action(
        "open_details",
        "details",
        "Show it in full: a difference, an event, a printed line",
        ("enter",),
        (Scope.RESULT, Scope.TRACE, Scope.CONSOLE),
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
