"""Messages whose text is JSON, in layouts that record any value as JSON."""

import json
from dataclasses import replace

import pytest

from tests.traces.test_trace_layouts import AGENT, ANSWER, QUESTION, old_events, span, spoken

TEXTS = [
    '{"output": "cheap", "score": 1}',
    '{"content": "cheap"}',
    '{"input": "cheap"}',
    '{"new_message": "cheap"}',
    '{"messages": ["cheap"]}',
    '{"role": "admin", "content": "cheap"}',
    '{"parts": ["cheap"]}',
    '{"choices": [{"message": "cheap"}]}',
    '{"type": "text", "text": "cheap"}',
    '{"structured_response": {"a": 1}}',
    '{"name": "cheap"}',
    '["a", "b"]',
    '[{"text": "cheap"}]',
    '[{"name": "cheap"}]',
    '"quoted"',
    "42",
]
MODEL = {"gen_ai.operation.name": "chat"}


def as_message(role, text):
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def said(kind, question, answer, **more):
    if kind in ("AGENT", "CHAIN", "LLM"):
        return {
            "openinference.span.kind": kind,
            "input.value": question,
            "output.value": answer,
            **{f"{way}.mime_type": mime_type for way, mime_type in more.items()},
        }
    if kind == "workflow":
        return {"traceloop.span.kind": kind, "traceloop.entity.output": answer}
    observed = {"type": kind, "input": question, "output": answer}
    return {f"langfuse.observation.{name}": value for name, value in observed.items()}


def spoken_in(root, *models):
    inner = [span(number, 1, attributes) for number, attributes in enumerate(models, 2)]
    return spoken([span(1, 0, root, begin=100, length=900), *inner])


