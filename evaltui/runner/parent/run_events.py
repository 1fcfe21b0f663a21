"""The events of a run: each with its number and its place, told as they come."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from functools import lru_cache

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Event, Json
from evaltui.runner.plan import Happened, OnUpdate, WorkItem
from evaltui.runner.protocol import decode_event


class RunEvents:
    """Numbers events across all cases of a run. `began` is the `time.monotonic()` that they count from."""

    def __init__(self, on_update: OnUpdate, began: float) -> None:
        self._on_update = on_update
        self._began = began
        self._seq = 0

    def happened(self, item: WorkItem, text: str) -> Event:
        """The event that a host tells of as JSON text. Raises DisturbedChannelError."""
        self._seq += 1
        data = decode_event(text)
        data.update(_place(item), seq=self._seq)
        event = Event.from_json(data)
        # Encoded once: what the host wrote, with its place at the end.
        place = _place_text(item.case, item.set.eval_set_id, item.repeat)
        self._on_update(Happened(event, f'{text[:-1]},{place},"seq":{self._seq}}}'))
        return event

    def printed(self, item: WorkItem | None, source: str, line: str) -> None:
        """A line on stdout or stderr; `item` where only one can have printed it."""
        self._add(item, Event("console", data={"source": source, "text": line}, t=self._now()))

    def ended_in(self, item: WorkItem, error: ErrorInfo, turn: int | None) -> None:
        """An error ended a case: the last thing that happened in it."""
        data = asdict(error)
        del data["turn"]
        data["kind"] = error.kind and error.kind.value
        self._add(item, Event("error", data=data, t=self._now(), turn=turn))

    def _add(self, item: WorkItem | None, event: Event) -> None:
        """Something that happened, of which no host told."""
        self._seq += 1
        place = {} if item is None else _place(item)
        self._on_update(Happened(replace(event, seq=self._seq, **place)))

    def _now(self) -> float:
        return time.monotonic() - self._began


def _place(item: WorkItem) -> Json:
    """The fields of an event that say which run of a case it belongs to."""
    path, eval_id = item.case
    return {"path": path, "set": item.set.eval_set_id, "case": eval_id, "repeat": item.repeat}


@lru_cache(maxsize=64)
def _place_text(case: CaseId, eval_set_id: str, repeat: int) -> str:
    """The same, as the members of a JSON object."""
    place = {"path": case.path, "set": eval_set_id, "case": case.eval_id, "repeat": repeat}
    given = {name: value for name, value in place.items() if value != ""}
    return json.dumps(given, separators=(",", ":"))[1:-1]
