"""Recordings of native agents: a Gemini model on this machine, tools with effects, real child processes."""

from __future__ import annotations

import asyncio
import json
import textwrap

import pytest
from eval_data import make_case, write_eval_set
from gemini_server import KEY, Answer, Drop, Hold, calls, chunk, fails, says
from recorded_runs import CONFIG, NO_NETWORK, recorded_file, run, turn, write_set

from evaltui import EvalConfig, EvalSet, evaluate

TOOLS = """
    from pathlib import Path

    def area(width: int, height: int) -> int:
        '''The area of a rectangle.'''
        with Path(__file__).with_name("counter.txt").open("a") as counter:
            counter.write("x")
        return width * height

    def remember(note: str, context: "ToolContext") -> str:
        '''Keep a note.'''
        context.state["note"] = note
        context.state.pop("old", None)
        return "kept"
"""
AGENT = (
    textwrap.dedent(NO_NETWORK)
    + "\nfrom evaltui import Agent, ToolContext\n"
    + textwrap.dedent(TOOLS)
    + """
root_agent = Agent(
    name="geometer", model="gemini-test", instruction="INSTRUCTION", tools=[area, remember]
)
"""
)
ASKED = {"width": 2, "height": 3}
CASE = [turn("2 by 3?", "It is 6.", ("area", ASKED)), turn("Thanks", "You are welcome.")]


def respond(request):
    if request.results:
        return says("It is ", f"{request.results[0]['response']['result']}.")
    if "by" not in request.said:
        return says("You are welcome.")
    width, height = request.said.rstrip("?").split(" by ")
    return calls("area", {"width": int(width), "height": int(height)})


@pytest.fixture
def agent(write_agent):
    return write_agent(AGENT.replace("INSTRUCTION", "Measure."))


def counted(agent):
    counter = agent / "counter.txt"
    return len(counter.read_text()) if counter.exists() else 0


