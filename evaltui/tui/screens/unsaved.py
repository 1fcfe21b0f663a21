"""Unsaved changes: on leaving, and those of an earlier session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from evaltui.files.journal import Recovered
from evaltui.text.figures import counted, show_moment
from evaltui.text.lines import Line, pad, wrap
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.pages.writer import Page
from evaltui.tui.panes.bars import Status
from evaltui.tui.screens.prompt import Hint, Hints, moves
from evaltui.tui.widgets.choices import ChoiceList
from evaltui.tui.widgets.lines import CursorLines, PageLines, Title
from evaltui.workbench.actions import BY_ID, Scope, keys_of
from evaltui.workbench.keymap import key_name
from evaltui.workbench.recovery import Recovery
from evaltui.workbench.workbench import Workbench

_MOST_CASES = 8
# What is returned, what it is called, and the action whose key does it at once.
_CHOICES: tuple[tuple[str | None, str, str], ...] = (
    ("save", "Save all and leave", "save"),
    ("discard", "Throw the changes away and leave", "throw_away"),
    (None, "Stay", "leave_open"),
)


class UnsavedScreen(DialogScreen[str | None], inherit_bindings=False):
    """Returns `save`, `discard`, or None: stay. `typed` is what stands in a field below this screen."""

    BINDINGS = bindings(Scope.VERSIONS)
    AUTO_FOCUS = "UnsavedChoices"

    def __init__(self, workbench: Workbench, typed: str = "") -> None:
        super().__init__()
        self._workbench = workbench
        self._typed = typed

    def compose(self) -> ComposeResult:
        with Vertical(id="unsaved"):
            yield Title(self._title)
            yield PageLines(self._write_files, can_focus=False, id="unsaved-files")
            yield UnsavedChoices(len(_CHOICES), self._choice_line, at_once=True)
            yield Hints(self._workbench, lambda: [Hint("decide", "do it"), Hint("leave_open", "stay")])

    @on(ChoiceList.OptionSelected)
    def action_decide(self) -> None:
        self.dismiss(_CHOICES[self.query_one(ChoiceList).current][0])

    def action_save(self) -> None:
        self.dismiss("save")

    def action_throw_away(self) -> None:
        self.dismiss("discard")

    def action_leave_open(self) -> None:
        self.dismiss(None)

    def _title(self) -> Line:
        count = len(self._workbench.editing.unsaved())
        files = f"{counted(count, 'file')} not saved"
        return [(files if count else "What is typed is in no file yet", "bold")]

    def _choice_line(self, number: int, is_current: bool) -> Line:
        _, title, action = _CHOICES[number]
        key = key_name(keys_of(BY_ID[action], self._workbench)[0])
        return [
            ("▌ " if is_current else "  ", "bold accent"),
            (pad(title, 36), "bold" if is_current else ""),
            (key, "muted"),
        ]

    def _write_files(self, page: Page) -> None:
        """The files, and which of their cases were changed."""
        for path in self._workbench.editing.unsaved():
            page.row(
                ("● ", "bold accent"),
                (visible(path.name), "bold"),
                (f"  {visible(path.parent.name)}", "muted"),
            )
            page.block([(", ".join(self._changed(path)), "muted")], 2)
        for left in self._workbench.editing.unapplied.now():
            file = self._workbench.sets.file_of(left.path)
            where = visible(left.case.eval_id if left.case else file.name)
            page.row(("! ", "error"), (where, "bold"), ("  typed, not in the case, so not saved:", ""))
            page.block([(visible(str(left)), "muted")], 2)
        if self._typed:
            page.row(("! ", "error"), ("Typed in the open dialog, saved nowhere:", ""))
            page.block([(visible(self._typed.strip()[:60]), "muted")], 2)
        if self._workbench.runs.current is not None and self._workbench.runs.is_running:
            page.blank()
            page.text([(f"Run {self._workbench.runs.current.number} is not over: leaving cancels it.", "")])

    def _changed(self, path: Path) -> Iterator[str]:
        file = self._workbench.editing.open_file(path)
        if file is not None and file.saved is None:
            yield "a new file"
        eval_set = self._workbench.sets.by_path(path)
        dirty = self._workbench.editing.dirty_cases(path)
        ordered = sorted(dirty)
        if eval_set is not None:
            ordered = [case.eval_id for case in eval_set.cases if case.eval_id in dirty]
        yield from map(visible, ordered[:_MOST_CASES])
        if len(ordered) > _MOST_CASES:
            yield f"{len(ordered) - _MOST_CASES} more cases"
        if eval_set is None:
            yield "the criteria"
        elif not ordered:
            yield "the set itself: its name, or which cases it has"


class UnsavedChoices(ChoiceList, can_focus=True, inherit_bindings=False):
    """An answer per line."""

    BINDINGS = moves()


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
            yield Title(self._title)
            yield RecoveryRows(self._recovery)
            yield Status(self._workbench, id="recovery-status")
            yield Hints(self._workbench, self._hints)

    def _title(self) -> Line:
        files = counted(len(self._recovery.offers), "file")
        return [("Unsaved changes of an earlier sitting", "bold"), (f"  {files}", "muted")]

    def _hints(self) -> list[Hint]:
        marked = self.rows.current in self._recovery.thrown_away
        word = "keep it" if marked else "throw away"
        leave = "decide later" if self._recovery.open else "close"
        return [Hint("decide", "restore"), Hint("throw_away", word), Hint("leave_open", leave)]

    @property
    def rows(self) -> RecoveryRows:
        return self.query_one(RecoveryRows)

    @on(CursorLines.Opened)
    async def action_decide(self) -> None:
        if await self._recovery.restore(self.rows.current):
            if len(self._recovery.restored) == len(self._recovery.offers):
                self.action_leave_open()
            else:
                self.rows.go_to_open()
        self._draw()

    def action_throw_away(self) -> None:
        self._recovery.throw_away(self.rows.current)
        self._draw()

    def action_leave_open(self) -> None:
        self._recovery.finish()
        self.dismiss()

    @on(CursorLines.Moved)
    def _draw(self) -> None:
        self.rows.refresh()
        self.query("OneLine").refresh()


class _Shown(NamedTuple):
    line: Line
    offer: int
    head: bool = False


class RecoveryRows(CursorLines, can_focus=True, inherit_bindings=False):
    """Of each file: its name, when it was edited last, what was done, and what has become of it."""

    BINDINGS = moves()

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
            yield _Shown([], number, head=True)
            done = f"{counted(offer.edits, 'edit')}: {', '.join(offer.labels)}"
            about = f"{show_moment(offer.recovered.when, self._now)}, {done}; {self._files[number]}"
            for line in wrap([(visible(about), "muted")], width):
                yield _Shown(line, number)

    def line(self, number: int) -> Line:
        shown = self._shown[number]
        here = shown.offer == self.current and (shown.head or bool(shown.line))
        bar = ("▌ " if here else "  ", "bold accent" if self.has_focus else "muted")
        return [bar, *(self._head(shown.offer) if shown.head else [("  ", ""), *shown.line])]

    def _head(self, number: int) -> Line:
        offer = self._recovery.offers[number]
        if number in self._recovery.restored:
            return [(visible(offer.name), "muted"), ("  restored", "bold accent")]
        if number in self._recovery.thrown_away:
            return [(visible(offer.name), "muted"), ("  thrown away when you close this", "bold accent")]
        return [(visible(offer.name), "bold")]

    def row_role(self, number: int) -> str:
        shown = self._shown[number]
        return "current" if shown.head and shown.offer == self.current else ""

    def move_to(self, number: int) -> None:
        """To the file that this line is about; from a head, one line down is the next file."""
        number = max(0, min(number, self.line_count - 1))
        offer = self._shown[number].offer
        if offer == self.current and number > self.cursor:
            offer = min(offer + 1, len(self._recovery.offers) - 1)
        self._go_to(offer)

    def go_to_open(self) -> None:
        """To the first file that is not settled, if there is any."""
        settled = self._recovery.restored | self._recovery.thrown_away
        left = [number for number in range(len(self._recovery.offers)) if number not in settled]
        self._go_to(left[0] if left else self.current)

    def _go_to(self, offer: int) -> None:
        heads = [number for number, shown in enumerate(self._shown) if shown.head and shown.offer == offer]
        if heads:
            super().move_to(heads[0])
