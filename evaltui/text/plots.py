"""Plots as lines of text, drawn from data and a size."""

from __future__ import annotations

from collections.abc import Container, Sequence

from evaltui.text.figures import show_number
from evaltui.text.glyphs import BAR, EMPTY_BAR, HALF_BAR, SPARKS, THRESHOLD
from evaltui.text.lines import Line, Span, joined

_RIGHT_HALF = "╺"
_WIDEST_COLUMN = 4
# Rows from which on a half is named, too.
_HALF_WIDTH = 6


def sparkline(values: Sequence[float | None], roles: Sequence[str]) -> Line:
    """A line of one cell per value from 0 to 1, each in its role; `·` for None."""
    return [(_spark(value), role) for value, role in zip(values, roles, strict=True)]


def _spark(value: float | None) -> str:
    return "·" if value is None else SPARKS[round(_clamp_share(value) * (len(SPARKS) - 1))]


def column_plot(
    values: Sequence[float | None],
    roles: Sequence[str],
    width: int,
    height: int,
    marks: Sequence[Span] = (),
    top: str = "",
    hollow: Container[int] = (),
) -> list[Line]:
    """A plot of values from 0 to 1 as columns, the last ones at the right; unknown values are gaps.

    `marks`, one for each value, are in a line below the columns. `top` is the label for 1, such as `4.6 s`;
    by default the labels are percentages. Of the values at the indices in `hollow`, only the top is drawn.
    """
    margin = len(top or "100%") + 1
    room = max(1, width - margin)
    # Columns do not touch.
    shown = list(enumerate(zip(values, roles, strict=True)))[-max(1, room // 2) :]
    wide = min(_WIDEST_COLUMN, room // max(1, len(shown))) - 1
    labels = {0: "0%", **({(height - 1) // 2: "50%"} if height >= _HALF_WIDTH else {}), height - 1: "100%"}
    if top:
        labels = {0: "0", height - 1: top}
    lines: list[Line] = []
    for row in reversed(range(height)):
        columns = [
            (_draw_cell(value, row, height, is_hollow=place in hollow) * wide + " ", role)
            for place, (value, role) in shown
        ]
        lines.append([(f"{labels.get(row, ''):>{margin - 1}} ", "muted"), *columns])
    if marks:
        below = [(f"{mark:^{wide}} ", role) for mark, role in marks[-len(shown) :]]
        lines.append([(" " * margin, ""), *below])
    return lines


def _draw_cell(value: float | None, row: int, height: int, *, is_hollow: bool) -> str:
    """Draws a cell as `_column_cell`; a value of 0 is a tick on the ground."""
    if value == 0:
        return " " if row else SPARKS[0]
    cell = _column_cell(value, row, height)
    if is_hollow and cell != " ":
        return EMPTY_BAR if _column_cell(value, row + 1, height) == " " else " "
    return cell


def _column_cell(value: float | None, row: int, height: int) -> str:
    """The cell of a column in a row, counted from the bottom; a value above 0 is always visible."""
    if value is None:
        return " "
    eighths = max(round(_clamp_share(value) * height * 8), 1 if value > 0 else 0) - 8 * row
    return SPARKS[min(eighths, 8) - 1] if eighths > 0 else " "


# Cells of a column of a histogram.
_PART_CELLS = 2


def histogram(
    values: Sequence[tuple[float, int]],
    interval: tuple[float, float],
    threshold: float | None,
    width: int,
    height: int,
    *,
    lower_is_better: bool = False,
) -> list[Line]:
    """A histogram: the counts of values in an interval as columns, the greatest count at the left, and an
    axis below.

    `values` are pairs of a value and its count. A threshold is drawn as a line: passing values are green.
    Without a threshold, all columns have one role.
    """
    low, high = interval
    margin = len(str(sum(count for _, count in values))) + 1
    parts = max(2, (width - margin - 1) // _PART_CELLS)
    at = None if threshold is None else min(max(1, round(_position(threshold, low, high) * parts)), parts - 1)
    counts = [0] * parts
    for value, count in values:
        part = min(int(_position(value, low, high) * parts), parts - 1)
        if at is not None and threshold is not None:
            right = value > threshold if lower_is_better else value >= threshold
            part = max(part, at) if right else min(part, at - 1)
        counts[part] += count
    roles = [_side_role(part, at, lower_is_better) for part in range(parts)]
    most = max(1, *counts)
    lines: list[Line] = []
    for row in reversed(range(height)):
        label = f"{most:>{margin - 1}} " if row == height - 1 else " " * margin
        columns = [
            (_column_cell(count / most, row, height) * _PART_CELLS, role)
            for count, role in zip(counts, roles, strict=True)
        ]
        if at is not None:
            columns.insert(at, (THRESHOLD, "bold"))
        lines.append([(label, "muted"), *joined(columns)])
    return [
        *lines,
        *_axis_lines(
            low, high, threshold, margin, _PART_CELLS * parts, None if at is None else _PART_CELLS * at
        ),
    ]


def _position(value: float, low: float, high: float) -> float:
    return _clamp_share((value - low) / (high - low)) if high > low else 0.0


def _side_role(part: int, at: int | None, lower_is_better: bool) -> str:
    if at is None:
        return "muted"
    return "success" if (part < at) == lower_is_better else "error"


def _axis_lines(
    low: float, high: float, threshold: float | None, margin: int, width: int, at: int | None
) -> list[Line]:
    """The axis of a histogram with the threshold and the ends of the interval; an end too close to the
    threshold is omitted."""
    axis = [(EMPTY_BAR, "line")] * (width + (at is not None))
    first, last = show_number(low), show_number(high)
    ends = [(margin, first, "muted"), (margin + len(axis) - len(last), last, "muted")]
    if at is not None:
        axis[at] = ("┴", "bold")
        own = show_number(threshold)
        ends = [(max(0, margin + at - len(own) // 2), own, "bold"), *(end for end in ends if end[1] != own)]
    return [[(" " * margin, ""), *joined(axis)], _place_labels(ends)]


def _place_labels(labels: Sequence[tuple[int, str, str]]) -> Line:
    """A line with texts at given cells, each in its role; texts that would touch earlier ones are omitted."""
    placed: list[tuple[int, str, str]] = []
    for start, text, role in labels:
        if all(
            start > other + len(placed_text) or start + len(text) < other for other, placed_text, _ in placed
        ):
            placed.append((start, text, role))
    line: Line = []
    end = 0
    for start, text, role in sorted(placed):
        line += [(" " * (start - end), ""), (text, role)]
        end = start + len(text)
    return line


def bar(share: float, width: int, role: str, threshold: float | None = None) -> Line:
    """A bar for a share from 0 to 1, in steps of half a cell; a threshold below 1 is a line across it."""
    full, half = divmod(round(_clamp_share(share) * width * 2), 2)
    drawn = [(BAR, role)] * full + [(HALF_BAR, role)] * half
    drawn += [(EMPTY_BAR, "line")] * (width - len(drawn))
    if threshold is not None and 0 <= threshold < 1 and width:
        drawn[int(threshold * width)] = (THRESHOLD, "")
    return joined(drawn)


def stacked_bar(parts: Sequence[tuple[int, str]], total: int, width: int) -> Line:
    """A bar of several counts, each in its role; the rest of `total` is empty. Each count has at least one
    cell."""
    line: Line = []
    left, count_left = width, total
    for count, role in parts:
        if not count or not left:
            continue
        size = min(left, max(1, round(count / max(count_left, 1) * left)))
        line.append((BAR * size, role))
        left, count_left = left - size, count_left - count
    return [*line, (EMPTY_BAR * left, "line")] if left else line


def waterfall_bar(start: float, end: float, whole: float, width: int, role: str) -> Line:
    """A bar from `start` to `end` on a scale of `whole`, in steps of half a cell, with hairlines at the
    quarters."""
    halves = 2 * width / whole if whole > 0 else 0.0
    first = min(2 * width - 1, int(start * halves))
    last = max(first + 1, min(2 * width, round(end * halves)))
    quarters = {width // 4, width // 2, 3 * width // 4}
    drawn = []
    for place in range(width):
        covered = first <= 2 * place < last, first <= 2 * place + 1 < last
        if any(covered):
            drawn.append((BAR if all(covered) else HALF_BAR if covered[0] else _RIGHT_HALF, role))
        else:
            drawn.append((THRESHOLD if place in quarters else " ", "line"))
    return joined(drawn)


def _clamp_share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
