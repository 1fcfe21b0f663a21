"""The interface between an agent and its model: request, response and `Model`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pydantic import BaseModel

from ...core.model.content import Content, GroundingMetadata, Part, UsageMetadata
from ...core.model.events import Json
from ..model_gate import size_of
from .declarations import FunctionDeclaration

if TYPE_CHECKING:
    from google.genai.types import GenerateContentConfig


@dataclass(frozen=True)
class ModelRequest:
    """A request to a model.

    `contents` is the whole conversation, the newest content last. `config` holds all other settings; the
    fields beside it win over its fields.
    """

    system_instruction: str
    contents: Sequence[Content]
    tools: Sequence[FunctionDeclaration]
    config: GenerateContentConfig | None = None


@dataclass(frozen=True)
class ModelResponse:
    """A response of a model.

    `finish_reason` is a name of genai's FinishReason or, where the prompt was refused, BlockedReason.
    """

    parts: Sequence[Part] = ()
    usage: UsageMetadata | None = None
    grounding: GroundingMetadata | None = None
    model_version: str | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class Model(Protocol):
    """A model that answers requests. `name` is shown to users."""

    @property
    def name(self) -> str: ...

    async def generate(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelResponse:
        """The complete response, whose parts may also be google-genai's. Pieces of its text may be passed to
        `on_text` as they arrive."""
        ...


def own_parts(parts: Iterable[BaseModel]) -> list[Part]:
    """The parts of a response as evaltui's own `Part`; some may be google-genai's."""
    return [
        part if isinstance(part, Part) else Part.model_validate_json(part.model_dump_json(exclude_none=True))
        for part in parts
    ]


def size_of_request(request: ModelRequest) -> int:
    """The size of a request in characters."""
    contents = [content.model_dump(exclude_none=True) for content in request.contents]
    return len(request.system_instruction) + size_of([*contents, *(tool.as_json() for tool in request.tools)])


def usage_data(response: ModelResponse) -> Json | None:
    """The token counts of a response as JSON; None where they are unknown."""
    return response.usage.model_dump(mode="json", exclude_none=True) if response.usage else None
