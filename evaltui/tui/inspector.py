"""The inspector: details of the current item of a pane, beside the pane, below it or in its place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.geometry import Region
from textual.widget import Widget

from evaltui.project.agent_source import SourcePlace, is_own
from evaltui.text.glyphs import BAR
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, draw, join_ends, split_line
from evaltui.tui.action_screen import ActionScreen, bindings
from evaltui.tui.exchange import copy
from evaltui.tui.pane import Beside, CopiedText, Pane, PaneFrame, Tab
from evaltui.tui.widgets.lines import DrawnLine, OneLine
from evaltui.tui.widgets.writer import Frame, Page, PageLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.workbench import Workbench

# Lines below a frame that show its code.
_CODE_OF_FRAME = 2


class InspectorTab(NamedTuple):
    """A tab of the inspector."""

    name: str
    write: Callable[[Page], object]


class Inspected(NamedTuple):
    """The current item of a pane."""

    what: Hashable
    """The identity of the item: another item is shown from its start."""
    state: Hashable
    """The page is written again when this changes."""
    tabs: Sequence[InspectorTab]
    first: str = ""
    """The first tab, unless the user has chosen one; "" for the first in the list."""


class Room(NamedTuple):
    """The part of a pane's place that an inspector takes."""

    from_width: int
    """It is beside the pane from this width of the place on."""
    least: int
    most: int
    """The bounds of its own width beside the pane, which is a third of the place."""
    from_height: int | None = None
    """It is below the pane from this height of the place on; None for never."""


class InspectorLines(PageLines, inherit_bindings=False):
    """The page of a tab. The keys that scroll it also move between the frames of its tracebacks.

    The first current frame is the innermost one of the agent's own code.
    """

    BINDINGS = bindings(Scope.INSPECTOR)

    def __init__(self, agent_dir: Path) -> None:
        super().__init__(lambda page: None, indent=0)
        self._agent_dir = agent_dir
        self._current: int | None = None

    @property
    def frame(self) -> Frame | None:
        """The current frame; None where no frame has an existing file."""
        return None if self._current is None else self.page.frames[self._current]

    def write_page(self) -> None:
        super().write_page()
        self.page.frames = [frame for frame in self.page.frames if frame.place.path.is_file()]
        own = [n for n, frame in enumerate(self.page.frames) if is_own(self._agent_dir, frame.place)]
        if self._current is None or self._current >= len(self.page.frames):
            self._current = own[-1] if own else None

    def show(self, write: Callable[[Page], object]) -> None:
        self._current = None
        super().show(write)
        self._show_current()

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._show_current)

    def _show_current(self) -> None:
        if self._current is not None:
            self._go_to(self._current)

    def _step_frame(self, step: int) -> bool:
        """Goes to the next or previous frame; False where there is none, or it is more than a page away."""
        number = (-1 if self._current is None else self._current) + step
        if not 0 <= number < len(self.page.frames):
            return False
        line, top, height = self.page.frames[number].first, self.scroll_offset.y, self.size.height
        if not top - height <= line < top + 2 * height:
            return False
        self._go_to(number)
        return True

    def _go_to(self, number: int) -> None:
        self._current = number
        frame = self.page.frames[number]
        self.show_line(min(frame.last - 1 + _CODE_OF_FRAME, self.line_count - 1))
        self.show_line(frame.first)
        self.refresh()

    def action_step_line(self, step: int) -> None:
        if not self._step_frame(step):
            super().action_step_line(step)

    async def on_click(self, event: events.Click) -> None:
        """The first click selects a frame, the second one opens it."""
        line = self.scroll_offset.y + event.y
        for number, frame in enumerate(self.page.frames):
            if frame.first <= line < frame.last:
                # What is under the pointer stays there.
                self._current = number
                self.refresh()
                if event.chain == 2 and isinstance(self.screen, ActionScreen):
                    await self.screen.run_action("open_source")

    def _is_current(self, number: int) -> bool:
        return self.frame is not None and self.frame.first <= number < self.frame.last

    def line(self, number: int) -> Line:
        line = super().line(number)
        return [("▌", "bold accent"), *split_line(line, 1)[1]] if self._is_current(number) else line

    def row_role(self, number: int) -> str:
        return "current" if self._is_current(number) else ""


class InspectorTabs(OneLine):
    """The names of the tabs; a click shows a tab."""

    def __init__(self, choose: Callable[[str], None]) -> None:
        super().__init__()
        self._choose = choose
        self._names: Sequence[str] = ()
        self._current = ""
        self._hint = ""

    def show(self, names: Sequence[str], current: str, hint: str) -> None:
        self._names, self._current, self._hint = names, current, hint
        self.refresh_changed()

    def line(self, width: int) -> Line:
        tabs: Line = []
        for name in self._names:
            tabs.append((f" {name} ", "bold accent sel" if name == self._current else "muted"))
        return join_ends(tabs, [(self._hint, "muted")], width)

    def on_click(self, event: events.Click) -> None:
        left = event.x
        for name in self._names:
            if left < cell_len(name) + 2:
                self._choose(name)
                return
            left -= cell_len(name) + 2


