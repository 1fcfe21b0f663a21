"""Gaps of eval sets on a console and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from evaltui.core.gaps.gaps import GapReport, KindOfChange
from evaltui.reports.details import mark_words, plain_spans
from evaltui.text.figures import UNKNOWN, counted, short_list, show_number
from evaltui.text.lines import Line, cut, pad, wrap_behind
from evaltui.text.lines import cells as cells_in
from evaltui.text.values import cut as cut_text
from evaltui.text.values import visible
from evaltui.views.gaps import (
    coverage_rows,
    gap_row,
    headline,
    in_words,
    judges_in_words,
    not_counted,
    not_judged,
    noticed_by,
    still_gives,
    uncovered,
)

VERSION = 1
_MAX_GAPS = 5
_MAX_NAMES = 12
_MAX_REASON = 160
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
    details = "   ".join(filter(None, [figures, f"{short_list(runs)}, {judges_in_words(report)}"]))
    yield from wrap_behind([(f"{headline(report)}   ", "bold")], [(details, "muted")], width)
    kinds = [kind for kind in report.kinds if kind.gaps]
    if kinds:
        yield []
        yield [("NOT NOTICED", "bold")]
    has_several = len({gap.path for kind in kinds for gap in kind.gaps}) > 1
    for kind in kinds:
        yield from _kind(kind, width, with_set=has_several)
    if complete := [
        kind.kind for kind in report.kinds if kind.changes and not kind.gaps and not kind.not_judged
    ]:
        yield from _named("NOTICED", complete, width)
    if metrics := list(noticed_by(report)):
        yield from _named("NOTICED BY", metrics, width)
    yield from _coverage(report, width)
    for title, names in uncovered(report):
        yield from _named(title.upper(), names, width)
    yield from _by_reason("NOT JUDGED", list(not_judged(report)), width)
    yield from _by_reason("NOT COUNTED", list(not_counted(report)), width)
    to_judge = report.to_judge
    if to_judge is not None:
        text = f"{short_list(list(to_judge.metrics))} about {in_words(to_judge)}. --judges asks"
        yield from _named("NOT ASKED", [text], width)
    if left_out := [name for name in report.left_out_metrics if not to_judge or name not in to_judge.metrics]:
        text = f"{short_list(left_out)}. They need a judge or the agent's process"
        yield from _named("METRICS LEFT OUT", [text], width)


def _by_reason(title: str, reasons: Sequence[tuple[str, Sequence[str]]], width: int) -> Iterator[Line]:
    if reasons:
        yield []
        yield [(title, "bold")]
    for reason, places in reasons:
        yield from wrap_behind(
            [("  ", "")],
            plain_spans(f"{cut_text(visible(reason), _MAX_REASON)}: {short_list(places)}"),
            width,
        )


def _kind(kind: KindOfChange, width: int, *, with_set: bool) -> Iterator[Line]:
    figures = f"{show_number(kind.noticed)}/{show_number(kind.changes)}"
    title: Line = [(f"  {pad(kind.kind, _KIND)}", "bold"), (f"{figures:>7}   ", "")]
    yield from wrap_behind(title, [(still_gives(kind), "muted")], width)
    last = ""
    for gap in kind.gaps[:_MAX_GAPS]:
        row = gap_row(gap, with_set=with_set)
        sides = (
            mark_words(row.words)
            if row.words
            else plain_spans(f"{row.before or UNKNOWN} → {row.after or UNKNOWN}")
        )
        place: Line = [(f"    {row.place}  ", "muted")]
        if cells_in(place) > width // 2:
            if row.place != last:
                yield [(f"    {_cut_start(row.place, width - 4)}", "muted")]
            place = [("      ", "")]
        last = row.place
        yield cut([*place, *sides], width)
    if (more := len(kind.gaps) - _MAX_GAPS) > 0:
        yield [(f"    and {counted(more, 'more change')}; --report json=FILE has all", "muted")]


def _cut_start(text: str, width: int) -> str:
    """The end of a text that is too long: the turn is there."""
    return text if cells_in([(text, "")]) <= width else f"…{text[1 - width :]}"


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
