"""A2A agents are driven by their cards: google-adk's `to_a2a`, an agent on the SDK's server, broken ones."""

from __future__ import annotations

import asyncio
import urllib.request

import pytest
from environments import IN_CI

from evaltui.project.configs import ConfigInUse
from evaltui.project.run_settings import RunSettings

pytest.importorskip("google.adk")
# The README's environment has it.
if not IN_CI:
    pytest.importorskip("a2a")

import json

from a2a_servers import A2AServers
from host_processes import hosts
from talking import talk, user

from evaltui import EvalCase, EvalConfig, Status
from evaltui.agents.adapters.base import AgentLoadError, Reporter, SessionSpec
from evaltui.agents.adapters.remote.a2a import A2AAdapter
from evaltui.agents.adapters.remote.requests import RemoteError
from evaltui.cli import main
from evaltui.core.conversation.replay import past_of_turns
from evaltui.core.model.eval_set import tool_calls
from evaltui.core.model.events import CALLS
from evaltui.project.agent_address import AgentAddress
from evaltui.runner.execution import run_plan
from evaltui.runner.plan import RunPlan, SetPlan

pytestmark = pytest.mark.adk


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    with A2AServers(tmp_path_factory.mktemp("a2a")) as servers:
        yield servers


class Opened:
    """An adapter that is open."""

    def __init__(self, url, headers=()):
        self.adapter = A2AAdapter(url, headers)

    async def __aenter__(self):
        self.info = await self.adapter.open()
        return self.adapter

    async def __aexit__(self, *_):
        await self.adapter.close()


def texts(made):
    return [
        "".join(part.get("text", "") for part in event.content["parts"] if not part.get("thought"))
        for event in made.of("text")
        if not event.data.get("partial")
    ]


def parts(made, kind):
    field = "function_call" if kind == "tool_call" else "function_response"
    return [event.content["parts"][0][field] for event in made.of(kind)]


@pytest.mark.parametrize("card", ["", "/v03", "/.well-known/agent-card.json"])
async def test_calls_numbers_and_state_of_an_adk_agent_come_over_either_protocol(servers, card):
    async with Opened(servers.adk + card) as adapter:
        made = await talk(adapter, ["heat", "think"])
    assert [(call["name"], repr(call["args"])) for call in parts(made, "tool_call")] == [
        ("set_heat", "{'degrees': 19}")
    ]
    assert parts(made, "tool_result")[0]["response"] == {"degrees": 19}
    assert [event.data["delta"] for event in made.of("state") if event.data["delta"]] == [{"heat": 19}]
    assert texts(made) == ['set_heat: {"degrees": 19}', "It is warm."]
    thoughts = [part for event in made.of("text") for part in event.content["parts"] if part.get("thought")]
    assert [part["text"] for part in thoughts] == ["hm"]
    assert not any(event.data.get("untold") for turn in made.turns for event in turn)
    assert made.states == [None, None, None]


@pytest.mark.parametrize("way", ["stream", "send", "rest"])
async def test_an_agent_on_the_sdk_is_heard_once_whichever_way_it_offers(servers, way):
    async with Opened(f"{servers.desk}/{way}") as adapter:
        made = await talk(adapter, ["hello", "stream", "ask", "Oslo", "hello"])
    assert texts(made) == ["Hello 1.", "It is 19 degrees.", "Which city?", "Booked for Oslo.", "Hello 5."]
    pieces = [event for event in made.of("text") if event.data.get("partial")]
    assert len(pieces) == (0 if way == "send" else 2)
    assert [turn[-1].data.get("untold") for turn in made.turns] == [(CALLS,)] * 5


async def test_a_turn_that_ends_with_a_sign_in_goes_on_in_its_task(servers):
    async with Opened(f"{servers.desk}/stream") as adapter:
        made = await talk(adapter, ["sign in", "Ada"])
    assert texts(made) == ["Booked for Ada."]


async def test_an_agent_that_gives_up_says_why(servers):
    for url, message, why in (
        (servers.adk, "fail", "the boiler is out"),
        (f"{servers.desk}/stream", "reject", "Not on Sundays."),
        (f"{servers.desk}/send", "reject", "Not on Sundays."),
    ):
        async with Opened(url) as adapter:
            with pytest.raises(RemoteError) as raised:
                await talk(adapter, [message])
        assert (type(raised.value).__name__, str(raised.value)) == ("TaskFailedError", why)


@pytest.mark.parametrize("way", ["stream", "send", "rest"])
@pytest.mark.parametrize(
    ("message", "why"), [("reject", "Not on Sundays"), ("crash", "the boiler is out|500 Int")]
)
@pytest.mark.parametrize("before", [["hello"], ["hello", "ask"]])
async def test_a_conversation_goes_on_after_a_turn_that_failed(servers, before, message, why, way):
    async with Opened(f"{servers.desk}/{way}") as adapter:
        past = past_of_turns((await talk(adapter, before)).turns)
        with pytest.raises(RemoteError, match=why):
            await talk(adapter, [message], past=past)
        made = await talk(adapter, ["hello"], past=past)
        assert texts(made) == [f"Hello {len(before) + 2}."]
        with pytest.raises(ValueError, match="cannot continue from here"):
            await talk(adapter, ["hello"], past=past)


