"""The panes of the main screen, and their arrangement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from textual.geometry import Offset, Region, Size

MEDIUM_WIDTH, WIDE_WIDTH, WIDEST_WIDTH = 90, 140, 200
TALL_HEIGHT = 40
START_PANE, RUNS_PANE = "start", "recent_runs"


class PaneKind(NamedTuple):
    """A pane of the main screen. Its key is its place in `PANES`, its action is `show_<id>`.

    The start pane is not in `PANES`: it replaces the panes of a case.
    """

    id: str
    title: str


PANES: tuple[PaneKind, ...] = (
    PaneKind("cases", "Cases"),
    PaneKind("case", "Case"),
    PaneKind("result", "Result"),
    PaneKind("chat", "Chat"),
    PaneKind("trace", "Trace"),
    PaneKind("console", "Console"),
)
KEYS = {kind.id: str(number + 1) for number, kind in enumerate(PANES)} | {RUNS_PANE: "H"}
TITLES = {kind.id: kind.title for kind in PANES} | {START_PANE: "Start", RUNS_PANE: "Runs"}

_ALL_PANES = tuple(kind.id for kind in PANES)
_UPPER_PANES = ("case", "result", "chat")
_DOCK_PANES = ("trace", "console")
# As long as there is no case.
_CASE_PANES = ("case", "result")
_START_PANES = (START_PANE, "chat", "trace", "console")
# Cells from which on the chat and its trace are side by side.
_CHAT_BESIDE_TRACE = 100
LEFT_TO_RIGHT = ("cases", RUNS_PANE, START_PANE, "case", "chat", "result", "trace", "console")

# Rows of header, status line and footer; rows of tabs on a narrow screen.
_BAR_ROWS, _TAB_ROWS = 3, 2
# Cells of the cases from a width on.
_CASES_WIDTHS = ((WIDEST_WIDTH, 42), (WIDE_WIDTH, 40), (120, 38), (MEDIUM_WIDTH, 30))
_MIN_CASES, _MIN_BESIDE_WIDTH = 20, 50
# Cells of the case where it stands beside its result for good.
_CASE_WIDTH = 62
_MIN_DOCK, _MAX_DOCK = 13, 20
# What is left of a case, its result, the dock and what is above it, however they are dragged.
_MIN_CASE, _MIN_DRAGGED_DOCK, _MIN_ROWS_ABOVE = 30, 5, 10
# The size from which on there are runs below the cases, and their rows without a dock.
_RUNS_FROM, _FEW_RUNS, _MIN_RUNS = (120, 32), 8, 5


CASES_WIDTH, CASE_WIDTH, DOCK_ROWS = DRAGGED_SIZES = "cases_width", "case_width", "dock_rows"


class Place(NamedTuple):
    """Panes that share a place on the screen as tabs."""

    panes: tuple[str, ...]
    """Ids of the panes, from left to right."""
    shown: str
    """Id of the pane on top."""
    region: Region
    """Cells of the place, below the header."""


@dataclass
class Layout:
    """The user's choice of visible panes, kept when the terminal is resized."""

    focus: str = "cases"
    """The pane with the focus."""
    main: str = "case"
    """The last chosen pane besides the cases."""
    upper: str = "case"
    """The last chosen one of case, result and chat."""
    dock: str = "trace"
    """The last chosen pane of the dock."""
    before_dock: str = "cases"
    """The pane that had the focus before the dock."""
    dock_hidden: bool = False
    cases_hidden: bool = False
    sizes: dict[str, int] = field(default_factory=dict)
    """The sizes that the user has set for parts of the screen, in cells or rows, by name in `DRAGGED_SIZES`.
    """
    maximised: bool = False
    """Whether the focused pane fills the screen."""
    undecided: bool = True
    """Whether no pane besides the cases was chosen yet."""
    cases_rows: int = 0
    """The rows that all cases need with their frame, also folded ones: the runs below them get the rest at
    most."""
    bars: int = _BAR_ROWS
    """Rows around the panes."""
    trace_of_chat: bool = False
    """Whether the trace is that of the chat: the two are side by side where there is room."""
    nothing_run: bool = False
    """Whether dock and runs are empty: the case takes their space."""
    at_start: bool = False
    """Whether there is no case, so that the start pane replaces the panes of a case."""

    def start(self, at_start: bool) -> None:
        """Shows or hides the start pane; the focus leaves panes that are empty."""
        if at_start != self.at_start:
            self.at_start = at_start
            if at_start:
                self.go_to(START_PANE if self.focus in ("cases", *_CASE_PANES) else self.focus)
            elif self.focus == START_PANE:
                self.go_to("cases")

    def go_to(self, pane: str) -> None:
        """Focuses a pane, on top of the panes in its place."""
        if self.at_start and pane in _CASE_PANES:
            pane = START_PANE
        if pane in _DOCK_PANES and self.focus not in _DOCK_PANES:
            self.before_dock = self.focus
        self.focus = pane
        if pane in ("cases", RUNS_PANE):
            self.cases_hidden = False
        else:
            self.bring_up(pane)

    def bring_up(self, pane: str) -> None:
        """Puts a pane on top, without changing the focus."""
        self.undecided = False
        if pane in _UPPER_PANES:
            self.main = self.upper = pane
        elif pane in _DOCK_PANES:
            self.main = self.dock = pane
            self.dock_hidden = False

    def hide_cases(self, hidden: bool) -> None:
        self.cases_hidden = hidden
        if hidden and self.focus in ("cases", RUNS_PANE):
            self.focus = self.main

    def has_dock(self, size: Size) -> bool:
        """Whether trace and console have a place of their own, hidden or not."""
        return (
            size.width >= WIDE_WIDTH
            and size.height >= TALL_HEIGHT
            and not self.maximised
            and not self.at_start
        )

    def hide_dock(self) -> None:
        self.dock_hidden = True
        self.main = self.upper
        if self.focus in _DOCK_PANES:
            self.go_to(self.before_dock)

    def widen_cases(self, width: int, step: int) -> int:
        """Changes the width of the cases on a screen of `width` cells; returns the new width."""
        self.sizes[CASES_WIDTH] = self._fitting_width(width, self._cells_of_cases(width) + step)
        return self.sizes[CASES_WIDTH]

    def dividers(self, size: Size) -> Iterator[tuple[str, Region]]:
        """The draggable dividers, each with its cells."""
        for place in self._places(size):
            x, y, width, height = place.region
            if place.panes[0] == "cases" and width < size.width:
                yield CASES_WIDTH, Region(width - 1, 0, 2, size.height - self.bars)
            elif place.panes == ("case",):
                yield CASE_WIDTH, Region(x + width - 1, y, 2, height)
            elif place.panes == _DOCK_PANES:
                yield DOCK_ROWS, Region(x, y - 1, width, 2)

    def drag(self, divider: str, size: Size, to: Offset) -> None:
        """Moves a divider to a column or row, as far as there is room."""
        for place in self._places(size):
            if divider == CASES_WIDTH and place.panes[0] == "cases":
                self.sizes[divider] = self._fitting_width(size.width, to.x)
            elif divider == CASE_WIDTH and place.panes == ("case",):
                self.sizes[divider] = to.x - place.region.x
            elif divider == DOCK_ROWS and place.panes == _DOCK_PANES:
                self.sizes[divider] = place.region.bottom - to.y

    def places(self, size: Size) -> tuple[Place, ...]:
        """The places from left to right and from top to bottom, for a terminal size.

        The focused pane is always shown.
        """
        return tuple(part for place in self._places(size) for part in self._parts(place))

    def _parts(self, place: Place) -> list[Place]:
        """The place itself; the place of the chat and its trace is split where there is room."""
        wide = place.region.width >= _CHAT_BESIDE_TRACE
        # Zoomed, the chat has its inspector beside it.
        is_both = {"chat", "trace"} <= {*place.panes} and not (self.maximised and place.shown == "chat")
        if not (self.trace_of_chat and wide and is_both and place.shown in ("chat", "trace")):
            return [place]
        chat, trace = place.region.split_vertical((place.region.width + 1) // 2)
        others = tuple(pane for pane in place.panes if pane != "trace")
        return [Place(others, "chat", chat), Place(("trace",), "trace", trace)]

    def _places(self, size: Size) -> tuple[Place, ...]:
        width, height = size.width, size.height - self.bars
        if width < MEDIUM_WIDTH or self.maximised:
            all_panes = ("cases", *_START_PANES) if self.at_start else _ALL_PANES
            if self.focus == RUNS_PANE:
                all_panes = (*all_panes, RUNS_PANE)
            rows = height - _TAB_ROWS if width < MEDIUM_WIDTH else height
            return (self._place(all_panes, Region(0, 0, width, rows)),)
        left = 0 if self.cases_hidden else self._cells_of_cases(width)
        beside = self._beside(Region(left, 0, width - left, height), size)
        return (*(self._cases(Region(0, 0, left, height), size) if left else ()), *beside)

    def _cases(self, region: Region, size: Size) -> list[Place]:
        """The cases, above the last runs where there is room."""
        is_small = size.width < _RUNS_FROM[0] or size.height < _RUNS_FROM[1]
        rows = 0 if is_small or self.at_start or self.nothing_run else _FEW_RUNS
        if rows and self.has_dock(size):
            # As high as the dock beside it, which may be hidden.
            rows = self._dock_rows(size)
        rows = min(rows, region.height - self.cases_rows)
        if rows < _MIN_RUNS:
            return [self._place(("cases", RUNS_PANE) if self.focus == RUNS_PANE else ("cases",), region)]
        cases, runs = region.split_horizontal(-rows)
        return [self._place(("cases",), cases), self._place((RUNS_PANE,), runs)]

    def _beside(self, region: Region, size: Size) -> list[Place]:
        """The places beside the cases."""
        if self.at_start:
            return [self._place(_START_PANES, region)]
        below: list[Place] = []
        tabs: tuple[str, ...] = _DOCK_PANES
        is_empty = self.nothing_run and self.main not in (*_DOCK_PANES, "chat")
        if self.has_dock(size) and not (self.dock_hidden or is_empty):
            region, dock = region.split_horizontal(-self._dock_rows(size))
            below, tabs = [self._place(_DOCK_PANES, dock)], ()
        if size.width < WIDE_WIDTH or (size.width < WIDEST_WIDTH and self.focus != "case"):
            return [self._place((*_UPPER_PANES, *tabs), region), *below]
        # A case that is edited has its result beside it.
        usual = _CASE_WIDTH if size.width >= WIDEST_WIDTH else region.width // 2
        width = self.sizes.get(CASE_WIDTH, usual)
        case, result = region.split_vertical(max(_MIN_CASE, min(width, region.width - _MIN_CASE)))
        return [self._place(("case",), case), self._place((*_UPPER_PANES[1:], *tabs), result), *below]

    def _dock_rows(self, size: Size) -> int:
        usual = max(_MIN_DOCK, min(13 + (size.height - 45) * 7 // 15, _MAX_DOCK))
        most = size.height - self.bars - _MIN_ROWS_ABOVE
        return max(_MIN_DRAGGED_DOCK, min(self.sizes.get(DOCK_ROWS, usual), most))

    def _place(self, panes: tuple[str, ...], region: Region) -> Place:
        chosen = (self.focus, self.main, self.dock if panes == _DOCK_PANES else self.upper)
        return Place(panes, next((pane for pane in chosen if pane in panes), panes[0]), region)

    def _cells_of_cases(self, width: int) -> int:
        usual = next((cells for least, cells in _CASES_WIDTHS if width >= least), _CASES_WIDTHS[-1][1])
        return self._fitting_width(width, self.sizes.get(CASES_WIDTH, usual))

    @staticmethod
    def _fitting_width(width: int, cells: int) -> int:
        return max(_MIN_CASES, min(cells, width - _MIN_BESIDE_WIDTH))
