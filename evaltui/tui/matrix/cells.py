"""What a case did in the base and in another variant of a matrix, and a plot of all variants."""

from __future__ import annotations

from evaltui.core.compare.explain import call_args, call_name, describe_call, first_reasons
from evaltui.core.compare.matrix import Matrix
from evaltui.core.cost.cost_lines import is_worth_telling
from evaltui.core.model.outcome import CallDiff, CaseResult, RepeatResult, Status
from evaltui.text.figures import counted, show_duration
from evaltui.text.lines import Line, cells, cut, wrap_behind
from evaltui.text.outcomes import ROLES, ROW_MARKS, glyph
from evaltui.text.scatter import Point, scatter_plot
from evaltui.text.values import visible
from evaltui.tui.widgets.writer import Page
from evaltui.views.matrix import plot_of
from evaltui.views.rows import scored_response
from evaltui.workbench.matrix.matrices import CellResult
from evaltui.workbench.matrix.view import MatrixView

_BESIDE, _WITH_PLOT = 90, 130
_RULE = " │ "


def write_cells(
    page: Page,
    view: MatrixView,
    results: tuple[CellResult | None, CellResult | None],
    height: int,
) -> None:
    """The base, the selected variant and the plot beside each other where there is room, in so many lines.

    A result is None while it is read."""
    if view.opened is None:
        return
    matrix, places = view.opened.matrix, (view.opened.matrix.base, view.column)
    parts = 3 if page.width >= _WITH_PLOT else 2 if page.width >= _BESIDE and places[0] != places[1] else 1
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
            own = cut(side[number], width) if number < len(side) else []
            line += [(_RULE, "line")] if place else []
            line += [*own, (" " * (width - cells(own)), "")]
        page.lines.append(line)


def cell_lines(view: MatrixView, label: str, name: str, found: CellResult | None, width: int) -> list[Line]:
    """A cell: how often it passed, how many ways it took, and what differed from what is expected."""
    head: Line = [(f"{label}  ", "muted"), (visible(name), "bold")]
    if found is None:
        return [head, [("Reading the result…", "muted")]]
    if found.result is None:
        why = f"unreadable: {visible(found.problem)}" if found.problem else "No result in this variant"
        return [head, [(why, "error" if found.problem else "muted")]]
    result = found.result
    runs = len(result.repeats)
    if runs > 1:
        head += [("  ", ""), (f"{result.passed_repeats}/{runs}", ROLES[result.status])]
    else:
        head += [("  ", ""), glyph(result.status)]
    number = view.repeat_of(result)
    repeat = result.repeats[number]
    shown: Line = [(_ways(result), "muted")]
    if runs > 1:
        shown = [glyph(repeat.status), (f" repeat {number + 1} of {runs}   ", ""), *shown]
    return [head, shown, [], *_did(repeat, width)]


def _ways(result: CaseResult) -> str:
    """`1 distinct trajectory`, `repeats 1, 3 and 4 fail the same way`"""
    groups = result.trajectories
    failing = [group for group in groups if group.status is not Status.PASSED]
    if len(result.repeats) > 1 and len(failing) == 1 and len(failing[0].repeats) > 1:
        numbers = ", ".join(str(number + 1) for number in failing[0].repeats)
        return f"repeats {numbers} fail the same way"
    return counted(len(groups), "distinct trajectory", "distinct trajectories")


def _did(repeat: RepeatResult, width: int) -> list[Line]:
    """The calls and the responses, with what differs from the expected ones; else what ended the repeat."""
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
    cost = f"   {spent.cost.in_words}" if spent is not None and is_worth_telling(spent) else ""
    took: Line = [(f"{show_duration(repeat.seconds)}{cost}", "faint")]
    return [*lines, *wrap_behind([("  ", "")], took, width)]


def _call(diff: CallDiff) -> tuple[Line, Line]:
    mark: Line = [ROW_MARKS[diff.op], (" ", "")]
    if diff.op == "same":
        return mark, [(call_name(diff), "bold"), (f"  {call_args(diff)}", "muted")]
    return mark, [(describe_call(diff), "")]


def plot_lines(matrix: Matrix, current: int, width: int, height: int) -> list[Line]:
    """The pass rate of every variant against its cost; against its time where no cost is known."""
    plot = plot_of(matrix)
    points = [
        Point(
            point.x, point.rate, visible(matrix.name(point.place)), "accent" if point.place == current else ""
        )
        for point in plot.points
    ]
    points.sort(key=lambda point: point.role == "accent")
    return [[(plot.title, "muted")], *scatter_plot(points, width, height - 1, plot.show)]
