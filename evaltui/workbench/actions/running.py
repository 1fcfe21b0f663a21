"""Running cases, watching, and going from one failure to the next."""

from __future__ import annotations

from evaltui.text.keys import key_of
from evaltui.workbench.actions.action import Scope, action, not_read
from evaltui.workbench.state import nothing_to_cancel
from evaltui.workbench.workbench import Workbench


def _nothing_chosen(workbench: Workbench) -> str | None:
    marked = workbench.navigation.marking
    return workbench.runs.refuses_to_run() if marked else _no_case_selected(workbench)


def _no_case_selected(workbench: Workbench) -> str | None:
    if reason := workbench.runs.refuses_to_run():
        return reason
    path = workbench.navigation.selection.path
    eval_set = workbench.sets.by_case_path(path)
    if eval_set is None:
        return "Nothing selected" if path is None else None
    if errors := workbench.sets.errors(eval_set):
        return f"Cannot run {eval_set.path.name}: {errors[0].beside(eval_set.path)}"
    return None if eval_set.cases else f"No cases in {eval_set.path.name}"


# In the chat these keys are for the turn.
_NOT_IN_CHAT = (Scope.CASES, Scope.CASE, Scope.RESULT, Scope.TRACE, Scope.CONSOLE)


def _nothing_to_cancel(workbench: Workbench) -> str | None:
    return None if workbench.is_running else nothing_to_cancel()


def _nothing_to_clear(workbench: Workbench) -> str | None:
    return None if workbench.can_step_back else "Nothing to clear"


def _what_is_cleared(workbench: Workbench) -> str:
    if workbench.navigation.marking:
        return "clear marks"
    if workbench.navigation.is_narrowed:
        return "clear filter"
    return "close run"


def _never_ran(workbench: Workbench) -> str | None:
    return workbench.runs.refuses_to_run() if workbench.runs.has_run else "Nothing run yet"


def _no_repeats(workbench: Workbench) -> str | None:
    scored = workbench.outcomes.get(workbench.navigation.selection.case)
    has_repeats = scored is not None and scored.figures.runs > 1
    return None if has_repeats else "No repeats of this case"


def _which_repeat(workbench: Workbench) -> str:
    scored = workbench.outcomes.get(workbench.navigation.selection.case)
    return f"repeat {scored.repeat + 1}/{scored.figures.runs}" if scored else "next repeat"


def _nothing_fails(workbench: Workbench) -> str | None:
    if workbench.outcomes.results.attention:
        return None
    return "No failing case" if workbench.outcomes.counts_of() else "Nothing run yet"


def _no_checks(workbench: Workbench) -> str | None:
    run = workbench.runs.current
    if workbench.agent.python_check is not None or (run is not None and run.checks):
        return None
    return "Nothing run yet" if run is None else "No metrics in this run"


def _still_running(workbench: Workbench) -> str | None:
    return f"Run in progress ({key_of('cancel_run')} cancels)" if workbench.runs.is_running else None


