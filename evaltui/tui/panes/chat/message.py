"""The message being written, and the lines around it."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from evaltui.core.conversation.responding import ResponseError, expected_call, request_of, respond, typed_of
from evaltui.core.conversation.waiting import WaitingCall, response_content, responses_in
from evaltui.core.model.events import Json, describe_response
from evaltui.text.figures import counted, show_duration, show_size, some_of
from evaltui.text.lines import Line, cells
from evaltui.text.values import visible
from evaltui.tui.action_screen import ask
from evaltui.tui.exchange import (
    ATTACH_HINT,
    ATTACH_TITLE,
    Attached,
    EditorError,
    cannot_attach,
    edit_outside,
    read_attached,
)
from evaltui.tui.screens.prompt import PromptScreen
from evaltui.tui.widgets.block_lines import BlockLines
from evaltui.tui.widgets.fields import MessageField
from evaltui.tui.widgets.lines import DrawnLine, rule
from evaltui.workbench.actions import BY_ID, keys_of
from evaltui.workbench.chat.controller import LOADING
from evaltui.workbench.chat.conversation import ChatTurn, text_of
from evaltui.workbench.first_minute import has_few_cases
from evaltui.workbench.keymap import key_name
from evaltui.workbench.workbench import Workbench


class MessageDraft:
    """All of a message but its text, which is in the field."""

    def __init__(self) -> None:
        self.instead_of: ChatTurn | None = None
        self._attached: list[tuple[str, Json]] = []
        self._aside: tuple[str, list[tuple[str, Json]]] = "", []
        # The response that is changed, and the call that one turned to, by its id; "" is a message.
        self._response: Json | None = None
        self._chosen: str | None = None
        # Which of the messages sent before is shown, and what was written before one was.
        self._place: int | None = None
        self._written = ""

    @property
    def has_attached(self) -> bool:
        return bool(self._attached)

    def begin(self, content: Json) -> str:
        """Take over a message; returns its text for the field."""
        self.end()
        parts = content.get("parts") or []
        responses = responses_in(content)
        if len(responses) == len(parts) == 1:
            self._response = responses[0]
            return typed_of(responses[0].get("response"))
        self._attached = [("", part) for part in parts if not part.get("text")]
        return text_of(content)

    def begin_instead(self, turn: ChatTurn, written: str) -> str:
        """Change the message of a turn; what was being written is put aside meanwhile."""
        aside = self._aside if self.instead_of is not None else (written, self._attached)
        text = self.begin(turn.content)
        self.instead_of, self._aside = turn, aside
        return text

    def end(self) -> str:
        """The message is sent or left; returns what had been put aside for it, for the field."""
        text, self._attached = self._aside
        self._aside = "", []
        self.instead_of, self._place = None, None
        self._response = self._chosen = None
        return text

    # Calls that wait

    def target(self, waiting: Sequence[WaitingCall]) -> WaitingCall | None:
        """The call that what is typed is the response to; None for a message."""
        if self._chosen is not None:
            return next((call for call in waiting if call.id == self._chosen), None)
        if (changed := self._response) is None:
            return expected_call(waiting)
        name = str(changed.get("name") or "")
        same = (call for call in waiting if call.id == changed.get("id"))
        like = (call for call in waiting if call.name == name)
        gone = WaitingCall(str(changed.get("id") or ""), name, {}, 0, 0)
        return next(same, None) or next(like, gone)

    def turn_to_next(self, waiting: Sequence[WaitingCall]) -> None:
        """Respond to the next call, or send a message, in turns."""
        targets = ["", *(call.id for call in waiting)]
        now = self.target(waiting)
        at = targets.index(now.id) if now is not None and now.id in targets else 0
        self._chosen = targets[(at + 1) % len(targets)]

    def content(self, text: str, target: WaitingCall | None = None) -> Json:
        """The message, or the response to the call `target`, as a genai Content. Raises ResponseError."""
        if target is not None:
            if self._attached:
                raise ResponseError("a response takes no files: send them with a message")
            return response_content(target, respond(target, text))
        texts = [{"text": text}] if text.strip() else []
        return {"role": "user", "parts": [*texts, *(part for _, part in self._attached)]}

    # Files

    def attach(self, file: Attached) -> None:
        # The URL-safe alphabet is the one that genai reads and writes.
        data = base64.urlsafe_b64encode(file.payload).decode("ascii")
        self._attached.append((file.name, {"inline_data": {"mime_type": file.mime_type, "data": data}}))

    def detach(self) -> None:
        """Without the file that was attached last."""
        if self._attached:
            self._attached.pop()

    def chips(self, number: int | None, waiting: Sequence[WaitingCall] = ()) -> Line:
        """What goes along, that it replaces turn `number`, from 0, and which call it responds to."""
        line: Line = []
        if number is not None:
            line += [(f"in place of turn {number + 1} ", "bold"), ("and all that followed  ", "muted")]
        for name, part in self._attached:
            line += [(_chip(name, part), "bold accent"), (" ", "")]
        return [*line, *_addressee(self.target(waiting), waiting)] if waiting else line

    # Messages sent before

    def earlier(self, text: str, inputs: Sequence[str]) -> str | None:
        """The message before the one that is shown; None where there is none."""
        if self._place is None:
            self._written = text
        place = (len(inputs) if self._place is None else self._place) - 1
        if not 0 <= place < len(inputs):
            return None
        self._place = place
        return inputs[place]

    def later(self, inputs: Sequence[str]) -> str | None:
        """The message after it, at last what was being written."""
        if self._place is None:
            return None
        self._place += 1
        if self._place < len(inputs):
            return inputs[self._place]
        self._place = None
        return self._written


def _addressee(target: WaitingCall | None, waiting: Sequence[WaitingCall]) -> Line:
    """The call that is responded to, and what it takes; or that others wait while a message is written."""
    if target is None:
        waits = counted(len(waiting), "call waits", "calls wait")
        return [("message  ", "bold accent"), (f"{waits} for a response", "muted")]
    several = len(waiting) > 1 and target in waiting
    number = f" {waiting.index(target) + 1}/{len(waiting)}" if several else ""
    head: Line = [("respond to ", "muted"), (f"{visible(target.name)}{number}", "bold accent")]
    return [*head, (f": {request_of(target).takes}", "")]


def _next_steps(workbench: Workbench) -> Line:
    """From a conversation to the first case, as long as that is not made."""
    chat = workbench.chat
    if chat.has_saved or not has_few_cases(workbench.sets) or chat.refuses_to_save() is not None:
        return []
    line: Line = [("Next", "muted")]
    for action, title in (("save_as_case", "Save as case"), ("run", "Run it")):
        line += [(f"   {key_name(keys_of(BY_ID[action], workbench)[0])}", "bold accent"), (f"  {title}", "")]
    return line


def _chip(name: str, part: Json) -> str:
    blob, link = part.get("inline_data"), part.get("file_data")
    if blob is not None:
        kind, what = (
            str(blob.get("mime_type") or "file"),
            show_size(len(str(blob.get("data") or "")) * 3 // 4),
        )
    elif link is not None:
        kind, what = str(link.get("mime_type") or "file"), "linked"
    elif response := part.get("function_response"):
        return f"[{describe_response(response)}]"
    else:
        kind, what = "part", ", ".join(part)
    return f"[{' '.join(visible(known) for known in (kind, what, name) if known)}]"


_TICK = 0.2


class ChatMessage(Vertical):
    """Stands below `rows`, the conversation: a rule with a note, what is attached, and the field."""

    def __init__(self, workbench: Workbench, rows: BlockLines, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        self._chat = workbench.chat
        self._rows = rows
        self._draft = MessageDraft()
        self.field = MessageField(self.detach, id=f"{id}-field")
        self._rule = DrawnLine(self._draw_rule)
        self._chips = DrawnLine(lambda width: self.chips(), id=f"{id}-chips")

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

    def compose(self) -> ComposeResult:
        yield self._rule
        yield self._chips
        with Horizontal(id=f"{self.id}-line"):
            yield DrawnLine(
                lambda width: [("> ", "bold accent" if self.field.has_focus else "muted")],
                id=f"{self.id}-prompt",
            )
            yield self.field

    def _draw_rule(self, width: int) -> Line:
        left, right = self.note()
        left = left or _next_steps(self._workbench)
        heavy = self.field.has_focus
        if left:
            return rule(left, right, width, heavy=heavy)
        stroke, role = ("━", "bold accent") if heavy else ("─", "muted")
        ending: Line = (
            [(" ", ""), *right, (f" {stroke * 2}", role)] if right and cells(right) + 8 <= width else []
        )
        return [(stroke * (width - cells(ending)), role), *ending]

    def follow(self) -> None:
        """Draw what may have changed around the field."""
        self._chips.display = bool(self._chips.line(self.size.width))
        self._chips.refresh()
        self._rule.refresh()

    def on_click(self, event: events.Click) -> None:
        self.field.focus()

    def on_descendant_focus(self) -> None:
        self._rule.refresh()

    on_descendant_blur = on_descendant_focus

    # Around the field

    def note(self) -> tuple[Line, Line]:
        chat, transcript = self._chat, self._chat.transcript
        below = self._rows.lines_below
        more: Line = [(f"{counted(below, 'more line')} below", "muted")] if below else []
        if chat.cancelling:
            return [("◐ cancelling", "bold accent")], more
        if chat.loading:
            return [("◐ loading", "bold accent")], more
        if chat.session.opening:
            return [("◐ starting the agent", "bold accent")], more
        for number, turn in enumerate(transcript.turns if transcript else (), 1):
            if turn.stage == "running":
                spent = show_duration(turn.seconds or 0.0)
                return [
                    ("◐ ", "bold accent"),
                    (f"turn {number}", "bold accent"),
                    (f" · {spent}", "muted"),
                ], more
        return self._code_changes(), more

    def _code_changes(self) -> Line:
        if not (files := self._chat.session.code_changes):
            return []
        key = key_name(keys_of(BY_ID["replay"], self._workbench)[0])
        named = visible(some_of(files, 1))
        changed: Line = [(f"{named} changed", "bold accent"), (": the next turn uses the new code", "")]
        if self._chat.refuses_to_repeat() is None:
            changed += [("  ", ""), (key, "bold"), (" replays", "muted")]
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
            self._workbench.say(LOADING if self._chat.loading else "Message is empty")
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
        if self._draft.instead_of is not None:
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
        question = PromptScreen(ATTACH_TITLE, check=cannot_attach, hint=ATTACH_HINT)
        ask(self, question, self._attach_file)

    def _attach_file(self, text: str) -> None:
        try:
            self._draft.attach(read_attached(text))
        except OSError as error:
            self._workbench.say(f"{text} is not attached: {error}")
        self.follow()

    def detach(self) -> None:
        self._draft.detach()
        self.follow()
