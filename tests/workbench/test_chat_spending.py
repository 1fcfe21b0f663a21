"""What a conversation costs."""

from evaltui.core.model.config import OwnPrice
from evaltui.core.model.events import Event
from evaltui.workbench.chat.controller import ChatSpending
from evaltui.workbench.chat.conversation import ChatTurn, Transcript, TurnStage
from evaltui.workbench.messages import ChatProgressed, Messages

PRICES = {"gemini-test": OwnPrice(input_mtok=1, output_mtok=10)}


def asks(model, number, **usage):
    request = Event("model_request", id=f"r{number}", agent="a", data={"model": model})
    return [request, Event("model_response", id=f"s{number}", parent=f"r{number}", agent="a", usage=usage)]


def turn(model="gemini-test", stage=TurnStage.DONE, **more):
    events = asks(model, 1, prompt_token_count=9, candidates_token_count=4)
    return ChatTurn({"parts": [{"text": "hi"}]}, stage=stage, events=events, **more)


async def test_turns_that_were_sent_are_priced_once_they_are_over(until):
    told, messages = [], Messages()
    messages.subscribe(told.append, ChatProgressed)
    spending = ChatSpending(lambda: PRICES, messages)
    running = turn(stage=TurnStage.RUNNING)
    transcript = Transcript("t", turns=[turn(source="recorded"), turn(), running])
    assert spending.of(transcript) is None
    await until(lambda: told)
    assert str(spending.of(transcript).cost) == "$0.000049"
    # A turn that failed has cost something, too; of a model without a price nobody knows what.
    running.stage = TurnStage.FAILED
    transcript.turns.append(turn("model-of-nobody"))
    spending.of(transcript)
    await until(lambda: len(told) == 2)
    found = spending.of(transcript)
    assert str(found.cost) == "$0.000098 + 1 unpriced call"
    assert [one.tokens.total for one in found.models] == [26, 13]
    # A turn that was taken back is none of the conversation.
    del transcript.turns[1:]
    assert spending.of(transcript) is None
