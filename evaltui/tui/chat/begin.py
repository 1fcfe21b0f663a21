"""Dialogs that start a chat: at a turn of a case, or a new one with a user, an agent and a session state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import TextArea

from evaltui.core.compare.turn_verdicts import turn_status
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Json
from evaltui.core.model.problems import Problem
from evaltui.documents.json_text import parse
from evaltui.text.figures import counted
from evaltui.text.lines import Line, pad
from evaltui.text.values import visible
from evaltui.tui.action_screen import start_work
from evaltui.tui.dialogs.prompt import (
    CANCEL,
    Dialog,
    DialogKeys,
    FormLabel,
    FormScreen,
    Hint,
    QuestionNote,
    dialog_name,
)
from evaltui.tui.exchange import EditorError, edit_outside
from evaltui.tui.widgets.choices import LABEL, ChoiceLine, ChoiceList
from evaltui.tui.widgets.fields import FieldLine, FieldText
from evaltui.tui.widgets.lines import DrawnLine
from evaltui.workbench.chat.controller import Source
from evaltui.workbench.chat.conversation import SessionStart
from evaltui.workbench.messages import AgentChanged, ChatProgressed
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.workbench.chat.origins import Origin


_TITLE_WIDTH = 28


class Way(NamedTuple):
    """A way to start a chat."""

    title: str
    remark: str
    """A remark about its cost."""
    start: Callable[[], None]
    why_not: str | None = None
    """Why it is refused; None where it is possible."""


class ChatFromScreen(FormScreen[bool]):
    """A dialog that starts a chat at a turn of a case; returns whether it has."""

    box = "#chat-from"
    AUTO_FOCUS = "#chat-ways"

    def __init__(self, workbench: Workbench, case_id: CaseId) -> None:
        super().__init__()
        self._workbench = workbench
        self._case = case_id
        self._origin: Origin | None = None
        self._refused: str | None = None
        eval_set = workbench.sets.by_case_path(case_id.path)
        number = eval_set.number(case_id.eval_id) if eval_set else None
        case = eval_set.cases[number] if eval_set and number is not None else None
        self._texts = case.outline.texts if case else ()
        self._turns = case.outline.turns or 0 if case else 0
        scored = workbench.outcomes.get(case_id)
        if case is not None and case.outline.turns is None and scored is not None:
            # A simulated user says something else each time.
            self._texts = tuple(turn.user for turn in scored.shown.turns)
            self._turns = len(self._texts)
        selected = workbench.navigation.selection
        at = selected.turn if selected.case == case_id and selected.turn is not None else self._failing_turn()
        self.turn = min(self._turns, at)
        self._ways = self._ways_from_turn()

    def on_mount(self) -> None:
        self.choices.highlighted = next((n for n, way in enumerate(self._ways) if way.why_not is None), 0)
        start_work(self, self._read_origin, exit_on_error=False)

    async def _read_origin(self) -> None:
        """Reads the result in the background, because a log may be long."""
        try:
            self._origin = await self._workbench.chat.origin(self._case)
        except (OSError, ValueError) as error:
            self._refused = str(error)
        if self.is_here:
            self._offer_ways()

    @property
    def choices(self) -> ChoiceList:
        return self.query_one(ChoiceList)

    def _offer_ways(self) -> None:
        """Offers the ways for the current turn; the chosen way stays chosen if it is possible."""
        self._ways = self._ways_from_turn()
        usable = [number for number, way in enumerate(self._ways) if way.why_not is None]
        chosen = self.choices.current
        self.choices.offer(len(self._ways), chosen if chosen in usable else usable[0] if usable else 0)

    def _way_line(self, number: int, is_current: bool) -> Line:
        way = self._ways[number]
        role = "muted" if way.why_not else "bold" if is_current else ""
        return [
            (f"{'start' if number == 0 else '':{LABEL}}", "muted"),
            ("▌" if is_current and self.choices.has_focus else " ", "bold accent"),
            ("● " if is_current else "○ ", "accent" if is_current else "muted"),
            (pad(way.title, _TITLE_WIDTH), role),
            (visible(way.why_not or way.remark), "muted"),
        ]

    def _why_not(self, source: Source) -> str | None:
        return self._refused or (self._origin.refuses(self.turn, source) if self._origin else None)

    def _failing_turn(self) -> int:
        """The first turn that did not pass, else the end."""
        scored = self._workbench.outcomes.get(self._case)
        if scored is None or scored.figures.passes:
            return self._turns
        result = scored.shown
        wrong = (n for n in range(self._turns) if turn_status(result, n) not in (None, "PASSED"))
        return next(wrong, 0 if result.error else self._turns)

    def compose(self) -> ComposeResult:
        name = dialog_name("chat_from_here")
        with Dialog(name, [(visible(self._case.eval_id), "muted")], id="chat-from"):
            yield DrawnLine(self._place, id="chat-turn")
            yield ChoiceList(len(self._ways), self._way_line, id="chat-ways")
            yield QuestionNote()
            yield DialogKeys(
                lambda: [
                    Hint("confirm", "start"),
                    Hint("line_down", "way", "↑↓"),
                    Hint("next_item", "turn", "←→"),
                    CANCEL,
                ]
            )

    def _place(self, width: int) -> Line:
        label = (f"{'from':{LABEL}}", "muted")
        if self.turn >= self._turns:
            after = f"  after {counted(self._turns, 'turn')}" if self._turns else ""
            return [label, (" the end " if self._turns else " the start ", "chip"), (after, "muted")]
        text = self._texts[self.turn] if self.turn < len(self._texts) else ""
        return [label, (f" turn {self.turn + 1} of {self._turns} ", "chip"), (f"  {visible(text)}", "muted")]

    def _ways_from_turn(self) -> list[Way]:
        chat, case, turn = self._workbench.chat, self._case, self.turn
        scored = self._workbench.outcomes.get(case)
        recorded = [
            Way(
                f"Continue from {scored.run.name}" if scored else "Continue from a run",
                f"{counted(turn, 'turn')} as in the run, nothing sent",
                lambda: chat.continue_from(case, turn, "recorded", "result"),
                self._why_not("result") if scored else "Case not run",
            ),
            Way(
                "Continue from the case",
                f"{counted(turn, 'turn')} as expected, nothing sent",
                lambda: chat.continue_from(case, turn, "recorded", "case"),
                self._why_not("case"),
            ),
        ]
        again = Way(
            f"Resend {counted(turn, 'message')}",
            "live, on the current code",
            lambda: chat.continue_from(case, turn, "live"),
            self._refused,
        )
        start = Way(
            "Start as the case does",
            "its session state, nothing sent",
            recorded[1].start,
            self._why_not("case"),
        )
        play = Way(
            "Replay the whole case",
            f"{counted(self._turns, 'message')}, live",
            lambda: chat.play(case),
            self._refused or (None if self._turns else "No turns"),
        )
        anew = Way("Start a new chat", "empty session, nothing sent", lambda: chat.new())
        return [*recorded, again, play, anew] if turn else [start, play, anew]

    @on(ChoiceList.OptionSelected)
    def action_confirm(self) -> None:
        way = self._ways[self.choices.current]
        if way.why_not is None:
            way.start()
            self.dismiss(True)

    def action_step_field(self, step: int) -> None:
        self.choices.action_step_line(step)

    def fields(self) -> list[Widget]:
        return [self.choices]

    def action_step_item(self, step: int) -> None:
        self._go_to_turn(self.turn + step)

    def action_form_toggle(self) -> None:
        self._go_to_turn((self.turn + 1) % (self._turns + 1))

    def _go_to_turn(self, turn: int) -> None:
        self.turn = max(0, min(turn, self._turns))
        self._offer_ways()
        self.query_one(DrawnLine).refresh()

    @on(ChoiceList.OptionHighlighted)
    def _show_why_not(self) -> None:
        self.query_one(QuestionNote).show(self._ways[self.choices.current].why_not)


_EMPTY_STATE = "empty"


class NewChatScreen(FormScreen[bool]):
    """A dialog that starts a new chat; returns whether it has."""

    box = "#new-chat"
    AUTO_FOCUS = "#chat-begin"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        transcript = workbench.chat.transcript
        self._starts = {_EMPTY_STATE: SessionStart()}
        if transcript is not None and transcript.session != SessionStart():
            self._starts["as before"] = transcript.session
        self._known_agents = self._agents()
        self._agent = transcript.agent_name if transcript else None

    def compose(self) -> ComposeResult:
        names = list(self._known_agents)
        agent = names.index(self._agent) if self._agent in names else 0
        with Dialog(dialog_name("new_chat"), id="new-chat"):
            yield ChoiceLine("session", list(self._starts), len(self._starts) - 1, id="chat-begin")
            yield ChoiceLine("agent", self._known_agents, agent, id="chat-agent")
            for label in ("user", "app"):
                with Horizontal(classes="form-line"):
                    yield FormLabel(label)
                    yield FieldLine(id=f"chat-{label}")
            with Horizontal(classes="form-text"):
                yield FormLabel("state")
                yield FieldText(id="chat-state")
            yield QuestionNote("The state is a JSON object.")
            yield DialogKeys(self._hints)

    def on_mount(self) -> None:
        self._fill()
        self._workbench.agent.learn_tools()
        self.subscribe_to(self._workbench.messages, AgentChanged, ChatProgressed)
        if (case := self._workbench.navigation.selection.case) is not None:
            start_work(self, self._offer_case, case, exit_on_error=False)

    def _hints(self) -> list[Hint]:
        if isinstance(self.focused, FieldText) and not isinstance(self.focused, FieldLine):
            return [Hint("end_text", "start"), Hint("next_field", "next"), Hint("leave_field")]
        return [
            Hint("confirm", "start"),
            Hint("next_field"),
            *([Hint("next_item", "choose", "←→")] if isinstance(self.focused, ChoiceLine) else []),
            CANCEL,
        ]

    # What there is to choose from

    def _agents(self) -> list[str]:
        """The agent, then its sub-agents."""
        info: dict[str, Any] = self._workbench.chat.session.info or self._workbench.agent.info or {}
        return [str(info.get("name") or "root agent"), *map(str, info.get("sub_agents") or ())]

    def follow(self) -> None:
        agents = self._agents()
        if agents != self._known_agents:
            self._known_agents = agents
            self.query_one("#chat-agent", ChoiceLine).offer(agents)

    async def _offer_case(self, case: Any) -> None:
        try:
            origin = await self._workbench.chat.origin(case)
        except ValueError:
            # A case that has no turns may be chatted from all the same, but for its session.
            return
        if not self.is_here:
            return
        self._starts[f"as {case.eval_id}"] = origin.session
        self.query_one("#chat-begin", ChoiceLine).offer(list(self._starts))

    def _fill(self) -> None:
        start = list(self._starts.values())[self.query_one("#chat-begin", ChoiceLine).chosen]
        self.query_one("#chat-user", FieldLine).show_text(start.user_id, selected=False)
        self.query_one("#chat-app", FieldLine).show_text(start.app_name, selected=False)
        text = json.dumps(start.state, indent=2, ensure_ascii=False) if start.state else "{}"
        self.query_one("#chat-state", FieldText).show_text(text, selected=False, is_json=True)

    def on_choice_line_changed(self, message: ChoiceLine.Changed) -> None:
        if message.line.id == "chat-begin":
            self._fill()

    # Keys

    def action_confirm(self) -> None:
        state, problem = self._state()
        if problem is not None:
            self.query_one(QuestionNote).show(problem)
            self.set_focus(self.query_one("#chat-state", FieldText))
            return
        agent = self.query_one("#chat-agent", ChoiceLine).chosen
        start = SessionStart(
            self.query_one("#chat-app", FieldLine).typed.strip(),
            self.query_one("#chat-user", FieldLine).typed.strip(),
            state=state,
        )
        self._workbench.chat.new(start, self._known_agents[agent] if agent else None)
        self.dismiss(True)

    def fields(self) -> Iterator[Widget]:
        yield from self.query("#chat-begin, #chat-agent, #chat-user, #chat-app, #chat-state").results(Widget)

    def action_in_editor(self) -> None:
        field = self.query_one("#chat-state", FieldText)
        try:
            field.show_text(edit_outside(self.app, field.text, ".json"), selected=False, is_json=True)
        except EditorError as error:
            self.query_one(QuestionNote).show(str(error))

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self.query_one(QuestionNote).show(self._state()[1])

    def on_descendant_focus(self) -> None:
        self.query_one(DialogKeys).refresh()

    def _state(self) -> tuple[Json, str | None]:
        """The typed state, and why it is invalid."""
        text = self.query_one("#chat-state", FieldText).text.strip()
        if not text:
            return {}, None
        state = parse(text)
        if isinstance(state, Problem):
            where = f"line {state.line}: " if state.line else ""
            return {}, f"{where}{state.message}"
        if not isinstance(state, dict):
            return {}, 'The state is not an object, e.g. {"name": 1}'
        return state, None