async def test_a_turn_that_is_cancelled_is_cancelled_there(servers):
    async with Opened(f"{servers.desk}/stream") as adapter:
        events = []
        session = await adapter.new_session(SessionSpec(), Reporter(events.append))
        while not _get(f"{servers.desk}/canceled"):
            # Cancelled before its answer has begun, a turn has no name yet that the server would know.
            turns = len(_get(f"{servers.desk}/waiting"))
            sending = asyncio.create_task(session.send(user("wait")))
            while len(_get(f"{servers.desk}/waiting")) == turns:
                await asyncio.sleep(0.05)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending


def _get(url):
    with urllib.request.urlopen(url) as response:
        return json.loads(response.read())


@pytest.mark.parametrize(
    ("kind", "error", "says"),
    [
        ("401", "HttpStatusError", "401 Unauthorized. Send a credential with --header-env NAME=VARIABLE"),
        ("429", "HttpStatusError", "429 Too Many Requests. Wait 1 h"),
        ("503", "HttpStatusError", "503 Service Unavailable: no more room. Check the server's log"),
        ("moved", "HttpStatusError", "307 Temporary Redirect. Use the address"),
        ("html", "MalformedResponseError", "not JSON"),
        ("garbage", "MalformedResponseError", "not JSON"),
        ("empty", "MalformedResponseError", "the response is empty"),
        ("number", "MalformedResponseError", "the response is not one of A2A"),
        ("shape", "MalformedResponseError", "the response is not one of A2A"),
        ("error", "ContentTypeNotSupportedError", "the agent's server answered: text only"),
        ("drop", "ConnectionLostError", "the connection was lost before the end of the response"),
    ],
)
async def test_what_goes_wrong_on_the_way_is_said_and_nothing_is_sent_twice(servers, kind, error, says):
    async with Opened(f"{servers.broken}/{kind}") as adapter:
        with pytest.raises(RemoteError) as raised:
            await talk(adapter, ["hello"])
    assert type(raised.value).__name__ == error
    assert says in str(raised.value)
    assert raised.value.where == f"POST {servers.broken}/{kind}"
    assert _get(f"{servers.broken}/sent/{kind}") == 1


async def test_a_task_that_is_not_done_when_the_response_ends_is_looked_at_until_it_is(servers):
    async with Opened(f"{servers.broken}/poll") as adapter:
        made = await talk(adapter, ["hello"])
    assert texts(made) == ["done"]
    assert _get(f"{servers.broken}/sent/poll") == 1


async def test_a_conversation_goes_on_after_a_message_that_was_not_taken(servers):
    async with Opened(f"{servers.broken}/later") as adapter:
        first = await talk(adapter, ["one"])
        past = past_of_turns(first.turns)
        with pytest.raises(RemoteError, match="401"):
            await talk(adapter, ["two"], past=past)
        assert texts(await talk(adapter, ["two"], past=past)) == ["c"]


async def test_a_message_that_was_refused_for_the_moment_is_sent_again(servers):
    async with Opened(f"{servers.broken}/busy") as adapter:
        made = await talk(adapter, ["hello"])
    assert texts(made) == ["fine"]
    assert [event.data["retrying"] for event in made.of("error")] == [True]
    assert _get(f"{servers.broken}/sent/busy") == 2


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/elsewhere", "names another host, http://127.0.0.1:1. Start the agent with its own host"),
        ("/grpc", "the agent offers GRPC; evaltui takes JSONRPC and HTTP+JSON"),
        ("/nameless", "the agent card names no address"),
        ("/nothing/x/y", "has no agent card at /.well-known/agent-card.json"),
        ("/sent/x.json", "the response is not an agent card"),
    ],
)
async def test_an_agent_that_cannot_be_used_says_so_once(servers, path, says):
    with pytest.raises((AgentLoadError, RemoteError)) as raised:
        await A2AAdapter(servers.broken + path, ()).open()
    assert says in str(raised.value)


async def test_a_card_is_taken_at_its_word_where_it_is_named_but_no_credential_goes_elsewhere(
    servers, monkeypatch
):
    card = f"{servers.broken}/elsewhere/.well-known/agent-card.json"
    async with Opened(card) as adapter:
        with pytest.raises(RemoteError, match="connection refused"):
            await talk(adapter, ["hello"])
    monkeypatch.setenv("KEY", "open sesame")
    with pytest.raises(AgentLoadError, match="--header-env is sent to the host of the address only"):
        await A2AAdapter(card, [("x-key", "KEY")]).open()
    async with Opened(f"{servers.broken}/secret", [("x-key", "KEY")]) as adapter:
        assert texts(await talk(adapter, ["hello"])) == ["fine"]


