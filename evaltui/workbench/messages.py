"""The messages that the workbench publishes, and subscriptions for screens and controllers.

A message names the changed part of the workbench; the receiver reads the new state from the controller.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class WorkbenchMessage:
    """A change of the workbench."""


@dataclass(frozen=True)
class Notice(WorkbenchMessage):
    """A sentence that is shown to the user for a while; "" removes the last one."""

    text: str
    at: float = field(default_factory=time.monotonic)
    """Time of the message, as `time.monotonic()`."""


class FilesChanged(WorkbenchMessage):
    """Eval sets or configs were read, edited, saved, or changed by others."""


class SelectionChanged(WorkbenchMessage):
    """Another case or difference is selected, or other cases are marked or match a filter or a search."""


class DraftChanged(WorkbenchMessage):
    """The text in the open field was scored, was refused, or its field was closed."""


class ResultsChanged(WorkbenchMessage):
    """Results, scores, traces or stored runs have changed."""


class RunsRead(WorkbenchMessage):
    """Stored runs were read for a list or a comparison of runs."""


class GapsFound(WorkbenchMessage):
    """Gaps of eval sets were found, or their search began, ended or became stale."""


class RunProgressed(WorkbenchMessage):
    """A run was started, made progress or ended."""


class AgentChanged(WorkbenchMessage):
    """The agent was imported or failed to load, or the reaction to a save reached another stage."""


class ChatProgressed(WorkbenchMessage):
    """A message was sent, answered, rewound or priced, or another conversation is shown."""


class SessionsReceived(WorkbenchMessage):
    """A session was received, or listening started or ended."""


class FilesRead(WorkbenchMessage):
    """Runs have read other files outside of the agent's folder."""


class CodeSaved(WorkbenchMessage):
    """Files of the agent were saved while they are watched."""


Subscriber = Callable[[WorkbenchMessage], None]


class Messages:
    """Calls the subscribers of each message's type, in the event loop's thread."""

    def __init__(self) -> None:
        self.notice: Notice | None = None
        """The shown notice; None for none."""
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
        message = Notice(text)
        self.notice = message if text else None
        self.publish(message)
