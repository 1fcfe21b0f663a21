"""The messages that the workbench publishes, and where screens and controllers subscribe to them.

A message says which part of the workbench has changed; how it is now is asked of its controller.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class WorkbenchMessage:
    """Something has changed."""


@dataclass(frozen=True)
class Said(WorkbenchMessage):
    """A sentence that the user should see for a while; "" takes the last one away."""

    text: str
    at: float = field(default_factory=time.monotonic)
    """Since when, as `time.monotonic()`."""


class FilesChanged(WorkbenchMessage):
    """Eval sets or configs were read, edited, saved, or changed by others."""


class SelectionChanged(WorkbenchMessage):
    """Another case or difference is selected, others are marked, or kept by the filter or a search."""


class DraftChanged(WorkbenchMessage):
    """The text in the open field was scored, was refused, or is in no field any more."""


class ResultsChanged(WorkbenchMessage):
    """There are other results, scores, traces or stored runs."""


class RunsRead(WorkbenchMessage):
    """Stored runs were read for a list or a comparison of runs."""


class RunProgressed(WorkbenchMessage):
    """A run was started, came further or ended."""


class AgentChanged(WorkbenchMessage):
    """The agent was imported, could not be, or what a save led to is another step."""


class ChatProgressed(WorkbenchMessage):
    """A message was sent, answered, taken back or priced, or another conversation is shown."""


class SessionsReceived(WorkbenchMessage):
    """A session came from outside, or listening began or ended."""


@dataclass(frozen=True)
class FilesRead(WorkbenchMessage):
    """A run has read these files of the project."""

    files: frozenset[Path]


class CodeSaved(WorkbenchMessage):
    """Files of the agent were saved while they are watched."""


Subscriber = Callable[[WorkbenchMessage], None]


class Messages:
    """Hands each message to those who subscribed to its type, in the event loop's thread."""

    def __init__(self) -> None:
        self.notice: Said | None = None
        """The sentence that is shown; None for none."""
        self._subscribers: dict[Subscriber, tuple[type[WorkbenchMessage], ...]] = {}

    def subscribe(self, subscriber: Subscriber, *types: type[WorkbenchMessage]) -> None:
        """Calls `subscriber` with each message of these types from now on."""
        self._subscribers[subscriber] = types

    def unsubscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.pop(subscriber, None)

    def publish(self, message: WorkbenchMessage) -> None:
        for subscriber, types in [*self._subscribers.items()]:
            if isinstance(message, types):
                subscriber(message)

    def say(self, text: str) -> None:
        """Shows a sentence for a while; "" shows none."""
        said = Said(text)
        self.notice = said if text else None
        self.publish(said)
