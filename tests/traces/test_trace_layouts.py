"""Each layout of spans gives the same conversation; spans are as the producers' conventions have them."""

import json
from dataclasses import replace

import pytest

from evaltui import invocations_from_events
from evaltui.core.model.eval_set import scored_text, tool_calls
from evaltui.core.model.events import ANSWERS, ARGUMENTS, CALLS, SOME_MODEL_CALLS, TEXTS, USER_MESSAGE
from evaltui.traces.conversations import conversations_in
from evaltui.traces.span import LogRecord, OtelSpan, Recorded, SpanEvent

QUESTION, ANSWER = "What is the weather in Rome?", "It is sunny in Rome."
ARGS, RESULT = {"city": "Rome"}, {"sky": "sunny"}
SYSTEM = "Be brief."
USAGE = {"prompt_token_count": 30, "candidates_token_count": 7, "total_token_count": 37}


def span(number, parent, attributes, *, begin=None, length=10, events=(), name="", trace="1", **more):
    begin = number * 100 if begin is None else begin
    return OtelSpan(
        trace.rjust(32, "0"),
        f"{number:016x}",
        f"{parent:016x}" if parent else "",
        name or f"span {number}",
        begin * 1_000_000,
        (begin + length) * 1_000_000,
        attributes,
        list(events),
        **more,
    )


def tree(root, model, tool, answered=None, prefix=""):
    """An agent that asks a model, calls a tool, and asks again."""
    return [
        span(1, 0, root, begin=100, length=900),
        span(2, 1, model(0)),
        span(3, 1, tool, name=f"{prefix}weather"),
        span(4, 1, model(1)),
    ]


def genai_messages(second):
    call = {"type": "tool_call", "id": "call_1", "name": "weather", "arguments": ARGS}
    returned = {"type": "tool_call_response", "id": "call_1", "response": RESULT}
    asked = {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}
    answer = {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}
    if not second:
        return [asked], [{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}]
    return [asked, {"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [returned]}], [answer]


def openai_messages(second):
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": json.dumps(ARGS)},
    }
    asked = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    if not second:
        return asked, {"role": "assistant", "content": None, "tool_calls": [call]}
    returned = {"role": "tool", "tool_call_id": "call_1", "content": json.dumps(RESULT)}
    return [*asked, {"role": "assistant", "tool_calls": [call]}, returned], {
        "role": "assistant",
        "content": ANSWER,
    }


AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", "gen_ai.conversation.id": "c1"}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "weather",
    "gen_ai.tool.call.id": "call_1",
}
TOOL_CONTENT = {"gen_ai.tool.call.arguments": json.dumps(ARGS), "gen_ai.tool.call.result": json.dumps(RESULT)}
MODEL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.usage.input_tokens": 30,
    "gen_ai.usage.output_tokens": 7,
}


def genai():
    def model(second):
        inputs, outputs = map(json.dumps, genai_messages(second))
        system = json.dumps([{"type": "text", "content": SYSTEM}])
        return {
            **MODEL,
            "gen_ai.input.messages": inputs,
            "gen_ai.output.messages": outputs,
            "gen_ai.system_instructions": system,
        }

    return tree(AGENT, model, TOOL | TOOL_CONTENT)


def genai_details():
    """Messages as values, in an event or log record beside the span."""
    spans = tree(AGENT, lambda _: dict(MODEL), TOOL | TOOL_CONTENT)
    for number, second in ((1, False), (3, True)):
        inputs, outputs = genai_messages(second)
        details = {
            "gen_ai.input.messages": inputs,
            "gen_ai.output.messages": outputs,
            "gen_ai.system_instructions": [{"type": "text", "content": SYSTEM}],
        }
        spans[number].events = [SpanEvent("gen_ai.client.inference.operation.details", details)]
    return spans


def genai_details_apart():
    """An event for each attribute, as AWS Strands has them."""
    spans = genai_details()
    for one in spans:
        one.events = [
            SpanEvent(event.name, {name: json.dumps(value)})
            for event in one.events
            for name, value in event.attributes.items()
        ]
    return spans


def old_events():
    """An event per message, whose content is a body of a log record."""
    spans = tree(AGENT, lambda _: dict(MODEL), TOOL | TOOL_CONTENT)
    for number, second in ((1, False), (3, True)):
        inputs, output = openai_messages(second)
        events = [
            SpanEvent(f"gen_ai.{one['role']}.message", {}, 0, {**one, "id": one.get("tool_call_id")})
            for one in inputs
        ]
        spans[number].events = [*events, SpanEvent("gen_ai.choice", {}, 0, {"index": 0, "message": output})]
    return spans


def openllmetry_old():
    """Up to about 0.52: messages with numbers in the names of attributes."""

    def model(second):
        inputs, output = openai_messages(second)
        said = {
            "gen_ai.system": "OpenAI",
            "gen_ai.request.model": "m",
            "llm.request.type": "chat",
            "gen_ai.usage.prompt_tokens": 30,
            "gen_ai.usage.completion_tokens": 7,
            "traceloop.association.properties.session_id": "c1",
        }
        for prefix, messages in (("prompt", inputs), ("completion", [output])):
            for number, one in enumerate(messages):
                place = f"gen_ai.{prefix}.{number}"
                for key in ("role", "content", "tool_call_id"):
                    if one.get(key) is not None:
                        said[f"{place}.{key}"] = one[key]
                for which, call in enumerate(one.get("tool_calls", ())):
                    said[f"{place}.tool_calls.{which}.id"] = call["id"]
                    said[f"{place}.tool_calls.{which}.name"] = call["function"]["name"]
                    said[f"{place}.tool_calls.{which}.arguments"] = call["function"]["arguments"]
        return said

    agent = {"traceloop.span.kind": "agent", "traceloop.entity.name": "desk"}
    tool = {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "weather",
        "traceloop.entity.input": json.dumps({"args": [], "kwargs": ARGS}),
        "traceloop.entity.output": json.dumps(RESULT),
    }
    return tree(agent, model, tool)


