"""Requests of waiting calls to a person, and typed responses to them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evaltui.core.conversation.waiting import (
    CONFIRMATION,
    CREDENTIAL,
    INPUT,
    REQUESTS,
    WaitingCall,
    response_content,
)
from evaltui.core.model.events import Json, text_content
from evaltui.core.model.json_values import text_or_empty
from evaltui.core.model.problems import format_path
from evaltui.core.model.tool_schema import check_value
from evaltui.text.values import show_value, visible

RequestKind = Literal["confirmation", "input", "credential", "long-running"]

# What begins a line that is a message although a call waits, and one that responds to a call set aside.
MESSAGE, RESPOND = "/message ", "/respond "

_YES_WORDS = frozenset(("yes", "y", "true", "confirm", "approve", "ok"))
_NO_WORDS = frozenset(("no", "n", "false", "reject", "deny"))
_MAX_SHOWN = 400


@dataclass(frozen=True)
class HumanRequest:
    """A waiting call as a person reads it.

    `message` is the question, `payload` is data that comes with it (None for none), `schema` is the JSON
    schema of the response (None for any), `accepts` describes accepted input.
    """

    kind: RequestKind
    message: str
    payload: Any
    schema: Mapping[str, Any] | None
    accepts: str


class ResponseError(ValueError):
    """The typed text is no valid response to the call; the message is a sentence."""


def request_of(call: WaitingCall) -> HumanRequest:
    args = call.args
    if call.name == CONFIRMATION:
        return _confirmation(args)
    if call.name == INPUT:
        schema = args.get("response_schema", args.get("responseSchema"))
        schema = schema if isinstance(schema, Mapping) and schema else None
        message = text_or_empty(args.get("message")) or "Input requested"
        accepts = _accepted_input(schema)
        return HumanRequest("input", message, args.get("payload"), schema, accepts)
    if call.name == CREDENTIAL:
        message = text_or_empty(args.get("message")) or "Credential requested"
        config = args.get("authConfig", args.get("auth_config"))
        return HumanRequest("credential", message, config, None, "an AuthConfig as JSON")
    return HumanRequest(
        "long-running", f"{call.name} is still running", args or None, None, "JSON object or text"
    )


def expected_call(waiting: Sequence[WaitingCall]) -> WaitingCall | None:
    """The call that the next typed text responds to; None for none."""
    return next((call for call in waiting if not call.set_aside), None)


def asker_of(call: WaitingCall) -> str:
    """The name of the waiting tool or agent: the tool to confirm or a long-running tool, else the agent."""
    if call.name not in REQUESTS:
        return call.name
    return text_or_empty(_object(call.args.get("originalFunctionCall")).get("name")) or "The agent"


def content_of(typed: str, waiting: Sequence[WaitingCall]) -> Json:
    """The typed text as a genai Content: the response to the expected call, else a message.

    While calls wait, `/message TEXT` is a message, and `/respond TEXT` the response to the first call, even
    if it was set aside. Raises ResponseError.
    """
    call = expected_call(waiting)
    if waiting and typed.startswith(MESSAGE):
        call, typed = None, typed.removeprefix(MESSAGE)
    elif waiting and typed.startswith(RESPOND):
        call, typed = waiting[0], typed.removeprefix(RESPOND)
    if call is not None:
        return response_content(call, respond(call, typed))
    return text_content("user", typed)


def typed_text(response: Any) -> str:
    value = (
        response.get("result") if isinstance(response, Mapping) and list(response) == ["result"] else response
    )
    if isinstance(value, str):
        inner = _json(value)
        return inner if isinstance(inner, str) else value
    return json.dumps(value, ensure_ascii=False)


def respond(call: WaitingCall, typed: str) -> Json:
    """The response to a call for a typed text. Raises ResponseError."""
    request, text = request_of(call), typed.strip()
    if not text:
        raise ResponseError("Response is empty")
    match request.kind:
        case "confirmation":
            return _confirm(text)
        case "input":
            return _input_response(request.schema, text)
        case "credential":
            parsed = _json(text)
            if not isinstance(parsed, dict):
                raise ResponseError(
                    "a credential is an AuthConfig as a JSON object, its exchanged_auth_credential filled in"
                )
            return parsed
        case _:
            parsed = _json(text)
            return parsed if isinstance(parsed, dict) else {"result": text}


def _confirmation(args: Json) -> HumanRequest:
    confirmation, original = _object(args.get("toolConfirmation")), _object(args.get("originalFunctionCall"))
    call_args = _object(original.get("args"))
    shown = ", ".join(f"{name}={show_value(value)}" for name, value in call_args.items())
    question = f"Confirm {text_or_empty(original.get('name')) or 'the call'}({shown})?"
    hint = text_or_empty(confirmation.get("hint"))
    # ADK's own words say how a program would respond.
    message = question if not hint or hint.startswith("Please approve or reject") else f"{question} {hint}"
    payload = confirmation.get("payload")
    accepts = "yes or no" if payload is None else "yes or no, then a JSON payload"
    return HumanRequest("confirmation", message, payload, None, accepts)


def _confirm(text: str) -> Json:
    word, _, rest = text.partition(" ")
    answer = word.lower().rstrip(",.!")
    if answer in _YES_WORDS | _NO_WORDS:
        response: Json = {"confirmed": answer in _YES_WORDS}
        return response | {"payload": _payload(rest.strip())} if rest.strip() else response
    parsed = _json(text)
    if isinstance(parsed, bool):
        return {"confirmed": parsed}
    if not isinstance(parsed, dict):
        raise ResponseError('type yes or no, "yes" and a JSON payload, or {"confirmed": true, "payload": …}')
    if further := [name for name in parsed if name not in ("hint", "confirmed", "payload")]:
        raise ResponseError(f"a confirmation has confirmed and payload, not {visible(further[0])}")
    if not isinstance(parsed.get("confirmed"), bool):
        raise ResponseError("confirmed must be true or false")
    return parsed


def _payload(text: str) -> Any:
    parsed = _json(text)
    if parsed is _NOT_JSON:
        raise ResponseError(f"the payload must be JSON: {json_error_text(text)}")
    return parsed


def _input_response(schema: Mapping[str, Any] | None, text: str) -> Json:
    if schema is None:
        parsed = _json(text)
        return _wrap_result(parsed) if isinstance(parsed, dict) else {"result": text}
    if asks_to_confirm(schema):
        return _confirm(text)
    problems = []
    for value in possible_values(schema, text):
        violations = check_value(schema, value)
        if not violations:
            return _wrap_result(value)
        problems.append(violations[0])
    if not problems:
        raise ResponseError(f"must be JSON, {_accepted_input(schema)}: {json_error_text(text)}")
    first = problems[0]
    place = f"{format_path(first.path)}: " if first.path else ""
    raise ResponseError(f"{place}{first.message}")


def asks_to_confirm(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is that of ADK's ToolConfirmation, by which a workflow asks to confirm a node."""
    properties = schema.get("properties")
    return schema.get("title") == "ToolConfirmation" and isinstance(properties, dict)


