"""The place of a difference in a result.

No models are imported, so that a screen can move between differences before it shows a result.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class DifferenceAt(NamedTuple):
    """A place in a result where the case differs from its expectation."""

    kind: Literal["argument", "call", "text", "answer", "state", "judgement"]
    """The kind of difference: a whole `call` or an `argument` of a call; `text` is a text before the answer.
    """
    turn: int | None = None
    """The turn, from 0; None for the final state and for the conversation as a whole."""
    row: int | None = None
    """The index of the call in `TurnResult.calls`."""
    path: str | None = None
    """The path of the argument as in `ArgDiff`, or of the state key as in `StateDiff`."""
    text: int | None = None
    """The index of the text in `TurnResult.intermediate`."""
    finding: tuple[str, int] | None = None
    """A judge's finding: the metric, and the index in `InvocationScore.judgements`."""
