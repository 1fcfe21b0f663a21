"""What goes wrong between evaltui and a server, each case by itself, and that no turn is run twice."""

from __future__ import annotations

import asyncio
import json

import pytest
from misbehaving_server import MisbehavingServer, drops, event, gives, refuses, says, sends, streams
from talking import talk, user
from waiting import until

from evaltui.agents.adapters.base import AgentLoadError, Reporter, SessionSpec
from evaltui.agents.adapters.remote.adk_api import AdkApiAdapter
from evaltui.agents.adapters.remote.requests import (
    CancelledError,
    ConnectionLostError,
    HttpStatusError,
    MalformedResponseError,
)

NOW = {"Retry-After": "0"}


@pytest.fixture
def server():
    with MisbehavingServer() as server:
        yield server


@pytest.fixture
async def adapter(server):
    adapter = AdkApiAdapter(server.url, [])
    await adapter.open()
    yield adapter
    await adapter.close()


TURNS = {
    "unauthorized": (
        refuses(401, detail="no token"),
        HttpStatusError,
        "401 Unauthorized: no token. Send a credential with --header-env NAME=VARIABLE",
    ),
    "forbidden": (refuses(403), HttpStatusError, "403 Forbidden. Send a credential with --header-env"),
    "a session that is gone": (
        refuses(404, detail="Session not found: 1"),
        HttpStatusError,
        "404 Not Found: Session not found: 1. Check the address; a server that was restarted",
    ),
    "too many requests for an hour": (
        refuses(429, {"Retry-After": "3600"}),
        HttpStatusError,
        "429 Too Many Requests. Wait 1 h",
    ),
    "out of order": (refuses(500), HttpStatusError, "500 Internal Server Error. Check the server's log"),
    "a gateway": (refuses(502), HttpStatusError, "502 Bad Gateway. Check the server's log"),
    "redirected": (
        refuses(307, {"Location": "https://example.com/run_sse"}),
        HttpStatusError,
        "307 Temporary Redirect. Use the address that it redirects to: https://example.com/run_sse",
    ),
    "refused as it is": (
        sends(422, b'{"detail":[{"msg":"x"}]}', "application/json"),
        HttpStatusError,
        "422 Unprocessable",
    ),
    "a page": (
        sends(200, b"<html>Sign in</html>", "text/html"),
        MalformedResponseError,
        "the response is text/html, not text/event-stream: <html>Sign in</html>. Check the address",
    ),
    "no JSON": (streams(b"data: {oops\n\n"), MalformedResponseError, "an event is not JSON: {oops"),
    "no event": (streams([1, 2]), MalformedResponseError, "an event is not one of ADK's"),
    "an event without an author": (
        streams({"id": "x"}),
        MalformedResponseError,
        "an event is not one of ADK's",
    ),
    "a content of another kind": (
        streams(event("x", content={"parts": [{"text": {"no": "text"}}]})),
        MalformedResponseError,
        "an event is not one of ADK's",
    ),
    "dropped at once": (drops, ConnectionLostError, "the connection was lost before the end of the response"),
    "closed in the middle": (
        streams(event("one"), end="closed"),
        ConnectionLostError,
        "the connection was lost before the end",
    ),
    "reset in the middle": (
        streams(event("one"), end="reset"),
        ConnectionLostError,
        "the connection was lost",
    ),
    "cut off in an event": (
        streams(event("one"), b'data: {"author"'),
        ConnectionLostError,
        "the connection was lost before the end",
    ),
}


@pytest.mark.parametrize("name", TURNS)
async def test_a_turn_that_fails_is_sent_once(server, adapter, name):
    answer, kind, message = TURNS[name]
    server.turns.append(answer)
    with pytest.raises(kind) as raised:
        await talk(adapter, ["hi"])
    assert str(raised.value).startswith(message)
    assert raised.value.where == f"POST {server.url.removesuffix('/desk')}/run_sse"
    assert server.sent("/run_sse") == 1
    # The session is deleted, on a busy machine in the background, and the next case goes on.
    await until(lambda: server.sent("/apps/desk/users/", "DELETE") == 1)
    assert (await talk(adapter, ["hi"])).of("text")[0].content["parts"] == [{"text": "hello"}]


async def test_a_turn_that_was_refused_for_now_is_sent_again(server, adapter):
    server.turns += [refuses(429, NOW), refuses(429, NOW), says("at last")]
    said = await talk(adapter, ["hi"])
    assert [event.content["parts"][0]["text"] for event in said.of("text")] == ["at last"]
    assert [event.data["retrying"] for event in said.of("error")] == [True, True]
    assert said.of("error")[0].data["message"].endswith("; retrying in 0 ms")
    assert server.sent("/run_sse") == 3


async def test_a_server_that_stays_busy_is_given_up(server, adapter):
    server.turns += [refuses(429, NOW)] * 9
    with pytest.raises(HttpStatusError, match=r"429 Too Many Requests\. Tried 4 times\. Run fewer"):
        await talk(adapter, ["hi"])
    assert server.sent("/run_sse") == 4


