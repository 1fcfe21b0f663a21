"""The message field, and the lines around it."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from evaltui.core.conversation.request_fields import RequestField, fields_of, typed_into
from evaltui.core.conversation.responding import ResponseError, expected_call, request_of, respond, typed_text
from evaltui.core.conversation.waiting import WaitingCall, response_content, responses_in
from evaltui.core.model.events import Json, describe_response, message_text, parts_in
from evaltui.text.figures import counted, short_list, show_duration, show_number, show_size
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells
from evaltui.text.values import visible
from evaltui.tui.action_screen import draw_around
from evaltui.tui.chat.page import REQUEST_TITLES
from evaltui.tui.chat.request_form import RequestForm
from evaltui.tui.dialogs.prompt import ask_for_file
from evaltui.tui.exchange import Attached, EditorError, edit_outside
from evaltui.tui.widgets.block_lines import BlockLines
from evaltui.tui.widgets.fields import MessageField
from evaltui.tui.widgets.lines import DrawnLine, rule
from evaltui.workbench.agent.first_minute import has_few_cases
from evaltui.workbench.chat.conversation import ChatTurn
from evaltui.workbench.workbench import Workbench


def _next_steps_line(workbench: Workbench) -> Line:
    """The steps from a conversation to the first case, until a case was made."""
    chat = workbench.chat
    if (
        chat.has_saved
        or chat.waiting()
        or not has_few_cases(workbench.sets)
        or chat.refuses_to_save() is not None
    ):
        return []
    line: Line = [("Next", "muted")]
    for action, title in (("save_as_case", "Save as case"), ("run", "Run it")):
        line += [(f"   {key_of(action)}", "bold accent"), (f"  {title}", "")]
    return line


class MessageDraft:
    """All parts of a message but its text, which is in the field."""

    def __init__(self) -> None:
        self.instead_of: ChatTurn | None = None
        self.attached: list[tuple[str, Json]] = []
        """The attached files by name, each as a part of a content."""
        self._aside: tuple[str, list[tuple[str, Json]]] = "", []
        self.changed_response: Json | None = None
        """The response that is edited and sent again; None for a message or a new response."""
        self.chosen_call: str | None = None
        """Id of the call that the user has chosen to respond to; "" for a message, None for no choice."""
        # Which of the messages sent before is shown, and what was written before one was.
        self._place: int | None = None
        self._written = ""

    @property
    def replaces(self) -> bool:
        """Whether sending replaces an earlier message."""
        return self.instead_of is not None or self.changed_response is not None

    def load(self, content: Json) -> str:
        """Loads a message; returns its text for the field."""
        self.end()
        parts = parts_in(content)
        responses = responses_in(content)
        if len(responses) == len(parts) == 1:
            self.changed_response = responses[0]
            return typed_text(responses[0].get("response"))
        self.attached = [("", part) for part in parts if not part.get("text")]
        return message_text(content)

    def replace_turn(self, turn: ChatTurn, written: str) -> str:
        """Edits the message of a turn; the current draft is stored meanwhile."""
        aside = self._aside if self.instead_of is not None else (written, self.attached)
        text = self.load(turn.content)
        self.instead_of, self._aside = turn, aside
        return text

    def end(self) -> str:
        """Ends the message, sent or not; returns the text of the stored draft for the field."""
        text, self.attached = self._aside
        self._aside = "", []
        self.instead_of, self._place = None, None
        self.changed_response = self.chosen_call = None
        return text

    # Calls that wait

    def target(self, waiting: Sequence[WaitingCall]) -> WaitingCall | None:
        """The call that the typed text responds to; None for a message."""
        if self.chosen_call is not None:
            return next((call for call in waiting if call.id == self.chosen_call), None)
        if (changed := self.changed_response) is None:
            return expected_call(waiting)
        name = str(changed.get("name") or "")
        same = (call for call in waiting if call.id == changed.get("id"))
        like = (call for call in waiting if call.name == name)
        gone = WaitingCall(str(changed.get("id") or ""), name, {}, 0, 0)
        return next(same, None) or next(like, gone)

    def turn_to_message(self) -> None:
        """Switches to a message; the calls wait."""
        self.chosen_call = ""

    def responded(self) -> None:
        """Notes that the chosen call has its response; the draft stays."""
        self.chosen_call = None

    def turn_to_next(self, waiting: Sequence[WaitingCall]) -> None:
        """Switches to the next call, or to a message after the last one."""
        targets = ["", *(call.id for call in waiting)]
        now = self.target(waiting)
        at = targets.index(now.id) if now is not None and now.id in targets else 0
        self.chosen_call = targets[(at + 1) % len(targets)]

    def content(self, text: str, target: WaitingCall | None = None) -> Json:
        """The message, or the response to the call `target`, as a genai Content. Raises ResponseError."""
        if target is not None:
            if self.attached:
                raise ResponseError("a response takes no files: send them with a message")
            return response_content(target, respond(target, text))
        texts = [{"text": text}] if text.strip() else []
        return {"role": "user", "parts": [*texts, *(part for _, part in self.attached)]}

    # Files

    def attach(self, file: Attached) -> None:
        # The URL-safe alphabet is the one that genai reads and writes.
        data = base64.urlsafe_b64encode(file.payload).decode("ascii")
        self.attached.append((file.name, {"inline_data": {"mime_type": file.mime_type, "data": data}}))

    def detach(self) -> None:
        """Removes the last attached file."""
        if self.attached:
            self.attached.pop()

    def chips(self, number: int | None, waiting: Sequence[WaitingCall] = ()) -> Line:
        """The chips of the draft: attached files, the replaced turn `number` (from 0), and the call that it
        responds to."""
        line: Line = []
        if number is not None:
            line += [(f"in place of turn {number + 1} ", "bold"), ("and all that followed  ", "muted")]
        if waiting:
            line += [*_addressee_line(self.target(waiting), waiting), ("   ", "")]
        for name, part in self.attached:
            line += [(f" {_chip(name, part)} ", "bold sel"), (" ", "")]
        return line

    # Messages sent before

    def earlier(self, text: str, inputs: Sequence[str]) -> str | None:
        """The message before the shown one in the history; None for none."""
        if self._place is None:
            self._written = text
        place = (len(inputs) if self._place is None else self._place) - 1
        if not 0 <= place < len(inputs):
            return None
        self._place = place
        return inputs[place]

    def later(self, inputs: Sequence[str]) -> str | None:
        """The message after it in the history, at the end the current draft."""
        if self._place is None:
            return None
        self._place += 1
        if self._place < len(inputs):
            return inputs[self._place]
        self._place = None
        return self._written


def _addressee_line(target: WaitingCall | None, waiting: Sequence[WaitingCall]) -> Line:
    """The call that the draft responds to, with its input; or a note that calls wait."""
    if target is None:
        waits = counted(len(waiting), "call waits", "calls wait")
        respond: Line = [("   ", ""), (key_of("respond_to_next"), "bold accent"), (" respond", "muted")]
        return [("● ", "warning"), (f"{waits} for a response", ""), *respond]
    several = len(waiting) > 1 and target in waiting
    number = f" {waiting.index(target) + 1}/{len(waiting)}" if several else ""
    head: Line = [("respond to ", "muted"), (f"{visible(target.name)}{number}", "bold accent")]
    return [*head, (f": {request_of(target).accepts}", "")]


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
        return describe_response(response)
    else:
        kind, what = "part", ", ".join(part)
    return "  ".join(visible(part) for part in (name, kind, what) if part)


_TICK_SECONDS = 0.2


class ChatMessage(Vertical):
    """The message box below `rows`, the conversation: a rule with a note, attachments, and the field."""

    def __init__(self, workbench: Workbench, rows: BlockLines, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        self._chat = workbench.chat
        self._rows = rows
        self._draft = MessageDraft()
        to, send = visible(workbench.agent.dir.name), key_of("send")
        self.field = MessageField(self.detach, f"Message to {to}   {send} send", id=f"{id}-field")
        self._form: RequestForm | None = None
        # The call and the changed response that the form is for; what was typed for other calls, by id.
        self._form_of: tuple[str, Json | None] = "", None
        self._typed: dict[str, dict[str, str]] = {}
        # Whether the form gets the focus as soon as it is there.
        self._takes_focus = False
        self._line = Horizontal(id=f"{id}-line")
        self._rule = DrawnLine(self._draw_rule)
        self._chips = DrawnLine(lambda width: self.chips(), id=f"{id}-chips")
        self._prompt = DrawnLine(
            lambda width: [("› ", "bold accent" if self.field.has_focus else "muted")], id=f"{id}-prompt"
        )

    def on_mount(self) -> None:
        # The clock of a turn that runs.
        self.set_interval(
            _TICK_SECONDS, lambda: self.follow() if self._chat.busy and self.is_on_screen else None
        )

    def take_proposal(self) -> None:
        """Shows the proposed message in the field, unless another one is being written."""
        proposal = self._chat.take_proposal()
        if proposal is not None and not self.field.text.strip() and not self._draft.attached:
            self.field.show_text(self._draft.load(proposal))

    def edit(self, turn: ChatTurn) -> None:
        """Starts to edit the message of a turn."""
        self.field.show_text(self._draft.replace_turn(turn, self.field.text))
        self.write()

    def write(self) -> None:
        """Focuses the field, or the form in its place."""
        self.follow()
        self.screen.set_focus(self.entry, scroll_visible=False)

    @property
    def entry(self) -> Widget:
        """The input widget: the field of the message, or the first one of the form."""
        shown = self._form is not None and self._form.display and self._form.is_mounted
        return self._form.fields()[0] if self._form is not None and shown else self.field

    def compose(self) -> ComposeResult:
        yield self._rule
        yield self._chips
        with self._line:
            yield self._prompt
            yield self.field

    def _draw_rule(self, width: int) -> Line:
        left, right = self.note()
        left = left or _next_steps_line(self._workbench)
        heavy = self.has_focus_within
        if left:
            return rule(left, right, width, heavy=heavy)
        stroke, role = ("━", "bold accent") if heavy else ("─", "muted")
        ending: Line = (
            [(" ", ""), *right, (f" {stroke * 2}", role)] if right and cells(right) + 8 <= width else []
        )
        return [(stroke * (width - cells(ending)), role), *ending]

    def follow(self) -> None:
        """Draws the changes around the field."""
        self._follow_form()
        self._chips.display = bool(self._chips.line(self.size.width))
        self._chips.refresh()
        self._rule.refresh()

    def on_click(self, event: events.Click) -> None:
        if self._line.display:
            self.field.focus()

    def on_descendant_focus(self) -> None:
        self._rule.refresh()
        self._prompt.refresh()

    on_descendant_blur = on_descendant_focus

    # Around the field

    def note(self) -> tuple[Line, Line]:
        chat, transcript = self._chat, self._chat.transcript
        below, new = self._rows.lines_below, self._rows.new_rows
        count = f"{show_number(new)} new" if new else counted(below, "line")
        more: Line = [(f"↓ {count}", "muted")] if below else []
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
        key = key_of("replay")
        named = visible(short_list(files, 1))
        changed: Line = [(f"{named} changed", "bold accent"), (": the next turn uses the new code", "")]
        if self._chat.refuses_to_repeat() is None:
            changed += [("  ", ""), (key, "bold"), (" replays", "muted")]
        return changed

    def chips(self) -> Line:
        # The form says itself which call it is for.
        has_form = self._form is not None and self._form.display
        return self._draft.chips(self._replaced, () if has_form else self._waiting)

    # The form of a call that waits

    def _follow_form(self) -> None:
        """Shows a form in place of the field while a call waits that declares its input."""
        if not self.is_mounted:
            return
        waiting = self._waiting
        call, fields, typed = self._request_to_show(waiting)
        self._tell_which(self._draft.target(waiting))
        if call is None:
            self._show_field(self._draft.target(waiting))
            return
        of = call.id, self._draft.changed_response
        if self._form is None or self._form_of != of:
            if self.has_focus_within:
                # Not with the form that goes.
                self._takes_focus = True
                self.screen.set_focus(None)
            self._put_form_aside()
            self._form, self._form_of = RequestForm(call, fields, typed, self._respond, self._later), of
            self.mount(self._form, after=self._chips)
        several = len(waiting) > 1 and call in waiting
        self._form.place(f"{waiting.index(call) + 1}/{len(waiting)}" if several else "")
        if not self._form.display or self._line.display or self._takes_focus:
            self._form.display = True
            self.call_after_refresh(self._hide_field)

    def _tell_which(self, call: WaitingCall | None) -> None:
        """Notes the call of the form for the status line."""
        transcript, asks = self._workbench.chat.transcript, call.id if call is not None else ""
        if transcript is not None and transcript.asks != asks:
            transcript.asks = asks
            draw_around(self)

    def _request_to_show(
        self, waiting: Sequence[WaitingCall]
    ) -> tuple[WaitingCall | None, list[RequestField], dict[str, str]]:
        """The call for the form, its fields and their texts; None for a plain text field."""
        call, changed = self._draft.target(waiting), self._draft.changed_response
        fields = fields_of(call) if call is not None else []
        nothing: tuple[None, list[RequestField], dict[str, str]] = None, [], {}
        if call is None or not fields:
            return nothing
        if changed is not None:
            typed = typed_into(fields, changed.get("response"))
            return nothing if typed is None else (call, fields, typed)
        # Who is writing goes on writing.
        writes = self.field.text.strip() and not self._draft.chosen_call
        is_shown = self._form is not None and self._form.display and self._form_of == (call.id, None)
        return nothing if writes and not is_shown else (call, fields, self._typed.get(call.id, {}))

    def _put_form_aside(self) -> None:
        if self._form is not None:
            if self._form_of[1] is None and self._form.is_mounted:
                self._typed[self._form.call.id] = self._form.typed()
            self._form.remove()
        self._form = None

    def _hide_field(self) -> None:
        if self._form is None or not self._form.display:
            return
        if self.has_focus_within or (self._takes_focus and self.screen.focused is None):
            self._form.enter()
        self._takes_focus = False
        self._line.display = False
        self.follow()

    def _show_field(self, call: WaitingCall | None) -> None:
        """Shows the field, in a frame while it is a response to a call."""
        self._line.display = True
        self._line.set_class(call is not None, "-request")
        self._line.border_title = REQUEST_TITLES[request_of(call).kind] if call is not None else ""
        if self._form is not None and self._form.display:
            had_focus = self._form.has_focus_within or self._takes_focus
            self._takes_focus = self._form.display = False
            if had_focus:
                self.screen.set_focus(self.field, scroll_visible=False)

    def _later(self) -> None:
        """Switches to a message; the texts in the form are kept."""
        if self._draft.instead_of is not None:
            self.action_leave_message()
            return
        self._draft.turn_to_message()
        self.follow()

    def _respond(self, response: Json) -> None:
        if reason := self._chat.refuses_to_send():
            self._workbench.say(reason)
            return
        if self._form is None:
            return
        content, replaced = response_content(self._form.call, response), self._replaced
        self._typed.pop(self._form.call.id, None)
        self._form.remove()
        self._form = None
        if self._draft.replaces:
            self.field.show_text(self._draft.end())
        else:
            self._draft.responded()
        self._line.display = True
        self.screen.set_focus(self.field, scroll_visible=False)
        self._send(content, replaced)

    @property
    def _waiting(self) -> list[WaitingCall]:
        """The waiting calls that the draft may respond to."""
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
        if reason := self._chat.refuses_to_send() or ("" if content["parts"] else "Message is empty"):
            self._workbench.say(reason)
            return
        replaced = self._replaced
        self.field.show_text(self._draft.end())
        self._send(content, replaced)

    def _send(self, content: Json, replaced: int | None) -> None:
        """Sends the message; `replaced` is the index of the replaced turn, None for a new turn."""
        self.call_after_refresh(self._rows.show_end)
        if replaced is None:
            self._chat.send(content)
        else:
            self._chat.resend(replaced, content)

    def action_leave_message(self) -> None:
        if self._draft.instead_of is not None:
            self.field.show_text(self._draft.end())
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
            self.field.show_text(text)

    def action_step_page(self, step: int) -> None:
        self._rows.scroll_page(step)

    def action_respond_to_next(self) -> None:
        self._draft.turn_to_next(self._waiting)
        self.follow()

    def action_in_editor(self) -> None:
        try:
            changed = edit_outside(self.app, self.field.text, ".md")
        except EditorError as error:
            self._workbench.say(str(error))
            return
        self.field.show_text(changed)

    def action_attach_file(self) -> None:
        ask_for_file(self, self._workbench, self._attach_file)

    def _attach_file(self, file: Attached) -> None:
        self._draft.attach(file)
        self.follow()

    def detach(self) -> None:
        self._draft.detach()
        self.follow()
