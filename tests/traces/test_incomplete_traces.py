"""`evaltui score` on traces of which a part is missing: what it would have said is unknown, not empty."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from evaltui import invocations_from_events
from evaltui.core.model.eval_set import tool_calls, tool_responses
from evaltui.traces.conversations import conversations_in
from evaltui.traces.span import Recorded
from tests.commands.command_line import call
from tests.eval_data import make_case, make_turn, write_eval_set
from tests.traces.test_trace_layouts import (
    AGENT,
    ANSWER,
    ARGS,
    LAYOUTS,
    MODEL,
    QUESTION,
    RESULT,
    genai,
    langfuse,
    old_events,
    span,
)
from tests.traces.written_traces import attributes_of

JUDGING = """
import json, pathlib


def judge(prompt):
    pathlib.Path("asked.txt").write_text(prompt)
    holds = "sunny\\"" in prompt
    label = "supported" if holds else "unsupported"
    if "The rubrics" in prompt:
        return json.dumps({"id": "kind", "rationale": "So it is.", "verdict": "yes" if holds else "no"})
    return json.dumps({"sentence": 1, "label": label, "reason": "So it is."})


def told(actual, expected, criterion):
    return "sunny" in str(actual.intermediate_data)
"""
OPTIONS = {"judge_model": "judging:judge", "num_samples": 1}
RUBRICS = [{"rubric_id": "kind", "rubric_content": {"text_property": "It says what the tool said."}}]
CRITERIA = {
    "hallucinations_v1": {"threshold": 1.0, "judge_model_options": OPTIONS},
    "rubric_based_final_response_quality_v1": {
        "threshold": 1.0,
        "judge_model_options": OPTIONS,
        "rubrics": RUBRICS,
    },
}
# The bodies of old events are in log records.
OF_LAYOUTS = pytest.mark.parametrize(
    "layout", [one for one in LAYOUTS if one is not old_events], ids=lambda one: one.__name__
)
CALLED = {"id": "call_1", "name": "weather", "args": ARGS}


@pytest.fixture
def score(tmp_path, monkeypatch):
    """Exit code, the verdict, and what each metric says, of spans against the case of their question."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judging.py").write_text(JUDGING)

    def score(spans, criteria=None, functions=(), *, called=(CALLED,), texts=(), config=None):
        write_eval_set(
            tmp_path,
            "s",
            make_case(
                "weather",
                make_turn(
                    QUESTION,
                    ANSWER,
                    intermediate_data={
                        "tool_uses": list(called),
                        "intermediate_responses": [["desk", [{"text": text}]] for text in texts],
                    },
                ),
            ),
        )
        if criteria is not None:
            own = {name: {"function": f"judging.{name}", "threshold": 1.0} for name in functions}
            config = {"criteria": criteria, "evaltui": {"criteria": own}}
        if config is not None:
            (tmp_path / "test_config.json").write_text(json.dumps(config))
        (tmp_path / "trace.json").write_text(json.dumps([as_otlp(one) for one in spans]))
        code = call("score", "trace.json", "--sets", "s.evalset.json", "--report", "json=r.json")
        (case,) = json.loads((tmp_path / "r.json").read_text())["cases"]
        said = {
            one["name"]: (one["status"], one["reason"])
            for one in case["metrics"]
            if one["status"] != "INFORMATIONAL"
        }
        return code, case["status"], said

    return score


def as_otlp(one):
    return {
        "traceId": one.trace_id,
        "spanId": one.span_id,
        "parentSpanId": one.parent_id,
        "name": one.name,
        "startTimeUnixNano": str(one.start),
        "endTimeUnixNano": str(one.end),
        "status": {"code": 2, "message": one.message} if one.status == "error" else {},
        "attributes": attributes_of(one.attributes),
        "events": [
            {"name": event.name, "attributes": attributes_of(event.attributes)} for event in one.events
        ],
    }


