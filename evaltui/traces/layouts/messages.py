"""Messages as producers write them, to contents as genai has them, in JSON with snake_case keys.

Read are those of OpenTelemetry's conventions, OpenAI, Anthropic, LangChain and genai itself; what is none of
them is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from evaltui.core.model.events import output_text, spoken_texts, text_content
from evaltui.core.model.json_values import ABSENT, only_item
from evaltui.traces.formats.otlp import either, object_of, objects
from evaltui.traces.layouts.limits import json_attribute
from evaltui.traces.layouts.operation import as_arguments, as_result, calls_in

Json = dict[str, Any]

_PLACEHOLDERS = frozenset(("<REDACTED>", "<elided>", "__REDACTED__", "<redacted>"))
"""Texts that stand for content that was taken out."""
NOT_RECORDED = "attachment not recorded"
"""The text that stands for data that a trace does not hold."""

_MODEL = frozenset(("assistant", "model", "ai", "AIMessage", "AIMessageChunk"))
_TOOL = frozenset(("tool", "function", "ToolMessage"))
_SYSTEM = frozenset(("system", "developer", "SystemMessage"))
ROLES = _MODEL | _TOOL | _SYSTEM | {"user", "human", "HumanMessage", "HumanMessageChunk"}
"""The names of authors of messages."""
_TEXTS = frozenset(("text", "input_text", "output_text"))
_TEXT_KEYS = ("content", "text", "thinking", "reasoning")
_THOUGHTS = frozenset(("reasoning", "thinking", "thought"))
_CALLS = frozenset(
    (
        "tool_call",
        "tool_use",
        "function_call",
        "mcp_call",
        "server_tool_use",
        "mcp_tool_use",
        "custom_tool_call",
    )
)
_RESPONSES = frozenset(("tool_call_response", "tool_response"))
_RESPONSE_ENDS = ("_output", "tool_result", "tool_call_response")
_SERVER_CALL = "server_tool_call"
"""The type of a call that the model's provider makes, and its member with the details."""
_CLIENT_CALLS = frozenset(("tool_call", "function_call", _SERVER_CALL))
"""Types of calls whose results are in parts of their own."""
_RESULT_FIELDS = ("output", "outputs", "result", "results", "error", "status")
_ITEM_FIELDS = frozenset(("type", "id", "call_id", "name", *_RESULT_FIELDS))
"""Members of a call in OpenAI's Responses API that are no arguments."""
_NO_CONTENT = frozenset(("mcp_list_tools", "item_reference", "compaction"))
_MESSAGE_KEYS = frozenset(
    ("role", "content", "contents", "parts", "tool_calls", "function_call", "message", "kwargs", "data")
)
# Of a message, or of an event of LlamaIndex that has one.
_REPR = re.compile(r"\w*(?:Message|Event|AgentOutput|AgentInput)\(\w+=")
_LINKS = frozenset(("uri", "file_data", "file", "image_url"))
_DATA = frozenset(("blob", "inline_data", "image", "audio", "input_audio"))


def is_placeholder(value: Any) -> bool:
    """Whether a value stands for content that was taken out."""
    return isinstance(value, str) and value in _PLACEHOLDERS


def contents_of(value: Any, role: str = "user") -> list[Json] | None:
    """The messages in a list, or in a text of JSON; a text that is none is one message of `role`.

    None where nothing was recorded. System messages are left out; instead of one that a user's request has
    after a response, there is a message without parts: no user has said what the model goes on with.
    """
    messages = messages_of(value, role)
    if messages is None:
        return None
    contents: list[Json] = []
    runs = [list(run) for _, run in groupby(messages, lambda message: str(message["role"]))]
    for before, run, after in zip([[], *runs], runs, [*runs[1:], []], strict=False):
        last = [message for message in before[-1:] if message["role"] == "model"]
        is_followed = any(message["role"] == "user" for message in after)
        if run[0]["role"] != "system":
            contents += run
        elif role == "user" and spoken_texts(last) and not calls_in(last) and not is_followed:
            contents.append({"role": role, "parts": []})
    return contents


