"""Messages between a run and its workers, which both have the same version of evaltui."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from evaltui.agents.protocol import FilesOpened
from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Json
from evaltui.runner.pool import ExecutionResult
from evaltui.runner.scoring import ScoringKind


@dataclass(frozen=True)
class WorkerReady:
    """A worker has received the run; its first message."""

    evaltui: str
    """The worker's version of evaltui."""
    differences: tuple[str, ...]
    """Clauses on the agent's packages that are missing or have another version on the worker."""
    threads: int
    gemini: GeminiAccess
    """How judges reach Gemini from the worker."""


@dataclass(frozen=True)
class ChunkStarted:
    """A worker has started a chunk."""

    chunk: int


@dataclass(frozen=True)
class ItemStarted:
    """A host has started an item."""

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
    """The result, without its events, which are sent as `ItemEvent`."""
    opened: FilesOpened
    """Files that the hosts of its chunk have opened so far; empty for a worker on another machine."""


@dataclass(frozen=True)
class Printed:
    """A line on an agent's stdout or stderr, or on those of metrics and judges, which belong to no chunk."""

    chunk: int | None
    item: int | None
    source: str
    line: str


@dataclass(frozen=True)
class HostRecovered:
    """A host was lost with this error while the items ran, and none of them, run again, lost another."""

    items: tuple[int, ...]
    error: ErrorInfo


@dataclass(frozen=True)
class AgentBroken:
    """The agent cannot be imported on the worker, so the unfinished items of its chunk are not run there."""

    error: ErrorInfo


@dataclass(frozen=True)
class CallStep:
    """A step of a model call at the run's gate, see `Gate`; `number` identifies the call on its worker."""

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
    """The answer, or an exception that `ScoringHosts.answer` raises."""
    opened: FilesOpened
    """Files that the scoring host has opened so far, as in `Ended`."""


@dataclass(frozen=True)
class Score:
    """To a worker: a request to compute a metric or ask a judge, see `ScoringHosts.answer`."""

    number: int
    kind: ScoringKind
    request: Json = field(repr=False)


@dataclass(frozen=True)
class LeaveScore:
    """To a worker: cancel the scoring request of this number."""

    number: int


@dataclass(frozen=True)
class Go:
    """To a worker: this model call may be made."""

    number: int


@dataclass(frozen=True)
class Wait:
    """To a worker: the model takes no calls for so many seconds."""

    model: str
    seconds: float


@dataclass(frozen=True)
class StopCalls:
    """To a worker: the run makes no more model calls."""


ItemMessage = ItemStarted | ItemEvent | Recorded | Ended
FromWorker = (
    WorkerReady | ChunkStarted | ItemMessage | Printed | AgentBroken | HostRecovered | CallStep | Scored
)
ToWorker = Score | LeaveScore | Go | Wait | StopCalls
