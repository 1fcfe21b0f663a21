"""Two versions of a file, changed here and outside, and the choice between them."""

from __future__ import annotations

from collections.abc import Iterator

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical

from evaltui.core.jsondoc.merge import Choices, Side
from evaltui.core.model.problems import EvalSetError
from evaltui.files.open_file import FileConflict
from evaltui.text.figures import counted
from evaltui.text.lines import Line, cells, cut, with_role
from evaltui.text.syntax import json_line
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.pages.file_versions import VersionRow, both_versions, choices_of, compared
from evaltui.tui.pages.writer import SIDE_BY_SIDE
from evaltui.tui.panes.bars import Status
from evaltui.tui.screens.prompt import Hint, Hints, moves
from evaltui.tui.widgets.lines import CursorLines, DrawnLine, Title
from evaltui.workbench.actions import Scope
from evaltui.workbench.workbench import Workbench

_CHOSEN = {"mine": "mine is kept", "theirs": "theirs is taken", None: "undecided"}


class MergeConflictScreen(DialogScreen[bool], inherit_bindings=False):
    """Decides a clash. Returns whether the file is saved; else it is as it was, here and on disk."""

    BINDINGS = bindings(Scope.VERSIONS)
    AUTO_FOCUS = "VersionsRows"

    def __init__(self, workbench: Workbench, clash: FileConflict) -> None:
        super().__init__()
        self._workbench = workbench
        self._clash = clash

    def compose(self) -> ComposeResult:
        with Vertical(id="versions"):
            yield Title(self._title, self._left)
            yield DrawnLine(_sides)
            yield VersionsRows(self._clash)
            yield Status(self._workbench, id="versions-status")
            yield Hints(self._workbench, self._hints)

    @property
    def rows(self) -> VersionsRows:
        return self.query_one(VersionsRows)

    def _hints(self) -> list[Hint]:
        one = [Hint("keep_mine", "keep mine"), Hint("take_theirs", "take theirs")]
        every = [Hint("keep_all_mine", "all mine"), Hint("take_all_theirs", "all theirs")]
        several = len(self.rows.clashes) > 1
        return [*one, *(every if several else []), Hint("decide", "save"), Hint("leave_open", "later")]

    def _title(self) -> Line:
        where = "here and deleted outside" if self._clash.was_deleted else "here and outside"
        title: Line = [(visible(self._clash.path.name), "bold"), (f" was changed {where}", "")]
        if not self._clash.was_deleted and self._clash.conflict.reason:
            title.append((f": {visible(self._clash.conflict.reason)}", ""))
        return title

    def _left(self) -> Line:
        """How much is still to be decided."""
        rows = self.rows
        left = f"{rows.undecided} of {len(rows.clashes)} undecided" if rows.undecided else "all decided"
        return [(left, "muted")]

    def action_leave_open(self) -> None:
        self.dismiss(False)

    async def action_decide(self) -> None:
        await self._settle()
        self._draw_around()

    action_save = action_decide

    def action_throw_away(self) -> None:
        self._workbench.say("H keeps all of mine, L takes all of theirs: choose one, then save")
        self._draw_around()

    @on(CursorLines.Moved)
    def _draw_around(self) -> None:
        self.query("OneLine").refresh()

    async def _settle(self) -> None:
        rows = self.rows
        if rows.undecided:
            rows.action_next_undecided()
            self._workbench.say(f"{rows.undecided} undecided still: left keeps mine, right takes theirs")
            return
        try:
            saved = await self._workbench.editing.settle(self._clash, rows.choices, rows.whole)
        except (EvalSetError, OSError, ValueError) as error:
            self._workbench.say(f"{self._clash.path.name} is not saved: {error}")
            return
        self.dismiss(saved)


def _sides(width: int) -> Line:
    """What stands on which side."""
    if _is_wide(width):
        half = (width - 3) // 2
        mine = cut([("   mine, unsaved", "muted")], half)
        return [*mine, (" " * (half - cells(mine) + 3), ""), (" theirs, on disk", "muted")]
    return [("   <", "bold"), (" mine, unsaved   ", "muted"), (">", "bold"), (" theirs, on disk", "muted")]


