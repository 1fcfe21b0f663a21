"""The rows of the gaps of eval sets: changes by kind, coverage by kind of cell, and reasons."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from evaltui.core.gaps.coverage import CellCoverage
from evaltui.core.gaps.gaps import Gap, GapReport, KindOfChange
from evaltui.text.figures import counted, short_list
from evaltui.views.gaps import CoverageRow, coverage_rows, no_changes, not_counted, still_gives

# Rows of a kind that are listed: nobody reads more.
_MAX_ROWS = 500
_GROWTH = 1.1


class Heading(NamedTuple):
    """The title of a part, which the cursor skips, as it does empty lines."""

    title: str


class KindRow(NamedTuple):
    """A kind of change that was not always noticed."""

    kind: KindOfChange
    scores: str
    """The scores that its changes still have."""
    is_open: bool

    @property
    def key(self) -> Hashable:
        return "kind", self.kind.kind


class ChangeRow(NamedTuple):
    """A change that was not noticed, or one that is meant so."""

    kind: KindOfChange
    gap: Gap
    is_meant_so: bool = False

    @property
    def key(self) -> Hashable:
        return self.kind.kind, self.gap.case, self.gap.turn, self.gap.digest, self.is_meant_so

    @property
    def inside(self) -> Hashable:
        return "meant so" if self.is_meant_so else ("kind", self.kind.kind)


class MeantSoRow(NamedTuple):
    """The changes that are meant so."""

    changes: int
    is_open: bool

    @property
    def key(self) -> Hashable:
        return "meant so"


class CellsRow(NamedTuple):
    """The cells of a kind."""

    counts: CoverageRow
    cells: Sequence[CellCoverage]
    """Never reached cells first."""
    is_open: bool

    @property
    def key(self) -> Hashable:
        return "cells", self.counts.kind


class CellRow(NamedTuple):
    """A cell of coverage."""

    cell: CellCoverage

    @property
    def key(self) -> Hashable:
        return "cell", self.cell.kind, self.cell.name

    @property
    def inside(self) -> Hashable:
        return "cells", self.cell.kind


class ReasonRow(NamedTuple):
    """A reason why cases or turns are not counted."""

    reason: str
    places: Sequence[str]
    is_open: bool

    @property
    def key(self) -> Hashable:
        return "reason", self.reason


class NoteRow(NamedTuple):
    """A line that has nothing to open."""

    text: str
    role: str = "muted"
    inside: Hashable = None
    """The key of the row that it belongs to; None for a line of its own."""

    @property
    def key(self) -> Hashable:
        return self.inside, self.text


GroupRow = KindRow | MeantSoRow | CellsRow | ReasonRow
"""A row that opens to others."""
CursorRow = GroupRow | ChangeRow | CellRow | NoteRow
GapsRow = CursorRow | Heading | None
"""A row of the list; None is an empty line. The cursor skips these and headings."""


class GapsView:
    """The rows of a report, of which some are open."""

    def __init__(self) -> None:
        self._open: set[Hashable] = set()
        # Of each kind, with the number of its changes at that time.
        self._scores: dict[str, tuple[int, str]] = {}

    def open(self, row: GroupRow) -> None:
        self._open.add(row.key)

    def close(self, key: Hashable) -> None:
        """Closes the row with a key."""
        self._open.discard(key)

    def rows(self, report: GapReport, *, is_running: bool = False) -> list[GapsRow]:
        """The rows of a report, also of a search that goes on."""
        rows: list[GapsRow] = [*self._kinds(report, is_running=is_running)]
        for part in (self._coverage(report), self._reasons(report), _left_out(report)):
            rows += [None, *listed] if (listed := list(part)) else []
        return rows

    def _kinds(self, report: GapReport, *, is_running: bool) -> Iterator[GapsRow]:
        missed = [kind for kind in report.kinds if kind.gaps]
        if missed or is_running:
            yield Heading("NOT NOTICED")
        if not missed and is_running:
            yield NoteRow("Nothing so far")
        elif not missed and report.changes:
            yield NoteRow(f"All {counted(report.changes, 'change')} noticed", "success")
        elif not missed:
            text = no_changes(report)
            yield NoteRow(f"{text[0].upper()}{text[1:]}", "warning")
        for kind in missed:
            scores = self._scores_of(kind, is_running=is_running)
            row = KindRow(kind, scores, ("kind", kind.kind) in self._open)
            yield row
            if row.is_open:
                yield from (ChangeRow(kind, gap) for gap in kind.gaps[:_MAX_ROWS])
                yield from _more(len(kind.gaps), "change", row)
        if report.meant_so:
            group = MeantSoRow(report.meant_so, "meant so" in self._open)
            yield group
            if group.is_open:
                marked = [(kind, gap) for kind in report.kinds for gap in kind.meant_so]
                yield from (ChangeRow(kind, gap, is_meant_so=True) for kind, gap in marked[:_MAX_ROWS])
                yield from _more(len(marked), "change", group)
        if noticed := [kind.kind for kind in report.kinds if kind.changes and not kind.gaps]:
            yield NoteRow(f"Always noticed: {short_list(noticed, len(noticed))}")

    def _scores_of(self, kind: KindOfChange, *, is_running: bool) -> str:
        """The scores of a kind; during a search, only after a tenth more: there may be many changes."""
        count, scores = self._scores.get(kind.kind, (0, ""))
        if not is_running or not count <= len(kind.gaps) <= count * _GROWTH:
            scores = still_gives(kind)
            self._scores[kind.kind] = len(kind.gaps), scores
        return scores

    def _coverage(self, report: GapReport) -> Iterator[GapsRow]:
        rows = list(coverage_rows(report))
        if rows:
            yield Heading("COVERAGE")
        for counts in rows:
            cells = [cell for cell in report.coverage if cell.kind == counts.kind]
            cells.sort(key=lambda cell: (cell.reached > 0, cell.expected != 0))
            row = CellsRow(counts, cells, ("cells", counts.kind) in self._open)
            yield row
            if row.is_open:
                yield from map(CellRow, cells[:_MAX_ROWS])
                yield from _more(len(cells), "cell", row)

    def _reasons(self, report: GapReport) -> Iterator[GapsRow]:
        if report.not_counted:
            yield Heading("NOT COUNTED")
        for reason, places in not_counted(report):
            row = ReasonRow(reason, places, ("reason", reason) in self._open)
            yield row
            if row.is_open:
                yield from (NoteRow(place, inside=row.key) for place in places[:_MAX_ROWS])
                yield from _more(len(places), "place", row)


def _more(count: int, noun: str, row: GroupRow) -> Iterator[NoteRow]:
    if count > _MAX_ROWS:
        yield NoteRow(f"and {counted(count - _MAX_ROWS, f'more {noun}')}", inside=row.key)


def _left_out(report: GapReport) -> Iterator[GapsRow]:
    if names := report.left_out_metrics:
        yield Heading("METRICS LEFT OUT")
        remedy = "`evaltui gaps --judges` asks judges; own functions need the agent's process"
        yield NoteRow(f"{short_list(list(names))}. {remedy}")
