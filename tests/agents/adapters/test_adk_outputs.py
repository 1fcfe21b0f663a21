"""Values that workflows and function nodes of google-adk return beside texts."""

import pytest

pytest.importorskip("google.adk")
pytest.importorskip("pandas")
from adk_scripted import Chat, ScriptedLlm, call, say, user
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.evaluation.evaluation_generator import EvaluationGenerator
from google.adk.events.event import Event as AdkEvent
from google.adk.workflow import Workflow
from pydantic import BaseModel
from test_adk_compat import Witness, _comparable

from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.core.conversation.adk_steps import step_from_adk
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, full_text
from evaltui.core.model.events import split_step
from evaltui.core.scoring import score_case

pytestmark = [pytest.mark.adk, pytest.mark.compat]


PLACE = '{"name": "hall", "floor": 2}'


class Place(BaseModel):
    name: str
    floor: int = 2


def hello():
    return "HELLO"


def wrapped(node_input):
    return {"heard": node_input}


def place():
    return Place(name="hall")


async def progress():
    yield AdkEvent(message="working")
    yield AdkEvent(output=[1, "two"])


def message_and_value():
    return AdkEvent(message="shown", output={"value": 1})


def same_as_message():
    return AdkEvent(message="HELLO", output="HELLO")


def speaker(**fields):
    return LlmAgent(name="speaker", model=ScriptedLlm(answers={"anything": say(PLACE)}), **fields)


def speaker_of_places():
    return speaker(output_schema=Place)


def task():
    answers = {"anything": call(("finish_task", {"result": "done"}))}
    return LlmAgent(name="worker", mode="task", description="works", model=ScriptedLlm(answers=answers))


@pytest.mark.parametrize(
    ("nodes", "outputs", "text", "returned"),
    [
        ([hello], {"hello": "HELLO"}, "", "HELLO"),
        ([hello, wrapped], {"hello": "HELLO", "wrapped": {"heard": "HELLO"}}, "", '{"heard":"HELLO"}'),
        ([place], {"place": {"name": "hall", "floor": 2}}, "", '{"name":"hall","floor":2}'),
        ([progress], {"progress": [1, "two"]}, "working", '[1,"two"]'),
        ([message_and_value], {"message_and_value": {"value": 1}}, "shown", '{"value":1}'),
        ([same_as_message], {}, "HELLO", None),
        ([hello, speaker], {"hello": "HELLO"}, PLACE, None),
        ([speaker_of_places], {}, PLACE, None),
        ([speaker, hello], {"hello": "HELLO"}, PLACE, "HELLO"),
        ([task], {"worker": {"result": "done"}}, "", '{"result":"done"}'),
    ],
    ids=["str", "chain", "model", "progress", "both", "same", "llm last", "llm schema", "llm first", "task"],
)
async def test_outputs_of_nodes_are_seen_and_the_response_stays_that_of_adk(nodes, outputs, text, returned):
    made = [node() if node in (speaker, speaker_of_places, task) else node for node in nodes]
    schema = {"output_schema": Place} if nodes == [place] else {}
    witness = Witness()
    root = Workflow(name="flow", edges=[("START", *made)], **schema)
    talk = Chat(AdkAdapter(App(name="app", root_agent=root, plugins=[witness])))
    await talk.send(user("go"))
    assert {event.data["node"]: event.data["output"] for event in talk.of("output")} == outputs
    theirs = EvaluationGenerator.convert_events_to_eval_invocations(witness.events)
    (ours,) = invocations_from_events(talk.events)
    assert [_comparable(ours)] == [_comparable(one) for one in theirs]
    assert (full_text(ours.final_response), ours.output) == (text, returned)
    assert full_text(ours.with_output.final_response) == (returned or text)
    # A server of ADK sends the same events as JSON.
    sent = [step_from_adk(event.model_dump(mode="json", by_alias=True)) for event in witness.events]
    assert [one.output for one in invocations_from_events(e for step in sent for e in split_step(step))] == [
        returned
    ]


@pytest.mark.parametrize("adk_verdicts", [False, True])
async def test_an_output_is_scored_only_where_the_config_says_so(adk_verdicts):
    talk = Chat(AdkAdapter(Workflow(name="flow", edges=[("START", hello)])))
    await talk.send(user("go"))
    actual = invocations_from_events(talk.events)
    turn = {"user_content": {"parts": [{"text": "go"}]}, "final_response": {"parts": [{"text": "hello"}]}}
    case = EvalCase.model_validate({"eval_id": "c", "conversation": [turn]})
    verdicts = []
    for block in ({}, {"outputs": "score"}):
        config = EvalConfig.model_validate({"criteria": {"response_match_score": 1.0}, "evaltui": block})
        verdicts.append((await score_case(case, actual, config, adk_verdicts=adk_verdicts)).status)
    assert verdicts == ["FAILED", "FAILED" if adk_verdicts else "PASSED"]