async def test_what_runs_no_agent_is_asked_again(server, adapter):
    answers = iter([refuses(503, NOW), refuses(503, NOW)])
    well = server.paths["/apps/desk/users/"]
    server.paths["/apps/desk/users/"] = lambda handler: next(answers, well)(handler)
    told = []
    session = await adapter.new_session(SessionSpec(), Reporter(told.append))
    assert await session.state() == {"seen": True}
    assert [event.data["retrying"] for event in told] == [True, True]
    await session.close()


async def test_a_session_whose_making_was_lost_is_there(server, adapter):
    well = server.paths["/apps/desk/users/"]
    server.paths["/apps/desk/users/"] = lambda handler: (
        refuses(409)(handler) if handler.command == "POST" else well(handler)
    )
    assert len((await talk(adapter, ["hi"])).turns) == 1
    # One of that name is somebody else's.
    with pytest.raises(HttpStatusError, match="409 Conflict"):
        await talk(adapter, ["hi"], SessionSpec(user_id="u", session_id="mine"))
    assert server.sent("/apps/desk/users/u/sessions/mine", "DELETE") == 0


async def test_lines_are_told_apart_as_the_protocol_has_it(server, adapter):
    data = json.dumps(event("a\u2028b\x85c"), ensure_ascii=False).encode()
    half = len(data) // 2
    server.turns.append(
        streams(b": a remark\r\n\r\n", b"event: message\r\ndata:", data[:half], data[half:], b"\r\n\r\n")
    )
    assert (await talk(adapter, ["hi"])).of("text")[0].content["parts"] == [{"text": "a\u2028b\x85c"}]


async def test_cancelling_a_turn_says_what_was_waited_for(server, adapter):
    server.turns.append(streams(event("one"), end="held"))
    session = await adapter.new_session(SessionSpec(), Reporter(lambda event: None))
    turn = asyncio.create_task(session.send(user("hi")))
    await asyncio.to_thread(server.is_held.wait, 10)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError) as raised:
        await turn
    assert isinstance(raised.value, CancelledError)
    assert raised.value.where.endswith("/run_sse")
    await session.close()


@pytest.mark.parametrize(
    ("path", "answer", "message"),
    [
        ("/list-apps", gives({"no": "list"}), "the response is no list of apps"),
        (
            "/list-apps",
            sends(200, b"hello", "text/plain"),
            "the response is not JSON: hello. Check the address",
        ),
        ("/list-apps", refuses(401), "401 Unauthorized. Send a credential"),
        ("/list-apps", gives(["one", "two"]), "has no app desk. Apps: one, two"),
        ("/list-apps", gives([]), "has no app desk"),
        ("/list-apps", refuses(404), "404 Not Found"),
        ("/apps/desk/app-info", refuses(404, detail="no root_agent"), "cannot load desk: no root_agent"),
        ("/apps/desk/app-info", refuses(500), "500 Internal Server Error"),
    ],
)
async def test_an_agent_that_is_not_there(server, path, answer, message):
    server.paths[path] = answer
    adapter = AdkApiAdapter(server.url, [])
    with pytest.raises(Exception) as raised:
        await adapter.open()
    await adapter.close()
    assert message in str(raised.value)


async def test_the_only_app_is_chosen_and_may_be_below_a_path(server):
    for url in (server.url.removesuffix("/desk"), server.url):
        adapter = AdkApiAdapter(url, [])
        assert (await adapter.open()).name == "desk"
        await adapter.close()
    below = server.paths | {"/adk/list-apps": gives(["desk"]), "/adk/apps/desk/app-info": refuses(400)}
    server.paths = below | {"/list-apps": refuses(404), "/adk/desk/list-apps": refuses(404)}
    for path in ("/adk/desk", "/adk"):
        adapter = AdkApiAdapter(server.url.removesuffix("/desk") + path, [])
        assert (await adapter.open()).name == "desk"
        await adapter.close()


async def test_headers_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "Bearer 123")
    adapter = AdkApiAdapter(server.url, [("Authorization", "MY_TOKEN")])
    await adapter.open()
    server.turns.append(refuses(401))
    with pytest.raises(HttpStatusError, match=r"401 Unauthorized\. Check the value of MY_TOKEN$"):
        await talk(adapter, ["hi"])
    await adapter.close()
    assert {request.headers.get("Authorization") for request in server.requests} == {"Bearer 123"}
    monkeypatch.delenv("MY_TOKEN")
    with pytest.raises(AgentLoadError, match="MY_TOKEN is not set, which --header-env names"):
        await AdkApiAdapter(server.url, [("Authorization", "MY_TOKEN")]).open()


async def test_this_machine_is_asked_without_a_proxy(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    adapter = AdkApiAdapter(server.url, [])
    assert (await adapter.open()).name == "desk"
    await adapter.close()
