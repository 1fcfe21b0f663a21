"""The conversion of a file of an old format, shown before it is written to a file of its own."""

from __future__ import annotations

import json
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Input

from evaltui.files.eval_sets import migrated_text
from evaltui.tui.pages.writer import Page, write_json, write_problems
from evaltui.tui.screens.prompt import (
    QuestionInput,
    QuestionKeys,
    QuestionNote,
    QuestionScreen,
    QuestionTitle,
)
from evaltui.tui.textual_private import once
from evaltui.tui.widgets.lines import PageLines
from evaltui.workbench import converting
from evaltui.workbench.workbench import Workbench

# Seconds without a key after which the text is written anew.
_PAUSE = 0.15


class ConvertScreen(QuestionScreen[None]):
    """Asks for the name of the new file; nothing is written before `enter`."""

    box = "#convert"

    def __init__(self, workbench: Workbench, old: Path) -> None:
        super().__init__()
        self._workbench = workbench
        self._old = old
        self._eval_set, self._problems = converting.converted(old)
        self._new = old.parent / converting.name_for_converted(old)
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        can_be_done = self._eval_set is not None
        with Vertical(id="convert"):
            yield QuestionTitle(f"{self._old.name} as an eval set of today")
            # Scrolled from the field, where there is one.
            yield PageLines(self._write, can_focus=not can_be_done, id="converted")
            if can_be_done:
                yield QuestionInput(self._new.name)
                yield QuestionNote(f"the name of the new file; {self._old.name} stays as it is")
            yield QuestionKeys(*(("take",) if can_be_done else ()), "leave_question", "answers_down")

    def on_input_changed(self, event: Input.Changed) -> None:
        """The text is shown as that of the file that is named, soon: to colour a long one takes a while."""
        problem = self._problem
        self.query_one(QuestionNote).show(problem)
        if self._timer is not None:
            self._timer.stop()
        if problem is None:
            self._new = self._old.parent / self._wanted
            self._timer = once(self, _PAUSE, self.answers.write_page)

    @property
    def _wanted(self) -> str:
        return self.query_one(QuestionInput).value.strip()

    @property
    def _problem(self) -> str | None:
        return converting.converted_name_problem(self._workbench.editing, self._old, self._wanted)

    @property
    def answers(self) -> PageLines:
        return self.query_one(PageLines)

    def _write(self, page: Page) -> None:
        """The text of the new file, or why there is none."""
        if self._eval_set is None:
            page.text([("This file has to be mended before it can be converted.", "bold")])
            page.blank()
        write_problems(page, self._problems, self._old)
        page.blank()
        if self._eval_set is not None:
            write_json(page, json.loads(migrated_text(self._eval_set, self._new)), 0)

    async def action_take(self) -> None:
        if self._eval_set is None:
            return
        if problem := self._problem:
            self.query_one(QuestionNote).show(problem)
            return
        new, workbench = self._old.parent / self._wanted, self._workbench
        if await converting.convert(workbench.editing, self._eval_set, new, workbench.say):
            self.dismiss()
