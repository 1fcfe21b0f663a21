"""What is said and called in a turn: contents and their parts, as google-genai has them.

They read and write what its types do, and read those themselves. Of what is in few files, such as images and
code, the values are google-genai's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from .base_model import DataModel
from .genai_types import GenaiType

GROUNDING_METADATA = GenaiType("GroundingMetadata")

if TYPE_CHECKING:
    from google.genai.types import (
        Blob,
        CodeExecutionResult,
        ExecutableCode,
        FileData,
        FunctionResponsePart,
        FunctionResponseScheduling,
        MediaProcessing,
        ModalityTokenCount,
        PartialArg,
        PartMediaResolution,
        SpeechMetadata,
        ToolCall,
        ToolResponse,
        TrafficType,
        Transcription,
        VideoMetadata,
    )
    from google.genai.types import GroundingMetadata as GroundingMetadata
else:
    Blob = Annotated[Any, GenaiType("Blob")]
    CodeExecutionResult = Annotated[Any, GenaiType("CodeExecutionResult")]
    ExecutableCode = Annotated[Any, GenaiType("ExecutableCode")]
    FileData = Annotated[Any, GenaiType("FileData")]
    FunctionResponsePart = Annotated[Any, GenaiType("FunctionResponsePart")]
    FunctionResponseScheduling = Annotated[Any, GenaiType("FunctionResponseScheduling")]
    GroundingMetadata = Annotated[Any, GROUNDING_METADATA]
    MediaProcessing = Annotated[Any, GenaiType("MediaProcessing")]
    ModalityTokenCount = Annotated[Any, GenaiType("ModalityTokenCount")]
    PartialArg = Annotated[Any, GenaiType("PartialArg")]
    PartMediaResolution = Annotated[Any, GenaiType("PartMediaResolution")]
    SpeechMetadata = Annotated[Any, GenaiType("SpeechMetadata")]
    ToolCall = Annotated[Any, GenaiType("ToolCall")]
    ToolResponse = Annotated[Any, GenaiType("ToolResponse")]
    TrafficType = Annotated[Any, GenaiType("TrafficType")]
    Transcription = Annotated[Any, GenaiType("Transcription")]
    VideoMetadata = Annotated[Any, GenaiType("VideoMetadata")]


class _Genai(DataModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        # Reads google-genai's own.
        from_attributes=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        # Of many fields, few have a value.
        return [(name, value) for name, value in super().__repr_args__() if value is not None]


class FunctionCall(_Genai):
    """A tool call."""

    id: str | None = None
    """Tells which response belongs to it."""
    args: dict[str, Any] | None = None
    name: str | None = None
    """The tool."""
    partial_args: list[PartialArg] | None = None
    """Pieces of arguments that are streamed."""
    will_continue: bool | None = None


class FunctionResponse(_Genai):
    """What a tool returned."""

    will_continue: bool | None = None
    scheduling: FunctionResponseScheduling | None = None
    parts: list[FunctionResponsePart] | None = None
    id: str | None = None
    """That of its call."""
    name: str | None = None
    """The tool."""
    response: dict[str, Any] | None = None


class Part(_Genai):
    """One thing that was said or done: usually a text, a call or a response."""

    media_resolution: PartMediaResolution | None = None
    code_execution_result: CodeExecutionResult | None = None
    executable_code: ExecutableCode | None = None
    file_data: FileData | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: Blob | None = None
    text: str | None = None
    thought: bool | None = None
    """Whether the text is a thought of the model."""
    thought_signature: bytes | None = None
    video_metadata: VideoMetadata | None = None
    tool_call: ToolCall | None = None
    tool_response: ToolResponse | None = None
    part_metadata: dict[str, Any] | None = None
    audio_transcription: Transcription | None = None
    media_processing: MediaProcessing | None = None
    speech_metadata: SpeechMetadata | None = None


class Content(_Genai):
    """A message."""

    parts: list[Part] | None = None
    role: str | None = None
    """`user` or `model`; google-adk knows `function` and `tool` of events, too."""


class UsageMetadata(_Genai):
    """The tokens of a model call, as its response says."""

    cache_tokens_details: list[ModalityTokenCount] | None = None
    cached_content_token_count: int | None = None
    """Of the prompt, those that the service had already."""
    candidates_token_count: int | None = None
    candidates_tokens_details: list[ModalityTokenCount] | None = None
    prompt_token_count: int | None = None
    prompt_tokens_details: list[ModalityTokenCount] | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    tool_use_prompt_tokens_details: list[ModalityTokenCount] | None = None
    total_token_count: int | None = None
    traffic_type: TrafficType | None = None
