"""Going about the screen and in lists, and the program as a whole."""

from __future__ import annotations

from evaltui.views.cause import differences_of
from evaltui.workbench.actions.action import Action, no_cases, no_messages
from evaltui.workbench.case.editors import refuses_editor
from evaltui.workbench.workbench import Workbench


def _no_result(workbench: Workbench) -> str | None:
    case = workbench.navigation.selection.case
    if case is None:
        return "No case selected"
    return None if workbench.outcomes.get(case) else "Case not run"


def _no_difference(workbench: Workbench) -> str | None:
    if reason := _no_result(workbench):
        return reason
    scored = workbench.outcomes.get(workbench.navigation.selection.case)
    differs = scored is not None and next(differences_of(scored.shown), None) is not None
    return None if differs else "No difference in calls, response or state"


# fmt: off
GO: tuple[Action, ...] = (
    Action("filter", "Filter cases", "slash", "main",
        "Show only matching cases: words of id and first text, or pass, fail, error, flaky", no_cases,
        rank=50, footer="filter"),
    Action("next_pane", "Next pane", "tab", "main criteria criteria_effect comparison gaps",
        "Go to the next pane", rank=60, call="step_pane(1)"),
    Action("previous_pane", "Previous pane", "shift+tab", "main criteria criteria_effect comparison gaps",
        "Go to the previous pane", call="step_pane(-1)"),
    Action("show_cases", "Go to Cases", "1", "main", "Go to the cases"),
    Action("show_case", "Go to Case", "2", "main", "Go to the case"),
    Action("show_result", "Go to Result", "3", "main", "Go to the result"),
    Action("show_chat", "Go to Chat", "4", "main", "Go to the chat"),
    Action("show_trace", "Go to Trace", "5", "main", "Go to the trace of the case, or of the chat"),
    Action("show_in_trace", "Show in trace", "t", "cases case result console chat",
        "Go to the trace of the case, at this difference, or of the chat, at this row", ranks={"chat": 0},
        refusals={"result": _no_result, "chat": no_messages}, footer="trace"),
    Action("show_console", "Go to Console", "6", "main", "Go to the output of the agent"),
    Action("next_difference", "Next difference", "n", "main versions form",
        "Go to the next difference between expected and actual, or conflict", _no_difference, rank=40,
        ranks={"result": 3, "trace": 3}, call="step_difference(1)"),
    Action("previous_difference", "Previous difference", "N", "main versions",
        "Go to the previous difference, or conflict", _no_difference, call="step_difference(-1)"),
    Action("jump", "Jump to pane", "ctrl+o", "main",
        "Show a key on every pane and section and go to the pressed one"),
    Action("back_to_result", "Show in result", "t", "trace inspector",
        "Return to the result of the case; from the trace of the chat to the row of this event", rank=20,
        ranks={"trace": 2}, footer=lambda bench: "chat" if bench.navigation.trace_of_chat else "result"),
    Action("show_expected", "Edit expected", "e", "result",
        "Go to the expected value of this difference and edit it", _no_result, rank=6, acts=True),
    Action("back", "Go back", "backspace", "main", "Return to the previous location"),
)
# fmt: on

# fmt: off
LOOK: tuple[Action, ...] = (
    Action("zoom", "Zoom pane", "z", "main", "Show only this pane, or all panes again"),
    Action("toggle_cases", "Toggle cases", "ctrl+b", "main", "Hide or show the list of cases"),
    Action("narrow_cases", "Narrow cases", "less_than_sign", "main",
        "Make the list of cases narrower", call="widen_cases(-2)"),
    Action("widen_cases", "Widen cases", "greater_than_sign", "main",
        "Make the list of cases wider", call="widen_cases(2)"),
    Action("copy_json", "Copy result as JSON", "Y", "main",
        "Copy the result of the case as JSON", _no_result),
    Action("plot_runs", "Switch plot", "p", "runs", "Plot the pass rate, the cost, or the time of a case"),
    Action("copy", "Copy", "y", "main comparison", "Copy the id of the case, or the page as text"),
    Action("help", "Show keys", "question_mark",
        "main criteria criteria_effect comparison runs sessions matrix gaps",
        "Show the keys of this pane; type to search, enter runs an action", footer="help"),
    Action("guide", "Open guide…", "f1", "main",
        "Open the page of the guide about this pane; f1 there lists all pages, with search", footer="guide"),
    Action("palette", "Open palette", "ctrl+p", "main",
        "Find an action, a case, a set, an agent, a run or a theme by name", footer="palette"),
    Action("quit", "Quit", "q ctrl+q", "main", "Quit; a run is cancelled first", rank=80),
    Action("take_step", "Run step", "enter", "start",
        "Do the selected step", rank=0, footer="do it", acts=True),
    Action("open_source", "Open source", "E", "start case result trace inspector console chat details",
        "Open the source of a call, a tool, an instruction or a traceback in $EDITOR",
        lambda _: refuses_editor(),
        acts=True),
)
# fmt: on

