"""Converts Pydantic AI's messages to genai contents and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    VideoUrl,
)
from pydantic_core import to_jsonable_python

from ....core.model.events import Json, Step, parts_in
from ..base import call_of, history
from ..calls import Described
from ..values import response_of, result_of, usage_of

_URLS = {"image": ImageUrl, "audio": AudioUrl, "video": VideoUrl}
# Fields that differ in each run and are not sent to models.
_VOLATILE = ("timestamp", "run_id", "conversation_id")


def contents_of(messages: Iterable[Any]) -> list[Json]:
    """The contents of messages, without instructions, see `instruction_of`."""
    contents: list[Json] = []
    for message in messages:
        response = message.kind == "response"
        parts = [
            content_part
            for part in message.parts
            for content_part in (_model_part(part) if response else _request_part(part))
        ]
        if parts:
            contents.append({"role": "model" if response else "user", "parts": parts})
    return contents


def instruction_of(messages: Sequence[Any]) -> str:
    """The system prompts and the instructions of a request, in one text."""
    prompts = [
        part.content
        for message in messages
        if message.kind == "request"
        for part in message.parts
        if part.part_kind == "system-prompt"
    ]
    instructions = (message.instructions for message in reversed(messages) if message.kind == "request")
    return "\n\n".join(filter(None, [*prompts, next(instructions, None)]))


def is_result(part: Any) -> bool:
    """Whether a part of a request is the result of a tool, or the reason to call it again."""
    return part.part_kind == "tool-return" or (
        part.part_kind == "retry-prompt" and part.tool_name is not None
    )


def _request_part(part: Any) -> Iterator[Json]:
    if is_result(part):
        yield result_part(part)
    elif part.part_kind == "user-prompt":
        yield from user_parts(part.content)
    elif part.part_kind != "system-prompt":
        yield {"text": _text(getattr(part, "content", ""))}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return json.dumps(to_jsonable_python(content, fallback=str), ensure_ascii=False)


def result_part(part: Any) -> Json:
    """The result of a tool as a function response; a failure is its `error`."""
    failed = part.part_kind == "retry-prompt" or getattr(part, "outcome", "success") != "success"
    response = {"error": _text(part.content)} if failed else response_of(part.content)
    return {"function_response": {"id": part.tool_call_id, "name": part.tool_name, "response": response}}


def user_parts(content: Any) -> Iterator[Json]:
    """The user's prompt as parts of a content."""
    if isinstance(content, str):
        yield {"text": content}
        return
    for item in content:
        if isinstance(item, str):
            yield {"text": item}
        elif hasattr(item, "url"):
            kind = getattr(item, "_media_type", None)
            yield {"file_data": {"file_uri": item.url} | ({"mime_type": kind} if kind else {})}
        elif isinstance(item, BinaryContent):
            yield _blob(item)
        elif isinstance(getattr(item, "content", None), str):
            yield {"text": item.content}
        elif getattr(item, "kind", "") != "cache-point":
            yield {"text": f"<{type(item).__name__}>"}


def _blob(content: Any) -> Json:
    data = base64.urlsafe_b64encode(content.data).decode()
    return {"inline_data": {"mime_type": content.media_type, "data": data}}


def _model_part(part: Any) -> Iterator[Json]:
    match part.part_kind:
        case "tool-call" | "builtin-tool-call":
            args = to_jsonable_python(part.args_as_dict(), fallback=str)
            yield {"function_call": {"id": part.tool_call_id, "name": part.tool_name, "args": args}}
        case "tool-return" | "builtin-tool-return":
            response = response_of(part.content)
            call: Json = {"id": part.tool_call_id, "name": part.tool_name, "response": response}
            yield {"function_response": call}
        case "file":
            yield _blob(part.content)
        case "thinking":
            if part.content:
                yield {"text": part.content, "thought": True}
        case _:
            if text := _text(getattr(part, "content", None) or ""):
                yield {"text": text}


