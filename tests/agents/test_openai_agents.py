"""Agents of the OpenAI Agents SDK, with a model that answers by rules, in an environment of their own."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from framework_hosts import recording, responds, talker
from framework_loops import Loop, example
from openai_server import OpenAIServer

DESK = Path(__file__).with_name("openai_desk") / "agent.py"


def confirms(talk: Any, **response: Any) -> dict[str, Any]:
    """The response to the confirmation that a conversation waits for."""
    call = talk.of("tool_call")[-1].content["parts"][0]["function_call"]
    return responds(call["id"], call["name"], {"confirmed": True} | response)


async def talks(folder: Path) -> SimpleNamespace:
    made = SimpleNamespace()
    async with talker(folder, DESK.read_text()) as desk:
        made.info = desk.info
        made.thought = await desk.talk("think")
        made.thought_on = await desk.talk("hello", past=made.thought.past())
        made.boom = await desk.talk("boom")
        made.nested = await desk.talk("translate")
        made.beside = await desk.talk("beside")
        made.guarded = await desk.talk("weather")
        made.loop = await desk.talk("loop")
        made.search = await desk.talk("search")
        made.receipt = await desk.talk("receipt", "and now?")
        made.receipt_on = await desk.talk("and now?", past=made.receipt.past())
        made.bulk = await desk.talk("bulk")
        made.asked = await desk.talk("refund")
        made.approved = await desk.talk(confirms(made.asked), past=made.asked.past())
        reason = confirms(made.asked, confirmed=False, payload="too late")
        made.rejected = await desk.talk(reason, past=made.asked.past())
        made.at_once = await desk.talk("refund", responds("confirm-call_x", "adk_request_confirmation", {}))
        made.put_aside = await desk.talk("never mind", past=made.asked.past())
        unknown = [{**step, "framework": None} for step in made.asked.past()]
        made.unknown = await desk.talk(confirms(made.asked), past=unknown)
        made.traces = await desk.talk("traces")
        said = ("both", "boom", "translate", "think", "stamp")
        made.recorded = await desk.talk(*said, recorded=recording("record", "record"))
        kept = json.loads(json.dumps(made.recorded.lines))
        made.replayed = await desk.talk(*said, recorded=recording("replay", "stub", kept))
        made.again = await desk.talk(*said, "order", recorded=recording("auto", "live", kept))
    return made


@pytest.fixture
def own_hosts(fork_hosts_of):
    fork_hosts_of("openai")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    return asyncio.run(talks(tmp_path_factory.mktemp("openai_agents")))


def test_what_is_known_of_the_agent(made):
    info = made.info
    assert (info["name"], info["framework"], info["model"]) == ("desk", "openai-agents", "scripted")
    assert set(info["sub_agents"]) == {"refunds", "bulk", "receipts", "translator"}
    tools = {tool["name"]: tool for tool in info["tools"]}
    # Those of agents that take over, too.
    assert {"find_order", "translate", "transfer_to_refunds", "pay_back"} < tools.keys()
    assert tools["find_order"]["description"] == "Finds an order."
    assert tools["find_order"]["parameters"]["properties"]["order_id"]["type"] == "integer"
    assert info["places"]["find_order"][0].endswith("bot/agent.py")
    assert info["places"]["pay_back"][0].endswith("bot/agent.py")
    assert "translate" not in info["places"]


def test_thoughts_are_kept_as_the_model_wants_them_back(made):
    (thought,) = made.thought.of("text")[0].content["parts"]
    assert thought == {"text": "The user wants me to think.", "thought": True}
    assert made.thought.texts() == ["think: id=3 state='shipped'"]
    kept = [item for step in made.thought.past() for item in (step.get("framework") or {}).get("items", ())]
    assert [item["type"] for item in kept] == ["reasoning", "function_call"]
    assert kept[0]["encrypted_content"] == "opaque"
    (asked,) = (event for event in made.thought_on.of("model_request") if event.agent == "desk")
    assert asked.data["contents"][1]["parts"] == [thought]


def test_an_exception_of_a_tool_that_the_model_is_told_of_is_an_event(made):
    (error,) = made.boom.of("error", nested=True)
    assert (error.data["type"], error.data["message"]) == ("KeyError", "'order 7'")
    assert error.data["where"].endswith("in boom")
    assert error.parent == made.boom.of("tool_call")[0].id
    assert "An error occurred" in made.boom.results()[0]["result"]
    assert made.boom.error is None


def test_state_that_an_agent_in_a_tool_changed_is_the_change_of_the_call(made):
    (change,) = made.nested.of("state")
    assert (change.agent, change.data["delta"]) == ("desk", {"notes": ["hello"]})
    assert made.nested.of("state", nested=True) == []


def test_the_result_of_a_call_beside_an_agent_in_a_tool_is_not_inside_of_it(made):
    names = [
        [
            event.content["parts"][0]["function_response"]["name"]
            for event in made.beside.of("tool_result", nested)
        ]
        for nested in (False, True)
    ]
    assert names == [["find_order", "translate"], ["remember"]]


def test_a_guardrail_that_trips_is_the_error_of_the_sdk(made):
    assert made.guarded.error.type == "InputGuardrailTripwireTriggered"
    assert "run_input_guardrails" in made.guarded.error.traceback
    # Its own agent says nothing to the user.
    assert {event.kind for event in made.guarded.events if event.agent == "guard"} == {
        "model_request",
        "model_response",
    }


def test_an_endless_loop_ends_as_the_sdk_ends_it(made):
    assert made.loop.error.type == "MaxTurnsExceeded"
    assert len(made.loop.results()) == 10


def test_what_openai_runs_itself_is_a_call_with_its_result(made):
    query = {"type": "search", "query": "news"}
    assert made.search.calls() == [("web_search", {"action": query})]
    assert made.search.results() == [{"status": "completed"}]
    assert made.search.texts() == ["Nothing new."]


def test_a_hand_off_is_a_transfer_and_the_next_turn_is_of_the_agent_that_took_over(made):
    assert made.receipt.calls() == [("transfer_to_receipts", {})]
    assert made.receipt.results() == [{"result": '{"assistant": "receipts"}'}]
    (transfer,) = made.receipt.of("transfer")
    assert (transfer.agent, transfer.data["to"]) == ("desk", "receipts")
    answer = '{"id": 7, "state": "paid"}'
    assert [(event.agent, event.turn) for event in made.receipt.of("text")] == [
        ("receipts", 0),
        ("receipts", 1),
    ]
    assert made.receipt.texts() == [answer, answer]
    assert (made.receipt_on.texts(), made.receipt_on.of("text")[0].agent) == ([answer], "receipts")


def test_a_result_of_a_tool_can_be_the_response(made):
    assert (made.bulk.texts(), made.bulk.of("text")[0].data["final"]) == (["kept"], True)


def test_a_call_that_needs_approval_waits_for_a_person(made):
    asked = made.asked.of("tool_call")[-1]
    call = asked.content["parts"][0]["function_call"]
    assert call["name"] == "adk_request_confirmation"
    assert call["args"]["originalFunctionCall"]["name"] == "pay_back"
    assert asked.data["long_running"] == [call["id"]]
    assert (made.asked.state, len(made.asked.results())) == ({}, 1)
    # In a conversation that begins where it waits.
    assert made.approved.results() == [{"result": "paid back 7"}]
    assert made.approved.texts() == ["Refund: paid back 7."]
    assert made.approved.state == {"paid_back": 7}
    assert made.rejected.texts() == ["Refund: too late."]
    assert made.rejected.state == {}


def test_a_response_goes_to_the_call_that_waits(made):
    # By the id of a recorded case, in a run; without `confirmed` it is a rejection.
    assert made.at_once.results()[-1] == {"result": "Tool execution was not approved."}


def test_after_another_message_nothing_waits(made):
    assert (made.put_aside.error, made.put_aside.texts()) == (None, ["All right."])
    (asked,) = made.put_aside.of("model_request")
    kinds = [kind for content in asked.data["contents"] for part in content["parts"] for kind in part]
    assert kinds == ["text", "function_call", "function_response", "text"]


def test_a_response_that_no_run_waits_for_is_refused(made):
    assert made.unknown.error.type == "ValueError"
    assert made.unknown.error.message.startswith("no run of the agent waits for this response")


def test_traces_go_to_processors_of_the_user_alone(made):
    assert made.traces.results() == [{"result": "[] True"}]


def test_a_replay_asks_no_model_and_calls_no_tool(made):
    replayed = made.replayed
    assert replayed.error is None
    assert replayed.texts() == made.recorded.texts()
    assert (replayed.results(), replayed.state) == (made.recorded.results(), made.recorded.state)
    assert made.recorded.state == {"last": 3, "notes": ["both", "hello"]}
    asked = replayed.of("model_request") + replayed.of("model_request", nested=True)
    assert len(asked) == 17
    assert all(event.data["replayed"] for event in asked)
    # An agent that is a tool runs, and its own tools are stubbed.
    stubbed = [event.data.get("stubbed") for event in replayed.of("tool_result")]
    assert stubbed == ["recording", "recording", "recording", None, *["recording"] * 3]
    # Made without a function, and one whose approval depends on its arguments.
    assert replayed.results()[-2:] == [{"result": "stamped {}"}, {"result": "spent 5"}]
    assert replayed.of("tool_result", nested=True)[0].data["stubbed"] == "recording"


def test_what_was_recorded_is_readable_and_has_no_random_ids(made):
    text = json.dumps(made.recorded.lines)
    assert '"recorded-1"' in text
    assert "call_" not in text.replace("call_id", "").replace("_call", "")


def test_what_is_missing_is_asked_for(made):
    asked = [event.data.get("replayed", False) for event in made.again.of("model_request")]
    assert (asked.count(True), asked.count(False)) == (15, 3)
    assert made.again.texts()[-1] == "order: id=7 state='shipped'"


@pytest.mark.usefixtures("own_hosts")
def test_the_example_of_the_guide_in_the_whole_loop(tmp_path, capsys, monkeypatch):
    """As it stands, with OpenAI's own client: what it asks is answered on this machine."""
    loop = Loop(tmp_path, example("OpenAI Agents SDK"), capsys)
    with OpenAIServer() as openai:
        openai.use(monkeypatch)
        (turn,) = loop.record("What does order 7 cost?")
        assert turn["final_response"]["parts"] == [{"text": "It is {'price': 12.5}."}]
        assert '"args": {"order": 7}' in json.dumps(turn)
        code, printed = loop.run("--record", "auto")
        assert (code, "1 passed" in printed, "2 live model calls" in printed) == (0, True, True), printed
        assert re.search(r"cost  \$0.00\d+, estimated from list prices of genai-prices", printed), printed
        assert "agent  gpt-5" in printed
        assert [(one["path"], one["model"]) for one in openai.asked] == [("/v1/responses", "gpt-5")] * 4
    # Nobody answers any more, there is no key, the tool is broken, and the expectation is another one.
    monkeypatch.delenv("OPENAI_API_KEY")
    loop.edit('return {"price": 12.5}', 'raise ValueError("no till")')
    case = loop.agent / "a.evalset.json"
    case.write_text(case.read_text().replace('"order": 7', '"order": 8'))
    code, printed = loop.run("--record", "replay")
    assert (code, "0 live model calls, 2 replayed, 1 tool call stubbed" in printed) == (1, True), printed
    assert "price: order is 7, expected 8" in printed


