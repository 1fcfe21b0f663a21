"""What a save has led to, and how that is said."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.core.trace.model_calls import NO_CALLS, ModelCalls

if TYPE_CHECKING:
    from evaltui.core.model.outcome import ErrorInfo


class ReactionStep(StrEnum):
    """How far a reaction is."""

    IMPORTING = "importing the agent"
    RUNNING = "running"
    SCORING = "scoring again"
    DONE = "done"
    BROKEN = "the agent cannot be imported"


@dataclass(frozen=True)
class Reaction:
    """What follows from a save."""

    changed: tuple[str, ...]
    """The files, as seen from the agent's folder."""
    step: ReactionStep
    run: int | None = None
    """The number of the run that it led to."""
    cases: int = 0
    """How many cases are run."""
    calls: ModelCalls = NO_CALLS
    """The model calls that these cases made when they were run last."""
    rescored: int = 0
    """How many cases were scored again without the agent."""
    seconds: float | None = None
    """From the save to the last verdict; None before that."""
    at: float = field(default_factory=time.time)
    """When this was known, in seconds since the epoch."""


@dataclass(frozen=True)
class Waiting:
    """Cases whose result is of the agent as it was before."""

    cases: frozenset[CaseId] = frozenset()
    calls: ModelCalls = NO_CALLS
    """The model calls that they made then."""


def in_short(names: Sequence[str]) -> str:
    """`agent.py`, `agent.py and tools.py`, `agent.py and 3 more`"""
    if len(names) > 2:
        return f"{names[0]} and {len(names) - 1} more"
    return " and ".join(names)


def in_a_line(error: ErrorInfo) -> str:
    """`agent.py:12: NameError: name 'tols' is not defined`"""
    where = error.where.partition(" ")[0]
    message = error.message.strip().splitlines()
    return ": ".join(part for part in (where, error.type, message[0] if message else "") if part)


def calls_in_words(calls: ModelCalls) -> str:
    """`no live model call`, `3 live model calls`, `at least 3 live model calls`, or that nobody knows; with
    `and 5 live judge calls` behind it where a judge was asked."""
    of_models = calls.live - calls.judged
    judges = f" and {calls.judged} live judge call{'' if calls.judged == 1 else 's'}" if calls.judged else ""
    if not calls.known and not of_models:
        return f"live model calls not known{judges}"
    if not of_models:
        return f"no live model call{judges}"
    least = "" if calls.known else "at least "
    return f"{least}{of_models} live model call{'' if of_models == 1 else 's'}{judges}"
