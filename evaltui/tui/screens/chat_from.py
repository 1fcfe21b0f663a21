"""Where in a case a conversation is to begin, and where the turns before come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from evaltui.core.model.case_id import CaseId
from evaltui.text.lines import Line, pad
from evaltui.text.values import visible
from evaltui.tui.screens.prompt import FormScreen, Hint, Hints, QuestionNote, QuestionTitle
from evaltui.tui.widgets.choices import ChoiceList
from evaltui.tui.widgets.lines import DrawnLine
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


class ChatFromScreen(FormScreen):
    """Begins the conversation, and returns whether it has."""

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
        self._texts = case.summary.texts if case else ()
        self._turns = case.summary.turns or 0 if case else 0
        scored = workbench.outcomes.get(case_id)
        if case is not None and case.summary.turns is None and scored is not None:
            # A simulated user says something else each time.
            self._texts = tuple(turn.user for turn in scored.shown.turns)
            self._turns = len(self._texts)
        selected = workbench.navigation.selection
        at = selected.turn if selected.case == case_id and selected.turn is not None else self._failing_turn()
        self.turn = min(self._turns, at)
        self._ways = self._ways_from_turn()

    def on_mount(self) -> None:
        self.choices.highlighted = next((n for n, way in enumerate(self._ways) if way.why_not is None), 0)
        self.run_worker(self._read_origin(), exit_on_error=False)

    async def _read_origin(self) -> None:
        """What there is to continue from is read in the background: a log may be long."""
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
        """Offers what begins at the turn of now; the way that was chosen stays so if it can be gone."""
        self._ways = self._ways_from_turn()
        usable = [number for number, way in enumerate(self._ways) if way.why_not is None]
        chosen = self.choices.current
        self.choices.offer(len(self._ways), chosen if chosen in usable else usable[0] if usable else 0)

    def _way_line(self, number: int, is_current: bool) -> Line:
        way = self._ways[number]
        tone = "dim" if way.why_not else "bold" if is_current else ""
        return [
            ("▌ " if is_current else "  ", "accent"),
            (pad(way.title, _TITLE), tone),
            (visible(way.why_not or way.remark), "dim"),
        ]

    def _why_not(self, source: Source) -> str | None:
        return self._refused or (self._origin.refuses(self.turn, source) if self._origin else None)

    def _failing_turn(self) -> int:
        """The first turn that did not pass; without one, the end."""
        scored = self._workbench.outcomes.get(self._case)
        if scored is None or not needs_attention(scored.result):
            return self._turns
        result = scored.shown
        wrong = (n for n in range(self._turns) if turn_status(result, n) not in (None, "PASSED"))
        return next(wrong, 0 if result.error else self._turns)

    def compose(self) -> ComposeResult:
        with Vertical(id="chat-from"):
            yield QuestionTitle(f"Chat from {self._case.eval_id}")
            yield DrawnLine(self._place, id="chat-turn")
            yield ChoiceList(len(self._ways), self._way_line, id="chat-ways")
            yield QuestionNote()
            yield Hints(
                self._workbench,
                lambda: [
                    Hint("form_take", "begin"),
                    Hint("form_right", "another turn"),
                    Hint("form_leave", "leave"),
                ],
            )

    def _place(self, width: int) -> Line:
        arrows = ("  ← → ", "dim")
        if self.turn >= self._turns:
            count = "its turn" if self._turns == 1 else f"its {self._turns} turns"
            return [arrows, (f"after {count}" if self._turns else "at its beginning", "bold")]
        text = self._texts[self.turn] if self.turn < len(self._texts) else ""
        before = f"before turn {self.turn + 1} of {self._turns}"
        return [arrows, (before, "bold"), (f"  {visible(text)}", "dim")]

    def _ways_from_turn(self) -> list[Way]:
        chat, case, turn = self._workbench.chat, self._case, self.turn
        scored = self._workbench.outcomes.get(case)
        recorded = [
            Way(
                f"{_turns(turn)} as in the last run",
                f"{scored.run.name}, nothing is sent" if scored else "",
                lambda: chat.continue_from(case, turn, "recorded", "result"),
                self._why_not("result") if scored else "there is no result yet",
            ),
            Way(
                f"{_turns(turn)} as the case expects",
                "nothing is sent",
                lambda: chat.continue_from(case, turn, "recorded", "case"),
                self._why_not("case"),
            ),
        ]
        again = Way(
            f"{_turns(turn)} said again",
            f"{_messages(turn)} to the agent",
            lambda: chat.continue_from(case, turn, "live"),
            self._refused,
        )
        start = Way("begin as the case begins", "nothing is sent", recorded[1].begin, self._why_not("case"))
        play = Way(
            "the whole case said again",
            f"{_messages(self._turns)} to the agent",
            lambda: chat.play(case),
            self._refused or (None if self._turns else "it has no turns"),
        )
        return [*recorded, again, play] if turn else [start, play]

    @on(ChoiceList.OptionSelected)
    def action_form_take(self) -> None:
        way = self._ways[self.choices.current]
        if way.why_not is None:
            way.begin()
            self.dismiss(True)

    def action_form_down(self) -> None:
        self.choices.action_line_down()

    action_form_next = action_form_down

    def action_form_up(self) -> None:
        self.choices.action_line_up()

    action_form_previous = action_form_up

    def fields(self) -> list[Widget]:
        return [self.choices]

    def choose(self, step: int) -> None:
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


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"
