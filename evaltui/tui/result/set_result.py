"""The page of a set after a run: counts, cases that did not pass, changes since the run before, the slowest
cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len

from evaltui.core.compare.explain import summary
from evaltui.core.compare.run_comparison import what_changed
from evaltui.core.compare.totals import Totals
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.core.model.problems import Problem
from evaltui.core.statistics import wilson
from evaltui.project.agent_source import SourcePlace
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.runs.history import CaseHistory
from evaltui.runs.run_file import MetricTotal
from evaltui.text.figures import (
    UNKNOWN,
    counted,
    show_duration,
    show_interval,
    show_money,
    show_number,
    show_rate,
    show_score,
)
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, pad
from evaltui.text.outcomes import COUNTED, NOT_RUN, ROLES, STALE, counts, glyph
from evaltui.text.plots import bar, stacked_bar
from evaltui.text.values import cut, visible
from evaltui.tui.result.running import Figure, plot_width, write_figures
from evaltui.tui.result.verdict import ROOMY, chip, short_names
from evaltui.tui.start.page import write_source
from evaltui.tui.widgets.writer import Link, Page
from evaltui.views.cause import why
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.result.set_results import Moved, SetResults

# This page is written anew while results come in.
_MOST_LISTED = 50
_MOST_NAME, _WHY, _BAR = 40, 16, 24
_WORST = ("FAILED", "ERROR", "FLAKY", "NOT_EVALUATED", NOT_RUN, "PASSED")


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
    write_figures(page, list(_figures(results.totals, passed, evaluated, page.width)))
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
    status = next(status for status in _WORST if results.statuses[status] or tally[status])
    left: Line = [chip(status, stale=bool(now[STALE])), ("  ", "")]
    left += [(f"{show_number(passed)}/{show_number(count)} passed", "bold"), ("   ", ""), *counts(tally)]
    page.ends(left, [(visible(min(results.runs)) if len(results.runs) == 1 else "several runs", "muted")])
    parts = [(tally[status], ROLES[status]) for status in COUNTED]
    page.lines.append([(" ", ""), *stacked_bar(parts, count, page.width - 2)])


def _figures(totals: Totals, passed: int, evaluated: int, width: int) -> Iterator[Figure]:
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
    names = min(_MOST_NAME, max(cell_len(visible(case.eval_id)) for case in failing[:_MOST_LISTED]))
    for case in failing[:_MOST_LISTED]:
        if (scored := outcomes.get(case)) is None:
            continue
        result = scored.result
        line: Line = [(f"  {pad(why(result), _WHY)}", "muted")] if page.width >= ROOMY else []
        line += [("  ", ""), (scored.problem or summary(result), "muted")]
        _write_case(page, case, result.status, names, line, [])
    if len(failing) > _MOST_LISTED:
        more = show_number(len(failing) - _MOST_LISTED)
        page.row((f"    and {more} more   {key_of('next_failing')} next failing", "muted"))


def _write_case(page: Page, case: CaseId, status: str, names: int, line: Line, right: Line) -> None:
    page.links.append(Link(case, len(page.lines), len(page.lines) + 1))
    left: Line = [("  ", ""), glyph(status), (f" {pad(visible(case.eval_id), names)}", "")]
    page.ends([*left, *line], right)


def _write_changes(page: Page, moved: Sequence[Moved], past: CaseHistory | None) -> None:
    """Writes the cases with another outcome than before, and the other changes since that run."""
    points = past.points[-2:] if past is not None else ()
    runs = {move.before.run for move in moved}
    title = points[0].title if past is not None and len(points) == 2 else "the run before"
    if len(points) == 2 and not runs - {title}:
        changed = what_changed(points[0].run, points[1].run, None)
    else:
        changed, title = (), min(runs) if len(runs) == 1 else "earlier runs"
    if not moved and not changed:
        return
    what = "".join(f"  {visible(file)}" for file in changed)
    page.section((visible(f"Since {title}"), "bold"), (cut(what, page.width // 2), "muted"))
    listed = moved[:_MOST_LISTED]
    names = min(_MOST_NAME, max((cell_len(visible(move.case.eval_id)) for move in listed), default=0))
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
    width = min(_MOST_NAME, max(map(cell_len, names)))
    for name, total in zip(names, metrics.values(), strict=True):
        share = bar(total.passed / total.cases, min(_BAR, page.width // 4), "success")
        status = "PASSED" if total.passed == total.cases else "FAILED"
        mean = f"mean {show_score(total.sum / total.scored)}" if total.scored else UNKNOWN
        left: Line = [("  ", ""), glyph(status), (f" {pad(name, width)}  ", ""), *share]
        page.ends([*left, (f"  {total.passed}/{total.cases}", "")], [(mean, "muted")])


def _write_slowest(page: Page, results: SetResults, outcomes: Outcomes) -> None:
    if results.totals.timed < 2:
        return
    slowest = results.slowest
    page.section(("Slowest", "bold"))
    names = min(_MOST_NAME, max(cell_len(visible(case.eval_id)) for _, case in slowest))
    for seconds, case in slowest:
        if (scored := outcomes.get(case)) is None:
            continue
        share = bar(seconds / slowest[0][0], min(_BAR, page.width // 4), "accent")
        line: Line = [("  ", ""), *share]
        _write_case(page, case, scored.status, names, line, [(show_duration(seconds), "muted")])
