"""One desk, made with every kind of agent: chats with it in one host, and runs of its cases."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adk_server import AdkServer
from hosts_of_agents import python_of

from evaltui import CaseResult, EvalConfig, evaluate
from evaltui.agents.errors import RequestFailedError
from evaltui.core.conversation.replay import past_of_turns
from evaltui.core.model.events import Event, Json
from evaltui.project.agent_address import AgentAddress
from evaltui.project.interpreters import Interpreter
from evaltui.runner.conversation import Conversation
from evaltui.runner.plan import Happened
from evaltui.runner.starting import HostSettings
from tests.commands.command_line import call

AGENTS = Path(__file__).with_name("agents")
SECONDS = 60.0
SOURCES = {
    "adk": "adk_desk",
    "old_adk": "adk_desk",
    "native": "native_desk",
    "function": "function_desk",
    "openai": "openai_desk",
    "pydantic": "pydantic_desk",
    "langgraph": "langgraph_desk",
    "api": "adk_desk",
    "a2a": "adk_desk",
}


@dataclass
class Talk:
    """What happened in each turn, and the session state before each of them and at the end."""

    turns: list[list[Event]] = field(default_factory=list)
    states: list[Json | None] = field(default_factory=list)
    error: Any = None

    def of(self, kind: str, *, nested: bool = False) -> list[Event]:
        return [
            event
            for turn in self.turns
            for event in turn
            if event.kind == kind
            and bool(event.data.get("nested")) == nested
            and not event.data.get("partial")
        ]

    def parts(self, kind: str, *, nested: bool = False) -> list[Json]:
        return [part for event in self.of(kind, nested=nested) for part in event.content["parts"]]

    def texts(self) -> list[str]:
        """Of each turn the last text, thoughts left out."""
        return [next((text for event in reversed(turn) if (text := _text(event))), "") for turn in self.turns]

    def calls(self) -> list[tuple[str, Json]]:
        return [(call["name"], call["args"]) for call in map(_call, self.parts("tool_call"))]

    def results(self) -> list[Json]:
        return [_call(part)["response"] for part in self.parts("tool_result")]

    def told(self) -> list[list[Any]]:
        """What a conversation is, turn by turn, without ids and times."""
        return [
            [
                (
                    event.kind,
                    event.agent,
                    [_told(part) for part in event.content["parts"]] if event.content else None,
                    event.data.get("delta"),
                )
                for event in turn
                if not event.kind.startswith("model_") and not event.data.get("partial")
            ]
            for turn in self.turns
        ]


def _text(event: Event) -> str:
    is_text = event.kind == "text" and not event.data.get("nested") and not event.data.get("partial")
    parts = event.content["parts"] if is_text and event.content else ()
    return "".join(part["text"] for part in parts if part.get("text") and not part.get("thought"))


def _told(part: Json) -> Any:
    call = _call(part)
    return (call["name"], call.get("args"), call.get("response")) if call else part


def _call(part: Json) -> Json:
    call: Json = part.get("function_call") or part.get("function_response") or {}
    return call


def user(text: str) -> Json:
    return {"role": "user", "parts": [{"text": text}]}


def content(message: str | Json) -> Json:
    return user(message) if isinstance(message, str) else message


def _expected(message: str, calls: Sequence[tuple[str, Json]], text: str) -> Json:
    uses = [{"name": name, "args": args} for name, args in calls]
    said = {"role": "model", "parts": [{"text": text}]}
    return {
        "user_content": user(message),
        "final_response": said,
        "intermediate_data": {"tool_uses": uses},
    }


def response(talk: Talk, answer: Json) -> Json:
    """To the call that waits at the end of a conversation."""
    call = _call(talk.parts("tool_call")[-1])
    return {
        "role": "user",
        "parts": [{"function_response": {"id": call["id"], "name": call["name"], "response": answer}}],
    }


class Desk:
    """A desk of one kind. Its methods may be called from any thread that is not its own."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.agent = folder / "desk"
        self._home = folder
        self._stack = ExitStack()
        self.agent.mkdir()
        shutil.copy(AGENTS / f"{SOURCES[kind]}.py", self.agent / "agent.py")
        shutil.copy(AGENTS / "script.py", self.agent)
        (self.agent / "__init__.py").write_text("from . import agent\n")
        self.python = python_of(kind)
        self.url = self._served()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        home = self._home if self.url else self.agent
        address = AgentAddress(home, None, Interpreter(Path(self.python), "a test"), url=self.url)
        self._conversation = Conversation(HostSettings(address, SECONDS), lambda source, line: None)
        # Runs may be in copies of a process; this host is one as users have it.
        self.chat()

    def _served(self) -> str:
        if self.kind == "api":
            return self._stack.enter_context(AdkServer(self._home)).url_of("desk")
        if self.kind == "a2a":
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                port = one.getsockname()[1]
            command = [sys.executable, str(AGENTS / "serve_a2a.py"), str(self._home), str(port)]
            log = self._stack.enter_context((self._home / "a2a.log").open("w"))
            served = subprocess.Popen(command, stderr=log)
            self._stack.callback(served.wait)
            self._stack.callback(served.kill)
            _until_answers(port)
            return f"a2a:http://127.0.0.1:{port}"
        return ""

    def close(self) -> None:
        self._await(self._conversation.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._stack.close()

    def _await(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(2 * SECONDS)

    @property
    def info(self) -> Json:
        self.chat()
        assert self._conversation.info is not None
        return self._conversation.info

    def chat(
        self,
        *messages: str | Json,
        state: Json | None = None,
        after: Sequence[list[Event]] = (),
        cancel_at: str = "",
    ) -> Talk:
        """A conversation, from its beginning or from turns on; the turn of the last message is cancelled as
        soon as an event of the kind `cancel_at` has come."""
        return self._await(self._chat(messages, state or {}, after, cancel_at))

    async def _chat(
        self, messages: Sequence[str | Json], state: Json, after: Sequence[list[Event]], cancel_at: str
    ) -> Talk:
        talk = Talk()
        try:
            talk.states.append(await self._conversation.open({"state": state}, past_of_turns(after)))
            for number, message in enumerate(messages, len(after)):
                sent = content(message)
                talk.turns.append([])
                arrived = asyncio.Event()

                def on_event(event: Event, arrived: asyncio.Event = arrived) -> None:
                    talk.turns[-1].append(event)
                    if event.kind == cancel_at:
                        arrived.set()

                saying = asyncio.ensure_future(self._conversation.say(number, sent, on_event))
                if cancel_at and message is messages[-1]:
                    await asyncio.wait_for(arrived.wait(), SECONDS)
                    saying.cancel()
                    await asyncio.wait({saying})
                else:
                    talk.states.append(await saying)
        except RequestFailedError as failed:
            talk.error = failed.error
        return talk

    def run(self, *cases: Sequence[str | Json], config: Json | None = None, **options: Any) -> Ran:
        """Cases with these messages."""
        folder = self._home if self.url else self.agent
        path = folder / "cases.evalset.json"
        eval_cases = [
            {
                "eval_id": f"case_{number}",
                "conversation": [{"user_content": content(one)} for one in messages],
            }
            for number, messages in enumerate(cases)
        ]
        path.write_text(json.dumps({"eval_set_id": "cases", "eval_cases": eval_cases}))
        ran = Ran()

        def on_update(update: Any) -> None:
            if isinstance(update, Happened):
                ran.events.append(update.event)

        result = self._await(
            evaluate(
                self.url or self.agent,
                path,
                EvalConfig.model_validate(config or {"criteria": {}}),
                python=None if self.url else self.python,
                home=folder if self.url else None,
                workers=1,
                on_update=on_update,
                **{"record": "off", "tools": "live"} | options,
            )
        )
        ran.cases = list(result.cases)
        return ran

    def gaps(self, cases: Json) -> Json:
        """The report of `evaltui gaps` on these cases, by id their turns: message, calls and response."""
        folder = self._home if self.url else self.agent
        path, out = folder / "gaps.evalset.json", folder / "gaps.out"
        turns = {eval_id: [_expected(*turn) for turn in turns] for eval_id, turns in cases.items()}
        eval_cases = [{"eval_id": eval_id, "conversation": turn} for eval_id, turn in turns.items()]
        path.write_text(json.dumps({"eval_set_id": "gaps", "eval_cases": eval_cases}))
        address = [self.url, "--home", folder] if self.url else [self.agent]
        python = [] if self.url else ["--python", self.python]
        assert call("run", *address, path, *python) == 0
        assert call("gaps", *address, path, "--report", f"json={out}") == 0
        report: Json = json.loads(out.read_text())
        return report

    @contextmanager
    def broken(self, *functions: str) -> Iterator[None]:
        """Functions of its script raise as long as this lasts."""
        raising = (f"\n\ndef {name}(*args):\n    raise RuntimeError('called')\n" for name in functions)
        with _written(self.agent / "script.py", lambda text: text + "".join(raising)):
            yield

    @contextmanager
    def edited(self, old: str, new: str) -> Iterator[None]:
        """Its agent has another text as long as this lasts."""
        with _written(self.agent / "agent.py", lambda text: text.replace(old, new)):
            yield


@contextmanager
def _written(path: Path, change: Callable[[str], str]) -> Iterator[None]:
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    try:
        yield
    finally:
        path.write_text(text)


@dataclass
class Ran:
    """The results of a run, and what happened in it."""

    cases: list[CaseResult] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind and not event.data.get("partial")]

    def talk(self, number: int = 0) -> Talk:
        """The conversation of a case."""
        events = [event for event in self.events if event.case == f"case_{number}"]
        turns: dict[Any, list[Event]] = {}
        for event in events:
            turns.setdefault(event.turn, []).append(event)
        return Talk(list(turns.values()))


def _until_answers(port: int) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the A2A server did not start")
