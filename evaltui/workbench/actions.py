"""The registry of everything that can be done: it feeds the key bindings, the footer, `?` and the palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from evaltui.workbench.workbench import Workbench


class Scope(StrEnum):
    """Where an action's keys work. What is focused comes first, `MAIN` after it; `HELP` stands alone."""

    MAIN = "everywhere"
    CASES = "in the list of cases"
    CASE = "in the case"
    RESULT = "in the result"
    TRACE = "in the trace"
    CONSOLE = "in the console"
    FILTER = "in the filter"
    HELP = "in this help"
    DETAILS = "in the details"
    JUMP = "while a pane is chosen"
    CHOOSER = "in the list of agents"


# A text field takes every letter, and what lies over the screen takes every key.
_ALONE = frozenset({Scope.FILTER, Scope.HELP, Scope.DETAILS, Scope.JUMP, Scope.CHOOSER})


def chain_of(scope: Scope) -> tuple[Scope, ...]:
    """Where keys are looked for while the focus is in `scope`, from the inside out."""
    return (scope,) if scope in _ALONE else (scope, Scope.MAIN)


FOCUS_CHAINS = tuple(chain_of(scope) for scope in Scope if scope is not Scope.MAIN)


_MOST_HINTS = 8

Refusal = Callable[[Workbench], str | None]


def _never(_: Workbench) -> str | None:
    return None


@dataclass(frozen=True)
class Action:
    """`do` works on the workbench; without it the screen does the action, as its own `action_<id>`.

    `refusal` says why the action cannot be done now, as a sentence, or None where it can. Actions with a
    `rank` are shown in the footer, the smallest first, as long as there is room and nothing refuses them;
    `word` is what the footer says of those that do one thing or the other.
    """

    id: str
    title: str
    help: str
    keys: tuple[str, ...]
    where: tuple[Scope, ...] = (Scope.MAIN,)
    do: Callable[[Workbench], None] | None = None
    refusal: Refusal = _never
    rank: int | None = None
    word: Callable[[Workbench], str] | None = None

    def footer_word(self, workbench: Workbench) -> str:
        return self.word(workbench) if self.word else self.title


def _no_case_selected(workbench: Workbench) -> str | None:
    if reason := workbench.refuses_to_run():
        return reason
    if workbench.selection.path is None:
        return "nothing is selected"
    entry = workbench.entry(workbench.selection.path)
    if entry is not None and (errors := workbench.errors(entry)):
        return f"{entry.path.name} cannot be run: {errors[0]}"
    if entry is not None and not entry.cases:
        return f"{entry.path.name} has no case that could be run"
    return None


def _nothing_to_leave(workbench: Workbench) -> str | None:
    if workbench.busy or workbench.filtered.filter:
        return None
    return "nothing is running, and no filter is set"


def _never_ran(workbench: Workbench) -> str | None:
    if workbench.has_run:
        return workbench.refuses_to_run()
    return "nothing has been run yet: r runs the selected case"


def _none_to_repeat(workbench: Workbench) -> str | None:
    return workbench.refuses_to_run() or _nothing_fails(workbench)


def _nothing_fails(workbench: Workbench) -> str | None:
    if workbench.results.attention:
        return None
    return "no case failed" if workbench.results.counts() else "no case has been run yet"


def _no_cases(workbench: Workbench) -> str | None:
    return None if any(entry.cases for entry in workbench.sets) else "there is no case to look for"


def _still_running(workbench: Workbench) -> str | None:
    return "wait for the run to end: esc cancels it" if workbench.busy else None


def _no_result(workbench: Workbench) -> str | None:
    if workbench.selection.case is None:
        return "select a case: sets have no differences of their own"
    return None if workbench.results.get(workbench.selection.case) else "nothing run yet: r runs the case"


_LISTS = (
    Scope.CASES,
    Scope.CASE,
    Scope.RESULT,
    Scope.TRACE,
    Scope.CONSOLE,
    Scope.HELP,
    Scope.DETAILS,
    Scope.CHOOSER,
)

ACTIONS: tuple[Action, ...] = (
    Action(
        "cancel",
        "back",
        "Cancel the run, what is finished stays; without a run, clear the filter",
        ("escape",),
        do=Workbench.step_back,
        refusal=_nothing_to_leave,
        rank=0,
        word=lambda workbench: "cancel" if workbench.busy else "show all",
    ),
    Action(
        "run",
        "run",
        "Run the selected case; on a set, all of it",
        ("r",),
        do=Workbench.run_case,
        refusal=_no_case_selected,
        rank=1,
    ),
    Action(
        "run_set",
        "set",
        "Run the set of the selected case",
        ("s",),
        do=Workbench.run_set,
        refusal=_no_case_selected,
        rank=2,
    ),
    Action(
        "run_all",
        "all",
        "Run every set",
        ("R",),
        do=Workbench.run_all,
        refusal=Workbench.refuses_to_run,
        rank=3,
    ),
    Action(
        "run_failed",
        "failed again",
        "Run every case that did not pass",
        ("ctrl+f",),
        do=Workbench.run_failed,
        refusal=_none_to_repeat,
    ),
    Action(
        "run_again",
        "again",
        "Run again what was run last",
        ("ctrl+r",),
        do=Workbench.run_again,
        refusal=_never_ran,
    ),
    Action(
        "next_failing",
        "next failing",
        "Go to the next case that did not pass",
        ("f",),
        do=lambda workbench: workbench.select_failing(1),
        refusal=_nothing_fails,
        rank=4,
    ),
    Action(
        "previous_failing",
        "previous failing",
        "Go to the previous case that did not pass",
        ("F",),
        do=lambda workbench: workbench.select_failing(-1),
        refusal=_nothing_fails,
    ),
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
    Action("show_trace", "trace", "Go to the trace: everything that happened in the case", ("4", "t")),
    Action("show_console", "console", "Go to the console: what the agent printed", ("5",)),
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
        "reload",
        "reload",
        "Read the eval sets from disk again",
        ("f5",),
        refusal=_still_running,
    ),
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
    Action("line_down", "down", "One line down", ("down", "j"), _LISTS),
    Action("line_up", "up", "One line up", ("up", "k"), _LISTS),
    Action("page_down", "page down", "One page down", ("pagedown", "ctrl+d"), _LISTS),
    Action("page_up", "page up", "One page up", ("pageup", "ctrl+u"), _LISTS),
    Action("top", "top", "To the first line", ("home", "g"), _LISTS),
    Action("bottom", "bottom", "To the last line", ("end", "G"), _LISTS),
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

BY_ID = {action.id: action for action in ACTIONS}


def actions_in(scope: Scope) -> Iterator[Action]:
    return (action for action in ACTIONS if scope in action.where)


def place_of(action: Action) -> str:
    """Where its keys work, as a title."""
    if Scope.CASES in action.where and len(action.where) > 1:
        return "in every list"
    return ", ".join(action.where)


def keys_of(action: Action, workbench: Workbench) -> tuple[str, ...]:
    """The keys of an action: those that the user has chosen, else its own."""
    return workbench.keys.get(action.id, action.keys)


def hints(workbench: Workbench, scope: Scope) -> list[Action]:
    """What the footer shows now, the most useful first; at most eight, the help among them."""
    wheres = set(chain_of(scope))
    here = [action for action in ACTIONS if action.rank is not None and wheres & set(action.where)]
    ranked = sorted(here, key=lambda action: action.rank or 0)
    usable = [action for action in ranked if action.refusal(workbench) is None]
    left_out = [action for action in usable[_MOST_HINTS:] if action.id == "help"]
    return [*usable[: _MOST_HINTS - len(left_out)], *left_out]
