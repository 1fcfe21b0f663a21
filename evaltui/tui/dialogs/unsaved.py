"""Unsaved changes: on leaving, and those of an earlier session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult

from evaltui.documents.recovery import Recovered
from evaltui.files.folders import short_path
from evaltui.text.figures import counted, show_moment, show_number
from evaltui.text.lines import Line, cells, pad, wrap
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.dialogs.prompt import (
    CANCEL,
    Dialog,
    DialogKeys,
    FormScreen,
    Hint,
    QuestionNote,
    dialog_name,
    moves,
)
from evaltui.tui.widgets.lines import CursorLines
from evaltui.tui.widgets.page_lines import PageLines
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.actions import Scope
from evaltui.workbench.files.recovery import Recovery
from evaltui.workbench.workbench import Workbench

_MOST_CASES = 8
# Characters of a text from which its first words are shown.
_SHOWN = 500
# Rows of the notes, the keys, and blank ones between them.
_FILES_OTHER_ROWS, _RECOVERY_OTHER_ROWS = 3, 4


class UnsavedScreen(DialogScreen[str | None], inherit_bindings=False):
    """Returns `save`, `discard`, or None: cancelled. `typed` is what stands in a field below this screen."""

    BINDINGS = bindings(Scope.LEAVING)
    AUTO_FOCUS = "UnsavedFiles"
    box = "#unsaved"

    def __init__(self, workbench: Workbench, typed: str = "") -> None:
        super().__init__()
        self._workbench = workbench
        self._typed = typed

    def compose(self) -> ComposeResult:
        with Dialog(dialog_name("quit"), [(self._about(), "muted")], id="unsaved"):
            yield UnsavedFiles(self._write_files, indent=0, id="unsaved-files")
            yield QuestionNote()
            save = [Hint("save_and_leave", "save and quit")] if self._has_files else []
            yield DialogKeys(lambda: [*save, Hint("discard_and_leave", "discard and quit"), CANCEL])

    @property
    def _has_files(self) -> bool:
        """Whether there is anything that a save can write."""
        return bool(self._workbench.editing.unsaved() or self._workbench.draft)

    def on_resize(self) -> None:
        self.query_one(UnsavedFiles).write_page()

    def action_save_and_leave(self) -> None:
        if self._has_files:
            self.dismiss("save")
        else:
            self.query_one(QuestionNote).show("Nothing to save")

    def action_discard_and_leave(self) -> None:
        self.dismiss("discard")

    def action_close(self) -> None:
        self.dismiss(None)

    def _about(self) -> str:
        count = len(self._workbench.editing.unsaved())
        return f"{counted(count, 'file')} with unsaved changes" if count else "typed text is not saved"

    def _write_files(self, page: Page) -> None:
        """The files, and which of their cases were changed."""
        for path in self._workbench.editing.unsaved():
            page.row(
                ("● ", "warning"),
                (visible(path.name), "bold"),
                (f"  {visible(path.parent.name)}", "muted"),
            )
            page.block([(", ".join(self._changed(path)), "muted")], 2)
        if (draft := self._workbench.draft) is not None:
            where = f"  typed, not in the {draft.noun}"
            page.row(("! ", "error"), (visible(draft.name), "bold"), (where, ""))
            text = " ".join(draft.text[:_SHOWN].split())[:60]
            page.block([(visible(f"{text} ({draft.problem})" if draft.problem else text), "muted")], 2)
        if self._typed:
            page.row(("! ", "error"), ("Typed in the open dialog, not saved", "bold"))
            page.block([(visible(self._typed.strip()[:60]), "muted")], 2)
        if self._workbench.is_running:
            run = self._workbench.runs.current
            name = f"Run {run.number}" if run is not None and not run.over else "A run"
            page.blank()
            page.text([(f"{name} is in progress; quitting cancels it", "")])

    def _changed(self, path: Path) -> Iterator[str]:
        file = self._workbench.editing.open_file(path)
        if file is not None and file.saved is None:
            yield "new file"
        eval_set = self._workbench.sets.by_path(path)
        dirty = self._workbench.editing.dirty_cases(path)
        ordered = sorted(dirty)
        if eval_set is not None:
            ordered = [case.eval_id for case in eval_set.cases if case.eval_id in dirty]
        yield from map(visible, ordered[:_MOST_CASES])
        if len(ordered) > _MOST_CASES:
            yield f"and {show_number(len(ordered) - _MOST_CASES)} more"
        if eval_set is None:
            yield "criteria"
        elif not ordered:
            yield "name of the set, or its cases"


class UnsavedFiles(PageLines, inherit_bindings=False):
    """The files, as many of them as there is room for."""

    BINDINGS = moves()

    def write_page(self) -> None:
        super().write_page()
        self.styles.height = min(self.line_count, self.screen.query_one(Dialog).room(_FILES_OTHER_ROWS))


class RecoveryScreen(FormScreen):
    """Recovers or discards what an earlier session left, once that is confirmed."""

    box = "#recovery"
    AUTO_FOCUS = "RecoveryRows"

    def __init__(self, workbench: Workbench, found: list[Recovered]) -> None:
        super().__init__()
        self._workbench = workbench
        self._recovery = Recovery(workbench, found)

    def compose(self) -> ComposeResult:
        files = counted(len(self._recovery.offers), "file")
        with Dialog("Recover", [(f"unsaved changes of an earlier session, {files}", "muted")], id="recovery"):
            yield RecoveryRows(self._recovery)
            yield QuestionNote("Recovered changes stay unsaved; undo reverts them.")
            yield DialogKeys(
                lambda: [
                    Hint("confirm", "apply"),
                    Hint("line_down", "file", "↑↓"),
                    Hint("next_item", "choose", "←→"),
                    CANCEL,
                ]
            )

    def on_resize(self) -> None:
        self.rows.on_resize()

    @property
    def rows(self) -> RecoveryRows:
        return self.query_one(RecoveryRows)

    def fields(self) -> list[RecoveryRows]:
        return [self.rows]

    def action_step_field(self, step: int) -> None:
        self.rows.action_step_line(step)

    def action_step_item(self, step: int) -> None:
        self._recovery.step(self.rows.current, step)
        self.rows.refresh()

    async def action_confirm(self) -> None:
        if await self._recovery.apply():
            self.dismiss(True)
        elif self._workbench.notice is not None:
            self.query_one(QuestionNote).show(self._workbench.notice.text)
        self.rows.refresh()


class _Shown(NamedTuple):
    line: Line
    offer: int
    head: bool = False


class RecoveryRows(CursorLines, can_focus=True, inherit_bindings=False):
    """Of each file: its name, what is done with it, when and how it was edited, and what has become of it."""

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
        room = self.screen.query_one(Dialog).room(_RECOVERY_OTHER_ROWS)
        self.styles.height = min(len(self._shown), room)
        self.lines_changed(len(self._shown))
        self._go_to(here)

    def _lines(self, width: int) -> Iterator[_Shown]:
        for number, offer in enumerate(self._recovery.offers):
            if number:
                yield _Shown([], number)
            yield _Shown([], number, head=True)
            when = show_moment(offer.recovered.when, self._now)
            folder = short_path(offer.recovered.path.parent)
            about = f"in {folder}: {when}, {offer.changes}; {self._files[number]}"
            for line in wrap([(visible(about), "muted")], width):
                yield _Shown(line, number)

    def line(self, number: int) -> Line:
        shown = self._shown[number]
        here = shown.offer == self.current and (shown.head or bool(shown.line))
        bar = ("▌ " if here else "  ", "bold accent" if self.has_focus else "muted")
        return [bar, *(self._head(shown.offer) if shown.head else [("  ", ""), *shown.line])]

    def _name_width(self) -> int:
        return min(max(cells([(visible(offer.name), "")]) for offer in self._recovery.offers), 32)

    def _head(self, number: int) -> Line:
        offer, chosen = self._recovery.offers[number], self._recovery.choices[number]
        name: Line = [(pad(visible(offer.name), self._name_width()), "bold"), ("  ", "")]
        if self._recovery.is_recovered(number):
            return [*name, ("✓ recovered", "success")]
        filled = "chip" if number == self.current and self.has_focus else "bold sel-blur"
        return [*name, *((f" {one} ", filled if one == chosen else "muted") for one in offer.choices)]

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

    def _go_to(self, offer: int) -> None:
        heads = [number for number, shown in enumerate(self._shown) if shown.head and shown.offer == offer]
        if heads:
            super().move_to(heads[0])

    def on_click(self, event: events.Click) -> None:
        """A click on a choice chooses it."""
        number = self.scroll_offset.y + event.y
        super().on_click(event)
        # Textual would hand the click to the class above once more.
        event.prevent_default()
        if number >= len(self._shown) or not self._shown[number].head:
            return
        offer, left = self._shown[number].offer, event.x - self._name_width() - 4
        choices = self._recovery.offers[offer].choices
        for place, choice in enumerate(choices):
            if 0 <= left < len(choice) + 2:
                self._recovery.step(offer, place - choices.index(self._recovery.choices[offer]))
            left -= len(choice) + 2
        self.refresh()
