"""Several messages of the user under one span are several turns."""

import json
from itertools import product

import pytest

from evaltui import invocations_from_events
from evaltui.core.model.eval_set import scored_text, tool_calls
from evaltui.core.model.events import ANSWERS, CALLS
from evaltui.traces.conversations import conversations_in
from evaltui.traces.span import Recorded
from tests.traces.test_trace_layouts import span

ASKED = {"role": "user", "content": "What is the price of order 7?"}
FUNCTION = {"name": "price", "arguments": json.dumps({"order": 7})}
CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}]}
RETURNED = {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"price": 12.5})}
PRICE = {"role": "assistant", "content": "It is 12.50."}
THANKS, WELCOME = {"role": "user", "content": "thanks"}, {"role": "assistant", "content": "You are welcome."}
REQUESTS = [
    ([ASKED], CALL),
    ([ASKED, CALL, RETURNED], PRICE),
    ([ASKED, CALL, RETURNED, PRICE, THANKS], WELCOME),
]
TWO = [
    (ASKED["content"], [("price", {"order": 7})], PRICE["content"]),
    (THANKS["content"], [], WELCOME["content"]),
]
GENAI = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def genai(inputs, output):
    messages = {"gen_ai.input.messages": json.dumps(inputs), "gen_ai.output.messages": json.dumps([output])}
    return {**GENAI, **messages}


def logfire(inputs, output):
    """The messages as one attribute, the answer as the last of them."""
    events = [{"event.name": f"gen_ai.{one['role']}.message", **one} for one in [*inputs, output]]
    return {**GENAI, "gen_ai.system": "openai", "events": json.dumps(events)}


def openinference(inputs, output):
    said = {"openinference.span.kind": "LLM", "input.value": json.dumps({"messages": inputs})}
    for prefix, messages in (("input", inputs), ("output", [output])):
        for number, one in enumerate(messages):
            place = f"llm.{prefix}_messages.{number}.message"
            said |= {f"{place}.{key}": one[key] for key in ("role", "content", "tool_call_id") if key in one}
            for key in FUNCTION if "tool_calls" in one else ():
                said[f"{place}.tool_calls.0.tool_call.function.{key}"] = FUNCTION[key]
    return said


def langfuse(inputs, output):
    value = {"input": json.dumps(inputs), "output": json.dumps(output), "type": "generation"}
    return {f"langfuse.observation.{name}": text for name, text in value.items()}


WRAPPERS = {
    "langfuse": {
        "langfuse.observation.type": "span",
        "langfuse.observation.input": json.dumps({"args": [["a", "b"]], "kwargs": {}}),
        "langfuse.observation.output": json.dumps("You are welcome."),
    },
    "workflow": {"traceloop.span.kind": "workflow", "traceloop.entity.name": "talk"},
    "workflow of GenAI": {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "talk"},
    "function": {"http.method": "POST"},
}
GENAI_RUN = {"gen_ai.operation.name": "invoke_agent"}
RUN = {"openinference.span.kind": "AGENT", "agent.name": "desk"}


def turns(spans):
    (found,) = conversations_in([Recorded(spans)]).conversations
    return found.turns


def facts(turn):
    (one,) = invocations_from_events(turn.events)
    made = [(call.name, call.args) for call in tool_calls(one.intermediate_data)]
    return turn.user, made, scored_text(one, thoughts=False)


def under(root, layout, requests=REQUESTS):
    models = [span(2 + number, 1, layout(*one)) for number, one in enumerate(requests)]
    return [span(1, 0, root, length=900), *models]


@pytest.mark.parametrize(
    ("wrapper", "layout"),
    [
        ("function", genai),
        ("function", logfire),
        ("function", openinference),
        ("workflow", genai),
        ("workflow of GenAI", genai),
        ("langfuse", langfuse),
    ],
)
def test_each_message_of_the_user_is_a_turn(wrapper, layout):
    spans = under(WRAPPERS[wrapper], layout)
    searched = {"input": '"order 7"', "output": '"Paris."', "type": "span"}
    search = {f"langfuse.observation.{name}": text for name, text in searched.items()}
    for moment in (190, 200, 290, 400):
        function = span(moment, 1, search, begin=moment, length=5)
        found = turns(sorted([*spans, function], key=lambda one: one.start))
        assert [facts(turn) for turn in found] == TWO
        assert [dict(turn.untold) for turn in found] == [{}, {}]
    found = turns(spans)
    assert [facts(turn) for turn in found] == TWO
    assert [dict(turn.untold) for turn in found] == [{}, {}]
    # Each has the time of its own spans.
    assert [turn.seconds for turn in found] == [0.11, 0.01]


