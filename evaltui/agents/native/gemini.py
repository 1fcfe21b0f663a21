"""Asks Gemini, as the model of an agent or with a single prompt."""

from __future__ import annotations

import json
import os
import random
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from google import genai
from google.genai import types
from google.genai.errors import APIError, UnknownApiResponseError
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential_jitter,
)

from ...core.metrics.gemini_access import is_gemini_name
from ...core.model.content import Content, Part, UsageMetadata
from ...core.model.errors import ErrorKind
from ...core.model.events import Json
from ...text.figures import counted, show_duration
from ..errors import excerpt
from ..exception_kinds import asked_wait, details_of, is_used_up, refusal_of
from ..model_gate import Waits, gate_for, through_gate
from ..own_modules import load_env_file
from ..protocol import Reply
from .models import ModelRequest, ModelResponse, own_parts, size_of_request, text_of, usage_data

# Seconds. If the service asks for a longer wait, the request fails and the user decides.
LONGEST_WAIT = 60.0
# The transient codes of google-genai's own HttpRetryOptions.
_TRANSIENT_CODES = (408, 429, 500, 502, 503, 504)


class ModelError(RuntimeError):
    """A model cannot be asked, or gave no answer; the message says what to do."""

    usages: tuple[Json, ...] = ()
    """The tokens of each attempt that reported them, as genai's usage metadata."""


class NoKeyError(ValueError):
    """A model cannot be asked without a key or a project; the message says what to set."""

    error_kind = ErrorKind.CONFIG


class NoAnswerError(Exception):
    """The service ended its response without any content."""

    def __init__(self) -> None:
        super().__init__("the response was empty")


class CutOffError(Exception):
    """The service, or a proxy, ended its response without `finishReason`, which the last piece has."""

    error_kind = ErrorKind.NETWORK

    def __init__(self) -> None:
        super().__init__("the response was cut off: it ended without a finish reason")


def _loaded_errors(names: dict[str, tuple[str, ...]]) -> tuple[type[Exception], ...]:
    """The exception classes of those libraries that are loaded: which HTTP library google-genai uses depends
    on what is installed."""
    return tuple(
        getattr(sys.modules[module], name)
        for module, classes in names.items()
        if module in sys.modules
        for name in classes
    )


_CONNECTION_ERRORS = _loaded_errors(
    {
        "httpx": ("TransportError",),
        "httpx2": ("TransportError",),
        "aiohttp": ("ClientError",),
        "google.auth.exceptions": ("TransportError",),
    }
)
# Errors of the address or a header are permanent.
_PERMANENT_ERRORS = _loaded_errors(
    {
        "httpx": ("UnsupportedProtocol", "LocalProtocolError"),
        "httpx2": ("UnsupportedProtocol", "LocalProtocolError"),
        "aiohttp": ("InvalidURL", "NonHttpUrlClientError"),
    }
)
_CREDENTIAL_ERRORS = _loaded_errors({"google.auth.exceptions": ("GoogleAuthError",)})
# A response that is cut off, or comes from a proxy, is often no JSON.
_UNREADABLE = (UnknownApiResponseError, json.JSONDecodeError, NoAnswerError, CutOffError)

KNOWN_ERRORS: tuple[type[Exception], ...] = (APIError, *_CREDENTIAL_ERRORS, *_CONNECTION_ERRORS, *_UNREADABLE)


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, APIError):
        requested = asked_wait(error)
        patient = requested is None or requested <= LONGEST_WAIT
        return error.code in _TRANSIENT_CODES and patient and not is_used_up(error)
    return isinstance(error, (*_CONNECTION_ERRORS, *_UNREADABLE)) and not isinstance(error, _PERMANENT_ERRORS)


def describe(error: Exception) -> str:
    """The error on one line: `503 UNAVAILABLE: The model is overloaded`."""
    if isinstance(error, APIError):
        named = " ".join(str(part) for part in (error.code, error.status) if part)
        return f"{named}: {excerpt(error.message or '')}".rstrip(".: ")
    if isinstance(error, UnknownApiResponseError | json.JSONDecodeError):
        body = str(error).rpartition("Raw response: ")[2]
        return f"the response is not JSON, or was cut off: {excerpt(body)}"
    # aiohttp adds the object of its certificates.
    message = re.sub(r" ssl:(<.*?>|default)", "", str(error))
    return f"{type(error).__name__}: {excerpt(message)}".rstrip(".: ")


