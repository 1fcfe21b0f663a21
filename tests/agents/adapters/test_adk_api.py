"""Agents of google-adk's own api_server are driven as if they were imported."""

from __future__ import annotations

import base64
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from evaltui.project.configs import ConfigInUse

pytest.importorskip("google.adk")
pytest.importorskip("fastapi")

from adk_server import AdkServer, free_port
from requesting_agents import BOOKING, DESK, response, root_agent, write_agent
from talking import talk

from evaltui import EvalConfig, Status, load_eval_set
from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.agents.adapters.base import AgentLoadError, SessionSpec
from evaltui.agents.adapters.remote.adk_api import AdkApiAdapter
from evaltui.agents.adapters.remote.requests import RemoteError, UnreachableError
from evaltui.core.conversation.replay import past_of_turns
from evaltui.core.model.eval_set import full_text, tool_calls
from evaltui.project.agent_address import AgentAddress
from evaltui.runner.execution import run_plan
from evaltui.runner.plan import AgentLoaded, RunPlan, SetPlan

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore")]

SAMPLES = Path(__file__).parents[3] / "sample_agents"
CONFIRM, INPUT = "adk_request_confirmation", "adk_request_input"

# Says how large the file is that it gets, keeps one of its own, and raises what it is told.
FILES = '''
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import ToolContext
from google.genai import types


class Reader(BaseLlm):
    model: str = "reader"

    async def generate_content_async(self, llm_request, stream=False):
        parts = [part for content in llm_request.contents[-1:] for part in content.parts]
        if parts[-1].function_response:
            said = types.Part(text="kept\\u2028it")
        elif parts[-1].text == "raise":
            raise LookupError("no rule for raise")
        elif parts[-1].text == "keep":
            said = types.Part(function_call=types.FunctionCall(name="keep", args={"nothing": None}))
        else:
            sizes = [len(part.inline_data.data) for part in parts if part.inline_data]
            said = types.Part(text=f"files of {sizes} bytes")
        yield LlmResponse(content=types.Content(role="model", parts=[said]))


async def keep(nothing: str, tool_context: ToolContext) -> dict:
    """Keep a file."""
    tool_context.state["kept"] = tool_context.user_id
    await tool_context.save_artifact("note.txt", types.Part(text="a note"))
    return {"kept": True}


root_agent = LlmAgent(name="reader", model=Reader(), tools=[keep])
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    agents = tmp_path_factory.mktemp("agents")
    shutil.copytree(SAMPLES / "travel_desk", agents / "travel_desk")
    write_agent(agents / "desk", DESK)
    write_agent(agents / "booking", BOOKING)
    write_agent(agents / "files", FILES)
    write_agent(agents / "broken", "raise RuntimeError('a typo')")
    with AdkServer(agents) as server:
        yield server


@pytest.fixture
async def adapter_of(server):
    """Makes an adapter that is open, by the name of an app."""
    opened = []

    async def open_adapter(app):
        adapter = AdkApiAdapter(server.url_of(app), [])
        opened.append(adapter)
        await adapter.open()
        return adapter

    yield open_adapter
    for adapter in opened:
        await adapter.close()


def local(source):
    return AdkAdapter(root_agent(source))


@pytest.fixture
def travel_desk(monkeypatch):
    monkeypatch.syspath_prepend(SAMPLES)
    return AdkAdapter(import_module("travel_desk.agent").root_agent)


async def test_what_is_known_of_the_agent(adapter_of, travel_desk):
    adapter = await adapter_of("travel_desk")
    there, here = await adapter.open(), await travel_desk.open()
    await adapter.close()
    assert (there.name, there.sub_agents) == (here.name, here.sub_agents)
    assert [(tool.name, tool.description) for tool in there.tools] == [
        (tool.name, tool.description) for tool in here.tools
    ]
    assert there.tools[0].parameters["properties"].keys() == {"name", "home_city"}
    assert (there.model, there.framework) == ("", "adk_api")
    # Of a workflow a server tells nothing.
    assert (await (await adapter_of("booking")).open()).tools == ()


async def test_a_past_in_which_a_tool_takes_long(adapter_of):
    there, here = [await response_to_a_past(adapter) for adapter in (await adapter_of("desk"), local(DESK))]
    assert there == here


async def response_to_a_past(adapter):
    before = await talk(adapter, ["approve", "hello"])
    call = before.of("tool_call")[0].content["parts"][0]["function_call"]
    later = response("approve", {"ok": True}, call["id"])
    return (await talk(adapter, [later, "bye"], past=past_of_turns(before.turns))).said()


async def test_files_go_there_and_come_once(adapter_of, server):
    adapter = await adapter_of("files")
    blob = {
        "inline_data": {
            "mime_type": "image/png",
            "data": base64.urlsafe_b64encode(b"\xff\xfe\x00\xfb").decode(),
        }
    }
    spec = SessionSpec(user_id="Ada & Bo?")
    said = await talk(adapter, [{"role": "user", "parts": [{"text": "see"}, blob]}, "keep"], spec)
    here = await talk(local(FILES), [{"role": "user", "parts": [{"text": "see"}, blob]}, "keep"], spec)
    assert said.said() == here.said()
    assert said.states[-1] == {"kept": "Ada & Bo?"}
    assert said.of("text")[0].content["parts"] == [{"text": "files of [4] bytes"}]
    assert server.sessions("files", "Ada%20%26%20Bo%3F") == []


async def test_an_error_of_the_agent_has_its_name_and_place(adapter_of, server):
    with pytest.raises(RemoteError) as raised:
        await talk(await adapter_of("files"), ["raise"])
    assert (type(raised.value).__name__, str(raised.value)) == ("LookupError", "no rule for raise")
    assert raised.value.where == f"POST {server.url}/run_sse"


async def test_addresses_without_an_agent(server):
    async def problem(url):
        adapter = AdkApiAdapter(url, [])
        try:
            with pytest.raises((AgentLoadError, RemoteError)) as raised:
                await adapter.open()
        finally:
            await adapter.close()
        return raised.value

    assert str(await problem(server.url_of("travel_des"))).endswith("Did you mean travel_desk?")
    assert "has no app nothing_alike. Apps: booking, broken, desk, files" in str(
        await problem(server.url_of("nothing_alike"))
    )
    assert f"Use one of these addresses: {server.url}/booking" in str(await problem(server.url))
    assert "500 Internal Server Error. Check the server's log" in str(await problem(server.url_of("broken")))
    refused = await problem(f"http://127.0.0.1:{free_port()}/desk")
    assert isinstance(refused, UnreachableError)
    assert str(refused) == "connection refused. Start the server or check the address"


async def run_sample(agent, paths):
    updates = []
    sets = tuple(
        SetPlan(
            path.name, "travel_desk", load_eval_set(path).eval_cases, ConfigInUse(None, config_of(path)), path
        )
        for path in paths
    )
    return await run_plan(RunPlan(agent, sets), updates.append), updates


def config_of(path):
    return EvalConfig.model_validate_json((path.parent / "test_config.json").read_text())


async def test_verdicts_are_those_of_the_agent_that_is_imported(server, tmp_path):
    for name in ("travel_desk.evalset.json", "test_config.json"):
        shutil.copy(SAMPLES / "travel_desk" / name, tmp_path)
    home = tmp_path / "travel_desk.evalset.json"
    there, told = await run_sample(AgentAddress(tmp_path, url=server.url_of("travel_desk")), [home])
    here, _ = await run_sample(AgentAddress(SAMPLES / "travel_desk"), [SAMPLES / "travel_desk" / home.name])
    assert {case.eval_id: verdict(case) for case in there.cases} == {
        case.eval_id: verdict(case) for case in here.cases
    }
    assert {case.status for case in there.cases} == {Status.PASSED, Status.FAILED}
    (loaded,) = (update for update in told if isinstance(update, AgentLoaded))
    assert loaded.info["unrecorded"].startswith("the agent is behind a network")


def verdict(case):
    timed = "invocation_duration_v1"
    metrics = [(one.name, one.score, one.status, one.reason) for one in case.metrics if one.name != timed]
    actual = [
        [
            (
                [(call.name, call.args) for call in tool_calls(turn.intermediate_data)],
                full_text(turn.final_response),
            )
            for turn in repeat.actual
        ]
        for repeat in case.repeats
    ]
    return case.status, metrics, actual
