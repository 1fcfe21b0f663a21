"""What a run and its workers tell each other; both have the same version of evaltui."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Json
from evaltui.runner.parent.scoring import ScoringKind
from evaltui.runner.parent.work import ExecutionResult
from evaltui.runner.protocol import FilesOpened


@dataclass(frozen=True)
class WorkerReady:
    """A worker has the run, and says this before anything else."""

    evaltui: str
    """Its version of evaltui."""
    differences: tuple[str, ...]
    """Packages of the agent of which it has another version, or none: clauses."""
    threads: int


@dataclass(frozen=True)
class ChunkStarted:
    """A worker has started a chunk."""

    chunk: int


@dataclass(frozen=True)
class ItemStarted:
    """An item was handed to a host."""

    chunk: int
    item: int


@dataclass(frozen=True)
class ItemEvent:
    """An event of an item, as JSON text."""

    chunk: int
    item: int
    text: str


@dataclass(frozen=True)
class Recorded:
    """A line of the recording of an item."""

    chunk: int
    item: int
    line: Json


@dataclass(frozen=True)
class Ended:
    """An item has ended on its host."""

    chunk: int
    item: int
    ran: ExecutionResult
    """Without its events, which were told."""
    opened: FilesOpened
    """Those that the hosts of its chunk have opened so far; none of a worker on another machine."""


@dataclass(frozen=True)
class Printed:
    """A line on an agent's stdout or stderr, or on those of metrics and judges, which belong to no chunk."""

    chunk: int | None
    item: int | None
    source: str
    line: str


@dataclass(frozen=True)
class AgentBroken:
    """The agent cannot be imported here, so what has not ended of a chunk is not run."""

    chunk: int
    error: ErrorInfo


@dataclass(frozen=True)
class CallStep:
    """A step of a model call at the run's gate, see `Gate`; `number` tells those of a worker apart."""

    number: int
    step: Literal["ask", "end", "refused", "withdraw"]
    model: str = ""
    size: int = 0
    is_first: bool = False
    usage: Json | None = None
    retry_after: float | None = None


@dataclass(frozen=True)
class Scored:
    """The answer to a `Score`."""

    number: int
    answer: Json | Exception
    """The exception is one of those that `ScoringHosts.answer` raises."""
    opened: FilesOpened
    """See `Ended`."""


@dataclass(frozen=True)
class Variables:
    """To a worker: for the environment of its hosts. Dask logs what it is given, so values are not shown."""

    values: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Score:
    """To a worker: a request to what computes metrics or asks judges, see `ScoringHosts.answer`."""

    number: int
    kind: ScoringKind
    request: Json = field(repr=False)


@dataclass(frozen=True)
class LeaveScore:
    """To a worker: nobody waits for the answer to such a request."""

    number: int


@dataclass(frozen=True)
class Go:
    """To a worker: this model call may be made."""

    number: int


@dataclass(frozen=True)
class Wait:
    """To a worker: the model does not want to be asked for so many seconds."""

    model: str
    seconds: float


@dataclass(frozen=True)
class StopCalls:
    """To a worker: the run makes no more model calls."""


OfItems = ItemStarted | ItemEvent | Recorded | Ended
FromWorker = WorkerReady | ChunkStarted | OfItems | Printed | AgentBroken | CallStep | Scored
ToWorker = Score | LeaveScore | Go | Wait | StopCalls
