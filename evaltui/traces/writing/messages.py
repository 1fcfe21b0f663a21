"""Contents as genai has them, to messages as google-adk's schema 2 writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evaltui.core.model.events import Json

# As google-adk writes it: the data itself would be in every later request again.
_NOT_HERE = "<not serializable>"


def message_of(content: Json) -> Json:
    role = "assistant" if content.get("role") == "model" else "user"
    return {"role": role, "parts": list(_parts(content.get("parts") or ()))}


def answer_of(content: Json | None, finish: str = "stop") -> list[Json]:
    """The messages of a model's answer; none where it has no content."""
    return [] if content is None else [message_of({**content, "role": "model"}) | {"finish_reason": finish}]


def _parts(parts: Iterable[Mapping[str, Any]]) -> Iterator[Json]:
    for part in parts:
        if "function_call" in part:
            call = part["function_call"]
            call_part: Json = {"type": "tool_call", "id": call.get("id"), "name": str(call.get("name") or "")}
            yield {**call_part, "arguments": call["args"]} if "args" in call else call_part
        elif "function_response" in part:
            response = part["function_response"]
            answer: Json = {
                "type": "tool_call_response",
                "id": response.get("id"),
                "name": response.get("name"),
            }
            yield {**answer, "response": response.get("response")}
        elif part.get("text") is not None:
            yield {"type": "reasoning" if part.get("thought") else "text", "content": part["text"]}
        elif blob := part.get("inline_data"):
            yield {"type": "blob", "mime_type": blob.get("mime_type"), "data": _NOT_HERE}
        elif link := part.get("file_data"):
            yield {"type": "file_data", "mime_type": link.get("mime_type"), "uri": link.get("file_uri")}
        else:
            # Such as code that a model ran.
            yield {"type": next(iter(part), "unknown"), **part}
