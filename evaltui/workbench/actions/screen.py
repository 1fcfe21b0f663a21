"""Going about the screen, and the program as a whole."""

from __future__ import annotations

from functools import partial

from evaltui.workbench.actions.action import LISTS, Action, Scope, action
from evaltui.workbench.workbench import Workbench


def _no_cases(workbench: Workbench) -> str | None:
    return None if any(one.cases for one in workbench.sets.listed) else "No cases yet"


def _no_result(workbench: Workbench) -> str | None:
    case = workbench.navigation.selection.case
    if case is None:
        return "No case selected"
    return None if workbench.outcomes.get(case) else "Case not run"


_WITH_PANES = (Scope.MAIN, Scope.CRITERIA, Scope.CRITERIA_EFFECT, Scope.COMPARISON)

_DIFFERENCES = (Scope.MAIN, Scope.VERSIONS)

GO: tuple[Action, ...] = (
    action(
        "filter",
        "Filter cases",
        "Show only matching cases: words of id and first text, or pass, fail, error, flaky",
        "slash",
        refusal=_no_cases,
        rank=5,
        footer="filter",
    ),
    action("next_pane", "Next pane", "Go to the next pane", "tab", where=_WITH_PANES, rank=6),
    action("previous_pane", "Previous pane", "Go to the previous pane", "shift+tab", where=_WITH_PANES),
    action("show_cases", "Go to Cases", "Go to the cases", "1", footer="cases"),
    action("show_case", "Go to Case", "Go to the case", "2", footer="case"),
    action("show_result", "Go to Result", "Go to the result", "3", footer="result"),
    action("show_chat", "Go to Chat", "Go to the chat", "4", footer="chat"),
    action("show_trace", "Go to Trace", "Go to the trace of the case, or of the chat", "5", footer="trace"),
    action(
        "go_to_trace",
        "Show in trace",
        "Go to the trace of the case",
        "t",
        where=(Scope.CASES, Scope.CASE, Scope.CONSOLE),
        footer="trace",
    ),
    action("show_console", "Go to Console", "Go to the output of the agent", "6", footer="console"),
    action(
        "next_difference",
        "Next difference",
        "Go to the next difference between expected and actual, or conflict",
        "n",
        where=_DIFFERENCES,
        refusal=_no_result,
        rank=4,
    ),
    action(
        "previous_difference",
        "Previous difference",
        "Go to the previous difference, or conflict",
        "N",
        where=_DIFFERENCES,
        refusal=_no_result,
    ),
    action(
        "jump",
        "Jump to pane",
        "Show a key on every pane and section and go to the pressed one",
        "ctrl+o",
        footer="jump",
    ),
    action(
        "show_event",
        "Show in trace",
        "Go to the event of this difference in the trace",
        "t",
        where=(Scope.RESULT,),
        refusal=_no_result,
        footer="trace",
    ),
    action(
        "back_to_result",
        "Show in result",
        "Return to the result of the case; from the trace of the chat to the row of this event",
        "t",
        where=(Scope.TRACE, Scope.INSPECTOR),
        rank=2,
        footer="result",
        word=lambda workbench: "chat" if workbench.navigation.trace_of_chat else "result",
    ),
    action(
        "show_expected",
        "Edit expected",
        "Go to the expected value of this difference and edit it",
        "e",
        where=(Scope.RESULT,),
        refusal=_no_result,
        rank=1,
        acts=True,
    ),
    action("back", "Go back", "Return to the previous location", "backspace", footer="back"),
)


LOOK: tuple[Action, ...] = (
    action("zoom", "Zoom pane", "Show only this pane, or all panes again", "z", footer="zoom"),
    action("toggle_cases", "Toggle cases", "Hide or show the list of cases", "ctrl+b", footer="hide cases"),
    action("narrow_cases", "Narrow cases", "Make the list of cases narrower", "less_than_sign"),
    action("widen_cases", "Widen cases", "Make the list of cases wider", "greater_than_sign"),
    action(
        "copy_json",
        "Copy result as JSON",
        "Copy the result of the case as JSON",
        "Y",
        refusal=_no_result,
        footer="copy JSON",
    ),
    action(
        "plot_runs",
        "Switch plot",
        "Plot the pass rate, the cost, or the time of a case",
        "p",
        where=(Scope.RUNS,),
        footer="plot",
    ),
    action(
        "copy",
        "Copy",
        "Copy the id of the case, or the page as text",
        "y",
        where=(Scope.MAIN, Scope.COMPARISON),
    ),
    action(
        "help",
        "Show keys",
        "Show the keys of this pane; type to search, enter runs an action",
        "question_mark",
        where=(*_WITH_PANES, Scope.RUNS, Scope.SESSIONS, Scope.MATRIX),
        footer="help",
    ),
    action(
        "guide",
        "Open guide…",
        "List keys and pages of the guide, with search",
        "f1",
        where=(Scope.MAIN, Scope.HELP),
        footer="guide",
    ),
    action(
        "palette",
        "Open palette",
        "Find an action, a case, a set, an agent, a run or a theme by name",
        "ctrl+p",
        footer="palette",
    ),
    action("quit", "Quit", "Quit; a run is cancelled first", "q", "ctrl+q", rank=8),
)


_in_form = partial(action, where=(Scope.FORM,))
_in_choices = partial(action, where=(Scope.FORM, Scope.ACCEPT))


