"""What the personas are that a scenario may name.

Which ways of behaving make up which of them is as in google-adk 2.13; the words are ours.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from evaltui.core.model.eval_set import ConversationScenario, UserPersona

_FILE = "personas.1.json"


def persona_of(scenario: ConversationScenario) -> UserPersona | None:
    """The persona that its user is to be, written out; None where it is nobody in particular.

    In its texts, `{{ stop_signal }}` stands for whatever ends the conversation.
    """
    given = scenario.user_persona
    return prebuilt_personas()[given] if isinstance(given, str) else given


@cache
def prebuilt_personas() -> dict[str, UserPersona]:
    """Those that a scenario has by name."""
    file = resources.files(__package__).joinpath(_FILE)
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
