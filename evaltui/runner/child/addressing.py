"""Messages with responses in them, addressed to the calls that wait in the session they are sent to."""

from __future__ import annotations

import time
from collections.abc import Mapping

from evaltui.core.model.events import Json
from evaltui.core.recording.waiting import CallPlace, NotWaitingError, WaitingCalls
from evaltui.runner.child.adapters.base import Recorder


def addressed(
    content: Json,
    turn: int,
    waiting: WaitingCalls | None,
    places: Mapping[str, CallPlace],
    recorder: Recorder,
) -> Json:
    """The message of a turn (from 0), its responses those of the calls that wait.

    Without `waiting` it stays as it is. Raises NotWaitingError, the message then being part of what happened.
    """
    if waiting is None:
        return content
    try:
        return waiting.resolved(content, turn, places)
    except NotWaitingError:
        recorder.turn = turn
        recorder.event("user", content, data={"timestamp": time.time()})
        raise