def without_attachments(contents: list[Json] | None) -> list[Json] | None:
    """Contents without the texts that stand for data: a response is compared by what its author wrote."""
    if contents is None:
        return None
    return [
        {**content, "parts": [part for part in content["parts"] if not _stands_for_data(part)]}
        for content in contents
    ]


def with_output_text(contents: list[Json] | None, output_tools: Mapping[str, str]) -> list[Json] | None:
    """Contents in which the calls of a model that give its output are text, as they are where the agent runs.

    `output_tools` has by name the argument that is the output, "" where all arguments are. None where the
    arguments of such a call are unknown.
    """
    if contents is None or not output_tools:
        return contents
    changed = []
    for content in contents:
        parts = []
        for part in content["parts"]:
            call = part.get("function_call") or {}
            if call.get("name") in output_tools:
                if not isinstance(arguments := call.get("args"), dict):
                    return None
                parts.append({"text": output_text(arguments.get(output_tools[call["name"]], arguments))})
            elif part.get("function_response", {}).get("name") not in output_tools:
                parts.append(part)
        if parts or not content["parts"]:
            changed.append({**content, "parts": parts})
    return changed


def structured_output(value: Any) -> list[Json] | None:
    """The structured response in the final state of a LangGraph graph, as its agent reports it; None for
    none.

    `value` is the state as JSON, as OpenInference and OpenLLMetry have it. After a message with text it is
    not taken: it may be of an earlier turn, whose state goes on.
    """
    state = json_attribute(value)
    if isinstance(state, dict) and isinstance(state.get("outputs"), dict):
        state = state["outputs"]
    if not isinstance(state, dict) or (response := state.get("structured_response")) is None:
        return None
    last = (messages_of(state.get("messages"), "assistant") or [{}])[-1]
    if last.get("role") == "model" and any(part.get("text") for part in last["parts"]):
        return None
    return [text_content("model", output_text(response))]


def _stands_for_data(part: Json) -> bool:
    return str(part.get("text", "")).startswith(f"[{NOT_RECORDED}")


def instruction_in(value: Any) -> str:
    """The text of the system messages in a list, or of the parts of an instruction."""
    value = json_attribute(value)
    if value is ABSENT:
        return ""
    if isinstance(value, str):
        return "" if is_placeholder(value) else value
    parts: list[Json] = []
    if isinstance(value, list) and any(isinstance(message, dict) and "role" in message for message in value):
        for message in messages_of(value) or ():
            parts += message["parts"] if message["role"] == "system" else []
    else:
        parts = list(_parts(value.get("parts") if isinstance(value, dict) and "parts" in value else value))
    return "\n".join(part["text"] for part in parts if part.get("text"))


def messages_of(value: Any, role: str = "user") -> list[Json] | None:
    """The messages as `contents_of`, with the system messages, whose role is `system`."""
    value = json_attribute(value)
    if value is None or value is ABSENT or value == "" or is_placeholder(value) or has_reprs(value):
        return None
    items = _items(value, role)
    read = [_message(item, role) for item in items]
    if items and not any(read):
        return None
    # A message that nobody recorded still stands between others.
    messages = (message or _unrecorded(item) for message, item in zip(read, items, strict=True))
    return [message for message in messages if message]


def messages_in_texts(value: Any) -> Any:
    """A recorded list of messages, also where it, or each message, is JSON in a text once more."""
    value = json_attribute(value)
    value = json_attribute(value) if value is not ABSENT else value
    items = [json_attribute(item) for item in value] if isinstance(value, list) else []
    return items if items and all(isinstance(item, dict) for item in items) else value


def parts_in_text(text: Any) -> Any:
    """The parts of a message that are recorded as JSON in a text; the text itself where its JSON is of flat
    objects in no form of a part: somebody said it."""
    value = json_attribute(text) if str(text).startswith("[{") else None
    if value is ABSENT:
        return ABSENT
    items = value if isinstance(value, list) else []
    if not items or not all(isinstance(item, dict) for item in items):
        return text
    is_nested = any(isinstance(member, dict | list) for item in items for member in item.values())
    return value if is_nested or any(_parts(value)) else text


