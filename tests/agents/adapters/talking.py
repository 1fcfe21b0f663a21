"""Conversations that are cut and go on from their past, for the tests of every adapter."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field, replace
from typing import Any

from evaltui.agents.adapters.base import Reporter, SessionSpec
from evaltui.agents.case_run import run_turn
from evaltui.core.conversation.replay import past_of_turns
from evaltui.core.model.events import Step

VOLATILE = ("timestamp", "invocation_id", "step")


def user(text):
    return {"role": "user", "parts": [{"text": text}]}


@dataclass
class Talk:
    """The events of each turn, and the session state before each of them and at the end."""

    turns: list[list[Any]] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind):
        return [event for turn in self.turns for event in turn if event.kind == kind]

    def said(self):
        """What happened in each turn, without times, ids that are random, and talk with models."""
        return [
            [_plain(event) for event in turn if not event.kind.startswith("model_")] for turn in self.turns
        ]

    def ids(self):
        return [event.id for event in self.of("tool_call")]

    def steps(self):
        return list(
            dict.fromkeys(event.data["step"] for turn in self.turns for event in turn if "step" in event.data)
        )


def _plain(event):
    data = event.to_json()
    for name in ("t", "id", "parent", "duration"):
        data.pop(name, None)
    data["data"] = {key: value for key, value in event.data.items() if key not in VOLATILE}
    return json.loads(re.sub(r"adk-[0-9a-f-]{36}", "adk", json.dumps(data)))


def over_the_wire(past):
    return [Step.from_json(step) for step in json.loads(json.dumps([step.to_json() for step in past]))]


def repeated(turn, times):
    """A turn so many times, each with steps of its own."""
    return [
        [
            replace(event, data=event.data | {"step": f"{event.data['step']}-{number}"})
            if "step" in event.data
            else event
            for event in turn
        ]
        for number in range(times)
    ]


async def talk(adapter, messages, spec=None, past=()):
    """Say `messages`, from the end of `past` on; turns that fail end it with what they raise."""
    made = Talk()
    reporter = Reporter(lambda event: made.turns[-1].append(event))
    session = await adapter.new_session(spec or SessionSpec(), reporter, over_the_wire(past))
    begun = 1 + max((step.turn for step in past), default=-1)
    try:
        for number, message in enumerate(messages, begun):
            made.states.append(await session.state())
            made.turns.append([])
            content = message if isinstance(message, dict) else user(message)
            await run_turn(session, adapter.input, reporter, number, content)
        made.states.append(await session.state())
    finally:
        await session.close()
    return made


async def assert_goes_on(adapter, messages, cut, spec=None):
    """A session that begins at the past before the cut says what was said after it without one."""
    whole = await talk(adapter, messages, spec)
    rest = await talk(adapter, messages[cut:], spec, past_of_turns(whole.turns[:cut]))
    assert rest.said() == whole.said()[cut:]
    assert rest.states == whole.states[cut:]
    return whole, rest


async def work_of(awaitable):
    """How many functions are called until it is done, a measure that no busy machine changes."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        await awaitable
    finally:
        sys.setprofile(None)
    return calls
