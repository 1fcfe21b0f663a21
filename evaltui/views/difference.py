"""Where a result differs from what is expected.

Nothing heavy is imported, so that the screen can go to differences before any result is shown.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class DifferenceAt(NamedTuple):
    """Where, in its last result, a case did otherwise than expected."""

    kind: Literal["argument", "call", "text", "answer", "state", "judgement"]
    """A call differs as a whole, or in an `argument`; a `text` is one before the answer."""
    turn: int | None = None
    """The turn, from 0; None for the final state and for what is of the whole conversation."""
    row: int | None = None
    """The index of the call in `TurnResult.calls`."""
    path: str | None = None
    """The path of the argument as in `ArgDiff`, or of the state key as in `StateDiff`."""
    text: int | None = None
    """The index of the text in `TurnResult.intermediate`."""
    finding: tuple[str, int] | None = None
    """A judge's finding: the metric, and the index in `InvocationScore.judgements`."""
