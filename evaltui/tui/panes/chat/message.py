"""The message that is being written, and what is shown around it."""

from __future__ import annotations

from evaltui.core.recording.responding import ResponseError
from evaltui.core.recording.waiting import WaitingCall
from evaltui.text.lines import Line
from evaltui.text.values import show_duration, visible
from evaltui.tui import attaching
from evaltui.tui.external_editor import EditorError, edit_outside
from evaltui.tui.panes.chat.message_draft import MessageDraft
from evaltui.tui.widgets.block_lines import BlockLines
from evaltui.tui.widgets.message_box import MessageBox
from evaltui.workbench.actions import BY_ID, keys_of
from evaltui.workbench.chat.conversation import ChatTurn
from evaltui.workbench.keymap import key_name
from evaltui.workbench.workbench import Workbench

_TICK = 0.2


class ChatMessage(MessageBox):
    """Stands below `rows`, the conversation."""

    def __init__(self, workbench: Workbench, rows: BlockLines, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        self._chat = workbench.chat
        self._rows = rows
        self._draft = MessageDraft()

    def on_mount(self) -> None:
        # The clock of a turn that runs.
        self.set_interval(_TICK, lambda: self.follow() if self._chat.busy and self.is_on_screen else None)

    def take_proposal(self) -> None:
        """Writes the message that is proposed next, unless another one is being written."""
        proposal = self._chat.take_proposal()
        if proposal is not None and not self.field.text.strip() and not self._draft.has_attached:
            self.field.begin(self._draft.begin(proposal))

    def edit(self, turn: ChatTurn) -> None:
        """Begins to write another message in place of that of a turn."""
        self.field.begin(self._draft.begin_instead(turn, self.field.text))
        self.write()

    def write(self) -> None:
        """Gives the focus to the field."""
        self.follow()
        self.screen.set_focus(self.field, scroll_visible=False)

    # Around the field

    def note(self) -> tuple[Line, Line]:
        chat, transcript = self._chat, self._chat.transcript
        below = self._rows.lines_below
        more: Line = [(f"{below:,} more line{'' if below == 1 else 's'} below", "dim")] if below else []
        if chat.cancelling:
            return [("◐ cancelling", "accent")], more
        if chat.session.opening:
            return [("◐ starting the agent", "accent")], more
        for number, turn in enumerate(transcript.turns if transcript else (), 1):
            if turn.stage == "running":
                spent = show_duration(turn.seconds or 0.0)
                return [("◐ ", "accent"), (f"turn {number}", "accent"), (f" · {spent}", "dim")], more
        return self._code_changes(), more

    def _code_changes(self) -> Line:
        if not (files := self._chat.session.code_changes):
            return []
        key = key_name(keys_of(BY_ID["replay"], self._workbench)[0])
        named = visible(files[0]) if len(files) == 1 else f"{visible(files[0])} and {len(files) - 1} more"
        changed: Line = [(f"{named} changed", "accent"), (": the next turn uses the new code", "")]
        if self._chat.refuses_to_replay() is None:
            changed += [("  ", ""), (key, "bold"), (" replays", "dim")]
        return changed

    def chips(self) -> Line:
        return self._draft.chips(self._replaced, self._waiting)

    @property
    def _waiting(self) -> list[WaitingCall]:
        """The calls that what is typed may be the response to."""
        return self._chat.waiting(self._draft.instead_of)

    @property
    def _replaced(self) -> int | None:
        """Index of the turn that the message replaces, 0-based; None for a new turn."""
        turn, transcript = self._draft.instead_of, self._chat.transcript
        if turn is None or transcript is None or turn not in transcript.turns:
            return None
        return transcript.turns.index(turn)

    # Actions

    def action_send(self) -> None:
        text = self.field.text
        try:
            content = self._draft.content(text, self._draft.target(self._waiting))
        except ResponseError as error:
            self._workbench.say(str(error))
            return
        if not content["parts"]:
            self._workbench.say("there is nothing to send yet: write a message")
            return
        if reason := self._chat.refuses_to_send():
            self._workbench.say(reason)
            return
        replaced = self._replaced
        self.field.begin(self._draft.end())
        self.call_after_refresh(self._rows.show_end)
        if replaced is None:
            self._chat.send(content)
        else:
            self._chat.resend(replaced, content)

    def action_leave_message(self) -> None:
        if self._chat.busy:
            self._chat.cancel()
        elif self._draft.instead_of is not None:
            self.field.begin(self._draft.end())
            self.follow()
        else:
            self.screen.set_focus(self._rows, scroll_visible=False)

    def action_earlier_message(self) -> None:
        if self.field.wrapped_row > 0:
            self.field.action_cursor_up()
        else:
            self._recall(self._draft.earlier(self.field.text, self._chat.inputs))

    def action_later_message(self) -> None:
        if self.field.wrapped_row < self.field.wrapped_document.height - 1:
            self.field.action_cursor_down()
        else:
            self._recall(self._draft.later(self._chat.inputs))

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.field.begin(text)

    def action_earlier_rows(self) -> None:
        self._rows.scroll_page_up(animate=False)

    def action_later_rows(self) -> None:
        self._rows.scroll_page_down(animate=False)

    def action_respond_to_next(self) -> None:
        self._draft.turn_to_next(self._waiting)
        self.follow()

    def action_message_in_editor(self) -> None:
        try:
            changed = edit_outside(self.app, self.field.text, ".md")
        except EditorError as error:
            self._workbench.say(str(error))
            return
        self.field.begin(changed)

    def action_attach_file(self) -> None:
        from evaltui.tui.screens.prompt import PromptScreen

        question = PromptScreen(attaching.TITLE, check=attaching.cannot_attach, hint=attaching.HINT)
        self.app.push_screen(question, self._attach_file)

    def _attach_file(self, text: str | None) -> None:
        if text is None:
            return
        try:
            self._draft.attach(attaching.read_attached(text))
        except OSError as error:
            self._workbench.say(f"{text} is not attached: {error}")
        self.follow()

    def detach(self) -> None:
        self._draft.detach()
        self.follow()