def numbered(fields: Mapping[str, Any], prefix: str) -> list[Json]:
    """The fields with a number after a prefix, such as `tool_calls.0.name`: an object for each number."""
    groups: dict[int, Json] = {}
    for name, value in fields.items():
        number, _, rest = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and number.isdigit():
            groups.setdefault(int(number), {})[rest] = value
    return [group for _, group in sorted(groups.items())]


def _unrecorded(item: Any) -> Json | None:
    author = item.get("role") if isinstance(item, dict) else None
    return {"role": _role(author), "parts": []} if isinstance(author, str) else None


def _items(value: Any, role: str) -> list[Any]:
    """The messages in a recorded value: a list, a message alone, or the response of a provider; `role` is
    that of a text alone."""
    match value:
        case [{"output": list()} as response] if not _MESSAGE_KEYS & response.keys():
            # Of a stream, with its whole response as the only piece.
            value = response["output"]
        case {"messages": list() as items}:
            value = items
        case {"choices": [first, *_]} | {"candidates": [first, *_]} if isinstance(first, dict):
            value = first.get("message", first.get("content"))
        case {"generations": [[{"message": dict() as message}]]}:
            value = message
        case {"output": list() as items} | {"input": list() as items} if not _MESSAGE_KEYS & value.keys():
            value = items
    # LangChain has a list of messages for each prompt.
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    items = value if isinstance(value, list) else [value]
    # Items of a response that stand beside its messages: those of one author in a row are one message.
    messages: list[Any] = []
    for author, group in groupby(items, lambda item: _author(item, role)):
        run = list(group)
        messages += [{"role": author, "parts": run}] if author else run
    return messages


def _author(item: Any, role: str) -> str:
    """The author of an item that stands for a part of a message, as in OpenAI's Responses API and in
    Anthropic's content; "" for another item."""
    if not isinstance(item, dict) or _MESSAGE_KEYS & (item.keys() - {"content"}):
        return ""
    kind = str(item.get("type") or "")
    if kind in _THOUGHTS | _NO_CONTENT or _is_call(kind):
        return "assistant"
    if _is_response(kind):
        return "user"
    return role if kind in _TEXTS else ""


def _is_call(kind: str) -> bool:
    return kind in _CALLS or kind.endswith("_call")


def _is_response(kind: str) -> bool:
    return kind in _RESPONSES or kind.endswith(_RESPONSE_ENDS)


def has_choices(value: Any) -> bool:
    """Whether a recorded response has several choices (n > 1) that differ: its messages have ends or indexes
    of their own."""
    items = list(objects(json_attribute(value)))
    ends = [item for item in items if item.get("finish_reason")]
    indexes = {str(item["index"]) for item in items if item.get("index") is not None}
    contents = [[item.get(name) for name in ("parts", "content", "tool_calls")] for item in items]
    return max(len(ends), len(indexes)) > 1 and any(content != contents[0] for content in contents)


def is_unread(value: Any) -> bool:
    """Whether a recorded answer has something, perhaps a call, in a form that `contents_of` does not read."""
    value = json_attribute(value)
    if not isinstance(value, list | dict):
        return False
    return any(_is_unread(item) for item in _items(value, "assistant") if isinstance(item, dict))


def may_be_text(value: Any) -> bool:
    """Whether JSON in a text may be the text of a message, and no message: it names no author, and has no
    objects inside."""
    value = json_attribute(value) if isinstance(value, str) else None
    if isinstance(value, dict) and not {"role", "type"} & value.keys():
        members = list(value.values())
    else:
        members = value if isinstance(value, list) else [{}]
    inner = [item for member in members for item in (member if isinstance(member, list) else [member])]
    return bool(inner) and not any(isinstance(item, dict | list) for item in inner)


def has_reprs(value: Any) -> bool:
    """Whether a value is the repr of a Python object, or has those of messages: nobody said them."""
    value = json_attribute(value)
    items = value.get("messages") if isinstance(value, dict) else value
    items = items if isinstance(items, list) else [items]
    return any(isinstance(item, str) and _REPR.match(item) for item in items)


