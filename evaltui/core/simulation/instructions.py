"""What the model that plays a user is told before each of its messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import resources

from evaltui.core.model.eval_set import ConversationScenario, UserBehavior, UserPersona
from evaltui.core.model.simulator_config import filled, placeholders
from evaltui.core.prompts import fenced, prompt


def persona_of(scenario: ConversationScenario) -> UserPersona | None:
    """The persona that its user is to be, written out; None where it is nobody in particular.

    In its texts, `{{ stop_signal }}` stands for whatever ends the conversation.
    """
    given = scenario.user_persona
    return prebuilt_personas()[given] if isinstance(given, str) else given


@cache
def prebuilt_personas() -> dict[str, UserPersona]:
    """Those that a scenario has by name."""
    file = resources.files(__package__).joinpath("personas.1.json")
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
    said = "\n\n".join(history)
    if custom is not None:
        return _custom(custom, scenario.conversation_plan, said, persona)
    manner = prompt("without_persona").template if persona is None else described(persona)
    return prompt("simulated_user").fill(
        manner=manner,
        stop_signal=STOP_SIGNAL,
        plan=fenced(scenario.conversation_plan),
        history=fenced(said),
    )


def described(persona: UserPersona) -> str:
    """A persona as a text: who it is, and how it behaves."""
    behaviors = "\n".join(_behavior(behavior) for behavior in persona.behaviors)
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


def _custom(custom: str, plan: str, said: str, persona: UserPersona | None) -> str:
    values = {"stop_signal": STOP_SIGNAL, "conversation_plan": plan, "conversation_history": said}
    # As in Jinja: where there is no persona, nothing is written.
    values |= {
        "persona": described(persona) if persona else "",
        "persona.id": persona.id if persona else "",
        "persona.description": persona.description if persona else "",
    }
    return filled(custom, values)
