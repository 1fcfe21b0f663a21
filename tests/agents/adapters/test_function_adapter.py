import asyncio
import base64
import contextvars
import functools
import json
import threading
from datetime import date

import pytest

from evaltui.agents.adapters.base import (
    AgentLoadError,
    Reporter,
    SessionSpec,
    current_reporter,
    recording,
)
from evaltui.agents.adapters.function import FunctionAdapter
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.eval_set import intermediate_texts, tool_calls, tool_responses
from evaltui.events import Event, text, tool_call, tool_result, transfer


class Conversation:
    """An agent that is talked to, and everything that it reported."""

    @classmethod
    async def with_agent(cls, function, **spec):
        self = cls()
        self.events = []
        self.reporter = Reporter(self.events.append)
        self.session = await FunctionAdapter(function, "bot").new_session(SessionSpec(**spec), self.reporter)
        return self

    async def say(self, *parts):
        self.reporter.turn = 0 if self.reporter.turn is None else self.reporter.turn + 1
        content = {"parts": [part if isinstance(part, dict) else {"text": part} for part in parts]}
        self.reporter.event("user", content)
        with recording(self.reporter):
            await asyncio.wait_for(self.session.send(content), 20)

    @property
    def invocations(self):
        for event in self.events:
            json.dumps(event.to_json(), allow_nan=False)
        return invocations_from_events(self.events)

    @property
    def answers(self):
        return [
            invocation.final_response and "".join(part.text for part in invocation.final_response.parts)
            for invocation in self.invocations
        ]

    @property
    def partial(self):
        return [e.content["parts"][0]["text"] for e in self.events if e.data.get("partial")]


def sync_agent(message, session):
    return f"You said {message}"


async def async_agent(message, session):
    await asyncio.sleep(0)
    return f"You said {message}"


def generator_agent(message, session):
    yield "You "
    yield f"said {message}"


async def async_generator_agent(message, session):
    yield "You "
    await asyncio.sleep(0)
    yield f"said {message}"


class Callable:
    def __call__(self, message, session):
        return f"You said {message}"


class AsyncCallable:
    async def __call__(self, message, session):
        return f"You said {message}"


def with_more(prefix, message, session):
    return f"{prefix} said {message}"


AGENTS = [
    sync_agent,
    async_agent,
    generator_agent,
    async_generator_agent,
    Callable(),
    AsyncCallable(),
    functools.partial(with_more, "You"),
    lambda message, session: async_agent(message, session),
]


@pytest.mark.parametrize("agent", AGENTS)
async def test_every_kind_of_callable(agent):
    adapter = FunctionAdapter(agent, "bot")
    info = await adapter.open()
    assert (info.name, info.framework, info.tools) == ("bot", "function", ())
    chat = await Conversation.with_agent(agent)
    await chat.say("hello")
    await chat.say("bye")
    assert chat.answers == ["You said hello", "You said bye"]
    await chat.session.close()
    await adapter.close()


@pytest.mark.parametrize("agent", [generator_agent, async_generator_agent])
async def test_pieces_are_shown_as_they_come_and_recorded_as_one_text(agent):
    chat = await Conversation.with_agent(agent)
    await chat.say("x")
    assert chat.partial == ["You ", "said x"]
    (recorded,) = [event for event in chat.events if "step" in event.data]
    assert recorded.content == {"role": "model", "parts": [{"text": "You said x"}]}


async def test_ids_that_are_given_are_kept():
    def agent(message, session):
        yield tool_call("f", id="one")
        yield tool_call("f")
        yield tool_result("f", 1)
        yield tool_result("g", 2)
        yield tool_result("f", 3, id="call-1")

    chat = await Conversation.with_agent(agent)
    await chat.say("x")
    (invocation,) = chat.invocations
    assert [call.id for call in tool_calls(invocation.intermediate_data)] == ["one", "call-1"]
    assert [r.id for r in tool_responses(invocation.intermediate_data)] == ["one", None, "call-1"]


async def test_text_events_stand_alone_and_may_have_an_author():
    def agent(message, session):
        yield text("First.", agent="helper")
        yield transfer("writer")
        yield text("Last.", agent="writer")

    chat = await Conversation.with_agent(agent)
    await chat.say("x")
    assert intermediate_texts(chat.invocations[0].intermediate_data) == [("helper", "First.")]
    assert chat.answers == ["Last."]
    (moved,) = [event for event in chat.events if event.kind == "transfer"]
    assert moved.data["to"] == "writer"


@pytest.mark.parametrize(("returned", "answer"), [(text("hi"), "hi"), (None, None)], ids=["event", "nothing"])
async def test_an_event_or_nothing_may_be_returned(returned, answer):
    chat = await Conversation.with_agent(lambda message, session: returned)
    await chat.say("x")
    assert chat.answers == [answer]


@pytest.mark.parametrize("value", [5, ["a"], b"text", {"text": "a"}])
@pytest.mark.parametrize("how", ["returned", "yielded"])
async def test_anything_else_is_refused(value, how):
    def agent(message, session):
        return value

    def generator(message, session):
        yield value

    chat = await Conversation.with_agent(agent if how == "returned" else generator)
    with pytest.raises(
        TypeError, match=f"bot returned or yielded a {type(value).__name__} .* str or the values"
    ):
        await chat.say("x")


async def test_events_of_other_kinds_are_refused():
    chat = await Conversation.with_agent(lambda message, session: Event("user"))
    with pytest.raises(ValueError, match=r"kind 'user'.* text, tool_call, tool_result, transfer"):
        await chat.say("x")