def _is_unread(item: Json) -> bool:
    if not _MESSAGE_KEYS & item.keys():
        return True
    parts = item.get("parts", item.get("content"))
    kinds = [str(part.get("type")) for part in _list(parts) if isinstance(part, dict)]
    return any(
        "tool" in kind and not (_is_call(kind) or _is_response(kind) or kind in _NO_CONTENT) for kind in kinds
    )


def _message(item: Any, role: str) -> Json | None:
    if isinstance(item, str):
        return None if is_placeholder(item) else text_content(_role(role), item)
    if not isinstance(item, dict):
        return None
    inner = item.get("kwargs") if "lc" in item or item.get("type") == "constructor" else item.get("message")
    if inner is None and "content" not in item and isinstance(item.get("type"), str):
        # As LangChain's `messages_to_dict` writes it.
        inner = item.get("data")
    if isinstance(inner, dict):
        kind = item["id"][-1] if isinstance(item.get("id"), list) and item["id"] else item.get("role")
        return _message({"role": kind, **inner}, role)
    author = item.get("role") or (item.get("type") if "content" in item else None) or role
    who = str(author) if str(author) in ROLES else str(author).lower()
    if who not in ROLES:
        if role == "user" and "role" in item:
            # The user may not have said it.
            return {"role": role, "parts": []}
        who = role
    if who in _TOOL:
        return {"role": "user", "parts": _responses(item)}
    content = item["parts"] if "parts" in item else item.get("contents", item.get("content"))
    if is_placeholder(content) and not item.get("tool_calls"):
        return None
    parts = list(_parts(content))
    # OpenAI had one call in a message before it had several.
    older = [item["function_call"]] if isinstance(item.get("function_call"), dict) else []
    calls: list[Json] = []
    extra = object_of(item.get("additional_kwargs"))
    for call in _list(item.get("tool_calls")) or _list(extra.get("tool_calls")) or older:
        if not (read := [*_call(call)]):
            return None
        calls += read
    # LangChain has a call as a part of the content, too.
    ids = {part["function_call"]["id"] for part in calls if part["function_call"].get("id")}
    parts = [part for part in parts if part.get("function_call", {}).get("id") not in ids] + calls
    if all(part.get("thought") for part in parts) and any(map(_lacks_text, _list(content))):
        return None
    if not parts and not any(name in item for name in ("parts", "content", "contents", "tool_calls")):
        return None
    return {"role": _role(who), "parts": parts}


def _role(author: str) -> str:
    if author in _SYSTEM:
        return "system"
    return "model" if author in _MODEL else "user"


def _parts(content: Any) -> Iterator[Json]:
    if isinstance(content, str):
        if content and not is_placeholder(content):
            yield {"text": content}
        return
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, str):
            yield from _parts(item)
        elif isinstance(item, dict):
            yield from _part(item)


def _part(item: Json) -> Iterator[Json]:
    kind: str = item["type"] if isinstance(item.get("type"), str) else ""
    inner = item.get("message_content")
    if isinstance(inner, dict):
        yield from _part(inner)
    elif kind in _THOUGHTS or item.get("thought") is True:
        yield from ({**part, "thought": True} for part in _text(item))
    elif kind in _TEXTS or (not kind and isinstance(item.get("text"), str)):
        yield from _text(item)
    elif kind == "refusal":
        yield from _parts(item.get("refusal"))
    elif _is_call(kind) or either(item, "functionCall") is not None:
        yield from _call(either(item, "functionCall") if not kind else _as_call(item, kind))
        if kind.endswith("_call") and kind not in _CLIENT_CALLS and "call_id" not in item:
            yield _own_result(item, kind)
    elif _is_response(kind) or either(item, "functionResponse") is not None:
        yield _response(either(item, "functionResponse") if not kind else item)
    elif kind in _LINKS or either(item, "fileData") is not None:
        yield _link(either(item, "fileData") if not kind else item)
    elif kind in _DATA or either(item, "inlineData") is not None:
        yield {"text": f"[{NOT_RECORDED}: {_mime(either(item, 'inlineData') if not kind else item)}]"}


def _lacks_text(item: Any) -> bool:
    """Whether a part of a message is a text that nobody recorded."""
    part = item.get("message_content", item) if isinstance(item, dict) else None
    return (
        isinstance(part, dict)
        and str(part.get("type")) in _TEXTS
        and all(part.get(name) is None or is_placeholder(part[name]) for name in _TEXT_KEYS)
    )


