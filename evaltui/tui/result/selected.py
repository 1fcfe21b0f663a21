"""The pages of the selection: a set and its results, a case, or a running case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len

from evaltui.core.compare.explain import summary
from evaltui.core.compare.run_comparison import circumstance_changes
from evaltui.core.compare.totals import Totals
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.content import Content
from evaltui.core.model.eval_set import user_text
from evaltui.core.model.outcome import ErrorInfo, Status
from evaltui.core.model.problems import Problem, Severity, errors_in
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.statistics import wilson
from evaltui.project.agent_source import SourcePlace, error_line, root_place
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.project.workspace import Workspace, searched_places, skipped_hint
from evaltui.runs.history import CaseHistory
from evaltui.runs.run_file import MetricTotal
from evaltui.text.figures import (
    UNKNOWN,
    counted,
    short_list,
    show_duration,
    show_interval,
    show_money,
    show_number,
    show_rate,
    show_score,
)
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, pad
from evaltui.text.outcomes import (
    COUNTED_STATUSES,
    NOT_RUN,
    ROLES,
    RUNNING,
    STALE,
    counts_line,
    glyph,
    verdict,
)
from evaltui.text.plots import bar, stacked_bar
from evaltui.text.values import cut, visible
from evaltui.tui.result.case_result import ShownCase, write_case_result
from evaltui.tui.result.running import (
    MAX_FAILURES,
    FailedCase,
    Figure,
    LiveCase,
    RunningCase,
    plot_width,
    write_expected,
    write_figures,
    write_live,
    write_running,
)
from evaltui.tui.result.verdict import ROOMY_WIDTH, chip, short_names, write_history
from evaltui.tui.start.page import write_broken, write_source
from evaltui.tui.widgets.writer import Folding, Link, Page, write_problems
from evaltui.views.cause import cause_text
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.agent.first_minute import error_place
from evaltui.workbench.result.freshness import EXPECTATIONS, TRACES_REASON, State
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.result.set_results import ChangedCase, SetResults
from evaltui.workbench.state import CaseOutcome, Run
from evaltui.workbench.workbench import Workbench

_MAX_LISTED = 50
_MAX_NAME, _WHY_WIDTH, _BAR_WIDTH = 40, 16, 24
_WORST_FIRST = ("FAILED", "ERROR", "FLAKY", "NOT_EVALUATED", NOT_RUN, "PASSED")


def write_set_results(
    page: Page, eval_set: EvalSetFile, errors: Sequence[Problem], outcomes: Outcomes
) -> None:
    """Writes the results of a set."""
    if errors:
        write_cannot_run(page, errors[0], eval_set.path)
        return
    results = outcomes.results_of_set(eval_set)
    if results.first is None:
        cases = counted(len(eval_set.cases), "case")
        page.row(chip(NOT_RUN), (f"   {cases}   ", ""), (key_of("run_set"), "bold accent"), ("  Run set", ""))
        return
    now, passed = outcomes.counts_of(eval_set.case_path), outcomes.passed(eval_set.case_path)
    _write_head(page, results, len(eval_set.cases), now, passed)
    page.blank()
    evaluated = now.total() - now[STALE] - now[Status.NOT_EVALUATED]
    write_figures(page, list(_figures_of_set(results.totals, passed, evaluated, page.width)))
    _write_failing(page, results.failing, outcomes)
    past = outcomes.history((results.failing or [results.first])[0])
    _write_changes(page, results.changes, past)
    _write_metrics(page, results.metrics)
    _write_slowest(page, results, outcomes)


def write_cannot_run(page: Page, problem: Problem, path: Path) -> None:
    """Writes why a file cannot be run: the problems in it, or in its config, with their places."""
    page.text([(f"Cannot run: {visible(problem.beside(path))}", "")], [chip("ERROR"), ("  ", "")])
    if problem.line:
        write_source(page, SourcePlace(Path(problem.file or path), problem.line))


def _write_head(page: Page, results: SetResults, count: int, now: Counter[str], passed: int) -> None:
    """Writes the counts; `now` and `passed` are without stale results, as in the list of cases."""
    tally = now + Counter({NOT_RUN: count - now.total()})
    status = next(status for status in _WORST_FIRST if results.statuses[status] or tally[status])
    left: Line = [chip(status, stale=bool(now[STALE])), ("  ", "")]
    left += [(f"{show_number(passed)}/{show_number(count)} passed", "bold"), ("   ", ""), *counts_line(tally)]
    page.ends(left, [(visible(min(results.runs)) if len(results.runs) == 1 else "several runs", "muted")])
    parts = [(tally[status], ROLES[status]) for status in COUNTED_STATUSES]
    page.lines.append([(" ", ""), *stacked_bar(parts, count, page.width - 2)])


def _figures_of_set(totals: Totals, passed: int, evaluated: int, width: int) -> Iterator[Figure]:
    """The figures: pass rate, time, tokens and cost."""
    room = plot_width(width)
    cost = totals.total_cost
    if evaluated:
        share, interval = passed / evaluated, show_interval(*wilson(passed, evaluated))
        yield Figure("pass rate", show_rate(share), interval, bar(share, room, "success"))
    else:
        yield Figure("pass rate", UNKNOWN)
    mean = f"mean {show_duration(totals.seconds / totals.timed)}" if totals.seconds is not None else ""
    yield Figure("time", show_duration(totals.seconds), mean)
    yield Figure("tokens", show_number(round(totals.tokens) if totals.tokens is not None else None))
    saved = f"saved {show_money(cost.saved_usd)}" if cost and cost.saved_usd is not None else ""
    yield Figure("cost", UNKNOWN if cost is None else cost.short, saved)


def _write_failing(page: Page, failing: Sequence[CaseId], outcomes: Outcomes) -> None:
    if not failing:
        return
    page.section(("Did not pass", "bold"), (f"  {len(failing)}", "muted"))
    names = min(_MAX_NAME, max(cell_len(visible(case.eval_id)) for case in failing[:_MAX_LISTED]))
    for case in failing[:_MAX_LISTED]:
        if (scored := outcomes.get(case)) is None:
            continue
        result = scored.result
        line: Line = (
            [(f"  {pad(cause_text(result), _WHY_WIDTH)}", "muted")] if page.width >= ROOMY_WIDTH else []
        )
        line += [("  ", ""), (scored.problem or summary(result), "muted")]
        _write_case_row(page, case, result.status, names, line, [])
    if len(failing) > _MAX_LISTED:
        more = show_number(len(failing) - _MAX_LISTED)
        page.row((f"    and {more} more   {key_of('next_failing')} next failing", "muted"))


def _write_case_row(page: Page, case: CaseId, status: str, names: int, line: Line, right: Line) -> None:
    page.links.append(Link(case, len(page.lines), len(page.lines) + 1))
    left: Line = [("  ", ""), glyph(status), (f" {pad(visible(case.eval_id), names)}", "")]
    page.ends([*left, *line], right)


def _write_changes(page: Page, moved: Sequence[ChangedCase], past: CaseHistory | None) -> None:
    """Writes the cases with another outcome than before, and the other changes since that run."""
    points = past.points[-2:] if past is not None else ()
    runs = {move.before.run for move in moved}
    title = points[0].title if past is not None and len(points) == 2 else "the run before"
    if len(points) == 2 and not runs - {title}:
        changed = circumstance_changes(points[0].run, points[1].run, None)
    else:
        changed, title = (), min(runs) if len(runs) == 1 else "earlier runs"
    if not moved and not changed:
        return
    what = "".join(f"  {visible(file)}" for file in changed)
    page.section((visible(f"Since {title}"), "bold"), (cut(what, page.width // 2), "muted"))
    listed = moved[:_MAX_LISTED]
    names = min(_MAX_NAME, max((cell_len(visible(move.case.eval_id)) for move in listed), default=0))
    for case, earlier, status in listed:
        page.links.append(Link(case, len(page.lines), len(page.lines) + 1))
        sides: Line = [glyph(earlier.status), (" → ", "muted"), glyph(status)]
        page.ends([("  ", ""), *sides, (f" {pad(visible(case.eval_id), names)}", "")], [])


def _write_metrics(page: Page, metrics: Mapping[str, MetricTotal]) -> None:
    """Writes the number of passing cases and the mean, for each metric."""
    if not metrics:
        return
    page.section(("Metrics", "bold"))
    names = short_names(list(metrics), shortest=False)
    width = min(_MAX_NAME, max(map(cell_len, names)))
    for name, total in zip(names, metrics.values(), strict=True):
        judged = total.cases - total.not_evaluated
        share = bar(total.passed / judged if judged else 0, min(_BAR_WIDTH, page.width // 4), "success")
        mean = f"mean {show_score(total.sum / total.scored)}" if total.scored else UNKNOWN
        left: Line = [("  ", ""), glyph(total.status), (f" {pad(name, width)}  ", ""), *share]
        left.append((f"  {total.passed}/{judged}" if judged else f"  {UNKNOWN}", ""))
        if total.not_evaluated:
            left.append((f"   {show_number(total.not_evaluated)} not evaluated", "muted"))
        page.ends(left, [(mean, "muted")])


def _write_slowest(page: Page, results: SetResults, outcomes: Outcomes) -> None:
    if results.totals.timed < 2:
        return
    slowest = results.slowest
    page.section(("Slowest", "bold"))
    names = min(_MAX_NAME, max(cell_len(visible(case.eval_id)) for _, case in slowest))
    for seconds, case in slowest:
        if (scored := outcomes.get(case)) is None:
            continue
        share = bar(seconds / slowest[0][0], min(_BAR_WIDTH, page.width // 4), "accent")
        line: Line = [("  ", ""), *share]
        _write_case_row(page, case, scored.status, names, line, [(show_duration(seconds), "muted")])


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
    page.text([(f"Looked in: {searched_places(workspace)}.", "muted")])
    if workspace.skipped:
        page.blank()
        page.row(("Passed over", "bold"))
    if hint := skipped_hint(workspace.skipped):
        page.text([(f"{visible(hint)}.", "")])
    for skipped in workspace.skipped:
        page.hanging([(f"  {visible(str(skipped.path))}  ", ""), (visible(skipped.reason), "muted")], 4)


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
    current = workbench.runs.current
    if current and selection.case and workbench.outcomes.status(selection.case) == RUNNING:
        return title, [(f"run {current.number}", "muted")]
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
    error = workbench.agent.error
    if error is not None and not (scored and scored.result.error == error):
        _write_broken_agent(page, workbench.agent, error)
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
        write_set_results(page, eval_set, workbench.sets.errors(eval_set), workbench.outcomes)
        return

    failures = []
    for case in reversed(run.failures[-MAX_FAILURES:]):
        of_set = workbench.sets.by_case_path(case.path) if len(run.paths) > 1 else None
        if (scored := workbench.outcomes.get(case)) is not None:
            failures.append(FailedCase(case, of_set.eval_set_id if of_set else "", scored))
    write_running(page, run, _running_cases(workbench, run), failures)


def _write_broken_agent(page: Page, agent: AgentState, error: ErrorInfo) -> None:
    write_broken(page, agent, error)
    page.blank()
    action, title, remark = "open_source", "Open source", "Retries on save. Sets stay editable."
    if error_place(agent, error) is None:
        action, title, remark = "reload", "Retry", "Sets stay editable."
    page.row((f"  {key_of(action)}", "bold accent"), (f"  {title}", ""), (f"   {remark}", "muted"))
    page.blank()


def _write_case(page: Page, workbench: Workbench, case: CaseId, view: View) -> None:
    scored = workbench.outcomes.get(case)
    if workbench.outcomes.status(case) == RUNNING:
        _write_running(page, workbench, case, view)
    elif scored is not None:
        note, number = _note(workbench, case, scored), scored.run.number
        printed = [line for line in workbench.console if line.case == case and line.run == number]
        shown = ShownCase(
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
            _count_same_errors(workbench, scored),
            None if note else _error_place(workbench.agent.dir, scored),
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
        what = short_list([visible(reason) for reason in now.reasons])
        stale: Line = [(f"stale: {what} changed after {visible(scored.run.name)}", "warning")]
        if TRACES_REASON in now.reasons:
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
    if workbench.agent.address.url and scored.run.log is not None:
        unknown = f"{visible(scored.run.name)}: changes of the agent since are unknown"
        return [(unknown, "muted"), ("   ", ""), (key_of("run"), "bold accent"), (" run again", "muted")]
    return []


def _error_place(agent_dir: Path, scored: CaseOutcome) -> SourcePlace | None:
    """The line that raised the error of a result; for a missing key, the line of the agent."""
    if (error := scored.shown.error) is None:
        return None
    return root_place(agent_dir) if error.is_no_key else error_line(agent_dir, error)


def _count_same_errors(workbench: Workbench, scored: CaseOutcome) -> int:
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
    if number is None or document is None:
        return eval_set.path.name
    return f"{eval_set.path.name}:{document.line_of(('eval_cases', number))}"


def _write_not_run(page: Page, workbench: Workbench, case: CaseId, view: View) -> None:
    eval_set = workbench.sets.by_case_path(case.path)
    if eval_set is not None and (errors := workbench.sets.errors(eval_set)):
        write_cannot_run(page, errors[0], eval_set.path)
        return

    if workbench.outcomes.is_waiting(case):
        page.row(chip(NOT_RUN), ("   queued", "muted"))
    else:
        key = key_of("run")
        page.row(chip(NOT_RUN), ("   ", ""), (key, "bold accent"), ("  Run case", ""))
    if (stored := _stored_case(workbench, case)) is not None:
        write_expected(page, stored.model())
    past = workbench.outcomes.history(case)
    if past is not None and past.points:
        write_history(page, past, view.folding, passed=False)


def _stored_case(workbench: Workbench, case: CaseId) -> StoredCase | None:
    """The open case; None while its set is read, and for a set with errors."""
    opened = workbench.sets.opened(workbench.sets.file_of(case.path))
    return opened.case(case.eval_id) if opened and opened.eval_set else None


def _write_running(page: Page, workbench: Workbench, case: CaseId, view: View) -> None:
    run, stored, traces = workbench.runs.current, _stored_case(workbench, case), workbench.outcomes.traces
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
        _running_cases(workbench, run),
        view.folding,
        case in run.judging,
    )
    write_live(page, live)


def _running_cases(workbench: Workbench, run: Run) -> list[RunningCase]:
    in_flight = []
    for case in sorted(run.running):
        stored, trace = _stored_case(workbench, case), workbench.outcomes.trace(case)
        turns = (stored.outline.turns or 0) if stored else 0
        repeat = (trace.repeat, _repeats(workbench, case, run)) if trace else (0, 1)
        events = workbench.outcomes.traces.live_events(case)
        in_flight.append(RunningCase(case.eval_id, turns, events, repeat, case in run.judging))
    return in_flight


def _repeats(workbench: Workbench, case: CaseId, run: Run) -> int:
    """The number of repeats of the case."""
    if run.repeated is not None:
        return run.repeated.runs
    opened = workbench.sets.opened(workbench.sets.file_of(case.path))
    return opened.config.config.evaltui.repeats.runs if opened and opened.config else 1
