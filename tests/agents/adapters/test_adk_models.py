import pytest

pytest.importorskip("google.adk")
from adk_scripted import ScriptedLlm, call, chat, say
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types
from pydantic import BaseModel

from evaltui.agents.adapters import calls as adk_models
from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.agents.adapters.base import Reporter, recording

pytestmark = pytest.mark.adk


def agent(model, name="helper", **fields):
    model = ScriptedLlm(answers=model) if isinstance(model, dict) else model
    return LlmAgent(name=name, model=model, **fields)


def request(text="hi", **fields):
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return LlmRequest(contents=[content], config=types.GenerateContentConfig(), **fields)


def reporting():
    events = []
    return Reporter(events.append), events


async def test_changes_by_the_agent_s_own_callback_are_seen():
    def rewrite(callback_context, llm_request):
        llm_request.config.system_instruction = "Rewritten."
        llm_request.contents.append(types.Content(role="user", parts=[types.Part(text="and be brief")]))

    talk = await chat(AdkAdapter(agent({"anything": say("ok")}, before_model_callback=rewrite)), "hi")
    (asked,) = talk.of("model_request")
    assert asked.data["system_instruction"] == "Rewritten."
    assert asked.data["contents"][-1]["parts"] == [{"text": "and be brief"}]


async def test_a_callback_that_answers_leaves_no_request():
    class Cache(BasePlugin):
        async def before_model_callback(self, *, callback_context, llm_request):
            return say("from cache")

    app = App(name="app", root_agent=agent({"anything": say("live")}), plugins=[Cache("cache")])
    talk = await chat(AdkAdapter(app), "hi")
    assert talk.texts() == ["from cache"]
    assert not talk.of("model_request")


async def test_a_history_that_changed_is_told_from_the_change_on():
    def forget(callback_context, llm_request):
        del llm_request.contents[:-1]

    root = agent({"anything": say("ok")}, before_model_callback=forget)
    talk = await chat(AdkAdapter(root), "one", "two")
    second = talk.of("model_request")[1]
    assert (second.data["contents_before"], second.data["contents"][0]["parts"][0]["text"]) == (0, "two")


async def test_a_parent_s_method_is_not_counted_again():
    class Louder(ScriptedLlm):
        async def generate_content_async(self, llm_request, stream=False):
            async for response in super().generate_content_async(llm_request.model_copy(), stream):
                response.content.parts[0].text += "!"
                yield response

    class Loudest(Louder):
        async def generate_content_async(self, llm_request, stream=False):
            async for response in super().generate_content_async(llm_request, stream):
                yield response

    talk = await chat(AdkAdapter(agent(Loudest(answers={"anything": say("hey")}))), "hi")
    assert len(talk.of("model_request")) == len(talk.of("model_response")) == 1
    assert talk.of("model_response")[0].content["parts"][0]["text"] == "hey!"


async def test_a_parent_s_method_that_is_called_at_once_is_not_counted_again():
    class Shorter(ScriptedLlm):
        def generate_content_async(self, llm_request, stream=False):
            return super().generate_content_async(llm_request.model_copy(), stream)

    talk = await chat(AdkAdapter(agent(Shorter(answers={"anything": say("hey")}))), "hi")
    assert len(talk.of("model_request")) == len(talk.of("model_response")) == 1


async def test_a_model_that_fails_when_it_is_called_is_reported():
    class Unready(BaseLlm):
        def generate_content_async(self, llm_request, stream=False):
            raise RuntimeError("no key")

    reporter, events = reporting()
    with recording(reporter), pytest.raises(RuntimeError, match="no key"):
        async for _ in Unready(model="unready").generate_content_async(request()):
            pass
    assert [(event.kind, event.data.get("message")) for event in events] == [
        ("model_request", None),
        ("error", "no key"),
    ]


async def test_a_model_that_hands_its_request_on_counts_once_and_one_that_asks_another_twice():
    class Fallback(BaseLlm):
        model: str = "fallback"
        other: BaseLlm
        consults: bool = False

        async def generate_content_async(self, llm_request, stream=False):
            if self.consults:
                async for _ in self.other.generate_content_async(request("advice?")):
                    pass
            async for response in self.other.generate_content_async(llm_request, stream):
                yield response

    other = ScriptedLlm(model="other", answers={"anything": say("ok")})
    plain = await chat(AdkAdapter(agent(Fallback(other=other))), "hi")
    assert [event.data["model"] for event in plain.of("model_request")] == ["fallback"]
    consulting = await chat(AdkAdapter(agent(Fallback(other=other, consults=True))), "hi")
    assert [event.data["model"] for event in consulting.of("model_request")] == ["fallback", "other"]


