"""Going about the screen, and the program as a whole."""

from __future__ import annotations

from evaltui.workbench.actions.action import Action, Scope
from evaltui.workbench.workbench import Workbench


def _no_cases(workbench: Workbench) -> str | None:
    return None if any(entry.cases for entry in workbench.sets.entries) else "there is no case to look for"


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
