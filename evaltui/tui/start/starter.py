"""The creation of a starter agent: its framework, and the files before they are written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from textual import on
from textual.app import ComposeResult
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
from evaltui.tui.dialogs.prompt import CANCEL, Dialog, DialogKeys, FormScreen, Hint, QuestionNote, dialog_name
from evaltui.tui.widgets.choices import LABEL, ChoiceLine
from evaltui.tui.widgets.page_lines import PageLines
from evaltui.tui.widgets.writer import Page


class StarterScreen(FormScreen):
    """Creates the starter and returns whether it did; nothing is written before `enter`."""

    box = "#starter"
    AUTO_FOCUS = "#starter-kind"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def compose(self) -> ComposeResult:
        folder: Line = [(visible(str(self._folder.resolve())), "muted")]
        with Dialog(dialog_name("create_starter"), folder, id="starter"):
            yield ChoiceLine("framework", [FRAMEWORKS[kind] for kind in KINDS], id="starter-kind")
            yield PageLines(self._write, can_focus=False, indent=0, id="starter-files")
            yield QuestionNote("A scripted model answers offline. Existing files are never overwritten.")
            yield DialogKeys(
                lambda: [
                    Hint("confirm", "create"),
                    Hint("next_item", "framework", "←→"),
                    CANCEL,
                ]
            )

    def on_mount(self) -> None:
        self._show_refusal()

    def fields(self) -> Iterable[Widget]:
        return [self.query_one(ChoiceLine)]

    @property
    def _kind(self) -> StarterKind:
        return KINDS[self.query_one(ChoiceLine).chosen]

    def _write(self, page: Page) -> None:
        files = starter_files(self._kind)
        width = max(map(len, files))
        for name, text in files.items():
            label = "creates" if not page.lines else ""
            head: Line = [(f"{label:{LABEL}}", "muted"), ("+ ", "success"), (pad(name, width), "bold")]
            page.row(*head, (f"  {remark_of(name, text)}", "muted"))

    @on(ChoiceLine.Changed)
    def _show_refusal(self) -> None:
        self.query_one(PageLines).write_page()
        self.query_one(QuestionNote).show(refuses_starter(self._folder, self._kind))

    def action_confirm(self) -> None:
        try:
            create_starter(self._folder, self._kind)
        except TemplateError as error:
            self.query_one(QuestionNote).show(str(error))
        else:
            self.dismiss(True)