def advice(error: Exception, model: str, setting: str, *, vertexai: bool) -> str:
    """Advice on an error, in sentences; `setting` says where the name of the model is set."""
    if isinstance(error, _CREDENTIAL_ERRORS) and not isinstance(error, _CONNECTION_ERRORS):
        return f"{_CREDENTIALS} To use an API key instead, leave GOOGLE_GENAI_USE_VERTEXAI unset."
    if not isinstance(error, APIError):
        return f"Check the network and the proxy settings{_own_address()}."
    if error.code in (401, 403) or any(
        detail.get("reason") == "API_KEY_INVALID" for detail in details_of(error, "ErrorInfo")
    ):
        return _CREDENTIALS if vertexai else _KEY
    if error.code == 404:
        if address := _own_address():
            other = "" if is_gemini_name(model) else f"{model} is not a Gemini model. "
            return f"{other}Check {setting} for a misspelt or retired name{address}."
        place = "in the place GOOGLE_CLOUD_LOCATION " if vertexai else ""
        return (
            f"Check {setting} for a misspelt or retired name: the models {place}are listed at "
            "https://ai.google.dev/gemini-api/docs/models."
        )
    if error.code == 429:
        if is_used_up(error):
            return "The daily quota is used up: use another model, raise the quota, or wait until tomorrow."
        if (requested := asked_wait(error)) and requested > LONGEST_WAIT:
            return f"Wait {show_duration(round(requested))}, or raise the quota."
        return "Wait a while, run fewer cases at once (`--parallel 1`), or raise the quota of the project."
    if error.code in _TRANSIENT_CODES:
        return "The service is overloaded or out of order: try again later, or with another model."
    return f"The service refused the request: check {setting} and its configuration."


def _sent_keys(error: APIError, config: types.GenerateContentConfig, setting: str) -> str:
    """A sentence on the keys of the config: those that the error names, else all; "" for none."""
    keys = [name for name in type(config).model_fields if getattr(config, name) is not None]
    message = (error.message or "").replace("_", "").lower()
    named = [key for key in keys if key.replace("_", "") in message] or keys
    return f" It was sent with {', '.join(f'`{key}`' for key in named)} of {setting}." if named else ""


_KEY = (
    "Check the key in GOOGLE_API_KEY or GEMINI_API_KEY, in the environment or the agent's .env file (where "
    "both are set, GOOGLE_API_KEY counts), and what its project may use; keys are made at "
    "https://aistudio.google.com/apikey."
)
_CREDENTIALS = (
    "Check the Google Cloud credentials (`gcloud auth application-default login` makes new ones) and that "
    "they may use Vertex AI in the project GOOGLE_CLOUD_PROJECT."
)


def _own_address() -> str:
    # google-genai takes the first one for Vertex AI too, where only the environment asks for that.
    names = ("GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL")
    settings = " and ".join(f"{name}={os.environ[name]}" for name in names if os.environ.get(name))
    return f", and whether {settings} is right" if settings else ""


ATTEMPTS = 5
FIRST_WAIT = 1.0

Value = TypeVar("Value")


@dataclass(frozen=True)
class FailedAttempt:
    """A request without a complete response that is sent again, after `wait` seconds.

    `number` counts from 1, `seconds` is its duration, `usage` its tokens, where they are reported. With
    `text_is_void`, pieces of its text were already passed on: the response restarts from its start.
    """

    number: int
    error: Exception
    wait: float
    seconds: float
    text_is_void: bool
    usage: UsageMetadata | None

    def __str__(self) -> str:
        again = "the response restarts" if self.text_is_void else "retrying"
        attempt = f"attempt {self.number + 1} of {ATTEMPTS}"
        return f"{describe(self.error)}; {again} in {show_duration(self.wait)} ({attempt})"


