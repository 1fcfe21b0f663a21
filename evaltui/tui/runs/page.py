"""Earlier runs: a table, their pass rates as a plot, and one in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from rich.cells import cell_len

from evaltui.core.model.outcome import Status
from evaltui.core.model.spending import Cost
from evaltui.core.statistics.estimates import wilson
from evaltui.runs.listing import FailedCase, RunRow
from evaltui.text.figures import (
    UNKNOWN,
    counted,
    show_duration,
    show_elapsed,
    show_interval,
    show_moment,
    show_number,
    show_rate,
    show_score,
    some_of,
)
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, pad
from evaltui.text.outcomes import ROLES, counts, glyph
from evaltui.text.plots import bar
from evaltui.text.values import visible
from evaltui.tui.widgets.writer import Page
from evaltui.views.run import run_mark, selected_in

# Cells of a column, without the two behind it.
_RUN, _WHEN, _RATE, _TIME = 4, 12, 4, 10
_BAR, _COST, _CHANGED = 8, 8, 10
_INTERVAL = len("(99–100%)")
# Least and most cells of the columns of names, and of what was run.
_NAME, _WHAT, _LONGEST_WHAT, _LONGEST_CHANGED = (4, 20), (4, 12), 28, 26
_CHANGED_HEAD = "changed since previous run"
_FREE = Cost(0.0)
_TABLED = ("PASSED", "FAILED", "ERROR", "FLAKY")


class Columns(NamedTuple):
    """The cells of the columns of a table of runs; 0 for one that there is no room for."""

    digits: int
    """Cells of the number of cases with one outcome."""
    name: int = 0
    what: int = 0
    interval: int = 0
    """Of the pass rate, right behind it."""
    bar: int = 0
    cost: int = 0
    changed: int = 0

    @classmethod
    def fitting(cls, width: int, rows: Sequence[RunRow]) -> Columns:
        """For lines of `width` cells, such that these rows are cut as little as possible. What any of them
        cost goes before what has changed."""
        digits = max(2, len(str(max((row.selected for row in rows), default=0))))
        names, whats = (
            max((cell_len(text(row)) for row in rows), default=0) for text in (_name_in, selected_in)
        )
        room = width - 2 - (_RUN + 2) - (_WHEN + 2) - len(_TABLED) * (digits + 1) - 1 - (_RATE + 2) - _TIME
        wanted = {"name": _within(names, *_NAME)}
        wanted |= {"cost": _COST} if {row.totals.total_cost for row in rows} - {None, _FREE} else {}
        wanted |= {"changed": _CHANGED, "interval": _INTERVAL, "what": _within(whats, *_WHAT)}
        wanted |= {"bar": _BAR, "cost": _COST}
        found = {}
        for column, size in wanted.items():
            gap = 1 if column in ("interval", "bar") else 2
            if room >= size + gap:
                found[column] = size
                room -= size + gap
        for column, most in (("what", min(whats, _LONGEST_WHAT)), ("changed", _LONGEST_CHANGED)):
            if column in found:
                more = max(0, min(room, most - found[column]))
                found[column] += more
                room -= more
        return cls(digits, **found)


def _within(size: int, least: int, most: int) -> int:
    return max(least, min(size, most))


def _name_in(row: RunRow) -> str:
    return visible(row.name)


def runs_head(columns: Columns) -> Line:
    """The heads of the columns of `run_line`."""
    line: Line = [("  ", ""), (f"{'run':<{_RUN}}  {'when':<{_WHEN}}  ", "muted")]
    line += [(pad(head, width) + "  ", "muted") for head, width in _texts(columns, "name", "what") if width]
    line += [(f"{glyph(status)[0]:>{columns.digits}} ", ROLES[status]) for status in _TABLED]
    figures = _RATE + sum(size + 1 for size in (columns.interval, columns.bar) if size)
    line.append((f" {pad('pass rate', figures) if figures > _RATE else 'rate'}  ", "muted"))
    line.append((f"{'time':>{_TIME}}", "muted"))
    line += [(f"  {'cost':>{columns.cost}}", "muted")] if columns.cost else []
    changed = _CHANGED_HEAD if len(_CHANGED_HEAD) <= columns.changed else "changed"
    return [*line, ("  " + pad(changed, columns.changed), "muted")] if columns.changed else line


def _texts(columns: Columns, name: str, what: str) -> tuple[tuple[str, int], tuple[str, int]]:
    return (name, columns.name), (what, columns.what)


def run_line(row: RunRow, columns: Columns, now: datetime, changed: Sequence[str] = ()) -> Line:
    """A run in the columns; `changed` is what is different from the run before it."""
    number = "adk" if row.is_of_adk else str(row.number or UNKNOWN)
    head: Line = [
        run_mark(row),
        (f" {number:<{_RUN}}", "bold"),
        (f"  {pad(show_moment(row.started, now), _WHEN)}  ", ""),
    ]
    if row.problem:
        return [*head, (f"unreadable: {visible(row.problem)}", "error")]
    names = _texts(columns, _name_in(row), selected_in(row))
    head += [
        (pad(text, width) + "  ", role)
        for (text, width), role in zip(names, ("bold", "muted"), strict=True)
        if width
    ]
    return [
        *head,
        *_counts(row, columns.digits),
        (" ", ""),
        *_rate(row, columns.bar, columns.interval),
        (f"  {_lasted(row, now):>{_TIME}}", "warning" if row.ending == "interrupted" else "muted"),
        *([_cost(row, columns.cost)] if columns.cost else []),
        *([_changed(changed, columns.changed)] if columns.changed else []),
    ]


def _cost(row: RunRow, width: int) -> Span:
    cost = row.totals.total_cost
    known = cost is not None and cost.usd is not None
    return f"  {cost.short if cost else UNKNOWN:>{width}}", "muted" if known else "faint"


def _changed(names: Sequence[str], width: int) -> Span:
    return f"  {pad(', '.join(map(visible, names)) or UNKNOWN, width)}", "" if names else "faint"


def _counts(row: RunRow, width: int) -> Line:
    figures = [(row.totals.counts.get(status, 0), ROLES[status]) for status in _TABLED]
    return [(f"{number:>{width}} ", role if number else "faint") for number, role in figures]


def _rate(row: RunRow, width: int, interval: int = 0) -> Line:
    """` 44% (23–67%) ━━━━─────`; of a run that goes on how far it is."""
    done, passed = row.totals.cases, row.totals.passed
    gap: Line = [(" " * (interval + 1 if interval else 0), "")]
    if row.ending == "going on":
        far = done / max(1, row.selected)
        figures = f"{done}/{row.selected}"
        shown = figures if len(figures) <= _RATE else show_rate(far)
        return [
            (f"{shown:>{_RATE}}", "muted"),
            *gap,
            *([(" ", ""), *bar(far, width, "accent")] if width else []),
        ]
    evaluated = row.totals.evaluated
    if not evaluated:
        return [(f"{UNKNOWN:>{_RATE}}", "faint"), *gap, (" " * (width + 1 if width else 0), "")]
    return [
        (f"{show_rate(passed / evaluated):>{_RATE}}", "bold"),
        *([(f" {pad(_interval(passed, evaluated), interval)}", "muted")] if interval else []),
        *([(" ", ""), *bar(passed / evaluated, width, "success")] if width else []),
    ]


def _interval(passed: int, done: int) -> str:
    """`(74–90%)`"""
    return f"({show_interval(*wilson(passed, done))})"


def _lasted(row: RunRow, now: datetime) -> str:
    if row.ending == "going on":
        return show_elapsed(max(0.0, (now - row.started).total_seconds()))
    if row.ending == "interrupted":
        return f"{row.totals.cases}/{row.selected} run"
    return show_duration(row.seconds)


# The plot


# One run

_ONE_BELOW_THE_OTHER = 60


def write_side(page: Page, row: RunRow, failed: Sequence[FailedCase] | None, height: int) -> None:
    """What did not pass in a run, each with why, and below it what the run was; `failed` is None while it is
    being read."""
    facts = Page(page.width)
    write_run(facts, row)
    if not row.problem:
        _write_failures(page, row, failed, height - len(facts.lines) - 1)
        page.blank()
    page.lines += facts.lines


def write_run_preview(
    page: Page, row: RunRow, failed: Sequence[FailedCase] | None, now: datetime, height: int
) -> None:
    """A run in so many lines: when it was, how its cases came out, what did not pass; then what it was."""
    moment: Line = [(f"{show_moment(row.started, now)}   {_lasted(row, now)}", "muted")]
    page.ends([(visible(row.title), "bold")], [] if row.problem else moment)
    if row.problem:
        page.text([(visible(row.problem), "error")])
        return
    interval: Line = []
    if row.ending != "going on" and row.totals.evaluated:
        low, high = wilson(row.totals.passed, row.totals.evaluated)
        interval = [(f"  {show_interval(low, high)}", "muted")]
    selected: Span = (f"   {selected_in(row)}", "muted")
    page.row(*counts(row.totals.counts), ("   ", ""), *_rate(row, _BAR), *interval, selected)
    page.blank()
    _write_failures(page, row, failed, height)
    facts = Page(page.width)
    write_run(facts, row)
    if len(page.lines) + 1 + len(facts.lines) <= height:
        page.blank()
        page.lines += facts.lines


def _write_failures(page: Page, row: RunRow, failed: Sequence[FailedCase] | None, height: int) -> None:
    if failed is None:
        page.row(("Reading the run…", "muted"))
        return
    count = row.totals.cases - row.totals.passed
    if not count:
        passed = [glyph(Status.PASSED), (" All cases passed", "")]
        page.row(*(passed if row.totals.cases else [("No result yet", "muted")]))
        return
    page.row((f"{counted(count, 'case')} did not pass", "bold"))
    shown = 0
    for case in failed:
        one = Page(page.width)
        one.row(glyph(case.status), (f" {visible(case.eval_id)}", ""))
        one.block([(visible(case.why), "muted")], 2)
        if len(page.lines) + len(one.lines) + 1 > height:
            break
        page.lines += one.lines
        shown += 1
    if shown < count:
        page.row(
            (f"and {show_number(count - shown)} more" if shown else f"{counted(count, 'case')}", "muted")
        )


def write_run(page: Page, row: RunRow) -> None:
    """What a run was: its cases, model, config, and whether the agent is still the same."""
    page.labelled("log", [(visible(row.id), "muted")])
    if row.problem:
        page.labelled("problem", [(visible(row.problem), "error")])
        return
    done = row.totals.cases
    all_of_them = counted(row.selected, "case")
    how_many = f"{show_number(done)} of {all_of_them}" if done != row.selected else all_of_them
    rest: Line = [(f"   {key_of('resume_run')}", "bold accent"), (" resume", "muted")]
    page.labelled(
        "cases",
        [
            (how_many, ""),
            (f"  {selected_in(row)}", "muted"),
            *(rest if row.ending == "interrupted" and done != row.selected else []),
        ],
    )
    if row.model:
        page.labelled("model", [(visible(row.model), "")])
    if row.kind.in_process:
        page.labelled("agent", [("object, run in the process that evaluated it", "")])
    elif words := row.kind.in_words:
        page.labelled("agent", [(visible(", ".join(words)), "")])
    if row.totals.tokens is not None:
        page.labelled("tokens", [(show_number(round(row.totals.tokens)), "")])
    if row.totals.total_cost is not None:
        page.labelled("cost", [(str(row.totals.total_cost), "")])
    _write_criteria(page, list(_criteria(row)))
    if row.changed:
        names = some_of([visible(name) for name in row.changed])
        page.labelled("stale", [(names, ""), (" changed after this run", "muted")])


def _write_criteria(page: Page, criteria: Sequence[tuple[str, str]]) -> None:
    """On one line, or on one each where there is little room."""
    if criteria and page.width < _ONE_BELOW_THE_OTHER:
        page.row(("  config", "muted"))
        for name, threshold in criteria:
            page.ends([(f"    {name}", "")], [(threshold, "muted")])
    elif criteria:
        pairs = [((name, ""), (f"  {threshold}   ", "muted")) for name, threshold in criteria]
        page.labelled("config", [span for pair in pairs for span in pair])


def _criteria(row: RunRow) -> Iterator[tuple[str, str]]:
    """The metrics of the configs of a run, each with its threshold."""
    found: dict[tuple[str, str], None] = {}
    for one in row.sets:
        criteria = (one.config or {}).get("criteria")
        for name, value in criteria.items() if isinstance(criteria, dict) else ():
            threshold = value.get("threshold") if isinstance(value, dict) else value
            known = isinstance(threshold, int | float) and not isinstance(threshold, bool)
            found[visible(str(name)), show_score(threshold) if known else ""] = None
    yield from found