RUNNING = (
    action(
        "cancel_run",
        "Cancel run",
        "Cancel the run; a second time forces it to end",
        "ctrl+c",
        where=_NOT_IN_CHAT,
        do=lambda workbench: workbench.cancel_run(),
        refusal=_nothing_to_cancel,
        rank=0,
    ),
    action(
        "step_back",
        "Clear or close",
        "Clear the marks, then the filter, then the zoom; then close an earlier run",
        "escape",
        do=Workbench.step_back,
        refusal=_nothing_to_clear,
        rank=0,
        word=_what_is_cleared,
        footer="clear",
    ),
    action(
        "run",
        "Run case",
        "Run the marked cases, else the selected case or the selected set",
        "r",
        do=lambda workbench: workbench.runs.run_chosen(),
        refusal=_nothing_chosen,
        rank=1,
        footer="run",
        word=lambda workbench: "run marked" if workbench.navigation.marking else "run",
        acts=True,
    ),
    action(
        "run_set",
        "Run set",
        "Run the set of the selected case",
        "s",
        do=lambda workbench: workbench.runs.run_set(),
        refusal=_no_case_selected,
        rank=2,
        acts=True,
    ),
    action(
        "run_all",
        "Run all sets",
        "Run every set",
        "R",
        do=lambda workbench: workbench.runs.run_all(),
        refusal=lambda workbench: workbench.runs.refuses_to_run(),
        rank=3,
        footer="run all",
        acts=True,
    ),
    action(
        "run_repeatedly",
        "Run repeatedly…",
        "Run the case or set several times, with a pass rule for repeats",
        "asterisk",
        refusal=_no_case_selected,
        footer="repeat",
        acts=True,
    ),
    action(
        "next_repeat",
        "Next repeat",
        "Show the next repeat of the case",
        "right_square_bracket",
        where=(Scope.MAIN, Scope.MATRIX),
        do=lambda workbench: workbench.navigation.step_repeat(1),
        refusal=_no_repeats,
        rank=2,
        word=_which_repeat,
    ),
    action(
        "previous_repeat",
        "Previous repeat",
        "Show the previous repeat of the case",
        "left_square_bracket",
        where=(Scope.MAIN, Scope.MATRIX),
        do=lambda workbench: workbench.navigation.step_repeat(-1),
        refusal=_no_repeats,
    ),
    action(
        "run_failed",
        "Run failing cases",
        "Run every case that did not pass",
        "ctrl+f",
        do=lambda workbench: workbench.runs.run_failed(),
        refusal=lambda workbench: workbench.runs.refuses_to_run() or _nothing_fails(workbench),
        footer="run failing",
        acts=True,
    ),
    action(
        "run_again",
        "Run again",
        "Repeat the last run",
        "ctrl+r",
        where=_NOT_IN_CHAT,
        do=lambda workbench: workbench.runs.run_again(),
        refusal=_never_ran,
        acts=True,
    ),
    action(
        "preflight",
        "Check metric requirements",
        "Show the agent's Python, packages missing there, and which metrics of the last run are available",
        "exclamation_mark",
        refusal=_no_checks,
        footer="metrics",
    ),
    action(
        "next_failing",
        "Next failing case",
        "Go to the next case that did not pass",
        "f",
        do=lambda workbench: workbench.navigation.select_failing(1),
        refusal=_nothing_fails,
        rank=4,
        footer="next failing",
    ),
    action(
        "previous_failing",
        "Previous failing case",
        "Go to the previous case that did not pass",
        "F",
        do=lambda workbench: workbench.navigation.select_failing(-1),
        refusal=_nothing_fails,
        footer="previous failing",
    ),
    action(
        "reload",
        "Reload",
        "Read the eval sets, the runs or the matrix from disk again",
        "f5",
        where=(Scope.MAIN, Scope.RUNS, Scope.MATRIX),
        refusal=_still_running,
        footer="reload",
    ),
)


def _nothing_waits(workbench: Workbench) -> str | None:
    if reason := workbench.runs.refuses_to_run():
        return reason
    if workbench.watch.waiting().cases:
        return None
    return "No stale case can be run: fix set or config" if workbench.outcomes.stale() else "No stale results"


WATCHING = (
    action(
        "watch",
        "Toggle watch mode",
        "Run affected cases after every save of a file of the agent",
        "w",
        do=lambda workbench: workbench.watch.switch(),
        refusal=not_read,
        rank=7,
        word=lambda workbench: "watch off" if workbench.watch.on else "watch",
        footer="watch",
        acts=True,
    ),
    action(
        "run_waiting",
        "Run stale cases",
        "Run the cases whose result is older than the agent",
        "W",
        do=lambda workbench: workbench.watch.run_waiting(),
        refusal=_nothing_waits,
        rank=1,
        footer="run stale",
        acts=True,
    ),
)
