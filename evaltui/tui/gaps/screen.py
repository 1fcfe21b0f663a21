"""The screen of gaps of eval sets: a list of them, and the current one below."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from textual import on
from textual.widget import Widget

from evaltui.core.gaps.cells import Cell
from evaltui.core.gaps.gaps import Gap
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.edits import EditError
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.text.figures import counted, short_list
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import ask, bindings, start_work
from evaltui.tui.dialogs.framed import GAPS, FramedScreen
from evaltui.tui.dialogs.relax import DraftScreen
from evaltui.tui.gaps.page import Columns, headline_line, note_line, row_line, write_details
from evaltui.tui.pane import PaneFrame, Tab
from evaltui.tui.widgets.lines import CursorLines, DrawnLine
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.views.gaps import changed_part
from evaltui.workbench.actions import Action, Scope
from evaltui.workbench.gaps.rows import (
    CellRow,
    ChangeRow,
    CursorRow,
    GapsRow,
    GapsView,
    GroupRow,
    Heading,
    KindRow,
    NoteRow,
)
from evaltui.workbench.gaps.search import ChangedConversation, Gaps
from evaltui.workbench.messages import GapsFound
from evaltui.workbench.workbench import Workbench

# Lines of two columns can be as wide as the screen.
_MAX_WIDTH = 240
# Seconds. Who goes through the list looks at no change for longer than this: nothing is read meanwhile.
_PAUSE_SECONDS = 0.15


class GapRows(CursorLines, can_focus=True, inherit_bindings=False):
    """Kinds of changes, cells and reasons, with what is in open ones; the keys are those of the screen."""

    def __init__(self, gaps: Gaps, view: GapsView, *, id: str) -> None:
        super().__init__(id=id)
        self._gaps = gaps
        self._view = view
        self._rows: list[GapsRow] = []
        self._places: list[int] = []
        """The rows that the cursor goes to."""
        self._columns = Columns.of((), 0)
        self._was_moved = False

    @property
    def current(self) -> CursorRow | None:
        row = self._rows[self.cursor] if self.cursor < len(self._rows) else None
        return None if isinstance(row, Heading) else row

    def show(self, key: object = None) -> None:
        """Shows the rows of now; the cursor goes to the row with a key, else it stays with its row once it
        was moved."""
        current = self.current if self._was_moved else None
        key = key or (current.key if current else None)
        report = self._gaps.report
        self._rows = [] if report is None else self._view.rows(report, is_running=self._gaps.is_running)
        self._columns = Columns.of(self._rows, self.line_width - 2)
        keys = {
            place: row.key
            for place, row in enumerate(self._rows)
            if row is not None and not isinstance(row, Heading)
        }
        self._places = [*keys]
        cursor = self.cursor if self._was_moved else 0
        near = min(keys, key=lambda place: abs(place - cursor), default=0)
        self.cursor = next((place for place, other in keys.items() if other == key), near)
        self.lines_changed(len(self._rows))
        self._show_cursor()

    def on_resize(self) -> None:
        """Fits the columns again."""
        self.show()

    def move_to(self, number: int) -> None:
        """Moves the cursor, skipping headings and empty lines."""
        self._was_moved = True
        if not self._places:
            return
        if number < self.cursor:
            number = max((place for place in self._places if place <= number), default=self._places[0])
        else:
            number = min((place for place in self._places if place >= number), default=self._places[-1])
        super().move_to(number)
        self._show_cursor()

    def _show_cursor(self) -> None:
        self.show_line(self.cursor)
        if self.cursor in self._places[:1]:
            # The first heading is seen with the first row.
            self.show_line(0)

    def step_into(self) -> None:
        """Goes to the first row in an open one."""
        self.move_to(self.cursor + 1)

    def line(self, number: int) -> Line:
        row = self._rows[number]
        if row is None:
            return []
        return [self.marker(number), *row_line(row, self._columns, self.line_width - 2)]


class GapsScreen(FramedScreen[str | None], inherit_bindings=False):
    """The gaps of eval sets.

    Returns "cases" where these were filtered to those of a cell, and "case" where one was added for a cell.
    """

    BINDINGS = bindings(Scope.GAPS)
    SHOWS = (GapsFound,)
    AUTO_FOCUS = "#gaps-rows"
    tab, scope = GAPS, Scope.GAPS
    tabs = ((GAPS, "M", "Gaps"),)

    def __init__(self, workbench: Workbench, paths: Sequence[Path]) -> None:
        """`paths` are the files of the sets."""
        super().__init__(workbench)
        self.gaps = workbench.gaps
        self.view = GapsView()
        self._paths = tuple(paths)
        self._changed: tuple[Gap | None, ChangedConversation | str | None] = None, None
        self._was_opened = False
        self._described: object = None

    def parts(self) -> Iterator[Widget]:
        yield DrawnLine(lambda width: [(" ", ""), *headline_line(self.gaps, width - 2)], id="gaps-headline")
        yield PageLines(self._write_note, can_focus=False, id="gaps-note")
        yield GapRows(self.gaps, self.view, id="gaps-rows")

    def below(self) -> Iterator[Widget]:
        yield PaneFrame(PageLines(self._write_details, widest=_MAX_WIDTH, id="gaps-details"), id="gaps-both")

    def on_mount(self) -> None:
        super().on_mount()
        gaps = self.gaps
        if gaps.paths != self._paths or gaps.stale or (gaps.report is None and not gaps.is_running):
            gaps.search(self._paths)
        self._show()

    def on_unmount(self) -> None:
        self.gaps.cancel()

    # Drawing

    def draw(self) -> None:
        if self._draws_all:
            self._show()
        else:
            self.draw_frame()

    def _show(self) -> None:
        """Shows the gaps of now; once all are found, the kind with most of them is opened."""
        self.rows.show()
        row = self.rows.current
        if isinstance(row, KindRow) and not self._was_opened and not self.gaps.is_running:
            self._was_opened = True
            self.view.open(row)
            self.rows.show()
        self.set_class(bool(note_line(self.gaps)), "-noted")
        self.query_one("#gaps-note", PageLines).write_page()
        self.set_class(row is None, "-empty")
        if row is None and self.is_reading:
            self._read(on=False)
        self.follow()

    @on(CursorLines.Moved)
    def follow(self) -> None:
        """Reads the conversation of the current change."""
        row = self.rows.current
        if isinstance(row, ChangeRow) and self._changed[0] is not row.gap:
            self._changed = row.gap, None
            start_work(self, self._read_change, row.gap, group="change")
        if row is not None and row.key != self._described:
            self._described = row.key
            self.details.scroll_home(animate=False)
        self.draw_around()

    async def _read_change(self, gap: Gap) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        if self._changed[0] is not gap:
            return
        changed: ChangedConversation | str | None
        try:
            changed = await asyncio.to_thread(self.gaps.changed, gap)
        except (OSError, ValueError) as error:
            changed = f"Run log unreadable: {error}"
        if self._changed[0] is gap and self.is_here:
            self._changed = gap, changed or "No longer in the run"
            self.draw_around()

    def draw_around(self) -> None:
        self.details.write_page()
        self.rows.refresh_changed()
        self.draw_frame()

    def draw_frame(self) -> None:
        super().draw_frame()
        row = self.rows.current
        title = "Details"
        if isinstance(row, ChangeRow):
            title = row.kind.kind[0].upper() + row.kind.kind[1:]
        elif isinstance(row, CellRow):
            title = row.cell.kind.capitalize()
        tab = Tab("details", "", title, None, active=True)
        self.query_one("#gaps-both", PaneFrame).show((tab,), self._place(), focused=self.is_reading)

    def _place(self) -> Line:
        """The place of the current change: `lights › hello   turn 2`."""
        row = self.rows.current
        if not isinstance(row, ChangeRow):
            return []
        eval_set, name, part = visible(row.gap.eval_set_id), visible(row.gap.eval_id), changed_part(row.gap)
        return [(f"{eval_set} › ", "muted"), (name, "bold"), (f"   {part}", "muted")]

    def _write_note(self, page: Page) -> None:
        page.text(note_line(self.gaps))

    def _write_details(self, page: Page) -> None:
        if (row := self.rows.current) is not None:
            write_details(page, self.gaps, row, self._changed[1])

    @property
    def rows(self) -> GapRows:
        return self.query_one(GapRows)

    @property
    def details(self) -> PageLines:
        return self.query_one("#gaps-details", PageLines)

    @property
    def _sets(self) -> list[EvalSetFile]:
        return [eval_set for eval_set in self.workbench.sets.listed if eval_set.path in self._paths]

    @property
    def _set_for_cases(self) -> Path:
        """The file that gets new cases: that of the selected set, else of the first one."""
        selected = self.workbench.navigation.file
        return selected if selected is not None and selected in self._paths else self._paths[0]

    @property
    def is_reading(self) -> bool:
        """Whether the details have the focus."""
        return self.details.has_focus

    def where(self) -> Line:
        if self.is_reading and (place := self._place()):
            return place
        names = short_list([visible(eval_set.eval_set_id) for eval_set in self._sets])
        report = self.gaps.report
        kinds = [kind for kind in report.kinds if kind.gaps] if report else []
        if not kinds:
            return [(names, "muted")]
        gaps = counted(sum(len(kind.gaps) for kind in kinds), "gap")
        return [(names, "muted"), (f"   {gaps}", "bold"), (f"  {counted(len(kinds), 'kind')}", "muted")]

    def other_tab(self) -> None:
        """Does nothing: there is only one tab."""

    # Actions

    def refusal(self, action_id: str) -> str | None:
        if reason := super().refusal(action_id):
            return reason
        row = self.rows.current
        if action_id == "open" and isinstance(row, CellRow):
            if self.gaps.is_running:
                return "Search in progress"
            return None if row.cell.reached else "No case reaches it"
        if action_id in ("open", "unfold", "fold", "next_pane", "previous_pane") and row is None:
            return "No gaps yet"
        if action_id in ("draft", "toggle_meant_so"):
            return self._refuses_to_edit(action_id, row)
        if action_id == "open" and (self.is_reading or isinstance(row, NoteRow)):
            return "Nothing more to show"
        return None

    def _refuses_to_edit(self, action_id: str, row: CursorRow | None) -> str | None:
        if self.gaps.is_running:
            return "Search in progress"
        if action_id == "draft" and isinstance(row, CellRow):
            return self.workbench.gap_drafts.refuses_case(row.cell)
        if not isinstance(row, ChangeRow):
            return "Select a change" if action_id != "draft" else "Select a change or a cell"
        if action_id == "draft" and row.is_meant_so:
            return "Meant so, not counted"
        return self.workbench.editing.refuses_to_edit(self.workbench.sets.file_of(row.gap.path))

    def footer_word(self, action: Action) -> str:
        row = self.rows.current
        if action.id == "toggle_meant_so" and isinstance(row, ChangeRow) and row.is_meant_so:
            return "count again"
        if action.id == "reload":
            return "search again"
        if action.id == "open":
            is_open = isinstance(row, GroupRow) and row.is_open
            word = "show cases" if isinstance(row, CellRow) else "fold" if is_open else "open"
            return "read" if isinstance(row, ChangeRow) else word
        if action.id == "close" and self.is_reading:
            return "back"
        return super().footer_word(action)

    @on(CursorLines.Opened)
    def action_open(self) -> None:
        row = self.rows.current
        if self.refuse("open"):
            return
        if isinstance(row, CellRow):
            self.gaps.show_cases(Cell(row.cell.kind, row.cell.name))
            self.dismiss("cases")
        elif isinstance(row, GroupRow) and row.is_open:
            self.action_fold()
        else:
            self.action_unfold()

    def action_unfold(self) -> None:
        """Opens a row; goes into an open one; reads a change."""
        row = self.rows.current
        if isinstance(row, ChangeRow):
            self._read(on=True)
        elif isinstance(row, GroupRow) and row.is_open:
            self.rows.step_into()
        elif isinstance(row, GroupRow):
            self.view.open(row)
            self._show_at(row.key)

    def action_fold(self) -> None:
        """Leaves a change; closes the row, or the one that it is in."""
        row = self.rows.current
        if self.is_reading:
            self._read(on=False)
        elif row is not None and (key := getattr(row, "inside", row.key)) is not None:
            self.view.close(key)
            self._show_at(key)

    def _show_at(self, key: object) -> None:
        self.rows.show(key)
        self.follow()

    def _read(self, *, on: bool) -> None:
        """Gives the focus to the details, and on a low screen all of it; or to the list."""
        self.set_class(on, "-reading")
        self.set_focus(self.details if on else self.rows)

    def on_descendant_focus(self) -> None:
        self.set_class(self.is_reading, "-reading")
        self.draw_frame()

    def action_step_pane(self, _: int) -> None:
        """Moves to the details, or back to the list."""
        self._read(on=not self.is_reading)

    def action_reload(self) -> None:
        """Searches again, with the edits and runs of now."""
        self.gaps.search(self._paths)

    def action_draft(self) -> None:
        """Offers the drafts for the current change, which are proven first; for a cell adds a case."""
        row = self.rows.current
        if isinstance(row, ChangeRow):
            start_work(self, self._offer_drafts, row, group="draft")
        elif isinstance(row, CellRow) and self.workbench.gap_drafts.add_case(row.cell, self._set_for_cases):
            self.dismiss("case")

    async def _offer_drafts(self, row: ChangeRow) -> None:
        try:
            drafting = await self.workbench.gap_drafts.of(row.kind, row.gap)
        except (EditError, EvalSetError, OSError, ValueError) as error:
            self.workbench.say(str(error))
            return
        was_stale = bool(self.gaps.stale)

        def search(accepted: bool) -> None:
            if accepted and drafting.is_searched_alone and not was_stale:
                start_work(self, self._search_case, row.gap, group="draft")
            elif accepted:
                self.gaps.search(self._paths)

        if self.is_here:
            ask(self, DraftScreen(self.workbench, drafting), search)

    async def _search_case(self, gap: Gap) -> None:
        try:
            await self.gaps.search_case(gap)
        except (EvalSetError, OSError, ValueError) as error:
            self.workbench.say(str(error))

    def action_toggle_meant_so(self) -> None:
        """Marks the current change as meant so, or removes its mark."""
        row = self.rows.current
        if isinstance(row, ChangeRow):
            self.workbench.gap_drafts.toggle_meant_so(row.kind, row.gap)

    def action_save(self) -> None:
        self.workbench.editing.save_all()

    def action_undo(self) -> None:
        """Undoes the last change, and searches again."""
        self.workbench.editing.undo()
        self.gaps.search(self._paths)

    def action_redo(self) -> None:
        """Redoes the last undone change, and searches again."""
        self.workbench.editing.redo()
        self.gaps.search(self._paths)

    def action_run(self) -> None:
        """Runs the sets."""
        sets = self._sets
        cases = [CaseId(each.case_path, case.eval_id) for each in sets for case in each.cases]
        title = sets[0].eval_set_id if len(sets) == 1 else counted(len(sets), "set")
        self.workbench.runs.run_cases(title, cases)

    def action_close(self) -> None:
        if self.is_reading:
            self._read(on=False)
        else:
            self.dismiss(None)
