"""The panes of the main screen in their frames, each created when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from operator import itemgetter
from pathlib import Path

from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.geometry import NULL_OFFSET, NULL_SPACING, Offset, Region, Size
from textual.layout import ArrangeResult, WidgetPlacement
from textual.layout import Layout as TextualLayout
from textual.widget import Widget

from evaltui.project.settings import remember_sizes
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells
from evaltui.tui.action_screen import ActionScreen
from evaltui.tui.cases.view import CaseTree
from evaltui.tui.layout import KEYS, LEFT_TO_RIGHT, MEDIUM_WIDTH, RUNS_PANE, START_PANE, TITLES, Layout, Place
from evaltui.tui.main.bars import TabRow
from evaltui.tui.pane import Beside, Pane, PaneFrame, Tab
from evaltui.tui.widgets.fields import FilterLine
from evaltui.tui.widgets.lines import OneLine
from evaltui.workbench.workbench import Workbench

IDLE_TEXT = "filter cases"
"""The text in an empty filter."""


class FilterRow(Horizontal):
    """The key of the filter, and the filter, which is created after the first frame."""

    def compose(self) -> ComposeResult:
        yield FilterKey()

    def add_line(self, line: FilterLine) -> None:
        self.add_class("-with-line")
        self.mount(line)

    async def on_click(self) -> None:
        await self.screen.run_action("filter")


class FilterKey(OneLine):
    def line(self, width: int) -> Line:
        key: Line = [(f"{key_of('filter')} ", "bold accent")]
        return [*key, (IDLE_TEXT, "faint")] if width > cells(key) else key


class FilterInput(FilterLine):
    always = True
    idle = IDLE_TEXT
    example = ("fail", "tool:book_hotel", "score<0.8", '"late order"')
    examples = (
        "a word",
        "pass",
        "tool:x",
        "id:x*",
        "-not",
        '"some words"',
        "set:x",
        "#tag",
        "text:x",
        "flaky",
        "not_run",
    )

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench

    def filter_text(self) -> str:
        return self._workbench.navigation.filtered.text

    def set_filter(self, text: str) -> None:
        self._workbench.navigation.set_filter(text)

    def problem(self) -> str:
        return self._workbench.navigation.filtered.problem or ""


# The section of a pane that its details are.
_DETAILS_SECTION = "details"


def make_pane(id: str, workbench: Workbench) -> Pane:
    """Creates a pane. The first frame shows only the cases, so the other panes are imported later."""
    return CaseTree(workbench, id=id) if id == "cases" else other_panes()[id](workbench, id=id)


@cache
def other_panes() -> dict[str, Callable[..., Pane]]:
    """The classes of the other panes, imported at the first call."""
    from evaltui.tui.case.view import CaseView
    from evaltui.tui.chat.view import ChatView
    from evaltui.tui.result.view import ResultView
    from evaltui.tui.runs.recent import RecentRuns
    from evaltui.tui.start.view import StartView
    from evaltui.tui.trace.view import ConsoleView, TraceView

    return {
        "case": CaseView,
        "result": ResultView,
        "chat": ChatView,
        "trace": TraceView,
        "console": ConsoleView,
        START_PANE: StartView,
        RUNS_PANE: RecentRuns,
    }


class Panes(Container):
    """Shows the panes at the places of the layout; `tabs` are above them on a narrow screen."""

    def __init__(self, workbench: Workbench, layout: Layout, *, id: str) -> None:
        self._workbench = workbench
        self._plan = layout
        self._in_places = _InPlaces(self)
        self.made: dict[str, Pane] = {"cases": make_pane("cases", workbench)}
        """The panes created so far."""
        self._dragged: str | None = None
        self.filters: dict[str, FilterLine] = {}
        """The filters created so far."""
        self._filter_row = FilterRow()
        there = {"cases": (self._filter_row, self.made["cases"])}
        self.frames = {pane: PaneFrame(*there.get(pane, ()), id=f"{pane}-frame") for pane in TITLES}
        self.details: dict[str, Beside] = {}
        """The details that share the place of a pane, by pane."""
        self._regions: dict[Widget, Region] = {}
        self.places: tuple[Place, ...] = ()
        """The shown places, from left to right and from top to bottom."""
        self.tabs = TabRow(id="tabs")
        super().__init__(*(self.frames[pane] for pane in LEFT_TO_RIGHT), id=id)

    @property
    def layout(self) -> TextualLayout:
        return self._in_places

    def pane(self, name: str) -> Pane:
        """A pane, created at the first call."""
        if name not in self.made:
            self._style_all()
            pane = self.made[name] = make_pane(name, self._workbench)
            parts = self._filter_above(name), pane.above(), pane, pane.below()
            self.frames[name].mount(*(part for part in parts if part is not None))
            if (beside := pane.beside()) is not None:
                self.details[name] = beside
                self.mount(beside)
        return self.made[name]

    def filter(self, name: str) -> FilterLine:
        """The filter of a pane, else that of the cases, created at the first call."""
        if name != "trace":
            name = "cases"
        if name not in self.filters:
            self.filters[name] = FilterInput(self._workbench, id="filter")
            self._filter_row.add_line(self.filters[name])
        return self.filters[name]

    def _style_all(self) -> None:
        """Reads the styles that the first frame does not need, once."""
        styles = self.app.stylesheet
        if unread := [Path(path) for path in ActionScreen.CSS_PATH if not styles.has_source(str(path))]:
            styles.read_all(unread)
            styles.parse()

    def _filter_above(self, name: str) -> FilterLine | None:
        if name != "trace":
            return None
        from evaltui.tui.trace.view import TraceFilter

        self.filters[name] = TraceFilter(self._workbench, id="trace-filter")
        return self.filters[name]

    def make_all(self) -> None:
        self.filter("cases")
        for name in LEFT_TO_RIGHT:
            if name != START_PANE:
                self.pane(name)

    def name_of(self, widget: Widget | None) -> str | None:
        """The name of the pane that is or contains a widget."""
        around = set(widget.ancestors_with_self) if widget else set()
        frames = *self.frames.items(), *self.details.items()
        return next((pane for pane, frame in frames if frame in around), None)

    def tab_places(self) -> Iterator[tuple[Tab, Offset]]:
        """Each visible tab, with the screen cell where it starts."""
        if self.app.size.width < MEDIUM_WIDTH:
            return self.tabs.tab_places()
        return chain.from_iterable(self.frames[place.shown].tab_places() for place in self.places)

    def section_places(self) -> Iterator[tuple[str, str, Offset]]:
        """Each visible section: the pane, the name of the section, and the cell where its line starts."""
        for place in self.places:
            pane, details = self.made.get(place.shown), self.details.get(place.shown)
            if pane is not None and pane.is_on_screen:
                for section, line in sorted(pane.sections(), key=itemgetter(1)):
                    at = Offset(0, line - pane.scroll_offset.y)
                    if 0 <= at.y < pane.size.height:
                        yield place.shown, section, pane.content_region.offset + at
            if details is not None and details.display:
                yield place.shown, _DETAILS_SECTION, details.region.offset + Offset(1, 0)

    def jump(self, name: str, section: str) -> None:
        """Goes to a section of a pane, or to the details beside it."""
        if section == _DETAILS_SECTION:
            self.details[name].open()
        else:
            self.pane(name).jump(section)

    def regions(self, size: Size) -> dict[Widget, Region]:
        """The frames that fit on a screen of a size, with their regions."""
        regions: dict[Widget, Region] = {}
        for place in self._plan.places(size):
            frame, details = self.frames[place.shown], self.details.get(place.shown)
            region, beside = details.split(place.region) if details else (place.region, None)
            if region is not None:
                regions[frame] = region
            if details is not None and beside is not None:
                regions[details] = beside
        return regions

    def show_places(self, size: Size) -> None:
        """Shows the frames that fit on a screen of a size."""
        self.places = self._plan.places(size)
        regions = self.regions(size)
        if regions != self._regions:
            self._regions = regions
            for frame in (*self.frames.values(), *self.details.values()):
                frame.display = frame in regions
                # What has changed in a child is what has its parent arranged anew.
                frame.refresh(layout=True)

    def widen_cases(self, step: int) -> None:
        """Changes the width of the cases, and stores it for the next time."""
        self._plan.widen_cases(self.app.size.width, step)
        self.show_places(self.app.size)
        self._remember_sizes()

    def _remember_sizes(self) -> None:
        if self._workbench.read_only:
            return
        try:
            remember_sizes(self._plan.sizes)
        except OSError as error:
            self._workbench.say(f"Layout not saved: {error}")

    def on_mouse_down(self, event: events.MouseDown) -> None:
        at = event.screen_offset - self.region.offset
        dividers = (name for name, region in self._plan.dividers(self.app.size) if region.contains_point(at))
        # A tab in the border is clicked.
        if "@click" not in event.style.meta and (divider := next(dividers, None)) is not None:
            self._dragged = divider
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged is not None and self.app.mouse_captured is self:
            self._plan.drag(self._dragged, self.app.size, event.screen_offset - self.region.offset)
            self.show_places(self.app.size)

    def on_mouse_up(self) -> None:
        if self._dragged is not None and self.app.mouse_captured is self:
            self._dragged = None
            self.release_mouse()
            self._remember_sizes()

    def draw(self, *, anew: bool) -> None:
        """Draws the frames of the visible panes, and the panes whose contents have changed; all of them with
        `anew`."""
        for line in self.filters.values():
            line.follow()
        for place in self.places:
            pane = self.made.get(place.shown)
            if pane is not None and (anew or pane.is_outdated):
                pane.is_outdated = False
                pane.follow()
            self._draw_frame(place)
        self.show_places(self.app.size)

    def _draw_frame(self, place: Place) -> None:
        tabs = tuple(
            Tab(name, KEYS.get(name, ""), TITLES[name], pane.mark() if pane else None, name == place.shown)
            for name in place.panes
            for pane in [self.made.get(name)]
        )
        where = self.made[place.shown].heading() if place.shown in self.made else []
        if self.app.size.width < MEDIUM_WIDTH:
            self.tabs.show(tabs, where)
        details = self.details.get(place.shown)
        focused = self._plan.focus == place.shown and not (details and details.has_focus_within)
        self.frames[place.shown].show(tabs, where, focused=focused)


class _InPlaces(TextualLayout):
    """Places the frames by the layout of the main screen."""

    name = "places"

    def __init__(self, panes: Panes) -> None:
        self._panes = panes

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> ArrangeResult:
        return [
            WidgetPlacement(region, NULL_OFFSET, NULL_SPACING, frame)
            for frame, region in self._panes.regions(parent.app.size).items()
            if frame in children
        ]