_FORM = (
    _in_choices("form_left", "Left", "Go left, or choose the previous value", "left", "h"),
    _in_choices("form_right", "Right", "Go right, or choose the next value", "right", "l"),
    _in_form("form_toggle", "Toggle", "Switch on or off, or choose the next value", "space"),
    _in_form("form_edit", "Edit value", "Type the value on this row", "e", "f2", footer="edit"),
    _in_form("go_to_failing", "Go to failure", "Go to the next difference that still fails", "n"),
)

_CLOSED = (
    Scope.RUNS,
    Scope.COMPARISON,
    Scope.MATRIX,
    Scope.SESSIONS,
    Scope.CRITERIA,
    Scope.CRITERIA_EFFECT,
    Scope.ACCEPT,
    Scope.VERSIONS,
    Scope.LEAVING,
    Scope.FORM,
    Scope.PROMPT,
    Scope.JUMP,
)
_ROWS = (*LISTS, Scope.FORM, Scope.PROMPT, Scope.FIELD)
_PAGES = (*LISTS, Scope.PROMPT, Scope.MESSAGE)
_in_details = partial(action, where=(Scope.DETAILS,))
_in_chooser = partial(action, where=(Scope.CHOOSER,))
LISTED: tuple[Action, ...] = (
    *_FORM,
    action("open", "Open", "Show the result of the case, or fold the set", "enter", where=(Scope.CASES,)),
    action(
        "open_row",
        "Open",
        "Open the selected run, result, session or agent",
        "enter",
        where=(
            Scope.RUNS,
            Scope.RECENT_RUNS,
            Scope.COMPARISON,
            Scope.MATRIX,
            Scope.SESSIONS,
            Scope.CRITERIA_EFFECT,
            Scope.CHOOSER,
        ),
        rank=0,
    ),
    action(
        "confirm",
        "Confirm",
        "Apply the text or the choices",
        "enter",
        "ctrl+s",
        where=(Scope.PROMPT, Scope.FORM, Scope.ACCEPT, Scope.VERSIONS),
    ),
    action(
        "close",
        "Close",
        "Close without a change, or return to the cases",
        "escape",
        "q",
        where=_CLOSED,
        rank=1,
    ),
    action(
        "toggle_fold",
        "Fold or unfold",
        "Fold or unfold a set, a case, a call, a tool response or equal calls",
        "space",
        where=(Scope.CASES, Scope.TRACE, Scope.RESULT, Scope.CHAT),
        footer="fold",
    ),
    action(
        "unfold",
        "Unfold",
        "Unfold the row, or go to the first row in it",
        "right",
        "l",
        where=(Scope.CASES, Scope.CASE),
    ),
    action(
        "fold",
        "Fold",
        "Fold the row, or go to the row above it",
        "left",
        "h",
        where=(Scope.CASES, Scope.CASE),
    ),
    action(
        "next_tab",
        "Next inspector tab",
        "Show the inspector's next tab",
        "right",
        "l",
        where=(Scope.TRACE, Scope.INSPECTOR),
        rank=1,
        footer="next tab",
    ),
    action(
        "previous_tab",
        "Previous inspector tab",
        "Show the inspector's previous tab",
        "left",
        "h",
        where=(Scope.TRACE, Scope.INSPECTOR),
        footer="previous tab",
    ),
    action(
        "open_details",
        "Open details",
        "Show the difference, the event, the message or the line in full",
        "enter",
        where=(Scope.RESULT, Scope.TRACE, Scope.CONSOLE, Scope.CHAT),
        rank=3,
        footer="details",
    ),
    action(
        "next_link",
        "Next metric",
        "Go to the next metric; in the result of a set to the next case",
        "right",
        "l",
        where=(Scope.RESULT,),
        footer="next metric",
    ),
    action(
        "previous_link",
        "Previous metric",
        "Go to the previous metric; in the result of a set to the previous case",
        "left",
        "h",
        where=(Scope.RESULT,),
        footer="previous metric",
    ),
    action("line_down", "Down", "Go one row down", "down", "j", where=_ROWS),
    action("line_up", "Up", "Go one row up", "up", "k", where=_ROWS),
    action("page_down", "Page down", "Go one page down", "pagedown", "ctrl+d", where=_PAGES),
    action("page_up", "Page up", "Go one page up", "pageup", "ctrl+u", where=_PAGES),
    action("top", "First row", "Go to the first row", "home", "g", where=LISTS),
    action("bottom", "Last row", "Go to the last row", "end", "G", where=LISTS),
    action(
        "keep_filter",
        "Keep filter",
        "Go to the matching cases",
        "enter",
        "down",
        where=(Scope.FILTER,),
        rank=0,
        footer="to cases",
    ),
    action(
        "clear_filter",
        "Clear filter",
        "Show all cases",
        "escape",
        where=(Scope.FILTER,),
        rank=1,
        footer="clear",
    ),
    _in_details(
        "close_details", "Close details", "Close the details", "escape", "q", "enter", footer="close"
    ),
    _in_chooser(
        "create_starter",
        "Create a starter agent",
        "Create a small agent that runs offline, with three cases",
        "s",
        footer="starter",
        acts=True,
    ),
    _in_chooser(
        "open_demo", "Open the demo", "Open a sample agent with a tour", "d", footer="demo", acts=True
    ),
    _in_chooser("open_folder", "Open another folder…", "Open another folder", "o", footer="other folder"),
    _in_chooser("leave", "Quit", "Quit", "q", "escape", "ctrl+q"),
)
