"""The fields of the form of a request, and the response that is typed into them."""

import pytest

from evaltui.core.conversation.request_fields import FieldError, fields_of, response_of, typed_into
from evaltui.core.conversation.responding import respond
from evaltui.core.conversation.waiting import CONFIRMATION, CREDENTIAL, INPUT, WaitingCall

VISIT = {
    "type": "object",
    "$defs": {"Door": {"enum": ["front", "back"], "type": "string"}, "Tag": {"type": "object"}},
    "properties": {
        "door": {"$ref": "#/$defs/Door", "default": "back"},
        "guests": {"type": "INTEGER"},
        "until": {"type": "string", "format": "time"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "quiet": {"type": ["boolean", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["door", "guests"],
}


def asked(schema):
    return WaitingCall("id", INPUT, {"message": "Who?", "response_schema": schema}, 0, 0)


def confirmation(payload=None):
    given = {"hint": "", "confirmed": False} | ({} if payload is None else {"payload": payload})
    args = {"originalFunctionCall": {"name": "pay", "args": {}}, "toolConfirmation": given}
    return WaitingCall("id", CONFIRMATION, args, 0, 0)


def test_a_schema_has_a_field_for_each_member():
    fields = fields_of(asked(VISIT))
    assert [(field.name, field.kind, field.required, field.accepts, field.initial) for field in fields] == [
        ("door", "choice", True, "", "back"),
        ("guests", "number", True, "integer", ""),
        ("until", "date", False, "time, HH:MM", ""),
        ("note", "text", False, "text", ""),
        ("quiet", "choice", False, "", ""),
        ("tags", "json", False, "JSON, [string]", ""),
    ]
    assert (fields[0].labels, fields[4].labels) == (("front", "back"), ("Yes", "No"))


def test_what_is_typed_is_the_response_and_the_other_way_round():
    call = asked(VISIT)
    typed = {"door": "front", "guests": "2", "until": "18:15", "note": "5", "quiet": "No", "tags": '["a"]'}
    given = response_of(call, fields_of(call), typed)
    assert given == {
        "door": "front",
        "guests": 2,
        "until": "18:15",
        "note": "5",
        "quiet": False,
        "tags": ["a"],
    }
    assert typed_into(fields_of(call), given) == typed
    # An empty field is no member.
    assert response_of(call, fields_of(call), {"door": "back", "guests": "1", "note": " "}) == {
        "door": "back",
        "guests": 1,
    }
    assert typed_into(fields_of(call), {**given, "more": 1}) is None
    assert typed_into(fields_of(call), {"door": "cellar"}) is None


@pytest.mark.parametrize(
    ("typed", "field", "says"),
    [
        ({"guests": "2", "door": ""}, "door", "door: choose front, back"),
        ({"door": "back"}, "guests", "guests: missing; integer"),
        ({"door": "back", "guests": "two"}, "guests", "guests: must be an integer"),
        ({"door": "back", "guests": "2", "until": "late"}, "until", "until: must be a time, HH:MM"),
        ({"door": "back", "guests": "2", "tags": "a"}, "tags", "tags: must be JSON"),
        ({"door": "back", "guests": "2", "tags": "[1]"}, "tags", r"tags\[0\]: must be a string"),
    ],
)
def test_what_a_field_does_not_take_is_said_at_it(typed, field, says):
    call = asked(VISIT)
    with pytest.raises(FieldError, match=says) as raised:
        response_of(call, fields_of(call), typed)
    assert raised.value.field == field


def test_a_form_responds_as_a_typed_text_does():
    call = confirmation({"at_most": 0})
    decision, payload = fields_of(call)
    assert (decision.labels, payload.accepts) == (("Approve", "Reject"), 'JSON, e.g. {"at_most": 0}')
    typed = {"confirmed": "Approve", "payload": '{"at_most": 2}'}
    assert response_of(call, fields_of(call), typed) == respond(call, 'yes {"at_most": 2}')
    call = confirmation()
    assert response_of(call, fields_of(call), {"confirmed": "Reject"}) == respond(call, "no")
    for schema, typed, same in (
        ({"enum": ["red", "5"]}, "5", '"5"'),
        ({"type": "boolean"}, "No", "no"),
        ({"enum": [1, 2]}, "2", "2"),
    ):
        call = asked(schema)
        given = response_of(call, fields_of(call), {"": typed})
        assert given == respond(call, same)
        assert typed_into(fields_of(call), given) in ({"": typed}, None)
    # Nothing is approved unless that is chosen.
    with pytest.raises(FieldError, match="decision: choose Approve, Reject"):
        response_of(confirmation(), fields_of(confirmation()), {})


@pytest.mark.parametrize(
    "call",
    [
        asked(None),
        asked({"type": "string"}),
        asked({"type": "array", "items": {"type": "string"}}),
        asked({"type": "object", "properties": {}}),
        WaitingCall("id", "approve", {"what": "trip"}, 0, 0),
        WaitingCall("id", CREDENTIAL, {}, 0, 0),
    ],
)
def test_what_has_no_known_members_is_one_text(call):
    assert fields_of(call) == []
