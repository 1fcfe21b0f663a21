"""Search dialogs: their base, and the list of cases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import ScreenResultType
from textual.timer import Timer
from textual.widgets import Input

from evaltui.core.compare.explain import summary
from evaltui.core.compare.failure_groups import FailureGroup
from evaltui.core.model.case_id import CaseId
from evaltui.text.figures import counted, show_number
from evaltui.text.lines import Line, Span, cells, fill_line, pad
from evaltui.text.outcomes import RUNNING, glyph
from evaltui.text.values import visible
from evaltui.tui.dialogs.prompt import CANCEL, Dialog, DialogKeys, Hint, QuestionInput, QuestionScreen
from evaltui.tui.textual_private import call_later_once
from evaltui.tui.widgets.lines import CursorLines, DrawnLine
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.cases.case_list import Jump, rank_cases
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# Seconds without a key after which the query is looked for.
_PAUSE_SECONDS = 0.04
# Nobody reads further.
_MAX_FOUND = 500


Match = TypeVar("Match")


class MatchLines(CursorLines, can_focus=False, inherit_bindings=False):
    """A line for each match, or one that says why there is none; sections have headings."""

    def __init__(self, draw: Callable[[int, int], Line], nothing: Callable[[], str], clicks: int) -> None:
        super().__init__()
        self._draw_match = draw
        self._nothing = nothing
        self._rows: list[int | str] = []
        self.clicks_to_open = clicks

    def show(self, sections: Sequence[str], current: int = 0) -> None:
        """Shows a line for each section name, "" for a match without section; `current` is the index of the
        current match."""
        self._rows = []
        for number, section in enumerate(sections):
            if section and (number == 0 or section != sections[number - 1]):
                self._rows.append(section)
            self._rows.append(number)
        self.lines_changed(max(1, len(self._rows)))
        self.move_to(self._rows.index(current) if current else 0)

    @property
    def current(self) -> int | None:
        """The index of the current match, 0-based."""
        row = self._rows[self.cursor] if self.cursor < len(self._rows) else None
        return row if isinstance(row, int) else None

    def move_to(self, number: int) -> None:
        """Moves the cursor, skipping headings."""
        number = max(0, min(number, len(self._rows) - 1))
        if self._rows and isinstance(self._rows[number], str):
            number += -1 if 0 < number < self.cursor else 1
        super().move_to(number)
        self._show_heading()

    def _show_heading(self) -> None:
        """Scrolls to the heading of the first section, which the cursor skips."""
        if self.cursor <= 1:
            self.show_line(0)

    def on_resize(self) -> None:
        super().on_resize()
        self.show_line(self.cursor)
        self._show_heading()

    def row_role(self, number: int) -> str:
        return "sel" if self._rows and number == self.cursor else ""

    def line(self, number: int) -> Line:
        if not self._rows:
            return [(f" {self._nothing()}", "muted")]
        row = self._rows[number]
        if isinstance(row, str):
            return [
                (row, "muted"),
                (" ", ""),
                ("─" * max(0, self.line_width - cells([(row, "")]) - 1), "line"),
            ]
        return [
            ("▌" if number == self.cursor else " ", "bold accent"),
            *self._draw_match(row, self.line_width - 1),
        ]


def has_words(query: str, text: str) -> bool:
    """Whether a text contains every word of a query, ignoring case."""
    folded = text.casefold()
    return all(word in folded for word in query.casefold().split())


class SearchScreen(QuestionScreen[ScreenResultType], Generic[ScreenResultType, Match]):
    """A dialog that searches while the user types, after a short pause, and returns the choice."""

    title_text: ClassVar[str]
    placeholder: ClassVar[str]
    nothing = "No match"
    """The text that is shown for no match."""
    clicks_to_choose = 2
    take_word = "choose"
    """The label of enter in the line of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.matches: Sequence[Match] = ()
        """The matches, the best first."""
        self.query_text: str | None = None
        """The last query; None at first."""
        self._timer: Timer | None = None

    @abstractmethod
    def find(self, query: str) -> Sequence[Match]:
        """The matches of a query, the best first."""

    @abstractmethod
    def match_line(self, match: Match, width: int) -> Line:
        """The line of a match, without the cursor."""

    @abstractmethod
    def result_of(self, match: Match) -> ScreenResultType:
        """The result for the chosen match."""

    def section_of(self, match: Match) -> str:
        """The section of a match; "" for none."""
        return ""

    def about(self, match: Match) -> str:
        """A line about the current match."""
        return ""

    @property
    def current(self) -> Match | None:
        """The current match."""
        number = self.query_one(MatchLines).current
        return self.matches[number] if number is not None and number < len(self.matches) else None

    def compose(self) -> ComposeResult:
        with Dialog(self.title_text, id=(self.box or "").removeprefix("#")):
            yield QuestionInput(placeholder=self.placeholder)
            yield from self.shown()
            yield DialogKeys(self.hints)

    def hints(self) -> list[Hint]:
        return [Hint("confirm", self.take_word), CANCEL]

    def shown(self) -> ComposeResult:
        """The shown matches, and the line about the current one."""
        yield self.match_lines()
        yield DrawnLine(self._about_current)

    def match_lines(self) -> MatchLines:
        return MatchLines(
            lambda number, width: self.match_line(self.matches[number], width),
            lambda: self.nothing,
            self.clicks_to_choose,
        )

    def _about_current(self, width: int) -> Line:
        return [] if self.current is None else [(visible(self.about(self.current)), "faint")]

    @on(CursorLines.Moved)
    def _moved(self) -> None:
        self.draw_about()

    def draw_about(self) -> None:
        """Draws what is known about the current match."""
        self.query_one(DrawnLine).refresh()

    def on_mount(self) -> None:
        self._search()

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = call_later_once(self, _PAUSE_SECONDS, lambda: self._search() if self.is_here else None)

    def _search(self) -> None:
        query = self.query_one(QuestionInput).value.strip()
        if query != self.query_text:
            self.query_text = query
            self._show(self.find(query), 0)

    def _show(self, matches: Sequence[Match], current: int) -> None:
        self.matches = matches
        self.query_one(MatchLines).show([self.section_of(match) for match in matches], current)

    def search_again(self) -> None:
        """Searches again with the same query, after more data has loaded; the current match stays current."""
        if self.query_text is not None:
            before, matches = self.current, self.find(self.query_text)
            self._show(matches, matches.index(before) if before in matches else 0)

    @property
    def answers(self) -> MatchLines:
        # What was typed just now counts.
        self._search()
        return self.query_one(MatchLines)

    def action_confirm(self) -> None:
        self._search()
        self._choose()

    @on(CursorLines.Opened)
    def _choose(self) -> None:
        if (match := self.current) is not None:
            self.dismiss(self.result_of(match))


