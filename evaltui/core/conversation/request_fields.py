"""The form fields for a waiting call, from the schema of its response."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import Any, Literal

from evaltui.core.conversation.responding import (
    ResponseError,
    asks_to_confirm,
    json_error_text,
    possible_values,
    request_of,
    respond,
    schema_in_words,
)
from evaltui.core.conversation.waiting import WaitingCall
from evaltui.core.model.events import Json
from evaltui.core.model.problems import format_path
from evaltui.core.model.tool_schema import check_value
from evaltui.text.values import show_value, visible

FieldKind = Literal["choice", "text", "number", "date", "json"]

_FORMATS = {
    "date": ("date, YYYY-MM-DD", date.fromisoformat),
    "time": ("time, HH:MM", time.fromisoformat),
    "date-time": ("date and time, YYYY-MM-DDTHH:MM", datetime.fromisoformat),
}
_MAX_EXAMPLE = 60


@dataclass(frozen=True)
class RequestField:
    """A form field."""

    name: str
    """The response member that the field sets; "" for the whole response."""
    label: str
    kind: FieldKind
    schema: Mapping[str, Any]
    """JSON schema of the value, with the definitions that it references."""
    required: bool
    accepts: str
    """The accepted input in a few words."""
    initial: str = ""
    """The initial text; for a choice, the label of the initial option, "" for none."""
    options: tuple[Any, ...] = ()
    """The values of a choice."""
    labels: tuple[str, ...] = ()
    """Labels of the values of a choice."""


class FieldError(ResponseError):
    """The text of a field is no valid value; `field` is the field's name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def fields_of(call: WaitingCall) -> list[RequestField]:
    """The form fields for a call; [] where the schema is unknown or unsuitable, so that a single text is
    needed."""
    request = request_of(call)
    schema = request.schema
    if request.kind == "confirmation" or (schema is not None and asks_to_confirm(schema)):
        return _confirmation_fields(request.payload if request.kind == "confirmation" else None)
    if schema is None:
        return []
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        whole = _field("", schema, schema, required=True)
        return [whole] if whole.kind == "choice" else []
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    return [
        _field(str(name), subschema, schema, required=name in needed)
        for name, subschema in properties.items()
    ]


def response_of(call: WaitingCall, fields: Sequence[RequestField], typed: Mapping[str, str]) -> Json:
    """The response with the typed texts of the fields, by name. Raises FieldError or ResponseError."""
    values = {field.name: _value(field, text) for field in fields if (text := _typed_text(field, typed))}
    whole = values.get("", values)
    return respond(call, json.dumps(whole, ensure_ascii=False))


def typed_into(fields: Sequence[RequestField], response: Any) -> dict[str, str] | None:
    """The texts of the fields for a response; None for a response that the fields cannot hold."""
    if not isinstance(response, Mapping):
        return None
    values = {"": response.get("result")} if [field.name for field in fields] == [""] else response
    typed = {field.name: _text_of(field, values[field.name]) for field in fields if field.name in values}
    if None in typed.values() or set(values) - set(typed):
        return None
    return {name: text for name, text in typed.items() if text is not None}


def _confirmation_fields(payload: Any) -> list[RequestField]:
    decision = RequestField(
        "confirmed",
        "decision",
        "choice",
        {"type": "boolean"},
        required=True,
        accepts="",
        options=(True, False),
        labels=("Approve", "Reject"),
    )
    if payload is None:
        return [decision]
    accepts = f"JSON, e.g. {show_value(payload, _MAX_EXAMPLE)}"
    return [decision, RequestField("payload", "payload", "json", {}, required=False, accepts=accepts)]


def _field(name: str, declared: Any, root: Mapping[str, Any], *, required: bool) -> RequestField:
    schema = _plain(declared, root)
    options, labels = _options(schema)
    kind, accepts = _kind(schema)
    label = visible(name) or "response"
    default = schema.get("default")
    field = RequestField(name, label, kind, schema, required, accepts, options=options, labels=labels)
    return field if default is None else replace(field, initial=_text_of(field, default) or "")


