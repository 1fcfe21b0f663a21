"""Model requests of an agent framework: reported, and through the call recorder of the case.

Adapters of frameworks share it; each calls `ask_model` where its framework asks a model.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from .....core.model.events import Json
from .....core.recordings.entry import JsonRequest
from ....call_recorder import ModelExchange, current_call_recorder
from ....errors import message_of
from ....model_gate import Waits, size_of, through_gate
from ..base import Reporter, current_reporter

Response = TypeVar("Response")


@dataclass(frozen=True)
class Described:
    """A response of a model as its event has it."""

    content: Json | None = None
    """A genai Content as JSON."""
    usage: Json | None = None
    """See `usage_of`."""
    data: Json = field(default_factory=dict)
    """`model_version` and `finish_reason`, where they are known."""


@dataclass(frozen=True)
class ResponseFormat(Generic[Response]):
    """What a framework's responses are, in the terms of recordings and events."""

    write: Callable[[Response], Json]
    """As JSON, for a recording. Where `content` has function calls, the recorder numbers their ids."""
    read: Callable[[Json], Response]
    describe: Callable[[Response], Described]


def usage_of(*, prompt: int, output: int, cached: int = 0, thoughts: int = 0) -> Json | None:
    """Tokens as genai's usage metadata; `output` includes `thoughts`. None where nothing was counted."""
    if not prompt and not output:
        return None
    counts = {
        "prompt_token_count": prompt,
        "candidates_token_count": output - thoughts,
        "total_token_count": prompt + output,
    }
    details = {"cached_content_token_count": cached, "thoughts_token_count": thoughts}
    return counts | {name: count for name, count in details.items() if count}


async def ask_model(
    model: str,
    agent: str,
    request: Callable[[], JsonRequest],
    ask: Callable[[], Awaitable[Response]],
    form: ResponseFormat[Response],
) -> Response:
    """The response of `ask`, or the recorded one; request and response are reported.

    `request` makes the request as JSON, contents as genai has them; where it raises, the request is neither
    recorded nor shown in full. Raises NotRecordedError, and what the model raises or raised.
    """
    reporter = current_reporter.get()
    if reporter is None:
        return await ask()
    try:
        asked: JsonRequest | Exception = request()
    except Exception as error:
        # Users' objects may fail in any way when looked at, and looking must not end the user's run.
        asked = error
    exchange = _exchange(model, agent, asked)
    mark = exchange.mark if exchange else {}
    data = _request_data(reporter, model, agent, asked) | mark
    request_id = reporter.event("model_request", agent=agent, data=data)
    waits = Waits()

    async def ask_live() -> Response:
        return await through_gate(
            model, lambda: _size(asked), ask, lambda response: form.describe(response).usage, waits
        )

    started = time.perf_counter()
    try:
        response = await (ask_live() if exchange is None else _answer(exchange, ask_live, form))
    except Exception as error:
        reporter.event(
            "error",
            agent=agent,
            data={"type": type(error).__name__, "message": message_of(error), **mark, **waits.mark},
            duration=time.perf_counter() - started - waits.seconds,
            parent=request_id,
        )
        raise
    described = form.describe(response)
    reporter.event(
        "model_response",
        described.content,
        agent=agent,
        data=described.data | mark | waits.mark,
        usage=described.usage,
        duration=time.perf_counter() - started - waits.seconds,
        parent=request_id,
    )
    return response


def _size(asked: JsonRequest | Exception) -> int:
    if isinstance(asked, Exception):
        return 0
    return size_of([asked.instruction, list(asked.tools), list(asked.contents)])


def _exchange(model: str, agent: str, asked: JsonRequest | Exception) -> ModelExchange | None:
    """What is to be done about a request; None where the model is simply asked."""
    recorder = current_call_recorder.get()
    if recorder is None or recorder.modes.models == "off":
        return None
    if isinstance(asked, Exception):
        return recorder.unrecordable(f"a request to model {model}", asked)
    return recorder.model_call(asked, agent)


async def _answer(
    exchange: ModelExchange, ask: Callable[[], Awaitable[Response]], form: ResponseFormat[Response]
) -> Response:
    exchange.check()
    if exchange.is_replayed:
        exchange.end()
        return form.read(exchange.response)
    try:
        response = await ask()
    except Exception as error:
        exchange.keep([], error)
        raise
    exchange.keep([form.write(response)], None)
    return response


# The contents last sent, by agent: a request repeats the whole history, the log should not.
_sent: WeakKeyDictionary[Reporter, dict[str, Sequence[Json]]] = WeakKeyDictionary()


def _request_data(reporter: Reporter, model: str, agent: str, asked: JsonRequest | Exception) -> Json:
    if isinstance(asked, Exception):
        return {"model": model, "unrecorded": f"{type(asked).__name__}: {message_of(asked)}"}
    sent = _sent.setdefault(reporter, {})
    known = 0
    for earlier, now in zip(sent.get(agent, ()), asked.contents, strict=False):
        if earlier != now:
            break
        known += 1
    sent[agent] = asked.contents
    data: Json = {
        "model": model,
        "system_instruction": asked.instruction,
        "tools": list(asked.tools),
        "config": asked.config,
        "contents_before": known,
        "contents": list(asked.contents[known:]),
    }
    return {key: value for key, value in data.items() if value not in ("", [], {}) or key == "contents"}