class GeminiModel:
    """A model that google-genai reaches, configured by google-genai's own environment variables.

    A request with a transient error is sent again, up to `ATTEMPTS` in all: after the time that the service
    asks for, else after about twice as long each time. google-genai's own retries stay off: they do not
    handle broken streams or the service's own delay, and are not reported.
    """

    def __init__(
        self, name: str, setting: str = "the agent's `model`", config_setting: str = "the agent's `config`"
    ) -> None:
        """The settings say where the name and the config of requests are set, for error messages."""
        self.name = name
        self._setting = setting
        self._config_setting = config_setting

    @cached_property
    def _client(self) -> genai.Client:
        once = types.HttpOptions(retry_options=types.HttpRetryOptions(attempts=1))
        try:
            return genai.Client(http_options=once)
        except ValueError as error:
            raise NoKeyError(
                f"model {self.name!r} cannot be used: {error} Set GOOGLE_API_KEY or GEMINI_API_KEY in the "
                "environment or in the agent's .env file; for Vertex AI set GOOGLE_GENAI_USE_VERTEXAI=true, "
                "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION."
            ) from error

    async def generate(
        self,
        request: ModelRequest,
        on_text: Callable[[str], None],
        on_failed: Callable[[FailedAttempt], None] | None = None,
        waits: Waits | None = None,
    ) -> ModelResponse:
        """The complete response; see `Model`. `on_failed` gets each attempt that is followed by another. Each
        attempt goes through the run's gate; the time that it waits there is added to `waits`.

        Pieces of text that an attempt gave to `on_text` before it failed are void: the next attempt repeats
        all. Raises ValueError without a key, ModelError where the service cannot be reached or gives no
        answer.
        """
        attempt = _Attempt(0)

        async def ask_once() -> ModelResponse:
            attempt.started = time.monotonic()
            async for chunk in await self._stream(request):
                attempt.chunks.append(chunk)
                for text in _texts(chunk):
                    on_text(text)
            if not attempt.chunks:
                raise NoAnswerError
            response = _joined(attempt.chunks)
            if response.finish_reason is None:
                raise CutOffError
            return response

        async def attempted() -> ModelResponse:
            nonlocal attempt
            attempt = _Attempt(attempt.number + 1)
            return await through_gate(
                self.name,
                lambda: size_of_request(request),
                ask_once,
                usage_data,
                waits or Waits(),
                may_repeat=lambda: not attempt.chunks,
            )

        def report_failure(state: RetryCallState) -> None:
            if on_failed is not None:
                on_failed(attempt.failed(state))

        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda error: self._is_worth_repeating(error, attempt)),
            stop=stop_after_attempt(ATTEMPTS),
            wait=_wait,
            before_sleep=report_failure,
            reraise=True,
        )
        try:
            return await retrying(attempted)
        except KNOWN_ERRORS as error:
            tried = f" (tried {counted(attempt.number, 'time')})" if attempt.number > 1 else ""
            what = f"model {self.name!r} gave no response{tried}: {describe(error)}"
            failed = ModelError(f"{what}. {self._advice(error, request)}")
            failed.usages = usages_of([_usage(attempt.chunks)])
            raise failed from error

    def _advice(self, error: Exception, request: ModelRequest) -> str:
        vertexai = "_client" in vars(self) and bool(self._client.vertexai)
        text = advice(error, self.name, self._setting, vertexai=vertexai)
        if isinstance(error, APIError) and error.code == 400 and request.config is not None:
            text += _sent_keys(error, request.config, self._config_setting)
        return text

    def _is_worth_repeating(self, error: BaseException, attempt: _Attempt) -> bool:
        # With a gate, the call has already waited there after a refusal, for as long as that helps.
        was_waited_for = gate_for(self.name) and not attempt.chunks and refusal_of(error)
        return is_transient(error) and not was_waited_for

    async def _stream(self, request: ModelRequest) -> AsyncIterator[types.GenerateContentResponse]:
        return await self._client.aio.models.generate_content_stream(
            model=self.name,
            contents=[
                types.Content.model_validate_json(content.model_dump_json(exclude_none=True))
                for content in request.contents
            ],
            config=_config(request),
        )

    async def close(self) -> None:
        """Closes the connections, if there are any."""
        # A closed client cannot be used again; the next request makes another one.
        if (client := vars(self).pop("_client", None)) is not None:
            await client.aio.aclose()


