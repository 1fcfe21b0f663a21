"""Errors of runs and their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class ErrorKind(StrEnum):
    AGENT = "agent"
    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    NETWORK = "network"
    HOST_LOST = "host_lost"
    JUDGE = "judge"
    CONFIG = "config"


MEANINGS = {
    ErrorKind.AGENT: "the agent raised, or cannot be loaded",
    ErrorKind.TIMEOUT: "the agent, a judge or a metric took too long",
    ErrorKind.RATE_LIMIT: "a model or server refused because of too many requests (429)",
    ErrorKind.NETWORK: "a model or server was not reached, or is out of order (5xx)",
    ErrorKind.HOST_LOST: "the process of the agent or metric ended",
    ErrorKind.JUDGE: "a judge gave no readable answer, a simulated user no message, or a metric raised",
    ErrorKind.CONFIG: "a key, a Python, a recording or a criterion is missing or wrong (401, 403)",
}


class SimulatedUserError(Exception):
    """A simulated user could not continue; the agent is not the cause."""


NO_PYTHON = "InterpreterError"
"""The error type for an agent without a usable Python."""

NOT_RECORDED = "NotRecordedError"
"""The error type for a case that is missing in its recording."""

NO_KEY = "MissingKeyError"
"""The error type for an agent whose model has no key; the message is complete without further details."""

# Another try may do without any change.
TRANSIENT_KINDS = frozenset((ErrorKind.RATE_LIMIT, ErrorKind.NETWORK, ErrorKind.HOST_LOST))


@dataclass(frozen=True)
class ErrorInfo:
    """An error of a run."""

    type: str
    """The class of the exception."""
    message: str
    traceback: str = ""
    where: str = ""
    """The innermost frame in the user's own code; "" for none."""
    turn: int | None = field(default=None, compare=False, metadata={"exclude": True})
    """The turn with the error, 0-based; None outside of turns. Not in reports."""
    kind: ErrorKind | None = field(kw_only=True)
    """The kind of cause; None where it is unknown, as in results of google-adk."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ErrorInfo:
        """The error in JSON data from a host. Raises ValueError for an unknown kind."""
        kind = data.get("kind")
        return cls(**{**data, "kind": None if kind is None else ErrorKind(kind)})

    @property
    def of_judge(self) -> ErrorInfo:
        """The error as one of a judge or metric instead of the agent."""
        return replace(self, kind=ErrorKind.JUDGE) if self.kind is ErrorKind.AGENT else self

    @property
    def text(self) -> str:
        """Type and message: `NameError: name 'tols' is not defined`; a message with a remedy has no type."""
        return ": ".join(filter(None, ("" if self.is_no_key else self.type, self.message)))

    @property
    def is_no_key(self) -> bool:
        """Whether the agent's model has no key."""
        return self.type == NO_KEY

    def __str__(self) -> str:
        """Place, type and message: `agent.py:12 in root_agent: NameError: name 'tols' is not defined`."""
        return ": ".join(filter(None, (self.where, self.text)))