def openllmetry_new():
    """From 0.60 on: decorated functions of its own, models by the conventions."""

    def model(second):
        inputs, outputs = map(json.dumps, genai_messages(second))
        system = {"gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}])}
        return {**MODEL, **system, "gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs}

    agent = {
        "traceloop.span.kind": "agent",
        "traceloop.entity.name": "desk",
        "traceloop.association.properties.session_id": "c1",
    }
    return tree(agent, model, TOOL | TOOL_CONTENT)


def openinference():
    def model(second):
        inputs, output = openai_messages(second)
        said = {
            "openinference.span.kind": "LLM",
            "llm.model_name": "m",
            "llm.token_count.prompt": 30,
            "llm.token_count.completion": 7,
        }
        for prefix, messages in (("input", inputs), ("output", [output])):
            for number, one in enumerate(messages):
                place = f"llm.{prefix}_messages.{number}.message"
                said[f"{place}.role"] = one["role"]
                if one.get("content"):
                    said[f"{place}.contents.0.message_content.type"] = "text"
                    said[f"{place}.contents.0.message_content.text"] = one["content"]
                if one.get("tool_call_id"):
                    said[f"{place}.tool_call_id"] = one["tool_call_id"]
                for which, call in enumerate(one.get("tool_calls", ())):
                    path = f"{place}.tool_calls.{which}.tool_call"
                    said[f"{path}.id"] = call["id"]
                    said[f"{path}.function.name"] = call["function"]["name"]
                    said[f"{path}.function.arguments"] = call["function"]["arguments"]
        return said

    agent = {
        "openinference.span.kind": "AGENT",
        "agent.name": "desk",
        "session.id": "c1",
        "input.value": QUESTION,
        "output.value": ANSWER,
    }
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "weather",
        "tool.parameters": json.dumps({"type": "object"}),
        "input.value": json.dumps(ARGS),
        "output.value": json.dumps(RESULT),
    }
    return tree(agent, model, tool)


DECLARATION = {
    "role": "tool",
    "content": {"type": "function", "function": {"name": "look_up", "parameters": {}}},
}


def langfuse():
    def model(second):
        inputs, output = openai_messages(second)
        return {
            "langfuse.observation.type": "generation",
            "langfuse.observation.model.name": "m",
            # Its handler for LangChain appends the declarations of tools.
            "langfuse.observation.input": json.dumps([*inputs, DECLARATION]),
            "langfuse.observation.output": json.dumps(output),
            "langfuse.observation.usage_details": json.dumps({"input": 30, "output": 7}),
        }

    agent = {
        "langfuse.observation.type": "agent",
        "session.id": "c1",
        "langfuse.observation.input": json.dumps({"args": [], "kwargs": {"message": QUESTION}}),
        "langfuse.observation.output": json.dumps(ANSWER),
    }
    tool = {
        "langfuse.observation.type": "tool",
        "langfuse.observation.input": json.dumps(ARGS),
        "langfuse.observation.output": json.dumps(RESULT),
    }
    spans = tree(agent, model, tool)
    spans[0].name = "desk"
    return spans


LAYOUTS = (
    *(genai, genai_details, genai_details_apart, old_events),
    *(openllmetry_old, openllmetry_new, openinference, langfuse),
)


def conversation(spans):
    (found,) = conversations_in([Recorded(spans)]).conversations
    return found


def spoken(spans):
    """The message, the response and the unknown parts of the only turn."""
    (turn,) = conversation(spans).turns
    (one,) = invocations_from_events(turn.events)
    return turn.user, scored_text(one, thoughts=False), dict(turn.untold)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.__name__)
def test_every_layout_tells_the_same(layout):
    found = conversation(layout())
    assert found.id == "c1"
    (turn,) = found.turns
    assert (turn.user, dict(turn.untold), turn.error) == (QUESTION, {}, None)
    (one,) = invocations_from_events(turn.events)
    assert [(call.name, call.args) for call in tool_calls(one.intermediate_data)] == [("weather", ARGS)]
    assert scored_text(one, thoughts=False) == ANSWER
    of = {
        kind: [event for event in turn.events if event.kind == kind]
        for kind in ("tool_result", "model_request", "text")
    }
    assert [event.content["parts"][0]["function_response"]["response"] for event in of["tool_result"]] == [
        RESULT
    ]
    assert len(of["text"]) == 1
    assert [event.data["system_instruction"] for event in of["model_request"]] == [SYSTEM, SYSTEM]
    assert {event.agent for event in turn.events if event.kind == "text"} == {"desk"}
    responses = [event for event in turn.events if event.kind == "model_response"]
    assert [event.usage for event in responses] == [USAGE, USAGE]
    assert all(event.data["from"]["trace_id"] == found.traces[0] for event in turn.events)


def test_only_messages_without_spans_of_tools():
    """A tool that nobody watches: its call and its result are in the messages."""
    (turn,) = conversation([one for one in genai() if "gen_ai.tool.name" not in one.attributes]).turns
    results = [
        event.content["parts"][0]["function_response"] for event in turn.events if event.kind == "tool_result"
    ]
    assert [one["response"] for one in results] == [RESULT]
    assert not turn.untold


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.__name__)
def test_an_agent_whose_own_span_is_missing_has_one_turn(layout):
    (turn,) = conversation(layout()[1:]).turns
    assert (turn.user, dict(turn.untold), turn.error, turn.spans) == (QUESTION, {}, None, 3)
    (one,) = invocations_from_events(turn.events)
    assert [(call.name, call.args) for call in tool_calls(one.intermediate_data)] == [("weather", ARGS)]
    assert scored_text(one, thoughts=False) == ANSWER


SPOKEN = {"input.value": QUESTION, "output.value": ANSWER}


@pytest.mark.parametrize(
    ("attributes", "calls"),
    [
        ({"openinference.span.kind": "AGENT", **SPOKEN}, None),
        (
            {
                "langfuse.observation.type": "agent",
                "langfuse.observation.input": QUESTION,
                "langfuse.observation.output": ANSWER,
            },
            None,
        ),
        # google-adk has spans of all that is called.
        ({"gen_ai.operation.name": "invoke_agent", "gcp.vertex.agent.session_id": "c1", **SPOKEN}, []),
    ],
    ids=["openinference", "langfuse", "adk"],
)
def test_calls_of_an_agent_of_which_nothing_else_is_watched_are_unknown(attributes, calls):
    outputs = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}])
    spans = [span(1, 0, {**attributes, "gen_ai.output.messages": outputs})]
    assert called(spans) == calls