class _Attempt:
    """A request in progress, with the chunks of its response so far."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.started = time.monotonic()
        self.chunks: list[types.GenerateContentResponse] = []

    def failed(self, state: RetryCallState) -> FailedAttempt:
        assert state.outcome is not None
        error = state.outcome.exception()
        assert isinstance(error, Exception)
        return FailedAttempt(
            self.number,
            error,
            wait=state.upcoming_sleep,
            seconds=time.monotonic() - self.started,
            text_is_void=any(text for chunk in self.chunks for text in _texts(chunk)),
            usage=_usage(self.chunks),
        )


def _config(request: ModelRequest) -> types.GenerateContentConfig:
    own: dict[str, Any] = {"automatic_function_calling": types.AutomaticFunctionCallingConfig(disable=True)}
    if request.system_instruction:
        own["system_instruction"] = request.system_instruction
    if request.tools:
        tools = [types.FunctionDeclaration.model_validate(tool.as_json()) for tool in request.tools]
        own["tools"] = [types.Tool(function_declarations=tools)]
    return (request.config or types.GenerateContentConfig()).model_copy(update=own)


def _wait(state: RetryCallState) -> float:
    assert state.outcome is not None
    error = state.outcome.exception()
    requested = asked_wait(error) if error else None
    if requested is None:
        return wait_exponential_jitter(FIRST_WAIT, LONGEST_WAIT, jitter=FIRST_WAIT)(state)
    # Many cases may get the same delay, so it is varied: they do not all return at once.
    return requested * random.uniform(1.0, 1.2)


def _texts(chunk: types.GenerateContentResponse) -> list[str]:
    """The texts for the user in a chunk, without thoughts."""
    return [part.text for part in _parts(chunk) if part.text and not part.thought]


def _parts(chunk: types.GenerateContentResponse) -> Sequence[types.Part]:
    content = chunk.candidates[0].content if chunk.candidates else None
    return (content.parts or []) if content else []


def _joined(chunks: Sequence[types.GenerateContentResponse]) -> ModelResponse:
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
        parts=join_texts(own_parts(part for chunk in chunks for part in _parts(chunk))),
        usage=_usage(chunks),
        grounding=_last([candidate.grounding_metadata for candidate in candidates]),
        model_version=_last([chunk.model_version for chunk in chunks]),
        finish_reason=reason.name if reason else None,
        finish_message=_last(messages),
    )


def _usage(chunks: Sequence[types.GenerateContentResponse]) -> UsageMetadata | None:
    """The last value of each token count: a chunk has the counts so far, but not every chunk has them all."""
    reported = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    counts = {name: count for usage in reported for name, count in usage if count is not None}
    if not reported:
        return None
    last = reported[-1].model_copy(update=counts)
    return UsageMetadata.model_validate_json(last.model_dump_json(exclude_none=True))


def usages_of(usages: Iterable[UsageMetadata | None]) -> tuple[Json, ...]:
    """Token counts as JSON; None is left out."""
    return tuple(usage.model_dump(mode="json", exclude_none=True) for usage in usages if usage is not None)


def _last(values: Sequence[Value | None]) -> Value | None:
    return next((value for value in reversed(values) if value is not None), None)


def join_texts(parts: Sequence[Part]) -> list[Part]:
    """The parts of a response with adjacent texts joined, as if it had not been streamed.

    A part with a thought signature is not changed: the model needs it back as it was.
    """
    joined: list[Part] = []
    for part in parts:
        if part.text == "" and not part.thought_signature:
            continue
        if (
            joined
            and _is_plain_text(joined[-1])
            and _is_plain_text(part)
            and joined[-1].thought == part.thought
        ):
            joined[-1] = Part(text=f"{joined[-1].text}{part.text}", thought=part.thought)
        else:
            joined.append(part)
    return joined


def _is_plain_text(part: Part) -> bool:
    return bool(part.text) and not part.thought_signature


_COMPLETE = ("STOP", "FINISH_REASON_UNSPECIFIED")


async def ask_gemini(
    name: str,
    prompt: str,
    config: Json | None,
    agent_folder: Path | None,
    waits: Waits,
    settings: tuple[str, str],
) -> Reply:
    """Asks a model once, as `model_client.ask`. Raises ValueError or ModelError."""
    # From JSON text, since bytes are base64 in JSON only.
    options = None if config is None else types.GenerateContentConfig.model_validate_json(json.dumps(config))
    content = Content(role="user", parts=[Part(text=prompt)])
    # Without a folder, this is the user's own process, whose next call may come from another event loop.
    model = GeminiModel(name, *settings) if agent_folder is None else _model_of(name, agent_folder, settings)
    request = ModelRequest("", [content], (), options)
    failed: list[FailedAttempt] = []
    try:
        response = await model.generate(request, lambda _: None, failed.append, waits)
        return _reply_of(name, response, failed)
    except ModelError as error:
        error.usages = _usages_of_attempts(failed) + error.usages
        raise
    finally:
        if agent_folder is None:
            await model.close()


@cache
def _model_of(name: str, agent_folder: Path, settings: tuple[str, str]) -> GeminiModel:
    """The model of a name, which is cached, so that its connections are used again."""
    load_env_file(agent_folder)
    return GeminiModel(name, *settings)


def _usages_of_attempts(failed: Sequence[FailedAttempt]) -> tuple[Json, ...]:
    return usages_of(attempt.usage for attempt in failed)


def _reply_of(name: str, response: ModelResponse, failed: Sequence[FailedAttempt]) -> Reply:
    if text := text_of(response):
        reason = response.finish_reason or ""
        cut_off = "" if reason in _COMPLETE else reason
        usages = *_usages_of_attempts(failed), *usages_of([response.usage])
        return Reply(text, cut_off, usages, response.model_version or "")
    reason = ": ".join(filter(None, (response.finish_reason, response.finish_message)))
    error = ModelError(
        f"model {name!r} responded without text ({reason or 'no reason given'}). If it was cut off, "
        "raise max_output_tokens or lower the thinking budget; if it was refused, use another model"
    )
    error.usages = usages_of([response.usage])
    raise error
