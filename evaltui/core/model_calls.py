"""How often a run of a case asked a model, and how often that was for real."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evaltui.core.events import Event

# Models whose name begins so are stand-ins: they answer by rules, without network and cost.
STAND_IN = "scripted"


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """`live` calls went to a model, failed ones included; `replayed` ones were taken from a recording.

    What a stand-in answered is neither. `known` is False where nothing says whether a model was asked at all:
    an agent that is a plain function reports calls of tools, but not of models.
    """

    live: int = 0
    replayed: int = 0
    known: bool = True

    def __add__(self, other: ModelCalls) -> ModelCalls:
        return ModelCalls(self.live + other.live, self.replayed + other.replayed, self.known and other.known)

    @property
    def need_no_model(self) -> bool:
        """Whether the same again is known to cost nothing."""
        return self.known and not self.live


NO_CALLS = ModelCalls()


def count_model_calls(events: Iterable[Event], *, reported: bool) -> ModelCalls:
    """The model calls among the events of a case, all its repeats together.

    A call is replayed where its request, its response or its error has `data["replayed"]`; where its request
    has `data["missed"]`, it was not made. `reported` is whether the agent's framework reports model calls:
    without, only those that are seen all the same are known.
    """
    replayed: dict[str, bool] = {}
    seen = False
    for event in events:
        if event.kind == "model_request":
            seen = True
            stand_in = str(event.data.get("model", "")).startswith(STAND_IN)
            if not stand_in and not event.data.get("missed"):
                replayed[f"{event.repeat} {event.id}"] = bool(event.data.get("replayed"))
        elif event.data.get("replayed") and event.parent:
            call = f"{event.repeat} {event.parent}"
            if call in replayed:
                replayed[call] = True
    from_recording = sum(replayed.values())
    return ModelCalls(len(replayed) - from_recording, from_recording, reported or seen)