async def test_a_case_expects_19_and_what_is_not_sent_is_not_evaluated(servers, tmp_path):
    heat = {"name": "set_heat", "args": {"degrees": 19}}
    there = {"eval_id": "heat", "conversation": [_turn("heat", 'set_heat: {"degrees": 19}', [heat])]}
    state = {"app_name": "a", "user_id": "u", "state": {"heat": 1}}
    code = {"parts": [{"text": "run"}, {"executable_code": {"code": "1", "language": "PYTHON"}}]}
    cases = [
        there,
        there | {"eval_id": "final", "final_session_state": {"heat": 19}},
        there | {"eval_id": "state", "session_input": state},
        {"eval_id": "fail", "conversation": [_turn("fail", "x", [])]},
        there | {"eval_id": "id", "session_input": {"app_name": "a", "user_id": "u", "session_id": "s"}},
        {"eval_id": "part", "conversation": [_turn("heat", "x", []) | {"user_content": code}]},
    ]
    results = await _run(servers.adk, tmp_path, cases)
    assert {name: one.status for name, one in results.items()} == {
        "heat": Status.PASSED,
        "final": Status.NOT_EVALUATED,
        "state": Status.ERROR,
        "fail": Status.ERROR,
        "id": Status.ERROR,
        "part": Status.ERROR,
    }
    assert results["state"].error.message.startswith(
        "the session state (heat) cannot be set: an A2A agent takes none. Remove it from the case, or run"
    )
    assert results["id"].error.message.startswith("the session id 's' cannot be set: an A2A agent takes none")
    assert results["part"].error.message.startswith("part 2 of the message has executable_code: an A2A agent")
    assert results["fail"].error.message == "the boiler is out"
    (call,) = tool_calls(results["heat"].repeats[0].actual[0].intermediate_data)
    assert repr(call.args) == "{'degrees': 19}"

    silent = _case("stream", "It is 19 degrees.")
    untold = (await _run(f"{servers.desk}/stream", tmp_path, [silent]))["stream"]
    assert untold.status is Status.NOT_EVALUATED
    reasons = {one.name: one.reason for one in untold.metrics if one.status is Status.NOT_EVALUATED}
    assert reasons == {
        "tool_trajectory_avg_score": "the tool calls of turn 1 are unknown: the agent does not send them"
    }
    assert untold.turns[0].expectation == "unknown"


async def test_what_an_agent_has_heard_is_not_sent_again_when_the_host_is_lost(servers, tmp_path):
    run = asyncio.create_task(
        _run(f"{servers.broken}/hang", tmp_path, [_case("one", "x"), _case("two", "x")])
    )
    while _get(f"{servers.broken}/sent/hang") < 2 and not run.done():
        await asyncio.sleep(0.05)
    for host in hosts():
        host.kill()
    results = await run
    assert [one.status for one in results.values()] == [Status.ERROR] * 2
    assert _get(f"{servers.broken}/sent/hang") == 2


def test_a_case_that_is_recorded_passes_without_the_calls_that_are_not_sent(servers, tmp_path, capsys):
    turns, made = tmp_path / "turns.txt", tmp_path / "a.evalset.json"
    turns.write_text("ask\n\nOslo\n")
    words = ["record", f"a2a:{servers.desk}/stream", str(made), "--case", "one", "--turns", str(turns)]
    with pytest.raises(SystemExit) as left:
        main([*words, "--home", str(tmp_path)])
    assert left.value.code == 0
    assert "the agent does not send its tool calls" in capsys.readouterr().err
    (case,) = json.loads(made.read_text())["eval_cases"]
    assert [[*turn] for turn in case["conversation"]] == [["user_content", "final_response"]] * 2
    for calls_alone, code in ((False, 0), (True, 3)):
        if calls_alone:
            config = json.loads((tmp_path / "test_config.json").read_text())
            del config["criteria"]["response_match_score"]
            (tmp_path / "test_config.json").write_text(json.dumps(config))
        with pytest.raises(SystemExit) as left:
            main(["run", words[1], "--home", str(tmp_path)])
        assert left.value.code == code


def _turn(message, response, calls):
    return {
        "user_content": user(message),
        "final_response": {"role": "model", "parts": [{"text": response}]},
        "intermediate_data": {"tool_uses": calls},
    }


def _case(message, response):
    return {"eval_id": message, "conversation": [_turn(message, response, [])]}


async def _run(url, home, cases):
    config = EvalConfig.default()
    plan = SetPlan(
        "a.evalset.json",
        "a",
        [EvalCase.model_validate(case) for case in cases],
        ConfigInUse(None, config),
        home / "a.evalset.json",
    )
    result = await run_plan(
        RunPlan(AgentAddress(home, url=f"a2a:{url}"), (plan,), RunSettings(record="off")), lambda update: None
    )
    return {case.eval_id: case for case in result.cases}