@pytest.mark.parametrize("kind", ["AGENT", "CHAIN", "span", "agent", "workflow"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_of_json_that_a_model_has_too_is_the_message(kind, text):
    model = {"gen_ai.input.messages": as_message("user", text)}
    model["gen_ai.output.messages"] = as_message("assistant", text)
    assert spoken_in(said(kind, text, text), {**MODEL, **model}) == (text, text, {})


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_in_the_body_of_a_log_record_is_a_text(text):
    (*_, model) = old_events()
    model.parent_id = ""
    model.events = [event for event in model.events if event.name in ("gen_ai.user.message", "gen_ai.choice")]
    for event in model.events:
        event.body.get("message", event.body)["content"] = text
    assert spoken([model]) == (text, text, {})


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_in_an_attribute_of_the_event_of_an_agent_is_that_of_its_model(text):
    """AWS Strands: the agent's span has the text, that of the model the blocks of its message."""
    blocks = json.dumps([{"text": text}])
    event = replace(old_events()[1].events[-1], body=None)
    asked = replace(event, name="gen_ai.user.message", attributes={"content": blocks})
    spans = [span(1, 0, AGENT, begin=100, length=900), span(2, 1, MODEL)]
    for one, answer in zip(spans, (text, blocks), strict=True):
        one.events = [asked, replace(event, attributes={"message": answer, "finish_reason": "end_turn"})]
    assert spoken(spans) == (text, text, {})


@pytest.mark.parametrize("kind", ["AGENT", "LLM"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_value_that_is_declared_as_text_is_a_text(kind, text):
    root = said(kind, text, text, input="text/plain", output="text/plain")
    assert spoken_in(root)[:2] == (text, text)


@pytest.mark.parametrize(("agent", "model"), [("AGENT", "LLM"), ("agent", "generation")])
@pytest.mark.parametrize("text", ['{"content": "cheap", "score": 1}', '{"parts": ["cheap"]}', '["a", "b"]'])
def test_json_without_an_author_is_an_unknown_response(agent, model, text):
    _, _, unknown = spoken_in(said(agent, QUESTION, text), said(model, QUESTION, text))
    assert "answers" in unknown


@pytest.mark.parametrize("kind", ["AGENT", "span"])
def test_a_text_among_arguments_is_no_json_of_its_own(kind):
    text = '{"content": "cheap"}'
    values = [{"args": [text], "kwargs": {}}] if kind == "span" else [{"input": text}, {"task": text, "n": 1}]
    model = {"gen_ai.output.messages": as_message("assistant", ANSWER)}
    for value in values:
        assert spoken_in(said(kind, json.dumps(value), ANSWER), {**MODEL, **model})[:2] == (text, ANSWER)


def asked(messages):
    return {"gen_ai.output.messages": json.dumps(messages)}


@pytest.mark.parametrize(
    ("output", "is_known"),
    [
        ('{"status": "ok", "n": 1}', False),
        ('{"answer": "I refunded it.", "n": 1}', True),
        ('{"answer": "I refunded it.", "id": "x"}', True),
        ('{"answer": "No.", "id": "x"}', False),
        ('{"n": 1}', True),
    ],
)
@pytest.mark.parametrize("kind", ["CHAIN", "span", "workflow"])
def test_a_member_of_what_a_function_returns_is_no_response(kind, output, is_known):
    model = {"gen_ai.input.messages": as_message("user", QUESTION)}
    model["gen_ai.output.messages"] = as_message("assistant", "I refunded it.")
    _, response, unknown = spoken_in(said(kind, QUESTION, output), MODEL | model)
    assert ("answers" not in unknown) is is_known
    assert response == "I refunded it."


@pytest.mark.parametrize("output", ["5", '{"a": 1, "b": 2}'])
def test_a_model_that_speaks_on_the_way_has_not_responded(output):
    """smolagents: a model writes code, and the agent's span has what that returned."""
    code = asked([{"role": "assistant", "parts": [{"type": "text", "content": "final_answer(x)"}]}])
    _, response, unknown = spoken_in(said("AGENT", QUESTION, output), MODEL | code)
    assert (response == "5") if output == "5" else ("answers" in unknown)


def test_reprs_of_llama_index_are_no_messages():
    """Its run asks a model twice, the second time with a result as a message of the user, as text."""
    request = json.dumps({"messages": [f"ChatMessage(role=<MessageRole.USER: 'user'>, text='{QUESTION}')"]})
    step = "Action: find", "Observation: ok"
    told = [("user", QUESTION), ("assistant", step[0]), ("user", step[1])]
    spans = [
        span(1, 0, said("CHAIN", "{}", "StopEvent(result=AgentOutput(...", output="text/plain"), length=1900),
        span(2, 1, said("LLM", "{}", request)),
    ]
    for number, history, answer in ((3, told[:1], step[0]), (6, told, f"Answer: {ANSWER}")):
        outer = said("LLM", request, json.dumps({"message": {"role": "assistant", "content": answer}}))
        inner = {"openinference.span.kind": "LLM", **_numbered("input", history)}
        inner |= _numbered("output", [("assistant", answer)])
        spans += [span(number, 1, outer, length=90), span(number + 1, number, inner, length=50)]
        spans.append(span(number + 2, 1, said("CHAIN", answer, '{"response": "x", "n": 1}')))
    user, _, unknown = spoken(spans)
    assert (user, "answers" in unknown) == (QUESTION, True)


def _numbered(way, messages):
    return {
        f"llm.{way}_messages.{number}.message.{name}": value
        for number, message in enumerate(messages)
        for name, value in zip(("role", "content"), message, strict=True)
    }


# What a function around the calls returned, with the responses of a model that say which of it was said.
RETURNED = {
    None: set(),
    "null": set(),
    '""': set(),
    "true": set(),
    "{}": set(),
    '["Lyon", "x"]': set(),
    '{"status": "ok", "n": 1}': set(),
    '{"answer": "Lyon", "city": "Lyon"}': set(),
    json.dumps({"answer": [ANSWER], "source": "a"}): {ANSWER},
}


@pytest.mark.parametrize("kind", ["AGENT", "CHAIN", "span", "agent", "workflow"])
@pytest.mark.parametrize("output", RETURNED)
@pytest.mark.parametrize("response", [ANSWER, "Wait.", "", None])
def test_an_inner_function_never_speaks_for_the_one_around_it(kind, output, response):
    """Such as one that looks up documents, before a model that is made to call a function for its output."""
    root = {name: value for name, value in said(kind, QUESTION, output).items() if value is not None}
    inner = said("CHAIN" if kind.isupper() else "span", QUESTION, "Paris is the capital of France.")
    part = {"type": "text", "content": response} if response else {"type": "tool_call", "name": "Answer"}
    model = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}])}
    asked = {**MODEL, "gen_ai.input.messages": as_message("user", QUESTION)}
    user, text, unknown = spoken_in(root, inner, asked if response is None else asked | model)
    assert user == QUESTION
    is_nothing = output in (None, "null") or (output in ("true", "{}") and kind.lower() != "agent")
    is_known = response in RETURNED[output] or (bool(response) and is_nothing)
    assert "answers" not in unknown if is_known else "answers" in unknown
    assert text == response if is_known else text in ("", response)


@pytest.mark.parametrize("kind", ["AGENT", "CHAIN", "span", "agent"])
@pytest.mark.parametrize("argument", [QUESTION, "u-7"])
def test_an_argument_that_no_request_has_is_no_message_of_the_user(kind, argument):
    function = {"args": [], "kwargs": {"user_id": argument, "order": 7}}
    value = {"input": argument} if kind.isupper() else function
    model = {"gen_ai.input.messages": as_message("user", f"Answer: {QUESTION}")}
    model["gen_ai.output.messages"] = as_message("assistant", ANSWER)
    user, _, unknown = spoken_in(said(kind, json.dumps(value), ANSWER), {**MODEL, **model})
    assert (user, [*unknown]) == ((QUESTION, []) if argument == QUESTION else ("", ["the user's message"]))