class Inspector(Beside):
    """The inspector of a pane. `inspect` returns the current item of the pane; None hides the inspector."""

    def __init__(
        self,
        workbench: Workbench,
        pane: Pane,
        inspect: Callable[[], Inspected | None],
        room: Room,
        *,
        id: str,
    ) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        self._pane = pane
        self._inspect = inspect
        self._room = room
        self._is_open = False
        self._in_place = False
        self._inspected: Inspected | None = None
        self._chosen = ""
        self._written: tuple[object, object] = None, None
        self.tabs = InspectorTabs(self.choose)
        self._rule = DrawnLine(lambda width: [(BAR * width, "line")])
        self.lines = InspectorLines(workbench.agent.dir)

    def compose(self) -> ComposeResult:
        yield self.tabs
        yield self._rule
        yield self.lines

    @property
    def in_place(self) -> bool:
        """Whether it replaces the pane."""
        return self._in_place and self._is_open

    def split(self, region: Region) -> tuple[Region | None, Region | None]:
        room = self._room
        self._in_place = False
        if self._inspected is None:
            return region, None
        if region.width >= room.from_width:
            width = max(room.least, min(region.width * 7 // 20, room.most))
            return region.split_vertical(region.width - width)
        if room.from_height is not None and region.height >= room.from_height:
            return region.split_horizontal(-(region.height * 2 // 5))
        self._in_place = True
        return (None, region) if self._is_open else (region, None)

    # Following the pane

    def follow(self) -> None:
        """Shows the current item; the pane calls this when it may have changed."""
        before, self._inspected = self._inspected, self._inspect()
        if self._inspected is None:
            self._is_open = False
        if (before is None) != (self._inspected is None):
            self._rearrange()
        if self.display and self.is_attached:
            self._draw_page()

    def _draw_page(self) -> None:
        inspected = self._inspected
        if inspected is None or not self.lines.is_attached:
            return
        tab = self._tab(inspected)
        drawn = inspected.what, tab.name
        if drawn != self._written[0]:
            self.lines.show(lambda page: self._write(page))
        elif inspected.state != self._written[1]:
            self.lines.write_page()
        self._written = drawn, inspected.state
        several = len(inspected.tabs) > 1
        self.tabs.display = self._rule.display = several
        hint = f"{key_of('step_back')} back " if self.in_place else ""
        self.tabs.show([tab_shown.name for tab_shown in inspected.tabs], tab.name, hint)
        self.show((Tab(self._pane.id or "", "", "Inspector", None, True),), [], focused=self.lines.has_focus)

    def _write(self, page: Page) -> None:
        if self._inspected is not None:
            self._tab(self._inspected).write(page)

    def _tab(self, inspected: Inspected) -> InspectorTab:
        name = self._chosen or inspected.first
        return next((tab for tab in inspected.tabs if tab.name == name), inspected.tabs[0])

    def _rearrange(self) -> None:
        if self.is_attached and isinstance(self.screen, ActionScreen):
            self.screen.draw_soon()

    def on_resize(self) -> None:
        super().on_resize()
        self._draw_page()

    def on_descendant_focus(self) -> None:
        self._draw_page()

    on_descendant_blur = on_descendant_focus

    # Opening and closing

    def open(self) -> None:
        """Focuses the inspector; without room beside the pane, it replaces the pane."""
        self.follow()
        if self._inspected is None:
            return
        self._is_open = True
        # Only what is displayed gets the focus; where, the next frame shows.
        self.display = True
        self.screen.set_focus(self.lines, scroll_visible=False)
        self._rearrange()

    def left(self) -> None:
        """The pane has lost the focus, or has it again."""
        if self._is_open:
            self._is_open = False
            self._rearrange()

    def action_step_back(self) -> None:
        self._is_open = False
        if isinstance(frame := self._pane.parent, PaneFrame):
            frame.display = True
        self.screen.set_focus(self._pane, scroll_visible=False)
        self._rearrange()

    # Keys

    def choose(self, name: str) -> None:
        """Shows a tab, also for the next items."""
        self._chosen = name
        self._draw_page()

    def action_step_item(self, step: int) -> None:
        """Shows the next or the previous tab."""
        if self._inspected is not None and self.display:
            names = [tab.name for tab in self._inspected.tabs]
            at = names.index(self._tab(self._inspected).name)
            self.choose(names[(at + step) % len(names)])

    def source(self) -> SourcePlace | None:
        """The current frame of a traceback, else the source of the pane's current item."""
        return self.lines.frame.place if self.lines.frame else self._pane.source()

    def action_copy(self) -> None:
        lines = [draw(line, color=False) for line in self.lines.page.lines]
        copied = CopiedText("the page", "\n".join(lines) + "\n")
        self._workbench.say(copy(self.app, self._workbench, copied))


class InspectedPane(Pane, can_focus=True, inherit_bindings=False):
    """A pane with an inspector of its current item."""

    INSPECTOR_ROOM: ClassVar[Room]

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._inspector = Inspector(
            workbench, self, self.inspected, self.INSPECTOR_ROOM, id=f"{id}-inspector"
        )

    @abstractmethod
    def inspected(self) -> Inspected | None:
        """The current item; None hides the inspector."""

    def beside(self) -> Beside:
        return self._inspector

    def left(self) -> bool:
        self._inspector.left()
        return True

    @property
    def entry(self) -> Widget:
        return self._inspector.lines if self._inspector.in_place else self

    def on_focus(self) -> None:
        self._inspector.left()

    def open_current(self) -> None:
        self.action_open_details()

    def action_open_details(self) -> None:
        self._inspector.open()
