"""What the run and its workers say to each other, pickled; both have the same version of evaltui.

A worker keeps what it says until the run has it, and says it again where an answer was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Json
from evaltui.runner.parent.pool import ExecutionResult
from evaltui.runner.parent.scoring_hosts import ScoringKind
from evaltui.runner.protocol import FilesOpened


@dataclass(frozen=True)
class HostReady:
    """A worker has a host that waits for a chunk, `at_once` of whose items it runs side by side; `number`
    tells such waits of a worker apart."""

    ticket: int
    number: int
    at_once: int


@dataclass(frozen=True)
class Give:
    """To a worker, for the host that waits with this `number`: the items of a chunk, each with the request
    that has it run; None for nothing more."""

    number: int
    chunk: int
    requests: dict[int, Json] | None


@dataclass(frozen=True)
class Started:
    """An item was handed to a host."""

    chunk: int
    item: int


@dataclass(frozen=True)
class Told:
    """An event of an item, as JSON text."""

    chunk: int
    item: int
    text: str


@dataclass(frozen=True)
class Recorded:
    """What a host tells of the recording of an item."""

    chunk: int
    item: int
    line: Json


@dataclass(frozen=True)
class Printed:
    """A line on an agent's stdout or stderr, or on those of metrics and judges, which belong to no chunk."""

    chunk: int | None
    item: int | None
    source: str
    line: str


@dataclass(frozen=True)
class Broken:
    """The agent cannot be imported here, so what has not ended of a chunk is not run."""

    chunk: int
    error: ErrorInfo


@dataclass(frozen=True)
class Ended:
    """Running an item is over."""

    chunk: int
    item: int
    ran: ExecutionResult
    """Without its events, which were told."""
    opened: FilesOpened
    """The files that the hosts of its chunk have opened so far; none where the worker is on another
    machine."""


@dataclass(frozen=True)
class ChunkEnded:
    """The host is free again. What has not ended of the chunk was not run to its end."""

    chunk: int


@dataclass(frozen=True)
class Arrived:
    """What a worker is, before anything else."""

    evaltui: str
    """Its version of evaltui."""
    differences: tuple[str, ...]
    """Packages of the agent of which it has another version, or none: clauses."""


@dataclass(frozen=True)
class Take:
    """To a worker that has arrived: variables for the environment of its hosts.

    Not a part of the run as Dask keeps it, which it logs where it cannot be read.
    """

    variables: Mapping[str, str]


@dataclass(frozen=True)
class Prepared:
    """A worker has its variables."""

    gemini: GeminiAccess
    """How judges reach Gemini from there."""


@dataclass(frozen=True)
class AskCall:
    """A model call waits for the run's gate; `number` tells those of a worker apart; see `Gate.ask`."""

    number: int
    model: str
    size: int
    is_first: bool


@dataclass(frozen=True)
class EndCall:
    """A model call is over; see `Gate.end`."""

    number: int
    usage: Json | None


@dataclass(frozen=True)
class RefusedCall:
    """A model has refused a call for too many; see `Gate.refused`."""

    number: int
    retry_after: float | None


@dataclass(frozen=True)
class WithdrawCall:
    """Nobody waits for a model call any more."""

    number: int


@dataclass(frozen=True)
class Score:
    """To a worker: a request to what computes metrics or asks judges, see `ScoringHosts.answer`."""

    number: int
    kind: ScoringKind
    request: Json


@dataclass(frozen=True)
class LeaveScore:
    """To a worker: nobody waits for the answer to such a request."""

    number: int


@dataclass(frozen=True)
class Scored:
    """What such a request came to."""

    number: int
    answer: Json | Exception
    """The exception is one of those that `ScoringHosts.answer` raises."""
    opened: FilesOpened
    """The files that what scores has opened so far; none where the worker is on another machine."""


@dataclass(frozen=True)
class Again:
    """To a worker that was taken for lost: it says again what it is, and which of its hosts wait."""


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


OfCalls = AskCall | EndCall | RefusedCall | WithdrawCall
ToWorker = Take | Give | Again | Go | Wait | StopCalls | Score | LeaveScore
OfItems = Started | Told | Recorded | Ended
FromWorker = Arrived | Prepared | HostReady | OfItems | Printed | Broken | ChunkEnded
