"""What a conversation costs."""

from dataclasses import replace

from evaltui.core.model.config import OwnPrice
from evaltui.core.model.events import Event
from evaltui.workbench.chat.conversation import ChatTurn, Transcript, TurnStage
from evaltui.workbench.messages import ChatProgressed
from evaltui.workbench.workbench import Workbench

PRICES = {"gemini-test": OwnPrice(input_mtok=1, output_mtok=10)}


def asks(model, number, **usage):
    request = Event("model_request", id=f"r{number}", agent="a", data={"model": model})
    return [request, Event("model_response", id=f"s{number}", parent=f"r{number}", agent="a", usage=usage)]


def turn(model="gemini-test", stage=TurnStage.DONE, **more):
    events = asks(model, 1, prompt_token_count=9, candidates_token_count=4)
    return ChatTurn({"parts": [{"text": "hi"}]}, stage=stage, events=events, **more)


async def test_turns_that_were_sent_are_priced_once_they_are_over(tmp_path, until):
    workbench, told = Workbench(tmp_path), []
    workbench.messages.subscribe(told.append, ChatProgressed)
    workbench.agent.settings = replace(workbench.agent.settings, prices=PRICES)
    running = turn(stage=TurnStage.RUNNING)
    chat = workbench.chat
    chat.transcript = Transcript("t", turns=[turn(source="recorded"), turn(), running])
    assert chat.spending() is None
    await until(lambda: told)
    assert str(chat.spending().cost) == "$0.000049"
    # A turn that failed has cost something, too; of a model without a price nobody knows what.
    running.stage = TurnStage.FAILED
    chat.transcript.turns.append(turn("model-of-nobody"))
    chat.spending()
    await until(lambda: len(told) == 2)
    found = chat.spending()
    assert str(found.cost) == "$0.000098 + 1 unpriced call"
    assert [one.tokens.total for one in found.models] == [26, 13]
    # A turn that was taken back is none of the conversation.
    del chat.transcript.turns[1:]
    assert chat.spending() is None
