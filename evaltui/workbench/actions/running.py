"""Running cases, and going from one failure to the next."""

from __future__ import annotations

from evaltui.workbench.actions.action import Action, Scope
from evaltui.workbench.workbench import Workbench


def _no_case_selected(workbench: Workbench) -> str | None:
    if reason := workbench.runs.refuses_to_run():
        return reason
    if workbench.navigation.selection.path is None:
        return "nothing is selected"
    entry = workbench.sets.entry_of(workbench.navigation.selection.path)
    if entry is not None and (errors := workbench.sets.errors(entry)):
        return f"{entry.path.name} cannot be run: {errors[0]}"
    if entry is not None and not entry.cases:
        return f"{entry.path.name} has no case that could be run"
    return None


# In the chat these keys are for the turn.
_NOT_IN_CHAT = (Scope.CASES, Scope.CASE, Scope.RESULT, Scope.TRACE, Scope.CONSOLE)


def _nothing_to_leave(workbench: Workbench) -> str | None:
    if workbench.can_step_back:
        return None
    return "nothing is running, no case is marked, no filter is set, and no earlier run is shown"


def _what_is_left(workbench: Workbench) -> str:
    if workbench.runs.is_running:
        return "cancel"
    if workbench.navigation.marking:
        return "unmark"
    searched = workbench.navigation.trace_search or workbench.navigation.filtered.filter
    return "show all" if searched or workbench.outcomes.previous_run is None else "latest results"


def _never_ran(workbench: Workbench) -> str | None:
    if workbench.runs.has_run:
        return workbench.runs.refuses_to_run()
    return "nothing has been run yet: r runs the selected case"


def _no_repeats(workbench: Workbench) -> str | None:
    key = workbench.navigation.selection.case
    scored = workbench.outcomes.get(key)
    if scored is not None and len(scored.result.repeats) > 1:
        return None
    return "the case was not run several times: * does that"


def _which_repeat(workbench: Workbench) -> str:
    key = workbench.navigation.selection.case
    scored = workbench.outcomes.get(key)
    return f"{scored.repeat + 1} of {len(scored.result.repeats)} runs" if scored else "next repeat"


def _none_to_repeat(workbench: Workbench) -> str | None:
    return workbench.runs.refuses_to_run() or _nothing_fails(workbench)


def _nothing_fails(workbench: Workbench) -> str | None:
    if workbench.outcomes.results.attention:
        return None
    return "no case failed" if workbench.outcomes.results.counts() else "no case has been run yet"


def _no_checks(workbench: Workbench) -> str | None:
    if workbench.runs.current is None:
        return "nothing has been run yet: r runs the selected case"
    return (
        None
        if workbench.runs.current.checks
        else "the sets are being read, or none of them asks for a metric"
    )


def _still_running(workbench: Workbench) -> str | None:
    return "wait for the run to end: esc cancels it" if workbench.runs.is_running else None


RUNNING = (
    Action(
        "cancel",
        "back",
        "Cancel the run, what is finished stays; else forget marks, the filter, then leave an earlier run",
        ("escape",),
        _NOT_IN_CHAT,
        do=Workbench.step_back,
        refusal=_nothing_to_leave,
        rank=0,
        word=_what_is_left,
    ),
    Action(
        "run",
        "run",
        "Run the selected case; on a set, all of it",
        ("r",),
        do=lambda workbench: workbench.runs.run_case(),
        refusal=_no_case_selected,
        rank=1,
    ),
    Action(
        "run_set",
        "set",
        "Run the set of the selected case",
        ("s",),
        do=lambda workbench: workbench.runs.run_set(),
        refusal=_no_case_selected,
        rank=2,
    ),
    Action(
        "run_all",
        "all",
        "Run every set",
        ("R",),
        do=lambda workbench: workbench.runs.run_all(),
        refusal=lambda workbench: workbench.runs.refuses_to_run(),
        rank=3,
    ),
    Action(
        "run_repeatedly",
        "repeat",
        "Run the selected case several times, on a set all of it: asks how often, and what must pass",
        ("asterisk",),
        refusal=_no_case_selected,
    ),
    Action(
        "next_repeat",
        "next repeat",
        "Show the next of the times that the case was run",
        ("right_square_bracket",),
        do=lambda workbench: workbench.navigation.step_repeat(1),
        refusal=_no_repeats,
        rank=2,
        word=_which_repeat,
    ),
    Action(
        "previous_repeat",
        "previous repeat",
        "Show the one before of the times that the case was run",
        ("left_square_bracket",),
        do=lambda workbench: workbench.navigation.step_repeat(-1),
        refusal=_no_repeats,
    ),
    Action(
        "run_failed",
        "failed again",
        "Run every case that did not pass",
        ("ctrl+f",),
        do=lambda workbench: workbench.runs.run_failed(),
        refusal=_none_to_repeat,
    ),
    Action(
        "run_again",
        "again",
        "Run again what was run last",
        ("ctrl+r",),
        _NOT_IN_CHAT,
        do=lambda workbench: workbench.runs.run_again(),
        refusal=_never_ran,
    ),
    Action(
        "preflight",
        "metrics",
        "Show which metrics of the last run can be computed here, and why others cannot",
        ("exclamation_mark",),
        refusal=_no_checks,
    ),
    Action(
        "next_failing",
        "next failing",
        "Go to the next case that did not pass",
        ("f",),
        do=lambda workbench: workbench.navigation.select_failing(1),
        refusal=_nothing_fails,
        rank=4,
    ),
    Action(
        "previous_failing",
        "previous failing",
        "Go to the previous case that did not pass",
        ("F",),
        do=lambda workbench: workbench.navigation.select_failing(-1),
        refusal=_nothing_fails,
    ),
    Action(
        "reload",
        "reload",
        "Read the eval sets from disk again",
        ("f5",),
        refusal=_still_running,
    ),
)