WEATHER = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": json.dumps(ARGS)}
SEARCH = {"id": "s1", "name": "weather", "input": ARGS}
CALLING = {
    "OpenAI item": WEATHER,
    "OpenAI items": [{"type": "reasoning", "id": "r1", "summary": []}, WEATHER],
    "OpenAI response": {"object": "response", "output": [{"type": "mcp_list_tools", "tools": []}, WEATHER]},
    "OpenAI choices": {"choices": [{"message": openai_messages(0)[1]}]},
    "OpenAI's own call": [{"type": "weather_call", "id": "c1", "status": "completed", **ARGS}],
    "Anthropic content": [{"type": "tool_use", **SEARCH}],
    "Anthropic's own call": [{"type": "server_tool_use", **SEARCH}, {"type": "web_search_tool_result"}],
    "Gemini": {"candidates": [{"content": {"parts": [{"functionCall": {"name": "weather", "args": ARGS}}]}}]},
    "OpenTelemetry": [
        {
            "role": "assistant",
            "parts": [{"type": "server_tool_call", "name": "weather", "server_tool_call": {"input": ARGS}}],
        }
    ],
}
UNREAD = {
    "an object": {"answer": ANSWER},
    "an unknown part": [{"role": "assistant", "content": [{"type": "tool_of_tomorrow"}]}],
}


@pytest.mark.parametrize("output", [*CALLING.values(), *UNREAD.values()], ids=[*CALLING, *UNREAD])
def test_a_call_in_an_answer_of_any_form_is_a_call_or_unknown(output):
    root, first, _, last = langfuse()
    first.attributes["langfuse.observation.output"] = json.dumps(output)
    (turn,) = conversation([root, first, last]).turns
    (one,) = invocations_from_events(turn.events)
    calls = [(call.name, call.args) for call in tool_calls(one.intermediate_data)]
    is_unread = output in UNREAD.values()
    assert (calls, CALLS in turn.untold) == ([] if is_unread else [("weather", ARGS)], is_unread)


def test_calls_and_results_beside_messages_are_not_what_the_user_said():
    root, first, _, last = langfuse()
    del root.attributes["langfuse.observation.input"]
    asked = [{"role": "user", "content": QUESTION}]
    result = {"type": "function_call_output", "call_id": "c1", "output": json.dumps(RESULT)}
    first.attributes["langfuse.observation.input"] = json.dumps(asked)
    first.attributes["langfuse.observation.output"] = json.dumps(WEATHER)
    last.attributes["langfuse.observation.input"] = json.dumps([*asked, WEATHER, result])
    for spans in ([root, first, last], [root, last]):
        (turn,) = conversation(spans).turns
        assert turn.user == QUESTION
    responses = [event for event in conversation([root, first, last]).events if event.kind == "tool_result"]
    assert [event.content["parts"][0]["function_response"]["response"] for event in responses] == [RESULT]


@pytest.mark.parametrize("layout", [genai, openinference, langfuse], ids=lambda one: one.__name__)
def test_a_span_of_a_tool_under_another_name_may_be_the_call_without_a_span(layout):
    """A loop of one's own may have one function for all tools."""
    spans = layout()
    tool = spans[2]
    tool.name = "run_tool"
    names = {"gen_ai.tool.name": "run_tool", "tool.name": "run_tool"}
    tool.attributes |= {name: value for name, value in names.items() if name in tool.attributes}
    for name in ("gen_ai.tool.call.id", "tool_call.id"):
        tool.attributes.pop(name, None)
    (turn,) = conversation(spans).turns
    assert "give the span the name of the tool" in turn.untold[CALLS]


@pytest.mark.parametrize("text", [ANSWER, None])
def test_text_after_calls_that_a_provider_makes_is_the_response(text):
    """Without its response, a call waits for its agent."""
    spans = genai()[:2]
    call = {"type": "server_tool_call", "id": "c1", "name": "find", "server_tool_call": {"type": "find"}}
    parts = [call, {"type": "server_tool_call_response", "id": "c1"}, {"type": "text", "content": text}]
    answer = {"role": "assistant", "parts": parts if text else [call]}
    spans[1].attributes["gen_ai.output.messages"] = json.dumps([answer])
    (turn,) = conversation(spans).turns
    (one,) = invocations_from_events(turn.events)
    assert scored_text(one, thoughts=False) == (text or "")
    assert (ANSWERS in turn.untold) is (text is None)
    assert called(spans) == (["find"] if text else None)


def test_what_a_model_client_alone_tells():
    """Each call of a model is a trace: a request that ends in results goes on with the turn."""
    spans = [one for one in genai() if one.attributes["gen_ai.operation.name"] == "chat"]
    for number, one in enumerate(spans):
        one.trace_id, one.parent_id = f"{number + 1:032x}", ""
        one.attributes["gen_ai.conversation.id"] = "c1"
    found = conversation(spans)
    (turn,) = found.turns
    assert len(found.traces) == 2
    assert (turn.user, dict(turn.untold)) == (QUESTION, {})
    bare = [span(1, 0, {**MODEL, "gen_ai.response.finish_reasons": ["tool_calls"]})]
    assert set(conversation(bare).turns[0].untold) == {USER_MESSAGE, ANSWERS, CALLS}


def test_a_wrapper_around_a_call_is_that_call():
    spans = genai()
    spans.append(span(9, 2, dict(MODEL), begin=201, length=5))
    (turn,) = conversation(spans).turns
    assert sum(event.kind == "model_request" for event in turn.events) == 2
    # A server's span of the call of its client is no further call.
    spans.append(span(10, 3, TOOL | TOOL_CONTENT, begin=301, length=5))
    (turn,) = conversation(spans).turns
    assert sum(event.kind == "tool_call" for event in turn.events) == 1


def test_openinference_beside_google_adk_does_not_mix_calls():
    """Each call of a model overwrites the messages on the agent's span: only what came in and out counts."""
    root = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.conversation.id": "c1"}
    event = {"content": {"role": "model", "parts": [{"text": ANSWER}]}, "author": "desk"}
    agent = {
        **AGENT,
        "openinference.span.kind": "AGENT",
        "input.value": json.dumps({"new_message": {"role": "user", "parts": [{"text": QUESTION}]}}),
        "output.value": json.dumps(event),
        "llm.output_messages.0.message.content": "left over",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "gone",
    }
    tool = {**TOOL, "openinference.span.kind": "TOOL", "tool.parameters": json.dumps(ARGS)}
    tool["output.value"] = json.dumps(RESULT)
    spans = [
        span(1, 0, root, length=900),
        span(2, 1, agent),
        span(3, 2, dict(MODEL)),
        span(4, 2, tool),
        span(5, 2, dict(MODEL)),
    ]
    (turn,) = conversation(spans).turns
    (one,) = invocations_from_events(turn.events)
    assert (turn.user, set(turn.untold)) == (QUESTION, {TEXTS})
    assert [(call.name, call.args) for call in tool_calls(one.intermediate_data)] == [("weather", ARGS)]
    assert scored_text(one, thoughts=False) == ANSWER


