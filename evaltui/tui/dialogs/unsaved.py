"""Unsaved changes: on leaving, and those of an earlier session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from textual import events
from textual.app import ComposeResult

from evaltui.documents.recovery import Recovered
from evaltui.project.folders import short_path
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
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.workbench import Workbench

# The labels that say best what it was about.
_MOST_LABELS = 3
# Characters of a text from which its first words are shown.
_SHOWN = 500
Choice = Literal["recover", "discard", "later"]


@dataclass(frozen=True)
class Offer:
    """The unsaved changes of one file. `labels` are the last steps, the latest first, without repeats."""

    recovered: Recovered
    labels: tuple[str, ...]

    @classmethod
    def of(cls, recovered: Recovered) -> Offer:
        labels = dict.fromkeys(reversed(recovered.labels))
        return cls(recovered, tuple(labels)[:_MOST_LABELS])

    @property
    def name(self) -> str:
        return self.recovered.name

    @property
    def changes(self) -> str:
        """The changes in words: `2 edits: rename a to b, delete c`, and a text that was not applied."""
        changes = []
        if edits := len(self.recovered.labels):
            changes.append(f"{counted(edits, 'edit')}: {', '.join(self.labels)}")
        if draft := self.recovered.draft:
            text = " ".join(draft.text[:_SHOWN].split())[:60]
            changes.append(f"1 text not applied in {draft.case or self.name}: {text}")
        return "; ".join(changes)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The possible choices, the default first."""
        return ("recover", "later", "discard")

    @property
    def file(self) -> str:
        """The state of the file, in words."""
        if self.recovered.matches:
            return "file unchanged"
        if self.recovered.path.exists():
            merges = ": both are merged, conflicts are shown" if self.recovered.labels else ""
            return f"file changed since{merges}"
        return "file deleted since: a save creates it again"


class Recovery:
    """The offers with the choice for each; nothing is done before `apply`."""

    def __init__(self, workbench: Workbench, recovered: list[Recovered]) -> None:
        self._workbench = workbench
        self.offers = [
            Offer.of(changes) for changes in sorted(recovered, key=lambda changes: changes.when, reverse=True)
        ]
        """The latest first."""
        self.choices: list[Choice] = []
        """The choice for each offer. Of several sessions with one file, the latest is recovered."""
        for number, offer in enumerate(self.offers):
            again = any(earlier.recovered.path == offer.recovered.path for earlier in self.offers[:number])
            self.choices.append("later" if again else offer.choices[0])
        self._recovered: set[int] = set()

    def step(self, number: int, step: int) -> None:
        """Sets the next (1) or the previous (-1) choice for an offer, unless its changes are recovered."""
        if number not in self._recovered:
            choices = self.offers[number].choices
            at = choices.index(self.choices[number])
            self.choices[number] = choices[(at + step) % len(choices)]

    def is_recovered(self, number: int) -> bool:
        return number in self._recovered

    async def apply(self) -> bool:
        """Applies the choices. False where changes could not be recovered: they are kept for later then, and
        nothing is discarded yet."""
        to_recover = [number for number, choice in enumerate(self.choices) if choice == "recover"]
        failed = [n for n in to_recover if n not in self._recovered and not await self._recover(n)]
        for number in failed:
            self.choices[number] = "later"
        if failed:
            return False
        discarded = sum(
            self._discard(number) for number, choice in enumerate(self.choices) if choice == "discard"
        )
        done = {"recovered": len(self._recovered), "discarded": discarded}
        if settled := [f"{count} {what}" for what, count in done.items() if count]:
            self._workbench.say(f"Unsaved changes: {', '.join(settled)}")
        return True

    async def _recover(self, number: int) -> bool:
        """Restores the edits as one step that can be undone, and the text of an open field; the file stays
        unsaved."""
        recovered = self.offers[number].recovered
        if not await self._workbench.drafting.restore(recovered):
            return False
        if not self._workbench.editing.recovery_problem:
            recovered.discard()
        self._recovered.add(number)
        return True

    def _discard(self, number: int) -> bool:
        try:
            self.offers[number].recovered.discard()
        except OSError as error:
            self._workbench.say(f"{self.offers[number].name}: {error}")
            return False
        return True


_MOST_CASES = 8
# Rows of the notes, the keys, and blank ones between them.
_FILES_OTHER_ROWS, _RECOVERY_OTHER_ROWS = 3, 4


class UnsavedScreen(DialogScreen[str | None], inherit_bindings=False):
    """A dialog for unsaved changes; returns `save`, `discard`, or None when cancelled. `typed` is the text of
    an open field below it."""

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
        """Whether a save can write any file."""
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
        """Writes the files, and which of their cases were changed."""
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
    """The files, as many of them as fit."""

    BINDINGS = moves()

    def write_page(self) -> None:
        super().write_page()
        self.styles.height = min(self.line_count, self.screen.query_one(Dialog).room(_FILES_OTHER_ROWS))


class RecoveryScreen(FormScreen):
    """A dialog that recovers or discards the unsaved changes of an earlier session."""

    box = "#recovery"
    AUTO_FOCUS = "RecoveryRows"

    def __init__(self, workbench: Workbench, recovered: list[Recovered]) -> None:
        super().__init__()
        self._workbench = workbench
        self._recovery = Recovery(workbench, recovered)

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
        elif self._workbench.messages.notice is not None:
            self.query_one(QuestionNote).show(self._workbench.messages.notice.text)
        self.rows.refresh()


class _Shown(NamedTuple):
    line: Line
    offer: int
    head: bool = False


class RecoveryRows(CursorLines, can_focus=True, inherit_bindings=False):
    """The rows of each file: its name, its choice, the time and kind of the edits, and the state of the
    file."""

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
        return [
            *name,
            *((f" {choice} ", filled if choice == chosen else "muted") for choice in offer.choices),
        ]

    def row_role(self, number: int) -> str:
        shown = self._shown[number]
        return "current" if shown.head and shown.offer == self.current else ""

    def move_to(self, number: int) -> None:
        """Goes to the file of a line; from a heading, one line down is the next file."""
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
        """Sets a choice by a click."""
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
