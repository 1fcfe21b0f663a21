"""`user_simulator_config` of the eval config: who plays the users of scenarios, and how (google-adk 2.13)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr, field_validator
from pydantic.alias_generators import to_camel

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][\w.]*)\s*\}\}")
# What Jinja would take as its own: expressions, statements, comments.
_MARKUP = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_KNOWN = (
    "stop_signal",
    "conversation_plan",
    "conversation_history",
    "persona",
    "persona.id",
    "persona.description",
)


def placeholders(template: str) -> set[str]:
    """The names in a text. Raises ValueError for any other markup: it would reach the model as it stands."""
    found = set()
    for markup in _MARKUP.finditer(template):
        placeholder = _PLACEHOLDER.fullmatch(markup[0])
        if placeholder is None or placeholder[1] not in _KNOWN:
            raise ValueError(
                f"evaltui does not understand {markup[0]}: of Jinja it knows the placeholders "
                f"{', '.join(f'{{{{ {name} }}}}' for name in _KNOWN)}, where {{{{ persona }}}} is all of it"
            )
        found.add(placeholder[1])
    return found


def filled(template: str, values: Mapping[str, str]) -> str:
    """The text with these names replaced; what a value holds is inserted as it is, and other names stay."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)


_REQUIRED = ("stop_signal", "conversation_plan", "conversation_history")
_SPEAKS = (
    'its user is to speak (user_simulator_config of type "llm_audio"), which evaltui does not do; '
    'with "type": "llm_backed" it writes'
)


class SimulatorConfig(BaseModel):
    """`model` is one that google-genai reaches, or `module:callable`, a function of the user's from prompt to
    answer. `model_configuration` is a GenerateContentConfig as JSON. The starting prompt counts as one of the
    `max_allowed_invocations`; a negative number is no limit. Unknown keys are kept, as in ADK.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    type: Literal["llm_backed", "llm_audio"] = "llm_backed"
    model: StrictStr = "gemini-2.5-flash"
    model_configuration: dict[str, Any] = Field(
        default_factory=lambda: {"thinking_config": {"include_thoughts": True, "thinking_budget": 10240}}
    )
    max_allowed_invocations: int = 20
    custom_instructions: StrictStr | None = None
    include_function_calls: bool = False

    @field_validator("type", mode="before")
    @classmethod
    def _absent_type(cls, value: Any) -> Any:
        return "llm_backed" if value is None else value

    @field_validator("custom_instructions")
    @classmethod
    def _complete(cls, value: str | None) -> str | None:
        if value is not None and (missing := [name for name in _REQUIRED if name not in placeholders(value)]):
            raise ValueError(f"must contain {', '.join(f'{{{{ {name} }}}}' for name in missing)}")
        return value

    @property
    def refusal(self) -> str | None:
        """Why evaltui does not simulate such a user."""
        return _SPEAKS if self.type == "llm_audio" else None
