"""Where in a case a conversation is to begin, and where the turns before come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from evaltui.core.model.case_id import CaseId
from evaltui.text.lines import Line, pad
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.screens.prompt import Hint, Hints, QuestionNote, QuestionTitle
from evaltui.tui.widgets.lines import CursorLines, OneLine
from evaltui.workbench.actions import Scope
from evaltui.workbench.chat.controller import Source
from evaltui.workbench.verdicts import needs_attention, turn_status
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.workbench.chat.origins import Origin

_TITLE = 34


class Way(NamedTuple):
    """A way to begin; `why_not` says why it cannot be gone."""

    title: str
    remark: str
    begin: Callable[[], None]
    why_not: str | None = None


class ChatFromScreen(DialogScreen[bool], inherit_bindings=False):
    """Begins the conversation, and returns whether it has."""

    box = "#chat-from"
    BINDINGS = bindings(Scope.FORM)
    AUTO_FOCUS = "ChatWays"

    def __init__(self, workbench: Workbench, key: CaseId) -> None:
        super().__init__()
        self._workbench = workbench
        self._key = key
        self._origin: Origin | None = None
        self._refused: str | None = None
        eval_set = workbench.sets.by_case_path(key.path)
        number = eval_set.number(key.eval_id) if eval_set else None
        case = eval_set.cases[number] if eval_set and number is not None else None
        self._texts = case.summary.texts if case else ()
        self._turns = case.summary.turns or 0 if case else 0
        scored = workbench.outcomes.get(key)
        if case is not None and case.summary.turns is None and scored is not None:
            # A simulated user says something else each time.
            self._texts = tuple(turn.user for turn in scored.shown.turns)
            self._turns = len(self._texts)
        selected = workbench.navigation.selection
        at = selected.turn if selected.case == key and selected.turn is not None else self._failing_turn()
        self.turn = min(self._turns, at)

    def on_mount(self) -> None:
        self.run_worker(self._look(), exit_on_error=False)

    async def _look(self) -> None:
        """What there is to continue from is read in the background: a log may be long."""
        try:
            self._origin = await self._workbench.chat.origin(self._key)
        except (OSError, ValueError) as error:
            self._refused = str(error)
        if self.is_here:
            self.query_one(ChatWays).show()

    def _why_not(self, source: Source) -> str | None:
        return self._refused or (self._origin.refuses(self.turn, source) if self._origin else None)

    def _failing_turn(self) -> int:
        """The first turn that did not pass; without one, the end."""
        scored = self._workbench.outcomes.get(self._key)
        if scored is None or not needs_attention(scored.result):
            return self._turns
        result = scored.shown
        wrong = (n for n in range(self._turns) if turn_status(result, n) not in (None, "PASSED"))
        return next(wrong, 0 if result.error else self._turns)

    def compose(self) -> ComposeResult:
        with Vertical(id="chat-from"):
            yield QuestionTitle(f"Chat from {self._key.eval_id}")
            yield ChatTurnLine(self._place)
            yield ChatWays(self._ways)
            yield QuestionNote()
            yield Hints(
                self._workbench,
                lambda: [
                    Hint("form_take", "begin"),
                    Hint("form_right", "another turn"),
                    Hint("form_leave", "leave"),
                ],
            )

    def _place(self) -> Line:
        if self.turn >= self._turns:
            count = "its turn" if self._turns == 1 else f"its {self._turns} turns"
            return [(f"after {count}" if self._turns else "at its beginning", "bold")]
        text = self._texts[self.turn] if self.turn < len(self._texts) else ""
        return [(f"before turn {self.turn + 1} of {self._turns}", "bold"), (f"  {visible(text)}", "dim")]

    def _ways(self) -> list[Way]:
        chat, key, turn = self._workbench.chat, self._key, self.turn
        scored = self._workbench.outcomes.get(key)
        recorded = [
            Way(
                f"{_turns(turn)} as in the last run",
                f"{scored.run.name}, nothing is sent" if scored else "",
                lambda: chat.continue_from(key, turn, "recorded", "result"),
                self._why_not("result") if scored else "there is no result yet",
            ),
            Way(
                f"{_turns(turn)} as the case expects",
                "nothing is sent",
                lambda: chat.continue_from(key, turn, "recorded", "case"),
                self._why_not("case"),
            ),
        ]
        again = Way(
            f"{_turns(turn)} said again",
            f"{_messages(turn)} to the agent",
            lambda: chat.continue_from(key, turn, "live"),
            self._refused,
        )
        start = Way("begin as the case begins", "nothing is sent", recorded[1].begin, self._why_not("case"))
        play = Way(
            "the whole case said again",
            f"{_messages(self._turns)} to the agent",
            lambda: chat.play(key),
            self._refused or (None if self._turns else "it has no turns"),
        )
        return [*recorded, again, play] if turn else [start, play]

    def action_form_leave(self) -> None:
        self.dismiss(False)

    def action_form_take(self) -> None:
        self._begin(self.query_one(ChatWays).chosen)

    def action_form_down(self) -> None:
        self.query_one(ChatWays).action_line_down()

    action_form_next = action_form_down

    def action_form_up(self) -> None:
        self.query_one(ChatWays).action_line_up()

    action_form_previous = action_form_up

    def action_form_left(self) -> None:
        self._go_to_turn(self.turn - 1)

    def action_form_right(self) -> None:
        self._go_to_turn(self.turn + 1)

    def action_form_toggle(self) -> None:
        self._go_to_turn((self.turn + 1) % (self._turns + 1))

    def _go_to_turn(self, turn: int) -> None:
        self.turn = max(0, min(turn, self._turns))
        self.query_one(ChatWays).show()
        self.query_one(ChatTurnLine).refresh()

    def _begin(self, way: Way) -> None:
        if way.why_not is not None:
            return
        way.begin()
        self.dismiss(True)

    def on_chat_ways_moved(self) -> None:
        self.query_one(QuestionNote).show(self.query_one(ChatWays).chosen.why_not)

    def on_chat_ways_chosen(self) -> None:
        self._begin(self.query_one(ChatWays).chosen)


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


class ChatTurnLine(OneLine):
    def __init__(self, place: Callable[[], Line]) -> None:
        super().__init__()
        self._place = place

    def line(self, width: int) -> Line:
        return [("  ← → ", "dim"), *self._place()]


class ChatWays(CursorLines, can_focus=True, inherit_bindings=False):
    """The ways to begin, of which the current one is chosen; a double click takes it."""

    class Chosen(Message):
        """The user wants to begin so."""

    class Moved(Message):
        """Another way is the current one, or it has changed."""

    def __init__(self, ways: Callable[[], list[Way]]) -> None:
        super().__init__()
        self._make = ways
        self._ways = ways()
        self.cursor = next((n for n, way in enumerate(self._ways) if way.why_not is None), 0)

    @property
    def chosen(self) -> Way:
        return self._ways[self.cursor]

    def show(self) -> None:
        """The turn is another one."""
        chosen = self.cursor
        self._ways = self._make()
        self.lines_changed(len(self._ways))
        usable = [number for number, way in enumerate(self._ways) if way.why_not is None]
        self.move_to(chosen if chosen in usable else usable[0] if usable else 0)

    def move_to(self, number: int) -> None:
        super().move_to(number)
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        self.lines_changed(len(self._ways))

    def line(self, number: int) -> Line:
        way, here = self._ways[number], number == self.cursor
        mark = ("▌ " if here else "  ", "accent")
        tone = "dim" if way.why_not else "bold" if here else ""
        return [mark, (pad(way.title, _TITLE), tone), (visible(way.why_not or way.remark), "dim")]

    def open_current(self) -> None:
        self.post_message(self.Chosen())
