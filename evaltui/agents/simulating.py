"""Runs the conversation of a case with a simulated user. Runs only in a child process."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.model.events import SIMULATED_USER, Event, Json
from ..core.played_users import (
    PlayedUser,
    SimulatedUserError,
    Stop,
    ends,
    lines_of,
    stopped_in_words,
)
from ..core.recordings.entry import JsonRequest
from ..text.figures import counted
from .adapters.base import Reporter
from .call_recorder import ModelExchange, NotRecordedError, current_call_recorder
from .errors import message_of
from .model_client import ask
from .model_gate import Waits
from .protocol import Reply

SendTurn = Callable[[int, Json], Awaitable[None]]


@dataclass(frozen=True)
class Simulation:
    """A conversation with a simulated user.

    `send_turn` gets a turn, from 0, and the user's message (a genai Content as JSON), and runs the turn to
    its end; `turn_events` then holds its events. `agent_folder` is searched for a function that stands for a
    model.
    """

    user: PlayedUser
    reporter: Reporter
    turn_events: list[Event]
    send_turn: SendTurn
    agent_folder: Path | None

    async def converse(self) -> None:
        """Sends messages until the user ends the conversation or reaches the limit, and reports that end
        last.

        Raises what the agent raises, NotRecordedError, and SimulatedUserError where the user has no message.
        """
        history: list[str] = []
        turn = 0
        while not self.user.is_at_limit(turn):
            message = await self._message(history) if turn else self.user.starting_prompt
            if ends(message):
                self._report_stop("signal", turn)
                return
            if not message.strip():
                raise SimulatedUserError(_no_message(turn))
            self.turn_events.clear()
            await self.send_turn(turn, _content("user", message))
            history += lines_of(self.turn_events, with_calls=self.user.hears_calls)
            turn += 1
        self._report_stop("limit", turn)

    def _report_stop(self, why: Stop, turns: int) -> None:
        text = stopped_in_words(why, turns)
        self.reporter.event(
            "console", agent=SIMULATED_USER, data={"source": SIMULATED_USER, "text": text, "stopped": why}
        )

    async def _message(self, history: list[str]) -> str:
        user = self.user
        # A function takes no model options.
        options = {} if ":" in user.model else user.options
        prompt = user.prompt(history)
        contents = [_content("user", prompt)]
        recorder = current_call_recorder.get()
        request = JsonRequest(model=user.model, contents=contents, config=options)
        exchange = recorder.model_call(request, SIMULATED_USER) if recorder else None
        mark = exchange.mark if exchange else {}
        data = {
            "model": user.model,
            "prompt": user.prompt_id,
            "config": options,
            "contents": contents,
            "contents_before": 0,
            **mark,
        }
        request_id = self.reporter.event("model_request", agent=SIMULATED_USER, data=data)
        started, waits = time.monotonic(), Waits()
        try:
            setting = "`model` of user_simulator_config"
            reply = await _answer(
                exchange,
                lambda: _whole(
                    ask(user.model, prompt, options or None, self.agent_folder, waits, setting=setting)
                ),
            )
        except NotRecordedError:
            raise
        except Exception as error:
            self.reporter.event(
                "error",
                agent=SIMULATED_USER,
                data={"type": type(error).__name__, "message": message_of(error), **mark, **waits.mark},
                usage=self._last_usage(getattr(error, "usages", ()), request_id),
                duration=time.monotonic() - started - waits.seconds,
                parent=request_id,
            )
            raise SimulatedUserError(
                f"the simulated user has no next message: {message_of(error)}"
            ) from error
        self.reporter.event(
            "model_response",
            _content("model", reply.text),
            agent=SIMULATED_USER,
            data=mark | waits.mark,
            usage=self._last_usage(reply.usages, request_id),
            duration=time.monotonic() - started - waits.seconds,
            parent=request_id,
        )
        return reply.text

    def _last_usage(self, usages: Sequence[Json], request_id: str) -> Json | None:
        """The tokens of the last attempt; those of earlier attempts are reported as errors that are
        retried."""
        for usage in usages[:-1]:
            data = {"type": "FailedAttempt", "message": "no whole response; retrying", "retrying": True}
            self.reporter.event("error", agent=SIMULATED_USER, data=data, usage=usage, parent=request_id)
        return usages[-1] if usages else None


class _CutOffError(Exception):
    """The message of a simulated user was cut off."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"its message was cut off ({reply.cut_off}); raise max_output_tokens")
        self.usages = reply.usages


async def _whole(pending: Awaitable[Reply]) -> Reply:
    """Waits for a reply. Raises _CutOffError for a reply that was cut off: the agent would get half a
    message."""
    reply = await pending
    if reply.cut_off:
        raise _CutOffError(reply)
    return reply


async def _answer(exchange: ModelExchange | None, ask_model: Callable[[], Awaitable[Reply]]) -> Reply:
    """The recorded answer, or the answer of the model, which is recorded. Raises NotRecordedError, and any
    error of the model."""
    if exchange is None:
        return await ask_model()
    exchange.check()
    if exchange.is_replayed:
        exchange.end()
        recorded = exchange.response
        return Reply(recorded["parts"][0]["text"], usages=[recorded["usage"]] if "usage" in recorded else [])
    try:
        reply = await ask_model()
    except Exception as error:
        exchange.keep([], error)
        raise
    usage = {"usage": reply.usages[-1]} if reply.usages else {}
    exchange.keep([_content("model", reply.text) | usage], None)
    return reply


def _content(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"text": text}]}


def _no_message(turn: int) -> str:
    if not turn:
        return "the simulated user has no first message: starting_prompt is empty"
    after = counted(turn, "turn")
    return f"the simulated user sent nothing after {after}: its model responded with an empty text"
