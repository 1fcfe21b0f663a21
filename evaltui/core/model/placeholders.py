"""Placeholders in custom instructions of a simulated user, in Jinja's form: `{{ conversation_plan }}`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][\w.]*)\s*\}\}")
# What Jinja would take as its own: expressions, statements, comments.
_MARKUP = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_NAMES = (
    "stop_signal",
    "conversation_plan",
    "conversation_history",
    "persona",
    "persona.id",
    "persona.description",
)


def placeholders(template: str) -> set[str]:
    """The placeholder names in a text. Raises ValueError for other markup, which the model would see
    unchanged."""
    names = set()
    for markup in _MARKUP.finditer(template):
        placeholder = _PLACEHOLDER.fullmatch(markup[0])
        if placeholder is None or placeholder[1] not in _NAMES:
            raise ValueError(
                f"unknown markup {markup[0]}. Placeholders are "
                f"{', '.join(f'{{{{ {name} }}}}' for name in _NAMES)}; {{{{ persona }}}} is the whole persona"
            )
        names.add(placeholder[1])
    return names


def fill_placeholders(template: str, values: Mapping[str, str]) -> str:
    """The text with these names replaced by values; other names and markup inside values are unchanged."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)
