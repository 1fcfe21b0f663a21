"""Running cases, watching, the runs that were kept, and going from one failure to the next."""

from __future__ import annotations

from functools import partial

from evaltui.workbench.actions.action import Action, Scope, action, not_read
from evaltui.workbench.state import NOTHING_TO_CANCEL
from evaltui.workbench.workbench import Workbench


def _no_case_selected(workbench: Workbench) -> str | None:
    if reason := workbench.runs.refuses_to_run():
        return reason
    path = workbench.navigation.selection.path
    eval_set = workbench.sets.by_case_path(path)
    if eval_set is None:
        return "nothing is selected" if path is None else None
    if errors := workbench.sets.errors(eval_set):
        return f"{eval_set.path.name} cannot be run: {errors[0]}"
    return None if eval_set.cases else f"{eval_set.path.name} has no case that could be run"


# In the chat these keys are for the turn.
_NOT_IN_CHAT = (Scope.CASES, Scope.CASE, Scope.RESULT, Scope.TRACE, Scope.CONSOLE)


def _nothing_to_cancel(workbench: Workbench) -> str | None:
    return None if workbench.runs.is_running else NOTHING_TO_CANCEL


def _nothing_to_clear(workbench: Workbench) -> str | None:
    return None if workbench.can_step_back else "No marks, no filter, no earlier run open"


def _what_is_cleared(workbench: Workbench) -> str:
    if workbench.navigation.marking:
        return "clear marks"
    if workbench.navigation.is_narrowed:
        return "clear filter"
    return "close run"


def _never_ran(workbench: Workbench) -> str | None:
    if workbench.runs.has_run:
        return workbench.runs.refuses_to_run()
    return "nothing has been run yet: r runs the selected case"


def _no_repeats(workbench: Workbench) -> str | None:
    scored = workbench.outcomes.get(workbench.navigation.selection.case)
    if scored is not None and len(scored.result.repeats) > 1:
        return None
    return "the case was not run several times: * does that"


def _which_repeat(workbench: Workbench) -> str:
    scored = workbench.outcomes.get(workbench.navigation.selection.case)
    return f"{scored.repeat + 1} of {len(scored.result.repeats)} runs" if scored else "next repeat"


def _nothing_fails(workbench: Workbench) -> str | None:
    if workbench.outcomes.results.attention:
        return None
    return "no case failed" if workbench.outcomes.results.counts() else "no case has been run yet"


def _no_checks(workbench: Workbench) -> str | None:
    run = workbench.runs.current
    if run is None:
        return "nothing has been run yet: r runs the selected case"
    return None if run.checks else "the sets are being read, or none of them asks for a metric"


def _still_running(workbench: Workbench) -> str | None:
    return "Run in progress (ctrl+c cancels)" if workbench.runs.is_running else None