def possible_values(schema: Mapping[str, Any], text: str) -> Iterator[Any]:
    """The possible values of a text by a schema, the most likely first."""
    parsed = _json(text)
    kind = schema.get("type")
    if kind == "boolean" and text.lower() in _YES_WORDS | _NO_WORDS:
        yield text.lower() in _YES_WORDS
    if kind == "string" and not isinstance(parsed, str):
        yield text
    if parsed is not _NOT_JSON:
        yield parsed
    if kind is None or (isinstance(kind, list) and "string" in kind):
        yield text


def _wrap_result(value: Any) -> Json:
    """A value in ADK's wrapper, `{"result": …}`; ADK reads a text in it as JSON if it is valid JSON."""
    if isinstance(value, dict) and list(value) != ["result"]:
        return value
    if isinstance(value, str) and _json(value) is not _NOT_JSON:
        return {"result": json.dumps(value, ensure_ascii=False)}
    return {"result": value}


def _accepted_input(schema: Mapping[str, Any] | None) -> str:
    if schema is None:
        return "text or JSON"
    if asks_to_confirm(schema):
        return "yes or no"
    return schema_in_words(schema)


def schema_in_words(schema: Any) -> str:
    """A schema in words: `{name: string, age?: integer}`; a deeply nested one as JSON."""
    if not isinstance(schema, Mapping):
        return "any"
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties:
        needed = schema.get("required") or ()
        members = (
            f"{visible(str(name))}{'' if name in needed else '?'}: {schema_in_words(subschema)}"
            for name, subschema in properties.items()
        )
        return f"{{{', '.join(members)}}}"
    if isinstance(choices := schema.get("enum"), list):
        return " | ".join(show_value(choice) for choice in choices)
    kind = schema.get("type")
    if kind == "array":
        return f"[{schema_in_words(schema.get('items'))}]"
    if isinstance(kind, str):
        return visible(kind)
    return show_value(schema, _MAX_SHOWN) if schema else "any"


_NOT_JSON = object()


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def json_error_text(text: str) -> str:
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
