"""Models and tools of google-adk agents through a call recorder, in this process."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("google.adk")
from adk_scripted import Chat, ScriptedLlm, call, say
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.auth.auth_tool import AuthConfig
from google.adk.models.llm_request import LlmRequest
from google.adk.tools import LongRunningFunctionTool
from google.adk.tools.base_tool import BaseTool
from google.genai import types
from pydantic import BaseModel, Field, PrivateAttr

from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.agents.adapters.base import Reporter, recording
from evaltui.agents.call_recorder import CallRecorder, CaseRecording, NotRecordedError, recording_calls
from evaltui.core.model.modes import modes_of
from evaltui.core.recordings.entry import entry_from_json

pytestmark = pytest.mark.adk


class Deck:
    """Records what a conversation tells, and plays it again."""

    def __init__(self):
        self.entries, self.shared, self.notes = [], {}, []

    def recorder(self, mode, tools=None, by_tool=None):
        modes = modes_of(mode, tools, by_tool or {})
        given = CaseRecording("one", 0, "recordings/x.jsonl", modes, self.entries, list(self.shared.values()))
        told = []
        self._told = told
        return CallRecorder(CaseRecording.from_json(json.loads(json.dumps(given.to_json()))), told.append)

    def keep(self):
        lines = json.loads(json.dumps(self._told))
        self.notes = [line["note"] for line in lines if "note" in line]
        made = [line for line in lines if "note" not in line]
        old = self.entries
        self.entries = [
            old[line["used"]] if "used" in line else entry_from_json(line["entry"])
            for line in sorted(made, key=lambda line: line["at"])
        ]
        for line in made:
            self.shared |= {data["id"]: entry_from_json(data) for data in line.get("shared", [])}


async def talk(agent, recorder, *messages):
    with recording_calls(recorder):
        chat = Chat(AdkAdapter(agent))
        await chat.send(*messages)
    recorder.check()
    return chat


def agent(answers, **fields):
    model = ScriptedLlm(answers=answers)
    return LlmAgent(name="helper", model=model, **fields), model


async def test_chunks_and_everything_that_a_response_has_come_again():
    chunks = [
        say("he", partial=True),
        say("llo", partial=True),
        say(
            "hello",
            usage_metadata=types.GenerateContentResponseUsageMetadata(total_token_count=3),
            finish_reason=types.FinishReason.STOP,
            custom_metadata={"a": [1]},
            grounding_metadata=types.GroundingMetadata(web_search_queries=["x"]),
        ),
    ]
    chunks[2].content.parts[0].thought_signature = b"\xff\x00"
    deck = Deck()
    root, model = agent({"anything": chunks})
    first = await talk(root, deck.recorder("auto"), "hi")
    deck.keep()
    (entry,) = deck.entries
    assert len(entry.responses) == 3
    assert len(model._requests) == 1

    played = await talk(root, deck.recorder("replay"), "hi")
    assert len(model._requests) == 1
    assert [(e.kind, e.content, e.usage) for e in played.events] == [
        (e.kind, e.content, e.usage) for e in first.events
    ]
    (answered,) = played.of("model_response")
    assert answered.data["replayed"]


async def test_a_streamed_request_is_another_one():
    deck = Deck()
    root, model = agent({"anything": say("hello")})
    request = LlmRequest(contents=[types.UserContent("hi")], config=types.GenerateContentConfig())
    AdkAdapter(root)
    for stream in (False, True):
        with recording_calls(deck.recorder("auto")), recording(Reporter(lambda event: None)):
            assert [one async for one in model.generate_content_async(request, stream=stream)]
        deck.keep()
    assert len(model._requests) == 2
    assert deck.entries[0].config == {"stream": True}
    assert RunConfig(streaming_mode=StreamingMode.SSE).streaming_mode is StreamingMode.SSE


async def test_headers_are_no_part_of_a_recording_nor_of_the_log():
    settings = types.GenerateContentConfig(
        temperature=0.5, http_options=types.HttpOptions(headers={"x-goog-api-key": "very secret"})
    )
    deck = Deck()
    root, _ = agent({"anything": say("hello")}, generate_content_config=settings)
    chat = await talk(root, deck.recorder("auto"), "hi")
    deck.keep()
    assert deck.entries[0].config == {"temperature": 0.5}
    assert "very secret" not in json.dumps([event.to_json() for event in chat.events])
    assert "very secret" not in json.dumps(deck._told)


async def test_an_error_of_the_model_comes_again_with_its_class():
    deck = Deck()
    root, model = agent({"anything": OSError(5, "down")})
    with pytest.raises(OSError, match="down"):
        await talk(root, deck.recorder("auto"), "hi")
    deck.keep()
    with pytest.raises(OSError, match="down"):
        await talk(root, deck.recorder("replay"), "hi")
    assert len(model._requests) == 1
    with pytest.raises(OSError, match="down"):
        await talk(root, deck.recorder("auto"), "hi")
    assert len(model._requests) == 2


async def test_random_call_ids_are_the_same_each_time_it_is_recorded():
    lines = []
    for number in (1, 2):
        looked.clear()
        deck = Deck()
        root, _ = agent({"hi": call(("look", {}, f"random-{number}")), "look()": say("done")}, tools=[look])
        await talk(root, deck.recorder("record"), "hi")
        deck.keep()
        lines.append(deck.entries)
    assert lines[0] == lines[1]
    assert lines[0][0].responses[0]["content"]["parts"][0]["function_call"]["id"] == "recorded-1"


def look() -> dict:
    """Look."""
    looked.append(1)
    return {"seen": len(looked)}


looked: list[int] = []


def results(chat):
    return [event.content["parts"][0]["function_response"]["response"] for event in chat.of("tool_result")]


async def test_calls_and_results_of_a_long_running_tool_and_of_a_tool_that_fails():
    def later() -> None:
        """Takes its time."""
        looked.append(1)

    def fail() -> dict:
        """Fails."""
        looked.append(1)
        raise KeyError("no such order")

    def forgive(tool, args, tool_context, error):
        return {"error": repr(error)}

    deck = Deck()
    root, _ = agent(
        {"hi": call(("fail", {}, "1")), "fail()": call(("later", {}, "2")), "anything": say("done")},
        tools=[fail, LongRunningFunctionTool(later)],
        on_tool_error_callback=forgive,
    )
    looked.clear()
    first = await talk(root, deck.recorder("record"), "hi")
    deck.keep()
    assert len(looked) == 2
    played = await talk(root, deck.recorder("replay"), "hi")
    assert len(looked) == 2
    assert results(played) == results(first) == [{"error": "KeyError('no such order')"}]
    assert played.texts() == first.texts()


async def test_tools_of_the_framework_itself_run_in_a_replay():
    deck = Deck()
    other = LlmAgent(name="other", description="other", model=ScriptedLlm(answers={"anything": say("here")}))
    answers = {"hi": call(("transfer_to_agent", {"agent_name": "other"})), "anything": say("?")}
    root, model = agent(answers, sub_agents=[other])
    first = await talk(root, deck.recorder("record"), "hi")
    deck.keep()
    played = await talk(root, deck.recorder("replay"), "hi")
    assert played.texts() == first.texts() == ["here"]
    assert len(model._requests) == 1


async def test_a_tool_defined_later_is_stubbed_once_although_it_calls_its_parent():
    AdkAdapter(agent({})[0])

    class Base(BaseTool):
        async def run_async(self, *, args, tool_context):
            looked.append(1)
            return {"n": args["n"]}

        def _get_declaration(self):
            return types.FunctionDeclaration(name=self.name, description="x")

    class Derived(Base):
        async def run_async(self, *, args, tool_context):
            return await super().run_async(args=args | {"n": args["n"] + 1}, tool_context=tool_context)

    looked.clear()
    deck = Deck()
    tool = Derived(name="derived", description="x")
    root, _ = agent({"hi": call(("derived", {"n": 1})), "anything": say("done")}, tools=[tool])
    await talk(root, deck.recorder("record"), "hi")
    deck.keep()
    assert [(e.args, e.result) for e in deck.entries if hasattr(e, "tool")] == [({"n": 1}, {"n": 2})]
    await talk(root, deck.recorder("replay"), "hi")
    assert len(looked) == 1


async def test_what_cannot_be_written_down_is_a_note_and_not_the_end_of_the_run():
    def odd() -> dict:
        """Odd."""
        return {"it": object()}

    deck = Deck()
    answers = {"hi": call(("odd", {})), "anything": say("done")}
    root, _ = agent(answers, tools=[odd], after_tool_callback=lambda **_: {"ok": 1})
    chat = await talk(root, deck.recorder("record"), "hi")
    deck.keep()
    assert chat.texts() == ["done"]
    (note,) = deck.notes
    assert note.startswith("case one: the result of odd is not recorded: ")


async def test_a_missing_answer_is_raised_where_the_model_is_asked():
    root, model = agent({"anything": say("hello")})
    with pytest.raises(NotRecordedError, match="the model call of helper in turn 1 is not in recordings"):
        await talk(root, Deck().recorder("replay"), "hi")
    assert not model._requests


async def test_a_tool_that_requests_a_confirmation_requests_it_in_a_replay():
    def pay(tool_context):
        """Pays."""
        if not tool_context.tool_confirmation:
            tool_context.request_confirmation(hint="Pay?", payload={"euros": 3})
            return {"status": "waits"}
        return {"status": "paid"}

    deck = Deck()
    root, _ = agent({"hi": call(("pay", {}, "1")), "anything": say("done")}, tools=[pay])
    first = await talk(root, deck.recorder("record"), "hi")
    deck.keep()
    played = await talk(root, deck.recorder("replay"), "hi")
    assert played.called() == first.called() == ["pay", "adk_request_confirmation"]
    asked = [chat.of("tool_call")[1].content["parts"][0]["function_call"]["args"] for chat in (first, played)]
    assert [args["toolConfirmation"] for args in asked] == [
        {"hint": "Pay?", "payload": {"euros": 3}, "confirmed": False}
    ] * 2


async def test_a_tool_that_requests_a_credential_is_not_recorded():
    def login(tool_context):
        """Logs in."""
        scheme = {"type": "apiKey", "name": "key", "in": "header"}
        tool_context.request_credential(AuthConfig(auth_scheme=scheme, credential_key="shop"))
        return {"status": "waits"}

    deck = Deck()
    root, _ = agent({"hi": call(("login", {}, "1")), "anything": say("done")}, tools=[login])
    first = await talk(root, deck.recorder("record"), "hi")
    deck.keep()
    assert first.called() == ["login", "adk_request_credential"]
    assert deck.notes == [
        "case one: the result of login is not recorded: the call requests a credential, which contains keys"
    ]
    with pytest.raises(NotRecordedError, match="no call of login recorded"):
        await talk(root, deck.recorder("replay"), "hi")


async def test_state_that_a_tool_changes_in_place_is_changed_in_a_replay():
    def note(tool_context):
        """Notes."""
        tool_context.state["notes"].append("tool")

    def prepare(tool, args, tool_context):
        tool_context.state["notes"] = ["callback"]

    deck = Deck()
    root, _ = agent(
        {"hi": call(("note", {}, "1")), "anything": say("done")},
        tools=[note],
        before_tool_callback=prepare,
    )
    for mode in ("record", "replay"):
        chat = await talk(root, deck.recorder(mode), "hi")
        deck.keep()
        assert await chat.session.state() == {"notes": ["callback", "tool"]}


async def test_a_result_that_later_calls_change_is_replayed_as_it_was_sent():
    def add(tool_context):
        """Adds an item."""
        cart = tool_context.state.get("cart", [])
        cart.append("item")
        tool_context.state["cart"] = cart
        return {"cart": cart}

    deck = Deck()
    calls = {"one": call(("add", {}, "1")), "two and three": call(("add", {}, "2"), ("add", {}, "3"))}
    for mode in ("record", "replay"):
        root, _ = agent({**calls, "anything": say("done")}, tools=[add])
        chat = await talk(root, deck.recorder(mode), "one", "two and three")
        deck.keep()
        results = [event.content["parts"][0]["function_response"] for event in chat.of("tool_result")]
        assert [len(result["response"]["cart"]) for result in results] == [1, 2, 3]


class Lite(ScriptedLlm):
    """Adds settings to each request, as ADK's LiteLlm and Claude do."""

    max_tokens: int = 8192
    _additional_args: dict = PrivateAttr(default_factory=dict)


