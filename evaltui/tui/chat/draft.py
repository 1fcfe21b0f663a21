"""The parts of an unsent message besides its text."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from evaltui.core.conversation.responding import ResponseError, expected_call, request_of, respond, typed_of
from evaltui.core.conversation.waiting import WaitingCall, response_content, responses_in
from evaltui.core.model.events import Json, describe_response
from evaltui.text.figures import counted, show_size
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.exchange import Attached
from evaltui.workbench.chat.conversation import ChatTurn, text_of


class MessageDraft:
    """All parts of a message but its text, which is in the field."""

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

    @property
    def changed_response(self) -> Json | None:
        """The response that is edited and sent again; None for a message or a new response."""
        return self._response

    @property
    def has_chosen_call(self) -> bool:
        """Whether the user has chosen a call to respond to."""
        return bool(self._chosen)

    @property
    def replaces(self) -> bool:
        """Whether sending replaces an earlier message."""
        return self.instead_of is not None or self._response is not None

    def load(self, content: Json) -> str:
        """Loads a message; returns its text for the field."""
        self.end()
        parts = content.get("parts") or []
        responses = responses_in(content)
        if len(responses) == len(parts) == 1:
            self._response = responses[0]
            return typed_of(responses[0].get("response"))
        self._attached = [("", part) for part in parts if not part.get("text")]
        return text_of(content)

    def replace_turn(self, turn: ChatTurn, written: str) -> str:
        """Edits the message of a turn; the current draft is stored meanwhile."""
        aside = self._aside if self.instead_of is not None else (written, self._attached)
        text = self.load(turn.content)
        self.instead_of, self._aside = turn, aside
        return text

    def end(self) -> str:
        """Ends the message, sent or not; returns the text of the stored draft for the field."""
        text, self._attached = self._aside
        self._aside = "", []
        self.instead_of, self._place = None, None
        self._response = self._chosen = None
        return text

    # Calls that wait

    def target(self, waiting: Sequence[WaitingCall]) -> WaitingCall | None:
        """The call that the typed text responds to; None for a message."""
        if self._chosen is not None:
            return next((call for call in waiting if call.id == self._chosen), None)
        if (changed := self._response) is None:
            return expected_call(waiting)
        name = str(changed.get("name") or "")
        same = (call for call in waiting if call.id == changed.get("id"))
        like = (call for call in waiting if call.name == name)
        gone = WaitingCall(str(changed.get("id") or ""), name, {}, 0, 0)
        return next(same, None) or next(like, gone)

    def turn_to_message(self) -> None:
        """Switches to a message; the calls wait."""
        self._chosen = ""

    def responded(self) -> None:
        """Notes that the chosen call has its response; the draft stays."""
        self._chosen = None

    def turn_to_next(self, waiting: Sequence[WaitingCall]) -> None:
        """Switches to the next call, or to a message after the last one."""
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
        """Removes the last attached file."""
        if self._attached:
            self._attached.pop()

    def chips(self, number: int | None, waiting: Sequence[WaitingCall] = ()) -> Line:
        """The chips of the draft: attached files, the replaced turn `number` (from 0), and the call that it
        responds to."""
        line: Line = []
        if number is not None:
            line += [(f"in place of turn {number + 1} ", "bold"), ("and all that followed  ", "muted")]
        if waiting:
            line += [*_addressee(self.target(waiting), waiting), ("   ", "")]
        for name, part in self._attached:
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


def _addressee(target: WaitingCall | None, waiting: Sequence[WaitingCall]) -> Line:
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
