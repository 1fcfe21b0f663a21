"""Gaps of eval sets on a console and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from evaltui.core.gaps.gaps import GapReport, KindOfChange
from evaltui.reports.details import mark_words, plain_spans
from evaltui.text.figures import UNKNOWN, counted, short_list, show_number
from evaltui.text.lines import Line, cut, pad, wrap_behind
from evaltui.text.values import visible
from evaltui.views.gaps import coverage_rows, gap_row, headline, not_counted, still_gives, uncovered

VERSION = 1
_MAX_GAPS = 5
_MAX_NAMES = 12
_GAPS = TypeAdapter(GapReport)
_KIND = 26


def gaps_json(report: GapReport, runs: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The document; `runs` are the ids of the runs by the files of sets. Its keys are a promise."""
    return {"version": VERSION, "runs": dict(runs), **_GAPS.dump_python(report, mode="json")}


def gap_lines(report: GapReport, runs: Sequence[str], width: int) -> Iterator[Line]:
    """The lines of a console; `runs` are the names of the runs."""
    figures = "   ".join(
        f"{subject} {show_number(noticed)}/{show_number(changes)}"
        for subject, (noticed, changes) in report.by_subject().items()
    )
    if report.meant_so:
        figures = f"{figures}   {show_number(report.meant_so)} meant so"
    details = f"{figures}   {short_list(runs)}, no model call"
    yield from wrap_behind([(f"{headline(report)}   ", "bold")], [(details, "muted")], width)
    kinds = [kind for kind in report.kinds if kind.gaps]
    if kinds:
        yield []
        yield [("NOT NOTICED", "bold")]
    for kind in kinds:
        yield from _kind(kind, width)
    if complete := [kind.kind for kind in report.kinds if kind.changes and not kind.gaps]:
        yield from _named("NOTICED", complete, width)
    yield from _coverage(report, width)
    for title, names in uncovered(report):
        yield from _named(title.upper(), names, width)
    if report.not_counted:
        yield []
        yield [("NOT COUNTED", "bold")]
        for reason, places in not_counted(report):
            yield from wrap_behind(
                [("  ", "")], plain_spans(f"{visible(reason)}: {short_list(places)}"), width
            )
    if report.left_out_metrics:
        text = f"{short_list(list(report.left_out_metrics))}. They need a judge or the agent's process"
        yield from _named("METRICS LEFT OUT", [text], width)


def _kind(kind: KindOfChange, width: int) -> Iterator[Line]:
    figures = f"{show_number(kind.noticed)}/{show_number(kind.changes)}"
    title: Line = [(f"  {pad(kind.kind, _KIND)}", "bold"), (f"{figures:>7}   ", "")]
    yield from wrap_behind(title, [(still_gives(kind), "muted")], width)
    for gap in kind.gaps[:_MAX_GAPS]:
        row = gap_row(gap)
        sides = (
            mark_words(row.words)
            if row.words
            else plain_spans(f"{row.before or UNKNOWN} → {row.after or UNKNOWN}")
        )
        yield cut([(f"    {row.place}  ", "muted"), *sides], width)
    if (more := len(kind.gaps) - _MAX_GAPS) > 0:
        yield [(f"    and {counted(more, 'more change')}; --report json=FILE has all", "muted")]


def _coverage(report: GapReport, width: int) -> Iterator[Line]:
    rows = list(coverage_rows(report))
    if not rows:
        return
    yield []
    yield [(f"{'COVERAGE':20}{'reached':>10}{'expected':>10}{'noticed':>10}", "bold")]
    for row in rows:
        counts = (row.reached, row.expected, row.noticed)
        cells = "".join(f"{UNKNOWN if count is None else f'{count}/{row.cells}':>10}" for count in counts)
        yield cut([(f"  {row.title:18}{cells}", "")], width)


def _named(title: str, names: Sequence[str], width: int) -> Iterator[Line]:
    yield []
    yield from wrap_behind([(f"{title}  ", "bold")], plain_spans(short_list(names, _MAX_NAMES)), width)
