"""A model call of ADK at the run's gate."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable

from google.adk.models.llm_response import LlmResponse

from .....core.model.events import Json
from ....model_gate import ModelGate, Waits
from ....refusals import Refusal, refusal_of
from ..base import plain_json


async def gated_responses(
    gate: ModelGate, model: str, size: int, ask: Callable[[], AsyncIterator[LlmResponse]], waits: Waits
) -> AsyncGenerator[LlmResponse, None]:
    """The responses of a model that was let go; asked again while it refuses for too many calls.

    Raises what the model raises, a refusal too once it has given a response or waiting is in vain.
    """
    refused: Exception | None = None
    refusal: Refusal | None = None
    while True:
        number = await gate.enter(model, size, waits, refusal)
        if number is None:
            raise gate.not_made(refused)
        responses, usage, is_begun = ask(), None, False
        try:
            async for response in responses:
                is_begun = True
                usage = _usage(response) or usage
                yield response
        except Exception as error:
            refusal = refusal_of(error)
            gate.leave(number, usage, refusal)
            if refusal is None or refusal.is_lasting or is_begun:
                raise
            refused = error
        except BaseException:
            gate.leave(number, usage)
            raise
        else:
            gate.leave(number, usage)
            return
        finally:
            if isinstance(responses, AsyncGenerator):
                await responses.aclose()


def _usage(response: LlmResponse) -> Json | None:
    return plain_json(response.usage_metadata) if response.usage_metadata else None
