"""Sets on disk that are run with recordings, for the tests of native and google-adk agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_data import make_case, make_turn, write_eval_set

from evaltui import CaseResult, EvalConfig, evaluate
from evaltui.core.model.events import Event
from evaltui.core.trace.model_calls import CallCounts
from evaltui.runner.plan import Happened, Noted, Update

CONFIG = EvalConfig(criteria={"tool_trajectory_avg_score": 1.0, "response_match_score": 0.9})
# For the module of an agent: whoever connects to anything but a local socket fails.
NO_NETWORK = """
    import os, socket

    def refuse(self, address):
        raise OSError(f"this agent reached out to {address}")

    if os.environ.get("NO_NETWORK"):
        socket.socket.connect = socket.socket.connect_ex = refuse
        socket.getaddrinfo = lambda *args, **more: refuse(None, args)
"""


def turn(says: str, answer: str, *calls: tuple[str, dict[str, Any]], responses: Any = ()) -> dict[str, Any]:
    made = make_turn(says, answer, [{"name": name, "args": args} for name, args in calls])
    made["intermediate_data"]["tool_responses"] = [
        {"name": name, "response": response} for name, response in responses
    ]
    return made


def write_set(agent: Path, cases: dict[str, list[dict[str, Any]]], name: str = "shapes") -> Path:
    return write_eval_set(agent, name, *(make_case(eval_id, *turns) for eval_id, turns in cases.items()))


@dataclass
class Ran:
    """A run, what happened in it, and how its models were asked."""

    cases: list[CaseResult] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    calls: CallCounts = field(default_factory=CallCounts)

    @property
    def statuses(self) -> list[str]:
        return [str(case.status) for case in self.cases]

    def of_kind(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def said(self) -> list[str]:
        """The pieces of text, by run of a case."""
        return [
            event.content["parts"][0]["text"]
            for event in sorted(self.of_kind("text"), key=lambda event: (event.case, event.repeat))
            if event.content and event.data.get("partial")
        ]

    def verdicts(self) -> list[Any]:
        """Everything that a run is about, without times."""
        return [
            (
                case.eval_id,
                case.status,
                case.error and (case.error.type, case.error.message),
                [(metric.name, metric.score) for metric in case.metrics if "duration" not in metric.name],
                case.turns,
                case.state,
            )
            for case in self.cases
        ]

    def take(self, update: Update) -> None:
        match update:
            case Happened(event):
                self.events.append(event)
                self.calls.on_event(event)
            case Noted(text):
                self.notes.append(text)


async def run(path: Path, record: Any, config: EvalConfig = CONFIG, **more: Any) -> Ran:
    """Run a set with the agent in its folder."""
    ran = Ran()
    result = await evaluate(
        path.parent, path, config, **({"workers": 1} | more), record=record, on_update=ran.take
    )
    ran.cases = list(result.cases)
    return ran


def recorded_file(path: Path) -> Path:
    return path.parent / "recordings" / f"{path.name.removesuffix('.evalset.json')}.jsonl"
