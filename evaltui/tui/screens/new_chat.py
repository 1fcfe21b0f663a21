"""Where a new conversation begins: the agent in it, its user and app, the session state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import TextArea

from evaltui.core.model.events import Json
from evaltui.core.model.problems import Problem
from evaltui.files.json_text import parse
from evaltui.tui.exchange import EditorError, edit_outside
from evaltui.tui.screens.prompt import FormLabel, FormScreen, Hint, Hints, QuestionNote, QuestionTitle
from evaltui.tui.widgets.choices import ChoiceLine
from evaltui.tui.widgets.fields import FieldLine, FieldText
from evaltui.workbench.chat.conversation import SessionStart
from evaltui.workbench.workbench import Workbench

_EMPTY = "an empty session"


class NewChatScreen(FormScreen):
    """Begins a conversation, and returns whether it has."""

    box = "#new-chat"
    AUTO_FOCUS = "#chat-begin"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        transcript = workbench.chat.transcript
        self._starts = {_EMPTY: SessionStart()}
        if transcript is not None and transcript.session != SessionStart():
            self._starts["as the conversation before"] = transcript.session
        self._known_agents = self._agents()
        self._agent = transcript.agent_name if transcript else None

    def compose(self) -> ComposeResult:
        names = list(self._known_agents)
        agent = names.index(self._agent) if self._agent in names else 0
        with Vertical(id="new-chat"):
            yield QuestionTitle("New conversation")
            yield ChoiceLine("begin", list(self._starts), len(self._starts) - 1, id="chat-begin")
            yield ChoiceLine("agent", self._known_agents, agent, id="chat-agent")
            for label in ("user", "app"):
                with Horizontal(classes="form-line"):
                    yield FormLabel(label)
                    yield FieldLine(id=f"chat-{label}")
            with Horizontal(classes="form-text"):
                yield FormLabel("state")
                yield FieldText(id="chat-state")
            yield QuestionNote("the state is a JSON object; ctrl+j begins from there")
            yield Hints(self._workbench, self._hints)

    def on_mount(self) -> None:
        self._fill()
        self._workbench.agent.learn_tools()
        self.subscribe_to(self._workbench)
        if (case := self._workbench.navigation.selection.case) is not None:
            self.run_worker(self._offer_case(case), exit_on_error=False)

    def _hints(self) -> list[Hint]:
        if isinstance(self.focused, FieldText) and not isinstance(self.focused, FieldLine):
            return [Hint("end_text", "begin"), Hint("next_field", "next"), Hint("leave_field", "leave")]
        return [
            Hint("form_take", "begin"),
            Hint("form_next", "next"),
            *([Hint("form_right", "another")] if isinstance(self.focused, ChoiceLine) else []),
            Hint("form_leave", "leave"),
        ]

    # What there is to choose from

    def _agents(self) -> list[str]:
        """The agent itself, then those below it."""
        info: dict[str, Any] = self._workbench.chat.session.info or self._workbench.agent.info or {}
        return [str(info.get("name") or "the agent itself"), *map(str, info.get("sub_agents") or ())]

    def follow(self) -> None:
        known = self._agents()
        if known != self._known_agents:
            self._known_agents = known
            self.query_one("#chat-agent", ChoiceLine).offer(known)

    async def _offer_case(self, case: Any) -> None:
        try:
            found = await self._workbench.chat.origin(case)
        except ValueError:
            # A case that has no turns may be chatted from all the same, but for its session.
            return
        if not self.is_here:
            return
        self._starts[f"as {case.eval_id} begins"] = found.session
        self.query_one("#chat-begin", ChoiceLine).offer(list(self._starts))

    def _fill(self) -> None:
        start = list(self._starts.values())[self.query_one("#chat-begin", ChoiceLine).chosen]
        self.query_one("#chat-user", FieldLine).begin(start.user_id, selected=False)
        self.query_one("#chat-app", FieldLine).begin(start.app_name, selected=False)
        text = json.dumps(start.state, indent=2, ensure_ascii=False) if start.state else "{}"
        self.query_one("#chat-state", FieldText).begin(text, selected=False, is_json=True)

    def on_choice_line_changed(self, message: ChoiceLine.Changed) -> None:
        if message.line.id == "chat-begin":
            self._fill()

    # Keys

    def action_form_take(self) -> None:
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

    action_end_field = action_end_text = action_save_field = action_form_take

    def fields(self) -> Iterator[Widget]:
        yield from self.query("#chat-begin, #chat-agent, #chat-user, #chat-app, #chat-state").results(Widget)

    def action_field_in_editor(self) -> None:
        field = self.query_one("#chat-state", FieldText)
        try:
            field.begin(edit_outside(self.app, field.text, ".json"), selected=False, is_json=True)
        except EditorError as error:
            self.query_one(QuestionNote).show(str(error))

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self.query_one(QuestionNote).show(self._state()[1])

    def on_descendant_focus(self) -> None:
        self.query_one(Hints).refresh()

    def _state(self) -> tuple[Json, str | None]:
        """What is typed, and why it is no state."""
        text = self.query_one("#chat-state", FieldText).text.strip()
        if not text:
            return {}, None
        found = parse(text)
        if isinstance(found, Problem):
            where = f"line {found.line}: " if found.line else ""
            return {}, f"{where}{found.message}"
        if not isinstance(found, dict):
            return {}, 'the state is an object: {"name": value, ...}'
        return found, None
