"""Simulated users of scenarios: personas, unsupported users, and the end of a conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from .model.config import EvalConfig, SimulatorConfig
from .model.eval_set import ConversationScenario, EvalCase, UserBehavior, UserPersona
from .model.events import SIMULATED_USER, Event
from .model.placeholders import fill_placeholders, placeholders
from .played_users import STOP_SIGNAL, PlayedPersona, PlayedUser


def persona_of(scenario: ConversationScenario) -> UserPersona | None:
    """The persona of a scenario, complete; None for no particular one.

    In its texts, `{{ stop_signal }}` stands for the stop signal.
    """
    persona = scenario.user_persona
    return prebuilt_personas()[persona] if isinstance(persona, str) else persona


@cache
def prebuilt_personas() -> dict[str, UserPersona]:
    """The personas that a scenario can name."""
    file = resources.files(f"{__package__}.prompts").joinpath("personas.1.json")
    data = json.loads(file.read_text(encoding="utf-8"))
    return {
        name: UserPersona.model_validate(
            {
                "id": name,
                "description": persona["description"],
                "behaviors": [data["behaviors"][behavior] for behavior in persona["behaviors"]],
            }
        )
        for name, persona in data["personas"].items()
    }


def describe_persona(persona: UserPersona) -> str:
    """A persona as text: description and behaviors."""
    behaviors = "\n".join(map(_behavior, persona.behaviors))
    text = f"Who the user is:\n{persona.description}\n\nHow the user behaves:\n\n{behaviors}"
    return fill_placeholders(text, {"stop_signal": STOP_SIGNAL})


def _behavior(behavior: UserBehavior) -> str:
    lines = "".join(f"- {line}\n" for line in behavior.behavior_instructions)
    return f"{behavior.name}\n{behavior.description}\n{lines}"


def persona_is_missing(scenario: ConversationScenario, custom: str | None) -> str | None:
    """Why the config's instructions cannot play a scenario, as a sentence; None where they can.

    The rule is that of google-adk 2.13.
    """
    persona = persona_of(scenario)
    if persona is None or custom is None:
        return None
    if any(name.partition(".")[0] == "persona" for name in placeholders(custom)):
        return None
    return (
        f"its user is {persona.id}, and custom_instructions of user_simulator_config have no place for that: "
        "add {{ persona }} to them"
    )


@dataclass(frozen=True)
class SimulatedUser:
    """The simulated user of a scenario, with the settings in the config."""

    scenario: ConversationScenario
    config: SimulatorConfig

    @property
    def refusal(self) -> str | None:
        """Why such a user is not supported, as a sentence; None where it is."""
        return self.config.refusal or persona_is_missing(self.scenario, self.config.custom_instructions)

    @property
    def played(self) -> PlayedUser:
        """The user in the form for hosts."""
        played = None
        if (persona := persona_of(self.scenario)) is not None:
            played = PlayedPersona(persona.id, persona.description, describe_persona(persona))
        return PlayedUser(
            self.scenario.starting_prompt,
            self.scenario.conversation_plan,
            played,
            self.config.model,
            self.config.model_configuration,
            self.config.max_allowed_invocations,
            self.config.custom_instructions,
            self.config.include_function_calls,
        )


def simulated_user(case: EvalCase, config: EvalConfig) -> SimulatedUser | None:
    """The simulated user of a case; None for a case with turns."""
    if case.conversation_scenario is None:
        return None
    return SimulatedUser(case.conversation_scenario, config.user_simulator_config or SimulatorConfig())


def stop_reason(events: Iterable[Event]) -> str:
    """The reason for the end of a run's conversation in words; "" for none, and without a simulated user."""
    ended = (event for event in events if event.agent == SIMULATED_USER and "stopped" in event.data)
    return next((str(event.data["text"]) for event in ended), "")
