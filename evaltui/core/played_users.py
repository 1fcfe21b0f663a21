"""Simulated users as hosts run them: the prompt for the model, and the end of the conversation.

Imports the standard library only, because the agent's Python may have nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..text.figures import counted
from .conversation.steps import steps_from_events
from .model.events import Event, Json
from .model.placeholders import fill_placeholders
from .prompts import fence, prompt

STOP_SIGNAL = "</finished>"
# Of instructions that the config gives.
CUSTOM_PROMPT_ID = "custom_instructions"
Stop = Literal["signal", "limit"]


@dataclass(frozen=True)
class PlayedPersona:
    """The persona of a simulated user."""

    id: str
    description: str
    text: str
    """The full text for the model, with its behaviors."""


@dataclass(frozen=True)
class PlayedUser:
    """A simulated user of a scenario.

    Source of the end of a conversation: google-adk 2.13, LlmBackedUserSimulator.
    """

    starting_prompt: str
    """The first message."""
    plan: str
    """Goal of the user, and when it is reached."""
    persona: PlayedPersona | None
    """The persona; None for no particular one."""
    model: str
    """A model that google-genai reaches, or `module:callable`."""
    options: Json
    """A GenerateContentConfig as JSON."""
    most_turns: int
    """Maximum number of messages; a negative number means no limit."""
    custom: str | None
    """The instructions in the config; None for evaltui's own."""
    hears_calls: bool
    """Whether the model sees the agent's calls."""

    def to_json(self) -> Json:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Json) -> PlayedUser:
        persona = data["persona"]
        return cls(**{**data, "persona": None if persona is None else PlayedPersona(**persona)})

    def is_at_limit(self, turns: int) -> bool:
        """Whether the user has reached the maximum number of messages."""
        return 0 <= self.most_turns <= turns

    @property
    def prompt_id(self) -> str:
        """Name and version of the prompt."""
        return CUSTOM_PROMPT_ID if self.custom is not None else prompt("simulated_user").id

    def prompt(self, history: Sequence[str]) -> str:
        """The prompt for a message after the first; `history` are lines of `lines_of`."""
        text = "\n\n".join(history)
        if self.custom is not None:
            return fill_placeholders(self.custom, self._values(text))
        return prompt("simulated_user").fill(
            manner=prompt("without_persona").template if self.persona is None else self.persona.text,
            stop_signal=STOP_SIGNAL,
            plan=fence(self.plan),
            history=fence(text),
        )

    def _values(self, history: str) -> dict[str, str]:
        # As in Jinja: where there is no persona, nothing is written.
        persona = self.persona or PlayedPersona("", "", "")
        return {
            "stop_signal": STOP_SIGNAL,
            "conversation_plan": self.plan,
            "conversation_history": history,
            "persona": persona.text,
            "persona.id": persona.id,
            "persona.description": persona.description,
        }


def lines_of(events: Iterable[Event], *, with_calls: bool) -> list[str]:
    """The texts of a turn as `author: text`, without thoughts; `with_calls` adds calls and their responses.

    Steps of agents inside a tool are left out.
    """
    return [
        line
        for step in steps_from_events(events)
        for part in step.parts
        for line in _lines(step.author, part, with_calls)
    ]


def _lines(author: str, part: Json, with_calls: bool) -> Iterator[str]:
    if part.get("text"):
        if not part.get("thought"):
            yield f"{author}: {part['text']}"
    elif with_calls and (call := part.get("function_call")):
        yield f"{author} calls the tool {call.get('name')} with {_json_text(call.get('args') or {})}"
    elif with_calls and (result := part.get("function_response")):
        yield f"the tool {result.get('name')} returns {_json_text(result.get('response'))}"


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def ends_conversation(message: str) -> bool:
    """Whether a message contains the stop signal, so that it is not sent and ends the conversation."""
    return STOP_SIGNAL in message.lower()


def stop_text(why: Stop, turns: int) -> str:
    """The end of a conversation in words: `stopped at the limit of 20 turns`."""
    if why == "limit":
        return f"stopped at the limit of {counted(turns, 'turn')}"
    return f"the simulated user ended the conversation after {counted(turns, 'turn')}"
