"""The base classes of panes: lines, a page about the selection, a page with parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import events, on
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Offset, Region
from textual.widget import Widget

from evaltui.core.model.case_id import CaseId
from evaltui.text.glyphs import EMPTY_BAR
from evaltui.text.lines import Line, Span, cells, draw, fit, split_line
from evaltui.tui.action_screen import bindings
from evaltui.tui.textual_private import HearingScreen
from evaltui.tui.widgets.lines import LineView, content
from evaltui.tui.widgets.writer import Link, Page, PageView
from evaltui.workbench.actions import Action, Scope
from evaltui.workbench.messages import (
    AgentChanged,
    DraftChanged,
    FilesChanged,
    ResultsChanged,
    RunProgressed,
    SelectionChanged,
    WorkbenchMessage,
)
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.project.agent_source import SourcePlace

CASE_MESSAGES = (FilesChanged, SelectionChanged, DraftChanged, ResultsChanged, RunProgressed, AgentChanged)
"""The messages about the selected case and about results of any case."""


class CopiedText(NamedTuple):
    """A text for the clipboard."""

    what: str
    """Name of the text, as in `the trace of late_order`."""
    text: str


class PaneForm(Vertical):
    """A form in a pane, with the keys that all forms have."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.FORM)


class Pane(LineView, can_focus=True, inherit_bindings=False):
    """A pane of the main screen. While it is visible, `follow` is called after each message that concerns
    it."""

    SHOWS: ClassVar[tuple[type[WorkbenchMessage], ...]] = CASE_MESSAGES
    """The messages after which its contents may have changed."""
    is_outdated = True
    """Whether there was such a message since the last drawing."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench

    @on(events.Mount)
    def subscribe(self) -> None:
        self._workbench.messages.subscribe(self._outdate, *self.SHOWS)

    @on(events.Unmount)
    def unsubscribe(self) -> None:
        self._workbench.messages.unsubscribe(self._outdate)

    def _outdate(self, _: WorkbenchMessage) -> None:
        self.is_outdated = True

    @abstractmethod
    def follow(self) -> None: ...

    def refusal(self, action_id: str) -> str | None:
        """Why an action cannot be done where the cursor is, as a sentence; None where it can."""
        return None

    def footer_word(self, action: Action) -> str:
        """One or two words for what an action does where the cursor is."""
        return action.footer_word(self._workbench)

    def heading(self) -> Line:
        """The position in the pane, in few words; the most specific come last."""
        return []

    def copied(self) -> CopiedText | None:
        """The text to copy from here."""
        return None

    def copied_json(self) -> CopiedText | None:
        """The data to copy, as JSON."""
        return None

    def source(self) -> SourcePlace | None:
        """The source of the current item."""
        return None

    def sections(self) -> Iterator[tuple[str, int]]:
        """The names of its sections, with the first line of each."""
        return iter(())

    def jump(self, section: str) -> None:
        """Goes to a section."""

    def mark(self) -> Span | None:
        """The glyph in its tab."""
        return None

    def above(self) -> Widget | None:
        """The widget above it, such as the heading of its columns."""
        return None

    def beside(self) -> Beside | None:
        """The widget with the details of its current item, in the same part of the screen."""
        return None

    def below(self) -> Widget | None:
        """The widget below it, such as an input field."""
        return None

    def left(self) -> bool:
        """Called before another pane gets the focus; returns False to keep the focus."""
        return True

    @property
    def entry(self) -> Widget:
        """The widget that gets the focus first."""
        return self


class Tab(NamedTuple):
    """A tab of a pane that shares its place with others."""

    pane: str
    """Id of the pane."""
    key: str
    """Key that shows it."""
    title: str
    mark: Span | None
    """The mark in the tab, a glyph or a number."""
    active: bool
    """Whether it is on top."""


def tab_parts(tabs: Sequence[Tab], width: int, *, focused: bool, between: str) -> list[tuple[str, Line]]:
    """The tabs and the strokes between them, each with its click action.

    Where they do not fit, the strokes are dropped first, then the titles of inactive tabs.
    """
    for stroke, titles in ((between, True), ("", True)):
        parts = _tab_parts(tabs, focused=focused, between=stroke, titles=titles)
        if sum(cells(part) for _, part in parts) <= width:
            return parts
    return _tab_parts(tabs, focused=focused, between="", titles=False)


def _tab_parts(tabs: Sequence[Tab], *, focused: bool, between: str, titles: bool) -> list[tuple[str, Line]]:
    parts: list[tuple[str, Line]] = []
    for tab in tabs:
        if parts and between:
            parts.append(("", [(between, "accent" if focused else "line")]))
        parts.append((f"screen.go_to('{tab.pane}')", _tab(tab, focused=focused, title=titles or tab.active)))
    return parts


def tab_columns(parts: Sequence[tuple[str, Line]], tabs: Sequence[Tab]) -> Iterator[tuple[Tab, int]]:
    """Each tab, with the cell where it starts."""
    left, following = 0, iter(tabs)
    for action, part in parts:
        if action:
            yield next(following), left
        left += cells(part)


def _tab(tab: Tab, *, focused: bool, title: bool) -> Line:
    """A tab: ` 3 Result ✗ `, as a chip where the focus is."""
    chip = tab.active and focused
    key, name = ("chip", "chip") if chip else ("muted", "bold") if tab.active else ("faint", "muted")
    label: Line = [(f" {tab.key}", key)] if tab.key else []
    label += [(f" {tab.title}", name)] if title else []
    if tab.mark is not None:
        label += [(" ", name), (tab.mark[0], "chip" if chip else tab.mark[1])]
    return [*label, (" ", name)]


# Cells in which a shortened name can still be told from others.
_MIN_NAME = 8


def fit_words(line: Line, width: int) -> Line:
    """The last words of a line that fit, because the end is the most specific; [] where none fits.

    A bold word is never dropped: where none would stay, the last bold word is shortened in the middle.
    """
    shown = line
    while shown and cells(shown) > width:
        shown = shown[1:]
        while shown and shown[0][0].strip() in ("", "›"):
            shown = shown[1:]
    names = [span for span in line if "bold" in span[1]]
    if not names or any(span in names for span in shown) or width < _MIN_NAME:
        return shown
    text, role = names[-1]
    end = (width - 1) // 2
    return [(text if len(text) <= width else f"{fit(text, width - 1 - end)}…{text[-end:]}", role)]


# Cells of corners, strokes and gaps beside the tabs in a border.
_END_LETTERS = 6


class PaneFrame(Vertical):
    """The border around a pane: the tabs of its place above, the position in the pane below."""

    _tabs: tuple[Tab, ...] = ()
    _where: Sequence[Span] = ()
    _drawn: object = None

    def show(self, tabs: tuple[Tab, ...], where: Line, *, focused: bool) -> None:
        self._tabs = tabs
        self._where = where
        self.set_class(focused, "-focused")
        self._draw_border()

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda theme: self._draw_border())

    def on_resize(self) -> None:
        self._draw_border()

    def tab_places(self) -> Iterator[tuple[Tab, Offset]]:
        """Each tab in the border, with the screen cell where it starts."""
        for tab, column in tab_columns(self._parts(), self._tabs):
            # Before the tabs there are a corner, a stroke and a gap.
            yield tab, self.region.offset + Offset(column + 3, 0)

    def _parts(self) -> list[tuple[str, Line]]:
        focused = self.has_class("-focused")
        return tab_parts(self._tabs, self.outer_size.width - _END_LETTERS, focused=focused, between=EMPTY_BAR)

    def _draw_border(self) -> None:
        width, focused = self.outer_size.width - _END_LETTERS, self.has_class("-focused")
        drawn = (self._tabs, self._where, width, focused, self.app.theme)
        if drawn != self._drawn:
            self._drawn = drawn
            self.border_title = Content("").join(
                content(self, line, action) for action, line in self._parts()
            )
            self.border_subtitle = content(self, fit_words(list(self._where), width))


class Beside(PaneFrame):
    """A frame that takes a part of the place of a pane, or all of it."""

    @abstractmethod
    def split(self, region: Region) -> tuple[Region | None, Region | None]:
        """Splits a region into the pane's part and the rest; None for a part that gets no space."""

    @abstractmethod
    def source(self) -> SourcePlace | None:
        """The source of its content."""

    @abstractmethod
    def open(self) -> None:
        """Focuses the frame."""


