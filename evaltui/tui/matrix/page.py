"""A matrix as lines: the changes and totals of its variants, a line per case, and details of two cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from evaltui.core.compare.explain import call_args, call_name, describe_call, first_reasons
from evaltui.core.compare.matrix import Cell, Matrix, Row
from evaltui.core.compare.totals import Totals
from evaltui.core.cost.cost_lines import may_cost
from evaltui.core.model.outcome import CallDiff, CaseResult, RepeatResult, Status
from evaltui.core.model.spending import Cost
from evaltui.text.figures import (
    UNKNOWN,
    counted,
    show_duration,
    show_growth,
    show_interval,
    show_money,
    show_number,
    show_p,
    show_points,
    show_rate,
)
from evaltui.text.glyphs import EMPTY_BAR, THRESHOLD
from evaltui.text.lines import Line, cells, fill_line, join_ends, joined, pad, with_role, wrap_behind
from evaltui.text.outcomes import GLYPHS, NOT_RUN, ROLES, ROW_MARKS, glyph
from evaltui.text.plots import bar, stacked_bar
from evaltui.text.values import visible
from evaltui.tui.widgets.writer import Page, fold_mark
from evaltui.views.matrix import (
    cell_line,
    cell_row,
    changed_files_text,
    matrix_facts,
    plot_of,
    rate_of,
    sum_rows,
    variant_changes,
)
from evaltui.views.rows import scored_response
from evaltui.views.variant_verdict import answer_span, case_counts
from evaltui.workbench.matrix.matrices import CellResult, MatrixView, Order, SetTitle, others_of

_MARK = "●"
# Cells of `100% │`.
_MARGIN = 6
_MIN_HEIGHT = 3
_STEPS = 4


class Point(NamedTuple):
    """A named point of a scatter plot."""

    x: float
    y: float
    """From 0 to 1."""
    name: str
    role: str


def scatter_plot(
    points: Sequence[Point], width: int, height: int, show_x: Callable[[float], str]
) -> list[Line]:
    """A plot of points above an axis from 0 to the greatest x, in `height` lines; [] without room or points.

    Later points are drawn over earlier ones. The bottom of the plot is the highest multiple of 25% that is
    below all points. Names without room are omitted.
    """
    rows, columns = height - 2, width - _MARGIN
    if not points or rows < _MIN_HEIGHT or columns < 2 * _MARGIN:
        return []
    low = min(int(min(point.y for point in points) * _STEPS) / _STEPS, 1 - 1 / _STEPS)
    most = max(point.x for point in points) or 1.0
    drawn = [[(" ", "")] * columns for _ in range(rows)]
    for point in points:
        column = round(point.x / most * (columns - 1))
        row = round((1 - (point.y - low) / (1 - low)) * (rows - 1))
        drawn[row][column] = (_MARK, point.role)
        _write_name(drawn, row, column, point)
    labels = _axis_labels(low, rows)
    lines = [
        [(f"{labels.get(number, ''):>{_MARGIN - 2}} ", "muted"), (THRESHOLD, "line"), *joined(cells)]
        for number, cells in enumerate(drawn)
    ]
    last = show_x(most)
    axis: Line = [(" " * (_MARGIN - 1), ""), ("└" + EMPTY_BAR * columns, "line")]
    return [*lines, axis, [(" " * _MARGIN, ""), (pad(show_x(0), columns - cell_len(last)) + last, "muted")]]


def _axis_labels(low: float, rows: int) -> dict[int, str]:
    steps = round((1 - low) * _STEPS)
    return {round(step * (rows - 1) / steps): show_rate(1 - step / _STEPS) for step in range(steps + 1)}


def _write_name(drawn: list[Line], row: int, column: int, point: Point) -> None:
    """Writes the name of a point behind it; before it where there is no room behind."""
    size = cell_len(point.name)
    for start in (column + 2, column - 1 - size):
        end = start + size
        room = drawn[row][max(0, start - 1) : end + 1]
        if start >= 0 and end <= len(drawn[row]) and all(text in (" ", _MARK) for text, _ in room):
            free = drawn[row][start:end]
            if all(text == " " for text, _ in free):
                # The name is one span: the cells that it covers are empty ones.
                drawn[row][start:end] = [(point.name, point.role), *[("", "")] * (size - 1)]
                return


# Cells of the column of names, and of a variant.
_NAME_WIDTHS = (14, 26, 30)
_VARIANT_WIDTHS = (24, 40)
# In narrower lines, those of a screen of fewer than 120 cells, one variant stands beside the base.
_MIN_WIDTH_FOR_SEVERAL = 110
# Glyphs of repeats that are shown one by one.
_MAX_REPEATS = 10
_BAR_WIDTH = 8
_NO_COST = Cost(0.0)
_MIN_WIDTH_WITH_BARS = 28
_INTERVAL_DOTS = 16
# Cells of the outcomes of the repeats, where the figures begin, and of `▲` with its gap.
_OUTCOME_WIDTH, _SIGN_WIDTH = 10, 3
# Where all of them fit: the score, the cost and the time of a case, and the cells between them.
_FIGURE_WIDTHS, _FIGURE_GAPS = (4, 9, 6), (2, 1)
# What varies little is not worth a word.
_LITTLE_DIFFERENCE = 0.02


class Columns(NamedTuple):
    """The columns that fit."""

    names: int
    """Cells of the case names."""
    size: int
    """Cells of a variant."""
    places: tuple[int, ...]
    """The shown variants, by their index in the matrix: the base first."""

    @classmethod
    def fitting(cls, matrix: Matrix, width: int, longest: int, first: int) -> Columns:
        """The columns for lines of `width` cells and names of up to `longest`; `first` is the number of the
        first variant after the base."""
        least, usual, most = _NAME_WIDTHS
        names = max(least, min(max(longest + 3, usual), most, width // 4))
        count = room_for(matrix, width, names)
        others = others_of(matrix)
        places = (matrix.base, *others[first : first + count - 1])
        return cls(names, min(_VARIANT_WIDTHS[1], (width - names) // max(1, len(places))), places)

    def at(self, x: int) -> int | None:
        """The variant at a cell of a line, by its index in the matrix; None outside of the variants."""
        number = (x - self.names) // self.size
        return self.places[number] if x >= self.names and number < len(self.places) else None

    def room(self, matrix: Matrix, width: int) -> int:
        """The number of variants besides the base that fit in a line."""
        return room_for(matrix, width, self.names) - 1


def room_for(matrix: Matrix, width: int, names: int) -> int:
    """The number of variants that fit, including the base."""
    fitting = 2 if width < _MIN_WIDTH_FOR_SEVERAL else max(2, (width - names) // _VARIANT_WIDTHS[0])
    return min(len(matrix.columns), fitting)


def best_of(matrix: Matrix) -> int | None:
    """The variant with the best pass rate, the first of several; None where all are equal, or of different
    cases."""
    if not _have_same_cases(matrix.totals):
        return None
    rates = [totals.rate.mean if totals.rate else -1.0 for totals in matrix.totals]
    return rates.index(max(rates)) if len(set(rates)) > 1 else None


def _have_same_cases(sides: Sequence[Totals]) -> bool:
    """Whether pass rates are of the same cases, as far as their numbers tell."""
    is_complete = not any(totals.open_cases for totals in sides)
    return is_complete and len({totals.rate.cases for totals in sides if totals.rate}) < 2


# What the variants are and come to


def write_heads(matrix: Matrix, columns: Columns, current: int, most: int) -> list[Line]:
    """The heading: a line for the names and for each other fact about the variants, in at most `most`
    lines."""
    heads = list(_heads(matrix, columns, current))
    by_worth = sorted(heads, key=lambda head: head.worth)[:most]
    best = best_of(matrix)
    lines = []
    for head in heads:
        if head in by_worth:
            texts = [_tint_line(text, columns.size, place == best) for place, text in head.texts]
            label = pad(head.label, columns.names - 1)
            lines.append([(f"{label} ", "muted"), *(span for text in texts for span in text)])
    return lines


class _Head(NamedTuple):
    """A line of the heading."""

    worth: int
    """The priority of the line; the line with 0 is dropped last."""
    label: str
    texts: Sequence[tuple[int, Line]]
    """The texts, by index of the variant."""


def _heads(matrix: Matrix, columns: Columns, current: int) -> Iterator[_Head]:
    size = columns.size - 2

    def head(worth: int, label: str, write: Callable[[int], Line]) -> _Head:
        return _Head(worth, label, [(place, write(place)) for place in columns.places])

    yield head(0, _size_text(matrix), lambda place: _name(matrix, place, place == current, size))
    for number, (key, values) in enumerate(variant_changes(matrix).items()):
        yield _Head(5 + number, key, [(place, [(values[place], "muted")]) for place in columns.places])
    wide = "pass rate, 95% interval"
    yield head(
        1, wide if len(wide) < columns.names else "pass rate", lambda place: _rate(matrix.totals[place], size)
    )
    dearest = max((totals.cost.usd or 0.0 for totals in matrix.totals if totals.cost), default=0.0)
    yield head(2, "cost", lambda place: _cost(matrix.totals[place], dearest, size))
    longest = max((totals.p95 or 0.0 for totals in matrix.totals), default=0.0)
    yield head(3, "time p95", lambda place: _time(matrix.totals[place], longest, size))
    tokens = sum_rows(matrix)["tokens"]
    yield head(4, "tokens", lambda place: [(tokens[place], "bold")])


def _size_text(matrix: Matrix) -> str:
    """The number of cases and repeats: `16 cases × 5`."""
    runs = {cell.case.runs for row in matrix.rows for cell in row.cells if cell.case}
    repeats = f" × {max(runs)}" if len(runs) == 1 and max(runs) > 1 else ""
    return f"{counted(len(matrix.rows), 'case')}{repeats}"


def _name(matrix: Matrix, place: int, is_current: bool, size: int) -> Line:
    role = "bold accent" if is_current else "bold"
    right: Line = [("base", "muted")] if place == matrix.base else _points(matrix, place)
    return join_ends([(visible(matrix.name(place)), role)], right, size, least=8)


def _points(matrix: Matrix, place: int) -> Line:
    """The difference to the base: `+12 pts`."""
    sides = matrix.totals[place], matrix.totals[matrix.base]
    mine, base = (totals.rate for totals in sides)
    if mine is None or base is None or not _have_same_cases(sides):
        return []
    points = round((mine.mean - base.mean) * 100)
    role = "success" if points > 0 else "error" if points < 0 else "muted"
    return [(show_points(base.mean, mine.mean) if points else "same rate", role)]


def _rate(totals: Totals, size: int) -> Line:
    """The pass rate: `84% ·····──●─  74–90%`, with the interval on a scale from 0 to 100%."""
    if totals.rate is None:
        return [("No result yet", "muted")]
    interval = totals.rate.interval
    left: Line = [(f"{show_rate(totals.rate.mean):<5}", "bold"), (rate_of(totals)[1:], "muted")]
    right: Line = [(show_interval(*interval), "muted")] if interval else []
    dots = min(_INTERVAL_DOTS, size - cells(left) - cells(right) - 2)
    if interval and dots >= _BAR_WIDTH:
        low, high, at = (round(share * (dots - 1)) for share in (*interval, totals.rate.mean))
        drawn = ["·" if not low <= place <= high else EMPTY_BAR for place in range(dots)]
        left += [("".join(drawn[:at]), "muted"), ("●", "accent"), ("".join(drawn[at + 1 :]), "muted")]
    return join_ends(left, right, size, least=5)


def _cost(totals: Totals, dearest: float, size: int) -> Line:
    """The cost of all executions: `$0.021 ━━━━────  $0.0026 per pass`; `$0.021 + 3 unpriced calls` where a
    part is unknown."""
    cost, per_passed = totals.cost, totals.cost_per_passed
    if cost is None or cost.usd is None:
        return [(str(cost) if cost else UNKNOWN, "muted")]
    right: Line = [(f"{per_passed.short} per pass", "muted")] if per_passed else []
    if cost.saved_usd:
        right = [(f"saved {show_money(cost.saved_usd)}", "muted")]
    if not cost.is_exact:
        amount, gap, unknown = cost.in_words.partition(" ")
        named: Line = [(amount, "bold"), (gap + unknown, "muted")]
        return join_ends(named, right if cost.saved_usd else [], size, least=cells(named))
    left: Line = [(pad(cost.short, 9), "bold")]
    if dearest and cells(left) + _BAR_WIDTH + 2 + cells(right) <= size:
        left += bar(cost.usd / dearest, _BAR_WIDTH, "number")
    return join_ends(left, right, size, least=9)


def _time(totals: Totals, longest: float, size: int) -> Line:
    left: Line = [(pad(show_duration(totals.p95), 9), "bold")]
    if totals.p95 is not None and longest and size >= _MIN_WIDTH_WITH_BARS:
        left += bar(totals.p95 / longest, _BAR_WIDTH, "tool")
    right: Line = [(f"p50 {show_duration(totals.p50)}", "muted")] if totals.p50 is not None else []
    return join_ends(left, right, size, least=9)


def _tint_line(text: Line, size: int, is_best: bool) -> Line:
    """Exactly `size` cells with a gap of two at the end; the best variant is tinted."""
    line = fill_line(text, size - 2)
    return [*(with_role("surface", line) if is_best else line), ("  ", "")]


# Cases


def row_line(matrix: Matrix, row: Row, name: str, columns: Columns, current: int | None) -> Line:
    """A case with its outcome in each variant; the current cell is marked."""
    line: Line = [(pad(f"  {name}", columns.names - 1) + " ", "")]
    best = best_of(matrix)
    for place in columns.places:
        is_current = place == current
        is_priced = matrix.totals[place].total_cost not in (None, _NO_COST)
        cell = _cell(row.cells[place], columns.size - 2, is_priced=is_priced)
        text = _tint_line(cell, columns.size, place == best and not is_current)
        line += with_role("sel", text) if is_current else text
    return line


def _cell(cell: Cell, size: int, *, is_priced: bool) -> Line:
    """`✓✗✓✗✓ 3/5  0.87  1.2 s  ▲`; `is_priced` says whether the variant costs anything."""
    row = cell_row(cell, min(_MAX_REPEATS, size - 8))
    if row is None:
        return cell_line(cell)
    left: Line = [*row.outcome, (" " * max(1, _OUTCOME_WIDTH - cells(row.outcome)), "")]
    # None of them is cut, and in all rows there is as much room for them.
    cost = "" if cell.cost == _NO_COST else row.cost
    figures, room = [row.score, cost, row.time], size - _SIGN_WIDTH - cells(left)
    sizes = (_FIGURE_WIDTHS[0], _FIGURE_WIDTHS[1] if is_priced else 0, _FIGURE_WIDTHS[2])
    columns = [(figure, cells) for figure, cells in zip(figures, sizes, strict=True) if cells]
    for between in _FIGURE_GAPS:
        text = "".join(f"{'':{between}}{figure:>{cells}}" for figure, cells in columns)
        if cell_len(text) <= room:
            return join_ends([*left, (text, "faint")], row.direction, size)
    if cost and cell.cost and sum(1 + cell_len(figure) for figure in figures if figure) > room:
        figures[1] = cell.cost.short
    for figure in filter(None, figures):
        if cells(left) + 1 + cell_len(figure) <= size - _SIGN_WIDTH:
            left.append((f" {figure}", "faint"))
    return join_ends(left, row.direction, size)


def title_line(matrix: Matrix, title: SetTitle, columns: Columns) -> Line:
    """The title of a set: `▾ lights   22/25 ━━━━━━━━`, `3/3 ○2 ━━━━━───` where two cases did not run."""
    line: Line = [fold_mark(not title.folded), (pad(visible(title.label), columns.names - 2), "bold")]
    best = best_of(matrix)
    for place in columns.places:
        passed, runs, not_run, not_evaluated = title.sums[place]
        missing = ((GLYPHS[NOT_RUN], not_run), (GLYPHS[Status.NOT_EVALUATED], not_evaluated))
        labels = [f"{mark}{count}" for mark, count in missing if count]
        text: Line = [(" ".join(labels) or UNKNOWN, "faint")]
        if runs:
            parts, whole = [(passed, "success"), (runs - passed, "error")], runs + not_run + not_evaluated
            label = " ".join((f"{passed}/{runs}", *labels))
            text = [(f"{label:<7} ", "muted"), *stacked_bar(parts, whole, _BAR_WIDTH)]
        line += _tint_line(text, columns.size, place == best)
    return line


def where_line(matrix: Matrix, order: Order, *, differing: bool) -> Line:
    """The size of the matrix: `16 cases, 4 variants, 320 executions   sorted by set`."""
    facts = matrix_facts(matrix)
    line: Line = [(f"{facts['size']}   sorted by {order}", "muted")]
    if differing:
        line.append(("   only differing", "accent"))
    if "missing" in facts:
        line = [(f"{visible(facts['missing'])} missing", "warning"), ("   ", ""), *line]
    if changed := changed_files_text(matrix):
        line = [(visible(changed), "warning"), ("   ", ""), *line]
    return line


# Below the cases


def verdict_line(matrix: Matrix, place: int, width: int) -> tuple[Line, Line]:
    """A variant against the base: the verdict, the numbers of better and worse cases, and its cost; shorter
    where there is little room."""
    name = visible(matrix.name(place))
    paired = matrix.paired[place]
    if paired is None:
        return [("● ", "accent"), (name, "bold"), (" is the base", "muted")], []
    base = visible(matrix.name(matrix.base))
    if not paired.cases:
        return [("● ", "accent"), (name, "bold"), (f" has no case to compare with {base}", "muted")], []
    verdict = matrix.verdicts[place]
    answer: Line = [answer_span(verdict.answer), ("   ", "")] if verdict is not None else []
    head: Line = [("● ", "accent"), (name, "bold"), (f" against {base}: ", "muted"), *answer]
    left: Line = [*head, (str(paired), ""), (", exact McNemar", "muted")]
    if verdict is not None and verdict.undecided:
        # Equal or not, an undecided case has no verdict on the variant.
        left = [*head, *case_counts(verdict, with_names=False)]
    elif cells(left) > width:
        better, worse = show_number(paired.better), show_number(paired.worse)
        short = f"+{better} −{worse} of {counted(paired.cases, 'case')}, {show_p(paired.p)}"
        left = [*head, (short, ""), (", exact McNemar", "muted")]
    mine, theirs = matrix.totals[place], matrix.totals[matrix.base]
    right = [
        f"{what} {show_growth(before, after)}"
        for what, before, after in (
            ("cost", theirs.known_usd, mine.known_usd),
            ("p95", theirs.p95, mine.p95),
            ("tokens", theirs.tokens, mine.tokens),
        )
        if before and after is not None and abs(after - before) > _LITTLE_DIFFERENCE * before
    ]
    return left, [(", ".join(right), "muted")] if right else []


def longest_name(matrix: Matrix) -> int:
    """The width of the longest case id, in cells."""
    return max((cell_len(visible(row.case.eval_id)) for row in matrix.rows), default=0)


# Two cells

_MIN_WIDTH_BESIDE, _MIN_WIDTH_WITH_PLOT = 90, 130
_RULE = " │ "


def write_cells(
    page: Page,
    view: MatrixView,
    results: tuple[CellResult | None, CellResult | None],
    height: int,
) -> None:
    """Writes the base, the selected variant and the plot side by side where there is room, in `height` lines.

    A result is None while it is read.
    """
    if view.opened is None:
        return
    matrix, places = view.opened.matrix, (view.opened.matrix.base, view.column)
    parts = (
        3
        if page.width >= _MIN_WIDTH_WITH_PLOT
        else 2
        if page.width >= _MIN_WIDTH_BESIDE and places[0] != places[1]
        else 1
    )
    width = (page.width - len(_RULE) * (parts - 1)) // parts
    labels = "base", "selected"
    sides = [
        cell_lines(view, label, matrix.name(place), result, width)
        for label, place, result in zip(labels, places, results, strict=True)
    ]
    if parts == 1:
        sides = [sides[1]]
    elif parts == 3:
        sides.append(plot_lines(matrix, places[1], width, height))
    for number in range(min(height, max(map(len, sides)))):
        line: Line = []
        for place, side in enumerate(sides):
            line += [(_RULE, "line")] if place else []
            line += fill_line(side[number] if number < len(side) else [], width)
        page.lines.append(line)


def cell_lines(view: MatrixView, label: str, name: str, cell: CellResult | None, width: int) -> list[Line]:
    """A cell: its passed repeats, its distinct trajectories, and its differences from the expectation."""
    head: Line = [(f"{label}  ", "muted"), (visible(name), "bold")]
    if cell is None:
        return [head, [("Reading the result…", "muted")]]
    if cell.result is None:
        why = f"unreadable: {visible(cell.problem)}" if cell.problem else "No result in this variant"
        return [head, [(why, "error" if cell.problem else "muted")]]
    result = cell.result
    runs = len(result.repeats)
    if runs > 1:
        head += [("  ", ""), (f"{result.passed_repeats}/{runs}", ROLES[result.status])]
    else:
        head += [("  ", ""), glyph(result.status)]
    number = view.repeat_of(result)
    repeat = result.repeats[number]
    shown: Line = [(_trajectories_text(result), "muted")]
    if runs > 1:
        shown = [glyph(repeat.status), (f" repeat {number + 1} of {runs}   ", ""), *shown]
    return [head, shown, [], *_repeat_lines(repeat, width)]


def _trajectories_text(result: CaseResult) -> str:
    """The trajectories of the repeats: `1 distinct trajectory`, `repeats 1, 3 and 4 fail, same calls`."""
    groups = result.trajectories
    if not groups:
        return "calls unknown"
    failing = [group for group in groups if group.status in (Status.FAILED, Status.ERROR)]
    if len(result.repeats) > 1 and len(failing) == 1 and len(failing[0].repeats) > 1:
        numbers = ", ".join(str(number + 1) for number in failing[0].repeats)
        return f"repeats {numbers} fail, same calls"
    return counted(len(groups), "distinct trajectory", "distinct trajectories")


def _repeat_lines(repeat: RepeatResult, width: int) -> list[Line]:
    """The calls and the responses with their differences; else the error of the repeat."""
    shown: list[tuple[Line, Line]] = []
    if repeat.error is not None:
        shown = [([("! ", "error")], [(reason.short, "")]) for reason in first_reasons(repeat)[0]]
    else:
        for number, turn in enumerate(repeat.turns):
            shown += map(_call, turn.calls)
            if (response := scored_response(repeat, number)) is not None:
                mark: Line = [ROW_MARKS[response.op], (" ", "")]
                shown.append((mark, [(f"response {response.note}".rstrip(), "muted")]))
    lines = [line for mark, text in shown for line in wrap_behind(mark, text, width)]
    spent = repeat.spent.of("agent") if repeat.spent else None
    cost = f"   {spent.cost.in_words}" if spent is not None and may_cost(spent) else ""
    took: Line = [(f"{show_duration(repeat.seconds)}{cost}", "faint")]
    return [*lines, *wrap_behind([("  ", "")], took, width)]


def _call(diff: CallDiff) -> tuple[Line, Line]:
    mark: Line = [ROW_MARKS[diff.op], (" ", "")]
    if diff.op == "same":
        return mark, [(call_name(diff), "bold"), (f"  {call_args(diff)}", "muted")]
    return mark, [(describe_call(diff), "")]


def plot_lines(matrix: Matrix, current: int, width: int, height: int) -> list[Line]:
    """The pass rate of every variant by its cost; by its time where no cost is known."""
    plot = plot_of(matrix)
    points = [
        Point(
            point.x, point.rate, visible(matrix.name(point.place)), "accent" if point.place == current else ""
        )
        for point in plot.points
    ]
    points.sort(key=lambda point: point.role == "accent")
    return [[(plot.title, "muted")], *scatter_plot(points, width, height - 1, plot.show)]
