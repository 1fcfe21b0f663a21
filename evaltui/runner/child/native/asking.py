"""A question to a Gemini model: one prompt, one text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from google.genai import types

from ....core.model.content import Content, Part
from ....core.model.events import Json
from ...model_gate import Waits
from ...protocol import Reply
from ..own_modules import load_env_file
from .gemini import FailedAttempt, GeminiModel, usages_of
from .gemini_errors import ModelError
from .models import ModelRequest, ModelResponse

_TO_ITS_END = ("STOP", "FINISH_REASON_UNSPECIFIED")


async def ask_gemini(
    name: str, prompt: str, config: Json | None, agent_folder: Path | None, waits: Waits, setting: str
) -> Reply:
    """See `model_client.ask`. Raises ValueError or ModelError."""
    # Not JSON any more: bytes are base64 there.
    options = None if config is None else types.GenerateContentConfig.model_validate_json(json.dumps(config))
    content = Content(role="user", parts=[Part(text=prompt)])
    # Another event loop may ask next in a process that is somebody else's.
    model = GeminiModel(name, setting) if agent_folder is None else _model(name, agent_folder, setting)
    request = ModelRequest("", [content], (), options)
    failed: list[FailedAttempt] = []
    try:
        response = await model.generate(request, lambda _: None, failed.append, waits)
        return _reply(name, response, failed)
    except ModelError as error:
        error.usages = _spent(failed) + error.usages
        raise
    finally:
        if agent_folder is None:
            await model.close()


@cache
def _model(name: str, agent_folder: Path, setting: str) -> GeminiModel:
    """One model by name: its connections are used again."""
    load_env_file(agent_folder)
    return GeminiModel(name, setting)


def _spent(failed: Sequence[FailedAttempt]) -> tuple[Json, ...]:
    return usages_of(attempt.usage for attempt in failed)


def _reply(name: str, response: ModelResponse, failed: Sequence[FailedAttempt]) -> Reply:
    text = "".join(part.text for part in response.parts if part.text and not part.thought)
    if text:
        reason = response.finish_reason or ""
        cut_off = "" if reason in _TO_ITS_END else reason
        return Reply(text, cut_off, (*_spent(failed), *usages_of([response.usage])))
    said = ": ".join(filter(None, (response.finish_reason, response.finish_message)))
    error = ModelError(
        f"model {name!r} responded without text ({said or 'no reason given'}). If it was cut off, "
        "raise max_output_tokens or lower the thinking budget; if it was refused, use another model"
    )
    error.usages = usages_of([response.usage])
    raise error