@pytest.mark.parametrize("in_reverse", [False, True])
@pytest.mark.parametrize("moment", ["all calls", "the tool and the next turn"])
def test_turns_whose_calls_began_at_the_same_moment_are_told_apart(moment, in_reverse):
    spans = under(WRAPPERS["function"], genai)
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "price"}
    known = {
        "gen_ai.tool.call.arguments": FUNCTION["arguments"],
        "gen_ai.tool.call.result": '{"price": 12.5}',
    }
    spans.append(span(20, 1, tool | known, length=1))
    for one in spans if moment == "all calls" else spans[-1:]:
        one.start = spans[3].start
    for one, length in zip((spans[1], spans[4], *spans[2:4]), range(1, 5), strict=True):
        one.end = one.start + length
    # Ids say nothing of the order.
    for one, name in zip(spans[1:], "dcba", strict=True):
        one.span_id = name * 16
    found = turns(spans[::-1] if in_reverse else spans)
    assert [facts(turn) for turn in found] == TWO
    # An answer before the end of the tool may not be the last.
    assert (ANSWERS in found[0].untold) == (moment != "all calls")


@pytest.mark.parametrize("layout", [genai, logfire, openinference, langfuse], ids=lambda one: one.__name__)
def test_a_turn_whose_first_model_is_missing_is_one_of_its_own(layout):
    """Its next request has the call of that model and the result."""
    again = {"role": "user", "content": "Once more?"}
    dearer = {"role": "assistant", "content": "Now it is 13."}
    history = [ASKED, CALL, RETURNED, PRICE, again]
    requests = [*REQUESTS[:2], (history, CALL), ([*history, CALL, RETURNED], dearer)]
    both = turns(under(WRAPPERS["function"], layout, requests))
    assert [facts(turn) for turn in both] == [TWO[0], ("Once more?", TWO[0][1], "Now it is 13.")]
    first, second = turns(under(WRAPPERS["function"], layout, [*requests[:2], requests[3]]))
    assert (facts(first), dict(first.untold)) == (TWO[0], {})
    assert (second.user, facts(second)[2]) == ("Once more?", "Now it is 13.")
    assert CALLS in second.untold
    assert ANSWERS not in second.untold
    # A tool that it called may as well be of the turn before.
    spans = under(WRAPPERS["function"], layout, [*requests[:2], requests[3]])
    spans[-1].start, spans[-1].end = spans[-1].start + 10**8, spans[-1].end + 10**8
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "rebate"}
    found = turns([*spans, span(5, 1, tool | {"gen_ai.tool.call.arguments": "{}"}, begin=450)])
    assert [CALLS in turn.untold for turn in found] == [True, True]


BYE = {"role": "user", "content": "bye"}
LAST = ([*REQUESTS[2][0], WELCOME, BYE], {"role": "assistant", "content": "Bye."})


@pytest.mark.parametrize("layout", [genai, logfire, openinference, langfuse], ids=lambda one: one.__name__)
@pytest.mark.parametrize("rest", [[LAST], [*REQUESTS[:2], LAST]], ids=["first turns", "middle turn"])
def test_a_turn_that_only_later_requests_tell_of_is_unknown_but_for_its_message(layout, rest):
    found = turns(under(WRAPPERS["function"], layout, rest))
    assert [turn.user for turn in found] == [ASKED["content"], "thanks", "bye"]
    known = [not {CALLS, ANSWERS} & turn.untold.keys() for turn in found]
    assert known == [len(rest) > 1, False, True]
    assert facts(found[2])[2] == "Bye."


@pytest.mark.parametrize(
    "first",
    [
        {"role": "user", "content": f"Answer briefly. {ASKED['content']}"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is the price"},
                {"type": "text", "text": "of order 7?"},
            ],
        },
    ],
    ids=["in a prompt", "in parts"],
)
def test_a_message_that_is_repeated_in_another_form_is_no_other_turn(first):
    requests = [([first], PRICE), ([ASKED, PRICE, THANKS], WELCOME)]
    spans = [
        span(1 + number, 0, genai(*one) | {"session.id": "c1"}, trace=str(number))
        for number, one in enumerate(requests)
    ]
    assert [dict(turn.untold) for turn in turns(spans)] == [{}, {}]


