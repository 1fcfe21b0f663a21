"""The main screen: the panes of the layout, and the lines around them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partialmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import events, work
from textual.app import ComposeResult
from textual.geometry import Size

from evaltui.documents.recovery import Recovered, recoverable
from evaltui.project.folders import agent_folder
from evaltui.project.settings import last_sizes
from evaltui.text.outcomes import NOT_RUN
from evaltui.tui.action_screen import ActionScreen, bindings, start_work
from evaltui.tui.exchange import copy
from evaltui.tui.layout import DRAGGED_SIZES, MEDIUM_WIDTH, PANES, TITLES, Layout
from evaltui.tui.main.bars import Footer, Header, Status, TooSmall, is_too_small
from evaltui.tui.main.panes import Panes, other_panes
from evaltui.tui.pane import Beside, CopiedText, PaneForm
from evaltui.tui.textual_private import TextField, call_later_once
from evaltui.workbench.actions import ACTIONS, ACTIONS_BY_ID, Action, Scope
from evaltui.workbench.agent.first_minute import is_first_minute
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.documents.open_file import FileConflict
    from evaltui.tui.start.view import StartView, TourLine

# Seconds until the cases that were drawn first are on the screen.
_SEEN_SECONDS = 0.05
# Rows of the frame around the cases and of their filter.
_AROUND_CASES = 4


class MainScreen(ActionScreen[None], inherit_bindings=False):
    """The main screen. Its actions are global; those that its first frame does not need are functions of
    `evaltui.tui.main.dialogs`, which the app adds."""

    BINDINGS = bindings(Scope.MAIN)
    AUTO_FOCUS = "#cases"
    ask_pending: Callable[[], None]
    """Opens the next pending question, unless another one is open."""
    action_quit: Callable[[], Awaitable[None]]

    def __init__(self, workbench: Workbench, *, tour: bool = False) -> None:
        super().__init__()
        self.workbench = workbench
        self.next_agent: Path | None = None
        """Folder of the agent that is opened after this one is closed."""
        self.recovered: list[Recovered] = []
        """The unsaved changes of an earlier session, until they are asked about."""
        self.shown_conflicts: list[FileConflict] = []
        """The conflicts that were asked about."""
        self._came_from: str | None = None
        self.arrangement = Layout(sizes=last_sizes(DRAGGED_SIZES))
        self.panes = Panes(workbench, self.arrangement, id="panes")
        self._status = Status(workbench, id="status")
        self._footer = Footer(workbench, id="footer")
        self._header = Header(workbench, id="header")
        self._tour: TourLine | None = None
        if tour:
            from evaltui.tui.start.view import TourLine

            self._tour = TourLine(workbench, id="tour")
            self.arrangement.bars += 1
        self._will_complete = False
        self.seen = asyncio.Event()
        """Set once the first drawn cases are on the screen."""

    def compose(self) -> ComposeResult:
        # Arranged before it is styled, nothing is styled twice.
        self._show_places(self.app.size)
        yield TooSmall(id="too-small")
        yield self._header
        yield self.panes.tabs
        yield self.panes
        if self._tour is not None:
            yield self._tour
        yield self._status
        yield self._footer

    def on_mount(self) -> None:
        self.subscribe_to(self.workbench.messages)
        self._arrange()

    # What was seen last

    def show_view(self, view: Mapping[str, Any]) -> None:
        """Restores the view of the last session."""
        path, eval_id, folded, toggled = (view.get(name) for name in ("set", "case", "folded", "toggled"))
        if isinstance(path, str):
            self.workbench.navigation.selection = Selection(
                path, eval_id if isinstance(eval_id, str) else None
            )
        if isinstance(toggled, list):
            self.workbench.navigation.toggled = frozenset(map(str, toggled))
        if isinstance(folded, list):
            self.workbench.navigation.folded_sets.update(map(str, folded))
        if (dock := view.get("dock")) in TITLES:
            self.arrangement.dock = dock
        if (upper := view.get("upper")) in TITLES:
            self.arrangement.bring_up(upper)
        self.arrangement.dock_hidden = view.get("dock_hidden") is True
        self.arrangement.nothing_run = not view

    def view(self) -> dict[str, Any]:
        """The view: the selected case, the panes on top, the folded sets, and the folded parts of its
        result."""
        selection, layout = self.workbench.navigation.selection, self.arrangement
        return {
            "set": selection.path,
            "case": selection.eval_id,
            "upper": None if layout.undecided else layout.upper,
            "dock": layout.dock,
            "dock_hidden": layout.dock_hidden,
            "folded": sorted(self.workbench.navigation.folded_sets),
            "toggled": sorted(self.workbench.navigation.toggled),
        }

    async def offer_unsaved(self) -> None:
        """Offers the unsaved changes of an earlier session, once no other screen is open."""
        if not self.workbench.read_only:
            self.recovered = await asyncio.to_thread(recoverable, agent_folder(self.workbench.agent.dir))
            self.draw_soon()

    async def begin_tour(self) -> None:
        """Runs the cases of the demo, and shows why the first one fails."""
        self.workbench.runs.run_all()
        await self.workbench.runs.finished()
        for action in ("next_failing", "show_result", "next_difference"):
            await self.run_action(action)

    @work
    async def complete(self) -> None:
        """Creates the other panes after the first frame, which has only the cases. Keys do not wait for their
        import."""
        await asyncio.to_thread(other_panes)
        if not self.is_attached:
            # Whoever was quick has left already.
            return
        self.seen.set()
        self.panes.make_all()
        self.draw_soon()

    # Following the workbench

    def draw(self) -> None:
        if self.workbench.sets.workspace is None:
            # Cases do not wait for the frame after one that had none.
            self.drawn_at = 0.0
        elif not self._will_complete:
            self._will_complete = True
            call_later_once(self, _SEEN_SECONDS, self.complete)
        before = self.arrangement.at_start, self.arrangement.nothing_run
        self.arrangement.trace_of_chat = self.workbench.navigation.trace_of_chat
        self.arrangement.start(is_first_minute(self.workbench.sets))
        if self.workbench.sets.is_read and not self.workbench.outcomes.is_loading:
            self.arrangement.nothing_run = self.workbench.is_unused
        rows = sum(len(eval_set.cases) + 2 for eval_set in self.workbench.sets.listed) + _AROUND_CASES
        now = self.arrangement.at_start, self.arrangement.nothing_run
        if now != before or rows != self.arrangement.cases_rows:
            self.arrangement.cases_rows = rows
            self._arrange()
        if self.arrangement.undecided and self.workbench.outcomes.get(
            self.workbench.navigation.selection.case
        ):
            self.arrangement.bring_up("result")
            self._arrange()
        if self.recovered or self.workbench.editing.conflicts:
            self.ask_pending()
        self.panes.draw(anew=self._draws_all)
        self._footer.scope = self.scope
        if self._tour is not None:
            self._tour.follow(self.scope)

    # Layout

    @property
    def scope(self) -> Scope:
        """The scope of the keys."""
        field = self.focused if isinstance(self.focused, TextField) else None
        if field is not None and field.scope in (Scope.FILTER, Scope.MESSAGE):
            return field.scope
        if self.focused is not None and any(isinstance(node, PaneForm) for node in self.focused.ancestors):
            return Scope.FORM
        if field is not None:
            return field.scope
        if self.focused is not None and any(isinstance(node, Beside) for node in self.focused.ancestors):
            return Scope.INSPECTOR
        return Scope[self.arrangement.focus.upper()]

    def _show_places(self, size: Size) -> None:
        self.panes.show_places(size)
        is_small = is_too_small(size)
        self.set_class(is_small, "-too-small")
        self.set_class(size.width < MEDIUM_WIDTH and not is_small, "-narrow")

    def _arrange(self) -> None:
        """Shows the panes of the layout, and focuses its pane."""
        self._show_places(self.size)
        if (before := self.panes.name_of(self.focused)) != self.arrangement.focus:
            if before is not None and not self._leaves(before):
                self.arrangement.go_to(before)
                return
            self.set_focus(self.panes.pane(self.arrangement.focus).entry, scroll_visible=False)
        self.draw_soon()

    def _leaves(self, pane: str) -> bool:
        """Whether the focused pane lets the focus go."""
        return pane not in self.panes.made or self.panes.made[pane].left()

    def go_to(self, pane: str) -> None:
        if pane != self.arrangement.focus and not self._leaves(self.arrangement.focus):
            return
        # The first case may be newer than what is drawn.
        self.arrangement.start(is_first_minute(self.workbench.sets))
        if pane in ("case", "result", "chat") and self.arrangement.has_dock(self.size):
            # The trace below is of what is above it.
            self.workbench.navigation.trace_chat(pane == "chat")
        self.arrangement.go_to(pane)
        self._arrange()

    def go_to_entry(self, pane: str) -> None:
        if (
            pane == self.arrangement.focus
            and pane == self.arrangement.dock
            and self.arrangement.has_dock(self.size)
        ):
            # The key of the dock's tab shows the dock, and hides it.
            if not self._leaves(pane):
                return
            self.arrangement.hide_dock()
            self._arrange()
            return
        self.go_to(pane)
        self.set_focus(self.panes.pane(pane).entry, scroll_visible=False)

    def follow(self) -> None:
        """Shows the current state: the terminal may have another size, and anything may have changed."""
        self._arrange()

    on_resize = follow

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        # A click focuses a pane, too. By the time this is heard of, the focus may be elsewhere again.
        pane = self.panes.name_of(event.widget)
        if event.widget is self.focused and pane is not None and pane != self.arrangement.focus:
            self.go_to(pane)
        self.draw_soon()

    # Actions

    @property
    def takes_input(self) -> bool:
        """False also where the screen is too small to be seen."""
        return super().takes_input and not is_too_small(self.size)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "quit":
            return self.is_mounted and self.is_active
        return super().check_action(action, parameters)

    def refusal(self, action_id: str) -> str | None:
        if action_id == "step_back" and (self.arrangement.maximised or self.scope is Scope.INSPECTOR):
            return None
        action = ACTIONS_BY_ID[action_id]
        if reason := action.refusal(self.workbench, self.scope):
            return reason
        in_case = Scope.CASE in action.where and self.scope not in action.where and not action.is_move
        if in_case and self.scope in (Scope.FIELD, Scope.TEXT):
            # The keys of a pane are heard in its fields, too.
            return f"{action.title}: close the field first"
        pane = self.panes.made.get(self.arrangement.focus)
        return pane.refusal(action_id) if pane is not None and self.scope in action.where else None

    def footer_word(self, action: Action) -> str:
        if action.id == "step_back" and self.scope is Scope.INSPECTOR:
            return "back"
        if action.id == "step_back" and self.arrangement.maximised:
            return "unzoom"
        pane = self.panes.made.get(self.arrangement.focus)
        return super().footer_word(action) if pane is None else pane.footer_word(action)

    def action_run(self) -> None:
        self.workbench.runs.run_chosen()
        self.show_result()

    def show_result(self) -> None:
        """Shows the result when a case is run; the focus stays in the list."""
        if self.arrangement.focus in ("trace", "console"):
            # There it is seen while it happens.
            return
        self.arrangement.bring_up("result")
        if self.arrangement.focus != "cases" and "result" not in {place.shown for place in self.panes.places}:
            # It would stay below what has the focus.
            self.arrangement.go_to("result")
        self._arrange()

    def action_step_pane(self, step: int) -> None:
        """Goes to the next place on the screen; with a single place, to its next tab."""
        places = self.panes.places
        panes = [place.shown for place in places] if len(places) > 1 else list(places[0].panes)
        self.go_to(panes[(panes.index(self.arrangement.focus) + step) % len(panes)])

    def action_zoom(self) -> None:
        self.arrangement.maximised = not self.arrangement.maximised
        self._arrange()

    def action_step_back(self) -> None:
        """Clears the smallest thing first; ends the zoom where nothing else is left."""
        if self.arrangement.maximised and not self.workbench.navigation.is_narrowed:
            self.action_zoom()
        else:
            self.workbench.step_back()

    def action_toggle_cases(self) -> None:
        self.arrangement.hide_cases(not self.arrangement.cases_hidden)
        self._arrange()

    def action_widen_cases(self, cells: int) -> None:
        self.panes.widen_cases(cells)

    def action_filter(self) -> None:
        """Focuses the filter of the focused pane, if it has one; else that of the cases."""
        pane = self.arrangement.focus if self.arrangement.focus in self.panes.filters else "cases"
        self.go_to(pane)
        line = self.panes.filter(pane)
        line.display = True
        # At once, not soon: what is typed right behind the key is meant for the filter.
        self.set_focus(line)

    def action_keep_filter(self) -> None:
        if line := self.panes.filters.get(self.arrangement.focus):
            line.apply()
            self.set_focus(self.panes.pane(self.arrangement.focus))

    def action_clear_filter(self) -> None:
        if line := self.panes.filters.get(self.arrangement.focus):
            line.clear()
            self.action_keep_filter()

    def action_reload(self) -> None:
        start_work(self, self.workbench.reload, group="reload")

    def action_step_repeat(self, step: int) -> None:
        self.workbench.navigation.step_repeat(step)

    def leap(self, pane: str) -> None:
        """Goes to a pane, from which `action_back` returns."""
        self._came_from = self.arrangement.focus
        self.go_to(pane)

    def action_back(self) -> None:
        if self._came_from is None:
            self.workbench.say("No previous location")
        else:
            back, self._came_from = self._came_from, None
            self.go_to(back)

    def action_copy(self) -> None:
        self._copy(self.panes.pane(self.arrangement.focus).copied())

    def action_copy_json(self) -> None:
        self._copy(self.panes.pane("result").copied_json())

    def _copy(self, copied: CopiedText | None) -> None:
        if copied is None:
            self.workbench.say("Nothing to copy")
        else:
            self.workbench.say(copy(self.app, self.workbench, copied))

    def on_case_tree_opened(self) -> None:
        """Goes to the result of a case, else to the case."""
        case = self.workbench.navigation.selection.case
        has_result = case is not None and self.workbench.outcomes.status(case) != NOT_RUN
        self.go_to("result" if has_result else "case")

    action_edit_case = partialmethod(go_to, "case")

    def on_result_view_case_made(self) -> None:
        self.go_to("case")

    def action_go_to(self, pane: str) -> None:
        """Shows a tab, by a click."""
        self.go_to(pane)

    async def on_start_view_in_cases(self, message: StartView.InCases) -> None:
        self.go_to("cases")
        await self.run_action(message.action)


for _kind in PANES:
    setattr(MainScreen, f"action_show_{_kind.id}", partialmethod(MainScreen.go_to_entry, _kind.id))


def _workbench_action(do: Callable[[Workbench], object]) -> Callable[[MainScreen], None]:
    def action(screen: MainScreen) -> None:
        do(screen.workbench)

    return action


# What the registry does without a screen is an action of this one, unless it does more.
for _action in ACTIONS:
    if _action.do is not None and not hasattr(MainScreen, _action.method):
        setattr(MainScreen, _action.method, _workbench_action(_action.do))
