"""What the models of a conversation cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from evaltui.core.cost.metering import spent_in
from evaltui.core.cost.prices import Prices
from evaltui.core.model.config import OwnPrice
from evaltui.core.model.spending import Spending
from evaltui.workbench.chat.conversation import ChatTurn, Transcript, TurnStage
from evaltui.workbench.messages import ChatProgressed, Messages

_OVER = (TurnStage.DONE, TurnStage.FAILED, TurnStage.CANCELLED)


class ChatSpending:
    """Prices the turns that were sent in a conversation, in the background, each once it is over. Turns that
    were taken from a run or a case cost nothing here.

    `prices` are those of the project's settings.
    """

    def __init__(self, prices: Callable[[], Mapping[str, OwnPrice]], messages: Messages) -> None:
        self._prices = prices
        self._messages = messages
        self._known: dict[ChatTurn, Spending] = {}
        self._task: asyncio.Task[None] | None = None

    def of(self, transcript: Transcript) -> Spending | None:
        """As far as it is known by now; None where nothing is."""
        over = [turn for turn in transcript.turns if turn.source == "said" and turn.stage in _OVER]
        new = [turn for turn in over if turn not in self._known]
        if new and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._price(new))
        known = [self._known[turn] for turn in over if turn in self._known]
        return sum(known, Spending()) if known else None

    async def _price(self, turns: list[ChatTurn]) -> None:
        prices = Prices(self._prices())
        for turn in turns:
            self._known[turn] = await spent_in(turn.events, (), prices)
        self._messages.publish(ChatProgressed())