# The width from which on a preview stands beside its list.
_MIN_WIDTH_BESIDE = 140


class PreviewScreen(SearchScreen[ScreenResultType, Match], Generic[ScreenResultType, Match]):
    """A search dialog with a preview of the current match, beside or below the list."""

    @abstractmethod
    def write_preview(self, page: Page, match: Match, height: int) -> None:
        """Writes the preview of a match in a number of lines."""

    def shown(self) -> ComposeResult:
        with Container(classes="previewed"):
            yield self.match_lines()
            yield PageLines(self._write, can_focus=False, indent=0)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= _MIN_WIDTH_BESIDE, "-beside")
        # What is as high as its room is written once that is known.
        self.call_after_refresh(self.draw_about)

    def draw_about(self) -> None:
        self.query_one(PageLines).write_page()

    def _write(self, page: Page) -> None:
        if self.current is not None:
            self.write_preview(page, self.current, self.query_one(PageLines).size.height)


class FindCaseScreen(SearchScreen[Selection, Jump]):
    """A dialog that finds a case; returns it."""

    box = "#find-case"
    title_text = "Find case"
    placeholder = "letters of its id, its set or its text"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench

    def find(self, query: str) -> list[Jump]:
        listed = self._workbench.sets.listed
        all_cases = counted(sum(len(eval_set.cases) for eval_set in listed), "case")
        self.nothing = "No match" if query else all_cases
        return rank_cases(query, listed, _MAX_FOUND)

    def match_line(self, match: Jump, width: int) -> Line:
        name_width = min(48, max(12, width * 2 // 5))
        return [
            _case_mark(self._workbench.outcomes, match.case),
            (" ", ""),
            *fill_line(_mark_id(match), name_width),
            ("  ", ""),
            (pad(visible(match.set_id), min(20, width // 5)), "muted"),
            (f"  {visible(match.text)}", "muted"),
        ]

    def result_of(self, match: Jump) -> Selection:
        return Selection(*match.case)


class FailureGroupScreen(PreviewScreen[FailureGroup, FailureGroup]):
    """A dialog with the failures by reason; returns the chosen group."""

    box = "#failure-groups"
    title_text = "Failures by reason"
    placeholder = "letters of a reason"
    take_word = "mark"

    def __init__(self, workbench: Workbench, groups: Sequence[FailureGroup]) -> None:
        super().__init__()
        self._workbench = workbench
        self._groups = groups

    def find(self, query: str) -> list[FailureGroup]:
        return [group for group in self._groups if has_words(query, group.reason)]

    def match_line(self, match: FailureGroup, width: int) -> Line:
        most = len(show_number(max(len(group.cases) for group in self._groups)))
        return [
            (f" {show_number(len(match.cases)):>{most}}", "bold"),
            (f"  {visible(match.reason)}", ""),
        ]

    def write_preview(self, page: Page, match: FailureGroup, height: int) -> None:
        outcomes = self._workbench.outcomes
        for number, case in enumerate(match.cases):
            outcome, part = outcomes.get(case), Page(page.width)
            stale = ("  stale" if outcomes.is_stale(case) else "", "faint")
            part.row(_case_mark(outcomes, case), (f" {visible(case.eval_id)}", ""), stale)
            part.block([(visible(summary(outcome.result)) if outcome else "", "muted")], 2)
            if len(page.lines) + len(part.lines) + 1 > height:
                page.more(len(match.cases) - number, 0)
                return
            page.lines += part.lines

    def result_of(self, match: FailureGroup) -> FailureGroup:
        return match


def _case_mark(outcomes: Outcomes, case: CaseId) -> Span:
    """The glyph of a case's status, faint where its result is stale, as in the list of cases."""
    status = outcomes.status(case)
    mark, role = glyph(status)
    return mark, "faint" if status != RUNNING and outcomes.is_stale(case) else role


def _mark_id(jump: Jump) -> Line:
    """The id with the typed letters marked."""
    name = visible(jump.case.eval_id)
    if name != jump.case.eval_id:
        return [(name, "")]
    places = set(jump.marked)
    return [(letter, "bold accent" if number in places else "") for number, letter in enumerate(name)]