# What the names of sections that are turns begin with.
_TURN_PREFIX = "turn "


class PagePane(Pane, PageView, can_focus=True, inherit_bindings=False):
    """A page about the selection, written again for each width and whenever `shown_state` changes."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._written: object = None
        self._shown = Selection()

    @abstractmethod
    def shown_state(self) -> object:
        """The state that the page is built from: while it is equal, the page is not written again."""

    def follow(self) -> None:
        width = self.size.width - 2
        if width <= 0:
            return
        written = (self.shown_state(), width)
        if written != self._written:
            self._written = written
            self.write_page()
        if self._workbench.navigation.selection != self._shown:
            self._shown = self._workbench.navigation.selection
            self._scroll_to_selection()

    def sections(self) -> Iterator[tuple[str, int]]:
        return ((f"{_TURN_PREFIX}{turn}", line) for turn, line in self.page.turns.items())

    def jump(self, section: str) -> None:
        if section.startswith(_TURN_PREFIX):
            navigation = self._workbench.navigation
            navigation.select(navigation.selection._replace(turn=int(section.removeprefix(_TURN_PREFIX))))

    def page_to_copy(self) -> Page:
        """The page in the form for copying."""
        return self.page

    def copied(self) -> CopiedText | None:
        """The whole page, without colours."""
        lines = [draw(line, color=False) for line in self.page_to_copy().lines]
        eval_id = self._workbench.navigation.selection.eval_id
        what = "this page" if eval_id is None else eval_id
        return CopiedText(f"the {self.id} of {what}", "\n".join(lines) + "\n") if lines else None

    def _scroll_to_selection(self) -> None:
        turn = self._shown.turn
        line = self.page.turns.get(turn, 0) if turn is not None else 0
        self.scroll_to(y=line, animate=False, force=True)

    def on_resize(self) -> None:
        self.follow()

    def selectable(self, number: int, start: int, end: int) -> tuple[int, int]:
        """The part of a line that can be selected: the side in which the selection started."""
        start, end = super().selectable(number, start, end)
        origin = self.screen.selection_origin if isinstance(self.screen, HearingScreen) else None
        if number not in self.page.sides or origin is None:
            return start, end
        # The first cell of a line is the margin.
        left, right = (1 + place for place in self.page.sides[number])
        return (max(start, right), end) if origin.x >= right else (start, min(end, left))


class LinkedPage(PagePane, can_focus=True, inherit_bindings=False):
    """A pane with a page of parts. Where the parts are cases, the keys for scrolling move between them."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        # What is current, by what was selected then.
        self._linked: tuple[Selection, CaseId | str] | None = None

    @abstractmethod
    def open_link(self, link: Link) -> None: ...

    @property
    def link(self) -> Link | None:
        """The current part of the page."""
        if self._linked is None or self._linked[0] != self._workbench.navigation.selection:
            return None
        return next((link for link in self.page.links if link.opens == self._linked[1]), None)

    def leave_link(self) -> None:
        """Clears the current part."""
        self._linked = None

    def go_to_link(self, link: Link) -> None:
        """Makes a part the current one, and deselects the difference."""
        self._linked = self._workbench.navigation.selection, link.opens
        if self._workbench.navigation.difference is not None:
            self._workbench.navigation.select_difference(None)
        self.show_line(link.last - 1)
        self.show_line(link.first)
        self.refresh()

    def action_step_item(self, step: int) -> None:
        links, link = self.page.links, self.link
        if links:
            # From nowhere to the first one, or to the last.
            here = links.index(link) if link else min(-step, 0)
            self.go_to_link(links[(here + step) % len(links)])

    @property
    def _lists_cases(self) -> bool:
        return bool(self.page.links) and isinstance(self.page.links[0].opens, CaseId)

    def action_step_line(self, step: int) -> None:
        if self._lists_cases:
            self.action_step_item(step)
        else:
            super().action_step_line(step)

    def click_link(self, line: int, cell: int) -> bool:
        """Selects the part at a place of the page, or opens it if it is current; returns whether there is
        one."""
        for link in self.page.links:
            end = self.page.width if link.end is None else link.end
            if link.first <= line < link.last and link.start <= cell < end:
                if link == self.link:
                    self.open_link(link)
                else:
                    self.go_to_link(link)
                return True
        return False

    # Drawing

    def line(self, number: int) -> Line:
        link = self.link
        if link is None or not link.first <= number < link.last:
            return super().line(number)
        line = self.page.lines[number]
        if isinstance(link.opens, CaseId):
            return [("▌", "bold accent"), *line]
        before, rest = split_line(line, link.start)
        inside, after = split_line(rest, (link.end or self.page.width) - link.start)
        tint = "sel" if self.has_focus else "sel-blur"
        shown = [
            (text, role.replace("surface", tint).replace("faint", "muted"))
            for text, role in split_line(inside, 1)[1]
        ]
        # The marker stays on the card's own ground: where the tint is a reversed one, it would be a gap.
        return [(" ", ""), *before, ("▌", "bold accent surface"), *shown, *after]

    def row_role(self, number: int) -> str:
        link = self.link
        is_current = link is not None and link.first <= number < link.last
        return "current" if is_current and link and isinstance(link.opens, CaseId) else ""
