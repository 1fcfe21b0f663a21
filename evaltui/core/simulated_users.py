"""Users that a model plays: what it is told before each message, and what ends the conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from ..text.figures import counted
from .conversation.invocations import steps_from_events
from .model.config import EvalConfig, SimulatorConfig, filled, placeholders
from .model.eval_set import ConversationScenario, EvalCase, UserBehavior, UserPersona
from .model.events import SIMULATED_USER, Event, Json
from .prompts import fenced, prompt


def persona_of(scenario: ConversationScenario) -> UserPersona | None:
    """The persona that its user is to be, written out; None where it is nobody in particular.

    In its texts, `{{ stop_signal }}` stands for whatever ends the conversation.
    """
    given = scenario.user_persona
    return prebuilt_personas()[given] if isinstance(given, str) else given


@cache
def prebuilt_personas() -> dict[str, UserPersona]:
    """Those that a scenario has by name."""
    file = resources.files(f"{__package__}.prompts").joinpath("personas.1.json")
    data = json.loads(file.read_text(encoding="utf-8"))
    return {
        name: UserPersona.model_validate(
            {
                "id": name,
                "description": persona["description"],
                "behaviors": [data["behaviors"][one] for one in persona["behaviors"]],
            }
        )
        for name, persona in data["personas"].items()
    }


STOP_SIGNAL = "</finished>"
# Of instructions that the config gives.
CUSTOM = "custom_instructions"


def prompt_id(custom: str | None) -> str:
    """By name and version what a user is played by."""
    return CUSTOM if custom is not None else prompt("simulated_user").id


def instructions(scenario: ConversationScenario, history: Sequence[str], custom: str | None = None) -> str:
    """The prompt for the next message after `history`, the lines of `history.lines_of`. `custom` are the
    instructions of the config."""
    persona = persona_of(scenario)
    text = "\n\n".join(history)
    if custom is not None:
        return _custom(custom, scenario.conversation_plan, text, persona)
    manner = prompt("without_persona").template if persona is None else described(persona)
    return prompt("simulated_user").fill(
        manner=manner,
        stop_signal=STOP_SIGNAL,
        plan=fenced(scenario.conversation_plan),
        history=fenced(text),
    )


def described(persona: UserPersona) -> str:
    """A persona as a text: who it is, and how it behaves."""
    behaviors = "\n".join(map(_behavior, persona.behaviors))
    text = f"Who the user is:\n{persona.description}\n\nHow the user behaves:\n\n{behaviors}"
    return filled(text, {"stop_signal": STOP_SIGNAL})


def _behavior(behavior: UserBehavior) -> str:
    lines = "".join(f"- {line}\n" for line in behavior.behavior_instructions)
    return f"{behavior.name}\n{behavior.description}\n{lines}"


def persona_is_missing(scenario: ConversationScenario, custom: str | None) -> str | None:
    """Why a scenario cannot be played by the instructions of the config, as a sentence: google-adk 2.13 does
    not, either."""
    persona = persona_of(scenario)
    if persona is None or custom is None:
        return None
    if any(name.partition(".")[0] == "persona" for name in placeholders(custom)):
        return None
    return (
        f"its user is {persona.id}, and custom_instructions of user_simulator_config have no place for that: "
        "add {{ persona }} to them"
    )


def _custom(custom: str, plan: str, history: str, persona: UserPersona | None) -> str:
    values = {"stop_signal": STOP_SIGNAL, "conversation_plan": plan, "conversation_history": history}
    # As in Jinja: where there is no persona, nothing is written.
    values |= {
        "persona": described(persona) if persona else "",
        "persona.id": persona.id if persona else "",
        "persona.description": persona.description if persona else "",
    }
    return filled(custom, values)


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
    if why == "limit":
        return f"stopped at the limit of {counted(turns, 'turn')}"
    return f"the simulated user ended the conversation after {counted(turns, 'turn')}"


def stopped(events: Iterable[Event]) -> str:
    """What ended the conversation of a run, in words; "" where nothing did, or its user was not simulated."""
    ended = (one for one in events if one.agent == SIMULATED_USER and "stopped" in one.data)
    return next((str(event.data["text"]) for event in ended), "")