def without_result(spans, *, span_too=True):
    """The spans, in which nothing tells what the tool returned."""
    for one in spans:
        if span_too:
            one.attributes.pop("gen_ai.tool.call.result", None)
        if "gen_ai.input.messages" in one.attributes:
            messages = json.loads(one.attributes["gen_ai.input.messages"])
            for part in (part for message in messages for part in message["parts"]):
                part.pop("response", None)
            one.attributes["gen_ai.input.messages"] = json.dumps(messages)
    return spans


def test_no_judge_and_no_function_decides_without_the_result_of_a_tool(score, tmp_path):
    names = (*CRITERIA, "told")
    code, status, said = score(genai(), CRITERIA, ["told"])
    assert (code, status) == (0, "PASSED")
    assert [said[name][0] for name in names] == ["PASSED"] * 3
    assert score(without_result(genai(), span_too=False), CRITERIA, ["told"])[:2] == (0, "PASSED")
    (tmp_path / "asked.txt").unlink()
    code, status, said = score(without_result(genai()), CRITERIA, ["told"])
    assert (code, status) == (3, "NOT_EVALUATED")
    for name in names:
        assert said[name][0] == "NOT_EVALUATED"
        assert said[name][1].startswith("the tool results of turn 1 are unknown: set OTEL_INSTRUMENTATION_")
    assert not (tmp_path / "asked.txt").exists()
    # Neither are the results that a call without a span had.
    spans = [one for one in without_result(genai()) if "weather" not in one.name]
    assert score(spans, CRITERIA, ["told"])[2]["hallucinations_v1"][0] == "NOT_EVALUATED"


def test_a_tool_that_returned_null_returned_something_known(score):
    spans = without_result(genai())
    spans[2].attributes["gen_ai.tool.call.result"] = "null"
    said = score(spans, CRITERIA)[2]
    assert said["hallucinations_v1"] == ("FAILED", said["hallucinations_v1"][1])


def test_metrics_that_read_no_results_do_not_need_them(score):
    code, status, _ = score(without_result(genai()))
    assert (code, status) == (0, "PASSED")


@pytest.mark.parametrize("lost", [[3], [2, 3]], ids=["the last model", "all after the first model"])
def test_an_answer_in_a_span_that_is_missing_is_unknown(score, lost):
    spans = [one for number, one in enumerate(genai()) if number not in lost]
    code, status, said = score(spans)
    assert (code, status) == (3, "NOT_EVALUATED")
    assert said["tool_trajectory_avg_score"][0] == "NOT_EVALUATED"
    verdict, reason = said["response_match_score"]
    assert verdict == "NOT_EVALUATED"
    assert reason.startswith("the responses of turn 1 are unknown: the trace ends after a call of a tool")
    assert "flush" in reason
    limit = {"criteria": {}, "evaltui": {"criteria": {"seconds": 1000}}}
    assert score(genai(), config=limit)[2]["seconds"][0] == "PASSED"
    assert score(spans, config=limit)[2]["seconds"] == ("NOT_EVALUATED", "the time of a turn is unknown")