class VersionsRows(CursorLines, can_focus=True, inherit_bindings=False):
    """Every clash with both its versions. The clash that the cursor is in is the one that keys decide."""

    BINDINGS = moves()

    def __init__(self, clash: FileConflict) -> None:
        super().__init__()
        self.clashes = choices_of(clash)
        self._decided: dict[int, Side] = {}
        self._rows: list[VersionRow] = []
        self._wide: bool | None = None

    # What was decided

    @property
    def undecided(self) -> int:
        return len(self.clashes) - len(self._decided)

    @property
    def cases(self) -> dict[str, Side]:
        return self._sides("case")

    @property
    def choices(self) -> Choices:
        return Choices(self.cases, self._sides("member"), self._sides("order of"))

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

    def on_resize(self) -> None:
        wide = _is_wide(self.size.width)
        if wide != self._wide:
            here = self.current
            self._wide = wide
            self._rows = list(self._all_rows())
            self.lines_changed(len(self._rows))
            self._go_to(here)
        else:
            self.lines_changed(len(self._rows))

    def _all_rows(self) -> Iterator[VersionRow]:
        for number, choice in enumerate(self.clashes):
            if number:
                yield VersionRow(number - 1, blank=True)
            yield VersionRow(number, head=True)
            mine, theirs = both_versions(choice.clash)
            for row in compared(number, mine, theirs):
                if self._wide or not row.differs:
                    yield row
                    continue
                # One above the other.
                if row.mine is not None:
                    yield row._replace(theirs=None)
                if row.theirs is not None:
                    yield row._replace(mine=None)

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
            return [bar, (f"    … {counted(row.folded, 'equal line')}", "muted")]
        return [bar, *(self._beside(row) if self._wide else self._stacked(row))]

    def _head(self, number: int) -> Line:
        choice, side = self.clashes[number], self._decided.get(number)
        name: Line = [(f" {choice.kind} ", "muted"), (visible(choice.clash.name), "bold")]
        label = _CHOSEN[side]
        tail: Line = [*_button("keep mine", side == "mine"), *_button("take theirs", side == "theirs")]
        tail += [(f"  {label:<15}", "bold accent" if side else "muted")]
        room = self.size.width - 1 - cells(tail)
        kept = cut(name, max(8, room - 2))
        return [*kept, (" " * max(1, room - cells(kept)), ""), *tail]

    def _beside(self, row: VersionRow) -> Line:
        half = (self.size.width - 3) // 2
        side = self._decided.get(row.choice)
        mark = ("~" if row.differs else " ", "bold")
        left = cut(_side(row, side, "mine"), half - 3)
        right = _side(row, side, "theirs")
        gap = " " * (half - 3 - cells(left) + 1)
        return [mark, (" ", ""), *left, (gap, ""), ("│ ", "muted"), *right]

    def _stacked(self, row: VersionRow) -> Line:
        side = self._decided.get(row.choice)
        if not row.differs:
            return [("    ", ""), (row.mine or "", "muted")]
        of: Side = "mine" if row.mine is not None else "theirs"
        return [("  ", ""), ("<" if of == "mine" else ">", "bold"), (" ", ""), *_side(row, side, of)]

    # Keys and mouse

    def _go_to(self, choice: int) -> None:
        for number, row in enumerate(self._rows):
            if row.choice == choice and row.head:
                # From the end, so that as much of it is seen as there is room for.
                last = max(n for n, one in enumerate(self._rows) if one.choice == choice)
                self.show_line(min(last, number + max(1, self.size.height) - 1))
                self.move_to(number)
                return

    def action_keep_mine(self) -> None:
        self._decide("mine")

    def action_take_theirs(self) -> None:
        self._decide("theirs")

    def _decide(self, side: Side) -> None:
        self._decided[self.current] = side
        self.refresh()
        self.action_next_undecided()
        self.post_message(self.Moved())

    def action_keep_all_mine(self) -> None:
        self._decide_all("mine")

    def action_take_all_theirs(self) -> None:
        self._decide_all("theirs")

    def _decide_all(self, side: Side) -> None:
        self._decided = dict.fromkeys(range(len(self.clashes)), side)
        self.refresh()
        self.post_message(self.Moved())

    def action_next_undecided(self) -> None:
        """To the next clash that is undecided, where there is one."""
        order = [*range(self.current, len(self.clashes)), *range(self.current)]
        left = [number for number in order if number not in self._decided]
        if left:
            self._go_to(left[0])

    def action_next_clash(self) -> None:
        self._go_to((self.current + 1) % len(self.clashes))

    def action_previous_clash(self) -> None:
        self._go_to((self.current - 1) % len(self.clashes))

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number >= len(self._rows):
            return
        super().on_click(event)
        # Textual would hand the click to the class above once more.
        event.prevent_default()
        if not self._rows[number].head:
            return
        tail = self.size.width - sum(map(len, _LABELS)) - 17
        if tail <= event.x < tail + len(_LABELS[0]):
            self._decide("mine")
        elif tail + len(_LABELS[0]) <= event.x < tail + sum(map(len, _LABELS)):
            self._decide("theirs")
        self.post_message(self.Moved())


_LABELS = (" (•) keep mine", " (•) take theirs")


def _button(word: str, chosen: bool) -> Line:
    return [(f" ({'*' if chosen else ' '}) {word}", "bold accent" if chosen else "")]


def _is_wide(width: int) -> bool:
    return width >= SIDE_BY_SIDE


def _side(row: VersionRow, chosen: Side | None, side: Side) -> Line:
    """The line of one side. What is the same or will not be kept has no colours."""
    text = (row.mine if side == "mine" else row.theirs) or ""
    if not row.differs or chosen not in (None, side):
        return [(text, "muted")]
    return with_role("bold", json_line(text))
