"""Contents of turns and their parts, compatible with google-genai's types.

They read and write the same JSON as google-genai's types, and also accept objects of these types. Rare
values, such as images and code, are objects of google-genai.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticKnownError, core_schema, to_json

from .base_model import DataModel


@dataclass(frozen=True)
class GenaiType:
    """Annotates a field whose values are of a type of `google.genai.types`."""

    name: str

    def imported(self) -> type[Any]:
        genai_type: type[Any] = getattr(import_module("google.genai.types"), self.name)
        return genai_type

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._read,
            serialization=core_schema.plain_serializer_function_ser_schema(_serialize_value, info_arg=True),
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        try:
            return handler(TypeAdapter(self.imported()).core_schema)
        except AttributeError:
            # See `_read`.
            return {}

    def _read(self, value: Any) -> Any:
        try:
            kind = self.imported()
        except AttributeError:
            # Of a later version than the one that is installed.
            raise PydanticKnownError("extra_forbidden") from None
        if isinstance(value, kind):
            return value
        # As JSON, in which bytes are base64.
        return TypeAdapter(kind).validate_json(to_json(value, bytes_mode="base64"))


@dataclass(frozen=True)
class GenaiField:
    """Annotates keys that only a later version of a model of `google.genai.types` has; other unknown keys are
    refused."""

    model: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked_key, core_schema.str_schema())

    def _checked_key(self, key: str) -> str:
        fields = GenaiType(self.model).imported().model_fields
        if not any(key in (name, field.alias) for name, field in fields.items()):
            raise PydanticKnownError("extra_forbidden")
        return key


def _serialize_value(value: Any, info: core_schema.SerializationInfo) -> Any:
    if not isinstance(value, BaseModel):
        return value
    return value.model_dump(
        mode=info.mode,
        by_alias=info.by_alias,
        exclude_unset=info.exclude_unset,
        exclude_defaults=info.exclude_defaults,
        exclude_none=info.exclude_none,
    )


GROUNDING_METADATA = GenaiType("GroundingMetadata")

SpreadsheetMetadata = Annotated[Any, GenaiType("SpreadsheetMetadata")]
DocumentMetadata = Annotated[Any, GenaiType("DocumentMetadata")]
AudioMetadata = Annotated[Any, GenaiType("AudioMetadata")]
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
        # What a later version of google-genai has is read, see `GenaiField`, and proposed to nobody.
        extra="allow",
        json_schema_extra={"additionalProperties": False},
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        # Of many fields, few have a value.
        return [(name, value) for name, value in super().__repr_args__() if value is not None]


class FunctionCall(_Genai):
    """A tool call."""

    __pydantic_extra__: dict[Annotated[str, GenaiField("FunctionCall")], Any]
    id: str | None = None
    """The id, which its response also has."""
    args: dict[str, Any] | None = None
    name: str | None = None
    """The tool."""
    partial_args: list[PartialArg] | None = None
    """Pieces of streamed arguments."""
    will_continue: bool | None = None


class FunctionResponse(_Genai):
    """Response of a tool."""

    __pydantic_extra__: dict[Annotated[str, GenaiField("FunctionResponse")], Any]
    will_continue: bool | None = None
    scheduling: FunctionResponseScheduling | None = None
    parts: list[FunctionResponsePart] | None = None
    id: str | None = None
    """Id of its call."""
    name: str | None = None
    """The tool."""
    response: dict[str, Any] | None = None


class Part(_Genai):
    """A part of a message: usually a text, a call or a response."""

    __pydantic_extra__: dict[Annotated[str, GenaiField("Part")], Any]
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
    document_metadata: DocumentMetadata | None = None
    spreadsheet_metadata: SpreadsheetMetadata | None = None
    audio_metadata: AudioMetadata | None = None


class Content(_Genai):
    """A message."""

    __pydantic_extra__: dict[Annotated[str, GenaiField("Content")], Any]
    parts: list[Part] | None = None
    role: str | None = None
    """`user` or `model`; in google-adk's events also `function` and `tool`."""


class UsageMetadata(_Genai):
    """The tokens of a model call, from its response."""

    __pydantic_extra__: dict[Annotated[str, GenaiField("GenerateContentResponseUsageMetadata")], Any]
    cache_tokens_details: list[ModalityTokenCount] | None = None
    cached_content_token_count: int | None = None
    """Tokens of the prompt from the service's cache."""
    candidates_token_count: int | None = None
    candidates_tokens_details: list[ModalityTokenCount] | None = None
    prompt_token_count: int | None = None
    prompt_tokens_details: list[ModalityTokenCount] | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    tool_use_prompt_tokens_details: list[ModalityTokenCount] | None = None
    total_token_count: int | None = None
    traffic_type: TrafficType | None = None
