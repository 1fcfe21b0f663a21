"""Texts of a turn, expected and actual."""

from __future__ import annotations

from dataclasses import dataclass

THOUGHT = "thought"
OUTPUT = "output"
NO_TEXTS = (THOUGHT, OUTPUT)
"""The authors, among the unscored texts of a turn, of thoughts and of an output: no agent says these."""


@dataclass(frozen=True, slots=True)
class AuthoredText:
    """A text of a turn besides the response."""

    author: str
    """An agent; `thought` for a thought, `output` for an output that is no text."""
    text: str


@dataclass(frozen=True, slots=True)
class ResponseDiff:
    """The texts that were compared."""

    expected: str | None
    """None where no answer is expected."""
    actual: str | None
    """None where none came."""
    score: float | None = None
    """Score of `response_match_score`, if it was asked for."""


@dataclass(frozen=True, slots=True)
class IntermediateDiff:
    """A text before the response that is expected, that came, or both."""

    author: str
    """Author of the expected text; of the actual one where none is expected."""
    expected: str | None
    """None for a text that is not expected."""
    actual: str | None
    """None for a text that did not come."""
    score: float | None = None
    """How much the two share, 0.0 to 1.0; None where there is only one."""