def test_messages_between_agents_are_of_no_user():
    draft = {"role": "assistant", "content": "A draft."}
    review = {"role": "user", "content": "A draft."}
    requests = [([ASKED], draft), ([ASKED, review], PRICE), ([ASKED, review, PRICE, THANKS], WELCOME)]
    spans = [
        span(1, 0, GENAI_RUN | {"session.id": "c1"}, length=250),
        span(5, 0, GENAI_RUN | {"session.id": "c1"}, trace="2"),
    ]
    spans += [
        span(2, 1, genai(*requests[0])),
        span(3, 1, genai(*requests[1])),
        span(6, 5, genai(*requests[2]), trace="2"),
    ]
    assert [turn.user for turn in turns(spans)] == [ASKED["content"], "thanks"]


@pytest.mark.parametrize("is_one_trace", [True, False])
def test_a_text_beside_the_results_of_calls_may_be_of_the_user(is_one_trace):
    """Anthropic wants both in one message."""
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "cancelled"}
    both = {"role": "user", "content": [result, {"type": "text", "text": "No, order 8"}]}
    spans = under(WRAPPERS["function"], genai, [([ASKED], CALL), ([ASKED, CALL, both], PRICE)])
    if not is_one_trace:
        spans = spans[1:]
        for number, one in enumerate(spans):
            one.trace_id, one.parent_id = f"{number + 1:032x}", ""
            one.attributes["session.id"] = "c1"
    assert all({CALLS, ANSWERS} <= turn.untold.keys() for turn in turns(spans))


@pytest.mark.parametrize(
    ("repeated", "agent", "is_known"),
    [
        (PRICE, "desk", True),
        ({**PRICE, "content": "Ask a human."}, "desk", False),
        (WELCOME, "other", True),
        ({**PRICE, "content": ["TextBlock(citations=None, text='It is 12.50.', type='text')"]}, "desk", True),
    ],
    ids=["the same", "replaced", "of another agent", "as an object of Anthropic's client"],
)
def test_a_response_is_known_unless_the_next_request_of_its_agent_has_another(repeated, agent, is_known):
    requests = [([ASKED], PRICE), ([ASKED, repeated, THANKS], WELCOME)]
    spans = []
    for number, (name, one) in enumerate(zip(("desk", agent), requests, strict=True)):
        run = GENAI_RUN | {"gen_ai.agent.name": name, "session.id": "c1"}
        spans.append(span(1 + 10 * number, 0, run, trace=str(number)))
        spans.append(span(2 + 10 * number, 1 + 10 * number, genai(*one), trace=str(number)))
    assert [ANSWERS not in turn.untold for turn in turns(spans)] == [is_known, True]


@pytest.mark.parametrize(
    "root",
    [
        RUN,
        {"http.method": "POST"},
        {"openinference.span.kind": "CHAIN", "input.value": "questions.txt"},
    ],
    ids=["trace of the SDK", "function", "function with an argument"],
)
def test_several_runs_of_an_agent_in_one_trace_are_turns(root):
    spans = [span(1, 0, root, length=900), span(2, 1, RUN, length=280), span(5, 1, RUN, length=200)]
    for number, parent in ((3, 2), (4, 2), (6, 5)):
        spans.append(span(number, parent, openinference(*REQUESTS[len(spans) - 3])))
    assert [facts(turn) for turn in turns(spans)] == TWO


@pytest.mark.parametrize("root", [RUN, WRAPPERS["langfuse"] | {"langfuse.observation.input": '"What?"'}])
def test_a_message_that_a_run_writes_to_itself_is_no_turn(root):
    """A review of a draft, say."""
    layout = openinference if root is RUN else langfuse
    assert len(turns(under(root, layout))) == 1


def test_a_request_that_was_cut_may_be_another_turn():
    spans = under(WRAPPERS["function"], genai)
    for one in spans:
        name = "gen_ai.input.messages"
        one.attributes |= {name: one.attributes[name][:90]} if name in one.attributes else {}
    (turn,) = turns(spans)
    assert {CALLS, ANSWERS} <= set(turn.untold)
    assert all("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT" in text for text in turn.untold.values())


