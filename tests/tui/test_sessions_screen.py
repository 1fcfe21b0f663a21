"""Sessions that agents send to the workbench: listed as they complete, opened, saved as cases."""

import json

import httpx
import pytest
from pilots import screen_text, turn, until, write_cases
from textual.pilot import Pilot

pytest.importorskip("opentelemetry.proto")

from evaltui.traces.receiver import sessions
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.screens.save_case import SaveCaseScreen
from evaltui.tui.screens.sessions import SessionsScreen
from evaltui.workbench.workbench import Workbench
from tests.traces.receiver.senders import JSON, spans

AGENT = "def root_agent(message, session):\n    return 'hello'\n"


def session(number, said, answer):
    """Spans of one model call, with its content."""
    document = spans([number], f"talk-{number}")
    parts = {"input": ("user", said), "output": ("assistant", answer)}
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] += [
        {
            "key": f"gen_ai.{side}.messages",
            "value": {
                "stringValue": json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
            },
        }
        for side, (role, text) in parts.items()
    ]
    return document


async def send(pilot: Pilot, document):
    workbench = pilot.app.workbench
    known = len(workbench.received.sessions)
    async with httpx.AsyncClient() as client:
        url = f"{workbench.received.url}/v1/traces"
        answer = await client.post(url, json=document, headers={"content-type": JSON})
    assert answer.json() == {}
    await until(pilot, lambda: len(workbench.received.sessions) > known)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_sessions_are_listed_opened_and_saved_as_cases(write_agent, monkeypatch, size):
    monkeypatch.setattr(sessions, "QUIET", -1.0)
    folder = write_agent(AGENT, name="greeter")
    write_cases(folder, "greetings", {"hi": [turn("hi", "hello")]})
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=size) as pilot:
        workbench = app.workbench
        await until(pilot, lambda: workbench.sets.listed)
        workbench.received.start(0)
        await pilot.press("T")
        await until(
            pilot, lambda: f"OTEL_EXPORTER_OTLP_ENDPOINT={workbench.received.url}" in screen_text(app)
        )
        assert isinstance(app.screen, SessionsScreen)
        await send(pilot, session(1, "hi", "good day"))
        await send(pilot, session(2, "Do you sell lamps and other lights?", "yes"))
        await until(pilot, lambda: "talk-1" in screen_text(app) and "no case" in screen_text(app))

        await pilot.press("enter")
        await until(pilot, lambda: "no result to show" in screen_text(app))
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.screen, SaveCaseScreen))
        await pilot.press("enter")
        await until(pilot, lambda: workbench.navigation.selection.case is not None)
        assert workbench.navigation.selection.case.eval_id.startswith("do_you_sell")

        await pilot.press("escape", "T", "down", "enter")
        await until(pilot, lambda: workbench.outcomes.previous_run is not None)
        await until(pilot, lambda: "session talk-1" in screen_text(app))
        assert "good day" in screen_text(app)
        assert "● listening" in screen_text(app)

        await pilot.press("T", "space")
        await until(pilot, lambda: "not listening" in screen_text(app))
        assert not workbench.received.url
        await pilot.press("escape")
        await until(pilot, lambda: "greeter" in screen_text(app))
        assert "listening" not in screen_text(app)
        workbench.received.start(0)
        await until(pilot, lambda: workbench.received.url)
    assert not workbench.received.is_on


async def test_a_port_that_is_taken_is_said(write_agent):
    folder = write_agent(AGENT, name="greeter")
    first, second = Workbench(folder), Workbench(folder)
    first.received.start(0)
    app = WorkbenchApp(second)
    async with app.run_test() as pilot:
        await until(pilot, lambda: first.received.url)
        second.received.start(0)
        await until(pilot, lambda: "listens already" in (second.notice.text if second.notice else ""))
        assert not second.received.is_on
    await first.close()
