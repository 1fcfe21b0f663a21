"""Turns that ended with a model failure, which frameworks report as usual turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..model.errors import ErrorInfo, ErrorKind
from ..model.events import ANSWERS, SIMULATED_USER, Event, Json, parts_in

_NO_ANSWER_TEXT = "no response of the model"
# Why a model ended without saying anything: these are no failures.
_ENDS_WELL = frozenset(
    ("STOP", "END_TURN", "STOP_SEQUENCE", "TOOL_CALL", "TOOL_CALLS", "TOOL_USE", "FUNCTION_CALL", "COMPLETED")
)
_KINDS = {
    **dict.fromkeys(("429", "RESOURCE_EXHAUSTED"), ErrorKind.RATE_LIMIT),
    **dict.fromkeys(("500", "502", "503", "504", "INTERNAL", "UNAVAILABLE"), ErrorKind.NETWORK),
    **dict.fromkeys(("401", "403", "PERMISSION_DENIED", "UNAUTHENTICATED"), ErrorKind.CONFIG),
    **dict.fromkeys(("DEADLINE_EXCEEDED",), ErrorKind.TIMEOUT),
}


def unanswered_failure(events: Iterable[Event]) -> ErrorInfo | None:
    """The first model failure that its turn did not recover from; None for none.

    A turn recovers if the agent says or calls something later on the same branch. Failures inside a tool
    belong to the tool; failures of simulated users are ignored.
    """
    turns: dict[int | None, list[Event]] = {}
    for event in events:
        if event.agent != SIMULATED_USER and not event.data.get("nested"):
            turns.setdefault(event.turn, []).append(event)
    failures = (_Turn().failure(turn) for turn in turns.values())
    return next((failure for failure in failures if failure is not None), None)


@dataclass
class _Turn:
    """The failures of a turn that no later event has answered so far."""

    requests: set[str] = field(default_factory=set)
    """The ids of model requests."""
    is_answered: bool = False
    """Whether there was, or may have been, a final response."""
    pending: list[tuple[Event, ErrorInfo]] = field(default_factory=list)

    def failure(self, events: Iterable[Event]) -> ErrorInfo | None:
        for event in events:
            if event.data.get("partial") or event.data.get("retrying"):
                continue
            if event.kind == "user":
                self.is_answered = ANSWERS in event.data.get("untold", ())
            elif event.kind == "model_request":
                self.requests.add(event.id)
            elif (error := self._error(event)) is not None:
                if "step" in event.data:
                    # What the framework makes of the failures of its model.
                    self._forget_calls()
                self.pending.append((event, error))
            elif event.kind == "model_response":
                # Another model, or another try, has answered; a step of the framework stays as it is.
                if event.data.get("unrecorded") or _says(event):
                    self._forget_calls()
            elif _says(event):
                self.pending = [
                    entry for entry in self.pending if not _follows(entry[0].branch, event.branch)
                ]
                self.is_answered = self.is_answered or bool(event.data.get("final"))
        return self.pending[0][1] if self.pending else None

    def _forget_calls(self) -> None:
        """Removes failures of model calls, but keeps failures that are steps of the framework."""
        self.pending = [entry for entry in self.pending if "step" in entry[0].data]

    def _error(self, event: Event) -> ErrorInfo | None:
        data = event.data
        code, message = str(data.get("error_code") or ""), str(data.get("error_message") or "")
        if code and event.kind != "model_response":
            # The framework ends the turn of the agent with it.
            message = message or str(data.get("message") or "")
            return None if _says(event) else _info(event, code, message)
        if self.is_answered:
            # A model that was asked besides, as for a summary; or nobody knows what the agent said.
            return None
        if event.kind == "error" and event.parent in self.requests:
            return _info(event, str(data.get("type") or "Error"), str(data.get("message") or ""))
        reason = str(data.get("finish_reason") or "").upper()
        if event.kind == "model_response" and not _says(event) and (code or reason not in ("", *_ENDS_WELL)):
            return _info(event, code or reason, message)
        return None


def _info(event: Event, code: str, message: str) -> ErrorInfo:
    kind = _KINDS.get(code.upper(), ErrorKind.AGENT)
    message = _NO_ANSWER_TEXT if message in ("", code) else message
    return ErrorInfo(code, message, turn=event.turn, kind=kind)


def _follows(branch: str, later: str) -> bool:
    """Whether agents on two branches run one after the other, not side by side."""
    outer, inner = sorted((branch, later), key=len)
    return not outer or inner == outer or inner.startswith(f"{outer}.")


def _says(event: Event) -> bool:
    """Whether an event has content other than thoughts."""
    return event.kind == "output" or any(map(_has_content, parts_in(event.content)))


def _has_content(part: Json) -> bool:
    if part.get("thought"):
        return False
    if "text" in part:
        return bool(str(part["text"] or "").strip())
    # The result of a tool says nothing of the model.
    return "function_response" not in part
