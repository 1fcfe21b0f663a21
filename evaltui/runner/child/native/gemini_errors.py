"""Describes errors of google-genai: whether they are transient, and what to do about them."""

from __future__ import annotations

import json
import os
import re
import sys

from google.genai.errors import APIError, UnknownApiResponseError

from ....core.metrics.gemini_access import is_gemini_name
from ....core.model.errors import ErrorKind
from ....core.model.events import Json
from ....text.figures import show_duration
from ...refusals import asked_wait, details_of, is_used_up

# Seconds. If the service asks for a longer wait, the request fails and the user decides.
LONGEST_WAIT = 60.0
# The transient codes of google-genai's own HttpRetryOptions.
_TRANSIENT_CODES = (408, 429, 500, 502, 503, 504)
_MOST_OF_A_RESPONSE = 200


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
_UNREADABLE = (UnknownApiResponseError, json.JSONDecodeError, NoAnswerError)

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
        return f"{named}: {_one_line(error.message or '')}".rstrip(".: ")
    if isinstance(error, UnknownApiResponseError | json.JSONDecodeError):
        body = str(error).rpartition("Raw response: ")[2]
        return f"the response is not JSON, or was cut off: {_one_line(body)}"
    # aiohttp adds the object of its certificates.
    message = re.sub(r" ssl:(<.*?>|default)", "", str(error))
    return f"{type(error).__name__}: {_one_line(message)}".rstrip(".: ")


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


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_OF_A_RESPONSE else f"{line[:_MOST_OF_A_RESPONSE]}…"