def described(response: Any) -> Described:
    """The description of a response for its event."""
    usage, (content, *_) = response.usage, [*contents_of([response]), None]
    details = usage.details or {}
    metadata = {
        "model_version": response.model_name,
        "finish_reason": getattr(response, "finish_reason", None),
    }
    return Described(
        content,
        usage_of(
            prompt=usage.input_tokens or 0,
            output=usage.output_tokens or 0,
            cached=usage.cache_read_tokens or 0,
            thoughts=details.get("reasoning_tokens") or details.get("thoughts_tokens") or 0,
        ),
        {name: value for name, value in metadata.items() if value is not None},
    )


def response_to_json(response: Any) -> Json:
    """A response for a recording; the ids of its calls are separate, where the recorder numbers them."""
    (data,) = ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True)
    for name in _VOLATILE:
        data.pop(name, None)
    ids = []
    for part in data["parts"]:
        part.pop("timestamp", None)
        if part["part_kind"] == "tool-call":
            ids.append({"function_call": {"id": part.pop("tool_call_id")}})
    return {"message": data} | ({"content": {"parts": ids}} if ids else {})


def response_from_json(data: Json) -> Any:
    """Reads a response. Raises pydantic's error for a response of another version of Pydantic AI."""
    message: Json = json.loads(json.dumps(data["message"]))
    ids = iter(part["function_call"]["id"] for part in parts_in(data.get("content")))
    for part in message["parts"]:
        if part["part_kind"] == "tool-call":
            part["tool_call_id"] = next(ids)
    # From JSON, since bytes are base64 in JSON only.
    (response,) = ModelMessagesTypeAdapter.validate_json(json.dumps([message]))
    return response


def prompt_of(content: Json) -> str | list[Any] | None:
    """A user's message as a prompt of Pydantic AI; None where it only responds to calls."""
    items = user_items(parts_in(content))
    if len(items) == 1 and isinstance(items[0], str):
        return items[0]
    return items or None


def user_items(parts: Iterable[Json]) -> list[Any]:
    """The parts of a content as a user's prompt; the reverse of `user_parts`."""
    return [item for part in parts if (item := _prompt_item(part)) is not None]


def _prompt_item(part: Json) -> Any:
    if blob := part.get("inline_data"):
        data = blob["data"].replace("-", "+").replace("_", "/")
        return BinaryContent(data=base64.b64decode(data), media_type=blob["mime_type"])
    if file := part.get("file_data"):
        kind = file.get("mime_type")
        url = _URLS.get((kind or "").partition("/")[0], DocumentUrl)
        return url(url=file["file_uri"], media_type=kind)
    return part.get("text")


def messages_of(past: Sequence[Step]) -> list[Any]:
    """The history of `past`, to continue from; see `history`."""
    waiting = {call_id for step in past for call_id in (*step.long_running, *_calls_in_requests(step))}
    messages: list[Any] = []
    for role, results, others in history(past, waiting):
        if results:
            returns = [
                ToolReturnPart(
                    tool_name=result["name"],
                    content=result_of(result.get("response")),
                    tool_call_id=result["id"],
                )
                for result in results
            ]
            messages.append(ModelRequest(parts=returns))
        if role == "user":
            if (prompt := prompt_of({"parts": others})) is not None:
                messages.append(ModelRequest(parts=[UserPromptPart(content=prompt)]))
        elif shown := list(filter(None, map(_past_part, others))):
            messages.append(ModelResponse(parts=shown))
    return messages


def _calls_in_requests(step: Step) -> Iterator[str]:
    """The ids of the calls that a step's requests to a person are about."""
    for part in step.parts:
        args = call_of(part).get("args") or {}
        if call_id := args.get("callId") or (args.get("originalFunctionCall") or {}).get("id"):
            yield call_id


def _past_part(part: Json) -> Any:
    if call := part.get("function_call"):
        return ToolCallPart(tool_name=call["name"], args=call.get("args") or {}, tool_call_id=call["id"])
    return TextPart(content=part["text"]) if part.get("text") else None