# fmt: off
LIST_ACTIONS: tuple[Action, ...] = (
    Action("form_toggle", "Toggle", "space", "form", "Switch on or off, or choose the next value"),
    Action("form_edit", "Edit value", "e f2", "form", "Type the value on this row"),
    Action("open", "Open", "enter",
        "cases runs recent_runs comparison matrix gaps sessions criteria_effect chooser",
        "Open the result, run, session, gap or agent, or fold the set", rank=0, ranks={"cases": None}),
    Action("confirm", "Confirm", "enter ctrl+s", "prompt form versions", "Apply the text or the choices"),
    Action("close", "Close", "escape q",
        "runs comparison matrix gaps sessions criteria criteria_effect versions leaving form prompt",
        "Close without a change, or return to the cases", rank=10),
    Action("toggle_fold", "Fold or unfold", "space", "cases trace result chat comparison",
        "Fold or unfold a set, a case, a call, a tool response, equal calls or a group",
        ranks={"comparison": 5}, footer="fold"),
    Action("unfold", "Unfold", "right l", "cases case gaps", "Unfold the row, or go to the first row in it"),
    Action("fold", "Fold", "left h", "cases case gaps", "Fold the row, or go to the row above it"),
    Action("next_item", "Next", "right l", "result trace inspector matrix form",
        "Go to the next metric, case, tab, variant, column or value", ranks={"trace": 10, "inspector": 10},
        footer="next tab", call="step_item(1)"),
    Action("previous_item", "Previous", "left h", "result trace inspector matrix form",
        "Go to the previous metric, case, tab, variant, column or value", call="step_item(-1)"),
    Action("open_details", "Open details", "enter", "result trace console chat",
        "Show the difference, the event, the message or the line in full", rank=30, ranks={"trace": 1},
        footer="details"),
    Action("line_down", "Down", "down j", "lists form prompt field", "Go one row down", call="step_line(1)"),
    Action("line_up", "Up", "up k", "lists form prompt field", "Go one row up", call="step_line(-1)"),
    Action("page_down", "Page down", "pagedown ctrl+d", "lists prompt message",
        "Go one page down", call="step_page(1)"),
    Action("page_up", "Page up", "pageup ctrl+u", "lists prompt message",
        "Go one page up", call="step_page(-1)"),
    Action("top", "First row", "home g", "lists", "Go to the first row"),
    Action("bottom", "Last row", "end G", "lists", "Go to the last row"),
    Action("keep_filter", "Keep filter", "enter down", "filter",
        "Go to the matching cases", rank=0, footer="to cases"),
    Action("clear_filter", "Clear filter", "escape", "filter", "Show all cases", rank=10, footer="clear"),
    Action("close_details", "Close details", "escape q enter", "details", "Close the details"),
    Action("create_starter", "Create a starter agent", "s", "chooser",
        "Create a small agent that runs offline, with three cases", footer="starter", acts=True),
    Action("open_demo", "Open the demo", "d", "chooser",
        "Open a sample agent with a tour", footer="demo", acts=True),
    Action("open_folder", "Open another folder…", "o", "chooser",
        "Open another folder", footer="other folder"),
    Action("leave", "Quit", "q escape ctrl+q", "chooser", "Quit"),
)
# fmt: on
