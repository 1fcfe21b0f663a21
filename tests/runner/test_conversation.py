"""Conversations with agents in real child processes: they go on after whatever happens to a turn."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import psutil
import pytest
from waiting import until

from evaltui.agents.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.conversation.replay import past_of_turns
from evaltui.project.agent_address import AgentAddress
from evaltui.runner.conversation import Conversation
from evaltui.runner.starting import HostSettings


class Talk:
    """A conversation as a chat keeps it: the events of the turns that count, a new session after others."""

    def __init__(self, conversation: Conversation, session: dict[str, Any]) -> None:
        self.conversation = conversation
        self.session = session
        self.turns: list[list[Any]] = []
        self.failed: list[Any] = []
        self.states: list[dict[str, Any]] = []
        self.heard = asyncio.Event()

    async def open(self) -> dict[str, Any]:
        return await self.conversation.open(self.session, past_of_turns(self.turns))

    async def say(self, text: str) -> str | None:
        """The answer to one message."""
        events: list[Any] = []

        def take(event):
            events.append(event)
            self.heard.set()

        content = {"role": "user", "parts": [{"text": text}]}
        try:
            self.states.append(await self.conversation.say(len(self.turns), content, take))
        except BaseException:
            self.failed = events
            raise
        self.turns.append(events)
        (invocation,) = invocations_from_events(events)
        answer = invocation.final_response
        return "".join(part.text or "" for part in answer.parts or []) if answer else None


@pytest.fixture
def talk_to(write_agent):
    lines: list[tuple[str, str]] = []

    @asynccontextmanager
    async def start(source, session=None, timeout=20.0, agent_name=None):
        folder = write_agent(source)
        settings = HostSettings(AgentAddress(folder, agent_name), timeout)
        conversation = Conversation(settings, lambda source, line: lines.append((source, line)))
        talk = Talk(conversation, session or {})
        talk.lines = lines
        talk.folder = folder
        try:
            await talk.open()
            yield talk
        finally:
            await conversation.close()

    return start


FUNCTION = """
    import asyncio, os, time
    from evaltui.events import tool_call, tool_result

    async def root_agent(message, session):
        if message == "fail":
            session.state["spoilt"] = True
            yield "before"
            raise RuntimeError("no luck")
        if message == "exit":
            os._exit(7)
        if message == "wait":
            session.state["spoilt"] = True
            yield "waiting"
            await asyncio.sleep(1000)
        if message == "block":
            yield "blocking"
            time.sleep(1000)
        if message == "endless":
            while True:
                yield "again" * 1_000_000
        session.state["n"] = session.state.get("n", 0) + 1
        yield tool_call("count", {"n": session.state["n"]})
        yield tool_result("count", len(session.history))
        spoilt = " spoilt" if session.state.get("spoilt") else ""
        yield f"{message} {session.state['n']} {len(session.history)} {os.getpid()}{spoilt}"
