"""The start pane of an agent without eval cases, and the line that leads through the demo."""

from __future__ import annotations

from textual import events
from textual.message import Message

from evaltui.files.agent_source import SourcePlace, root_place
from evaltui.text.lines import Line, Span
from evaltui.tui.action_screen import bindings
from evaltui.tui.page_pane import PagePane
from evaltui.tui.pane import Copied
from evaltui.tui.start.page import Choice, write_start
from evaltui.tui.widgets.lines import OneLine
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.actions import Scope
from evaltui.workbench.agent.first_minute import error_place, missing_package
from evaltui.workbench.agent.tour import END, STEPS, Tour
from evaltui.workbench.keymap import key_name
from evaltui.workbench.workbench import Workbench


class StartView(PagePane, can_focus=True, inherit_bindings=False):
    """Shown in place of the case and its result as long as there is no case."""

    BINDINGS = bindings(Scope.START)

    class InCases(Message):
        """An action of the list of cases is to be done there."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._choices: list[Choice] = []
        self._current = 0

    def shown_state(self) -> object:
        agent, workspace = self._workbench.agent, self._workbench.sets.workspace
        return (
            agent.info,
            agent.error,
            agent.python_check,
            self._workbench.has_chatted,
            workspace and workspace.skipped,
        )

    def mark(self) -> Span | None:
        return ("!", "error") if self._workbench.agent.error is not None else None

    def write(self, page: Page) -> None:
        self._choices = write_start(page, self._workbench)
        # The next step is chosen: after a conversation that is to save it.
        ready = self._workbench.agent.error is None
        self._current = int(ready and self._workbench.has_chatted)

    def copied(self) -> Copied | None:
        """The command that installs a missing package; else the page."""
        agent = self._workbench.agent
        missing = missing_package(agent.dir, agent.error, agent.address.interpreter) if agent.error else None
        if missing is not None and missing.command:
            return Copied("the command", missing.command)
        return super().copied()

    def source(self) -> SourcePlace | None:
        agent = self._workbench.agent
        if agent.error is not None:
            return error_place(agent, agent.error)
        return root_place(agent.dir)

    def line(self, number: int) -> Line:
        marker = ("▌", "bold accent") if number == self._line_of_current() else (" ", "")
        return [marker, *self.page.lines[number]]

    def row_role(self, number: int) -> str:
        return "current" if number == self._line_of_current() else ""

    def _line_of_current(self) -> int:
        return self._choices[self._current].line if self._choices else -1

    def _move_to(self, choice: int) -> None:
        if self._choices:
            self._current = max(0, min(choice, len(self._choices) - 1))
            self.show_line(self._line_of_current())
            self.refresh()

    def action_step_line(self, step: int) -> None:
        is_seen = step > 0 or self.scroll_offset.y <= self._line_of_current()
        if is_seen and 0 <= self._current + step < len(self._choices):
            self._move_to(self._current + step)
        else:
            super().action_step_line(step)

    async def action_take_step(self) -> None:
        if self._choices:
            await self.screen.run_action(self._choices[self._current].action)

    def action_new_case(self) -> None:
        self.post_message(self.InCases("new_case"))

    def action_new_set(self) -> None:
        self.post_message(self.InCases("new_set"))

    async def on_click(self, event: events.Click) -> None:
        line = self.scroll_offset.y + event.y
        for number, choice in enumerate(self._choices):
            if choice.line == line:
                self._move_to(number)
                await self.action_take_step()


class TourLine(OneLine):
    """The line that leads through the demo: what to press next."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        self.tour = Tour()
        """How far the user has come."""

    def follow(self, scope: Scope) -> None:
        """Shows the step of now; the focus is in `scope`."""
        self.tour.follow(self._workbench, scope)
        self.refresh_changed()

    def line(self, width: int) -> Line:
        step = self.tour.step
        if step is None:
            return [(" Demo ", "chip"), (" ✓ ", "bold success"), (END, "")]
        keys = step.shown_keys or ", ".join(map(key_name, step.keys))
        number = f" Demo {self.tour.index + 1}/{len(STEPS)} "
        return [(number, "chip"), (f"  {keys}", "bold accent"), (f"  {step.text}", "")]
