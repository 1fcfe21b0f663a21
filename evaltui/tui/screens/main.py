"""The main screen: the panes of the layout, and the lines around them."""

from __future__ import annotations

from functools import partialmethod
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Input, TextArea

from evaltui.text.lines import Line
from evaltui.text.outcomes import NOT_RUN
from evaltui.tui.action_screen import ask, bindings
from evaltui.tui.exchange import copy
from evaltui.tui.layout import KEYS, LEFT_TO_RIGHT, MEDIUM, PANES, START, TITLES, Column, Layout, make_pane
from evaltui.tui.pane import Copied, Pane, PaneFrame, Tab
from evaltui.tui.panes.bars import Footer, Header, Status, TabRow, TooSmall, is_too_small
from evaltui.tui.panes.tree.view import FilterInput
from evaltui.tui.screens.main_dialogs import MainDialogs
from evaltui.tui.textual_private import once
from evaltui.tui.widgets.fields import FilterLine, MessageField
from evaltui.workbench.actions import BY_ID, Scope
from evaltui.workbench.first_minute import is_first_minute
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.tui.panes.start import StartView

# Seconds until the cases that were drawn first are on the screen.
_SEEN = 0.05


class MainScreen(MainDialogs, inherit_bindings=False):
    """Shows panes in columns. Its actions work everywhere, or lead from one pane to another."""

    BINDINGS = bindings(Scope.MAIN)
    AUTO_FOCUS = "#cases"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self._layout = Layout()
        self._panes: dict[str, Pane] = {"cases": make_pane("cases", workbench)}
        self._filters: dict[str, FilterLine] = {"cases": FilterInput(workbench, id="filter")}
        there = {"cases": (self._filters["cases"], self._panes["cases"])}
        self._frames = {pane: PaneFrame(*there.get(pane, ()), id=f"{pane}-frame") for pane in TITLES}
        self._tabs = TabRow(id="tabs")
        self._status = Status(workbench, id="status")
        self._footer = Footer(workbench, id="footer")
        self._header = Header(workbench, id="header")
        self._will_complete = False
        self._came_from: str | None = None

    def compose(self) -> ComposeResult:
        # Arranged before it is styled, nothing is styled twice.
        self._show_columns(self.app.size)
        yield TooSmall(id="too-small")
        yield self._header
        yield self._tabs
        with Horizontal(id="panes"):
            yield from (self._frames[pane] for pane in LEFT_TO_RIGHT)
        yield self._status
        yield self._footer

    def on_mount(self) -> None:
        self.subscribe_to(self.workbench)
        self._arrange()

    def _pane(self, name: str) -> Pane:
        """A pane, made now if nobody has wanted it before."""
        if name not in self._panes:
            pane = self._panes[name] = make_pane(name, self.workbench)
            above, below = self._filter_above(name), pane.below()
            self._frames[name].mount(*(part for part in (above, pane, below) if part is not None))
        return self._panes[name]

    def _filter_above(self, name: str) -> FilterLine | None:
        if name != "trace":
            return None
        from evaltui.tui.panes.trace import TraceFilter

        self._filters[name] = TraceFilter(self.workbench, id="trace-filter")
        return self._filters[name]

    def complete(self) -> None:
        """Have every pane: the first frame was drawn with the cases alone."""
        if not self.is_attached:
            # Whoever was quick has left already.
            return
        for name in LEFT_TO_RIGHT:
            if name != START:
                self._pane(name)
        self.draw_soon()

    def _shown_in(self, name: str) -> Line:
        return self._panes[name].heading() if name in self._panes else []

    # Following the workbench

    def draw(self) -> None:
        if self.workbench.sets.workspace is None:
            # Cases do not wait for the frame after one that had none.
            self.drawn_at = 0.0
        elif not self._will_complete:
            self._will_complete = True
            once(self, _SEEN, self.complete)
        if self._layout.at_start != is_first_minute(self.workbench.sets):
            self._layout.start(not self._layout.at_start)
            self._arrange()
        self.ask()
        for line in self._filters.values():
            line.follow()
        for column in self._columns():
            if column.shown in self._panes:
                self._panes[column.shown].follow()
            self._draw_frame(column)
        self._footer.scope = self.scope
        for bar in (self._header, self._status, self._footer):
            bar.refresh()

    def _draw_frame(self, column: Column) -> None:
        tabs = tuple(
            Tab(name, KEYS.get(name, ""), TITLES[name], pane.mark() if pane else None, name == column.shown)
            for name in column.panes
            for pane in [self._panes.get(name)]
        )
        where = self._shown_in(column.shown)
        if self.has_class("-narrow"):
            self._tabs.show(tabs, where)
        self._frames[column.shown].show(tabs, where, focused=self._layout.focus == column.shown)

    # Layout

    @property
    def scope(self) -> Scope:
        """Where the keys work now."""
        if isinstance(self.focused, FilterLine):
            return Scope.FILTER
        if isinstance(self.focused, MessageField):
            return Scope.MESSAGE
        if isinstance(self.focused, Input | TextArea):
            return Scope.FIELD
        return Scope[self._layout.focus.upper()]

    def _columns(self) -> tuple[Column, ...]:
        return self._layout.columns(self.size.width)

    def _show_columns(self, size: Size) -> None:
        """Show what the layout says that there is room for."""
        columns = self._layout.columns(size.width)
        shown = {column.shown for column in columns}
        for name, frame in self._frames.items():
            frame.display = name in shown
        self.set_class(is_too_small(size), "-too-small")
        self.set_class(size.width < MEDIUM, "-narrow")
        self.set_class(len(columns) == 3, "-three")
        self.set_class(len(columns) == 1, "-alone")

    def _arrange(self) -> None:
        """Show what the layout says, and have the focus where it says."""
        self._show_columns(self.size)
        if (before := self._pane_of(self.focused)) != self._layout.focus:
            if before in self._panes:
                self._panes[before].left()
            self.set_focus(self._pane(self._layout.focus).entry, scroll_visible=False)
        self.draw_soon()

    def _pane_of(self, widget: Widget | None) -> str | None:
        """The pane that a widget is, or belongs to."""
        around = set(widget.ancestors_with_self) if widget else set()
        return next((pane for pane, frame in self._frames.items() if frame in around), None)

    def go_to(self, pane: str) -> None:
        if pane != self._layout.focus and self._layout.focus in self._panes:
            self._panes[self._layout.focus].left()
        self._layout.go_to(pane)
        self._arrange()

    def go_to_entry(self, pane: str) -> None:
        self.go_to(pane)
        self.set_focus(self._pane(pane).entry, scroll_visible=False)

    def on_resize(self) -> None:
        self._arrange()

    def follow(self) -> None:
        """The terminal may have another size, and anything may have happened meanwhile."""
        self._arrange()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        # A click focuses a pane, too. By the time this is heard of, the focus may be elsewhere again.
        pane = self._pane_of(event.widget)
        if event.widget is self.focused and pane is not None and pane != self._layout.focus:
            self.go_to(pane)
        self.draw_soon()

    # Actions

    @property
    def takes_input(self) -> bool:
        """Not where nothing of it can be seen."""
        return super().takes_input and not is_too_small(self.size)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "quit":
            return self.is_mounted and self.is_active
        return super().check_action(action, parameters)

    def refusal(self, action_id: str) -> str | None:
        if action_id == "step_back" and self._layout.maximised:
            return None
        action = BY_ID[action_id]
        if reason := action.refusal(self.workbench):
            return reason
        if self.scope is Scope.FIELD and action.where == (Scope.CASE,):
            # The keys of a pane are heard in its fields, too.
            return f"{action.title}: close the field first"
        return None

    def refuse(self, action_id: str) -> None:
        if self.takes_input and (reason := self.refusal(action_id)):
            self.workbench.say(reason)

    def action_run(self) -> None:
        self.workbench.runs.run_case()
        self.show_result()

    def show_result(self) -> None:
        """Who runs a case wants to see what comes of it; the focus stays in the list."""
        if self._layout.focus in ("trace", "console"):
            # There it is seen while it happens.
            return
        self._layout.bring_up("result")
        if self._layout.focus != "cases" and len(self._columns()) < 3:
            # It would stay below what has the focus.
            self._layout.go_to("result")
        self._arrange()

    def action_next_pane(self) -> None:
        self._step(1)

    def action_previous_pane(self) -> None:
        self._step(-1)

    def _step(self, step: int) -> None:
        """To the next place on the screen; where there is but one, to its next tab."""
        columns = self._columns()
        places = [column.shown for column in columns] if len(columns) > 1 else list(columns[0].panes)
        self.go_to(places[(places.index(self._layout.focus) + step) % len(places)])

    def action_next_difference(self) -> None:
        self._go_to_difference(1)

    def action_previous_difference(self) -> None:
        self._go_to_difference(-1)

    def _go_to_difference(self, step: int) -> None:
        from evaltui.tui.panes.result import ResultView

        self.go_to("result")
        self.query_one(ResultView).step_difference(step)
        self.draw_soon()

    def action_go_to_trace(self) -> None:
        self.go_to("trace")

    def action_show_event(self) -> None:
        """What happened where the result differs."""
        from evaltui.tui.panes.trace import TraceView

        self._leap("trace")
        at = self.workbench.navigation.difference
        if at is not None and at.turn is not None:
            call = self.workbench.navigation.made_call(at)
            trace = self.query_one(TraceView)
            self.call_after_refresh(trace.show, at.turn, call)

    def action_show_expected(self) -> None:
        """What is expected where the result differs."""
        from evaltui.tui.panes.case.view import CaseView

        self._leap("case")
        if (at := self.workbench.navigation.difference) is not None:
            self.call_after_refresh(self.query_one(CaseView).show_expected, at)

    def _leap(self, pane: str) -> None:
        self._came_from = self._layout.focus
        self.go_to(pane)

    def action_back(self) -> None:
        if self._came_from is None:
            self.workbench.say("there is nowhere to go back to: t and e in a result go elsewhere")
        else:
            back, self._came_from = self._came_from, None
            self.go_to(back)

    def action_zoom(self) -> None:
        self._layout.maximised = not self._layout.maximised
        self._arrange()

    def action_step_back(self) -> None:
        """Ends the zoom where there is nothing smaller to clear."""
        if self._layout.maximised and not self.workbench.navigation.is_narrowed:
            self.action_zoom()
        else:
            self.workbench.step_back()

    def action_toggle_cases(self) -> None:
        self._layout.hide_cases(not self._layout.cases_hidden)
        self._arrange()

    def action_filter(self) -> None:
        """Of the trace, if one is there; else of the cases."""
        pane = self._layout.focus if self._layout.focus in self._filters else "cases"
        self.go_to(pane)
        self._filters[pane].display = True
        # At once, not soon: what is typed right behind the key is meant for the filter.
        self.set_focus(self._filters[pane])

    def action_keep_filter(self) -> None:
        if line := self._filters.get(self._layout.focus):
            line.apply()
            self.set_focus(self._pane(self._layout.focus))

    def action_clear_filter(self) -> None:
        if line := self._filters.get(self._layout.focus):
            line.clear()
            self.action_keep_filter()

    def action_reload(self) -> None:
        self.run_worker(self.workbench.open(), group="reload", exclusive=True)

    def action_jump(self) -> None:
        """To any pane; those that share a place have their labels one below the other."""
        from evaltui.tui.screens.keys import Jump, JumpScreen

        jumps = [
            Jump(pane, KEYS[pane], TITLES[pane], self._frames[column.shown].region, row, len(column.panes))
            for column in self._columns()
            for row, pane in enumerate(column.panes)
            if pane in KEYS
        ]
        ask(self, JumpScreen(jumps), self.go_to)

    def action_copy(self) -> None:
        self._copy(self._pane(self._layout.focus).copied())

    def action_copy_json(self) -> None:
        self._copy(self._pane("result").copied_json())

    def _copy(self, copied: Copied | None) -> None:
        if copied is None:
            self.workbench.say("there is nothing to copy here")
        else:
            self.workbench.say(copy(self.app, self.workbench.agent.dir, copied))

    def on_case_tree_opened(self) -> None:
        """The result of a case that has one, else what it says."""
        case = self.workbench.navigation.selection.case
        has_result = case is not None and self.workbench.outcomes.status(case) != NOT_RUN
        self.go_to("result" if has_result else "case")

    def on_case_tree_edit(self) -> None:
        self.go_to("case")

    def on_result_view_case_made(self) -> None:
        self.go_to("case")

    def action_go_to(self, pane: str) -> None:
        """A click on a tab."""
        self.go_to(pane)

    async def on_start_view_in_cases(self, message: StartView.InCases) -> None:
        self.go_to("cases")
        await self.run_action(message.action)


for _kind in PANES:
    setattr(MainScreen, f"action_show_{_kind.id}", partialmethod(MainScreen.go_to_entry, _kind.id))
