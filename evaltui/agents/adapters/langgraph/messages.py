"""Converts LangChain's messages, which LangGraph's states hold, to genai contents and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from pydantic import TypeAdapter

from ....core.model.events import Json, Step, parts_in
from ..base import history
from ..calls import Described
from ..values import response_of, result_of, usage_of

_MESSAGE: TypeAdapter[Any] = TypeAdapter(AnyMessage)


def content_of_message(message: Any) -> Json | None:
    """The content of a message; None for a system message and an empty message."""
    if message.type == "tool":
        return {"role": "user", "parts": [result_part(message)]}
    if message.type in ("ai", "AIMessageChunk"):
        parts = [*_block_parts(message), *_calls(message)]
        return {"role": "model", "parts": parts} if parts else None
    if message.type in ("system", "remove"):
        return None
    parts = list(_block_parts(message))
    return {"role": "user", "parts": parts} if parts else None


def instruction_of(messages: Sequence[Any]) -> str:
    """The system messages of a request, in one text."""
    return "\n\n".join(message.text for message in messages if message.type == "system")


def _block_parts(message: Any) -> Iterator[Json]:
    """The parts of a message besides the calls that an agent makes."""
    tools: dict[str, str] = {}
    for block in message.content_blocks:
        kind = block.get("type")
        if kind == "server_tool_call":
            tools[block["id"]] = block["name"]
            call = {"id": block["id"], "name": block["name"], "args": block.get("args") or {}}
            yield {"function_call": call}
        elif kind == "server_tool_result" and block["tool_call_id"] in tools:
            call_id = block["tool_call_id"]
            response = response_of(block.get("output"))
            yield {"function_response": {"id": call_id, "name": tools[call_id], "response": response}}
        elif kind == "text" and block.get("text"):
            yield {"text": block["text"]}
        elif kind == "reasoning" and block.get("reasoning"):
            yield {"text": block["reasoning"], "thought": True}
        elif block.get("base64"):
            yield {"inline_data": {"mime_type": block.get("mime_type") or "", "data": block["base64"]}}
        elif block.get("url"):
            kind = {"mime_type": block["mime_type"]} if block.get("mime_type") else {}
            yield {"file_data": {"file_uri": block["url"], **kind}}


def _calls(message: Any) -> Iterator[Json]:
    for call in message.tool_calls:
        yield {"function_call": {"id": call["id"] or "", "name": call["name"], "args": call["args"]}}
    for call in message.invalid_tool_calls:
        args = {"INVALID_JSON": call.get("args")}
        yield {"function_call": {"id": call["id"] or "", "name": call["name"] or "", "args": args}}


def result_part(message: Any) -> Json:
    """The result of a tool as a function response; a failure is its `error`."""
    response = response_of_content(message.content)
    if message.status == "error":
        response = {"error": response.get("result", response)}
    name = message.name or ""
    return {"function_response": {"id": message.tool_call_id, "name": name, "response": response}}


def response_of_content(content: Any) -> Json:
    """The content of a tool's message as a response; a text that is a JSON object becomes that object."""
    if isinstance(content, str) and content[:1] in ("{", "["):
        try:
            return response_of(json.loads(content))
        except ValueError:
            return {"result": content}
    return response_of(content)


def content_of_response(response: Any) -> str:
    """A response as the content of a tool's message, as LangChain writes it; the reverse of
    `response_of_content`."""
    result = result_of(response)
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def described(result: Any) -> Described:
    """The description of a `ChatResult` for its event."""
    generation = result.generations[0]
    message = generation.message
    # LangChain merges the two later.
    metadata = (generation.generation_info or {}) | message.response_metadata
    usage, content = message.usage_metadata or {}, content_of_message(message)
    details = {
        "model_version": metadata.get("model_name") or metadata.get("model"),
        "finish_reason": metadata.get("finish_reason") or metadata.get("stop_reason"),
    }
    if content is None and (refusal := message.additional_kwargs.get("refusal")):
        details |= {"finish_reason": "refusal", "error_message": str(refusal)}
    return Described(
        content,
        usage_of_message(usage),
        {name: value for name, value in details.items() if value},
    )


def usage_of_message(usage: Any) -> Json | None:
    """LangChain's usage metadata as genai's."""
    counts = usage or {}
    return usage_of(
        prompt=counts.get("input_tokens") or 0,
        output=counts.get("output_tokens") or 0,
        cached=(counts.get("input_token_details") or {}).get("cache_read") or 0,
        thoughts=(counts.get("output_token_details") or {}).get("reasoning") or 0,
    )


def message_to_json(message: Any) -> Json:
    data: Json = message.model_dump(mode="json", exclude_none=True)
    # The id is random, and is not sent to models.
    data.pop("id", None)
    return {key: value for key, value in data.items() if value not in ({}, []) or key == "content"}


def message_from_json(data: Json) -> Any:
    """Reads a message. Raises pydantic's error for a message of another version."""
    return _MESSAGE.validate_python(data)


def message_of(content: Json) -> Any:
    """A user's content as a message; None where it only responds to calls."""
    parts = [part for part in parts_in(content) if "function_response" not in part]
    if len(parts) == 1 and "text" in parts[0]:
        return HumanMessage(parts[0]["text"])
    blocks = [block for part in parts if (block := _block(part)) is not None]
    return HumanMessage(blocks) if blocks else None


def _block(part: Json) -> Any:
    data = part.get("inline_data") or part.get("file_data")
    if data is None:
        return {"type": "text", "text": part["text"]} if part.get("text") else None
    mime = data.get("mime_type") or ""
    kind = mime.partition("/")[0]
    block = {"type": kind if kind in ("image", "audio", "video") else "file"} | (
        {"mime_type": mime} if mime else {}
    )
    return block | ({"base64": data["data"]} if "data" in data else {"url": data["file_uri"]})


def messages_of(past: Sequence[Step]) -> list[Any]:
    """The messages of `past`, to continue from; see `history`."""
    messages: list[Any] = []
    for role, results, others in history(past):
        messages += map(_tool_message, results)
        if role == "user":
            if (message := message_of({"parts": others})) is not None:
                messages.append(message)
            continue
        text = "".join(part["text"] for part in others if part.get("text"))
        calls = [part["function_call"] for part in others if "function_call" in part]
        tool_calls = [
            {"name": call["name"], "args": call.get("args") or {}, "id": call["id"]} for call in calls
        ]
        if text or tool_calls:
            messages.append(AIMessage(text, tool_calls=tool_calls))
    return messages


def _tool_message(result: Json) -> ToolMessage:
    response: Any = result.get("response")
    failed = isinstance(response, dict) and response.keys() == {"error"}
    return ToolMessage(
        content_of_response(response["error"] if failed else response),
        name=result["name"],
        tool_call_id=result["id"],
        status="error" if failed else "success",
    )