SEARCHING = """
from agents import Agent, FileSearchTool, HostedMCPTool, Model, ModelResponse, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

SERVER = {"type": "mcp", "server_label": "shop", "server_url": "https://shop.example", "authorization": "one"}


class Rules(Model):
    model = "rules"

    async def get_response(self, *args, **kwargs):
        text = ResponseOutputText(type="output_text", text="found", annotations=[])
        message = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
        return ModelResponse([ResponseOutputMessage(content=[text], **message)], Usage(), None)

    async def stream_response(self, *args, **kwargs):
        raise NotImplementedError
        yield


tools = [FileSearchTool(vector_store_ids=["orders"]), HostedMCPTool(tool_config=SERVER)]
root_agent = Agent(name="desk", model=Rules(), tools=tools)
"""


@pytest.mark.usefixtures("own_hosts")
def test_a_replay_notices_another_place_to_search_and_no_other_credential(tmp_path, capsys):
    loop = Loop(tmp_path, SEARCHING, capsys)
    loop.record("hi")
    code, printed = loop.run("--record", "auto")
    assert (code, "1 live model call" in printed) == (0, True), printed
    assert '"authorization"' not in (loop.agent / "recordings" / "a.jsonl").read_text()
    loop.edit('"authorization": "one"', '"authorization": "two"')
    code, printed = loop.run("--record", "replay")
    assert (code, "1 replayed" in printed) == (0, True), printed
    loop.edit('["orders"]', '["invoices"]')
    code, printed = loop.run("--record", "replay")
    assert (code, "declaration changed file_search" in printed) == (3, True), printed
