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
    RESULT = "in the result"
    HELP = "in this help"


Refusal = Callable[[Workbench], str | None]


def _never(_: Workbench) -> str | None:
    return None


@dataclass(frozen=True)
class Action:
    """`do` works on the workbench; without it the screen does the action, as its own `action_<id>`.

    `refusal` says why the action cannot be done now, as a sentence, or None where it can. Actions with a
    `rank` are shown in the footer, the smallest first, as long as there is room and nothing refuses them.
    """

    id: str
    title: str
    help: str
    keys: tuple[str, ...]
    where: tuple[Scope, ...] = (Scope.MAIN,)
    do: Callable[[Workbench], None] | None = None
    refusal: Refusal = _never
    rank: int | None = None


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


def _nothing_runs(workbench: Workbench) -> str | None:
    return None if workbench.busy else "nothing is running"


def _nothing_fails(workbench: Workbench) -> str | None:
    if workbench.results.attention:
        return None
    return "no case failed" if workbench.results.counts() else "no case has been run yet"


def _still_running(workbench: Workbench) -> str | None:
    return "wait for the run to end: esc cancels it" if workbench.busy else None


_LISTS = (Scope.CASES, Scope.RESULT, Scope.HELP)

ACTIONS: tuple[Action, ...] = (
    Action(
        "cancel",
        "cancel",
        "Cancel the run; what is finished stays",
        ("escape",),
        do=Workbench.cancel,
        refusal=_nothing_runs,
        rank=0,
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
    Action("next_pane", "next pane", "Go to the other pane", ("tab", "shift+tab"), rank=5),
    Action("show_cases", "cases", "Go to the list of cases", ("1",)),
    Action("show_result", "result", "Go to the result", ("2",)),
    Action(
        "reload",
        "reload",
        "Read the eval sets from disk again",
        ("f5",),
        refusal=_still_running,
    ),
    Action("help", "keys", "Show every key", ("question_mark", "f1"), rank=6),
    Action("palette", "commands", "Find an action by its name", ("ctrl+p",)),
    Action("quit", "quit", "Leave; a run is cancelled first", ("q", "ctrl+q"), rank=7),
    Action("open", "open", "Show the result of a case; fold or unfold a set", ("enter",), (Scope.CASES,)),
    Action(
        "toggle_fold", "fold", "Fold or unfold: a set its cases, a case its turns", ("space",), (Scope.CASES,)
    ),
    Action("unfold", "unfold", "Unfold, then go to the first line below", ("right", "l"), (Scope.CASES,)),
    Action("fold", "fold", "Fold, then go to the line above it", ("left", "h"), (Scope.CASES,)),
    Action("line_down", "down", "One line down", ("down", "j"), _LISTS),
    Action("line_up", "up", "One line up", ("up", "k"), _LISTS),
    Action("page_down", "page down", "One page down", ("pagedown", "ctrl+d"), _LISTS),
    Action("page_up", "page up", "One page up", ("pageup", "ctrl+u"), _LISTS),
    Action("top", "top", "To the first line", ("home", "g"), _LISTS),
    Action("bottom", "bottom", "To the last line", ("end", "G"), _LISTS),
    Action("close_help", "close", "Close this help", ("escape", "q", "question_mark", "f1"), (Scope.HELP,)),
)

BY_ID = {action.id: action for action in ACTIONS}


def actions_in(scope: Scope) -> Iterator[Action]:
    return (action for action in ACTIONS if scope in action.where)


def hints(workbench: Workbench) -> list[Action]:
    """What the footer shows now, the most useful first; at most eight."""
    ranked = sorted((action for action in ACTIONS if action.rank is not None), key=lambda one: one.rank or 0)
    return [action for action in ranked if action.refusal(workbench) is None][:8]
