"""Agents of frameworks in a real host of the environment that has them: one host, many conversations."""

from __future__ import annotations

import json
import textwrap
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments import environment_python

from evaltui.agents.call_recorder import CaseRecording
from evaltui.agents.errors import RequestFailedError
from evaltui.agents.protocol import decode_event
from evaltui.core.conversation.replay import past_of_turns
from evaltui.core.model.events import Event, Json
from evaltui.core.model.modes import Modes, RecordMode, ToolMode
from evaltui.core.recordings.entry import entry_from_json
from evaltui.project.agent_address import AgentAddress
from evaltui.project.interpreters import Interpreter
from evaltui.runner.starting import HostSettings, start_host

SECONDS = 60.0


def address_of(folder: Path) -> AgentAddress:
    """An agent that runs in the environment with the frameworks."""
    python = Path(environment_python("EVALTUI_FRAMEWORKS_PYTHON"))
    return AgentAddress(folder, None, Interpreter(python, "a test"))


def says(*messages: str | Json) -> list[Json]:
    return [one if isinstance(one, dict) else {"role": "user", "parts": [{"text": one}]} for one in messages]


def responds(call_id: str, name: str, response: Json) -> Json:
    return {
        "role": "user",
        "parts": [{"function_response": {"id": call_id, "name": name, "response": response}}],
    }


@dataclass
class Talk:
    """What came of a conversation."""

    events: list[Event] = field(default_factory=list)
    state: Json | None = None
    error: Any = None
    lines: list[Json] = field(default_factory=list)
    """What is to be kept in the recording."""

    def of(self, kind: str, nested: bool = False) -> list[Event]:
        return [one for one in self.events if one.kind == kind and bool(one.data.get("nested")) == nested]

    def texts(self) -> list[str]:
        """What was answered, thoughts left out."""
        parts = [part for event in self.of("text") for part in event.content["parts"]]
        return [part["text"] for part in parts if not part.get("thought")]

    def calls(self) -> list[tuple[str, Json]]:
        calls = [event.content["parts"][0]["function_call"] for event in self.of("tool_call")]
        return [(call["name"], call["args"]) for call in calls]

    def results(self) -> list[Json]:
        parts = [event.content["parts"][0] for event in self.of("tool_result")]
        return [part["function_response"]["response"] for part in parts]

    def past(self) -> list[Json]:
        turns: dict[Any, list[Event]] = {}
        for event in self.events:
            turns.setdefault(event.turn, []).append(event)
        return [step.to_json() for step in past_of_turns(turns.values())]


class Talker:
    """A host with an agent."""

    def __init__(self, host: Any, info: Json) -> None:
        self._host = host
        self.info = info

    async def talk(
        self,
        *messages: str | Json,
        state: Json | None = None,
        past: list[Json] | None = None,
        timeout: float = SECONDS,
        recorded: CaseRecording | None = None,
    ) -> Talk:
        """A conversation from its beginning, or one that goes on after `past`."""
        made, heard = Talk(), list[str]()
        session = {"state": state or {}}
        try:
            if past is not None:
                request: Json = {"op": "chat", "session": session, "past": past}
                answer = await self._host.request(request, SECONDS, heard.append)
                number, first = answer["id"], 1 + max((step["turn"] for step in past), default=-1)
                for turn, content in enumerate(says(*messages), first):
                    request = {"op": "say", "chat": number, "turn": turn, "content": content}
                    answer = await self._host.request(request, timeout, heard.append)
            else:
                request = {"op": "run", "session": session, "turns": says(*messages)}
                if recorded is not None:
                    request["recorded"] = recorded.to_json()
                answer = await self._host.request(request, timeout, heard.append, made.lines.append)
            made.state = answer["state"]
        except RequestFailedError as failed:
            made.error = failed.error
        made.events = [Event.from_json(decode_event(one)) for one in heard]
        return made


def recording(models: RecordMode, tools: ToolMode, lines: Sequence[Json] = ()) -> CaseRecording:
    entries = [entry_from_json(line["entry"]) for line in lines if "entry" in line]
    shared = [entry_from_json(one) for line in lines for one in line.get("shared", ())]
    return CaseRecording("one", 0, "a.jsonl", Modes(models=models, tools=tools), entries, shared)


@asynccontextmanager
async def talker(folder: Path, source: str) -> AsyncIterator[Talker]:
    """A host with the agent of this source."""
    agent = folder / "bot"
    agent.mkdir()
    (agent / "agent.py").write_text(textwrap.dedent(source))
    started = start_host(HostSettings(address_of(agent), SECONDS))
    try:
        yield Talker(started.host, json.loads(json.dumps(await started.loading)))
    finally:
        await started.end()