def test_an_agent_of_which_nothing_is_told_may_have_answered_last(score):
    """The second of two agents in a row, without the call of its model."""
    inputs, outputs = (genai()[1].attributes[f"gen_ai.{one}.messages"] for one in ("input", "output"))
    outputs = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "A draft."}]}])
    model = {**MODEL, "gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs}
    spans = [
        span(1, 0, AGENT, begin=100, length=900),
        span(2, 1, AGENT | {"gen_ai.agent.name": "writer"}, begin=110, length=100),
        span(3, 2, model, begin=120),
        span(4, 1, AGENT | {"gen_ai.agent.name": "editor"}, begin=300, length=100),
    ]
    code, status, said = score(spans, called=())
    assert (code, status, said["response_match_score"][0]) == (3, "NOT_EVALUATED", "NOT_EVALUATED")


def test_calls_that_only_a_later_request_tells_of_are_unknown(score):
    """The spans of one model and one tool are missing, and the last request has both."""
    first, second = genai()[1].attributes, genai()[3].attributes
    messages = json.loads(second["gen_ai.input.messages"])
    hidden = {"type": "tool_call", "id": "call_2", "name": "delete_all", "arguments": {}}
    returned = {"type": "tool_call_response", "id": "call_2", "response": RESULT}
    messages += [{"role": "assistant", "parts": [hidden]}, {"role": "tool", "parts": [returned]}]
    spans = genai()
    spans[1].attributes = first
    spans[3].attributes = second | {"gen_ai.input.messages": json.dumps(messages)}
    code, status, said = score(spans)
    assert (code, status) == (3, "NOT_EVALUATED")
    assert "a request has calls that no span tells of" in said["tool_trajectory_avg_score"][1]


@OF_LAYOUTS
@pytest.mark.parametrize("has_agent", [True, False], ids=["in an agent", "alone"])
def test_calls_that_only_the_first_request_tells_of_are_unknown(score, layout, has_agent):
    """Nobody watched the tool, and the span of the model that called it is missing."""
    spans = layout()
    spans = [spans[0], spans[3]] if has_agent else [spans[3]]
    for called in [(CALLED,), ()]:
        code, status, said = score(spans, called=called)
        assert (code, status) == (3, "NOT_EVALUATED")
        assert "a request has calls that no span tells of" in said["tool_trajectory_avg_score"][1]
        assert said["response_match_score"][0] == "PASSED"


@pytest.mark.parametrize("form", ["messages", "events"])
def test_a_call_that_only_a_request_tells_of_is_unknown_without_its_result(form):
    """Of what a tool without a return value returned, some instrumentations record nothing."""
    span = (genai if form == "messages" else old_events)()[3]
    if form == "messages":
        messages = json.loads(span.attributes["gen_ai.input.messages"])
        kept = [message for message in messages if message["role"] != "tool"]
        span.attributes["gen_ai.input.messages"] = json.dumps(kept)
    for event in span.events:
        if event.name == "gen_ai.tool.message":
            event.body.pop("content")
    ((turn,),) = (one.turns for one in conversations_in([Recorded([span])]).conversations)
    assert "a request has calls that no span tells of" in turn.untold["tool calls"]


@OF_LAYOUTS
def test_calls_are_unknown_where_the_only_span_is_a_model_without_its_request(score, layout):
    """Calls may have been made before it, in a trace of its own."""
    last = layout()[3]
    last.attributes |= {"session.id": "weather"}
    last.attributes = {
        name: value
        for name, value in last.attributes.items()
        if not any(part in name for part in ("input", "prompt", "request"))
    }
    for event in last.events:
        event.attributes.pop("gen_ai.input.messages", None)
    code, status, said = score([last], called=())
    assert (code, status) == (3, "NOT_EVALUATED")
    # The last span names no session in every layout, and what is paired is not scored by calls.
    assert said.get("tool_trajectory_avg_score", ("NOT_EVALUATED",))[0] == "NOT_EVALUATED"


def test_a_known_response_to_an_unknown_message_is_of_no_case_that_nothing_names(score):
    """Not even where conversation and case are the only ones."""
    root, _, _, last = genai()
    root.attributes = {"gen_ai.operation.name": "invoke_agent"}
    del last.attributes["gen_ai.input.messages"]
    code, status, said = score([root, last], called=())
    assert (code, status) == (3, "NOT_EVALUATED")
    assert "no conversation in the traces is of this case" in said["conversation"][1]


def test_results_of_earlier_turns_are_no_hidden_calls():
    """The history before the message of the user has calls, as in every later turn."""
    spans = [genai()[0], genai()[3]]
    messages = json.loads(spans[1].attributes["gen_ai.input.messages"])
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "It was grey."}]}, messages[0]]
    spans[1].attributes["gen_ai.input.messages"] = json.dumps(messages + said)
    ((*_, turn),) = (one.turns for one in conversations_in([Recorded(spans)]).conversations)
    (actual,) = invocations_from_events(turn.events)
    assert (dict(turn.untold), tool_calls(actual.intermediate_data)) == ({}, [])


