"""The line above a pane: its tabs, and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from textual import events
from textual.message import Message

from evaltui.text.lines import Line, Span, cells, cut
from evaltui.tui.widgets.one_line import OneLine

# Fewer cells of what is shown say nothing.
_MIN_SHOWN = 8


class Tab(NamedTuple):
    """A pane that shares the place: its id, the key that shows it, its title, what it says in a glyph."""

    pane: str
    key: str
    title: str
    mark: Span | None
    active: bool


class Heading(OneLine):
    """A rule that the tabs sit on, with what the pane shows at its right; heavy where the focus is."""

    class Chosen(Message):
        """The user clicked a tab."""

        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, shown: Callable[[], Line], *, id: str) -> None:
        super().__init__(id=id)
        self._shown = shown
        self._tabs: Sequence[Tab] = ()
        self._focused = False

    def show(self, tabs: Sequence[Tab], *, focused: bool) -> None:
        self._tabs = tabs
        self._focused = focused
        self.refresh()

    def line(self, width: int) -> Line:
        left = [span for tab in self._drawn_tabs(width) for span in tab]
        room = width - cells(left) - 6
        shown = _fitting(self._shown(), room)
        ending: Line = [(" ", ""), *cut(shown, room), (" ", "")] if shown and room >= _MIN_SHOWN else []
        stroke = self._stroke(len(self._tabs) == 1)
        fill = max(0, width - cells(left) - cells(ending) - 2)
        last = min(2, max(0, width - cells(left) - cells(ending) - fill))
        return cut([*left, (stroke[0] * fill, stroke[1]), *ending, (stroke[0] * last, stroke[1])], width)

    def _stroke(self, active: bool) -> Span:
        return ("━", "accent") if active and self._focused else ("─", "dim")

    def _drawn_tabs(self, width: int) -> list[Line]:
        """The tabs, closer together where what is shown beside them would not fit.

        Where they do not fit themselves, only the active one has its title.
        """
        beside = self._shown()[:1]
        for needed in (cells(beside) + 6 if beside else 0, 0):
            for before, behind in ((2, 1), (1, 0), (0, 0)):
                drawn = [self._tab(tab, before, behind, title=True) for tab in self._tabs]
                if sum(map(cells, drawn)) + needed < width:
                    return drawn
        return [self._tab(tab, 0, 0, title=tab.active) for tab in self._tabs]

    def _tab(self, tab: Tab, before: int, behind: int, *, title: bool) -> Line:
        """With strokes before and behind it; the active one is never without."""
        stroke, tone = self._stroke(tab.active)
        mark: Line = [(" ", ""), tab.mark] if tab.mark else []
        label = (f" {tab.key} {tab.title}" if title else f" {tab.key}", "bold" if tab.active else "dim")
        start = stroke * max(before, int(tab.active))
        return [(start, tone), label, *mark, (" ", ""), (stroke * behind, tone)]

    def on_click(self, event: events.Click) -> None:
        left = 0
        for tab, drawn in zip(self._tabs, self._drawn_tabs(self.size.width), strict=True):
            left += cells(drawn)
            if event.x < left:
                self.post_message(self.Chosen(tab.pane))
                return


def _fitting(line: Line, width: int) -> Line:
    """Without the words at the end that do not fit, but never without the first ones."""
    while len(line) > 1 and cells(line) > width:
        line = line[:-1]
    return line if not line or line[-1][0].strip() else line[:-1]
