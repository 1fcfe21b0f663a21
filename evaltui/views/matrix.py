"""A matrix as rows: changes and totals of its variants, and the results of each case in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaltui.core.compare.evidence import Paired
from evaltui.core.compare.matrix import Cell, Matrix
from evaltui.core.compare.totals import Totals
from evaltui.core.model.variants import Change
from evaltui.text.figures import (
    UNKNOWN,
    counted,
    plural,
    short_list,
    show_duration,
    show_interval,
    show_money,
    show_number,
    show_p,
    show_rate,
    show_score,
)
from evaltui.text.lines import Line
from evaltui.text.outcomes import GLYPHS, NOT_RUN, ROLES, WORDS, glyph
from evaltui.text.values import show_value, visible

# Variants


def variant_changes(matrix: Matrix) -> dict[str, list[str]]:
    """The models and changes of the variants, by key: a value for each variant, `—` for no change."""
    changes = {"model": [visible(run.circumstances.model) for run in matrix.columns]}
    for place, run in enumerate(matrix.columns):
        for change in run.variant.changes if run.variant else ():
            values = changes.setdefault(visible(change.key), [UNKNOWN] * len(matrix.columns))
            values[place] = visible(change_text(change))
    return {key: values for key, values in changes.items() if any(values)}


def matrix_facts(matrix: Matrix, seconds: float | None = None) -> dict[str, str]:
    """The facts about a matrix, by label, without unknown ones. `seconds` is the wall time of all runs."""
    counts = (
        counted(len(matrix.rows), "case"),
        counted(len(matrix.columns), "variant"),
        counted(sum(totals.runs for totals in matrix.totals), "execution"),
    )
    facts = {
        "took": "" if seconds is None else show_duration(seconds),
        "size": ", ".join(counts),
        "differ": counted(sum(row.differs for row in matrix.rows), "case"),
        "missing": _missing_text(matrix),
    }
    return {label: text for label, text in facts.items() if text}


def changed_files_text(matrix: Matrix) -> str:
    """The agent files that differ between variants: `agent.py changed between the variants`; "" for none."""
    changed = matrix.changed_files
    return f"{short_list(list(changed))} changed between the variants" if changed else ""


def _missing_text(matrix: Matrix) -> str:
    """The missing results: `3 results, variant pro`; "" for a complete matrix."""
    missing = sum(totals.open_cases for totals in matrix.totals)
    results = counted(missing, "result") if missing else ""
    names = matrix.not_run
    variants = f"{plural(len(names), 'variant')} {short_list(names)}" if names else ""
    return ", ".join(filter(None, (results, variants)))


def change_text(change: Change) -> str:
    """The value of a change as text: a string as it is, other values as JSON."""
    return change.value if isinstance(change.value, str) else show_value(change.value)


def sum_rows(matrix: Matrix) -> dict[str, list[str]]:
    """The totals of each variant, by title."""
    sums = [
        _totals_texts(totals, paired) for totals, paired in zip(matrix.totals, matrix.paired, strict=True)
    ]
    return {title: [texts[title] for texts in sums] for title in sums[0]}


def rate_of(totals: Totals) -> str:
    """The evaluated cases that a pass rate covers: ` of 3/16 cases`; "" where it covers all."""
    return _case_part_text(totals.rate.cases if totals.rate else totals.cases, totals)


def _case_part_text(cases: int, totals: Totals) -> str:
    """The number of cases out of all cases of a variant: ` of 3/16 cases`; "" for all."""
    every = totals.cases + totals.open_cases
    return "" if cases == every else f" of {cases}/{counted(every, 'case')}"


def _totals_texts(totals: Totals, paired: Paired | None) -> dict[str, str]:
    rate, per_passed = totals.rate, totals.cost_per_passed
    against = "base" if paired is None else UNKNOWN
    if paired and paired.cases:
        # Cases that pass here only, and in the base only.
        against = (
            f"+{paired.better} −{paired.worse}{_case_part_text(paired.cases, totals)}, {show_p(paired.p)}"
        )
    return {
        "pass rate": f"{show_rate(rate.mean)}{rate_of(totals)}" if rate else UNKNOWN,
        "95% interval": show_interval(*rate.interval) if rate and rate.interval else UNKNOWN,
        "against base": against,
        "cost": UNKNOWN if totals.cost is None else str(totals.cost),
        "cost per passed case": per_passed.in_words if per_passed else UNKNOWN,
        "time p50": show_duration(totals.p50),
        "time p95": show_duration(totals.p95),
        "tokens": show_number(None if totals.tokens is None else round(totals.tokens)),
    }


# Cells


@dataclass(frozen=True)
class CellRow:
    """The result of a case in a variant, as text."""

    outcome: Line
    """Outcome of the case: `✓✗✓✗✓ 3/5` with the glyphs of its repeats and the number of passed ones; `!
    error` without a score."""
    score: str
    """The mean score, `0.80`; "" without a score."""
    cost: str
    """The agent's cost in a run of the case: `$0.0021 + 3 unpriced calls`; "" where it is unknown for all
    runs."""
    time: str
    """The time, `3.1 s`; "" where it is unknown."""
    direction: Line
    """The comparison with the base: ▲ better, ▼ worse, ≠ not comparable; empty for equal."""


_DIRECTIONS = {"better": ("▲", "success"), "worse": ("▼", "error")}


def cell_row(cell: Cell, most: int) -> CellRow | None:
    """The row of a cell with the glyphs of up to `most` repeats; None for a case without a result."""
    case, cost = cell.case, cell.cost
    if case is None:
        return None
    outcome = [glyph(status) for status in case.outcomes if len(case.outcomes) <= most]
    outcome = outcome or [glyph(case.status)]
    if case.runs > 1:
        role = "success" if case.passed == case.runs else "warning" if case.passed else "error"
        outcome.append((f" {case.passed}/{case.runs}", role))
    elif cell.score is None:
        outcome.append((f" {WORDS[case.status]}", ROLES[case.status]))
    direction = ("≠", "muted") if cell.reasons else _DIRECTIONS.get(cell.direction)
    return CellRow(
        outcome,
        "" if cell.score is None else show_score(cell.score),
        cost.in_words if cost is not None and (cost.usd is not None or cost.unpriced) else "",
        "" if case.seconds is None else show_duration(case.seconds),
        [direction] if direction else [],
    )


def cell_line(cell: Cell, most: int = 1) -> Line:
    """The line of a cell: `≈ 4/5 0.87 $0.0021 3.1 s ▲`; `○ not run` for a missing result, `—` for a case that
    was not selected."""
    row = cell_row(cell, most)
    if row is None:
        return [(f"{GLYPHS[NOT_RUN]} {WORDS[NOT_RUN]}" if cell.is_open else UNKNOWN, "muted")]
    figures: Line = [(f" {figure}", "muted") for figure in (row.score, row.cost, row.time) if figure]
    return [*row.outcome, *figures, *((f" {mark}", role) for mark, role in row.direction)]


# The plot


@dataclass(frozen=True)
class PlotPoint:
    """A variant in a plot."""

    x: float
    rate: float
    place: int
    """The variant's place in the matrix."""


@dataclass(frozen=True)
class Plot:
    """A plot of pass rates by cost; by time where no cost is known."""

    title: str
    points: list[PlotPoint]
    show: Callable[[float], str]
    """Formats a cost or a time."""


def plot_of(matrix: Matrix) -> Plot:
    """The plot of a matrix; a variant whose cost is only partly known has no point."""
    costs = [totals.known_usd for totals in matrix.totals]
    has_costs = any(costs)
    against = costs if has_costs else [totals.p50 for totals in matrix.totals]
    points = [
        PlotPoint(x, totals.rate.mean, place)
        for place, (totals, x) in enumerate(zip(matrix.totals, against, strict=True))
        if totals.rate is not None and x is not None
    ]
    title = f"pass rate against {'cost' if has_costs else 'time (p50)'}"
    return Plot(title, points, show_money if has_costs else show_duration)
