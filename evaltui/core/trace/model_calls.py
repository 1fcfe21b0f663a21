"""Numbers of live and replayed model calls in a run of a case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaltui.core.model.events import SCRIPTED_PREFIX, SIMULATED_USER, Event
from evaltui.text.figures import counted

if TYPE_CHECKING:
    from evaltui.core.model.outcome import RepeatResult


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Numbers of model calls.

    `live` calls went to a model, failed ones included; `replayed` calls were answered by a recording;
    scripted models count as neither. Both include calls of judges; `judged` is the number of live ones among
    these. `is_known` is False where it is unknown whether a model was called: an agent that is a plain
    function reports tool calls, but no model calls.
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
        """Whether a repetition is known to need no live model call."""
        return self.is_known and not self.live


NO_CALLS = ModelCalls()


def judge_calls(result: RepeatResult) -> ModelCalls:
    """Model calls of the judges in a run of a case; every judge counts as a model."""
    judges = [metric.judge for metric in result.metrics if metric.judge is not None]
    live = sum(judge.live for judge in judges)
    return ModelCalls(live, sum(judge.replayed for judge in judges), judged=live)


def count_model_calls(events: Iterable[Event], *, reported: bool) -> ModelCalls:
    """The model calls in the events of a case, over all repeats.

    A call is replayed if its request, response or error has `data["replayed"]`; a request with
    `data["missed"]` was not made. `reported` tells whether the agent's framework reports model calls;
    otherwise only observed ones are known.
    """
    replayed: dict[str, bool] = {}
    seen = False
    for event in events:
        if event.kind == "model_request":
            # What plays the user is none of the agent's.
            seen = seen or event.agent != SIMULATED_USER
            stand_in = str(event.data.get("model", "")).startswith(SCRIPTED_PREFIX)
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
    """Numbers of calls, updated with events and results; scripted models are not counted."""

    live: int = 0
    replayed: int = 0
    stubbed_tools: int = 0
    judge_live: int = 0
    judge_replayed: int = 0

    def on_event(self, event: Event) -> None:
        if event.kind == "model_request":
            if event.data.get("replayed"):
                self.replayed += 1
            elif not event.data.get("missed") and not str(event.data.get("model", "")).startswith(
                SCRIPTED_PREFIX
            ):
                self.live += 1
        elif event.kind == "tool_result" and event.data.get("stubbed"):
            self.stubbed_tools += 1

    def on_result(self, result: RepeatResult) -> None:
        """Adds the judge calls of a run of a case."""
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
