"""Going to any case by a few letters of its id, its set or what the user says in it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from evaltui.text.lines import Line, cells, cut, pad
from evaltui.text.outcomes import glyph
from evaltui.text.values import visible
from evaltui.tui.screens.prompt import QuestionInput, QuestionKeys, QuestionScreen, QuestionTitle
from evaltui.tui.textual_private import once
from evaltui.tui.widgets.cursor_lines import CursorLines
from evaltui.workbench.fuzzy import Jump, rank_cases
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# Seconds without a key after which is looked: ten thousand cases take longer than a key.
_PAUSE = 0.04
# Nobody reads further.
_MOST = 500


class FindCaseScreen(QuestionScreen[Selection]):
    """Returns the case that was chosen."""

    box = "#find-case"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._soon: Timer | None = None
        self._looked_for = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="find-case"):
            yield QuestionTitle("Go to a case")
            yield QuestionInput(placeholder="letters of its id, its set or its text")
            yield FoundCases(self._workbench)
            yield QuestionKeys("take", "leave_question", "next_answer", "previous_answer")

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._soon is not None:
            self._soon.stop()
        self._soon = once(self, _PAUSE, self._look)

    def _look(self) -> None:
        if not self.is_here:
            return
        query = self.query_one(QuestionInput).value
        if query != self._looked_for:
            self._looked_for = query
            found = rank_cases(query, self._workbench.sets.entries, _MOST)
            self.query_one(FoundCases).show(query, found)

    @property
    def answers(self) -> FoundCases:
        # What was typed just now counts.
        self._look()
        return self.query_one(FoundCases)

    def action_take(self) -> None:
        if (jump := self.answers.current) is not None:
            self.dismiss(Selection(*jump.key))

    def on_found_cases_chosen(self, message: FoundCases.Chosen) -> None:
        self.dismiss(message.selection)


class FoundCases(CursorLines, can_focus=False, inherit_bindings=False):
    class Chosen(Message):
        """The user wants to go to a case."""

        def __init__(self, selection: Selection) -> None:
            super().__init__()
            self.selection = selection

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._query = ""
        self._found: Sequence[Jump] = ()

    def show(self, query: str, found: Sequence[Jump]) -> None:
        self._query, self._found = query, found
        self.lines_changed(max(1, len(found)))
        self.move_to(0)

    @property
    def current(self) -> Jump | None:
        return self._found[self.cursor] if self._found else None

    def on_resize(self) -> None:
        self.lines_changed(max(1, len(self._found)))

    def line_classes(self, number: int) -> tuple[str, ...]:
        return super().line_classes(number) if self._found else ()

    def line(self, number: int) -> Line:
        if not self._found:
            return [(f" {self._why_none()}", "dim")]
        jump = self._found[number]
        here = ("▌" if number == self.cursor else " ", "accent")
        name_width = min(48, max(12, self.line_width * 2 // 5))
        name = cut(_marked(jump), name_width)
        filled = (" " * (name_width - cells(name) + 2), "")
        set_id = (pad(visible(jump.set_id), min(20, self.line_width // 5)), "dim")
        text = (f"  {visible(jump.text)}", "dim")
        return [
            here,
            glyph(self._workbench.outcomes.status(jump.key)),
            (" ", ""),
            *name,
            filled,
            set_id,
            text,
        ]

    def _why_none(self) -> str:
        if self._query.strip():
            return "no case is like this"
        return f"{sum(len(entry.cases) for entry in self._workbench.sets.entries):,} cases to look in"

    def open_current(self) -> None:
        if (jump := self.current) is not None:
            self.post_message(self.Chosen(Selection(*jump.key)))


def _marked(jump: Jump) -> Line:
    """The id with the letters that were typed."""
    name = visible(jump.key.eval_id)
    if name != jump.key.eval_id:
        return [(name, "")]
    places = set(jump.marked)
    return [(letter, "accent" if number in places else "") for number, letter in enumerate(name)]
