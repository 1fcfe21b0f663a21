"""The page of a set after a run: counts, what did not pass, what is new since the run before, the slowest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from rich.cells import cell_len

from evaltui.core.compare.explain import summary
from evaltui.core.compare.run_comparison import what_changed
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, MetricResult
from evaltui.core.model.problems import Problem
from evaltui.core.model.spending import total as total_spent
from evaltui.core.statistics.estimates import wilson
from evaltui.files.eval_set_file import EvalSetFile
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
from evaltui.text.outcomes import COUNTED, NOT_RUN, ROLES, counts, glyph
from evaltui.text.plots import bar, stacked_bar
from evaltui.text.values import visible
from evaltui.tui.pages.running import Figure, plot_width, write_figures
from evaltui.tui.pages.verdict import ROOMY, chip, gating, short_names
from evaltui.tui.pages.writer import Link, Page
from evaltui.workbench.histories import CasePast
from evaltui.workbench.outcomes import Outcomes
from evaltui.workbench.results import needs_attention, why
from evaltui.workbench.state import CaseOutcome

# This page is written anew while results come in.
_MOST_LISTED = 50
_MOST_SLOW = 3
_MOST_BAR = 60
_MOST_NAME, _WHY, _BAR = 40, 16, 24
_WORST = ("FAILED", "ERROR", "FLAKY", "NOT_EVALUATED", "PASSED")
_TOKENS = "token_usage_v1"


class Scored(NamedTuple):
    """A case of the set that has a result."""

    case: CaseId
    outcome: CaseOutcome

    @property
    def result(self) -> CaseResult:
        return self.outcome.result


def write_set_results(
    page: Page, eval_set: EvalSetFile, errors: Sequence[Problem], outcomes: Outcomes
) -> None:
    """How the cases of a set came out."""
    if errors:
        page.text([(f"this file cannot be run: {visible(str(errors[0]))}", "")], [("! error  ", "error")])
        return
    scored = [
        Scored(case, found)
        for one in eval_set.cases
        if (found := outcomes.get(case := CaseId(eval_set.case_path, one.eval_id))) is not None
    ]
    if not scored:
        cases = counted(len(eval_set.cases), "case")
        page.row(chip(NOT_RUN), (f"   {cases}   ", ""), (key_of("run_set"), "bold accent"), ("  Run set", ""))
        return
    _write_head(page, scored, len(eval_set.cases))
    page.blank()
    write_figures(page, list(_figures(scored, len(eval_set.cases), page.width)))
    failing = [one for one in scored if needs_attention(one.result)]
    _write_failing(page, failing)
    past = outcomes.history((failing or scored)[0].case)
    _write_changes(page, scored, outcomes.status_before, past)
    _write_metrics(page, scored)
    _write_slowest(page, scored)


def _write_head(page: Page, scored: Sequence[Scored], total: int) -> None:
    tally = Counter(str(one.result.status) for one in scored)
    status = next((status for status in _WORST if tally[status]), NOT_RUN)
    passed = tally["PASSED"]
    runs = {one.outcome.run.name for one in scored}
    tally[NOT_RUN] = total - len(scored)
    left: Line = [chip(status), ("  ", ""), (f"{passed}/{total} passed", "bold"), ("   ", ""), *counts(tally)]
    page.ends(left, [(visible(runs.pop()) if len(runs) == 1 else "several runs", "muted")])
    parts = [(tally[status], ROLES[status]) for status in COUNTED]
    page.lines.append([(" ", ""), *stacked_bar(parts, total, min(page.width - 1, _MOST_BAR))])


def _figures(scored: Sequence[Scored], total: int, width: int) -> Iterator[Figure]:
    """Pass rate, time, tokens and cost."""
    room = plot_width(width)
    passed = sum(one.result.status == "PASSED" for one in scored)
    interval = show_interval(*wilson(passed, total))
    yield Figure("pass rate", show_rate(passed / total), interval, bar(passed / total, room, "success"))
    seconds = [_seconds(one.result) for one in scored]
    known = [one for one in seconds if one is not None]
    mean = f"mean {show_duration(sum(known) / len(known))}" if known else ""
    yield Figure("time", show_duration(sum(known)) if known else UNKNOWN, mean)
    tokens = [_tokens(one.result) for one in scored]
    spent = [one for one in tokens if one is not None]
    yield Figure("tokens", show_number(round(sum(spent)) if spent else None))
    costs = [one.result.spent for one in scored]
    cost = None if (found := total_spent(costs)) is None else found.cost
    saved = f"saved {show_money(cost.saved_usd)}" if cost and cost.saved_usd is not None else ""
    yield Figure("cost", UNKNOWN if cost is None else cost.short, saved)


def _seconds(result: CaseResult) -> float | None:
    """Wall time of all repeats."""
    known = [repeat.seconds for repeat in result.repeats if repeat.seconds]
    return sum(known) if known else None


def _tokens(result: CaseResult) -> float | None:
    """Tokens of all repeats."""
    turns = [
        turn.score
        for repeat in result.repeats
        for metric in repeat.metrics
        if metric.name == _TOKENS
        for turn in metric.per_invocation
        if turn.score is not None
    ]
    return sum(turns) if turns else None


def _write_failing(page: Page, failing: Sequence[Scored]) -> None:
    if not failing:
        return
    page.blank()
    page.ends([("Did not pass", "bold")], [(str(len(failing)), "muted")])
    names = min(_MOST_NAME, max(cell_len(visible(one.case.eval_id)) for one in failing[:_MOST_LISTED]))
    for one in failing[:_MOST_LISTED]:
        line: Line = [(f"  {pad(why(one.result), _WHY)}", "muted")] if page.width >= ROOMY else []
        line += [("  ", ""), (summary(one.result), "muted")]
        _write_case(page, one, names, line, [])
    if len(failing) > _MOST_LISTED:
        page.row(
            (f"    and {len(failing) - _MOST_LISTED} more   {key_of('next_failing')} next failing", "muted")
        )


def _write_case(page: Page, one: Scored, names: int, line: Line, right: Line) -> None:
    page.links.append(Link(one.case, len(page.lines), len(page.lines) + 1))
    left: Line = [("  ", ""), glyph(one.result.status), (f" {pad(visible(one.case.eval_id), names)}", "")]
    page.ends([*left, *line], right)


def _write_changes(
    page: Page, scored: Sequence[Scored], before: Callable[[CaseId], str | None], past: CasePast | None
) -> None:
    """The cases whose outcome is another one than before, and what else has changed."""
    moved = [
        (one, earlier)
        for one in scored
        if (earlier := before(one.case)) is not None and earlier != one.result.status
    ]
    points = past.history.points[-2:] if past is not None else ()
    changed = what_changed(points[0].run, points[1].run, None) if len(points) == 2 else ()
    if not moved and not changed:
        return
    page.blank()
    since = (
        f"Since {past.title_of(points[0])}"
        if past is not None and len(points) == 2
        else "Since the run before"
    )
    page.ends([(visible(since), "bold")], [("; ".join(map(visible, changed)), "muted")])
    names = min(_MOST_NAME, max((cell_len(visible(one.case.eval_id)) for one, _ in moved), default=0))
    for one, earlier in islice(moved, _MOST_LISTED):
        page.links.append(Link(one.case, len(page.lines), len(page.lines) + 1))
        sides: Line = [glyph(earlier), (" → ", "muted"), glyph(one.result.status)]
        page.ends([("  ", ""), *sides, (f" {pad(visible(one.case.eval_id), names)}", "")], [])


def _write_metrics(page: Page, scored: Sequence[Scored]) -> None:
    """Of each metric how many cases passed it, and its mean."""
    metrics: dict[str, list[MetricResult]] = {}
    for one in scored:
        for metric in gating(one.result):
            metrics.setdefault(metric.name, []).append(metric)
    if not metrics:
        return
    page.blank()
    page.row(("Metrics", "bold"))
    names = short_names([results[0] for results in metrics.values()], shortest=False)
    width = min(_MOST_NAME, max(map(cell_len, names)))
    for name, results in zip(names, metrics.values(), strict=True):
        passed = sum(metric.status == "PASSED" for metric in results)
        share = bar(passed / len(results), min(_BAR, page.width // 4), "success")
        status = "PASSED" if passed == len(results) else "FAILED"
        scores = [metric.score for metric in results if metric.score is not None]
        mean = f"mean {show_score(sum(scores) / len(scores))}" if scores else UNKNOWN
        left: Line = [("  ", ""), glyph(status), (f" {pad(name, width)}  ", ""), *share]
        page.ends([*left, (f"  {passed}/{len(results)}", "")], [(mean, "muted")])


def _write_slowest(page: Page, scored: Sequence[Scored]) -> None:
    timed = [(seconds, one) for one in scored if (seconds := _seconds(one.result)) is not None]
    if len(timed) < 2:
        return
    slowest = sorted(timed, key=lambda pair: -pair[0])[:_MOST_SLOW]
    page.blank()
    page.row(("Slowest", "bold"))
    names = min(_MOST_NAME, max(cell_len(visible(one.case.eval_id)) for _, one in slowest))
    for seconds, one in slowest:
        share = bar(seconds / slowest[0][0], min(_BAR, page.width // 4), "accent")
        _write_case(page, one, names, [("  ", ""), *share], [(show_duration(seconds), "muted")])