def test_results_of_several_calls_in_one_message_are_each_of_its_own_call(score):
    calls = [{"type": "tool_call", "id": f"c{n}", "name": "weather", "arguments": {"n": n}} for n in (1, 2)]
    skies = {"c1": "sunny", "c2": "grey"}
    returned = [{"type": "tool_call_response", "id": one, "response": {"sky": skies[one]}} for one in skies]
    first, second = genai()[1].attributes, genai()[3].attributes
    asked = json.loads(first["gen_ai.input.messages"])
    asks = [{"role": "assistant", "parts": calls}]
    again = [*asked, *asks, {"role": "tool", "parts": returned[::-1]}]
    spans = [one for one in genai() if "weather" not in one.name]
    spans[1].attributes = first | {"gen_ai.output.messages": json.dumps(asks)}
    spans[2].attributes = second | {"gen_ai.input.messages": json.dumps(again)}
    ((turn,),) = (one.turns for one in conversations_in([Recorded(spans)]).conversations)
    (actual,) = invocations_from_events(turn.events)
    found = tool_responses(actual.intermediate_data)
    assert {one.id.partition(":")[0]: one.response["sky"] for one in found} == skies


def test_what_a_turn_spent_is_unknown_where_a_call_of_a_model_may_be_missing(score):
    limits = {name: {"threshold": 1000} for name in ("tokens", "seconds")}
    criteria = {"criteria": {}, "evaltui": {"criteria": limits}}
    assert score(genai(), config=criteria)[1] == "PASSED"
    said = score(genai()[:3], config=criteria)[2]
    assert said["tokens"] == ("NOT_EVALUATED", "model calls of the agent cannot be seen")


@OF_LAYOUTS
def test_what_a_turn_spent_and_said_is_unknown_where_no_model_called_its_tool(score, layout):
    """The span of the first model is missing, that of the tool is there."""
    spans = layout()
    del spans[1]
    tokens = {"criteria": {"tokens": {"threshold": 50}}}
    code, status, said = score(
        spans, config={"criteria": {"intermediate_match_score": 1.0}, "evaltui": tokens}, texts=["Wait."]
    )
    assert (code, status) == (3, "NOT_EVALUATED")
    assert said["tokens"] == ("NOT_EVALUATED", "model calls of the agent cannot be seen")
    verdict, reason = said["intermediate_match_score"]
    assert verdict == "NOT_EVALUATED"
    assert "a request has results of calls that no span of a model asks for" in reason
    assert score(spans, config={"criteria": {"tool_trajectory_avg_score": 1.0}})[1] == "PASSED"


@OF_LAYOUTS
def test_the_rest_of_a_turn_is_unknown_where_the_only_model_of_a_trace_calls_a_tool(score, layout):
    """Nobody watched an agent or a tool, and the span of the last model is missing: calls may be, too."""
    code, status, said = score(layout()[1:2])
    assert (code, status) == (3, "NOT_EVALUATED")
    assert said["tool_trajectory_avg_score"][0] == "NOT_EVALUATED"
    assert said["response_match_score"][0] == "NOT_EVALUATED"


@pytest.mark.parametrize(
    ("response", "status"),
    [
        (None, "NOT_EVALUATED"),
        (ANSWER, "NOT_EVALUATED"),
        (json.dumps(RESULT), "PASSED"),
        (json.dumps(ARGS), "PASSED"),
    ],
)
@pytest.mark.parametrize("lost", [[3], [2, 3]], ids=["the last model", "all after the first model"])
def test_calls_after_the_last_model_are_known_where_its_call_is_the_response(score, response, status, lost):
    """An agent that stops at a tool responds with the result, or with the arguments as structured output."""
    spans = [one for number, one in enumerate(genai()) if number not in lost]
    if response is not None:
        parts = [{"type": "text", "content": response}]
        messages = json.dumps([{"role": "assistant", "parts": parts}])
        spans[0].attributes = AGENT | {"gen_ai.output.messages": messages}
    is_seen = response != json.dumps(RESULT) or 2 not in lost
    config = {"criteria": {"tool_trajectory_avg_score": 1.0}}
    assert score(spans, config=config)[1] == (status if is_seen else "NOT_EVALUATED")


