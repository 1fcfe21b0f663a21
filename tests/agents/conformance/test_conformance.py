"""Every kind of agent is asked the same; how one differs is in the table, which is that of the guide."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from desks import SOURCES, Desk, response
from environments import IN_CI
from kinds_of_agents import NO, QUESTIONS, YES, cell

# One desk after the other: each has a host, some a server.
pytestmark = pytest.mark.filterwarnings("ignore")
CONFIRMATION = "adk_request_confirmation"
USAGE = {
    "prompt_token_count": 100,
    "cached_content_token_count": 40,
    "candidates_token_count": 15,
    "thoughts_token_count": 5,
    "total_token_count": 120,
}
PACKAGES = {"adk": ("google.adk",), "api": ("google.adk", "fastapi"), "a2a": ("google.adk", "a2a")}


@pytest.fixture(scope="module", params=SOURCES)
def desk_of_kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    for package in () if IN_CI else PACKAGES.get(request.param, ()):
        pytest.importorskip(package)
    made = Desk(request.param, tmp_path_factory.mktemp(request.param))
    yield made
    made.close()


@pytest.fixture
def desk(desk_of_kind: Desk, fork_hosts_of: Callable[[str], None]) -> Desk:
    fork_hosts_of(desk_of_kind.kind)
    return desk_of_kind


@pytest.fixture
def can(request: pytest.FixtureRequest, desk: Desk) -> str:
    """What the table says of a kind; where it cannot at all, the question is turned round."""
    return cell("adk" if desk.kind == "old_adk" else desk.kind, request.function.__name__[5:])


def test_every_question_is_in_the_table() -> None:
    asked = {name[5:] for name, value in globals().items() if name.startswith("test_") and callable(value)}
    assert asked - {"every_question_is_in_the_table", "conversations"} == set(QUESTIONS)


def test_known(desk: Desk, can: str) -> None:
    info = desk.info
    assert info["name"] == "desk"
    assert bool(info["unrecorded"]) == (desk.kind in ("function", "api", "a2a"))
    tools = {tool["name"]: tool for tool in info["tools"]}
    if can == NO:
        assert tools == {}
        return
    assert {"price", "meet", "note", "fail", "wait"} <= tools.keys()
    assert tools["price"]["description"] == "The price of an order."
    assert tools["price"]["parameters"]["properties"]["order"]["type"].lower() == "integer"
    assert "note" not in tools or list(tools["note"]["parameters"]["properties"]) == ["item"]
    if can == YES:
        assert info["places"]["price"][0].endswith("desk/script.py")


def test_trajectory(desk: Desk) -> None:
    talk = desk.chat("price 7", "hello")
    assert talk.error is None
    assert talk.calls() == [("price", {"order": 7})]
    assert talk.results() == [{"price": 7.5}]
    assert talk.texts() == ["results: 7.5", "message 2"]
    (call,), (result,) = talk.of("tool_call"), talk.of("tool_result")
    assert result.parent == call.id != ""
    assert {event.agent for event in talk.of("text")} == {"desk"}
    assert [[event.turn for event in turn] for turn in talk.turns] == [
        [0] * len(talk.turns[0]),
        [1] * len(talk.turns[1]),
    ]


def test_parallel(desk: Desk, can: str) -> None:
    talk = desk.chat("meet a b")
    assert talk.calls() == [("meet", {"name": "a"}), ("meet", {"name": "b"})]
    results = talk.results() if can == YES else sorted(talk.results(), key=str)
    assert results == [{"result": "met a"}, {"result": "met b"}]
    assert talk.texts() == ["results: met a, met b"]
    by_call = {
        event.parent: event.content["parts"][0]["function_response"] for event in talk.of("tool_result")
    }
    assert [by_call[event.id]["response"]["result"] for event in talk.of("tool_call")] == ["met a", "met b"]
    # Cases at the same time share nothing.
    ran = desk.run(*([f"price {number}", f"note {number}", "hello"] for number in range(6)), parallel=6)
    for number in range(6):
        talk = ran.talk(number)
        assert talk.calls() == [("price", {"order": number}), ("note", {"item": str(number)})]
        assert talk.texts() == [f"results: {number}.5", "results: done", "message 3"]


def test_requests(desk: Desk, can: str) -> None:
    talk = desk.chat("price 7", "hello")
    if can == NO:
        assert talk.of("model_request") == []
        return
    requests, responses = talk.of("model_request"), talk.of("model_response")
    assert [one.parent for one in responses] == [one.id for one in requests]
    assert all((one.duration or 0) > 0 for one in responses)
    assert all(one.data["model"] == "rules" for one in requests)
    assert "Be short." in requests[0].data["system_instruction"]
    assert "price" in [tool["name"] for tool in requests[0].data["tools"]]
    # What was sent before is not repeated.
    sent = [one.data["contents_before"] + len(one.data["contents"]) for one in requests]
    assert [one.data["contents_before"] for one in requests] == [0, *sent[:-1]]
    assert requests[-1].data["contents"][-1] == {"role": "user", "parts": [{"text": "hello"}]}
    (result,) = talk.of("tool_result")
    assert (result.duration or 0) > 0


def test_usage(desk: Desk, can: str) -> None:
    (text,) = desk.chat("hello").of("text")
    if can == NO:
        assert text.usage is None
        return
    assert text.usage == USAGE
    ran = desk.run(["hello"])
    assert ran.cases[0].error is None
    if ran.of("model_response"):
        assert ran.of("model_response")[0].usage == USAGE


def test_served(desk: Desk, can: str) -> None:
    talk = desk.chat("hello")
    told = {event.data.get("model_version") for event in [*talk.of("model_response"), *talk.of("text")]}
    # A function that stands in for a model of Pydantic AI serves under the name that it has.
    named = "rules" if desk.kind == "pydantic" else "rules-1"
    assert told - {None} == ({named} if can == YES else set())


def test_thoughts(desk: Desk, can: str) -> None:
    talk = desk.chat("hello")
    thoughts = [part["text"] for part in talk.parts("text") if part.get("thought")]
    assert thoughts == (["hm"] if can == YES else [])
    assert talk.texts() == ["message 1"]


def test_streaming(desk: Desk, can: str) -> None:
    events = [event for turn in desk.chat("hello").turns for event in turn if event.data.get("partial")]
    assert bool(events) == (can == YES)


def test_state(desk: Desk, can: str) -> None:
    start = {"noted": "bread"}
    if can != YES:
        assert "the session state (noted) cannot be set" in desk.chat("hello", state=start).error.message
        talk = desk.chat("note milk")
        assert (talk.states[-1], talk.of("state")[0].data["delta"]) == (None, {"noted": "milk"})
        return
    talk = desk.chat("note milk", "hello", state=start)
    assert [state and state["noted"] for state in talk.states] == ["bread", "milk", "milk"]
    assert [event.data["delta"] for event in talk.of("state")] == [{"noted": "milk"}]
    # Another conversation has none of it.
    assert (desk.chat("hello").states[-1] or {}).get("noted", "") == ""


def test_files(desk: Desk) -> None:
    image = {"inline_data": {"mime_type": "image/png", "data": "aW1hZ2U_"}}
    talk = desk.chat({"role": "user", "parts": [{"text": "look"}, image]}, "hello")
    assert talk.texts() == ["message 1 with 1 files", "message 2"]


CONVERSATION = ("note milk", "price 7", "hello", "price 8 9")


def test_past(desk: Desk, can: str) -> None:
    whole = desk.chat(*CONVERSATION)
    if can != YES:
        assert "keeps its conversation itself" in desk.chat("hello", after=whole.turns[:2]).error.message
        assert desk.chat("hello", after=whole.turns).texts() == ["message 5"]
        return
    for cut in range(len(CONVERSATION)):
        rest = desk.chat(*CONVERSATION[cut:], after=whole.turns[:cut])
        assert (rest.error, rest.told()) == (None, whole.told()[cut:])
        assert rest.states == whole.states[cut:]
        ids = {event.id for turn in whole.turns[:cut] for event in turn if event.kind == "tool_call"}
        assert not ids & {event.id for event in rest.of("tool_call")}


def test_waiting(desk: Desk, can: str) -> None:
    talk = desk.chat("remove a")
    if can == NO:
        assert CONFIRMATION not in [name for name, _ in talk.calls()]
        return
    name, args = talk.calls()[-1]
    original = args["originalFunctionCall"]
    assert (name, original["name"], original["args"]) == (CONFIRMATION, "remove", {"path": "a"})
    assert talk.of("tool_call")[-1].data["long_running"] == [talk.of("tool_call")[-1].id]
    for confirmed, expected in ((True, {"result": "removed a"}), (False, None)):
        # In the same conversation, to the call that waits.
        talk = desk.chat("remove a", _answering(confirmed))
        assert talk.error is None
        given = talk.results()[-1]
        assert given == expected if confirmed else given != {"result": "removed a"}


def _answering(confirmed: bool) -> Any:
    part = {"function_response": {"id": "", "name": CONFIRMATION, "response": {"confirmed": confirmed}}}
    return {"role": "user", "parts": [part]}


def test_waiting_past(desk: Desk, can: str) -> None:
    asked = desk.chat("remove a")
    if cell("adk" if desk.kind == "old_adk" else desk.kind, "waiting") == NO:
        assert can == NO
        return
    talk = desk.chat(response(asked, {"confirmed": True}), after=asked.turns)
    if can == NO:
        assert "end its turns again" in talk.error.message
    else:
        assert talk.results() == [{"result": "removed a"}]
        assert talk.texts() == ["results: removed a"]


def test_nested(desk: Desk, can: str) -> None:
    talk = desk.chat("ask")
    if can == NO:
        assert talk.of("text", nested=True) == talk.of("model_request", nested=True) == []
        return
    (call,) = talk.of("tool_call")
    assert talk.results() == [{"result": "because"}]
    assert talk.texts() == ["results: because"]
    (asked,) = talk.of("model_request", nested=True)
    (said,) = talk.of("text", nested=True)
    assert (asked.agent, asked.parent) == (said.agent, said.parent) == ("ask_other", call.id)


def test_transfer(desk: Desk, can: str) -> None:
    talk = desk.chat("transfer")
    assert [event.data["to"] for event in talk.of("transfer")] == (["writer"] if can == YES else [])
    if can == YES:
        assert (talk.texts(), talk.of("text")[-1].agent) == (["written"], "writer")


def test_tool_error(desk: Desk, can: str) -> None:
    talk = desk.chat("fail", "hello")
    assert talk.error is not None
    assert "till" in talk.error.message
    assert talk.calls() == [("fail", {"order": 7})]
    if can != "text":
        assert "KeyError" in talk.error.traceback or talk.error.type == "KeyError"
    if can == YES:
        assert talk.error.where.endswith("in fail")
        assert 'raise KeyError("till")' in talk.error.traceback
    # The turn is forgotten.
    assert desk.chat("hello").texts() == ["message 1"]


def test_model_error(desk: Desk, can: str) -> None:
    talk = desk.chat("out")
    assert "the model is out" in talk.error.message
    assert talk.error.type == ("OutError" if can == YES else "TaskFailedError")
    (case,) = desk.run(["hello", "out"]).cases
    assert case.error is not None
    assert "the model is out" in case.error.message
    # A native agent has no other use for the error of its model than to end with it.
    if talk.of("model_request") and desk.kind != "native":
        error = talk.of("error")[0]
        assert (error.data["type"], error.parent) == ("OutError", talk.of("model_request")[0].id)


def test_cancel(desk: Desk) -> None:
    talk = desk.chat("hello", "wait", cancel_at="tool_call")
    assert talk.calls() == [("wait", {"order": 7})]
    again = desk.chat("hello", "hello")
    assert again.texts() == ["message 1", "message 2"]


def test_timeout(desk: Desk, can: str) -> None:
    (case,) = desk.run(["wait"], timeout=4.0).cases
    assert case.error is not None
    assert case.error.message.startswith("no response within 4 s")
    assert ("in wait" if can == YES else "POST") in case.error.where, case.error


TALK = ("price 7", "note milk", "hello")
CONFIG = {"criteria": {"tool_trajectory_avg_score": 0.0}}


def _without_ids(desk: Desk, ran: Any) -> Any:
    talk = ran.talk()
    return talk.texts(), talk.calls(), talk.results(), ran.cases[0].error


def test_replay(desk: Desk, can: str) -> None:
    if can == NO:
        (case,) = desk.run(["hello"], record="replay").cases
        assert case.error is not None
        assert "evaltui cannot replay or stub them. Run it with --record off" in case.error.message
        return
    recorded = desk.run(TALK, record="record")
    assert all("replayed" not in event.data for event in recorded.of("model_request"))
    with desk.broken("answer"):
        replayed = desk.run(TALK, record="replay")
    assert _without_ids(desk, replayed) == _without_ids(desk, recorded)
    assert all(event.data["replayed"] for event in replayed.of("model_request"))
    assert [one.usage for one in replayed.of("model_response")] == [
        one.usage for one in recorded.of("model_response")
    ]
    (case,) = desk.run(["price 8"], record="replay").cases
    assert case.error is not None
    assert case.error.type == "NotRecordedError"
    # An error of the model comes again, as what it was.
    desk.run(["out"], record="record")
    with desk.broken("answer"):
        (case,) = desk.run(["out"], record="replay").cases
    assert case.error is not None
    assert (case.error.type, case.error.message) == ("OutError", "the model is out")


def _conversations(seed: int, number: int) -> list[list[Any]]:
    """Random messages of cases; what the desk makes of one is random, too."""
    choices = random.Random(seed)
    further: list[list[Any]] = [["remove a", _answering(choices.random() < 0.5)], ["fail"], ["hello"], [], []]
    conversations: list[list[Any]] = []
    for case in range(number):
        turns: list[Any] = [f"plan {seed}-{case}-{turn}" for turn in range(choices.choice([1, 2, 2, 3]))]
        at = choices.randrange(len(turns) + 1)
        turns[at:at] = choices.choice(further)
        # At first: google-adk tells the next agent results as Python has them, such as `Order(number=7)`.
        conversations.append(["transfer", *turns] if choices.random() < 0.1 else turns)
    return conversations


def _happened(ran: Any) -> dict[str, Any]:
    """By case: its status, its state and its conversation, in which results of calls side by side come in any
    order. A turn that ended in an error is left out: which of the calls beside it came first is chance. So is
    what a stubbed tool did inside."""
    happened = {}
    for number, case in enumerate(ran.cases):
        ran.events = [
            event
            for event in ran.events
            if event.turn is not None and event.kind != "error" and not event.data.get("nested")
        ]
        (repeat,) = case.repeats
        # The ids of calls that wait stand in requests to confirm them.
        turns = [
            sorted(re.sub(r"'id': '[^']+'", "", repr(event)) for event in turn)
            for turn in ran.talk(number).told()
        ]
        complete = turns[: len(turns) - (case.error is not None)]
        happened[case.eval_id] = complete, repeat.final_state, repeat.status
    return happened


def test_conversations(desk: Desk, thorough: bool) -> None:
    """A replay of the unchanged agent is the recorded conversation, without a model and a tool."""
    if cell("adk" if desk.kind == "old_adk" else desk.kind, "replay") == NO:
        return
    seed = random.randrange(10**9) if thorough else 7
    cases = [["hello"], *_conversations(seed, 60 if thorough else 8)]
    recorded = desk.run(*cases, record="record", tools="record")
    with desk.broken("answer", "made", "token", "tallied"):
        replayed = desk.run(*cases, record="replay", tools="stub")
    happened = _happened(recorded)
    assert {name: case for name, case in _happened(replayed).items() if case != happened[name]} == {}, seed
    assert all(event.data.get("replayed") for event in replayed.of("model_request"))
    # No answer is known any more once the agent asks something else.
    for old, new in CHANGES if thorough else ():
        with desk.edited(old, new):
            ran = desk.run(*cases, record="replay", tools="stub")
        assert {case.error and case.error.type for case in ran.cases} == {"NotRecordedError"}, (seed, new)


CHANGES = [("Be short.", "Be long."), ("Notes an item.", "Notes two."), ('"rules"', '"rules-2"')]


def test_stubs(desk: Desk, can: str) -> None:
    if can == NO:
        (case,) = desk.run(["hello"], tools="stub").cases
        assert case.error is not None
        assert "evaltui cannot replay or stub them. Run it with --record off" in case.error.message
        return
    recorded = desk.run(["price 7"], record="record", tools="record")
    with desk.broken("priced"):
        stubbed = desk.run(["price 7"], record="replay", tools="stub")
    assert _without_ids(desk, stubbed) == _without_ids(desk, recorded)
    assert [event.data.get("stubbed") for event in stubbed.of("tool_result")] == ["recording"]
    assert stubbed.of("tool_result")[0].duration is not None


def test_stubbed_state(desk: Desk, can: str) -> None:
    if can == NO:
        return
    desk.run(["note milk"], record="record", tools="record")
    stubbed = desk.run(["note milk"], record="replay", tools="stub")
    assert [event.data.get("stubbed") for event in stubbed.of("tool_result")] == ["recording"]
    assert [event.data["delta"] for event in stubbed.of("state")] == [{"noted": "milk"}]


def test_limits(desk: Desk, can: str) -> None:
    ran = desk.run(["busy"], limits={"rules": {"rpm": 600}})
    (case,) = ran.cases
    if can == NO:
        assert not case.repeats[0].throttled
        return
    assert (case.error, ran.talk().texts()[-1]) == (None, "message 1")
    assert case.repeats[0].throttled > 0


PRICE = [("price", {"order": 7})]
MEET = [("meet", {"name": "a"}), ("meet", {"name": "b"})]
MISSED = {"another number": (1, 2), "tool response changed": (0, 1)}
NOTICED = {
    "call dropped": 4,
    "call repeated": 4,
    "calls swapped": 1,
    "another tool": 4,
    "argument changed": 4,
    "argument dropped": 4,
    "argument added": 4,
    "argument of another type": 4,
    "answer emptied": 4,
    "answer cut": 1,
}


def test_gaps(desk: Desk, can: str) -> None:
    """The same changes are made and noticed, whatever the agent is made with."""
    report = desk.gaps(
        {
            "price": [("price 7", PRICE, "results: 7.5"), ("hello", [], "message 2")],
            "meet": [("meet a b", MEET, "results: met a, met b")],
            "note": [("note 3", [("note", {"item": "3"})], "results: done")],
        }
    )
    made = {
        row["kind"]: (row["noticed"], row["changes"]) for row in report["kinds"] if row["subject"] != "agents"
    }
    assert made == {kind: (number, number) for kind, number in NOTICED.items()} | MISSED
    tools = {cell["name"]: cell["reached"] for cell in report["coverage"] if cell["kind"] == "tool"}
    assert [tools[name] for name in ("price", "meet", "note")] == [1, 1, 1]
    assert ("fail" in tools) == (can == YES)
    assert tools.get("fail", 0) == 0
    reasons = {item["reason"] for item in report["not_counted"]}
    assert ("tools not declared: coverage has those that were called or expected" in reasons) == (can == NO)
    # Transfers are calls of a tool of its own elsewhere.
    transfers = {cell["name"] for cell in report["coverage"] if cell["kind"] == "transfer"}
    assert transfers == ({"writer"} if desk.kind in ("adk", "old_adk", "api") else set())
