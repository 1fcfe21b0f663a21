"""Seconds for many turns of an ADK agent: through ADK's Runner alone, or through the adapter as in a host."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from evaltui.agents.adapters.base import Reporter, SessionSpec, recording
from evaltui.agents.loading import import_agent, make_adapter
from evaltui.agents.protocol import encode_event
from evaltui.core.model.events import Event

TURNS = 300
MESSAGE = {"role": "user", "parts": [{"text": "please say 1 to me"}]}


async def bare(agent: Any) -> float:
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    runner = InMemoryRunner(agent=agent, app_name="bare")
    began = 0.0
    for turn in range(TURNS + 20):
        if turn == 20:
            began = time.perf_counter()
        session = await runner.session_service.create_session(app_name="bare", user_id="u")
        async for _ in runner.run_async(
            user_id="u", session_id=session.id, new_message=types.Content.model_validate(MESSAGE)
        ):
            pass
        await runner.session_service.delete_session(app_name="bare", user_id="u", session_id=session.id)
    return time.perf_counter() - began


async def adapter(agent: Any) -> float:
    adapter = await make_adapter(agent, None)
    await adapter.open()
    sent: list[int] = []

    def send(event: Event) -> None:
        sent.append(len(encode_event(1, event.to_json())))

    began = 0.0
    for turn in range(TURNS + 20):
        if turn == 20:
            began = time.perf_counter()
        reporter = Reporter(send)
        session = await adapter.new_session(SessionSpec(), reporter)
        with recording(reporter):
            reporter.turn = 0
            with recording(reporter):
                await session.send(MESSAGE)
        await session.state()
        await session.close()
    return time.perf_counter() - began


found = import_agent(Path(sys.argv[1]))
print(asyncio.run(bare(found) if sys.argv[2] == "bare" else adapter(found)))