@pytest.fixture
def offline(monkeypatch):
    """From now on neither a key, nor an address, nor a network."""

    def cut():
        for name in ("GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("NO_NETWORK", "1")

    return cut


async def test_what_was_recorded_is_replayed_without_a_network_and_gives_the_same_verdicts(
    agent, gemini, offline
):
    gemini.respond = respond
    path = write_set(agent, {"one": CASE, "two": [turn("4 by 5?", "It is 21.", ("area", ASKED))]})

    first = await run(path, "auto", runs=2, parallel=4)
    assert first.statuses == ["PASSED", "FAILED"]
    assert (first.calls.live, first.calls.replayed) == (10, 0)
    assert counted(agent) == 4
    text = recorded_file(path).read_text()

    again = await run(path, "auto", runs=2)
    assert (again.calls.live, again.calls.replayed) == (0, 10)
    assert again.verdicts() == first.verdicts()
    assert counted(agent) == 8

    offline()
    for _ in range(2):
        played = await run(path, "replay", runs=2)
        assert played.verdicts() == first.verdicts()
        assert (played.calls.live, played.calls.replayed, played.calls.stubbed_tools) == (0, 10, 4)
        assert played.said() == first.said()
    assert counted(agent) == 8
    assert len(gemini.requests) == 10
    assert recorded_file(path).read_text() == text
    assert all(event.data.get("replayed") for event in played.of_kind("model_response"))
    assert {event.data["stubbed"] for event in played.of_kind("tool_result")} == {"recording"}


async def test_record_anew_leaves_no_difference_where_nothing_changed(agent, gemini):
    gemini.respond = respond
    path = write_set(agent, {f"case{n}": [turn(f"{n} by 2?", "", ("area", ASKED))] for n in range(6)})
    await run(path, "record", parallel=3)
    before = recorded_file(path).stat()
    again = await run(path, "record", parallel=4)
    assert again.calls.live == 12
    after = recorded_file(path).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


async def test_a_changed_prompt_is_asked_again_in_auto_and_named_in_a_replay(agent, gemini):
    gemini.respond = respond
    path = write_set(agent, {"one": CASE})
    await run(path, "auto")
    (agent / "agent.py").write_text(AGENT.replace("INSTRUCTION", "Measure well."))

    missed = await run(path, "replay")
    (case,) = missed.cases
    assert (case.status, case.error.type) == ("ERROR", "NotRecordedError")
    assert case.error.message == (
        "the model call of geometer in turn 1 is not in recordings/shapes.jsonl: the system instruction is "
        '"Measure well.", was "Measure.". --record auto requests the missing ones'
    )
    assert len(gemini.requests) == 3
    assert str(missed.calls).startswith("0 live model calls, 0 replayed")

    await run(path, "auto")
    assert len(gemini.requests) == 6
    # Of the old prompt nothing is left.
    assert '"Measure."' not in recorded_file(path).read_text()
    assert (await run(path, "replay")).statuses == ["PASSED"]


async def test_every_run_of_a_case_is_a_run_of_its_own(agent, gemini):
    path = write_set(agent, {"one": [turn("hi", "one")]})
    gemini.script(says("one"), says("two"), says("one"))
    first = await run(path, "auto", runs=3, parallel=1)
    again = await run(path, "replay", runs=3)
    assert [repeat.status for repeat in first.cases[0].repeats] == ["PASSED", "FAILED", "PASSED"]
    assert again.verdicts() == first.verdicts()
    assert again.statuses == ["FLAKY"]

    more = await run(path, "replay", runs=4)
    assert "no model call recorded for this repeat" in more.cases[0].repeats[3].error.message

    gemini.script(says("four"))
    await run(path, "auto", runs=4)
    assert gemini.unused == 0
    # Fewer runs leave the others as they were.
    text = recorded_file(path).read_text()
    await run(path, "auto", runs=1)
    assert recorded_file(path).read_text() == text


async def test_a_model_that_failed_is_asked_again_in_auto(agent, gemini):
    path = write_set(agent, {"one": [turn("hi", "one")]})
    blocked = Answer([{"candidates": [{"finishReason": "SAFETY"}]}])
    gemini.script(blocked, says("one"))
    assert (await run(path, "auto")).cases[0].error.type == "SAFETY"
    assert (await run(path, "replay")).cases[0].error.type == "SAFETY"
    assert (await run(path, "auto")).statuses == ["PASSED"]
    assert (await run(path, "replay")).statuses == ["PASSED"]


async def test_a_recorded_call_without_a_response_is_named(agent, gemini):
    path = write_set(agent, {"one": [turn("hi", "one")]})
    gemini.script(says("one"))
    await run(path, "auto")
    lines = [json.loads(line) for line in recorded_file(path).read_text().splitlines()]
    lines = [line | ({"responses": []} if line["kind"] == "model" else {}) for line in lines]
    recorded_file(path).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (case,) = (await run(path, "replay")).cases
    assert (case.status, case.error.type) == ("ERROR", "NotRecordedError")
    assert "the recorded model call has no response" in case.error.message


async def test_what_the_service_refused_is_refused_again_in_a_replay_and_asked_again_in_auto(agent, gemini):
    path = write_set(agent, {"one": [turn("hi", "hello")]})
    gemini.script(fails(400, "no such thing"))
    first = await run(path, "record")
    assert first.statuses == ["ERROR"]
    played = await run(path, "replay")
    assert played.verdicts() == first.verdicts()
    assert len(gemini.requests) == 1
    gemini.script(says("hello"))
    assert (await run(path, "auto")).statuses == ["PASSED"]
    # An answer is worth more than the next failure.
    gemini.script(fails(400, "out of order"))
    assert (await run(path, "record")).statuses == ["ERROR"]
    assert (await run(path, "replay")).statuses == ["PASSED"]


async def test_that_a_key_is_missing_is_no_answer_of_a_model(agent, gemini, monkeypatch):
    path = write_set(agent, {"one": [turn("hi", "hello")]})
    monkeypatch.delenv("GOOGLE_API_KEY")
    assert (await run(path, "record")).statuses == ["ERROR"]
    assert not recorded_file(path).exists()


async def test_attempts_that_failed_are_not_recorded_and_pieces_of_them_neither(agent, gemini):
    path = write_set(agent, {"one": [turn("hi", "It is 6.")]})
    gemini.script(Answer([chunk({"text": "It"}), Drop()]), fails(503, retry_delay="0s"), says("It is ", "6."))
    await run(path, "record")
    assert (await run(path, "replay")).said() == ["It is ", "6."]


async def test_no_key_is_in_a_recording(agent, gemini):
    path = write_set(agent, {"one": [turn(f"my key is {KEY}", "thanks")]})
    gemini.script(says(f"thanks for {KEY}"))
    await run(path, "record")
    text = recorded_file(path).read_text()
    assert KEY not in text
    assert "my key is <GOOGLE_API_KEY>" in text
    played = await run(path, "replay")
    (actual,) = played.cases[0].repeats[0].actual
    assert actual.final_response.parts[0].text == "thanks for <GOOGLE_API_KEY>"


STUBBED = [
    turn("2 by 3?", "It is 6.", ("area", ASKED), responses=[("area", {"result": 6})]),
]


async def test_stubbed_tools_have_no_effect_and_an_unknown_call_is_an_error(agent, gemini):
    gemini.respond = respond
    path = write_set(agent, {"one": STUBBED})
    await run(path, "off")
    assert counted(agent) == 1

    for _ in range(3):
        ran = await run(path, "off", tools="stub")
        assert ran.statuses == ["PASSED"]
        assert [event.data["stubbed"] for event in ran.of_kind("tool_result")] == ["case"]
    assert counted(agent) == 1
    assert not recorded_file(path).exists()

    gemini.respond = lambda request: says("?") if request.results else calls("area", ASKED | {"width": 4})
    (case,) = (await run(path, "off", tools="stub")).cases
    assert case.status == "ERROR"
    assert case.error.message.startswith(
        'tool area was called with {"width": 4, "height": 3} and is stubbed, but the call is in neither the '
        "case's own tool responses nor recordings/shapes.jsonl"
    )
    assert counted(agent) == 1

    await run(path, "off", tools="live")
    assert counted(agent) == 2


async def test_tools_may_be_recorded_while_models_are_asked_and_single_ones_treated_otherwise(agent, gemini):
    gemini.respond = respond
    path = write_set(agent, {"one": CASE})
    await run(path, "off", tools="record")
    kinds = [json.loads(line)["kind"] for line in recorded_file(path).read_text().splitlines()]
    assert kinds == ["tool"]
    config = EvalConfig.model_validate(CONFIG.model_dump() | {"evaltui": {"tools": {"area": "stub"}}})
    ran = await run(path, "off", config)
    assert (ran.calls.live, ran.calls.stubbed_tools) == (3, 1)
    assert counted(agent) == 1


async def test_a_scripted_model_is_neither_recorded_nor_replayed(write_agent):
    source = """
        from evaltui import Agent, Rule, ScriptedModel
        root_agent = Agent(name="a", model=ScriptedModel([Rule(user="", reply="{reply}")]))
    """
    agent = write_agent(source.format(reply="one"))
    path = write_set(agent, {"one": [turn("hi", "one")]})
    assert (await run(path, "auto")).statuses == ["PASSED"]
    assert not recorded_file(path).exists()
    write_agent(source.format(reply="two"))
    assert (await run(path, "replay")).statuses == ["FAILED"]


async def test_of_a_callable_nothing_is_recorded_and_it_is_said(write_agent):
    agent = write_agent("def root_agent(message, session):\n    return message")
    path = write_set(agent, {"one": [turn("hi", "hi")]})
    ran = await run(path, "auto")
    assert ran.statuses == ["PASSED"]
    assert ran.notes == [
        "nothing of the agent is recorded: the agent is a callable and calls its models and tools itself"
    ]
    (case,) = (await run(path, "replay")).cases
    assert case.error.message.startswith("the agent is a callable")


async def test_recordings_of_cases_that_are_gone_stay_and_are_told(agent, gemini):
    gemini.respond = respond
    path = write_set(agent, {"one": CASE, "two": CASE})
    await run(path, "auto")
    text = recorded_file(path).read_text()
    write_set(agent, {"one": CASE})
    ran = await run(path, "auto")
    assert ran.calls.live == 0
    assert recorded_file(path).read_text() == text
    assert ran.notes == [f"{recorded_file(path)} has recordings of unknown cases: two"]


async def test_a_set_that_is_no_file_has_no_place_for_recordings(agent):
    eval_set = EvalSet.model_validate(
        {"eval_set_id": "x", "eval_cases": [{"eval_id": "a", "conversation": CASE}]}
    )
    with pytest.raises(ValueError, match="Give its path"):
        await evaluate(agent, eval_set, record="auto")


async def test_what_was_answered_before_a_run_was_cancelled_is_kept(agent, gemini):
    hold = Hold()
    gemini.script(calls("area", ASKED), says("It is 6."), Answer([hold, chunk({"text": "late"})]))
    path = write_set(agent, {"one": CASE})
    task = asyncio.create_task(run(path, "auto"))
    await asyncio.to_thread(hold.reached.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    hold.release()
    gemini.respond = respond
    ran = await run(path, "auto")
    assert (ran.calls.live, ran.calls.replayed) == (1, 2)
    assert ran.statuses == ["PASSED"]


SIDE_BY_SIDE = """
import asyncio
from evaltui import Agent, ToolContext

added = asyncio.Event()

async def add(item: str, context: ToolContext) -> str:
    '''Adds an item to the cart; tea waits for what comes after it.'''
    if item == "tea":
        await added.wait()
    context.state["cart"] = [*context.state.get("cart", []), item]
    context.state["last"] = item
    added.set()
    return "added"

root_agent = Agent(name="shop", model="gemini-test", instruction="Add.", tools=[add])
"""


async def test_calls_side_by_side_change_the_state_in_a_replay_as_they_ended(write_agent, gemini):
    parts = [{"functionCall": {"name": "add", "args": {"item": item}}} for item in ("tea", "milk")]
    gemini.respond = lambda request: (
        says("Done.") if request.results else Answer([chunk(*parts, finishReason="STOP")])
    )
    made = turn("Add both.", "Done.", ("add", {"item": "tea"}), ("add", {"item": "milk"}))
    start = {"app_name": "a", "user_id": "u", "state": {"last": "tea"}}
    end = {"cart": ["milk", "tea"], "last": "tea"}
    case = make_case("one", made, session_input=start, final_session_state=end)
    path = write_eval_set(write_agent(SIDE_BY_SIDE), "shapes", case)
    for mode in ("record", "replay", "auto"):
        ran = await run(path, mode)
        assert ran.statuses == ["PASSED"], (mode, ran.cases[0].state)