@pytest.mark.parametrize("kept", [0, 1, 2])
@pytest.mark.parametrize(("root", "layout"), [(RUN, openinference), (GENAI_RUN, genai)])
def test_the_messages_of_failed_turns_before_are_none_of_the_message(root, layout, kept):
    """A session of the OpenAI Agents SDK, or of LangGraph, keeps them; others do not."""
    said = [{"role": "user", "content": text} for text in ("Hello", "Hello?", "Price?", "Thanks")]
    sent = [said[:1], said[1 - min(kept, 1) : 2], said[2 - kept : 3], [*said[2 - kept : 3], PRICE, said[3]]]
    spans = []
    for number, (inputs, output) in enumerate(zip(sent, [None, None, PRICE, WELCOME], strict=True)):
        status = "" if output else "error"
        attributes = layout(inputs, output or PRICE)
        if output is None:
            attributes = {key: attributes[key] for key in attributes if "output" not in key}
        place = {"trace": str(number + 1), "begin": 100 * number, "status": status}
        spans.append(span(1, 0, root | {"session.id": "s"}, length=20, **place))
        spans.append(span(2, 1, attributes, **place))
    found = turns(spans)
    assert [turn.user for turn in found] == [one["content"] for one in said]
    assert [facts(turn)[2] for turn in found[2:]] == [PRICE["content"], WELCOME["content"]]
    assert [dict(turn.untold) for turn in found[2:]] == [{}, {}]


def test_what_fails_in_the_end_is_of_the_last_turn():
    spans = under(WRAPPERS["function"], genai)
    spans[0].status, spans[0].message = "error", "not today"
    assert [turn.error.message if turn.error else "" for turn in turns(spans)] == ["", "not today"]


IDS = ("c1", "c2")
PAIRS = [([ASKED], PRICE), ([THANKS], WELCOME)]


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("named", ["models", "agents", "spans between"])
def test_calls_of_two_conversations_below_one_span_are_two_conversations(wrapper, named):
    spans = under(wrapper, genai, PAIRS)
    for number, name in enumerate(IDS):
        model = spans[1 + number]
        if named == "models":
            model.attributes["gen_ai.conversation.id"] = name
            continue
        own = GENAI_RUN if named == "agents" else {}
        spans.append(span(10 + number, 1, own | {"session.id": name}, length=10))
        spans[-1].start, model.parent_id = model.start, spans[-1].span_id
    both = conversations_in([Recorded(spans)]).conversations
    assert [conversation.id for conversation in both] == list(IDS)
    assert [[facts(turn) for turn in one.turns] for one in both] == [
        [(ASKED["content"], [], PRICE["content"])],
        [TWO[1]],
    ]
    assert [dict(turn.untold) for one in both for turn in one.turns] == [{}, {}]


def test_a_call_without_an_id_between_two_conversations_makes_both_unknown():
    spans = under(WRAPPERS["function"], genai, [PAIRS[0], PAIRS[0], PAIRS[1]])
    spans[1].attributes["session.id"], spans[3].attributes["session.id"] = IDS
    both = conversations_in([Recorded(spans)]).conversations
    assert [ANSWERS in turn.untold for one in both for turn in one.turns] == [True, True]


def test_a_run_in_a_run_of_another_conversation_makes_the_turn_unknown():
    spans = under(GENAI_RUN | {"session.id": "c1"}, genai, PAIRS)
    spans.append(span(10, 1, GENAI_RUN | {"session.id": "c2"}, length=200))
    spans[2].parent_id = spans[-1].span_id
    (turn,) = turns(spans)
    assert {CALLS, ANSWERS} <= set(turn.untold)
    assert "gen_ai.conversation.id" in turn.untold[ANSWERS]


def test_a_session_around_a_run_with_an_id_of_its_own_is_the_conversation():
    spans = under(WRAPPERS["workflow"] | {"session.id": "c1"}, genai)
    run = span(10, 1, GENAI_RUN | {"gen_ai.conversation.id": "of the provider"}, length=800)
    run.start, spans[2].parent_id, spans[3].parent_id = spans[2].start, run.span_id, run.span_id
    (conversation,) = conversations_in([Recorded([*spans, run])]).conversations
    assert (conversation.id, [dict(turn.untold) for turn in conversation.turns]) == ("c1", [{}])


STATELESS = [([ASKED], PRICE), ([THANKS], WELCOME)]
REPEATED = [([THANKS], WELCOME), ([THANKS], WELCOME)]
SUMMARY = [([ASKED], PRICE), ([{"role": "user", "content": "Asked for a price."}, THANKS], WELCOME)]
INTERJECTED = [([ASKED], CALL), ([ASKED, CALL, RETURNED, THANKS], WELCOME)]


