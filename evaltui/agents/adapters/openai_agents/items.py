"""Converts items of OpenAI's Responses API, which the Agents SDK uses, to genai contents and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from ....core.model.events import Json, Step, parts_in, text_content
from ..base import call_of
from ..values import divided, response_of

# Fields with the result in a call that OpenAI's service executes itself.
_RESULT_FIELDS = ("output", "outputs", "result", "results", "error", "status")


def item_json(item: Any) -> Json:
    """An item of any kind as JSON."""
    if isinstance(item, BaseModel):
        written: Json = item.model_dump(mode="json", exclude_unset=True)
        return written
    return dict(item)


def output_contents(items: Sequence[Json]) -> list[Json]:
    """The output of a model as contents, in order: its texts and calls, and the results of calls that
    OpenAI's service executes."""
    parts = [part for item in items for part in (*_model_parts(item), *_own_result(item))]
    return divided(parts) or [{"role": "model", "parts": []}]


def contents_of(items: str | Sequence[Any]) -> list[Json]:
    """The input of a model as genai contents."""
    if isinstance(items, str):
        return [text_content("user", items)]
    contents: list[Json] = []
    for item in map(item_json, items):
        if _is_message(item) and item.get("role") != "assistant":
            contents.append({"role": str(item.get("role")), "parts": list(_message_parts(item))})
        elif is_output(item):
            contents.append({"role": "user", "parts": [result_part(item, tool_of(item))]})
        else:
            contents += output_contents([item])
    return contents


def _is_message(item: Json) -> bool:
    return str(item.get("type", "message")) == "message"


def _model_parts(item: Json) -> list[Json]:
    """The parts of an item of a model's output."""
    if _is_message(item):
        return list(_message_parts(item))
    kind = str(item["type"])
    if kind == "reasoning":
        texts = [*(item.get("summary") or ()), *(item.get("content") or ())]
        return [{"text": text["text"], "thought": True} for text in texts if text.get("text")]
    if kind in ("function_call", "mcp_call"):
        return [_call(item, str(item.get("name")), arguments_of(item.get("arguments")))]
    if kind == "custom_tool_call":
        return [_call(item, str(item.get("name")), {"input": item.get("input")})]
    if kind.endswith("_call"):
        other_fields = ("type", "id", "call_id", *_RESULT_FIELDS)
        args = {name: value for name, value in item.items() if name not in other_fields}
        return [_call(item, tool_of(item), args)]
    # Items without a genai part, such as the tool list of an MCP server, are shown but never scored.
    return [{"text": json.dumps(item, ensure_ascii=False), "thought": True}]


def _message_parts(item: Json) -> Iterator[Json]:
    content = item.get("content")
    if isinstance(content, str):
        yield {"text": content}
        return
    for part in content or ():
        text = part.get("text", part.get("refusal"))
        yield {"text": text} if isinstance(text, str) else {"openai_item": dict(part)}


def arguments_of(arguments: Any) -> Json:
    """The arguments of a call, which models write as JSON; a value that is no object becomes `{"arguments":
    …}`."""
    try:
        read = json.loads(arguments or "{}") if isinstance(arguments, str | None) else arguments
    except ValueError:
        read = arguments
    return dict(read) if isinstance(read, Mapping) else {"arguments": read}


def call_id_of(item: Json) -> str:
    return str(item.get("call_id") or item.get("id") or "")


def tool_of(item: Json) -> str:
    """The name of the tool of a call or a result; the kind of the tool where the item has no name."""
    kind = str(item.get("type")).removesuffix("_output").removesuffix("_call")
    return str(item.get("name") or kind)


def _call(item: Json, name: str, args: Json) -> Json:
    return {"function_call": {"id": call_id_of(item), "name": name, "args": args}}


def _own_result(item: Json) -> Iterator[Json]:
    """The result in a call that OpenAI's service executes; none in another item."""
    kind = str(item.get("type", "message"))
    if kind.endswith("_call") and kind != "function_call" and "call_id" not in item:
        result = {name: item[name] for name in _RESULT_FIELDS if item.get(name) is not None}
        yield {"function_response": {"id": call_id_of(item), "name": tool_of(item), "response": result}}


def is_output(item: Json) -> bool:
    """Whether an item is the result of a call."""
    return str(item.get("type")).endswith("_output") and "call_id" in item


def result_part(item: Json, name: str) -> Json:
    """The result of a call of the tool `name`, as a function response."""
    others = {key: value for key, value in item.items() if key not in ("type", "id", "call_id", "status")}
    response = response_of(others["output"] if others.keys() == {"output"} else others)
    return {"function_response": {"id": call_id_of(item), "name": name, "response": response}}


def input_message(content: Json) -> Json:
    """A user's message with texts, images and files, as an item."""
    parts = [part for part in parts_in(content) if part]
    if all(part.keys() == {"text"} for part in parts):
        return {"role": "user", "content": "\n".join(part["text"] for part in parts)}
    return {"role": "user", "content": [_input_part(part) for part in parts]}


def _input_part(part: Json) -> Json:
    if "text" in part:
        return {"type": "input_text", "text": part["text"]}
    if blob := part.get("inline_data"):
        kind = str(blob.get("mime_type") or "application/octet-stream")
        # genai writes bytes as URL-safe base64.
        url = f"data:{kind};base64,{str(blob.get('data')).replace('-', '+').replace('_', '/')}"
        if kind.startswith("image/"):
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        name = str(blob.get("display_name") or f"file.{kind.rpartition('/')[2]}")
        return {"type": "input_file", "filename": name, "file_data": url}
    file = part["file_data"]
    url = str(file.get("file_uri"))
    if str(file.get("mime_type")).startswith("image/"):
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_file", "file_url": url}


def past_items(past: Sequence[Step]) -> list[Json]:
    """The history of `past`, to continue from, without calls that have no result and results that have no
    call, which models refuse."""
    items: list[Json] = []
    for step in past:
        if own_items := (step.framework or {}).get("items"):
            items += own_items
        elif step.author == "user":
            if any("function_response" not in part for part in step.parts):
                items.append(input_message(step.content or {}))
        else:
            items += filter(None, map(_past_item, step.parts))
    return with_results(items)


def _past_item(part: Json) -> Json | None:
    call = call_of(part)
    if "function_call" in part:
        arguments = json.dumps(call.get("args") or {})
        return {
            "type": "function_call",
            "call_id": call.get("id"),
            "name": call.get("name"),
            "arguments": arguments,
        }
    if "function_response" in part:
        return {"type": "function_call_output", "call_id": call.get("id"), "output": output_text(call)}
    if part.get("text") and not part.get("thought"):
        return {"role": "assistant", "content": part["text"]}
    return None


def output_text(response: Json) -> str:
    """A function response as the text that the SDK sends to a model."""
    value = response.get("response")
    return str(value["result"] if isinstance(value, dict) and value.keys() == {"result"} else value)


def with_results(items: Sequence[Json]) -> list[Json]:
    """Items without calls that have no result, and without results that have no call."""
    calls = {item["call_id"] for item in items if "call_id" in item and not is_output(item)}
    outputs = {item["call_id"] for item in items if is_output(item)}
    return [item for item in items if "call_id" not in item or item["call_id"] in calls & outputs]


def is_plain(items: Sequence[Json]) -> bool:
    """Whether the items can be restored from their genai parts."""
    return all(_is_message(item) or item["type"] == "function_call" for item in items)
