"""The screen that compares two stored runs: the cases by kind of change, and both runs of the current
case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

from textual import events, on
from textual.widget import Widget

from evaltui.core.compare.run_comparison import CaseChange, Kind, case_name
from evaltui.core.model.case_id import CaseId
from evaltui.text.lines import Line, draw
from evaltui.text.values import visible
from evaltui.tui.action_screen import bindings, start_work
from evaltui.tui.compare.page import (
    Columns,
    change_heads,
    change_line,
    chip_parts,
    kind_line,
    spent_line,
    write_change,
    write_group,
    write_trajectories,
)
from evaltui.tui.dialogs.framed import COMPARE, FramedScreen
from evaltui.tui.exchange import copy
from evaltui.tui.pane import CopiedText, PaneFrame, Tab
from evaltui.tui.widgets.lines import ActionLine, CursorLines, DrawnLine
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.views.comparison import comparison_lines, moves_scores
from evaltui.workbench.actions import Scope
from evaltui.workbench.messages import RunsRead
from evaltui.workbench.runs.compared_runs import (
    FOLDED_KINDS,
    ComparedRow,
    ComparedRuns,
    KindTitle,
    Reasons,
    Trajectories,
    compare_runs,
    comparison_rows,
    trajectories,
)
from evaltui.workbench.runs.run_list import RunTarget, Sides
from evaltui.workbench.workbench import Workbench

_COPIED_WIDTH = 110
# Lines of two columns can be as wide as the screen.
_MAX_WIDTH = 240
# Seconds. Who goes through the list looks at no case for longer than this: nothing is read meanwhile.
_PAUSE_SECONDS = 0.15
_TICK_SECONDS = 1.0


class ComparisonScreen(FramedScreen[RunTarget | None], inherit_bindings=False):
    """The comparison screen; returns the run and the case that the user opens."""

    BINDINGS = bindings(Scope.COMPARISON)
    SHOWS = (RunsRead,)
    AUTO_FOCUS = "#comparison-rows"
    tab, scope = COMPARE, Scope.COMPARISON

    def __init__(self, workbench: Workbench, sides: Sides, case: CaseId | None = None) -> None:
        """`case` is the first current case."""
        super().__init__(workbench)
        self._base, self._candidate = sides
        self._first = case
        self.compared: ComparedRuns | None = None
        self._extent: object = None
        self._reasons: Reasons | None = None
        # What is said of all cases is found once: there may be thousands.
        self._chips: list[tuple[str, Line]] = []
        self._spent: Line = []
        self._both: tuple[CaseChange, Trajectories | None] | None = None
        self._toggled: set[str] = set()

    def parts(self) -> Iterator[Widget]:
        yield Chips(lambda: self._chips, id="comparison-chips")
        yield DrawnLine(lambda width: self._spent, id="comparison-spent")
        yield DrawnLine(self._heads, id="comparison-heads")
        yield ComparedRows(self, id="comparison-rows")

    def below(self) -> Iterator[Widget]:
        yield PaneFrame(
            BothTrajectories(self._write_case, self._toggle, id="comparison-case"), id="comparison-both"
        )

    def on_mount(self) -> None:
        super().on_mount()
        self._compare()
        self.set_interval(_TICK_SECONDS, self._read_again)

    async def on_unmount(self) -> None:
        await self._end_reading()

    def _compare(self) -> None:
        self.compared = None
        self._chips, self._spent = [("", [("Reading both runs…", "muted")])], []
        self.rows.show(None)
        start_work(self, self._read, None, group="compare")

    def _read_again(self) -> None:
        """Reads both runs again when one of them continues."""
        if self.compared is not None and self.compared.is_unfinished:
            start_work(self, self._read_more, group="look")

    async def _read_more(self) -> None:
        if await asyncio.to_thread(self._extent_now) != self._extent:
            start_work(self, self._read, self.rows.current, group="compare")

    async def _end_reading(self) -> None:
        if self._reasons is not None:
            await self._reasons.close()

    async def _read(self, row: ComparedRow | None) -> None:
        """`row` is the current row afterwards; None for the first case."""
        await self._end_reading()
        self._reasons, self._both = None, None
        try:
            compared, chips, spent = await asyncio.to_thread(self._compare_runs)
            self.compared, self._chips, self._spent = compared, chips, [(" ", ""), *spent]
            self._reasons = Reasons(compared, self.workbench.messages)
        except (OSError, ValueError) as error:
            self._chips = [("", [(f"! {visible(str(error))}", "error")])]
        if self.is_here:
            self.rows.show(self.compared, row.case if isinstance(row, CaseChange) else self._first)
            if isinstance(row, KindTitle):
                self.rows.go_to_kind(row.kind)
            self.follow()

    def _compare_runs(self) -> tuple[ComparedRuns, list[tuple[str, Line]], Line]:
        """In a thread: compares the runs. Raises OSError, ValueError."""
        self._extent = self._extent_now()
        compared = compare_runs(self._base.path, self._candidate.path)
        return compared, list(chip_parts(compared.comparison)), spent_line(compared)

    def _extent_now(self) -> object:
        """In a thread: a value that changes when one of the runs continues."""
        return [side.path.stat().st_mtime_ns for side in (self._base, self._candidate) if side.path.exists()]

    def draw(self) -> None:
        self.rows.refresh()

    @on(CursorLines.Moved)
    def follow(self) -> None:
        change = self.rows.current
        if isinstance(change, CaseChange) and (self._both is None or self._both[0] is not change):
            self._both, self._toggled = (change, None), set()
            start_work(self, self._read_both, change, group="trajectories")
        self.draw_around()

    async def _read_both(self, change: CaseChange) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        if self.compared is not None and self._both is not None and self._both[0] is change:
            self._both = change, await asyncio.to_thread(trajectories, self.compared, change)
            if self.is_here:
                self.draw_around()

    def draw_around(self) -> None:
        self.query_one(BothTrajectories).write_page()
        self.draw_frame()

    def draw_frame(self) -> None:
        super().draw_frame()
        change, where = self.rows.current, []
        if isinstance(change, CaseChange):
            where = [(f"{visible(change.eval_set_id)} › ", "muted"), (visible(change.case.eval_id), "bold")]
        both = self.query_one(BothTrajectories)
        tab = Tab("both", "", "Trajectories", None, active=True)
        frame = self.query_one("#comparison-both", PaneFrame)
        frame.show((tab,), where, focused=both.has_focus)

    @property
    def rows(self) -> ComparedRows:
        return self.query_one(ComparedRows)

    def where(self) -> Line:
        base, candidate = visible(self._base.title), visible(self._candidate.title)
        return [(base, ""), (" → ", "muted"), (candidate, "bold")]

    def other_tab(self) -> None:
        self.action_close()

    def why(self, change: CaseChange) -> str | None:
        return self._reasons.of(change) if self._reasons else None

    def _heads(self, width: int) -> Line:
        shown = self.compared is not None and self.compared.comparison.cases
        return [("    ", ""), *change_heads(self.rows.columns, self.rows.line_width - 5)] if shown else []

    def _write_case(self, page: Page) -> None:
        if self.compared is not None and isinstance(self.rows.current, KindTitle):
            write_group(page, self.compared, self.rows.current.kind)
        if isinstance(change := self.rows.current, CaseChange):
            write_change(page, change)
            if self._both is not None and self._both[0] is change:
                titles = self._base.title, self._candidate.title
                if self._both[1] is None:
                    page.row(("Reading both trajectories…", "muted"))
                else:
                    height = self.query_one(BothTrajectories).size.height
                    write_trajectories(page, self._both[1], titles, height, self._toggled)

    def _toggle(self, key: str) -> None:
        self._toggled ^= {key}
        self.query_one(BothTrajectories).write_page()

    # Actions

    def refusal(self, action_id: str) -> str | None:
        if reason := super().refusal(action_id):
            return reason
        if action_id not in ("open", "copy", "toggle_fold"):
            return None
        if self.compared is None or self.rows.current is None:
            return "Reading both runs…" if self.compared is None else "No cases"
        if action_id == "open" and isinstance(self.rows.current, CaseChange):
            return self.workbench.outcomes.refuses_to_open()
        return None

    def action_step_pane(self, _: int) -> None:
        """Moves to the turns, or back to the cases."""
        both = self.query_one(BothTrajectories)
        self.set_focus(self.rows if both.has_focus else both)

    def on_descendant_focus(self) -> None:
        self.draw_frame()

    def action_toggle_fold(self) -> None:
        self.rows.toggle_fold()
        self.follow()

    def action_go_to_kind(self, kind: Kind) -> None:
        """Goes to a group, by a click on its chip."""
        if self.takes_input:
            self.rows.go_to_kind(kind)

    def action_swap_runs(self) -> None:
        self._base, self._candidate = self._candidate, self._base
        self._compare()

    @on(CursorLines.Opened)
    def action_open(self) -> None:
        row = self.rows.current
        if self.refuse("open"):
            return
        if not isinstance(row, CaseChange):
            self.action_toggle_fold()
        else:
            side = self._candidate if row.candidate is not None else self._base
            self.dismiss(RunTarget(side.path, side.title, row.case, row.eval_set_id))

    def action_copy(self) -> None:
        if self.compared is None:
            return
        lines = comparison_lines(self.compared.comparison, _COPIED_WIDTH)
        text = "".join(f"{draw(line, color=False)}\n" for line in lines)
        self.workbench.say(copy(self.app, self.workbench, CopiedText("the comparison", text)))


class Chips(ActionLine):
    """The number of cases in each group; a click goes there."""

    def __init__(self, chips: Callable[[], Iterable[tuple[str, Line]]], *, id: str) -> None:
        super().__init__(id=id)
        self._chips = chips

    def parts(self, width: int) -> Iterable[tuple[str, Line]]:
        yield "", [(" ", "")]
        yield from self._chips()


class BothTrajectories(PageLines, inherit_bindings=False):
    """Both runs of the current case; a click on a turn folds or opens it."""

    def __init__(self, write: Callable[[Page], object], toggle: Callable[[str], object], *, id: str) -> None:
        super().__init__(write, id=id, widest=_MAX_WIDTH)
        self._toggle = toggle

    def on_click(self, event: events.Click) -> None:
        if key := self.page.folds.get(self.scroll_offset.y + event.y):
            self._toggle(key)


class ComparedRows(CursorLines, can_focus=True, inherit_bindings=False):
    """The groups with their cases; the keys are those of the screen."""

    def __init__(self, screen: ComparisonScreen, *, id: str) -> None:
        super().__init__(id=id)
        self._comparison = screen
        self._folded: set[Kind] = set(FOLDED_KINDS)
        self._rows: list[ComparedRow] = []
        self._longest = 0
        self._optional = {"tokens": False, "costs": False, "scores": False}

    def show(self, compared: ComparedRuns | None, case: CaseId | None = None) -> None:
        changes = compared.comparison.cases if compared else ()
        if changes and all(change.kind in FOLDED_KINDS for change in changes):
            # There is nothing else to see.
            self._folded = set()
        self._longest = max((len(self._id_of(change)) for change in changes), default=0)
        if compared is not None:
            comparison = compared.comparison
            self._optional = {
                "tokens": comparison.tokens is not None,
                "costs": comparison.usd is not None,
                "scores": moves_scores(comparison),
            }
        first = next((change for change in changes if change.case == case), None)
        if first is not None:
            self._folded -= {first.kind}
        self._write()
        # Whoever compares wants to see a case first, not the title above it.
        self.cursor = 1 if len(self._rows) > 1 and isinstance(self._rows[1], CaseChange) else 0
        self.scroll_to(y=0, animate=False)
        if first is not None:
            self.cursor = self._rows.index(first)
            self.call_after_refresh(self.show_line, self.cursor)

    def _write(self) -> None:
        compared = self._comparison.compared
        self._rows = list(comparison_rows(compared.comparison, self._folded)) if compared else []
        self.lines_changed(len(self._rows))

    @property
    def current(self) -> ComparedRow | None:
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    @property
    def columns(self) -> Columns:
        """The columns that there is room for."""
        return Columns.for_width(self.line_width - 5, self._longest, **self._optional)

    def toggle_fold(self) -> None:
        """Folds or opens the group at the cursor, and goes to its title."""
        row = self.current
        if row is None:
            return
        self._folded ^= {row.kind}
        self._write()
        self.go_to_kind(row.kind)

    def go_to_kind(self, kind: Kind) -> None:
        """Goes to the title of a group, which is its first row."""
        self.move_to(next((number for number, row in enumerate(self._rows) if row.kind == kind), 0))

    def _id_of(self, change: CaseChange) -> str:
        compared = self._comparison.compared
        return visible(case_name(change, compared.comparison)) if compared else ""

    def line(self, number: int) -> Line:
        row = self._rows[number]
        marker = ("▌ " if number == self.cursor else "  ", "bold accent")
        if isinstance(row, KindTitle):
            return [marker, *kind_line(row)]
        why = self._comparison.why(row)
        return [
            marker,
            ("  ", ""),
            *change_line(row, self._id_of(row), why, self.columns, self.line_width - 5),
        ]
