"""Errors, and their kinds: what had to be otherwise for a case to come to its end."""

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
    ErrorKind.JUDGE: "a judge gave no readable answer, or a metric raised",
    ErrorKind.CONFIG: "a key, a Python, a recording or a criterion is missing or wrong (401, 403)",
}

NO_PYTHON = "InterpreterError"
"""The type of the error of an agent that has no Python to run in."""

NOT_RECORDED = "NotRecordedError"
"""The type of the error of a run of a case that its recording does not have."""

NO_KEY = "MissingKeyError"
"""The type of the error of an agent whose model has no key; the message says all that there is to say."""

# Another try may do without any change.
TRANSIENT_KINDS = frozenset((ErrorKind.RATE_LIMIT, ErrorKind.NETWORK, ErrorKind.HOST_LOST))


@dataclass(frozen=True)
class ErrorInfo:
    """An error as it was raised."""

    type: str
    """The exception's class."""
    message: str
    traceback: str = ""
    where: str = ""
    """The innermost frame of the user's own code; "" for none."""
    turn: int | None = field(default=None, compare=False, metadata={"exclude": True})
    """The turn in which it was raised, 0-based; None outside of turns. Not in reports."""
    kind: ErrorKind | None = field(kw_only=True)
    """The kind of cause; None where it is not known, as in results of google-adk."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ErrorInfo:
        """An error as a host tells it. Raises ValueError for a kind that there is not."""
        kind = data.get("kind")
        return cls(**{**data, "kind": None if kind is None else ErrorKind(kind)})

    @property
    def of_judge(self) -> ErrorInfo:
        """The error where the code of a judge or a metric raised it, which is not the agent's."""
        return replace(self, kind=ErrorKind.JUDGE) if self.kind is ErrorKind.AGENT else self

    @property
    def text(self) -> str:
        """`NameError: name 'tols' is not defined`; what says what to do stands alone."""
        return ": ".join(filter(None, ("" if self.is_no_key else self.type, self.message)))

    @property
    def is_no_key(self) -> bool:
        """Whether the agent's model has no key; the message says all that there is to say."""
        return self.type == NO_KEY

    def __str__(self) -> str:
        """`agent.py:12 in root_agent: NameError: name 'tols' is not defined`"""
        return ": ".join(filter(None, (self.where, self.text)))