def test_calls_of_a_model_that_openinference_writes_over_each_other_are_unknown():
    """Beside google-adk 2, it records the calls of a model on the span of the agent."""
    inputs, outputs = genai_messages(True)
    messages = {"gen_ai.input.messages": json.dumps(inputs), "gen_ai.output.messages": json.dumps(outputs)}
    adk = {"gcp.vertex.agent.invocation_id": "e-1", "openinference.span.kind": "LLM"}
    spans = [
        span(1, 0, {"gen_ai.operation.name": "invoke_workflow"}, length=900),
        span(2, 1, {**MODEL, **messages, **adk}, name="invoke_agent desk", length=600),
        span(3, 2, TOOL | TOOL_CONTENT | {"openinference.span.kind": "TOOL"}),
    ]
    (turn,) = conversation(spans).turns
    hint = "OpenInference writes all calls of a model of google-adk 2"
    assert {USER_MESSAGE, CALLS, SOME_MODEL_CALLS, TEXTS} <= turn.untold.keys()
    assert all(hint in turn.untold[part] for part in (USER_MESSAGE, CALLS, SOME_MODEL_CALLS, TEXTS))


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "call_1", "name": "weather", "input": {}},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": "{}"},
        {"type": "tool_call", "id": "call_1", "name": "weather", "args": ARGS},
    ],
    ids=lambda one: one["type"],
)
@pytest.mark.parametrize("layout", [genai, langfuse], ids=lambda one: one.__name__)
def test_a_call_of_langchain_that_is_in_the_content_too_is_one(layout, block):
    """While it is streamed, the arguments in the content may be empty."""
    spans = layout()
    call = {"name": "weather", "args": ARGS, "id": "call_1", "type": "tool_call"}
    message = {"role": "assistant", "content": [{"type": "text", "text": "So."}, block], "tool_calls": [call]}
    name = "gen_ai.output.messages" if layout is genai else "langfuse.observation.output"
    spans[1].attributes[name] = json.dumps([message] if layout is genai else message)
    (turn,) = conversation([spans[0], spans[1], spans[3]]).turns
    (one,) = invocations_from_events(turn.events)
    assert [(call.name, call.args) for call in tool_calls(one.intermediate_data)] == [("weather", ARGS)]


@pytest.mark.parametrize(("args", "more"), [({}, {}), (ARGS, {"inputs": ARGS})])
def test_arguments_of_langchain_are_read_beside_its_metadata(args, more):
    spans = genai()
    value = {"input_str": str(args), "tags": ["seq:step:1"], "metadata": {"thread_id": "s"}, **more}
    spans[2].attributes = {**TOOL, "gen_ai.tool.call.arguments": json.dumps(value)}
    (turn,) = conversation([spans[0], spans[2]]).turns
    (one,) = invocations_from_events(turn.events)
    assert [(call.name, call.args) for call in tool_calls(one.intermediate_data)] == [("weather", args)]


def test_a_client_of_anthropic_without_content_is_no_conversation():
    """It has a trace for each call where what instruments it has no spans of OpenTelemetry around it."""
    alone = span(1, 0, MODEL, trace="7", scope="com.anthropic.sdk.python")
    found = conversations_in([Recorded([*genai(), alone])])
    assert (len(found.conversations), found.warnings) == (1, ("1 trace of no agent left out",))


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_tool_whose_model_is_missing_is_of_no_other_call(has_ids):
    """Its model called the same tool with other arguments."""
    cities = ("Paris", "Rome")
    root, first, _, last = genai()
    calls = [{"type": "tool_call", "name": "weather", "arguments": {"city": city}} for city in cities]
    spans = [root, first, last]
    for number, call in enumerate(calls):
        call |= {"id": f"call_{number}"} if has_ids else {}
        attributes = {**TOOL, "gen_ai.tool.call.arguments": json.dumps(call["arguments"])}
        attributes |= {"gen_ai.tool.call.id": call["id"]} if has_ids else {}
        spans.append(span(5 + number, 1, attributes, begin=150 + 150 * number))
    first.attributes["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": calls[1:]}])
    (turn,) = conversation(spans).turns
    (one,) = invocations_from_events(turn.events)
    assert [call.args["city"] for call in tool_calls(one.intermediate_data)] == [*cities]


@pytest.mark.parametrize("is_last", [True, False])
@pytest.mark.parametrize("has_content", [True, False])
def test_a_tool_that_is_tried_again_is_one_call_with_the_last_result(has_content, is_last):
    spans = genai()
    for model in spans[1::2] if not has_content else ():
        model.attributes = dict(MODEL)
    failed = span(5, 1, {**TOOL, "error.type": "TimeoutError"}, begin=305 if is_last else 250, status="error")
    (turn,) = conversation([*spans, failed]).turns
    (one,) = invocations_from_events(turn.events)
    assert [call.name for call in tool_calls(one.intermediate_data)] == ["weather"]
    results = [event for event in turn.events if event.kind == "tool_result"]
    ends = [event.kind for event in turn.events if event.parent and event.kind == "error"]
    # A later request tells what the model was given.
    assert (len(results), len(ends)) == ((0, 1) if is_last and not has_content else (1, 0))
    # One that a model asks for in between is another.
    spans = [*spans, span(6, 1, {**MODEL, "gen_ai.output.messages": "[]"}, begin=320), failed]
    failed.start, failed.end = 330 * 10**6, 340 * 10**6
    (one,) = invocations_from_events(conversation(spans).turns[0].events)
    assert len(tool_calls(one.intermediate_data)) == 2


@pytest.mark.parametrize("is_outer", [True, False])
def test_a_call_that_two_libraries_record_beside_each_other_is_one(is_outer):
    """The client of Anthropic has spans of its own beside those of what instruments it, without content."""
    spans = genai()
    for number, model in ((5, spans[1]), (6, spans[3])):
        model.attributes["gen_ai.response.id"] = f"msg_{number}"
        twin = {**MODEL, "gen_ai.response.id": f"msg_{number}"}
        begin = model.start // 10**6 + (-1 if is_outer else 1)
        spans.append(span(number, 1, twin, begin=begin, length=12 if is_outer else 8))
    (turn,) = conversation(spans).turns
    assert dict(turn.untold) == {}
    assert sum(event.kind == "model_request" for event in turn.events) == 2


