"""The start pane of an agent without eval cases, and the line of the demo's tour."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from textual import events
from textual.message import Message

from evaltui.core.model.case_id import CaseId
from evaltui.project.agent_source import SourcePlace, root_place
from evaltui.text.lines import Line, Span
from evaltui.tui.action_screen import bindings
from evaltui.tui.pane import CopiedText, PagePane
from evaltui.tui.start.page import Choice, write_start
from evaltui.tui.widgets.lines import OneLine
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.actions import Scope
from evaltui.workbench.agent.first_minute import error_place, missing_package
from evaltui.workbench.keymap import key_name
from evaltui.workbench.messages import AgentChanged, ChatProgressed, FilesChanged
from evaltui.workbench.workbench import Workbench

IsDone = Callable[[Workbench, Scope], bool]


class TourStep(NamedTuple):
    """A sentence with the next action, and the condition that it was done."""

    text: str
    keys: tuple[str, ...]
    """Key names of Textual; a key with a space in it is a text to type."""
    is_done: IsDone
    """Whether the state of the workbench shows that it was done; the scope is that of the focus."""
    shown_keys: str = ""
    """The shown keys; "" for their names."""


def _is_at(eval_id: str, workbench: Workbench, _: Scope) -> bool:
    """Whether the selection is at a difference of a case."""
    navigation = workbench.navigation
    return navigation.selection.eval_id == eval_id and navigation.difference is not None


def _is_at_expectation(workbench: Workbench, scope: Scope) -> bool:
    return workbench.navigation.selection.eval_id == "half_refund" and scope in (Scope.CASE, Scope.FIELD)


def _passes(eval_id: str, workbench: Workbench, _: Scope) -> bool:
    return any(
        workbench.outcomes.status(CaseId(eval_set.case_path, eval_id)) == "PASSED"
        for eval_set in workbench.sets.listed
    )


def _own_case_passes(workbench: Workbench, _: Scope) -> bool:
    case = workbench.navigation.selection.case
    return case is not None and workbench.outcomes.status(case) == "PASSED"


TOUR_STEPS = (
    TourStep("Four cases are run: three will fail", (), partial(_is_at, "cancel_order")),
    TourStep(
        "The wording is new. Accept it: it becomes expected",
        ("a", "enter"),
        partial(_passes, "cancel_order"),
    ),
    TourStep("Next failing case: the reference varies", ("f", "n"), partial(_is_at, "arrived_broken")),
    TourStep(
        "Relax it: any reference of this form",
        ("x", "down", "enter"),
        partial(_passes, "arrived_broken"),
        "x, ↓, enter",
    ),
    TourStep("Next: the case is wrong. Go to what it expects", ("f", "n", "e"), _is_at_expectation),
    TourStep(
        "Edit 52 to 25: it is scored as you type",
        ("enter", "backspace", "backspace", "2", "5", "enter"),
        partial(_passes, "half_refund"),
        "enter, …, enter",
    ),
    TourStep(
        "Save the eval set and its config", ("ctrl+s",), lambda workbench, _: not workbench.editing.unsaved()
    ),
    TourStep(
        "Watch: every save of agent.py runs its cases again", ("w",), lambda workbench, _: workbench.watch.on
    ),
    TourStep(
        'Chat: ask "Where is order 1001?"',
        ("4", "Where is order 1001?", "enter"),
        lambda workbench, _: workbench.has_chatted,
        "4, …, enter",
    ),
    TourStep("Save the chat as a case", ("ctrl+t", "enter"), lambda workbench, _: workbench.chat.has_saved),
    TourStep("Run your case: it passes", ("r",), _own_case_passes),
)
TOUR_END = "Done: chat, save, run, accept or relax.  Yours: evaltui new DIR"


class StartView(PagePane, can_focus=True, inherit_bindings=False):
    """Replaces the case and its result while there is no case."""

    BINDINGS = bindings(Scope.START)
    SHOWS = (AgentChanged, ChatProgressed, FilesChanged)

    class InCases(Message):
        """An action to run in the list of cases."""

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

    def copied(self) -> CopiedText | None:
        """The command that installs a missing package; else the page."""
        agent = self._workbench.agent
        missing = missing_package(agent.dir, agent.error, agent.address.interpreter) if agent.error else None
        if missing is not None and missing.command:
            return CopiedText("the command", missing.command)
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
    """The line of the demo's tour: the key to press next."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        self.index = 0
        """The current step, 0-based; the number of steps at the end."""

    @property
    def step(self) -> TourStep | None:
        """The current step; None at the end."""
        return TOUR_STEPS[self.index] if self.index < len(TOUR_STEPS) else None

    def follow(self, scope: Scope) -> None:
        """Shows the first step that is not done; the focus is in `scope`. No key is pressed automatically."""
        while self.step is not None and self.step.is_done(self._workbench, scope):
            self.index += 1
        self.refresh_changed()

    def line(self, width: int) -> Line:
        step = self.step
        if step is None:
            return [(" Demo ", "chip"), (" ✓ ", "bold success"), (TOUR_END, "")]
        keys = step.shown_keys or ", ".join(map(key_name, step.keys))
        number = f" Demo {self.index + 1}/{len(TOUR_STEPS)} "
        return [(number, "chip"), (f"  {keys}", "bold accent"), (f"  {step.text}", "")]
