"""Runs the conversation of a case with a simulated user. Runs only in a child process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.model.errors import SimulatedUserError
from ..core.model.events import SIMULATED_USER, Event, Json, text_content
from ..core.played_users import (
    PlayedUser,
    Stop,
    ends_conversation,
    lines_of,
    stop_text,
)
from ..core.recordings.entry import JsonRequest
from ..text.figures import counted
from .adapters.base import Reporter, new_event_id, recording
from .adapters.calls import Described, ModelCall, ResponseFormat, ask_model
from .call_recorder import NotRecordedError
from .errors import message_of
from .model_client import ask
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
            if ends_conversation(message):
                self._report_stop("signal", turn)
                return
            if not message.strip():
                raise SimulatedUserError(_no_message(turn))
            self.turn_events.clear()
            await self.send_turn(turn, text_content("user", message))
            history += lines_of(self.turn_events, with_calls=self.user.hears_calls)
            turn += 1
        self._report_stop("limit", turn)

    def _report_stop(self, why: Stop, turns: int) -> None:
        text = stop_text(why, turns)
        self.reporter.event(
            "console", agent=SIMULATED_USER, data={"source": SIMULATED_USER, "text": text, "stopped": why}
        )

    async def _message(self, history: list[str]) -> str:
        user = self.user
        options = user.options
        prompt = user.prompt(history)
        contents = [text_content("user", prompt)]
        call = ModelCall(
            user.model,
            SIMULATED_USER,
            lambda: JsonRequest(model=user.model, contents=contents, config=options),
            (user, contents),
            # `ask` goes through the gate with each attempt.
            is_gated=False,
            id=new_event_id(),
            data={"prompt": user.prompt_id},
        )

        async def answer() -> Reply:
            try:
                reply = await ask(
                    user.model,
                    prompt,
                    # A function takes no model options.
                    None if ":" in user.model else options or None,
                    self.agent_folder,
                    call.waits,
                    settings=_SETTINGS,
                )
                if reply.cut_off:
                    raise _CutOffError(reply)
            except Exception as error:
                self._report_retried(getattr(error, "usages", ()), call.id)
                raise
            self._report_retried(reply.usages, call.id)
            return reply

        try:
            with recording(self.reporter):
                return (await ask_model(call, answer, _FORMAT)).text
        except NotRecordedError:
            raise
        except Exception as error:
            raise SimulatedUserError(
                f"the simulated user has no next message: {message_of(error)}"
            ) from error

    def _report_retried(self, usages: Sequence[Json], request_id: str) -> None:
        """Reports the tokens of all attempts but the last, whose tokens are those of the response."""
        for usage in usages[:-1]:
            data = {"type": "FailedAttempt", "message": "no whole response; retrying", "retrying": True}
            self.reporter.event("error", agent=SIMULATED_USER, data=data, usage=usage, parent=request_id)


_SETTINGS = "`model` of user_simulator_config", "`model_configuration` of user_simulator_config"


class _CutOffError(Exception):
    """The message of a simulated user was cut off: the agent would get half of it."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"its message was cut off ({reply.cut_off}); raise max_output_tokens")
        self.usages = reply.usages


def _reply_to_json(reply: Reply) -> Json:
    usage = {"usage": reply.usages[-1]} if reply.usages else {}
    return text_content("model", reply.text) | usage | _version(reply)


def _version(reply: Reply) -> Json:
    return {"model_version": reply.version} if reply.version else {}


def _reply_from_json(data: Json) -> Reply:
    usages = [data["usage"]] if "usage" in data else []
    return Reply(data["parts"][0]["text"], usages=usages, version=data.get("model_version", ""))


def _described(reply: Reply) -> Described:
    usage = reply.usages[-1] if reply.usages else None
    return Described(text_content("model", reply.text), usage, _version(reply))


_FORMAT = ResponseFormat(_reply_to_json, _reply_from_json, _described)


def _no_message(turn: int) -> str:
    if not turn:
        return "the simulated user has no first message: starting_prompt is empty"
    after = counted(turn, "turn")
    return f"the simulated user sent nothing after {after}: its model responded with an empty text"
