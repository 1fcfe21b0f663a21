"""Lines of the gaps of eval sets, and the page about the current one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len

from evaltui.core.gaps.coverage import CellCoverage
from evaltui.core.gaps.gaps import Gap, GapReport
from evaltui.core.model.tool_schema import DeclaredTool
from evaltui.text.figures import (
    UNKNOWN,
    counted,
    short_list,
    show_duration,
    show_number,
    show_score,
    show_threshold,
)
from evaltui.text.glyphs import ascii_only
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells, cut, join_ends, pad
from evaltui.text.plots import bar
from evaltui.text.values import visible, visible_block
from evaltui.tui.compare.page import write_state, write_turn
from evaltui.tui.result.rows import mark_words, write_heads
from evaltui.tui.widgets.writer import Folding, Page, fold_mark, write_json
from evaltui.views.gaps import CoverageRow, GapRow, cell_name, gap_row, headline
from evaltui.workbench.gaps.rows import (
    CellRow,
    CellsRow,
    ChangeRow,
    CursorRow,
    GapsRow,
    Heading,
    KindRow,
    MeantSoRow,
    NoteRow,
    ReasonRow,
)
from evaltui.workbench.gaps.search import ChangedConversation, Gaps

_BAR_WIDTH = 10
_COLUMN = 10
_MIN_NAME = 18
_GAP = "   "
_LEVELS = ("reached", "expected", "noticed")


def headline_line(gaps: Gaps, width: int) -> Line:
    """`58 of 70 changes noticed   calls ━━━ 47/47   answers ━━━─── 11/23     4.1 s, run 3, no model call`"""
    left: Line = []
    if gaps.is_running:
        progress = gaps.progress
        done = f"{show_number(progress.done)} of {counted(progress.total, 'case')}"
        left = [("◐ ", "accent"), (done if progress.total else "Reading the results…", ""), (_GAP, "")]
    report = gaps.report
    if report is None:
        return left
    left.append((headline(report), ""))
    took = show_duration(gaps.seconds) if gaps.seconds is not None else ""
    right: Line = [(", ".join(filter(None, (took, short_list(gaps.runs), "no model call"))), "muted")]
    for bar_width in (_BAR_WIDTH, 0):
        figures = _subjects(report, bar_width)
        if cells(left) + cells(figures) + cells(right) + len(_GAP) <= width:
            break
    return join_ends([*left, *figures], right, width, least=cells(left) + cells(figures))


def _subjects(report: GapReport, bar_width: int) -> Line:
    """The noticed changes of each subject, with a bar each where it has a width."""
    line: Line = []
    for subject, (noticed, changes) in report.by_subject().items():
        line += [(f"{_GAP}{subject} ", "muted")]
        if bar_width:
            line += [*bar(noticed / changes, bar_width, "success"), (" ", "")]
        line.append((f"{show_number(noticed)}/{show_number(changes)}", ""))
    return line


def note_line(gaps: Gaps) -> Line:
    """The reason why there are no gaps, or why they are stale; empty without one."""
    if gaps.problem:
        return [("! ", "error"), (visible(gaps.problem), "error")]
    if change := gaps.stale or gaps.agent_changes:
        action, remedy = ("reload", "Search again") if gaps.stale else ("run", "Run again")
        keys: Line = [(key_of(action), "bold accent"), (f"  {remedy}", "muted")]
        return [("stale: ", "warning"), (f"{visible(change)}{_GAP}", "warning"), *keys]
    return []


# Rows


class Columns(NamedTuple):
    """The cells of the names of kinds of change, and of those of coverage."""

    kinds: int
    names: int

    @classmethod
    def of(cls, rows: Iterable[GapsRow], width: int) -> Columns:
        """The columns of rows, for lines of `width` cells."""
        kinds, names = 0, _MIN_NAME
        for row in rows:
            if isinstance(row, KindRow):
                kinds = max(kinds, len(row.kind.kind))
            elif isinstance(row, CellRow):
                names = max(names, cell_len(visible(row.cell.name)) + 2)
        return cls(kinds, max(_MIN_NAME, min(names, width - _COLUMN * len(_LEVELS) - 4)))


def row_line(row: CursorRow | Heading, columns: Columns, width: int) -> Line:
    """A row without the cursor."""
    match row:
        case Heading():
            return _heading_line(row, columns)
        case KindRow():
            figures = f"{show_number(row.kind.noticed)}/{show_number(row.kind.changes)}"
            title: Line = [
                fold_mark(row.is_open),
                (pad(row.kind.kind, columns.kinds), "bold"),
                (f"{figures:>9}{_GAP}", ""),
            ]
            return cut([*title, (row.scores, "muted")], width)
        case MeantSoRow():
            return [fold_mark(row.is_open), (f"{show_number(row.changes)} meant so", "muted")]
        case ChangeRow():
            return cut([("    ", ""), *_change_line(row.gap, width - 4)], width)
        case CellsRow():
            return _cells_line(row, columns, width)
        case CellRow():
            return _cell_line(row.cell, columns, width)
        case ReasonRow():
            places: Line = [] if row.is_open else [(f": {short_list(row.places)}", "muted")]
            return cut([fold_mark(row.is_open), (visible(row.reason), ""), *places], width)
        case NoteRow():
            return cut([("    " if row.inside else "  ", ""), (visible(row.text), row.role)], width)


def _heading_line(row: Heading, columns: Columns) -> Line:
    if row.title != "COVERAGE":
        return [(row.title, "bold")]
    heads = "".join(f"{level:>{_COLUMN}}" for level in _LEVELS)
    return [(pad(row.title, columns.names + 2), "bold"), (heads, "muted")]


@lru_cache(maxsize=512)
def _gap_row(gap: Gap) -> GapRow:
    # Long texts take long to compare.
    return gap_row(gap)


def _change_line(gap: Gap, width: int) -> Line:
    """`set_bedroom turn 1   The lamp is not off.`, with the changed words marked."""
    row = _gap_row(gap)
    place: Line = [(f"{row.place}{_GAP}", "muted")]
    if row.words:
        return [*place, *mark_words(row.words, "exp-hi strike", marks=ascii_only())]
    room = max(8, (width - cells(place) - 3) // 2)
    before, after = (cut([(visible(side) or UNKNOWN, "")], room) for side in (row.before, row.after))
    return [*place, *before, (" → ", "muted"), *after]


def _counts(cells: int | None, *counts: int | None) -> str:
    """A column for each level; with the number of cells where it is a sum of several."""
    of = "" if cells is None else f"/{cells}"
    return "".join(f"{UNKNOWN if count is None else f'{count}{of}':>{_COLUMN}}" for count in counts)


def _cells_line(row: CellsRow, columns: Columns, width: int) -> Line:
    counts = row.counts
    figures = _counts(counts.cells, counts.reached, counts.expected, counts.noticed)
    line: Line = [fold_mark(row.is_open), (pad(counts.title, columns.names), ""), (figures, "")]
    unreached = [visible(cell.name) for cell in row.cells if not cell.reached]
    # Most tools have no errors.
    if unreached and not row.is_open and counts.kind != "tool error":
        line += [(f"{_GAP}never reached  ", "muted"), (short_list(unreached, len(unreached)), "warning")]
    return cut(line, width)


def _cell_line(cell: CellCoverage, columns: Columns, width: int) -> Line:
    levels = zip(_LEVELS, (cell.reached, cell.expected, cell.noticed), strict=True)
    lacking = next((level for level, count in levels if count == 0), "")
    note = "never reached" if lacking == "reached" else f"not {lacking}" if lacking else ""
    mark = ("○ ", "faint") if lacking else ("✓ ", "success")
    name = pad(visible(cell.name), columns.names - 2)
    figures = _counts(None, cell.reached, cell.expected, cell.noticed)
    line: Line = [("  ", ""), mark, (name, ""), (figures, "")]
    return cut([*line, (f"{_GAP}{note}", "warning")] if note else line, width)


# The current row


def write_details(page: Page, gaps: Gaps, row: CursorRow, changed: ChangedConversation | str | None) -> None:
    """Writes what there is to know about a row; `changed` is the conversation of a change, a sentence where
    it cannot be read, None while it is read."""
    match row:
        case KindRow():
            page.text([(row.scores, "")])
            page.blank()
            _write_names(page, "cases", _cases_of(row.kind.gaps))
        case MeantSoRow():
            page.text([("Not counted as gaps", "muted")])
        case ChangeRow():
            _write_change(page, gaps, row, changed)
        case CellsRow():
            page.text([(_sums_in_words(row.counts), "")])
            unreached = [cell for cell in row.cells if not cell.reached]
            unexpected = [cell for cell in row.cells if cell.reached and cell.expected == 0]
            for title, listed in (("never reached", unreached), ("not expected", unexpected)):
                _write_names(page, title, [cell_name(cell.kind, cell.name) for cell in listed])
        case CellRow():
            _write_cell(page, gaps, row.cell)
        case ReasonRow():
            _write_names(page, row.reason, row.places)
        case NoteRow():
            page.text([(visible(row.text), row.role)])


def _sums_in_words(counts: CoverageRow) -> str:
    """`6 arguments: 5 reached, 4 expected, 4 noticed`"""
    levels = zip(_LEVELS, (counts.reached, counts.expected, counts.noticed), strict=True)
    sums = ", ".join(f"{count} {level}" for level, count in levels if count is not None)
    return f"{counted(counts.cells, counts.kind)}: {sums}"


def _cases_of(gaps: Sequence[Gap]) -> list[str]:
    """The cases with gaps, each with their number: `thermostat:set_bedroom 2`."""
    counts = Counter((gap.eval_set_id, gap.eval_id) for gap in gaps)
    return [visible(f"{':'.join(case)}{f' {count}' if count > 1 else ''}") for case, count in counts.items()]


def _write_names(page: Page, label: str, names: Sequence[str]) -> None:
    if names:
        page.row((f"{visible(label)}  ", "muted"), (show_number(len(names)), "bold"))
        page.block([(short_list(names, 200), "")], 2)


def _write_change(page: Page, gaps: Gaps, row: ChangeRow, changed: ChangedConversation | str | None) -> None:
    scores: Line = []
    for metric in row.gap.metrics:
        limit = "" if metric.threshold is None else f" ≥ {show_threshold(metric.threshold)}"
        scores += [(f"{visible(metric.name)} ", "muted"), (f"{show_score(metric.score)}{limit}{_GAP}", "")]
    page.text([("Not noticed by ", ""), *scores] if scores else [("No metric looks at it", "warning")])
    if changed is None or isinstance(changed, str):
        page.row(("Reading the conversation…", "muted") if changed is None else (visible(changed), "error"))
        return
    if row.kind.subject == "agents":
        agents = map(visible, (row.gap.before, row.gap.after))
        page.text([("agent  ", "muted"), (" → ".join(agents), "")])
    if (turn := changed.turn) is not None:
        page.text([("user  ", "muted"), (" ".join(visible_block(turn.user).split()), "")])
        page.blank()
        write_heads(page, ("recorded", short_list(gaps.runs)), ("changed", row.kind.kind))
        write_turn(page, turn, changed.mutant.turn or 0, Folding())
    write_state(page, changed.state)


def _write_cell(page: Page, gaps: Gaps, cell: CellCoverage) -> None:
    facts = [f"reached by {counted(cell.reached, 'case')}" if cell.reached else "no case reaches it"]
    if cell.expected is not None:
        facts.append(
            f"expected by {counted(cell.expected, 'case')}" if cell.expected else "no case expects it"
        )
    if cell.reached and cell.noticed is not None:
        facts.append(f"{counted(cell.noticed, 'change')} noticed" if cell.noticed else "no change noticed")
    page.row((visible(cell_name(cell.kind, cell.name)), "bold"))
    page.text([(", ".join(facts), "muted" if cell.reached else "warning")])
    name = cell.name.partition(".")[0]
    if cell.kind not in ("tool", "argument", "value", "tool error"):
        return
    page.blank()
    if (tool := gaps.declaration(name)) is not None:
        write_declaration(page, tool)


def write_declaration(page: Page, tool: DeclaredTool) -> None:
    """Writes a tool as its agent declares it: name, description, parameters."""
    page.row((visible(tool.name), "bold"))
    if tool.description:
        page.block([(visible_block(tool.description.strip()), "")], 2)
    if tool.parameters is not None:
        write_json(page, tool.parameters)
    elif not tool.description:
        page.row(("  not declared by the agent", "muted"))
