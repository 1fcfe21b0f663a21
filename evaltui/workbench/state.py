"""What the workbench knows, as plain data."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    # Importing these loads google.genai, which must not happen before the first frame.
    from evaltui.core.config import EvalConfig
    from evaltui.core.evalset import EvalCase
    from evaltui.core.outcome import CaseResult
    from evaltui.core.stored_cases import StoredCase


class CaseKey(NamedTuple):
    """A case, wherever it is named: the file that it is in, and its id there."""

    path: Path
    eval_id: str


class Selection(NamedTuple):
    """What is selected: a set, a case in it, a turn of that case (from 0), or nothing at all."""

    path: Path | None = None
    eval_id: str | None = None
    turn: int | None = None

    @property
    def case(self) -> CaseKey | None:
        if self.path is None or self.eval_id is None:
            return None
        return CaseKey(self.path, self.eval_id)


@dataclass(frozen=True)
class Scored:
    """What came of a case, the run it comes from, and the case and the config that it was scored by.

    The result is without the invocations of its repeats: `Workbench.trace` has what they are made of.
    """

    result: CaseResult
    run: int
    stored: StoredCase
    config: EvalConfig

    @property
    def case(self) -> EvalCase:
        """Made each time: ten thousand models take 90 MB."""
        return self.stored.model()


class Stage(StrEnum):
    READING = "reading the eval sets"
    STARTING = "starting the agent"
    RUNNING = "running"
    CANCELLING = "cancelling"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"


OVER = frozenset({Stage.FINISHED, Stage.CANCELLED, Stage.FAILED})


# Fewer cases that are done say little of those to come.
_ENOUGH = 3


@dataclass
class Run:
    """One run and how far it is. `began` and `ended` are `time.monotonic()`; `counts` is by status.

    `log_size` is how many bytes of the log have been written, None where none can be.
    """

    number: int
    title: str
    stage: Stage = Stage.READING
    selected: frozenset[CaseKey] = frozenset()
    running: set[CaseKey] = field(default_factory=set)
    done: set[CaseKey] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)
    working_since: float | None = None
    ended: float | None = None
    log: Path | None = None
    log_size: int | None = None
    remarks: list[str] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return self.stage in OVER

    @property
    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.began

    @property
    def seconds_left(self) -> float | None:
        """An estimate, from the cases that are done; None before there are three of them, and at the end."""
        done, left = len(self.done), len(self.selected) - len(self.done)
        if done < _ENOUGH or not left or self.working_since is None:
            return None
        return (time.monotonic() - self.working_since) / done * left

    def is_waiting(self, key: CaseKey) -> bool:
        """Whether the case is still to be run."""
        return not self.over and key in self.selected and key not in self.running and key not in self.done


@dataclass(frozen=True)
class Notice:
    """A sentence that the user should see for a while. `at` is `time.monotonic()`."""

    text: str
    at: float = field(default_factory=time.monotonic)
