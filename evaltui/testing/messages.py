"""What pytest and the process of its runs say to each other. Both load this: nothing heavy is imported."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult
    from evaltui.text.lines import Line

_SIZE = 4


@dataclass(frozen=True)
class RunOrder:
    """Cases of one agent that are to be one run. Equal orders are the same run."""

    agent_dir: Path
    """Relative to `folder`, as every path here."""
    words: tuple[str, ...]
    """The options, as `evaltui run` takes them."""
    cases: tuple[tuple[Path, tuple[str, ...] | None], ...]
    """The cases of each set by their ids, None for all of them."""
    width: int = field(compare=False)
    """Cells of a line of the comparison with the baseline."""
    folder: Path = field(default_factory=Path.cwd, compare=False)
    """Where the agent runs."""
    environment: Mapping[str, str] = field(default_factory=dict, compare=False)
    """What the agent finds in its environment."""

    @cached_property
    def key(self) -> str:
        """The same for equal orders, in every process."""
        data = (self.agent_dir, self.words, self.cases)
        return sha256(repr(data).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Ending:
    """Asks for what every run came to, those that go on being cancelled."""


@dataclass(frozen=True)
class FinishedCase:
    """A case of a run that is over."""

    run: str
    """Key of the order."""
    id: CaseId
    verdict: Status
    """A flaky one as its policy decides: PASSED or FAILED."""
    seconds: float
    """Of all its repeats."""
    scores: tuple[tuple[str, float], ...]
    """Of its metrics that have one."""
    flaky: str
    """`2 of 3 repeats passed`; "" where its repeats agree."""
    excuse: str
    """Why it does not count that it did not pass; "" where it does."""
    printed: str
    """What the agent printed meanwhile, as far as it is known whose it was."""
    pickled: bytes

    @cached_property
    def result(self) -> CaseResult:
        """All of it. Most tests never ask."""
        result: CaseResult = pickle.loads(self.pickled)
        return result


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over."""

    order: RunOrder
    cases: int
    """How many of its cases are over."""
    seconds: float
    log: Path | None
    """None where it is not kept."""
    notes: tuple[str, ...]
    """Remarks on it."""
    comparison: tuple[Line, ...] = ()
    """With the baseline."""
    problem: str = ""
    """Why it could not be done, or not to its end."""


def packed(message: object) -> bytes:
    """A message as it is sent."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(_SIZE, "big") + data


class Unpacker:
    """Makes messages of the bytes that arrive."""

    def __init__(self) -> None:
        self._left = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """The messages that are complete now."""
        left = self._left
        left += data
        at = 0
        while (end := at + _SIZE) <= len(left):
            size = int.from_bytes(left[at:end], "big")
            if len(left) < end + size:
                break
            yield pickle.loads(left[end : end + size])
            at = end + size
        del left[:at]
