"""The dialog for a merge conflict: base, mine and theirs of a file, and the choice between them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partialmethod

from textual import events, on
from textual.app import ComposeResult

from evaltui.core.model.problems import EvalSetError
from evaltui.documents.merge import Choices, Side
from evaltui.documents.open_file import FileConflict
from evaltui.text.figures import counted, show_number
from evaltui.text.lines import Line, cells, cut
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.dialogs.file_versions import (
    NAMES,
    VersionRow,
    choices_of,
    column_width,
    compare_versions,
    join_columns,
    version_lines,
    versions_of,
)
from evaltui.tui.dialogs.prompt import CANCEL, Dialog, DialogKeys, Hint, QuestionNote, move_bindings
from evaltui.tui.widgets.lines import CursorLines, DrawnLine
from evaltui.workbench.actions import Scope
from evaltui.workbench.workbench import Workbench

# Names, note and keys.
_OTHER_ROWS = 4
_SIDES: tuple[Side, ...] = ("mine", "theirs")
# Cells of the dialog from which on the base is shown, and from which on versions are beside each other.
_MIN_WIDTH_WITH_BASE, _MIN_WIDTH_SIDE_BY_SIDE = 132, 84
# Cells before a line where versions are below each other, with the bar.
_STACKED_LABEL = 5


class MergeConflictScreen(DialogScreen[bool], inherit_bindings=False):
    """Settles a conflict. Returns whether the file is saved; else it stays as it is, here and on disk."""

    BINDINGS = bindings(Scope.VERSIONS)
    AUTO_FOCUS = "VersionsRows"

    def __init__(self, workbench: Workbench, clash: FileConflict) -> None:
        super().__init__()
        self._workbench = workbench
        self._clash = clash

    def compose(self) -> ComposeResult:
        file = self._workbench.editing.open_file(self._clash.path)
        base = file.saved.text if file is not None and file.saved is not None else None
        with Dialog("Merge", self._about(), id="versions"):
            yield DrawnLine(lambda width: self.rows.names(), id="versions-names")
            yield VersionsRows(self._clash, base)
            yield QuestionNote()
            yield DialogKeys(self._hints)

    def on_mount(self) -> None:
        self._draw_around()

    def on_resize(self) -> None:
        self.rows.on_resize()

    @property
    def rows(self) -> VersionsRows:
        return self.query_one(VersionsRows)

    def _hints(self) -> list[Hint]:
        several = [Hint("next_difference"), Hint("keep_all_mine"), Hint("take_all_theirs")]
        more = several if len(self.rows.clashes) > 1 else []
        return [Hint("confirm", "merge"), Hint("keep_mine", "choose", "←→"), *more, CANCEL]

    def _about(self) -> Line:
        where = "changed here, deleted outside" if self._clash.was_deleted else "changed here and outside"
        reason = "" if self._clash.was_deleted else self._clash.conflict.reason or ""
        about = f"{where}: {visible(reason)}" if reason else where
        return [(visible(self._clash.path.name), "bold"), (f"  {about}", "muted")]

    @on(CursorLines.Moved)
    def _draw_around(self) -> None:
        self.query_one("#versions-names").refresh()
        rows = self.rows
        left = f"{show_number(rows.undecided)} of {counted(len(rows.clashes), 'conflict')} undecided"
        self.query_one(Dialog).below([(f" {left if rows.undecided else 'all decided'} ", "muted")])
        note = self.query_one(QuestionNote)
        if note.has_class("-problem"):
            note.show(self._undecided())

    def _undecided(self) -> str | None:
        left = self.rows.undecided
        return f"{left} undecided   ← mine   → theirs" if left else None

    async def action_confirm(self) -> None:
        rows, note = self.rows, self.query_one(QuestionNote)
        if rows.undecided:
            rows.action_next_undecided()
            note.show(self._undecided())
            return
        try:
            saved = await self._workbench.editing.settle(self._clash, rows.choices, rows.whole)
        except (EvalSetError, OSError, ValueError) as error:
            note.show(f"{self._clash.path.name} not saved: {error}")
            return
        self.dismiss(saved)


class VersionsRows(CursorLines, can_focus=True, inherit_bindings=False):
    """Every conflict with its versions. Keys choose a version at the cursor."""

    BINDINGS = move_bindings()

    def __init__(self, clash: FileConflict, base: str | None) -> None:
        super().__init__()
        self.clashes = choices_of(clash, base)
        self._decided: dict[int, Side] = {}
        self._rows: list[VersionRow] = []
        self._columns = 0
        self._width = 0

    # What was decided

    @property
    def undecided(self) -> int:
        return len(self.clashes) - len(self._decided)

    @property
    def choices(self) -> Choices:
        return Choices(*map(self._sides, ("case", "member", "order of")))

    @property
    def whole(self) -> Side | None:
        return next(iter(self._sides("file").values()), None)

    def _sides(self, kind: str) -> dict[str, Side]:
        return {
            self.clashes[n].clash.name: side
            for n, side in self._decided.items()
            if self.clashes[n].kind == kind
        }

    @property
    def current(self) -> int:
        return self._rows[self.cursor].choice if self._rows else 0

    # Drawing

    @property
    def _shown_versions(self) -> tuple[str, ...]:
        return ("base", *_SIDES) if self._columns == 3 else _SIDES

    def names(self) -> Line:
        """The names of the columns; without columns, the mark of each version."""
        if self._columns > 1:
            names: list[Line] = [[(NAMES[side], "muted")] for side in self._shown_versions]
            return [(" ", ""), *join_columns(names, self.line_width - 1)]
        return [
            ("  −", "bold"),
            (f" {NAMES['mine']}   ", "muted"),
            ("+", "bold"),
            (f" {NAMES['theirs']}", "muted"),
        ]

    def on_resize(self) -> None:
        width = self.size.width
        columns = 3 if width >= _MIN_WIDTH_WITH_BASE else 2 if width >= _MIN_WIDTH_SIDE_BY_SIDE else 1
        if self.line_width != self._width:
            here = self.current
            self._columns, self._width = columns, self.line_width
            self._rows = list(self._all_rows())
            self.lines_changed(len(self._rows))
            self._go_to(here)
        else:
            self.lines_changed(len(self._rows))
        self.styles.height = min(len(self._rows), self.screen.query_one(Dialog).room(_OTHER_ROWS))

    def _all_rows(self) -> Iterator[VersionRow]:
        for number, choice in enumerate(self.clashes):
            if number:
                yield VersionRow(number - 1, blank=True)
            yield VersionRow(number, head=True)
            for row in compare_versions(number, versions_of(choice.clash)):
                if self._columns < 3 and row.mine is None and row.theirs is None and not row.folded:
                    continue
                if self._columns > 1 or not row.differs:
                    yield from self._wrapped(row)
                    continue
                # One above the other.
                if row.mine is not None:
                    yield from self._wrapped(row._replace(theirs=None))
                if row.theirs is not None:
                    yield from self._wrapped(row._replace(mine=None))

    def _wrapped(self, row: VersionRow) -> Iterator[VersionRow]:
        """The row, once for each of its wrapped lines."""
        sides = [side for side in self._shown_versions if side in row.by_side]
        lines = max((len(version_lines(row, side, None, self._room)) for side in sides), default=1)
        return (row._replace(part=number) for number in range(lines))

    @property
    def _room(self) -> int:
        """The cells of a version's line for which the rows were built."""
        if self._columns == 1:
            return self._width - _STACKED_LABEL
        return column_width(self._columns, self._width - 1)

    def row_role(self, number: int) -> str:
        row = self._rows[number]
        return "current" if row.head and row.choice == self.current else ""

    def line(self, number: int) -> Line:
        row = self._rows[number]
        here = row.choice == self.current
        bar = ("▌" if here else " ", "bold accent" if self.has_focus else "muted")
        if row.blank:
            return []
        if row.head:
            return [bar, *self._head(row.choice)]
        if row.folded:
            return [bar, (f"  … {counted(row.folded, 'equal line')}", "faint")]
        return [bar, *(self._beside(row) if self._columns > 1 else self._stacked(row))]

    def _head(self, number: int) -> Line:
        choice, chosen = self.clashes[number], self._decided.get(number)
        name: Line = [(f" {choice.kind} ", "muted"), (visible(choice.clash.name), "bold")]
        filled = "chip" if number == self.current and self.has_focus else "bold sel"
        chips: Line = [(f" {side} ", filled if side == chosen else "") for side in _SIDES]
        tail: Line = [*([] if chosen else [("undecided  ", "warning")]), *chips]
        room = self.line_width - 1 - cells(tail)
        shown = cut(name, max(8, room - 2))
        return [*shown, (" " * max(1, room - cells(shown)), ""), *tail]

    def _beside(self, row: VersionRow) -> Line:
        chosen = self._decided.get(row.choice)
        wrapped = [version_lines(row, side, chosen, self._room) for side in self._shown_versions]
        parts = [lines[row.part] if row.part < len(lines) else [] for lines in wrapped]
        mark = ("≠", "warning") if row.differs and not row.part else ("", "")
        return join_columns(parts, self.line_width - 1, mark)

    def _stacked(self, row: VersionRow) -> Line:
        chosen = self._decided.get(row.choice)
        side = "mine" if row.mine is not None else "theirs"
        mark = " " if not row.differs or row.part else "−" if side == "mine" else "+"
        line = version_lines(row, side, chosen, self._room)[row.part]
        return [("  ", ""), (mark, "bold"), (" ", ""), *line]

    # Keys and mouse

    def _go_to(self, choice: int) -> None:
        for number, row in enumerate(self._rows):
            if row.choice == choice and row.head:
                # From the end, so that as much of it is seen as there is room for.
                last = max(n for n, row in enumerate(self._rows) if row.choice == choice)
                self.show_line(min(last, number + max(1, self.size.height) - 1))
                self.move_to(number)
                return

    def _decide(self, side: Side) -> None:
        self._decided[self.current] = side
        self.refresh()
        self.action_next_undecided()
        self.post_message(self.Moved())

    def _decide_all(self, side: Side) -> None:
        self._decided = dict.fromkeys(range(len(self.clashes)), side)
        self.refresh()
        self.post_message(self.Moved())

    action_keep_mine = partialmethod(_decide, "mine")
    action_take_theirs = partialmethod(_decide, "theirs")
    action_keep_all_mine = partialmethod(_decide_all, "mine")
    action_take_all_theirs = partialmethod(_decide_all, "theirs")

    def action_next_undecided(self) -> None:
        """Goes to the next undecided conflict, if there is one."""
        order = [*range(self.current, len(self.clashes)), *range(self.current)]
        left = [number for number in order if number not in self._decided]
        if left:
            self._go_to(left[0])

    def action_step_difference(self, step: int) -> None:
        self._go_to((self.current + step) % len(self.clashes))

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number >= len(self._rows):
            return
        super().on_click(event)
        # Textual would hand the click to the class above once more.
        event.prevent_default()
        if self._rows[number].head:
            left = self.line_width
            for side in reversed(_SIDES):
                right, left = left, left - len(side) - 2
                if left <= event.x < right:
                    self._decide(side)