"""


def without_pid(answers):
    return [answer.rsplit(" ", 1)[0] for answer in answers]


async def test_turns_are_told_as_they_happen_and_the_state_is_kept_between_them(talk_to):
    async with talk_to(FUNCTION, {"state": {"n": 5}}) as talk:
        first, second = await talk.say("one"), await talk.say("two")
    assert [answer.split()[:2] for answer in (first, second)] == [["one", "6"], ["two", "7"]]
    assert [state["n"] for state in talk.states] == [6, 7]
    assert talk.conversation.info["framework"] == "function"
    for number, events in enumerate(talk.turns):
        assert events[0].kind == "user"
        assert {event.turn for event in events} == {number}
        assert {"tool_call", "tool_result", "state", "text"} <= {event.kind for event in events}
    numbers = [event.seq for events in talk.turns for event in events]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_what_is_said_after_a_failure_or_a_death_is_what_would_have_been_said_without(talk_to):
    async with talk_to(FUNCTION, {"state": {"n": 5}}) as talk:
        whole = [await talk.say(word) for word in ("one", "two", "three")]
    async with talk_to(FUNCTION, {"state": {"n": 5}}) as talk:
        answers = [await talk.say("one")]
        with pytest.raises(RequestFailedError, match="no luck") as failure:
            await talk.say("fail")
        assert failure.value.error.where.startswith("agent.py:")
        assert talk.failed[0].kind == "user"
        assert await talk.open() == talk.states[-1]
        answers.append(await talk.say("two"))
        with pytest.raises(HostLostError, match="exit code 7"):
            await talk.say("exit")
        assert await talk.open() == talk.states[-1]
        answers.append(await talk.say("three"))
    pids = [answer.split()[-1] for answer in answers]
    assert pids[0] == pids[1] != pids[2]
    assert without_pid(answers) == without_pid(whole)


@pytest.mark.parametrize("message", ["wait", "block"])
async def test_a_turn_is_cancelled_and_the_conversation_goes_on(talk_to, message):
    async with talk_to(FUNCTION) as talk:
        await talk.say("one")
        talk.heard.clear()
        saying = asyncio.create_task(talk.say(message))
        await talk.heard.wait()
        saying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saying
        assert talk.failed[0].content["parts"] == [{"text": message}]
        assert await talk.open() == {"n": 1}
        assert (await talk.say("two")).startswith("two 2 4 ")


async def test_a_turn_that_takes_too_long_ends_and_says_where(talk_to):
    async with talk_to(FUNCTION, timeout=1.0) as talk:
        with pytest.raises(RequestFailedError, match="no response within 1 s") as late:
            await talk.say("wait")
        assert late.value.error.where.startswith("agent.py:")
        await talk.open()
        assert (await talk.say("one")).startswith("one 1 0 ")


async def test_an_agent_that_never_stops_talking_is_stopped_and_each_turn_counts_for_itself(talk_to):
    async with talk_to(FUNCTION) as talk:
        for _ in range(2):
            with pytest.raises(RequestFailedError, match="endless loop"):
                await talk.say("endless")
            await talk.open()
        assert (await talk.say("one")).startswith("one 1 0 ")


async def test_a_host_that_dies_between_turns_is_replaced(talk_to):
    async with talk_to(FUNCTION) as talk:
        pid = int((await talk.say("one")).split()[-1])
        psutil.Process(pid).kill()
        with pytest.raises(HostLostError):
            await talk.say("lost")
        await talk.open()
        answer = await talk.say("two")
        assert answer.startswith("two 2 4 ")
        assert int(answer.split()[-1]) != pid


async def test_opening_again_begins_anew_in_the_same_host(talk_to):
    async with talk_to(FUNCTION) as talk:
        first = await talk.say("one")
        talk.turns, talk.session = [], {"state": {"n": 10}, "user_id": "ann"}
        assert await talk.open() == {"n": 10}
        again = await talk.say("one")
        assert again.split()[:3] == ["one", "11", "0"]
        assert again.split()[-1] == first.split()[-1]


async def test_after_it_was_closed_nothing_runs_and_it_can_be_opened_again(talk_to):
    async with talk_to(FUNCTION) as talk:
        host = psutil.Process(int((await talk.say("one")).split()[-1]))
        await talk.conversation.close()
        assert not host.is_running() or host.status() == psutil.STATUS_ZOMBIE
        with pytest.raises(RuntimeError, match="no open conversation"):
            await talk.say("two")
        await talk.conversation.close()
        await talk.open()
        assert (await talk.say("two")).startswith("two 2 4 ")


async def test_broken_code_says_so_until_it_is_mended(talk_to):
    async with talk_to(FUNCTION) as talk:
        await talk.say("one")
        await talk.conversation.close()
        working = (talk.folder / "agent.py").read_text()
        (talk.folder / "agent.py").write_text("import no_such_module\n")
        for _ in range(2):
            with pytest.raises(AgentBrokenError, match="no_such_module"):
                await talk.open()
        (talk.folder / "agent.py").write_text(working.replace("{message} ", "new {message} "))
        await talk.open()
        assert (await talk.say("two")).startswith("new two 2 4 ")


async def test_whoever_stops_waiting_for_the_import_does_not_end_it(talk_to, tmp_path):
    import_count = tmp_path / "imports"
    source = f"""
        import time
        from pathlib import Path
        with Path({str(import_count)!r}).open("a") as file:
            file.write("x")
        time.sleep(0.3)

        def root_agent(message, session):
            return message
    """
    async with talk_to(source) as talk:
        await talk.conversation.close()
        opening = asyncio.create_task(talk.open())
        await until(lambda: len(import_count.read_text()) == 2)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await talk.open()
        assert await talk.say("hi") == "hi"
    assert import_count.read_text() == "xx"


async def test_what_is_printed_between_turns_is_heard(talk_to):
    source = """
        import threading, time
        print("imported")

        def later():
            while not go.wait(0.01):
                pass
            print("later")

        go = threading.Event()

        def root_agent(message, session):
            threading.Thread(target=later, daemon=True).start()
            threading.Timer(0.05, go.set).start()
            return message
    """
    async with talk_to(source) as talk:
        await talk.say("hi")
        await until(lambda: ("stdout", "later") in talk.lines, lambda: str(talk.lines))
    assert talk.lines[0] == ("stdout", "imported")


async def test_a_state_that_cannot_be_told_fails_the_turn_alone(talk_to):
    source = """
        import threading

        def root_agent(message, session):
            if message == "lock":
                session.state["lock"] = threading.Lock()
            return message
    """
    async with talk_to(source) as talk:
        with pytest.raises(RequestFailedError, match=r"state\.lock is a lock"):
            await talk.say("lock")
        await talk.open()
        assert await talk.say("hi") == "hi"


def again(turn, number):
    """The same turn with steps of its own."""
    return [
        replace(event, data=event.data | {"step": f"{event.data['step']}-{number}"})
        if "step" in event.data
        else event
        for event in turn
    ]


async def test_a_past_of_200_turns_is_restored(talk_to):
    async with talk_to(FUNCTION) as talk:
        await talk.say("one")
        talk.turns = [again(talk.turns[0], number) for number in range(200)]
        await talk.open()
        assert int((await talk.say("two")).split()[-2]) >= 600


async def test_a_past_that_cannot_be_restored_is_an_error_of_opening_it(talk_to):
    source = """
        from evaltui import Agent, Rule, ScriptedModel
        root_agent = Agent("bot", model=ScriptedModel([Rule(user="", reply="well")]))
    """
    async with talk_to(source) as talk:
        await talk.say("one")
        past = past_of_turns(talk.turns)
        past[-1].content["parts"] = [{"no such part": 1}]
        with pytest.raises(RequestFailedError, match="no such part"):
            await talk.conversation.open({}, past)
        with pytest.raises(RuntimeError, match="no open conversation"):
            await talk.say("two")
        await talk.open()