async def test_arguments_that_json_cannot_hold_are_named():
    chat = await Conversation.with_agent(lambda message, session: tool_call("f", {"day": date(2026, 1, 1)}))
    with pytest.raises(TypeError, match=r"tool_call\.parts\[0\]\.function_call\.args\.day is a date"):
        await chat.say("x")


async def test_state_is_kept_and_its_changes_are_reported_where_they_happen():
    def agent(message, session):
        session.state["count"] = session.state.get("count", 0) + 1
        yield "a"
        session.state["list"].append(message)
        del session.state["old"]

    state = {"old": True, "list": []}
    chat = await Conversation.with_agent(agent, state=state)
    await chat.say("x")
    assert await chat.session.state() == {"count": 1, "list": ["x"]}
    (change,) = [event for event in chat.events if event.kind == "state"]
    assert change.data["delta"] == {"count": 1, "list": ["x"], "old": None}
    assert state == {"old": True, "list": []}


async def test_a_change_of_state_without_a_word_is_reported():
    def agent(message, session):
        session.state["x"] = message

    chat = await Conversation.with_agent(agent)
    await chat.say("1")
    await chat.say("1")
    await chat.say("2")
    assert [event.data["delta"] for event in chat.events if event.kind == "state"] == [{"x": "1"}, {"x": "2"}]
    assert chat.answers == [None, None, None]


async def test_state_that_json_cannot_hold_is_named():
    def agent(message, session):
        session.state["when"] = date(2026, 1, 1)
        return "ok"

    chat = await Conversation.with_agent(agent)
    with pytest.raises(TypeError, match=r"state\.when is a date"):
        await chat.say("x")
    with pytest.raises(TypeError, match=r"state\.when is a date"):
        await chat.session.state()


async def test_the_session_has_names_content_and_history():
    seen = []

    def agent(message, session):
        seen.append((message, session.content, session.history))
        assert (session.id, session.user_id, session.app_name) == ("s", "u", "a")
        yield tool_call("f", {"n": 1})
        yield tool_result("f", 2)
        yield "done"

    image = {"inline_data": {"mime_type": "image/png", "data": base64.b64encode(b"png").decode()}}
    chat = await Conversation.with_agent(agent, app_name="a", user_id="u", session_id="s")
    await chat.say("look", image, "here")
    await chat.say("again")

    (message, content, history), (_, _, later) = seen
    assert message == "look\nhere"
    assert content.role == "user"
    assert content.parts[1].inline_data.data == b"png"
    assert history == []
    assert [entry.role for entry in later] == ["user", "model", "user", "model"]
    assert later[0] == content
    assert later[1].parts[0].function_call.args == {"n": 1}
    assert later[2].parts[0].function_response.response == {"result": 2}
    assert later[3].parts[0].text == "done"


@pytest.mark.parametrize("kind", ["function", "generator"])
async def test_a_blocking_agent_does_not_hold_up_others(kind):
    released = threading.Event()

    def waits(message, session):
        return "released" if released.wait(10) else "timed out"

    def waits_between(message, session):
        yield "released" if released.wait(10) else "timed out"

    async def releases(message, session):
        released.set()
        return "ok"

    one = await Conversation.with_agent(waits if kind == "function" else waits_between)
    two = await Conversation.with_agent(releases)
    await asyncio.gather(one.say("x"), two.say("x"))
    assert one.answers == ["released"]


async def test_a_generator_stays_in_the_thread_of_its_conversation_and_in_one_context():
    variable = contextvars.ContextVar("variable", default="unset")
    threads = []

    def agent(message, session):
        variable.set("set")
        threads.append(threading.current_thread().name)
        yield "a"
        threads.append(threading.current_thread().name)
        yield str((variable.get(), current_reporter.get() is not None))

    chat = await Conversation.with_agent(agent)
    await chat.say("x")
    assert chat.answers == ["a('set', True)"]
    assert threads == ["bot_0", "bot_0"]
    assert current_reporter.get() is None


@pytest.mark.parametrize("error", [KeyError("boiler"), StopIteration("boiler")])
async def test_what_the_agent_raises_comes_out(error):
    def agent(message, session):
        raise error

    chat = await Conversation.with_agent(agent)
    with pytest.raises((KeyError, RuntimeError)) as raised:
        await chat.say("x")
    assert error in (raised.value, raised.value.__cause__)


async def test_an_error_half_way_keeps_what_was_reported_and_closes_the_generator():
    closed = threading.Event()

    def agent(message, session):
        try:
            yield tool_call("f")
            yield 5
        finally:
            closed.set()

    chat = await Conversation.with_agent(agent)
    with pytest.raises(TypeError):
        await chat.say("x")
    assert [event.kind for event in chat.events] == ["user", "tool_call"]
    assert await asyncio.to_thread(closed.wait, 10)


async def test_an_async_generator_is_closed_when_the_turn_is_cancelled():
    started, closed = asyncio.Event(), asyncio.Event()

    async def agent(message, session):
        try:
            yield "a"
            started.set()
            await asyncio.sleep(60)
        finally:
            closed.set()

    chat = await Conversation.with_agent(agent)
    chat.reporter.turn = 0
    turn = asyncio.create_task(chat.session.send({"parts": [{"text": "x"}]}))
    await started.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert closed.is_set()


@pytest.mark.parametrize("function", [lambda: "x", lambda message: "x", lambda message, session, more: "x"])
async def test_a_function_of_another_shape_is_refused_when_opened(function):
    with pytest.raises(AgentLoadError, match=r"bot cannot be called as bot\(message, session\)"):
        await FunctionAdapter(function, "bot").open()
