"""How often a run of a case asked a model, and how often that was for real."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaltui.core.model.events import STAND_IN
from evaltui.text.figures import counted

if TYPE_CHECKING:
    from evaltui.core.model.events import Event
    from evaltui.core.model.outcome import RepeatResult


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """`live` calls went to a model, failed ones included; `replayed` ones were taken from a recording.

    What a stand-in answered is neither. Calls of judges count among both; `judged` is how many of the live
    ones these are. `known` is False where nothing says whether a model was asked at all:
    an agent that is a plain function reports calls of tools, but not of models.
    """

    live: int = 0
    replayed: int = 0
    is_known: bool = True
    judged: int = 0

    def __add__(self, other: ModelCalls) -> ModelCalls:
        return ModelCalls(
            self.live + other.live,
            self.replayed + other.replayed,
            self.is_known and other.is_known,
            self.judged + other.judged,
        )

    @property
    def need_no_model(self) -> bool:
        """Whether the same again is known to cost nothing."""
        return self.is_known and not self.live


NO_CALLS = ModelCalls()


def judge_calls(result: RepeatResult) -> ModelCalls:
    """Model calls of the judges in one run of a case; any judge may cost as much as a model."""
    judges = [metric.judge for metric in result.metrics if metric.judge is not None]
    live = sum(judge.live for judge in judges)
    return ModelCalls(live, sum(judge.replayed for judge in judges), judged=live)


def count_model_calls(events: Iterable[Event], *, reported: bool) -> ModelCalls:
    """The model calls among the events of a case, all its repeats together.

    A call is replayed where its request, its response or its error has `data["replayed"]`; where its request
    has `data["missed"]`, it was not made. `reported` is whether the agent's framework reports model calls:
    without, only those that are seen all the same are known.
    """
    from evaltui.core.model.events import SIMULATED_USER

    replayed: dict[str, bool] = {}
    seen = False
    for event in events:
        if event.kind == "model_request":
            # What plays the user is none of the agent's.
            seen = seen or event.agent != SIMULATED_USER
            stand_in = str(event.data.get("model", "")).startswith(STAND_IN)
            if not stand_in and not event.data.get("missed"):
                replayed[f"{event.repeat} {event.id}"] = bool(event.data.get("replayed"))
        elif event.data.get("replayed") and event.parent:
            call = f"{event.repeat} {event.parent}"
            if call in replayed:
                replayed[call] = True
    from_recording = sum(replayed.values())
    return ModelCalls(len(replayed) - from_recording, from_recording, reported or seen)


@dataclass
class CallCounts:
    """Counts as events and results come. A request that a stand-in for a model answered is neither."""

    live: int = 0
    replayed: int = 0
    stubbed_tools: int = 0
    judge_live: int = 0
    judge_replayed: int = 0

    def on_event(self, event: Event) -> None:
        if event.kind == "model_request":
            if event.data.get("replayed"):
                self.replayed += 1
            elif not event.data.get("missed") and not str(event.data.get("model", "")).startswith(STAND_IN):
                self.live += 1
        elif event.kind == "tool_result" and event.data.get("stubbed"):
            self.stubbed_tools += 1

    def on_result(self, result: RepeatResult) -> None:
        """Count what judges were asked about one run of a case."""
        judges = judge_calls(result)
        self.judge_live += judges.live
        self.judge_replayed += judges.replayed

    def __str__(self) -> str:
        text = f"{counted(self.live, 'live model call')}, {self.replayed} replayed"
        if self.judge_live or self.judge_replayed:
            text += f", {counted(self.judge_live, 'live judge call')}, {self.judge_replayed} replayed"
        if self.stubbed_tools:
            text += f", {counted(self.stubbed_tools, 'tool call')} stubbed"
        return text