def test_calls_are_unknown_while_the_spans_around_them_are_missing(score):
    """A span is sent when it ends: the agent may go on, or its later spans are lost."""
    config = {"criteria": {"tool_trajectory_avg_score": 1.0}}
    assert score(genai()[1:3], config=config)[1] == "NOT_EVALUATED"
    assert score(genai()[1:], config=config)[1] == "PASSED"
    spans = [genai()[0], genai()[2]]
    assert score(spans, config=config)[1] == "PASSED"
    spans[0].end = 0
    assert score(spans, config=config)[1] == "NOT_EVALUATED"


def test_a_number_that_json_does_not_have_is_the_same_as_in_a_run(score):
    spans = genai()
    for one in spans[2], spans[1]:
        one.attributes = {
            name: value.replace('"Rome"', "NaN") if isinstance(value, str) else value
            for name, value in one.attributes.items()
        }
    config = {"criteria": {"tool_trajectory_avg_score": 1.0}}
    assert score(spans, called=({**CALLED, "args": {"city": None}},), config=config)[1] == "FAILED"
    assert score(spans, called=({**CALLED, "args": {"city": "NaN"}},), config=config)[1] == "PASSED"


def test_calls_are_unknown_where_the_record_of_a_response_was_lost(score):
    """Content is recorded, as the other response shows; no span of a tool does."""
    config = {"criteria": {"tool_trajectory_avg_score": 1.0}}
    spans = [one for one in genai() if "weather" not in one.name]
    spans[2].attributes["gen_ai.input.messages"] = spans[1].attributes["gen_ai.input.messages"]
    assert score(spans, config=config)[1] == "PASSED"
    del spans[1].attributes["gen_ai.output.messages"]
    assert score(spans, called=(), config=config)[1] == "NOT_EVALUATED"


def test_a_request_that_is_an_exception_only_is_unknown(score):
    """LangGraph interrupts a graph that asks a person by an exception, in spans without an error."""
    spans = genai()[:3]
    interrupt = {"exception.type": "langgraph.errors.GraphInterrupt", "exception.message": "(Interrupt(),)"}
    spans[2].events = [SimpleNamespace(name="exception", attributes=interrupt)]
    request = {"id": "call_2", "name": "adk_request_input", "args": {"message": "Sure?"}}
    code, _, said = score(spans, called=(CALLED, request))
    assert (code, {status for status, _ in said.values()}) == (3, {"NOT_EVALUATED"})


WORKFLOW = span(8, 0, AGENT | {"gen_ai.agent.name": "workflow"}, begin=50, length=960, status="ok")
STEP = span(9, 1, {}, begin=105, length=800, status="error", message="max turns exceeded")


def failed_agent():
    spans = genai()[:3]
    spans[0].parent_id, spans[0].status, spans[0].message = WORKFLOW.span_id, "error", "max turns exceeded"
    return [WORKFLOW, *spans]


def failed_step():
    spans = genai()[:3]
    for one in spans[1:]:
        one.parent_id = STEP.span_id
    return [spans[0], STEP, *spans[1:]]


def failed_answer():
    """A guard refuses the response of the last model."""
    return [*failed_agent(), genai()[3]]


def failed_and_replaced():
    """What runs the agent responds in its place."""
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}])
    return [replace(WORKFLOW, attributes=AGENT | {"gen_ai.output.messages": said}), *failed_agent()[1:]]


