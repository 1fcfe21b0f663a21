"""How a host fails, with the error as the user sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaltui.core.model.outcome import ErrorInfo


class AgentBrokenError(Exception):
    """The agent cannot be imported or opened."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(str(error))
        self.error = error


class RequestFailedError(Exception):
    """The agent raised while it worked on a request."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(str(error))
        self.error = error


class HostLostError(Exception):
    """The host died or stopped answering; what it was working on has no answer."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(str(error))
        self.error = error
