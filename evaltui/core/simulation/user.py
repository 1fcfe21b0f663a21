"""A simulated user: what is asked of the model that plays it, and what its answers mean."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import ConversationScenario, EvalCase
from evaltui.core.model.events import SIMULATED_USER, Event, Json
from evaltui.core.model.simulator_config import SimulatorConfig
from evaltui.core.recording.invocations import steps_from_events
from evaltui.core.simulation.instructions import STOP_SIGNAL, instructions, persona_is_missing


def lines_of(events: Iterable[Event], *, with_calls: bool) -> list[str]:
    """What was said in a turn, as `author: text`, thoughts left out; `with_calls` also what was called and
    returned. What agents do inside a tool is not heard."""
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
        yield f"{author} calls the tool {call.get('name')} with {_written(call.get('args') or {})}"
    elif with_calls and (result := part.get("function_response")):
        yield f"the tool {result.get('name')} returns {_written(result.get('response'))}"


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


Stop = Literal["signal", "limit"]


class SimulatedUserError(Exception):
    """The user of a case could not be simulated any further; the agent has no part in that."""


@dataclass(frozen=True)
class SimulatedUser:
    """The user of a scenario. Source of what ends a conversation: google-adk 2.13, LlmBackedUserSimulator."""

    scenario: ConversationScenario
    config: SimulatorConfig

    def to_json(self) -> Json:
        return {
            "scenario": self.scenario.model_dump(mode="json", exclude_none=True),
            "config": self.config.model_dump(mode="json"),
        }

    @classmethod
    def from_json(cls, data: Json) -> SimulatedUser:
        return cls(
            ConversationScenario.model_validate(data["scenario"]),
            SimulatorConfig.model_validate(data["config"]),
        )

    @property
    def refusal(self) -> str | None:
        """Why such a user is not simulated, as a sentence."""
        return self.config.refusal or persona_is_missing(self.scenario, self.config.custom_instructions)

    def is_at_limit(self, turns: int) -> bool:
        """Whether it may say nothing more after so many turns."""
        return 0 <= self.config.max_allowed_invocations <= turns

    def prompt(self, history: Sequence[str]) -> str:
        """What the model is asked for each message but the first; `history` as `history.lines_of` has it."""
        return instructions(self.scenario, history, self.config.custom_instructions)


def simulated_user(case: EvalCase, config: EvalConfig) -> SimulatedUser | None:
    """Who plays the user of a case; None where the case says what its user says."""
    if case.conversation_scenario is None:
        return None
    return SimulatedUser(case.conversation_scenario, config.user_simulator_config or SimulatorConfig())


def ends(message: str) -> bool:
    """Whether a message is the last one, which is not sent: the stop signal is somewhere in it."""
    return STOP_SIGNAL in message.lower()


def stopped_in_words(why: Stop, turns: int) -> str:
    """`stopped at the limit of 20 turns`"""
    count = "1 turn" if turns == 1 else f"{turns} turns"
    if why == "limit":
        return f"stopped at the limit of {count}"
    return f"the simulated user ended the conversation after {count}"


def stopped(events: Iterable[Event]) -> str:
    """What ended the conversation of a run, in words; "" where nothing did, or its user was not simulated."""
    return next(
        (
            str(event.data["text"])
            for event in events
            if event.agent == SIMULATED_USER and "stopped" in event.data
        ),
        "",
    )
