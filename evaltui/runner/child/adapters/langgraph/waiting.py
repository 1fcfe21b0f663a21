"""What a graph that was interrupted asks a person, and the response that it goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.types import Command
from pydantic_core import to_jsonable_python

from .....core.conversation.waiting import CONFIRMATION, INPUT
from .....core.model.events import Json
from ..frameworks.tools import result_of

_OWN_WORDS = "Tool execution requires approval"


@dataclass(frozen=True)
class _Request:
    """One question of an interrupt; `action` is the call that is to be approved, if it is about one."""

    interrupt: str
    call: Json
    action: Json | None = None


@dataclass(frozen=True)
class Answered:
    """The responses of a person, by the interrupt; None in place of a stop before or after a node."""

    values: dict[str, Any] | None

    def command(self, update: Json | None) -> Any:
        """What the graph goes on with; `update` changes its state first."""
        if self.values is None:
            return Command(update=update) if update else None
        first = next(iter(self.values.values()))
        return Command(resume=first if len(self.values) == 1 else self.values, update=update)


@dataclass
class Waiting:
    """What waits for a person, by the ids of the calls that ask."""

    pending: dict[str, _Request] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Any) -> Waiting:
        """What a graph waits for in this state."""
        interrupts = [one for task in snapshot.tasks for one in task.interrupts]
        requests = [request for one in interrupts for request in _requests(one)]
        if not interrupts and snapshot.next:
            message = f"The graph stopped before {', '.join(snapshot.next)}. Continue?"
            requests.append(_Request("", _call(f"before-{snapshot.next[0]}", INPUT, {"message": message})))
        return cls({request.call["id"]: request for request in requests})

    def requests(self) -> list[Json]:
        """Parts of a content that ask, what has no response yet."""
        pending = self.pending.items()
        return [{"function_call": request.call} for key, request in pending if key not in self.answers]

    def answered(self, responses: Sequence[Json]) -> Answered | None:
        """What to go on with; None where nothing was asked, or something has no response yet."""
        self.answers |= {str(one["id"]): one.get("response") or {} for one in responses}
        if not responses or self.answers.keys() < self.pending.keys():
            return None
        values: dict[str, Any] = {}
        for call_id, request in self.pending.items():
            response = self.answers[call_id]
            if request.action is None:
                values[request.interrupt] = result_of(response)
            else:
                decisions = values.setdefault(request.interrupt, {"decisions": []})["decisions"]
                decisions.append(_decision(request.action, response))
        return Answered(None if "" in values else values)


def _requests(interrupt: Any) -> list[_Request]:
    value = to_jsonable_python(interrupt.value, fallback=str)
    actions = value.get("action_requests") if isinstance(value, dict) else None
    if not actions or not all(isinstance(one, dict) and "name" in one for one in actions):
        args: Json = {"message": value if isinstance(value, str) else "Input requested"}
        if not isinstance(value, str):
            args["payload"] = value
        if isinstance(schema := getattr(interrupt, "response_schema", None), dict):
            args["response_schema"] = schema
        return [_Request(interrupt.id, _call(interrupt.id, INPUT, args))]
    requests = []
    for number, action in enumerate(actions):
        original = {"id": "", "name": action["name"], "args": action.get("args") or {}}
        hint = str(action.get("description") or "")
        # LangChain's own words say what the call itself says.
        confirmation = {"hint": "" if hint.startswith(_OWN_WORDS) else hint, "confirmed": False}
        args = {"originalFunctionCall": original, "toolConfirmation": confirmation}
        call = _call(f"{interrupt.id}-{number}", CONFIRMATION, args)
        requests.append(_Request(interrupt.id, call, action))
    return requests


def _call(call_id: str, name: str, args: Json) -> Json:
    return {"id": call_id, "name": name, "args": args}


def _decision(action: Json, response: Json) -> Json:
    if not response.get("confirmed"):
        return {"type": "reject"}
    args = response.get("payload")
    if isinstance(args, dict):
        return {"type": "edit", "edited_action": {"name": action["name"], "args": args}}
    return {"type": "approve"}
