"""Which metrics of a run can be computed, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.metrics.requirements import Readiness
from evaltui.text.lines import Line, Span, cut, pad, wrap_behind
from evaltui.text.values import visible

_INDENT = 4
_MOST_CASES = 3


def check_lines(checks: Sequence[MetricCheck], width: int, *, every: bool = False) -> Iterator[Line]:
    """A table of what does not run as it should, and why; with `every`, of all metrics."""
    shown = [check for check in checks if every or not check.is_fine]
    names = max((cell_len(visible(check.metric)) for check in shown), default=0)
    names = min(names, width - 24)
    yield [(f"  {pad('METRIC', names)}  RUNS FOR", "bold")]
    for check in shown:
        row: Line = [_mark(check), (f" {pad(visible(check.metric), names)}  {_runs_for(check)}", "")]
        if check.optional:
            row.append(("  optional", "dim"))
        yield cut(row, width)
        yield from _explained(check, width)
    fine = len(checks) - len(shown)
    if fine:
        what = "1 other metric runs" if fine == 1 else f"{fine} other metrics run"
        yield [(f"  {what} for every case", "dim")]


def _explained(check: MetricCheck, width: int) -> Iterator[Line]:
    if not check.in_all and check.sets:
        yield from _indented([(f"in {visible(', '.join(check.sets))}", "dim")], width)
    if check.without:
        ids = [eval_id for _, eval_id in check.without]
        more = f" and {len(ids) - _MOST_CASES} more" if len(ids) > _MOST_CASES else ""
        yield from _indented([(f"not for {visible(', '.join(ids[:_MOST_CASES]))}{more}", "dim")], width)
    if check.why:
        fix = f" {_sentence(check.fix)}." if check.fix else ""
        yield from _indented([(f"{visible(check.why)}.", ""), (visible(fix), "dim")], width)


def _indented(spans: Sequence[Span], width: int) -> Iterator[Line]:
    yield from wrap_behind([(" " * _INDENT, "")], spans, width)


def _mark(check: MetricCheck) -> Span:
    if check.readiness is Readiness.RUNS:
        return ("!", "yellow") if check.why else ("✓", "green")
    return "–", "yellow"


def _runs_for(check: MetricCheck) -> str:
    cases = "1 case" if check.cases == 1 else f"{check.cases} cases"
    match check.readiness:
        case Readiness.RUNS:
            return cases
        case Readiness.SOME_CASES:
            return f"{check.cases - len(check.without)} of {cases}"
        case Readiness.CANNOT:
            return f"none of {cases}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
