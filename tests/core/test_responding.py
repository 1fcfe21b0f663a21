"""What is asked of a person, and what is typed as the response."""

import pytest

from evaltui.core.conversation.responding import ResponseError, request_of, respond
from evaltui.core.conversation.waiting import CONFIRMATION, CREDENTIAL, INPUT, WaitingCall
from evaltui.core.model.events import describe_response

TRAVELLER = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
ADK_CONFIRMATION = {
    "title": "ToolConfirmation",
    "type": "object",
    "properties": {"confirmed": {"type": "boolean"}, "payload": {}, "hint": {"type": "string"}},
}


def call(name, **args):
    return WaitingCall("id", name, args, 0, 0)


def asked(schema):
    return call(INPUT, message="Who?", response_schema=schema)


def confirmation(payload=None, hint=""):
    given = {"hint": hint, "confirmed": False} | ({} if payload is None else {"payload": payload})
    return call(
        CONFIRMATION,
        originalFunctionCall={"id": "x", "name": "pay", "args": {"amount": 3}},
        toolConfirmation=given,
    )


CONFIRMED = [
    ("yes", {"confirmed": True}),
    (" Y ", {"confirmed": True}),
    ("no", {"confirmed": False}),
    ("true", {"confirmed": True}),
    ('yes {"at_most": 2}', {"confirmed": True, "payload": {"at_most": 2}}),
    ('{"confirmed": false, "payload": [1]}', {"confirmed": False, "payload": [1]}),
]


@pytest.mark.parametrize(("typed", "response"), CONFIRMED)
def test_a_confirmation_is_yes_or_no_with_a_payload(typed, response):
    assert respond(confirmation(), typed) == response
    # A workflow asks for one in another way.
    assert respond(asked(ADK_CONFIRMATION), typed) == response


@pytest.mark.parametrize(
    ("schema", "typed", "response"),
    [
        (None, "Ada", {"result": "Ada"}),
        (None, '{"name": "Ada"}', {"name": "Ada"}),
        (None, '{"result": 1}', {"result": {"result": 1}}),
        (TRAVELLER, '{"name": "Ada", "age": 5}', {"name": "Ada", "age": 5}),
        ({"type": "integer"}, "5", {"result": 5}),
        ({"type": "boolean"}, "no", {"result": False}),
        ({"type": "array", "items": {"type": "string"}}, '["a"]', {"result": ["a"]}),
        ({"type": "string"}, "Ada", {"result": "Ada"}),
        # ADK reads a text as JSON where it can: this one stays a text.
        ({"type": "string"}, "5", {"result": '"5"'}),
        ({"enum": ["red", "blue"]}, "red", {"result": "red"}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5", {"result": 5}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "five", {"result": "five"}),
    ],
)
def test_input_is_shaped_by_its_schema(schema, typed, response):
    assert respond(asked(schema), typed) == response


@pytest.mark.parametrize(
    ("typed", "response"),
    [("done", {"result": "done"}), ('{"ok": true}', {"ok": True}), ("5", {"result": "5"})],
)
def test_a_long_running_call_takes_an_object_or_text(typed, response):
    assert respond(call("approve", what="trip"), typed) == response


@pytest.mark.parametrize(
    ("waiting", "typed", "says"),
    [
        (confirmation(), "perhaps", "type yes or no"),
        (confirmation(), '{"confirm": true}', "not confirm"),
        (confirmation(), '{"confirmed": "yes"}', "must be true or false"),
        (confirmation(), "yes because", "payload must be JSON"),
        (asked(TRAVELLER), "Ada", "must be JSON"),
        (asked(TRAVELLER), '{"name": "Ada", "age": "five"}', "age: must be an integer"),
        (asked(TRAVELLER), '{"age": 5}', "name: missing"),
        (asked({"type": "integer"}), "five", "must be JSON, integer"),
        (asked({"enum": ["red", "blue"]}), "green", "must be"),
        (call("approve"), "", "empty"),
        (asked(None), "  ", "empty"),
        (call(CREDENTIAL, authConfig={}), "my-key", "an AuthConfig as a JSON object"),
    ],
)
def test_what_a_call_does_not_take_is_said(waiting, typed, says):
    with pytest.raises(ResponseError, match=says):
        respond(waiting, typed)


def test_a_request_says_what_is_asked():
    asks = request_of(confirmation({"at_most": 0}, "How much?"))
    assert (asks.message, asks.payload) == ("Confirm pay(amount=3)? How much?", {"at_most": 0})
    asks = request_of(asked(TRAVELLER))
    assert (asks.message, asks.accepts) == ("Who?", "{name: string, age?: integer}")
    # What an agent writes there is of any shape.
    assert request_of(call(CONFIRMATION, originalFunctionCall="x", toolConfirmation=[1])).message
    assert request_of(call(INPUT, message=5, response_schema="any")).message


def test_a_response_is_described_in_a_line():
    response = {"name": CONFIRMATION, "response": {"confirmed": True}}
    assert describe_response(response) == 'response to adk_request_confirmation: {"confirmed": true}'