def _plain(declared: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its reference resolved and without null, for which an empty field stands."""
    schema: Mapping[str, Any] = declared if isinstance(declared, Mapping) else {}
    further = {name: value for name, value in schema.items() if name in ("default", "description", "title")}
    either = schema.get("anyOf")
    if isinstance(either, list):
        others = [
            option for option in either if not (isinstance(option, Mapping) and option.get("type") == "null")
        ]
        if len(others) == 1 and isinstance(others[0], Mapping):
            schema = others[0]
    definitions = root.get("$defs")
    defs = definitions if isinstance(definitions, Mapping) else {}
    reference = str(schema.get("$ref", ""))
    target = defs.get(reference.removeprefix("#/$defs/")) if reference else None
    schema = target if isinstance(target, Mapping) else schema
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [option for option in kind if option != "null"]
        kind = kinds[0] if len(kinds) == 1 else kinds
    plain = {**schema, **further, **({"$defs": defs} if defs else {})}
    if kind is not None:
        plain["type"] = kind.lower() if isinstance(kind, str) else kind
    return plain


def _options(schema: Mapping[str, Any]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    choices = schema.get("enum")
    if isinstance(choices, list):
        options = [choice for choice in choices if choice is not None]
        return tuple(options), tuple(
            option if isinstance(option, str) else show_value(option) for option in options
        )
    return ((True, False), ("Yes", "No")) if schema.get("type") == "boolean" else ((), ())


def _kind(schema: Mapping[str, Any]) -> tuple[FieldKind, str]:
    """The kind of a field, and a description of accepted input."""
    type_name, form = schema.get("type"), str(schema.get("format", ""))
    if _options(schema)[0]:
        return "choice", ""
    if type_name == "string":
        return ("date", _FORMATS[form][0]) if form in _FORMATS else ("text", "text")
    if type_name in ("integer", "number"):
        return "number", str(type_name)
    return "json", f"JSON, {schema_in_words({key: value for key, value in schema.items() if key != '$defs'})}"


def _typed_text(field: RequestField, typed: Mapping[str, str]) -> str:
    text = typed.get(field.name, "").strip()
    if not text and field.required:
        what = f"choose {', '.join(field.labels)}" if field.labels else f"missing; {field.accepts}"
        raise FieldError(field.name, f"{field.label}: {what}")
    return text


def _value(field: RequestField, text: str) -> Any:
    if field.kind == "choice":
        return field.options[field.labels.index(text)]
    if field.kind == "date":
        format_name, read = _FORMATS[str(field.schema["format"])]
        try:
            read(text)
        except ValueError:
            raise FieldError(field.name, f"{field.label}: must be a {format_name}") from None
        return text
    values = list(possible_values(field.schema, text)) or ([text] if field.kind == "number" else [])
    anything = not {"type", "anyOf", "oneOf"} & set(field.schema)
    if not values or (anything and json_error_text(text)):
        raise FieldError(field.name, f"{field.label}: must be JSON: {json_error_text(text)}")
    problems = []
    for value in values:
        violations = check_value(field.schema, value)
        if not violations:
            return value
        problems.append(violations[0])
    first = problems[0]
    place = format_path((field.label, *first.path))
    raise FieldError(field.name, f"{place}: {first.message}")


def _text_of(field: RequestField, value: Any) -> str | None:
    """The text of a field for a value; None where the field cannot hold the value."""
    if field.kind == "choice":
        same = [label for option, label in zip(field.options, field.labels, strict=True) if option is value]
        same += [label for option, label in zip(field.options, field.labels, strict=True) if option == value]
        return same[0] if same else None
    if isinstance(value, str) and field.kind in ("text", "date"):
        return value
    return json.dumps(value, ensure_ascii=False)
