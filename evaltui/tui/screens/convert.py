"""What a file of an old format becomes, before it is written to a file of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Input

from evaltui.core.model.problems import Problem
from evaltui.files.eval_sets import migrated_text
from evaltui.text.lines import Line
from evaltui.tui.pages.writer import Page, write_json, write_problems
from evaltui.tui.screens.prompt import (
    QuestionInput,
    QuestionKeys,
    QuestionNote,
    QuestionScreen,
    QuestionTitle,
)
from evaltui.tui.textual_private import once
from evaltui.tui.widgets.lines import ScrolledLines
from evaltui.workbench import converting
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalSet


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
        self._soon: Timer | None = None

    def compose(self) -> ComposeResult:
        name = converting.name_for_converted(self._old)
        can_be_done = self._eval_set is not None
        with Vertical(id="convert"):
            yield QuestionTitle(f"{self._old.name} as an eval set of today")
            yield ConvertedLines(self._eval_set, self._problems, self._old, self._old.parent / name)
            if can_be_done:
                yield QuestionInput(name)
                yield QuestionNote(f"the name of the new file; {self._old.name} stays as it is")
            yield QuestionKeys(*(("take",) if can_be_done else ()), "leave_question", "answers_down")

    def on_input_changed(self, event: Input.Changed) -> None:
        """The text is shown as that of the file that is named, soon: to colour a long one takes a while."""
        problem = self._problem
        self.query_one(QuestionNote).show(problem)
        if self._soon is not None:
            self._soon.stop()
        if problem is None:
            lines = self.query_one(ConvertedLines)
            self._soon = once(self, _PAUSE, partial(lines.name_file, self._old.parent / self._wanted))

    @property
    def _wanted(self) -> str:
        return self.query_one(QuestionInput).value.strip()

    @property
    def _problem(self) -> str | None:
        return converting.converted_name_problem(self._workbench.editing, self._old, self._wanted)

    @property
    def answers(self) -> ConvertedLines:
        return self.query_one(ConvertedLines)

    async def action_take(self) -> None:
        if self._eval_set is None:
            return
        if problem := self._problem:
            self.query_one(QuestionNote).show(problem)
            return
        new, workbench = self._old.parent / self._wanted, self._workbench
        if await converting.convert(workbench.editing, self._eval_set, new, workbench.say):
            self.dismiss()


class ConvertedLines(ScrolledLines, inherit_bindings=False):
    """The text of the new file, or why there is none; it is scrolled from the field below."""

    def __init__(self, eval_set: EvalSet | None, problems: Sequence[Problem], old: Path, new: Path) -> None:
        super().__init__()
        self._eval_set = eval_set
        self._problems = problems
        self._old = old
        self._new = new
        self._page = Page(80)
        # Only where there is no field.
        self.can_focus = eval_set is None

    def name_file(self, new: Path) -> None:
        """Show the text as that of another file."""
        self._new = new
        self._write()

    def on_resize(self) -> None:
        if self._page.width != Page(self.size.width - 2).width or not self._page.lines:
            self._write()

    def _write(self) -> None:
        page = Page(self.size.width - 2)
        if self._eval_set is None:
            page.text([("This file has to be mended before it can be converted.", "bold")])
            page.blank()
        write_problems(page, self._problems, self._old)
        page.blank()
        if self._eval_set is not None:
            write_json(page, json.loads(migrated_text(self._eval_set, self._new)), 0)
        self._page = page
        self.lines_changed(len(page.lines))

    def line(self, number: int) -> Line:
        return [(" ", ""), *self._page.lines[number]]