def failed_and_repeated():
    """A step fails, and the model is asked again."""
    return [*failed_step(), replace(genai()[3], start=STEP.end, end=STEP.end + 10)]


def failed_request():
    """A request over HTTP fails in a call of the model, which tries it again."""
    spans = genai()
    return [*spans, span(7, int(spans[3].span_id, 16), {}, begin=401, length=2, status="error")]


@pytest.mark.parametrize(
    ("spans", "status"),
    [
        (failed_agent, "ERROR"),
        (failed_step, "ERROR"),
        (failed_answer, "ERROR"),
        (failed_and_replaced, "PASSED"),
        (failed_and_repeated, "PASSED"),
        (failed_request, "PASSED"),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_an_agent_that_failed_below_the_first_span_has_failed(score, spans, status):
    """The OpenAI Agents SDK has the error in the span of the agent or of its step, not in that of the run."""
    assert score(spans(), config={"criteria": {"tool_trajectory_avg_score": 1.0}})[1] == status


def test_an_agent_whose_last_model_failed_may_have_answered_itself(score):
    spans = genai()
    del spans[3].attributes["gen_ai.output.messages"]
    spans[3].status = "error"
    assert score(spans)[2]["response_match_score"][0] == "NOT_EVALUATED"


def test_a_text_before_the_response_is_unknown_where_a_model_is(score):
    config = {"criteria": {"intermediate_match_score": 1.0}}
    spans = genai()
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "Let me see."}, *_calls(spans[1])]}]
    spans[1].attributes["gen_ai.output.messages"] = json.dumps(said)
    assert score(spans, config=config, texts=["Let me see."])[1] == "PASSED"
    del spans[1].attributes["gen_ai.output.messages"]
    status, reason = score(spans, config=config, texts=["Let me see."])[2]["intermediate_match_score"]
    assert status == "NOT_EVALUATED"
    assert reason.startswith("the intermediate responses of turn 1 are unknown: set OTEL_INSTRUMENTATION_")


def _calls(one):
    return json.loads(one.attributes["gen_ai.output.messages"])[0]["parts"]


def without_texts(spans):
    """The spans as Pydantic AI writes them without content: parts of messages have types alone."""
    for one in spans:
        for name in ("gen_ai.input.messages", "gen_ai.output.messages"):
            messages = json.loads(one.attributes.get(name, "[]"))
            for message in messages:
                for part in message["parts"]:
                    part.pop("content", None)
            if messages:
                one.attributes[name] = json.dumps(messages)
    return spans


@pytest.mark.parametrize("thought", [(), ({"type": "thinking", "content": "Rome, then."},)])
def test_a_text_of_which_only_the_type_is_recorded_is_unknown(score, thought):
    spans = without_texts(genai())
    (answer,) = json.loads(spans[-1].attributes["gen_ai.output.messages"])
    answer["parts"] = [*thought, *answer["parts"]]
    spans[-1].attributes["gen_ai.output.messages"] = json.dumps([answer])
    code, status, said = score(spans)
    assert (code, status) == (3, "NOT_EVALUATED")
    assert said["tool_trajectory_avg_score"][0] == "PASSED"
    assert said["response_match_score"][1].startswith("the responses of turn 1 are unknown: set OTEL_")


@pytest.mark.parametrize(
    ("role", "said"),
    [
        ("user", f"For context: I am in Rome. {QUESTION}"),
        ("user", f"For context: [ticket 12] {QUESTION}"),
        ("system", "The user is idle. Tell the weather in Rome."),
    ],
)
def test_what_is_said_after_an_answer_is_the_message_or_it_is_unknown(score, role, said):
    """Unknown where google-adk would tell of another agent so, and where no user said it."""
    before = [
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Where?"}]},
    ]
    asked = [*before, {"role": role, "parts": [{"type": "text", "content": said}]}]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    told = {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(answer)}
    # It is the second message: the case of the first one is not judged by its response.
    code, status, _ = score([span(1, 0, AGENT), span(2, 1, {**MODEL, **told})], called=())
    assert (code, status) == (3, "NOT_EVALUATED")


