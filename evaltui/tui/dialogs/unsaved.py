"""Unsaved changes: on leaving, and those of an earlier session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

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
    DialogPage,
    FormScreen,
    Hint,
    QuestionNote,
    dialog_name,
    move_bindings,
)
from evaltui.tui.widgets.lines import CursorLines
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.actions import Scope
from evaltui.workbench.workbench import Workbench

# The labels that say best what it was about.
_MAX_LABELS = 3
# Characters of a text from which its first words are shown.
_SHOWN_CHARACTERS = 500
Choice = Literal["recover", "later", "discard"]
CHOICES: tuple[Choice, ...] = ("recover", "later", "discard")


def _start_of(text: str) -> str:
    """The first words of a typed text."""
    return " ".join(text[:_SHOWN_CHARACTERS].split())[:60]


def changes_of(recovered: Recovered) -> str:
    """The changes in words: `2 edits: rename a to b, delete c`, and a text that was not applied."""
    changes = []
    if recovered.labels:
        labels = [*dict.fromkeys(reversed(recovered.labels))][:_MAX_LABELS]
        changes.append(f"{counted(len(recovered.labels), 'edit')}: {', '.join(labels)}")
    if draft := recovered.draft:
        changes.append(f"1 text not applied in {draft.case or recovered.name}: {_start_of(draft.text)}")
    return "; ".join(changes)


def file_of(recovered: Recovered) -> str:
    """The state of the file, in words."""
    if recovered.matches:
        return "file unchanged"
    if recovered.path.exists():
        merges = ": both are merged, conflicts are shown" if recovered.labels else ""
        return f"file changed since{merges}"
    return "file deleted since: a save creates it again"


class Recovery:
    """The unsaved changes of files, the latest first, with the choice for each; nothing is done before
    `apply`."""

    def __init__(self, workbench: Workbench, recovered: list[Recovered]) -> None:
        self._workbench = workbench
        self.offers = sorted(recovered, key=lambda changes: changes.when, reverse=True)
        paths = [offer.path for offer in self.offers]
        self.choices: list[Choice] = [
            "later" if path in paths[:number] else "recover" for number, path in enumerate(paths)
        ]
        """The choice for each offer. Of several sessions with one file, the latest is recovered."""
        self.recovered: set[int] = set()
        """The offers whose changes are recovered."""

    def step(self, number: int, step: int) -> None:
        """Sets the next (1) or the previous (-1) choice for an offer, unless its changes are recovered."""
        if number not in self.recovered:
            at = CHOICES.index(self.choices[number])
            self.choices[number] = CHOICES[(at + step) % len(CHOICES)]

    async def apply(self) -> bool:
        """Applies the choices. False where changes could not be recovered: they are kept for later then, and
        nothing is discarded yet."""
        to_recover = [number for number, choice in enumerate(self.choices) if choice == "recover"]
        failed = [n for n in to_recover if n not in self.recovered and not await self._recover(n)]
        for number in failed:
            self.choices[number] = "later"
        if failed:
            return False
        discarded = sum(
            self._discard(self.offers[number])
            for number, choice in enumerate(self.choices)
            if choice == "discard"
        )
        done = {"recovered": len(self.recovered), "discarded": discarded}
        if settled := [f"{count} {what}" for what, count in done.items() if count]:
            self._workbench.say(f"Unsaved changes: {', '.join(settled)}")
        return True

    async def _recover(self, number: int) -> bool:
        """Restores the edits as one step that can be undone, and the text of an open field; the file stays
        unsaved."""
        if not await self._workbench.drafting.restore(self.offers[number]):
            return False
        if not self._workbench.editing.recovery_problem:
            self.offers[number].discard()
        self.recovered.add(number)
        return True

    def _discard(self, offer: Recovered) -> bool:
        try:
            offer.discard()
        except OSError as error:
            self._workbench.say(f"{offer.name}: {error}")
            return False
        return True


_MAX_CASES = 8
# Rows of the notes, the keys, and blank ones between them.
_FILES_OTHER_ROWS, _RECOVERY_OTHER_ROWS = 3, 4


class UnsavedScreen(DialogScreen[str | None], inherit_bindings=False):
    """A dialog for unsaved changes; returns `save`, `discard`, or None when cancelled. `typed` is the text of
    an open field below it."""

    BINDINGS = bindings(Scope.LEAVING)
    AUTO_FOCUS = "DialogPage"
    box = "#unsaved"

    def __init__(self, workbench: Workbench, typed: str = "") -> None:
        super().__init__()
        self._workbench = workbench
        self._typed = typed

    def compose(self) -> ComposeResult:
        with Dialog(dialog_name("quit"), [(self._about(), "muted")], id="unsaved"):
            yield DialogPage(self._write_files, lambda: _FILES_OTHER_ROWS)
            yield QuestionNote()
            save = [Hint("save_and_leave", "save and quit")] if self._has_files else []
            yield DialogKeys(lambda: [*save, Hint("discard_and_leave", "discard and quit"), CANCEL])

    @property
    def _has_files(self) -> bool:
        """Whether a save can write any file."""
        return bool(self._workbench.editing.unsaved() or self._workbench.draft)

    def on_resize(self) -> None:
        self.query_one(DialogPage).write_page()

    def action_save_and_leave(self) -> None:
        if self._has_files:
            self.dismiss("save")
        else:
            self.query_one(QuestionNote).show("Nothing to save")

    def action_discard_and_leave(self) -> None:
        self.dismiss("discard")

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
            text = _start_of(draft.text)
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
        yield from map(visible, ordered[:_MAX_CASES])
        if len(ordered) > _MAX_CASES:
            yield f"and {show_number(len(ordered) - _MAX_CASES)} more"
        if eval_set is None:
            yield "criteria"
        elif not ordered:
            yield "name of the set, or its cases"


class RecoveryScreen(FormScreen[bool]):
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


class RecoveryRows(CursorLines, can_focus=True, inherit_bindings=False):
    """The rows of each file: its name, its choice, the time and kind of the edits, and the state of the
    file."""

    BINDINGS = move_bindings()

    def __init__(self, recovery: Recovery) -> None:
        super().__init__()
        self._recovery = recovery
        # The offer of each line, with the text of the line; None for the heading of the offer.
        self._rows: list[tuple[int, Line | None]] = []
        names = (cells([(visible(offer.name), "")]) for offer in recovery.offers)
        self._name_width = min(max(names), 32)
        # What has become of the files is looked up once, not for every line that is drawn.
        now = datetime.now(UTC)
        self._about = [
            f"in {short_path(offer.path.parent)}: {show_moment(offer.when, now)}, {changes_of(offer)}; "
            f"{file_of(offer)}"
            for offer in recovery.offers
        ]

    @property
    def current(self) -> int:
        return self._rows[self.cursor][0] if self._rows else 0

    def on_resize(self) -> None:
        here = self.current
        self._rows = []
        for number, about in enumerate(self._about):
            lines: list[Line | None] = [[]] if number else []
            lines += [None, *wrap([(visible(about), "muted")], max(20, self.size.width - 4))]
            self._rows += [(number, line) for line in lines]
        self.styles.height = min(len(self._rows), self.screen.query_one(Dialog).room(_RECOVERY_OTHER_ROWS))
        self.lines_changed(len(self._rows))
        self.move_to(self._rows.index((here, None)))

    def line(self, number: int) -> Line:
        offer, line = self._rows[number]
        here = offer == self.current and line != []
        bar = ("▌ " if here else "  ", "bold accent" if self.has_focus else "muted")
        return [bar, *(self._head(offer) if line is None else [("  ", ""), *line])]

    def _head(self, number: int) -> Line:
        name = visible(self._recovery.offers[number].name)
        head: Line = [(pad(name, self._name_width), "bold"), ("  ", "")]
        if number in self._recovery.recovered:
            return [*head, ("✓ recovered", "success")]
        filled = "chip" if number == self.current and self.has_focus else "bold sel-blur"
        chosen = self._recovery.choices[number]
        return [*head, *((f" {choice} ", filled if choice == chosen else "muted") for choice in CHOICES)]

    def row_role(self, number: int) -> str:
        return "current" if self._rows[number] == (self.current, None) else ""

    def move_to(self, number: int) -> None:
        """Goes to the file of a line; from a heading, one line down is the next file."""
        number = max(0, min(number, self.line_count - 1))
        offer = self._rows[number][0]
        if offer == self.current and number > self.cursor:
            offer = min(offer + 1, len(self._about) - 1)
        super().move_to(self._rows.index((offer, None)))

    def on_click(self, event: events.Click) -> None:
        """Sets a choice by a click."""
        number = self.scroll_offset.y + event.y
        super().on_click(event)
        # Textual would hand the click to the class above once more.
        event.prevent_default()
        if number >= len(self._rows) or self._rows[number][1] is not None:
            return
        offer, left = self._rows[number][0], event.x - self._name_width - 4
        for place, choice in enumerate(CHOICES):
            if 0 <= left < len(choice) + 2:
                self._recovery.step(offer, place - CHOICES.index(self._recovery.choices[offer]))
            left -= len(choice) + 2
        self.refresh()
