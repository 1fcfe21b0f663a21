"""The creation of a starter agent: its framework, and the files before they are written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from evaltui.files.templates import (
    FRAMEWORKS,
    KINDS,
    StarterKind,
    TemplateError,
    create_starter,
    refuses_starter,
    remark_of,
    starter_files,
)
from evaltui.text.lines import Line, pad
from evaltui.text.values import visible
from evaltui.tui.pages.writer import Page
from evaltui.tui.screens.prompt import FormScreen, QuestionNote, QuestionTitle
from evaltui.tui.widgets.choices import ChoiceLine
from evaltui.tui.widgets.lines import ActionLine, PageLines


class StarterScreen(FormScreen):
    """Creates the starter and returns whether it did; nothing is written before `enter`."""

    box = "#starter"
    AUTO_FOCUS = "#starter-kind"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def compose(self) -> ComposeResult:
        with Vertical(id="starter"):
            yield QuestionTitle("Create a starter agent")
            yield ChoiceLine("agent", [FRAMEWORKS[kind] for kind in KINDS], id="starter-kind")
            yield PageLines(self._write, can_focus=False, id="starter-files")
            yield QuestionNote("A scripted model answers offline. Existing files are never overwritten.")
            yield StarterKeys()

    def on_mount(self) -> None:
        self._show_refusal()

    def fields(self) -> Iterable[Widget]:
        return [self.query_one(ChoiceLine)]

    @property
    def _kind(self) -> StarterKind:
        return KINDS[self.query_one(ChoiceLine).chosen]

    def _write(self, page: Page) -> None:
        page.row((f"in {visible(str(self._folder.resolve()))}", "muted"))
        files = starter_files(self._kind)
        width = max(map(len, files))
        for name, text in files.items():
            page.row(("  + ", "success"), (pad(name, width), "bold"), (f"  {remark_of(name, text)}", "muted"))

    @on(ChoiceLine.Changed)
    def _show_refusal(self) -> None:
        self.query_one(PageLines).write_page()
        self.query_one(QuestionNote).show(refuses_starter(self._folder, self._kind))

    def action_form_take(self) -> None:
        try:
            create_starter(self._folder, self._kind)
        except TemplateError as error:
            self.query_one(QuestionNote).show(str(error))
        else:
            self.dismiss(True)


class StarterKeys(ActionLine):
    def parts(self, width: int) -> list[tuple[str, Line]]:
        shown = (
            ("form_take", "enter", "Create"),
            ("form_right", "←→", "Agent"),
            ("form_leave", "esc", "Cancel"),
        )
        return [(one, [(key, "bold accent"), (f" {word}   ", "muted")]) for one, key, word in shown]