RUNNING = (
    action(
        "cancel_run",
        "cancel run",
        "Cancel run; a second time forces it to end",
        "ctrl+c",
        where=_NOT_IN_CHAT,
        do=lambda workbench: workbench.runs.cancel(),
        refusal=_nothing_to_cancel,
        rank=0,
    ),
    action(
        "step_back",
        "back",
        "Clear marks, then the filter, then the zoom; then close an earlier run",
        "escape",
        do=Workbench.step_back,
        refusal=_nothing_to_clear,
        rank=0,
        word=_what_is_cleared,
    ),
    action(
        "run",
        "run",
        "Run the selected case; on a set, all of it",
        "r",
        do=lambda workbench: workbench.runs.run_case(),
        refusal=_no_case_selected,
        rank=1,
    ),
    action(
        "run_set",
        "set",
        "Run the set of the selected case",
        "s",
        do=lambda workbench: workbench.runs.run_set(),
        refusal=_no_case_selected,
        rank=2,
    ),
    action(
        "run_all",
        "all",
        "Run every set",
        "R",
        do=lambda workbench: workbench.runs.run_all(),
        refusal=lambda workbench: workbench.runs.refuses_to_run(),
        rank=3,
    ),
    action(
        "run_repeatedly",
        "repeat",
        "Run the selected case several times, on a set all of it: asks how often, and what must pass",
        "asterisk",
        refusal=_no_case_selected,
    ),
    action(
        "next_repeat",
        "next repeat",
        "Show the next of the times that the case was run",
        "right_square_bracket",
        do=lambda workbench: workbench.navigation.step_repeat(1),
        refusal=_no_repeats,
        rank=2,
        word=_which_repeat,
    ),
    action(
        "previous_repeat",
        "previous repeat",
        "Show the one before of the times that the case was run",
        "left_square_bracket",
        do=lambda workbench: workbench.navigation.step_repeat(-1),
        refusal=_no_repeats,
    ),
    action(
        "run_failed",
        "failed again",
        "Run every case that did not pass",
        "ctrl+f",
        do=lambda workbench: workbench.runs.run_failed(),
        refusal=lambda workbench: workbench.runs.refuses_to_run() or _nothing_fails(workbench),
    ),
    action(
        "run_again",
        "again",
        "Run again what was run last",
        "ctrl+r",
        where=_NOT_IN_CHAT,
        do=lambda workbench: workbench.runs.run_again(),
        refusal=_never_ran,
    ),
    action(
        "preflight",
        "metrics",
        "Show which metrics of the last run can be computed here, and why others cannot",
        "exclamation_mark",
        refusal=_no_checks,
    ),
    action(
        "next_failing",
        "next failing",
        "Go to the next case that did not pass",
        "f",
        do=lambda workbench: workbench.navigation.select_failing(1),
        refusal=_nothing_fails,
        rank=4,
    ),
    action(
        "previous_failing",
        "previous failing",
        "Go to the previous case that did not pass",
        "F",
        do=lambda workbench: workbench.navigation.select_failing(-1),
        refusal=_nothing_fails,
    ),
    action("reload", "reload", "Read the eval sets from disk again", "f5", refusal=_still_running),
)


_in_runs = partial(action, where=(Scope.RUNS,))
_in_comparison = partial(action, where=(Scope.COMPARISON,))


RUNS: tuple[Action, ...] = (
    action(
        "runs",
        "runs",
        "Show the runs that were kept: open one, compare two, name or resume one",
        "H",
        refusal=not_read,
        rank=7,
    ),
    _in_runs("open_run", "open", "Show the results of this run", "enter", rank=0),
    _in_runs(
        "compare_runs", "compare", "Compare this run with the base, or the one before", "equals_sign", rank=1
    ),
    _in_runs("mark_base", "base", "Make this run the base that others are compared with", "space", rank=2),
    _in_runs("name_run", "name", "Give this run a name", "f2", rank=3),
    _in_runs("resume_run", "resume", "Run what is missing of an interrupted run", "r", rank=4),
    _in_runs("reload_runs", "reload", "Look again which runs there are", "f5"),
    _in_runs("close_runs", "close", "Back to the cases", "escape", "q", "H", rank=5),
    _in_comparison("open_changed", "open", "Show the result of this case in the run", "enter", rank=0),
    _in_comparison("fold_kind", "fold", "Fold or unfold the cases of this kind", "space", rank=1),
    _in_comparison(
        "swap_runs", "swap", "Hold the runs against each other the other way round", "equals_sign", rank=2
    ),
    _in_comparison("copy_comparison", "copy", "Copy the comparison as text", "y", rank=3),
    _in_comparison("close_comparison", "close", "Back to the list of runs", "escape", "q", rank=4),
)


def _nothing_waits(workbench: Workbench) -> str | None:
    if reason := workbench.runs.refuses_to_run():
        return reason
    if workbench.watch.waiting().cases:
        return None
    return "nothing waits: every result is from the agent as it is now"


WATCHING = (
    action(
        "watch",
        "watch",
        "Run again whatever a save concerns, from now on; or stop doing so",
        "w",
        do=lambda workbench: workbench.watch.switch(),
        refusal=not_read,
        rank=7,
        word=lambda workbench: "watch off" if workbench.watch.on else "watch",
    ),
    action(
        "run_waiting",
        "the rest",
        "Run the cases whose result is from before the agent was changed",
        "W",
        do=lambda workbench: workbench.watch.run_waiting(),
        refusal=_nothing_waits,
        rank=1,
    ),
)
