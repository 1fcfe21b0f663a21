"""The matrix of an agent's variants: cases as rows, variants as columns, and details of two cells."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

from textual import events, on
from textual.widget import Widget

from evaltui.core.compare.explain import call_args, call_name, describe_call, first_reasons
from evaltui.core.compare.matrix import Matrix, Row
from evaltui.core.cost.cost_lines import is_worth_telling
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CallDiff, CaseResult, RepeatResult
from evaltui.core.model.outcome import Status as CaseStatus
from evaltui.runs.matrices import OpenMatrix, StoredMatrix, stored_matrices
from evaltui.runs.run_header import RunKind
from evaltui.text.figures import counted, show_duration, show_moment
from evaltui.text.lines import Line, both_ends, filled, wrap_behind
from evaltui.text.outcomes import ROLES, ROW_MARKS, glyph
from evaltui.text.scatter import Point, scatter_plot
from evaltui.text.values import visible
from evaltui.tui.action_screen import ask, bindings
from evaltui.tui.compare.screen import ComparisonScreen
from evaltui.tui.dialogs.finding import SearchScreen, has_words
from evaltui.tui.dialogs.framed import MATRIX, FramedScreen
from evaltui.tui.dialogs.prompt import PromptScreen, dialog_name
from evaltui.tui.main.bars import Status
from evaltui.tui.matrix.page import (
    where_line,
)
from evaltui.tui.matrix.rows import MatrixHeads, MatrixRows, VariantClicked, Verdict
from evaltui.tui.pane import PaneFrame, Tab
from evaltui.tui.runs.screen import RunTarget
from evaltui.tui.widgets.lines import CursorLines, HorizontalRule
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.views.matrix import plot_of
from evaltui.views.rows import scored_response
from evaltui.workbench.actions import Action, Scope
from evaltui.workbench.matrix.matrices import (
    NONE_YET,
    CellResult,
    MatrixView,
    SetTitle,
    cell_result,
    extent_of,
    read_matrix,
    side_of,
    title_of,
)
from evaltui.workbench.matrix.more_repeats import runs_problem
from evaltui.workbench.runs.run_list import Sides
from evaltui.workbench.workbench import Workbench

_BESIDE, _WITH_PLOT = 90, 130
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
            line += [(_RULE, "line")] if place else []
            line += filled(side[number] if number < len(side) else [], width)
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
    shown: Line = [(_ways(result), "muted")]
    if runs > 1:
        shown = [glyph(repeat.status), (f" repeat {number + 1} of {runs}   ", ""), *shown]
    return [head, shown, [], *_did(repeat, width)]


def _ways(result: CaseResult) -> str:
    """The trajectories of the repeats: `1 distinct trajectory`, `repeats 1, 3 and 4 fail the same way`."""
    groups = result.trajectories
    failing = [group for group in groups if group.status is not CaseStatus.PASSED]
    if len(result.repeats) > 1 and len(failing) == 1 and len(failing[0].repeats) > 1:
        numbers = ", ".join(str(number + 1) for number in failing[0].repeats)
        return f"repeats {numbers} fail the same way"
    return counted(len(groups), "distinct trajectory", "distinct trajectories")


def _did(repeat: RepeatResult, width: int) -> list[Line]:
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
    cost = f"   {spent.cost.in_words}" if spent is not None and is_worth_telling(spent) else ""
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


class MatrixChooser(SearchScreen[StoredMatrix, StoredMatrix]):
    """A dialog for a stored matrix; returns it."""

    box = "#pick-run"
    title_text = "Open matrix"
    placeholder = "type the name of a variant"
    take_word = "open"

    def __init__(self, workbench: Workbench, current: str) -> None:
        super().__init__()
        self.nothing = "Loading runs…"
        self._workbench = workbench
        self._shown = current
        self._matrices: list[StoredMatrix] = []

    def on_mount(self) -> None:
        super().on_mount()
        self.run_worker(self._read(), group="load", exclusive=True)

    async def _read(self) -> None:
        agent = self._workbench.agent
        self._matrices = await asyncio.to_thread(stored_matrices, agent.store, RunKind.of(agent.address))
        self.nothing = "No match" if self._matrices else "No matrix yet"
        if self.is_here:
            self.search_again()

    def find(self, query: str) -> list[StoredMatrix]:
        return [matrix for matrix in self._matrices if has_words(query, title_of(matrix))]

    def match_line(self, match: StoredMatrix, width: int) -> Line:
        left: Line = [
            (f" {show_moment(match.started, datetime.now(UTC)):<14}", "muted"),
            (visible(title_of(match)), ""),
        ]
        shown = "shown  " if match.id == self._shown else ""
        return both_ends(left, [(f"{shown}{counted(len(match.logs), 'variant')} ", "muted")], width)

    def result_of(self, match: StoredMatrix) -> StoredMatrix:
        return match


_WIDEST = 400
# Seconds. Who goes through the cells looks at none for longer than this: nothing is read meanwhile.
_PAUSE = 0.15
_TICK = 1.0
# Actions that need a matrix.
_OF_A_VARIANT = frozenset(
    (
        "open",
        "compare",
        "set_base",
        "run_more",
        "next_repeat",
        "previous_repeat",
        "next_item",
        "previous_item",
        "sort_matrix",
        "only_differing",
    )
)

Both = tuple[CellResult | None, CellResult | None]


class MatrixScreen(FramedScreen[RunTarget | None], inherit_bindings=False):
    """The matrix screen; returns the run and the case that the user opens."""

    BINDINGS = bindings(Scope.MATRIX)
    AUTO_FOCUS = "#matrix-rows"
    tab, scope = MATRIX, Scope.MATRIX
    tabs = ((MATRIX, "V", "Matrix"),)

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self.view = MatrixView()
        self._both: tuple[object, Both] = (None, (None, None))
        self._extent: object = None
        self._is_reading = False
        self._repeated = False

    def parts(self) -> Iterator[Widget]:
        yield MatrixHeads(self.view, lambda: self.rows.columns, id="matrix-heads")
        yield HorizontalRule(id="matrix-rule")
        yield MatrixRows(self.view, id="matrix-rows")

    def below(self) -> Iterator[Widget]:
        yield PaneFrame(
            PageLines(self._write_cells, can_focus=False, indent=0, widest=_WIDEST, id="matrix-cells"),
            id="matrix-both",
        )

    def status(self) -> Status:
        return Verdict(self.workbench, self.view, id="matrix-status")

    def on_mount(self) -> None:
        super().on_mount()
        self.action_reload()
        self.set_interval(_TICK, self._read_again)

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.call_after_refresh(self.draw_around)

    # Reading

    def action_reload(self) -> None:
        self.run_worker(self._read(None), group="matrix", exclusive=True)

    def _read_again(self) -> None:
        """Reads the matrix again when its runs continue, or others start."""
        before, self._repeated = self._repeated, self.workbench.repeats_more
        if before and not self._repeated:
            self.action_reload()
        elif not self._is_reading:
            self.run_worker(self._read_more(), group="look", exclusive=True)

    async def _read_more(self) -> None:
        if await asyncio.to_thread(extent_of, self.workbench.agent.store, self.view.opened) != self._extent:
            self.action_reload()

    async def _read(self, stored: StoredMatrix | None) -> None:
        """Reads the chosen matrix, else the shown one again, else the newest one."""
        self._is_reading = True
        try:
            agent = self.workbench.agent
            opened, extent = await asyncio.to_thread(
                read_matrix, agent.store, RunKind.of(agent.address), stored, self.view.opened
            )
        except (OSError, ValueError) as error:
            opened, self.view.note = None, [(f"! {visible(str(error))}", "error")]
        else:
            self._extent, self.view.note = extent, [] if opened else NONE_YET
        finally:
            self._is_reading = False
        if self.is_here:
            self._show(opened)

    def _show(self, opened: OpenMatrix | None) -> None:
        self.view.show(opened)
        self._show_rows()

    def _show_rows(self) -> None:
        self.rows.show()
        self.follow()

    # Drawing

    @on(CursorLines.Moved)
    def follow(self) -> None:
        """Reads the current cell and that of the base."""
        row, opened = self.rows.current, self.view.opened
        if opened is not None and isinstance(row, Row):
            key = opened, row.case, self.view.column
            if self._both[0] != key:
                self.view.repeat = None
                self._both = key, (None, None)
                self.run_worker(self._read_cells(opened, row.case), group="cells", exclusive=True)
        self.draw_around()

    async def _read_cells(self, opened: OpenMatrix, case: CaseId) -> None:
        await asyncio.sleep(_PAUSE)
        key, places = self._both[0], (opened.matrix.base, self.view.column)
        cells = [await asyncio.to_thread(cell_result, opened, place, case) for place in places]
        if self._both[0] == key and self.is_here:
            self._both = key, (cells[0], cells[1])
            self.query_one("#matrix-cells", PageLines).write_page()
            # The footer has the repeats.
            self.draw_frame()

    def draw_around(self) -> None:
        for page in self.query(PageLines):
            page.write_page()
        self.rows.refresh()
        self.draw_frame()

    def draw_frame(self) -> None:
        super().draw_frame()
        row = self.rows.current
        name = f"{visible(row.eval_set_id)} › {visible(row.case.eval_id)}" if isinstance(row, Row) else "Case"
        tab = Tab("cells", "", name, None, active=True)
        self.query_one("#matrix-both", PaneFrame).show((tab,), [], focused=False)

    @property
    def rows(self) -> MatrixRows:
        return self.query_one(MatrixRows)

    def where(self) -> Line:
        if self.view.opened is None:
            return []
        return where_line(self.view.opened.matrix, self.view.order, differing=self.view.differing)

    def other_tab(self) -> None:
        """Does nothing: there is only one tab."""

    def _write_cells(self, page: Page) -> None:
        row = self.rows.current
        if self.view.opened is not None and isinstance(row, Row):
            height = self.query_one("#matrix-cells").size.height
            write_cells(page, self.view, self._both[1], height)

    # Actions

    def action_close(self) -> None:
        self.dismiss(None)

    def action_step_item(self, step: int) -> None:
        self.view.step(step, self.rows.room)
        self.variant_changed()

    @on(VariantClicked)
    def variant_changed(self) -> None:
        """Another variant is the current one."""
        if self.view.order == "pass rate":
            self.rows.show()
        self.follow()

    def refusal(self, action_id: str) -> str | None:
        if reason := super().refusal(action_id):
            return reason
        if action_id == "choose_matrix":
            return self.view.refusal() if self.view.note is NONE_YET else None
        if action_id not in _OF_A_VARIANT:
            return None
        if reason := self.view.refusal(besides_base=action_id in ("compare", "set_base")):
            return reason
        return self._refusal_of_row(action_id)

    def footer_word(self, action: Action) -> str:
        if action.id == "next_repeat" and (result := self._result) is not None:
            return f"repeat {self.view.repeat_of(result) + 1}/{len(result.repeats)}"
        return super().footer_word(action)

    def _refusal_of_row(self, action_id: str) -> str | None:
        row, opened = self.rows.current, self.view.opened
        if action_id in ("next_repeat", "previous_repeat"):
            result = self._result
            if result is None:
                return "No result in this variant"
            return None if len(result.repeats) > 1 else "One repeat"
        if action_id == "run_more":
            return "No case selected" if row is None else self.workbench.runs.refuses_to_run()
        if action_id == "open" and isinstance(row, Row) and opened is not None:
            if row.cells[self.view.column].case is None:
                return f"{row.case.eval_id} has no result in {opened.matrix.name(self.view.column)}"
            return self.workbench.outcomes.refuses_to_open()
        return "No case selected" if action_id == "open" and row is None else None

    @property
    def _result(self) -> CaseResult | None:
        """The result of the current case in the current variant, else in the base, as far as it was read."""
        return next((cell.result for cell in reversed(self._both[1]) if cell and cell.result), None)

    def action_step_repeat(self, step: int) -> None:
        if (result := self._result) is not None:
            self.workbench.say(self.view.step_repeat(step, result))
        self.draw_around()

    def action_run_more(self) -> None:
        row, view = self.rows.current, self.view
        if (opened := view.opened) is None:
            return
        cases, named = view.cases_of(row)
        log, name = opened.stored.logs[view.column], opened.matrix.name(view.column)
        title = f"{named} in {name}"

        def run(text: str) -> None:
            self.workbench.more_repeats.start(log.path, cases, int(text), title)
            self._repeated = self.workbench.repeats_more

        hint = "How many more runs; those that there are stay"
        ask(self, PromptScreen(dialog_name("run_more"), "5", runs_problem, hint, title), run)

    def action_set_base(self) -> None:
        self.view.set_base()
        self._show_rows()

    def action_sort_matrix(self) -> None:
        self.view.sort()
        self._show_rows()

    def action_only_differing(self) -> None:
        self.view.differing = not self.view.differing
        self._show_rows()

    @on(CursorLines.Opened)
    def action_open(self) -> None:
        row = self.rows.current
        if self.refuse("open") or (opened := self.view.opened) is None:
            return
        if isinstance(row, SetTitle):
            self.view.fold(row.path)
            self._show_rows()
        elif isinstance(row, Row):
            side = side_of(opened, self.view.column)
            self.dismiss(RunTarget(side.path, side.title, row.case, row.eval_set_id))

    def action_compare(self) -> None:
        """Both runs, at the current case."""
        if (opened := self.view.opened) is None:
            return
        row, places = self.rows.current, (opened.matrix.base, self.view.column)
        sides = Sides(*(side_of(opened, place) for place in places))
        screen = ComparisonScreen(self.workbench, sides, row.case if isinstance(row, Row) else None)
        ask(self, screen, lambda chosen: self.dismiss(RunTarget(*chosen)))

    def action_choose_matrix(self) -> None:
        def show(stored: StoredMatrix) -> None:
            self.run_worker(self._read(stored), group="matrix", exclusive=True)

        ask(self, MatrixChooser(self.workbench, self.view.opened.stored.id if self.view.opened else ""), show)
