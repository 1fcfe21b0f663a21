"""Running cases, watching, runs, matrices and received sessions."""

from __future__ import annotations

from evaltui.text.keys import key_of
from evaltui.workbench.actions.action import Action, no_cases, refuse_until_read
from evaltui.workbench.state import nothing_to_cancel
from evaltui.workbench.workbench import Workbench


def _cannot_run(workbench: Workbench) -> str | None:
    return workbench.runs.refuses_to_run()


def _nothing_chosen(workbench: Workbench) -> str | None:
    return _cannot_run(workbench) if workbench.navigation.marking else _no_case_selected(workbench)


def _no_case_selected(workbench: Workbench) -> str | None:
    if reason := _cannot_run(workbench):
        return reason
    path = workbench.navigation.selection.path
    eval_set = workbench.sets.by_case_path(path)
    if eval_set is None:
        return "Nothing selected" if path is None else None
    if errors := workbench.sets.errors(eval_set):
        return errors[0].stops(eval_set.path)
    return None if eval_set.cases else f"No cases in {eval_set.path.name}"


def _clear_word(workbench: Workbench) -> str:
    if workbench.navigation.marking:
        return "clear marks"
    if workbench.navigation.is_narrowed:
        return "clear filter"
    return "close run"


def _no_repeats(workbench: Workbench) -> str | None:
    scored = workbench.outcomes.get(workbench.navigation.selection.case)
    has_repeats = scored is not None and scored.figures.runs > 1
    return None if has_repeats else "No repeats of this case"


def _repeat_word(workbench: Workbench) -> str:
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


def _nothing_stale(workbench: Workbench) -> str | None:
    if reason := _cannot_run(workbench):
        return reason
    if workbench.watch.waiting().cases:
        return None
    return "No stale case can be run: fix set or config" if workbench.outcomes.stale() else "No stale results"