def test_a_streamed_response_that_is_a_record_of_its_own_is_that_of_its_request():
    """As Logfire has it, beside the span of the request."""
    spans = genai()
    for number, model in ((5, spans[1]), (6, spans[3])):
        record = {**model.attributes, "logfire.span_type": "log", "gen_ai.response.id": f"msg_{number}"}
        spans.append(span(number, 1, record, begin=model.end // 10**6 + 1, length=0))
        del model.attributes["gen_ai.output.messages"]
    (turn,) = conversation(spans).turns
    (one,) = invocations_from_events(turn.events)
    assert dict(turn.untold) == {}
    assert scored_text(one, thoughts=False) == ANSWER
    assert sum(event.kind == "model_request" for event in turn.events) == 2


def test_calls_are_unknown_where_the_last_request_of_google_adk_has_no_response():
    """Its SQLite exporter keeps no errors."""
    spans = genai()
    for one in spans:
        one.scope = "gcp.vertex.agent"
    assert CALLS not in conversation(spans).turns[0].untold
    del spans[3].attributes["gen_ai.output.messages"]
    untold = conversation(spans).turns[0].untold
    assert {ANSWERS, CALLS} <= untold.keys()
    assert "the model failed or was blocked" in untold[CALLS]


def test_redacted_content_is_absent():
    spans = genai()
    for one in spans:
        for name in ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments"):
            if name in one.attributes:
                one.attributes[name] = "<REDACTED>" if "messages" in name else ""
    assert set(conversation(spans).turns[0].untold) == {USER_MESSAGE, ANSWERS, ARGUMENTS, TEXTS}


def test_an_attachment_of_a_response_is_no_text_of_it():
    spans = genai()
    messages = genai_messages(True)[1]
    messages[0]["parts"].append({"type": "blob", "mime_type": "image/png", "data": "<not serializable>"})
    spans[3].attributes["gen_ai.output.messages"] = json.dumps(messages)
    (turn,) = conversation(spans).turns
    (one,) = invocations_from_events(turn.events)
    assert scored_text(one, thoughts=False) == ANSWER
    assert turn.remarks == ("an attachment not recorded",)


def test_parents_in_a_circle_and_of_nobody():
    spans = genai()
    spans[0].parent_id = spans[3].span_id
    (turn,) = conversation(spans).turns
    assert turn.user == QUESTION
    spans[0].parent_id = spans[0].span_id
    assert conversation(spans).turns[0].user == QUESTION
    spans[0].parent_id = "f" * 16
    assert conversation(spans).turns[0].user == QUESTION


def test_five_thousand_spans_in_each_other():
    deep = [span(number, number - 1, {"x": 1}) for number in range(1, 5_001)]
    deep[0].attributes = dict(AGENT)
    inputs, outputs = map(json.dumps, genai_messages(True))
    deep[-1].attributes = {**MODEL, "gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs}
    assert conversation(deep).turns[0].user == QUESTION
    models = [span(number, number - 1, dict(MODEL)) for number in range(1, 5_001)]
    assert len(conversation(models).turns) == 1


def test_two_spans_of_one_id_are_one_and_that_is_said():
    lost = {CALLS, SOME_MODEL_CALLS, TEXTS, ANSWERS}
    for said, unknown in (({"other": 1}, set()), (TOOL, lost)):
        twin = span(2, 1, said, name="something else", begin=250)
        for spans in ([*genai(), twin], [twin, *genai()]):
            found = conversations_in([Recorded(spans)])
            (turn,) = found.conversations[0].turns
            assert (turn.user, set(turn.untold)) == (QUESTION, unknown)
            assert found.warnings == ("1 span left out: another span of the trace has the same id",)


def test_records_logged_at_once_are_all_there_and_those_sent_twice_are_not():
    """A clock may not tell two records apart that follow each other, and some producers note no time."""
    agent, model = span(1, 0, AGENT, length=200), span(2, 1, dict(MODEL), begin=110)
    for time in (150, 0):
        assert called_by_logs(agent, model, time) == ["find", "delete"]


def called_by_logs(agent, model, time):
    logs = []
    for name in ("find", "delete"):
        call = {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}
        choice = {"index": 0, "message": {"role": "assistant", "tool_calls": [call]}}
        logs.append(LogRecord(model.trace_id, model.span_id, SpanEvent("gen_ai.choice", {}, time, choice)))
    documents = (logs, logs[1:], logs[:1])
    last = span(3, 1, genai()[3].attributes, begin=160)
    sent = [
        Recorded([replace(agent), replace(model, events=[]), last]),
        *(Recorded([], one) for one in documents),
    ]
    (turn,) = conversations_in(sent).conversations[0].turns
    (one,) = invocations_from_events(turn.events)
    return [call.name for call in tool_calls(one.intermediate_data)]


def logfire_function(number, parent, template, **attributes):
    fields = {"logfire.msg_template": template, "gen_ai.system": "openai", **attributes}
    return span(number, parent, fields, scope="logfire.openai_agents")


def test_an_agent_in_a_function_of_the_openai_agents_sdk_makes_none_of_its_calls():
    """Logfire names the template of its messages, not the operation."""
    spans = genai()
    outer = logfire_function(5, 1, "Function: {name}", name="weather", input=json.dumps(ARGS), output="sunny")
    inner = [span(6, 5, genai()[1].attributes, begin=310), span(7, 5, genai()[3].attributes, begin=330)]
    assert called([spans[0], spans[1], replace(outer, start=spans[2].start), *inner, spans[3]]) == ["weather"]
    assert called([spans[0], logfire_function(5, 1, "Function: {name}", name="look", input="{}")]) == ["look"]
    # The name of a handoff is in the model's answer only.
    assert called([spans[0], logfire_function(5, 1, "Handoff: {from_agent} → {to_agent}")]) is None
    chat = {"gen_ai.system": "openai", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 3}
    asked, answer = openai_messages(second=False)
    model = {**chat, "input": json.dumps(asked), "output": json.dumps([answer])}
    assert called([spans[0], span(2, 1, model, scope="logfire.openai_agents"), spans[3]]) == ["weather"]


def test_the_schema_of_a_tool_is_not_its_arguments():
    """OpenInference has no input of a call without arguments."""
    spans = openinference()
    schema = {"type": "object", "properties": {}, "title": "weather_args", "required": []}
    spans[2].attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "weather",
        "tool.parameters": json.dumps(schema),
    }
    (turn,) = conversation(spans).turns
    (one,) = invocations_from_events(turn.events)
    assert [call.args for call in tool_calls(one.intermediate_data)] == [ARGS]
    assert ARGUMENTS in conversation([spans[0], spans[2]]).turns[0].untold


def called(spans):
    """The names of what was called, None where that is unknown."""
    (turn,) = conversation(spans).turns
    (one,) = invocations_from_events(turn.events)
    return None if CALLS in turn.untold else [call.name for call in tool_calls(one.intermediate_data)]


def test_the_span_of_a_tool_without_a_name_is_a_call_of_the_model():
    """A hand-off is named in the model's answer only, as older tools of ADK for Java are in their spans."""
    for name, call in (("handoff to billing", "transfer_to_billing"), ("handoff to billing", "other")):
        spans = openinference()
        for one in spans[1], spans[3]:
            for key, value in one.attributes.items():
                one.attributes[key] = call if value == "weather" else value
        spans[2].name, spans[2].attributes = name, {"openinference.span.kind": "TOOL"}
        assert called(spans) == [call]
        assert called([spans[0], spans[2]]) is None
    java = {"gcp.vertex.agent.tool_call_args": json.dumps(ARGS)}
    returned = {"gcp.vertex.agent.tool_response": "{}", "gcp.vertex.agent.llm_response": "{}"}
    spans = genai()
    spans[2].name, spans[2].attributes = "tool_call [weather]", java
    spans.append(span(5, 1, returned, name="tool_response [weather]", begin=320))
    assert called(spans) == ["weather"]
    spans = genai()
    spans[2].name, spans[2].attributes = "execute_tool weather", {"gen_ai.operation.name": "execute_tool"}
    assert called([spans[0], spans[2]]) == ["weather"]


OUTPUT_TOOL = {"name": "final_result", "outer_typed_dict_key": None}


@pytest.mark.parametrize(
    ("args", "key", "result", "response"),
    [
        ({"city": "Rome"}, None, '{"city":"Rome"}', '{"city":"Rome"}'),
        ({"city": "Rome"}, None, None, '{"city":"Rome"}'),
        ({"city": "Rome"}, None, '{"city":"Rome","people":0}', '{"city":"Rome","people":0}'),
        ({"response": 5}, "response", "5", "5"),
        ({"query": "sky"}, None, "The sky is clear.", "The sky is clear."),
        (None, None, None, None),
    ],
)
def test_the_output_of_pydantic_ai_is_its_response_and_no_call(args, key, result, response):
    spans = genai()
    root, *_, model = spans
    parameters = {"output_tools": [{**OUTPUT_TOOL, "outer_typed_dict_key": key}]}
    part = {"type": "tool_call", "id": "call_2", "name": "final_result"}
    part |= {} if args is None else {"arguments": args}
    outputs = [{"role": "assistant", "parts": [part]}]
    for one in spans[1], model:
        one.attributes["model_request_parameters"] = json.dumps(parameters)
    model.attributes["gen_ai.output.messages"] = json.dumps(outputs)
    if result is not None:
        root.attributes = {**root.attributes, "final_result": result}
    output = span(
        5, 1, {**TOOL, "gen_ai.tool.name": "final_result", "gen_ai.tool.call.id": "call_2"}, begin=900
    )
    output.attributes["logfire.msg"] = "running output function: final_result"
    inner = span(6, 5, {**TOOL, "gen_ai.tool.name": "inner"}, begin=910)
    # Nobody tells what a function made of it where the agent's span does not.
    for recorded, expected in ((spans, response), ([*spans, output, inner], result)):
        (turn,) = conversation(recorded).turns
        (one,) = invocations_from_events(turn.events)
        assert [call.name for call in tool_calls(one.intermediate_data)] == ["weather"]
        is_known = ANSWERS not in turn.untold
        assert (scored_text(one, thoughts=False) if is_known else None) == expected


def test_a_turn_after_an_output_of_pydantic_ai_has_its_own_message():
    parameters = json.dumps({"output_tools": [OUTPUT_TOOL]})
    call = {"type": "tool_call", "id": "call_1", "name": "final_result", "arguments": {"city": "Rome"}}
    done = {"type": "tool_call_response", "id": "call_1", "name": "final_result", "result": "Done."}
    asked = {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}
    said = {"role": "assistant", "parts": [call]}
    thanks = {"role": "user", "parts": [done, {"type": "text", "content": "Thanks"}]}
    spans = []
    for number, inputs in enumerate(([asked], [asked, said, thanks])):
        spans.append(span(2 * number + 1, 0, dict(AGENT), begin=1000 * number + 100, length=400))
        messages = {"gen_ai.input.messages": json.dumps(inputs), "gen_ai.output.messages": json.dumps([said])}
        model = {**MODEL, **messages, "model_request_parameters": parameters}
        spans.append(span(2 * number + 2, 2 * number + 1, model, begin=1000 * number + 200))
    turns = conversation(spans).turns
    assert [(turn.user, dict(turn.untold)) for turn in turns] == [(QUESTION, {}), ("Thanks", {})]


def test_a_prompt_that_asks_pydantic_ai_again_is_no_message_of_the_user():
    """OpenInference writes the last message of a run beside Pydantic AI's own attributes, whoever sent it."""

    def said(role, text):
        return {"role": role, "parts": [{"type": "text", "content": text}]}

    spans, history = [], []
    for number, question in enumerate((QUESTION, "Thanks")):
        first, again = said("assistant", f"draft {number}"), said("user", f"Fix the errors of {number}.")
        answer = said("assistant", f"answer {number}")
        root = {**AGENT, "openinference.span.kind": "AGENT", "pydantic_ai.all_messages": "[]"}
        root["input.value"] = again["parts"][0]["content"]
        spans.append(span(3 * number + 1, 0, root, begin=1000 * number + 100, length=800))
        history.append(said("user", question))
        for place, output in enumerate((first, answer)):
            messages = {"gen_ai.input.messages": json.dumps(history)}
            messages["gen_ai.output.messages"] = json.dumps([output])
            model = {**MODEL, **messages, "openinference.span.kind": "LLM"}
            begin = 1000 * number + 200 + 100 * place
            spans.append(span(3 * number + 2 + place, 3 * number + 1, model, begin=begin))
            history += [output, again] if output is first else [output]
    turns = conversation(spans).turns
    assert [(turn.user, dict(turn.untold)) for turn in turns] == [(QUESTION, {}), ("Thanks", {})]


def langgraph_state(last, form):
    """The final state of a graph of LangGraph whose model gives its output by the tool `Weather`."""
    call = {"name": "Weather", "args": ARGS, "id": "call_1", "type": "tool_call"}
    texts = {
        "tool": ("tool", {"content": "Returning structured response", "tool_call_id": "call_1"}),
        "ai": ("ai", {"content": ANSWER, "tool_calls": []}),
    }
    messages = [("human", {"content": QUESTION}), ("ai", {"content": "", "tool_calls": [call]}), texts[last]]
    if form == "openinference":
        messages = [{"type": kind, "data": {"type": kind, **data}} for kind, data in messages]
        return json.dumps({"messages": messages, "structured_response": ARGS})
    ids = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    made = [
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", ids[kind]], "kwargs": data}
        for kind, data in messages
    ]
    return json.dumps({"outputs": {"messages": made, "structured_response": ARGS}, "kwargs": {"tags": []}})


@pytest.mark.parametrize(
    ("last", "response"),
    # A later turn of the same thread still has the structured response of the first one in its state.
    [("tool", '{"city":"Rome"}'), ("ai", ANSWER)],
)
@pytest.mark.parametrize("form", ["openinference", "openllmetry", "decorated"])
def test_the_structured_response_of_langgraph_is_its_response(last, response, form):
    state = langgraph_state(last, form)
    call = {"type": "tool_call", "id": "call_1", "name": "Weather", "arguments": ARGS}
    said = [
        {"role": "assistant", "parts": [call] if last == "tool" else [{"type": "text", "content": ANSWER}]}
    ]
    asked = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    messages = {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(said)}
    root = {
        "openinference": {
            "openinference.span.kind": "CHAIN",
            "input.value": json.dumps({"messages": [{"role": "user", "content": QUESTION}]}),
            "output.value": state,
        },
        "openllmetry": {**AGENT, "traceloop.span.kind": "workflow", "traceloop.entity.output": state},
        "decorated": {"traceloop.span.kind": "workflow", "traceloop.entity.output": state},
    }[form]
    spans = [span(1, 0, root, begin=100, length=900), span(2, 1, {**MODEL, **messages})]
    (turn,) = conversation(spans).turns
    (one,) = invocations_from_events(turn.events)
    assert (turn.user, scored_text(one, thoughts=False)) == (QUESTION, response)
    assert {ANSWERS, SOME_MODEL_CALLS}.isdisjoint(turn.untold)
    assert [call.name for call in tool_calls(one.intermediate_data)] == ["Weather"] * (last == "tool")


OF_OPENAI = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": "{}"}
OF_LANGCHAIN = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"]}
OF_LANGCHAIN["kwargs"] = {"content": "", "tool_calls": [{"name": "weather", "args": {}, "id": "call_1"}]}

OF_GEMINI = {"candidates": [{"content": {"parts": [{"function_call": {"name": "weather", "args": {}}}]}}]}


@pytest.mark.parametrize(
    "response",
    [
        {"output": [OF_OPENAI]},
        [{"output": [OF_OPENAI]}],
        {"generations": [[{"message": OF_LANGCHAIN}]]},
        OF_GEMINI,
    ],
    ids=["OpenAI", "a stream of OpenAI", "LangChain", "Gemini"],
)
@pytest.mark.parametrize("has_messages", [True, False])
def test_openinference_has_the_whole_response_beside_its_messages(has_messages, response):
    """Messages are without empty arguments; of a stream, there are none."""
    root, first, _, last = openinference()
    name = "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments"
    del first.attributes[name]
    if response is OF_GEMINI:
        del first.attributes[name.replace("function.arguments", "id")]
    first.attributes["output.value"] = json.dumps(response)
    if not has_messages:
        kept = {key: value for key, value in first.attributes.items() if "output_messages" not in key}
        first.attributes = kept
    (turn,) = conversation([root, first, last]).turns
    (one,) = invocations_from_events(turn.events)
    assert [(call.name, call.args) for call in tool_calls(one.intermediate_data)] == [("weather", {})]
    assert ARGUMENTS not in turn.untold


INPUTS_OF_TOOLS = (
    (openinference, "input.value"),
    (langfuse, "langfuse.observation.input"),
    (openllmetry_old, "traceloop.entity.input"),
)


def test_arguments_without_names_are_unknown():
    """Of a text, a list, or what a function got by place."""
    by_place = {"args": ["Rome"], "kwargs": {}}
    for layout, name in INPUTS_OF_TOOLS:
        for given in ("Rome", ["Rome"], by_place, {**by_place, "sanitize_inputs_outputs": True}):
            root, _, tool, _ = layout()
            tool.attributes[name] = given if isinstance(given, str) else json.dumps(given)
            (turn,) = conversation([root, tool]).turns
            assert ARGUMENTS in turn.untold


@pytest.mark.parametrize("more", [{}, {"args": []}, {"args": [], "sanitize_inputs_outputs": False}])
@pytest.mark.parametrize("args", [ARGS, {}])
def test_arguments_by_name_are_those_of_the_call(more, args):
    for layout, name in INPUTS_OF_TOOLS:
        root, _, tool, _ = layout()
        tool.attributes[name] = json.dumps({**more, "kwargs": args})
        (turn,) = conversation([root, tool]).turns
        (one,) = invocations_from_events(turn.events)
        assert [(call.name, call.args) for call in tool_calls(one.intermediate_data)] == [("weather", args)]
        assert ARGUMENTS not in turn.untold


@pytest.mark.parametrize(
    ("scope", "attributes", "variable"),
    [
        ("", {}, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
        ("opentelemetry.instrumentation.openai_v2", {}, "OTEL_INSTRUMENTATION_GENAI_CAPTURE"),
        ("opentelemetry.instrumentation.openai.v1", {}, "TRACELOOP_TRACE_CONTENT"),
        ("app", {"traceloop.workflow.name": "talk"}, "TRACELOOP_TRACE_CONTENT"),
        ("logfire.openai_agents", {}, "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA"),
        ("pydantic-ai", {}, "include_content"),
        ("langsmith", {"langsmith.span.kind": "llm"}, "LangSmith"),
        ("", {"openinference.span.kind": "LLM"}, "OPENINFERENCE_HIDE_INPUTS"),
        ("", {"langfuse.observation.type": "generation"}, "LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED"),
    ],
)
def test_a_hint_names_the_variable_of_the_producer(scope, attributes, variable):
    model = {} if {"openinference.span.kind", "langfuse.observation.type"} & attributes.keys() else MODEL
    (turn,) = conversation([span(1, 0, {**model, **attributes}, scope=scope)]).turns
    assert turn.untold
    assert all(variable in text for text in turn.untold.values())


def test_clocks_that_do_not_agree():
    spans = genai()
    # The tool's machine is a minute behind, the second model's span ends before it begins.
    spans[2].start -= 60_000_000_000
    spans[2].end -= 60_000_000_000
    spans[3].end = spans[3].start - 5
    (turn,) = conversation(spans).turns
    (one,) = invocations_from_events(turn.events)
    assert [call.name for call in tool_calls(one.intermediate_data)] == ["weather"]
    assert scored_text(one, thoughts=False) == ANSWER
    kinds = [event.kind for event in turn.events]
    assert kinds.index("tool_call") < kinds.index("tool_result")
    assert all(event.t >= 0 and (event.duration is None or event.duration >= 0) for event in turn.events)


def test_spans_without_times_and_traces_of_no_agent():
    spans = genai()
    for one in spans:
        one.start = one.end = 0
    assert conversation(spans).turns[0].user == QUESTION
    web = [span(1, 0, {"http.method": "GET"}, trace="7")]
    found = conversations_in([Recorded([*genai(), *web])])
    assert (len(found.conversations), found.warnings) == (1, ("1 trace of no agent left out",))


def message(role, text, **fields):
    return {"role": role, "parts": [{"type": "text", "content": text}], **fields}


def asked_model(number, inputs, outputs, **more):
    attributes = {
        **MODEL,
        "gen_ai.input.messages": json.dumps(inputs),
        "gen_ai.output.messages": json.dumps(outputs),
    }
    return span(number, 1, attributes, **more)


TWO = [message("assistant", text, finish_reason="stop") for text in (ANSWER, "It rains in Rome.")]
OLD_CHOICES = {
    "gen_ai.operation.name": "chat",
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": QUESTION,
    **{
        f"gen_ai.completion.{number}.{name}": value
        for number, text in enumerate((ANSWER, "It rains."))
        for name, value in (("role", "assistant"), ("content", text), ("finish_reason", "stop"))
    },
}
OPENINFERENCE_CHOICES = {
    "openinference.span.kind": "LLM",
    "llm.invocation_parameters": '{"n": 2}',
    **{
        f"llm.output_messages.{number}.message.{name}": value
        for number, text in enumerate((ANSWER, "It rains."))
        for name, value in (("role", "assistant"), ("content", text))
    },
}
CHOICE_EVENTS = [
    SpanEvent("gen_ai.choice", {"index": number, "message": json.dumps({"content": text})}, 0)
    for number, text in enumerate((ANSWER, "It rains."))
]


@pytest.mark.parametrize(
    "model",
    [
        asked_model(2, [message("user", QUESTION)], TWO),
        span(2, 1, OLD_CHOICES),
        span(2, 1, OPENINFERENCE_CHOICES),
        span(2, 1, MODEL, events=CHOICE_EVENTS),
    ],
    ids=["conventions", "openllmetry", "openinference", "events"],
)
def test_several_choices_are_no_response_of_all_of_them(model):
    (turn,) = conversation([span(1, 0, AGENT, begin=100, length=900), model]).turns
    assert "several choices" in turn.untold[ANSWERS]
    (one,) = invocations_from_events(turn.events)
    assert "rain" not in (scored_text(one, thoughts=False) or "")


def test_equal_choices_are_a_response():
    model = asked_model(2, [message("user", QUESTION)], [TWO[0], TWO[0]])
    (turn,) = conversation([span(1, 0, AGENT, begin=100, length=900), model]).turns
    assert ANSWERS not in turn.untold


def with_later_model(inputs, outputs, output=None):
    root = {**AGENT, **({"gen_ai.output.messages": json.dumps(output)} if output else {})}
    return conversation(
        [
            span(1, 0, root, begin=100, length=900),
            asked_model(2, [message("user", QUESTION)], [message("assistant", ANSWER)]),
            asked_model(4, inputs, outputs),
        ]
    )


def test_a_check_of_the_response_is_not_the_response():
    check = [message("user", f"Is this safe?\n{ANSWER}")], [message("assistant", "safe")]
    (turn,) = with_later_model(*check).turns
    assert "may have checked" in turn.untold[ANSWERS]
    (turn,) = with_later_model(*check, output=[message("assistant", ANSWER)]).turns
    assert ANSWERS not in turn.untold
    (one,) = invocations_from_events(turn.events)
    assert scored_text(one, thoughts=False) == ANSWER
    history = [message("user", QUESTION), message("assistant", ANSWER), message("user", "Sure?")]
    later = with_later_model(history, [message("assistant", "Yes.")])
    assert all(ANSWERS not in turn.untold for turn in later.turns)


@pytest.mark.parametrize(
    ("begin", "parent", "is_known"),
    [(150, 1, False), (300, 1, True), (150, 2, True)],
    ids=["in parallel", "one after the other", "one in the other"],
)
def test_the_last_response_of_agents_in_parallel_is_unknown(begin, parent, is_known):
    asked = [message("user", QUESTION)]
    spans = [
        span(1, 0, {"gen_ai.operation.name": "invoke_workflow"}, begin=100, length=900),
        span(2, 1, AGENT, begin=110, length=180),
        asked_model(3, asked, [message("assistant", "Slow.")], begin=120, length=160),
        span(4, parent, {**AGENT, "gen_ai.agent.name": "other"}, begin=begin, length=30),
        asked_model(5, asked, [message("assistant", ANSWER)], begin=begin, length=20),
    ]
    spans[2].parent_id, spans[4].parent_id = spans[1].span_id, spans[3].span_id
    (turn,) = conversation(spans).turns
    assert (ANSWERS not in turn.untold) == is_known


@pytest.mark.parametrize(
    ("content", "advice"),
    [({}, "experimental_telemetry: {isEnabled: true,"), ({"ai.response.text": ANSWER}, "does not read")],
)
def test_the_ai_sdk_has_an_option_and_no_variable(content, advice):
    attributes = {
        "ai.operationId": "ai.generateText.doGenerate",
        "gen_ai.system": "openai.chat",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.usage.input_tokens": 3,
    }
    (turn,) = conversation([span(1, 0, {**attributes, **content}, scope="ai")]).turns
    assert advice in turn.untold[ANSWERS]
    assert "OTEL_" not in turn.untold[ANSWERS]
