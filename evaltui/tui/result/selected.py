"""The pages of the selection: a set, a case, or a running case."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.content import Content
from evaltui.core.model.eval_set import user_text
from evaltui.core.model.problems import Severity, errors_in
from evaltui.core.model.stored_cases import StoredCase
from evaltui.project.agent_source import SourcePlace, error_line, root_place
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.project.workspace import Workspace, searched_places, skipped_hint
from evaltui.text.figures import some_of
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.outcomes import NOT_RUN, RUNNING, verdict
from evaltui.text.values import visible
from evaltui.tui.result.case_result import CaseShown, write_case_result
from evaltui.tui.result.history import write_history
from evaltui.tui.result.live import LiveCase, write_expected, write_live
from evaltui.tui.result.running import MOST_FAILURES, FailedCase, InFlight, write_running
from evaltui.tui.result.set_result import write_set_results
from evaltui.tui.result.verdict import chip
from evaltui.tui.start.page import write_broken
from evaltui.tui.widgets.writer import Folding, Page, write_problems
from evaltui.workbench.agent.first_minute import error_place
from evaltui.workbench.result.freshness import EXPECTATIONS, OF_TRACES, State
from evaltui.workbench.state import CaseOutcome, Run
from evaltui.workbench.workbench import Workbench

# This page is written anew while results come in.
_MAX_LISTED = 50


def write_set_facts(
    page: Page, eval_set: EvalSetFile, opened: EvalSetFile | None, *, can_edit_text: bool
) -> None:
    """Writes the format, config and problems of a set; `opened` is None while it is read."""
    problems = opened.problems if opened else eval_set.problems
    errors = errors_in(problems)
    if errors:
        page.row((" ! ERROR ", "bold error act"), ("  Cannot run: fix these first", ""))
        page.blank()
        write_problems(page, errors, eval_set.path)
        page.blank()
        if can_edit_text:
            page.row((f"  {key_of('edit_json')}", "bold accent"), ("  Edit JSON", ""))
            page.blank()
    _write_facts(page, eval_set, opened)
    warnings = [problem for problem in problems if problem.severity is not Severity.ERROR]
    if warnings:
        page.blank()
        page.row(("Warnings", "bold"))
        write_problems(page, warnings, eval_set.path)


def _write_facts(page: Page, eval_set: EvalSetFile, opened: EvalSetFile | None) -> None:
    if eval_set.name and eval_set.name != eval_set.eval_set_id:
        page.labelled("name", [(visible(eval_set.name), "")])
    if opened and opened.eval_set and opened.eval_set.description:
        page.labelled("about", [(visible(opened.eval_set.description), "")])
    page.labelled("file", [(visible(str(eval_set.path)), "")])
    if eval_set.format == "dataset":
        page.labelled("format", [("EvaluationDataset of Google's evaluation service", "")])
    elif eval_set.format and eval_set.format != "eval set":
        page.labelled("format", [(f"{eval_set.format}, from before the EvalSet schema", "")])
    if opened and opened.config:
        page.labelled("config", [(_config_place(opened.config.path, eval_set.path), "")])
        for metric in opened.config.config.metrics():
            needs = "" if metric.threshold is None else f"  threshold {metric.threshold:g}"
            page.labelled("", [(visible(metric.metric_name), ""), (needs, "muted")])
    elif opened is None:
        page.labelled("", [("Loading cases…", "muted")])


def _config_place(path: Path | None, set_path: Path) -> str:
    if path is None:
        return "none: the defaults of ADK apply"
    return visible(f"{path.name} beside it" if path.parent == set_path.parent else str(path))


def write_no_sets(page: Page, workspace: Workspace) -> None:
    """Writes the searched folders, the skipped files, and what to do."""
    page.text([(f"No eval sets yet in {visible(str(workspace.folder))}.", "bold")])
    page.blank()
    page.text(
        [
            (
                f"{key_of('show_cases')} goes to the list of cases, {key_of('new_case')} adds a case there, "
                f"{key_of('new_set')} a set. {key_of('reload')} finds new files NAME.evalset.json and "
                "NAME.test.json; --set FILE opens one.",
                "",
            )
        ]
    )
    page.blank()
    page.text([(f"Looked in: {searched_places(workspace.folder)}.", "muted")])
    if workspace.skipped:
        page.blank()
        page.row(("Passed over", "bold"))
    if hint := skipped_hint(workspace.skipped):
        page.text([(f"{visible(hint)}.", "")])
    for skipped in workspace.skipped:
        page.hanging([(f"  {visible(str(skipped.path))}  ", ""), (visible(skipped.reason), "muted")], 4)


# The modules that show cases load the models of eval data. They are imported where a case is shown, which is
# after the workbench has loaded the models in a thread.


def shown_state(workbench: Workbench) -> object:
    """The state that the page is built from: while it is equal, the page need not be written again."""
    selection = workbench.navigation.selection
    case, path = selection.case, selection.path
    state = (
        workbench.sets.workspace,
        path,
        case,
        workbench.sets.opened(workbench.navigation.file),
        workbench.agent.error,
        workbench.watch.on,
        # The end of a run is one, whatever else has changed by then.
        workbench.runs_now,
    )
    run = workbench.runs.current
    clock = int(run.seconds * 2) if run is not None and not run.over else None
    if case is None:
        return *state, clock, workbench.outcomes.counts_of(path) if path else None
    live = workbench.outcomes.traces.live_events(case)
    freshness = workbench.outcomes.freshness(case)
    # Only then the messages of the run are shown, and a log is read for them.
    is_of_then = workbench.outcomes.previous_run is not None or (freshness is not None and freshness.is_stale)
    return (
        *state,
        workbench.outcomes.get(case),
        workbench.outcomes.history(case),
        freshness,
        workbench.outcomes.status(case),
        workbench.outcomes.is_waiting(case),
        is_of_then and workbench.outcomes.trace(case) is None,
        live,
        len(live),
        workbench.outcomes.status(case) == RUNNING and clock,
        selection.turn,
    )


def page_title(workbench: Workbench) -> tuple[Line, Line]:
    """The title of the result pane, with the run of its content."""
    selection = workbench.navigation.selection
    if selection.path is None:
        return [("Result", "bold")], []
    eval_set = workbench.sets.by_case_path(selection.path)
    set_id = visible(eval_set.eval_set_id) if eval_set else workbench.sets.file_of(selection.path).name
    if selection.eval_id is None:
        return [(set_id, "bold")], []
    title: Line = [(set_id, "muted"), (" › ", "muted"), (visible(selection.eval_id), "bold")]
    if selection.turn is not None:
        title.append((f" › turn {selection.turn + 1}", ""))
    scored = workbench.outcomes.get(selection.case)
    return title, [(scored.run.name, "bold accent" if scored.run.title else "muted")] if scored else []


@dataclass(frozen=True)
class View:
    """The display options of a page."""

    folding: Folding
    height: int
    """The visible rows."""
    is_small: bool
    """Whether the screen has room for one pane only."""


def write_page(page: Page, workbench: Workbench, view: View) -> None:
    if workbench.sets.workspace is None:
        page.row(("Loading eval sets…", "muted"))
        return
    selection = workbench.navigation.selection
    eval_set = workbench.sets.by_case_path(selection.path)
    scored = workbench.outcomes.get(selection.case)
    if workbench.agent.error and not (scored and scored.result.error == workbench.agent.error):
        _write_broken_agent(page, workbench)
    if eval_set is None:
        write_no_sets(page, workbench.sets.workspace)
    elif selection.case is None:
        _write_set(page, workbench, eval_set)
    else:
        _write_case(page, workbench, selection.case, view)


def _write_set(page: Page, workbench: Workbench, eval_set: EvalSetFile) -> None:
    """Writes the run of its cases while it is in progress; else their results."""
    run = workbench.runs.current
    if run is None or run.over or eval_set.case_path not in run.paths:
        _write_set_results(page, workbench, eval_set)
        return

    failures = []
    for case in reversed(run.failures[-MOST_FAILURES:]):
        of_set = workbench.sets.by_case_path(case.path) if len(run.paths) > 1 else None
        if (scored := workbench.outcomes.get(case)) is not None:
            failures.append(FailedCase(case, of_set.eval_set_id if of_set else "", scored))
    write_running(page, run, _in_flight(workbench, run), failures)


def _write_set_results(page: Page, workbench: Workbench, eval_set: EvalSetFile) -> None:

    write_set_results(page, eval_set, workbench.sets.errors(eval_set), workbench.outcomes)


def _write_broken_agent(page: Page, workbench: Workbench) -> None:
    if workbench.agent.error is None:
        return
    write_broken(page, workbench.agent, workbench.agent.error)
    page.blank()
    if error_place(workbench.agent, workbench.agent.error) is None:
        step, remark = ("reload", "Retry"), "Sets stay editable."
    else:
        step, remark = ("open_source", "Open source"), "Retries on save. Sets stay editable."
    action, title = step
    page.row((f"  {key_of(action)}", "bold accent"), (f"  {title}", ""), (f"   {remark}", "muted"))
    page.blank()


def _write_case(page: Page, workbench: Workbench, case: CaseId, view: View) -> None:
    scored = workbench.outcomes.get(case)
    if workbench.outcomes.status(case) == RUNNING:
        _write_running(page, workbench, case, view)
    elif scored is not None:
        note, number = _note(workbench, case, scored), scored.run.number
        printed = [line for line in workbench.console if line.case == case and line.run == number]
        shown = CaseShown(
            scored,
            workbench.outcomes.history(case),
            view.folding,
            view.height,
            workbench.navigation.selection.turn,
            note,
            now.reasons if (now := workbench.outcomes.freshness(case)) is not None else (),
            _place(workbench, case) if _is_scored_by_now(workbench, case, scored) else "",
            printed,
            view.is_small,
            _same_error(workbench, scored),
            None if note else _raised_at(workbench.agent.dir, scored),
            _messages(workbench, case, scored),
        )
        write_case_result(page, shown)
    else:
        _write_not_run(page, workbench, case, view)


def _note(workbench: Workbench, case: CaseId, scored: CaseOutcome) -> Line:
    """Why a result is not of the current run, agent or case; empty for a current one."""
    if workbench.outcomes.is_waiting(case):
        return [("queued", "bold"), (f"   result of {scored.run.name}", "muted")]
    if scored.problem:
        return [(visible(scored.problem), "warning")]
    now = workbench.outcomes.freshness(case)
    if now is not None and now.is_stale:
        what = some_of([visible(reason) for reason in now.reasons])
        stale: Line = [(f"stale: {what} changed after {visible(scored.run.name)}", "warning")]
        if OF_TRACES in now.reasons:
            stale = [(f"stale: {visible(scored.run.name)}, agent not run", "warning")]
        if workbench.sets.broken(case.path):
            return stale
        return [*stale, ("   ", ""), (key_of("run"), "bold accent"), (" run again", "muted")]
    if now is None:
        return []
    if now.state is State.RESCORED and workbench.outcomes.previous_run is not None:
        return [("rescored", "bold"), ("   by case and config of now", "muted")]
    if changed := [reason for reason in now.reasons if reason in EXPECTATIONS and now.state is State.THEN]:
        return [(f"{', '.join(changed)} changed after {visible(scored.run.name)}: as scored then", "warning")]
    return []


def _raised_at(agent_dir: Path, scored: CaseOutcome) -> SourcePlace | None:
    """The line that raised the error of a result; for a missing key, the line of the agent."""
    if (error := scored.shown.error) is None:
        return None
    return root_place(agent_dir) if error.is_no_key else error_line(agent_dir, error)


def _same_error(workbench: Workbench, scored: CaseOutcome) -> int:
    """The number of other cases that ended because the same key is missing."""
    if (error := scored.result.error) is None or not error.is_no_key:
        return 0
    return sum(other.result.error == error for _, other in workbench.outcomes.results.all()) - 1


def _is_scored_by_now(workbench: Workbench, case: CaseId, scored: CaseOutcome) -> bool:
    """Whether the result is scored by the current expectations of its file."""
    now = workbench.sets.case_now(case)
    return now is not None and now.says_the_same(scored.stored) and not scored.case_changed


def _messages(workbench: Workbench, case: CaseId, scored: CaseOutcome) -> dict[int, str] | None:
    """The user messages of the run by turn, where only its log has them; None where the case has them."""

    if not scored.case_changed:
        return None
    trace, messages = workbench.outcomes.trace(case), dict[int, str]()
    for event in trace.events if trace else ():
        if event.kind == "user" and event.content and event.turn is not None:
            messages.setdefault(event.turn, user_text(Content.model_validate(event.content)))
    return messages


def _place(workbench: Workbench, case: CaseId) -> str:
    """The place of a case: `lights.evalset.json:88`."""
    eval_set = workbench.sets.by_case_path(case.path)
    if eval_set is None:
        return ""
    number, document = eval_set.number(case.eval_id), eval_set.document
    if number is None or document is None or eval_set.format != "eval set":
        return eval_set.path.name
    return f"{eval_set.path.name}:{document.line_of(('eval_cases', number))}"


def _write_not_run(page: Page, workbench: Workbench, case: CaseId, view: View) -> None:
    eval_set = workbench.sets.by_case_path(case.path)
    if eval_set is not None and workbench.sets.errors(eval_set):
        _write_set_results(page, workbench, eval_set)
        return

    if workbench.outcomes.is_waiting(case):
        page.row(chip(NOT_RUN), ("   queued", "muted"))
    else:
        key = key_of("run")
        page.row(chip(NOT_RUN), ("   ", ""), (key, "bold accent"), ("  Run case", ""))
    if (stored := _stored(workbench, case)) is not None:
        write_expected(page, stored.model())
    past = workbench.outcomes.history(case)
    if past is not None and past.points:
        write_history(page, past, view.folding, passed=False)


def _stored(workbench: Workbench, case: CaseId) -> StoredCase | None:
    """The open case; None while its set is read, and for a set with errors."""
    opened = workbench.sets.opened(workbench.sets.file_of(case.path))
    return opened.case(case.eval_id) if opened and opened.eval_set else None


def _write_running(page: Page, workbench: Workbench, case: CaseId, view: View) -> None:

    run, stored, traces = workbench.runs.current, _stored(workbench, case), workbench.outcomes.traces
    if run is None or stored is None:
        page.row(*verdict(RUNNING))
        return
    live = LiveCase(
        stored.model(),
        traces.live_events(case),
        run,
        workbench.agent.settings.timeout,
        _place(workbench, case),
        workbench.outcomes.get(case),
        _in_flight(workbench, run),
        view.folding,
        case in run.judging,
    )
    write_live(page, live)


def _in_flight(workbench: Workbench, run: Run) -> list[InFlight]:

    in_flight = []
    for case in sorted(run.running):
        stored, trace = _stored(workbench, case), workbench.outcomes.trace(case)
        turns = (stored.outline.turns or 0) if stored else 0
        repeat = (trace.repeat, _repeats(workbench, case, run)) if trace else (0, 1)
        events = workbench.outcomes.traces.live_events(case)
        in_flight.append(InFlight(case.eval_id, turns, events, repeat, case in run.judging))
    return in_flight


def _repeats(workbench: Workbench, case: CaseId, run: Run) -> int:
    """The number of repeats of the case."""
    if run.repeated is not None:
        return run.repeated.runs
    opened = workbench.sets.opened(workbench.sets.file_of(case.path))
    return opened.config.config.evaltui.repeats.runs if opened and opened.config else 1