# fmt: off
RUN: tuple[Action, ...] = (
    Action("cancel_run", "Cancel run", "ctrl+c", "cases case result trace console",
        "Cancel the run; a second time forces it to end",
        lambda bench: None if bench.is_running else nothing_to_cancel(),
        do=lambda bench: bench.runs.cancel(), rank=0),
    Action("step_back", "Clear or close", "escape", "main",
        "Clear the marks, then the filter, then the zoom; then close an earlier run",
        lambda bench: None if bench.navigation.is_narrowed or bench.outcomes.previous_run
        else "Nothing to clear",
        do=Workbench.step_back, rank=0, footer=_clear_word),
    Action("run", "Run case", "r", "main gaps",
        "Run the marked cases, else the selected case or the selected set; in the gaps their sets",
        _nothing_chosen, rank=10, ranks={"result": 5, "case": 3, "trace": 4}, refusals={"gaps": _cannot_run},
        footer=lambda bench: "run marked" if bench.navigation.marking else "run", acts=True),
    Action("run_set", "Run set", "s", "main",
        "Run the set of the selected case", _no_case_selected, do=lambda bench: bench.runs.run_set(),
        rank=20, acts=True),
    Action("run_all", "Run all sets", "R", "main",
        "Run every set", _cannot_run, do=lambda bench: bench.runs.run_all(), rank=30, ranks={"result": 7},
        footer="run all", acts=True),
    Action("run_repeatedly", "Run repeatedly…", "asterisk", "main",
        "Run the case or set several times, with a pass rule for repeats", _no_case_selected, acts=True),
    Action("next_repeat", "Next repeat", "right_square_bracket", "main matrix",
        "Show the next repeat of the case", _no_repeats, rank=20, refusals={"matrix": None},
        footer=_repeat_word, call="step_repeat(1)"),
    Action("previous_repeat", "Previous repeat", "left_square_bracket", "main matrix",
        "Show the previous repeat of the case", _no_repeats, refusals={"matrix": None},
        call="step_repeat(-1)"),
    Action("run_failed", "Run failing cases", "ctrl+f", "main",
        "Run every case that did not pass", lambda bench: _cannot_run(bench) or _nothing_fails(bench),
        do=lambda bench: bench.runs.run_failed(),
        acts=True),
    Action("run_again", "Run again", "ctrl+r", "cases case result trace console",
        "Repeat the last run", lambda bench: _cannot_run(bench) if bench.runs.has_run else "Nothing run yet",
        do=lambda bench: bench.runs.run_again(), acts=True),
    Action("preflight", "Check metric requirements", "exclamation_mark", "main",
        "Show the agent's Python, packages missing there, and which metrics of the last run are available",
        _no_checks),
    Action("next_failing", "Next failing case", "f", "main",
        "Go to the next case that did not pass", _nothing_fails,
        do=lambda bench: bench.navigation.select_failing(1), rank=40, ranks={"result": 4},
        footer="next failing"),
    Action("previous_failing", "Previous failing case", "F", "main",
        "Go to the previous case that did not pass", _nothing_fails,
        do=lambda bench: bench.navigation.select_failing(-1)),
    Action("group_failures", "Failures by reason…", "Q", "cases result",
        "List the failing cases in view by reason, and mark those of one reason", _nothing_fails),
    Action("reload", "Reload", "f5", "main runs matrix gaps",
        "Read the eval sets, the runs or the matrix from disk again; in the gaps, search again",
        lambda bench: f"Run in progress ({key_of('cancel_run')} cancels)" if bench.runs.is_running else None,
        ranks={"gaps": 5}, refusals={"runs": None, "matrix": None, "gaps": None},
        footer="reload"),
    Action("runs", "Open runs", "H", "main",
        "List earlier runs to open, compare, name or resume them", refuse_until_read, rank=70, footer="runs"),
    Action("compare", "Compare", "equals_sign", "runs recent_runs matrix",
        "Compare this run with the base, else with the previous one; in a matrix the trajectories of a case",
        rank=10),
    Action("set_base", "Set as base", "space", "runs recent_runs matrix",
        "Compare the other runs, or the other variants, with this one", rank=20, footer="base"),
    Action("resume_run", "Resume run", "r", "runs",
        "Run the missing cases of an interrupted run", rank=40, footer="resume", acts=True),
    Action("swap_runs", "Swap base and candidate", "equals_sign", "comparison",
        "Compare the runs in the other direction", rank=20, footer="swap"),
    Action("matrix", "Open matrix", "V", "main",
        "Compare the variants of the agent, case by case, with pass rates and costs", refuse_until_read),
    Action("gaps", "Show gaps", "M", "main",
        "Show changes of results that the cases of the set would not notice, and what they cover",
        lambda bench: refuse_until_read(bench) or no_cases(bench)),
    Action("draft", "Draft a check…", "c", "gaps",
        "Propose checks, criteria and expected calls that would notice the change; for a cell that no case"
        " reaches, add a case", rank=2, footer="draft", acts=True),
    Action("toggle_meant_so", "Toggle meant so", "space", "gaps",
        "Mark the change as meant so, which no search counts as a gap, or remove the mark", rank=3,
        footer="meant so", acts=True),
    Action("run_more", "Run more repeats…", "r", "matrix",
        "Run the case more often in this variant, on a set all of its cases", rank=20,
        footer="more repeats", acts=True),
    Action("sort_matrix", "Sort cases", "s", "matrix",
        "Sort by set, by how much the variants differ, or by the pass rate in this variant", rank=40,
        footer="sort"),
    Action("only_differing", "Only differing cases", "d", "matrix",
        "Show only the cases whose results differ, or all again", rank=50, footer="differing"),
    Action("choose_matrix", "Open matrix…", "o", "matrix",
        "Show an earlier matrix", rank=70, footer="other matrix"),
    Action("sessions", "Receive sessions", "T", "main",
        "Receive traces over OTLP, and score each session against its nearest case once it is complete",
        refuse_until_read, acts=True),
    Action("toggle_trajectories", "Show new trajectories", "n", "sessions",
        "Calls that turns of sessions make and turns of no case; Save as case… takes an example of one",
        rank=20, footer="trajectories"),
    Action("toggle_listening", "Toggle listening", "space", "sessions",
        "Stop listening, or listen again; what was received stays", rank=30,
        footer=lambda bench: "stop listening" if bench.received.is_on else "listen",
        acts=True),
    Action("watch", "Toggle watch mode", "w", "main",
        "Run affected cases after every save of a file of the agent", refuse_until_read,
        do=lambda bench: bench.watch.switch(), rank=70,
        footer=lambda bench: "watch off" if bench.watch.on else "watch", acts=True),
    Action("run_waiting", "Run stale cases", "W", "main",
        "Run the cases whose result is older than the agent", _nothing_stale,
        do=lambda bench: bench.watch.run_waiting(), rank=10, footer="run stale", acts=True),
)
# fmt: on