@pytest.mark.parametrize("layout", [genai, openinference])
@pytest.mark.parametrize("requests", [STATELESS, REPEATED, SUMMARY, INTERJECTED])
def test_a_later_message_without_the_history_makes_the_turn_unknown(layout, requests):
    (turn,) = turns(under(WRAPPERS["function"], layout, requests))
    assert {CALLS, ANSWERS} <= set(turn.untold)
    assert "invoke_agent" in turn.untold[ANSWERS]


def test_runs_without_the_history_make_the_turn_unknown():
    spans = under(WRAPPERS["workflow"], genai, STATELESS)
    for number in (1, 2):
        spans.append(span(10 + number, 1, GENAI_RUN))
        spans[number].parent_id = spans[-1].span_id
    assert {CALLS, ANSWERS} <= set(turns(spans)[0].untold)


def without_content(root, talk, finish):
    """Spans below a root in which models have no messages: for each turn, the number of calls before each of
    its models but the first."""
    spans = [span(1, 0, root)]

    def add(attributes):
        spans.append(span(len(spans) + 1, 1, attributes, begin=100 * len(spans)))

    for steps in talk:
        for number, count in enumerate((*steps, 0)):
            has_calls = number < len(steps)
            reasons = {"gemini": ["STOP"], "openai": ["tool_calls" if has_calls else "stop"]}.get(finish)
            add(GENAI | ({"gen_ai.response.finish_reasons": reasons} if reasons else {}))
            for _ in range(count):
                tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "price"}
                add(tool | {"gen_ai.tool.call.arguments": FUNCTION["arguments"]})
    spans[0].end = spans[-1].end + 1
    return spans


@pytest.mark.parametrize("finish", ["openai", "gemini", ""])
@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS)
def test_calls_of_several_turns_without_messages_are_none_of_one_turn(wrapper, finish):
    kinds = ((), (1,), (2, 1))
    for talk in (talk for length in (1, 2, 3) for talk in product(kinds, repeat=length)):
        (turn,) = turns(without_content(wrapper, talk, finish))
        if len(talk) > 1:
            assert CALLS in turn.untold, talk
        # Below a function nobody watches the tools of a turn without calls.
        elif any(talk):
            assert (len(facts(turn)[1]), CALLS in turn.untold) == (sum(*talk), False)
        # A run of an agent is of one turn.
        (turn,) = turns(without_content(GENAI_RUN, talk, finish))
        assert (len(facts(turn)[1]), CALLS in turn.untold) == (sum(map(sum, talk)), False)


DRAFT = [([ASKED], CALL), ([ASKED, CALL, RETURNED], PRICE)]
GUARD = ([{"role": "system", "content": "Is it safe?"}, ASKED], {"role": "assistant", "content": "yes"})


@pytest.mark.parametrize("requests", [DRAFT, [GUARD, *DRAFT]], ids=["calls of a tool", "a guard before"])
def test_requests_with_one_message_are_a_known_turn(requests):
    (turn,) = turns(under(WRAPPERS["function"], genai, requests))
    assert (facts(turn)[2], dict(turn.untold)) == (PRICE["content"], {})


def test_an_agent_that_another_one_asks_in_its_run_is_of_the_turn():
    spans = under(GENAI_RUN, genai, [([ASKED], PRICE), ([THANKS], WELCOME)])
    spans.append(span(10, 1, GENAI_RUN, length=900))
    spans[-1].start, spans[2].parent_id = spans[2].start, spans[-1].span_id
    (turn,) = turns(spans)
    assert (facts(turn)[2], dict(turn.untold)) == (WELCOME["content"], {})


@pytest.mark.parametrize("root", [GENAI_RUN, {"gen_ai.operation.name": "invoke_workflow"}])
def test_agents_below_a_span_with_the_message_are_of_its_turn(root):
    review = {"role": "user", "content": "Review the answer."}
    spans = under(
        root | genai([ASKED], WELCOME) | root, genai, [([ASKED], PRICE), ([ASKED, PRICE, review], WELCOME)]
    )
    for number in (1, 2):
        spans.append(span(10 + number, 1, GENAI_RUN | {"gen_ai.agent.name": f"agent {number}"}, length=50))
        spans[-1].start, spans[number].parent_id = spans[number].start, spans[-1].span_id
    (turn,) = turns(spans)
    assert (turn.user, facts(turn)[2], dict(turn.untold)) == (ASKED["content"], WELCOME["content"], {})
