"""What a model is to an agent, and Gemini as one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from google import genai
from google.genai import types

Value = TypeVar("Value")


@dataclass(frozen=True)
class ModelRequest:
    """`contents` is the whole conversation, the newest content last."""

    system_instruction: str
    contents: Sequence[types.Content]
    tools: Sequence[types.FunctionDeclaration]


@dataclass(frozen=True)
class ModelResponse:
    """`finish_reason` is a name of genai's FinishReason or, where the prompt was refused, BlockedReason."""

    parts: Sequence[types.Part] = ()
    usage: types.GenerateContentResponseUsageMetadata | None = None
    grounding: types.GroundingMetadata | None = None
    model_version: str | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class Model(Protocol):
    """Anything that answers requests. `name` is shown to users."""

    @property
    def name(self) -> str: ...

    async def generate(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelResponse:
        """The whole response. Pieces of its text may be given to `on_text` as they arrive."""
        ...


class GeminiModel:
    """A model that google-genai reaches, configured by google-genai's own environment variables."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def _client(self) -> genai.Client:
        try:
            return genai.Client()
        except ValueError as error:
            raise ValueError(
                f"model {self.name!r} cannot be used: {error} Set GOOGLE_API_KEY or GEMINI_API_KEY in the "
                "environment or in the agent's .env file; for Vertex AI set GOOGLE_GENAI_USE_VERTEXAI=true, "
                "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION."
            ) from error

    async def generate(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelResponse:
        """Raises ValueError without credentials, `google.genai.errors.APIError` when the service refuses."""
        stream = await self._client.aio.models.generate_content_stream(
            model=self.name,
            contents=list(request.contents),
            config=types.GenerateContentConfig(
                system_instruction=request.system_instruction or None,
                tools=[types.Tool(function_declarations=list(request.tools))] if request.tools else None,
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            ),
        )
        chunks: list[types.GenerateContentResponse] = []
        async for chunk in stream:
            chunks.append(chunk)
            for part in _parts(chunk):
                if part.text and not part.thought:
                    on_text(part.text)
        return _whole(chunks)

    async def close(self) -> None:
        """Let go of the connections, if any were made."""
        if "_client" in vars(self):
            await self._client.aio.aclose()


def _parts(chunk: types.GenerateContentResponse) -> Sequence[types.Part]:
    content = chunk.candidates[0].content if chunk.candidates else None
    return (content.parts or []) if content else []


def _whole(chunks: Sequence[types.GenerateContentResponse]) -> ModelResponse:
    candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
    feedbacks = [chunk.prompt_feedback for chunk in chunks if chunk.prompt_feedback]
    reasons: list[types.FinishReason | types.BlockedReason | None] = [
        *(feedback.block_reason for feedback in feedbacks),
        *(candidate.finish_reason for candidate in candidates),
    ]
    messages = [
        *(feedback.block_reason_message for feedback in feedbacks),
        *(candidate.finish_message for candidate in candidates),
    ]
    reason = _last(reasons)
    return ModelResponse(
        parts=join_texts([part for chunk in chunks for part in _parts(chunk)]),
        usage=_last([chunk.usage_metadata for chunk in chunks]),
        grounding=_last([candidate.grounding_metadata for candidate in candidates]),
        model_version=_last([chunk.model_version for chunk in chunks]),
        finish_reason=reason.name if reason else None,
        finish_message=_last(messages),
    )


def _last(values: Sequence[Value | None]) -> Value | None:
    return next((value for value in reversed(values) if value is not None), None)


def join_texts(parts: Sequence[types.Part]) -> list[types.Part]:
    """The parts of a response as if it had come in one piece.

    A part with a thought signature is left as it came: the model wants it back unchanged.
    """
    joined: list[types.Part] = []
    for part in parts:
        if part.text == "" and not part.thought_signature:
            continue
        if (
            joined
            and _is_plain_text(joined[-1])
            and _is_plain_text(part)
            and joined[-1].thought == part.thought
        ):
            joined[-1] = types.Part(text=f"{joined[-1].text}{part.text}", thought=part.thought)
        else:
            joined.append(part)
    return joined


def _is_plain_text(part: types.Part) -> bool:
    return bool(part.text) and not part.thought_signature
