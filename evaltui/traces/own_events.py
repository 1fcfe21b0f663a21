"""The attributes in which evaltui's own traces have the events of a turn, and the state, as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from evaltui.core.model.events import Event, Json

EVENTS = "evaltui.events"
"""Attribute of the first span of a turn, JSON. What spans have no place for, such as the session state and
what was printed, is read back from here."""
FINAL_STATE = "evaltui.final_session_state"
"""Attribute of the first span of the last turn, JSON: the session state after it."""


def own_events(text: Any, turn: int) -> list[Event] | None:
    """The events of a turn, which is number `turn` of its conversation; None where they cannot be read.

    They are no longer of a case: its names and its repeat are left out.
    """
    try:
        data = json.loads(text) if isinstance(text, str) else None
        if not isinstance(data, list) or not data:
            return None
        events = [Event.from_json(event) for event in data]
        return [replace(event, path="", set="", case="", repeat=0, turn=turn) for event in events]
    except (AttributeError, TypeError, ValueError, RecursionError):
        # Something on the way has cut it: the spans say nearly as much.
        return None


def own_final_state(text: Any) -> Json | None:
    """The session state after the last turn; None where it is unknown."""
    try:
        data = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