async def test_a_model_that_a_tool_asks_itself_is_nested_in_the_call():
    direct = ScriptedLlm(model="direct", answers={"anything": say("blue")})

    async def colour() -> str:
        (response,) = [one async for one in direct.generate_content_async(request("colour?"))]
        return response.content.parts[0].text

    talk = await chat(
        AdkAdapter(
            agent({"go": call(("colour", {}, "c-1")), "colour()": say("It is blue.")}, tools=[colour])
        ),
        "go",
    )
    asked = talk.of("model_request")[1]
    assert (asked.agent, asked.data["model"], asked.parent, asked.data["nested"]) == (
        "",
        "direct",
        "c-1",
        True,
    )


async def test_of_a_stream_only_the_whole_is_reported():
    stream = [say("he", partial=True), say("llo", partial=True), say("hello")]
    talk = await chat(AdkAdapter(agent({"anything": stream})), "hi")
    assert [event.content["parts"][0]["text"] for event in talk.of("model_response")] == ["hello"]
    assert talk.texts() == ["he", "llo", "hello"]
    assert [event.data.get("partial", False) for event in talk.of("text")] == [True, True, False]


async def test_a_stream_that_ends_without_the_whole_tells_its_last_chunk():
    events = []
    model = ScriptedLlm(answers={"anything": [say("he", partial=True), say("hel", partial=True)]})
    with recording(Reporter(events.append)):
        chunks = [response async for response in model.generate_content_async(request())]
    assert len(chunks) == 2
    assert [event.kind for event in events] == ["model_request", "model_response"]
    assert events[1].content["parts"][0]["text"] == "hel"


async def test_time_between_responses_is_not_the_model_s(monkeypatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(adk_models.time, "perf_counter", lambda: next(clock))
    events = []
    model = ScriptedLlm(answers={"anything": [say("a"), say("b")]})
    with recording(Reporter(events.append)):
        async for _ in model.generate_content_async(request()):
            next(clock)
    assert [event.duration for event in events if event.kind == "model_response"] == [10, 20]


async def test_models_of_other_code_between_two_responses_are_counted():
    events = []
    model = ScriptedLlm(answers={"anything": [say("a"), say("b")]})
    asked = request()
    with recording(Reporter(events.append)):
        async for _ in model.generate_content_async(asked):
            async for _ in model.generate_content_async(asked):
                pass
    assert sum(event.kind == "model_request" for event in events) == 3


async def test_without_a_recorder_nothing_is_touched():
    model = ScriptedLlm(answers={"anything": say("hi")})
    AdkAdapter(agent(model))
    assert [response.content.parts[0].text async for response in model.generate_content_async(request())] == [
        "hi"
    ]


async def test_a_stream_that_is_left_early_is_closed():
    closed = []

    class Careful(BaseLlm):
        model: str = "careful"

        async def generate_content_async(self, llm_request, stream=False):
            try:
                yield say("one")
                yield say("two")
            finally:
                closed.append(True)

    with recording(Reporter(lambda event: None)):
        responses = Careful().generate_content_async(request())
        await anext(responses)
        await responses.aclose()
    assert closed == [True]


async def test_settings_that_are_no_json_do_not_hurt():
    class Answer(BaseModel):
        colour: str

    def made_by_hand(x: int) -> int:
        return x

    config = types.GenerateContentConfig(response_schema=Answer, tools=[made_by_hand])
    events = []
    model = ScriptedLlm(answers={"anything": say("ok")})
    with recording(Reporter(events.append)):
        async for _ in model.generate_content_async(request().model_copy(update={"config": config})):
            pass
    assert events[0].data["config"]["response_schema"]["properties"]["colour"]["type"] == "string"
    assert events[0].data["tools"] == ["made_by_hand"]


async def test_contents_that_fail_when_looked_at_do_not_hurt():
    class Odd:
        @property
        def __name__(self):
            raise RuntimeError("do not look at me")

    part = types.Part.from_function_response(name="odd", response={"thing": Odd()})
    asked = LlmRequest(contents=[types.Content(role="user", parts=[part])])
    events = []
    model = ScriptedLlm(answers={"anything": say("ok")})
    with recording(Reporter(events.append)):
        assert [response async for response in model.generate_content_async(asked)]
    assert events[0].data["unrecorded"] == "RuntimeError: do not look at me"


async def test_an_error_response_says_so():
    blocked = LlmResponse(error_code="SAFETY", error_message="blocked")
    talk = await chat(AdkAdapter(agent({"anything": blocked})), "hi")
    (answered,) = talk.of("model_response")
    assert answered.content is None
    assert answered.data == {"error_code": "SAFETY", "error_message": "blocked"}