class Item(BaseModel):
    name: str = Field(description="the color")


class OtherItem(BaseModel):
    name: str = Field(description="the animal")


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        (Item, OtherItem, '{"name": "x"}'),
        (list[Item], list[OtherItem], "[]"),
        (dict[str, Item], dict[str, OtherItem], "{}"),
    ],
    ids=["class", "list", "dict"],
)
async def test_a_replay_notices_another_schema_of_the_output(before, after, answer):
    deck = Deck()
    answers = {"anything": say(answer)}
    await talk(agent(answers, output_schema=before)[0], deck.recorder("record"), "hello")
    deck.keep()
    await talk(agent(answers, output_schema=before)[0], deck.recorder("replay"), "hello")
    with pytest.raises(NotRecordedError, match="response_schema"):
        await talk(agent(answers, output_schema=after)[0], deck.recorder("replay"), "hello")


async def test_settings_that_a_model_adds_itself_are_part_of_the_request():
    def agent(limit=None, **settings):
        model = Lite(answers={"anything": say("hi")}, **({"max_tokens": limit} if limit else {}))
        model._additional_args = settings
        return LlmAgent(name="desk", model=model)

    deck = Deck()
    await talk(agent(reasoning_effort="low", max_tokens=5, api_key="a"), deck.recorder("record"), "hello")
    deck.keep()
    await talk(agent(reasoning_effort="low", max_tokens=5, api_key="b"), deck.recorder("replay"), "hello")
    with pytest.raises(NotRecordedError, match="reasoning_effort is"):
        await talk(agent(reasoning_effort="high", max_tokens=5), deck.recorder("replay"), "hello")
    await talk(agent(100), deck.recorder("record"), "hello")
    deck.keep()
    with pytest.raises(NotRecordedError, match="max_tokens is 50, was 100"):
        await talk(agent(50), deck.recorder("replay"), "hello")
