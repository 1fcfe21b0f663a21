"""Links between panes of the main screen: differences, spans, rows of the chat."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from evaltui.core.model.tags import typed_tags_problem
from evaltui.tui.action_screen import ask
from evaltui.tui.layout import Layout
from evaltui.tui.main.dialogs import MainDialogs
from evaltui.tui.main.panes import Panes

if TYPE_CHECKING:
    from evaltui.workbench.chat.trace import ChatPlace


class MainLinks(MainDialogs, inherit_bindings=False):
    """The actions that show the current item of a pane in another pane, and the way back."""

    _layout: Layout
    _panes: Panes
    _came_from: str | None = None

    def action_tag_case(self) -> None:
        from evaltui.tui.dialogs.prompt import PromptScreen, dialog_name
        from evaltui.workbench.cases.set_editing import change_tags, chosen_named, common_tags, tags_hint

        editing = self.workbench.editing
        common, about = common_tags(editing), chosen_named(editing)
        value, hint = "".join(f"{tag} " for tag in common), tags_hint(editing)
        question = PromptScreen(dialog_name("tag_case"), value, typed_tags_problem, hint, about, adds=True)
        ask(self, question, partial(change_tags, editing, common))

    def action_mark_failing(self) -> None:
        from evaltui.workbench.cases.failing import mark_failing

        self.run_worker(mark_failing(self.workbench), group="marks", exclusive=True)

    def action_step_difference(self, step: int) -> None:
        from evaltui.tui.result.view import ResultView
        from evaltui.tui.trace.view import TraceView

        if self._layout.focus == "trace":
            self.query_one(TraceView).step_difference(step)
        else:
            self.go_to("result")
            self.query_one(ResultView).step_difference(step)
            shows_case = not self.workbench.navigation.trace_of_chat
            if shows_case and any(place.shown == "trace" for place in self._panes.places):
                self._show_event()
        self.draw_soon()

    def action_back_to_result(self) -> None:
        """Goes from the trace to its result, or to its row of the chat."""
        from evaltui.tui.trace.view import TraceView

        if not self.workbench.navigation.trace_of_chat:
            self.go_to("result")
            return
        place = self.query_one(TraceView).chat_place()
        self.go_to("chat")
        # To read, not to write.
        self.set_focus(self._panes.pane("chat"), scroll_visible=False)
        if place is not None:
            self._show_in_chat(place)

    def action_show_in_trace(self) -> None:
        """Goes from the chat or the result to the event of the current row; from elsewhere to the trace."""
        pane = self._layout.focus
        if pane == "chat":
            self._show_chat_in_trace()
            return
        self.workbench.navigation.trace_chat(False)
        if pane == "result":
            self._leap("trace")
            self._show_event()
        else:
            self.go_to("trace")

    def _show_chat_in_trace(self) -> None:
        from evaltui.tui.chat.view import ChatView

        place = self.query_one(ChatView).chat_place()
        self.workbench.navigation.trace_chat(True)
        self._layout.trace_of_chat = True
        self._leap("trace")
        if place is not None:
            self._show_in_trace(place)

    def on_chat_view_moved(self) -> None:
        """The trace beside the chat follows its current row."""
        from evaltui.tui.chat.view import ChatView

        place = self.query_one(ChatView).chat_place()
        if self._has_both and place is not None:
            self._show_in_trace(place)

    def on_trace_view_moved(self) -> None:
        """The chat follows the current span of its trace."""
        from evaltui.tui.trace.view import TraceView

        if (place := self.query_one(TraceView).chat_place()) is not None:
            self._show_in_chat(place)

    @property
    def _has_both(self) -> bool:
        """Whether the chat and its trace are side by side."""
        return {"chat", "trace"} <= {place.shown for place in self._panes.places}

    def _show_in_chat(self, place: ChatPlace) -> None:
        from evaltui.tui.chat.view import ChatView

        self.call_after_refresh(self.query_one(ChatView).show_place, place)

    def _show_in_trace(self, place: ChatPlace) -> None:
        from evaltui.tui.trace.view import TraceView

        self.call_after_refresh(self.query_one(TraceView).show_place, place)

    def _show_event(self) -> None:
        from evaltui.tui.trace.view import TraceView

        at = self.workbench.navigation.difference
        if at is not None and at.turn is not None:
            call = self.workbench.navigation.made_call(at)
            trace = self.query_one(TraceView)
            self.call_after_refresh(trace.show, at.turn, call)

    def action_show_expected(self) -> None:
        """Shows the expected value of the current difference."""
        from evaltui.tui.case.view import CaseView
        from evaltui.tui.result.view import ResultView

        self.query_one(ResultView).select_a_difference()
        self._leap("case")
        if (at := self.workbench.navigation.difference) is not None:
            self.call_after_refresh(self.query_one(CaseView).show_expected, at)

    def _leap(self, pane: str) -> None:
        self._came_from = self._layout.focus
        self.go_to(pane)

    def action_back(self) -> None:
        if self._came_from is None:
            self.workbench.say("No previous location")
        else:
            back, self._came_from = self._came_from, None
            self.go_to(back)
