"""Texts of a turn, expected and actual."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaltui.core.model.base_model import LEFT_OUT_IF_EMPTY

THOUGHT = "thought"
OUTPUT = "output"
NO_TEXTS = (THOUGHT, OUTPUT)
"""The authors of thoughts and of an output among the unscored texts of a turn."""


@dataclass(frozen=True, slots=True)
class AuthoredText:
    """A text of a turn other than the response."""

    author: str
    """The name of an agent, `thought` for a thought, or `output` for an output that is no text."""
    text: str


@dataclass(frozen=True, slots=True)
class ResponseDiff:
    """An expected and an actual response."""

    expected: str | None
    """The expected response; None for none."""
    actual: str | None
    """The actual response; None for none."""
    score: float | None = None
    """The score of `response_match_score`; None where it is not in use."""
    is_unknown: bool = field(default=False, metadata=LEFT_OUT_IF_EMPTY)
    """Whether the actual response is unknown, such as one that a trace does not have."""


@dataclass(frozen=True, slots=True)
class IntermediateDiff:
    """A text before the response: expected, actual, or both."""

    author: str
    """Author of the expected text; without one, of the actual text."""
    expected: str | None
    """The expected text; None for an unexpected one."""
    actual: str | None
    """The actual text; None for a missing one."""
    score: float | None = None
    """The similarity of both texts, 0.0 to 1.0; None for a single text."""
