"""Offers the unsaved edits of an earlier sitting that did not end in order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from evaltui.files.journal import Recovered
from evaltui.text.lines import Line, wrap
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.panes.bars import Status
from evaltui.tui.widgets.cursor_lines import CursorLines
from evaltui.tui.widgets.hints import Hint, Hints, moves
from evaltui.tui.widgets.one_line import OneLine, rule
from evaltui.workbench.actions import Scope
from evaltui.workbench.recovery import Recovery
from evaltui.workbench.workbench import Workbench


class RecoveryScreen(DialogScreen[None], inherit_bindings=False):
    """Restores at once; throws away when it is closed, so that a wrong key costs nothing."""

    BINDINGS = bindings(Scope.VERSIONS)
    AUTO_FOCUS = "RecoveryRows"

    def __init__(self, workbench: Workbench, found: list[Recovered]) -> None:
        super().__init__()
        self._workbench = workbench
        self._recovery = Recovery(workbench.editing, found, workbench.say)

    def compose(self) -> ComposeResult:
        with Vertical(id="recovery"):
            yield RecoveryTitle(len(self._recovery.offers))
            yield RecoveryRows(self._recovery)
            yield Status(self._workbench, id="recovery-status")
            yield Hints(self._workbench, self._hints)

    def _hints(self) -> list[Hint]:
        marked = self.rows.current in self._recovery.thrown_away
        word = "keep it" if marked else "throw away"
        leave = "decide later" if self._recovery.open else "close"
        return [Hint("decide", "restore"), Hint("throw_away", word), Hint("leave_open", leave)]

    @property
    def rows(self) -> RecoveryRows:
        return self.query_one(RecoveryRows)

    def action_decide(self) -> None:
        self._restore()
        self._draw()

    def action_throw_away(self) -> None:
        self._recovery.throw_away(self.rows.current)
        self._draw()

    def action_leave_open(self) -> None:
        self._leave()

    def _restore(self) -> None:
        if self._recovery.restore(self.rows.current):
            if len(self._recovery.restored) == len(self._recovery.offers):
                self._leave()
            else:
                self.rows.go_to_open()

    def _leave(self) -> None:
        self._recovery.finish()
        self.dismiss()

    def _draw(self) -> None:
        self.rows.refresh()
        for line in self.query(OneLine):
            line.refresh()

    def on_recovery_rows_moved(self) -> None:
        self._draw()

    def on_recovery_rows_opened(self) -> None:
        self.action_decide()


class RecoveryTitle(OneLine):
    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def line(self, width: int) -> Line:
        files = "1 file" if self._count == 1 else f"{self._count} files"
        title: Line = [("Unsaved changes of an earlier sitting", "bold"), (f"  {files}", "dim")]
        return rule(title, [], width, heavy=True)


class _Shown(NamedTuple):
    line: Line
    offer: int
    head: bool = False


class RecoveryRows(CursorLines, can_focus=True, inherit_bindings=False):
    """Of each file: its name, when it was edited last, what was done, and what has become of it."""

    BINDINGS = moves()

    class Moved(Message):
        """Another file is the current one."""

    class Opened(Message):
        """The user wants to restore the current file."""

    def __init__(self, recovery: Recovery) -> None:
        super().__init__()
        self._recovery = recovery
        self._shown: list[_Shown] = []
        # What has become of the files is looked up once, not for every line that is drawn.
        self._files = [offer.file for offer in recovery.offers]
        self._now = datetime.now(UTC)

    @property
    def current(self) -> int:
        return self._shown[self.cursor].offer if self._shown else 0

    def on_resize(self) -> None:
        here = self.current
        self._shown = list(self._lines(max(20, self.size.width - 4)))
        self.lines_changed(len(self._shown))
        self._go_to(here)

    def _lines(self, width: int) -> Iterator[_Shown]:
        for number, offer in enumerate(self._recovery.offers):
            if number:
                yield _Shown([], number)
            edits = "1 edit" if offer.edits == 1 else f"{offer.edits} edits"
            yield _Shown([], number, head=True)
            about = f"{offer.ago(self._now)}, {edits}: {', '.join(offer.labels)}; {self._files[number]}"
            for line in wrap([(visible(about), "dim")], width):
                yield _Shown(line, number)

    def line(self, number: int) -> Line:
        shown = self._shown[number]
        here = shown.offer == self.current and (shown.head or bool(shown.line))
        bar = ("▌ " if here else "  ", "accent" if self.has_focus else "dim")
        return [bar, *(self._head(shown.offer) if shown.head else [("  ", ""), *shown.line])]

    def _head(self, number: int) -> Line:
        offer = self._recovery.offers[number]
        if number in self._recovery.restored:
            return [(visible(offer.name), "dim"), ("  restored", "accent")]
        if number in self._recovery.thrown_away:
            return [(visible(offer.name), "dim"), ("  thrown away when you close this", "accent")]
        return [(visible(offer.name), "bold")]

    def line_classes(self, number: int) -> tuple[str, ...]:
        shown = self._shown[number]
        return ("current-line",) if shown.head and shown.offer == self.current else ()

    def open_current(self) -> None:
        self.post_message(self.Opened())

    def move_to(self, number: int) -> None:
        """To the file that this line is about; from a head, one line down is the next file."""
        before = self.current
        number = max(0, min(number, self.line_count - 1))
        offer = self._shown[number].offer
        if offer == before and number > self.cursor:
            offer = min(offer + 1, len(self._recovery.offers) - 1)
        self._go_to(offer)
        if self.current != before:
            self.post_message(self.Moved())

    def go_to_open(self) -> None:
        """To the first file that is not settled, if there is any."""
        settled = self._recovery.restored | self._recovery.thrown_away
        left = [number for number in range(len(self._recovery.offers)) if number not in settled]
        self._go_to(left[0] if left else self.current)

    def _go_to(self, offer: int) -> None:
        heads = [number for number, shown in enumerate(self._shown) if shown.head and shown.offer == offer]
        if heads:
            super().move_to(heads[0])