@pytest.mark.parametrize("kind", [{}, []])
def test_a_part_of_no_readable_type_is_passed_over(score, kind):
    spans = genai()
    messages = json.loads(spans[-1].attributes["gen_ai.input.messages"])
    messages[-1]["parts"][0]["type"] = kind
    spans[-1].attributes["gen_ai.input.messages"] = json.dumps(messages)
    assert score(spans)[:2] == (0, "PASSED")


@pytest.mark.parametrize("given", [{"args": None, "kwargs": {}}, {"args": [], "kwargs": None}])
def test_what_looks_like_arguments_of_a_function_and_is_none_is_passed_over(score, given):
    spans = langfuse()
    spans[0].attributes["langfuse.observation.input"] = json.dumps(given)
    assert score(spans)[:2] == (0, "PASSED")


def two_turns(second):
    """The calls of a model in two turns, the second message of the user with these parts."""
    asked = {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}
    hello, answer = (
        {"role": "assistant", "parts": [{"type": "text", "content": text}]} for text in ("Hi.", ANSWER)
    )
    said = [([asked], hello), ([asked, hello, {"role": "user", "parts": second}], answer)]
    messages = [
        {"gen_ai.input.messages": json.dumps(inputs), "gen_ai.output.messages": json.dumps([output])}
        for inputs, output in said
    ]
    root = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "talk"}
    return [
        span(1, 0, root, length=900),
        *(span(number, 1, {**MODEL, **one}) for number, one in enumerate(messages, start=2)),
    ]


@pytest.mark.parametrize("second", [[], [{"type": "text"}], [{"type": "text", "content": "<REDACTED>"}]])
def test_an_answer_to_a_message_that_is_not_recorded_is_not_that_to_the_one_before(score, second):
    code, _, said = score(two_turns(second), called=())
    assert (code, {status for status, _ in said.values()}) == (3, {"NOT_EVALUATED"})


def test_a_call_of_a_model_under_another_name_of_an_operation_is_one(score):
    spans = [one for one in genai() if "gen_ai.tool.name" not in one.attributes]
    assert score(spans)[:2] == (0, "PASSED")
    spans[1].attributes["gen_ai.operation.name"] = "acompletion"
    assert score(spans)[:2] == (0, "PASSED")
    assert score(spans, called=())[:2] == (1, "FAILED")


def test_an_agent_with_its_history_elsewhere_is_asked_in_a_turn_of_its_own(score):
    """As with `previous_response_id` of OpenAI: a request has the newest message alone."""
    spans = two_turns([{"type": "text", "content": "And tomorrow?"}])
    second = json.loads(spans[-1].attributes["gen_ai.input.messages"])[-1:]
    spans[-1].attributes["gen_ai.input.messages"] = json.dumps(second)
    for one in spans[1:]:
        one.attributes["gen_ai.system_instructions"] = json.dumps([{"type": "text", "content": "Be brief."}])
    # The last response is not that to the first message.
    code, status, said = score(spans, called=())
    assert (code, status, said["response_match_score"][0]) == (1, "FAILED", "FAILED")
    assert said["conversation"][1] == '1 turn in the trace, not in the case: "And tomorrow?"'


def test_a_turn_that_may_have_a_second_message_is_no_turn_of_a_case(score, capsys):
    spans = two_turns([{"type": "text", "content": "And tomorrow?"}])
    second = json.loads(spans[-1].attributes["gen_ai.input.messages"])[-1:]
    spans[-1].attributes["gen_ai.input.messages"] = json.dumps(second)
    assert score(spans)[:2] == (3, "NOT_EVALUATED")
    assert call("import", "trace.json", "--into", "new.evalset.json") == 2
    assert "turn 1: may have several messages of the user: " in capsys.readouterr().err