def _text(item: Json) -> Iterator[Json]:
    for name in _TEXT_KEYS:
        value = item.get(name)
        if isinstance(value, str):
            yield from _parts(value)
            return
        if value is not None:
            yield {"text": json.dumps(value, ensure_ascii=False)}
            return


def _as_call(item: Json, kind: str) -> Json:
    """A call of any kind with its name and its arguments, under the names that agents of OpenAI's SDK have
    for them."""
    details = item.get(_SERVER_CALL)
    if isinstance(details, dict):
        others = {key: value for key, value in details.items() if key not in _ITEM_FIELDS}
        return {**item, "arguments": details.get("input", details.get("arguments", others))}
    if kind == "custom_tool_call":
        return {**item, "arguments": {"input": item.get("input")}}
    if kind in _CALLS:
        return item
    arguments = {key: value for key, value in item.items() if key not in _ITEM_FIELDS}
    return {**item, "name": item.get("name") or kind.removesuffix("_call"), "arguments": arguments}


def _own_result(item: Json, kind: str) -> Json:
    """The result in a call that OpenAI's service makes."""
    result = {name: item[name] for name in _RESULT_FIELDS if item.get(name) is not None}
    name = str(item.get("name") or kind.removesuffix("_call"))
    return {"function_response": {"id": str(item.get("id") or ""), "name": name, "response": result}}


def _call(item: Any) -> Iterator[Json]:
    if not isinstance(item, dict):
        return
    function = item.get("function")
    inner = function if isinstance(function, dict) else item
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        return
    raw_arguments = next(
        (inner[key] for key in ("arguments", "args", "input", "parameters") if key in inner), None
    )
    call: Json = {"name": name}
    # A model that gives none means none; what was taken out is unknown.
    arguments = {} if raw_arguments == "" else as_arguments(raw_arguments)
    if arguments is not ABSENT and not is_placeholder(raw_arguments):
        call["args"] = arguments
    call_id = item.get("call_id") or item.get("id")
    if call_id:
        call["id"] = str(call_id)
    yield {"function_call": call}


def _responses(item: Json) -> list[Json]:
    """The results in a message of a tool: parts of it, or the message as a whole."""
    content = item.get("parts", item.get("content"))
    parts = (
        [part for part in _parts(content) if "function_response" in part] if isinstance(content, list) else []
    )
    if len(parts) == 1 and item.get("name"):
        parts[0]["function_response"].setdefault("name", item["name"])
    return parts or [_response(item)]


def _response(item: Any) -> Json:
    if not isinstance(item, dict):
        item = {"content": item}
    names = ("response", f"{_SERVER_CALL}_response", "result", "output", "content", "contents", "parts")
    content = next((item[key] for key in names if item.get(key) is not None), None)
    response: Json = {}
    name = item.get("name") or item.get("tool_name")
    if isinstance(name, str):
        response["name"] = name
    call_id = next(
        (item[key] for key in ("tool_call_id", "tool_use_id", "call_id", "id") if item.get(key)), None
    )
    if call_id:
        response["id"] = str(call_id)
    result = as_result(_alone_text(only_item(content)))
    if result is not ABSENT:
        response["response"] = result
    return {"function_response": response}


def _alone_text(value: Any) -> Any:
    """The text of a single part, else the value."""
    if isinstance(value, dict) and str(value.get("type")) in _TEXTS:
        return value.get("text", value.get("content"))
    return value


def _link(item: Any) -> Json:
    data = object_of(item)
    address = next((data[key] for key in ("uri", "file_uri", "fileUri", "file_id") if data.get(key)), None)
    if address is None:
        return {"text": f"[{NOT_RECORDED}: {_mime(data)}]"}
    return {"file_data": {"file_uri": str(address), "mime_type": _mime(data)}}


def _mime(data: Any) -> str:
    mime_type = either(object_of(data), "mimeType")
    return str(mime_type) if mime_type else "application/octet-stream"


def _list(value: Any) -> list[Any]:
    value = json_attribute(value)
    return value if isinstance(value, list) else []
