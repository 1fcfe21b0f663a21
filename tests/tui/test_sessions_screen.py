"""Sessions that agents send to the workbench: listed as they complete, opened, saved as cases."""

import asyncio
import json

import httpx
import pytest
from pilots import screen_text, turn, until, workbench_on, write_cases
from textual.pilot import Pilot

pytest.importorskip("opentelemetry.proto")

from evaltui.runs import sessions
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.chat.save_case import SaveCaseScreen
from evaltui.tui.sessions import SessionsScreen
from evaltui.workbench.workbench import Workbench
from tests.commands.command_line import call
from tests.traces.receiver.senders import JSON, session

AGENT = "def root_agent(message, session):\n    return 'hello'\n"


async def send(pilot: Pilot, document):
    workbench = pilot.app.workbench
    known = len(workbench.received.sessions)
    async with httpx.AsyncClient() as client:
        url = f"{workbench.received.url}/v1/traces"
        answer = await client.post(url, json=document, headers={"content-type": JSON})
    assert answer.json() == {}
    await until(pilot, lambda: len(workbench.received.sessions) > known)


async def pass_session(app, pilot: Pilot):
    """Shows the sessions, of which the first passes the case that it is of."""
    await until(pilot, lambda: app.workbench.sets.listed)
    app.workbench.received.start(0)
    await pilot.press("T")
    await until(pilot, lambda: app.workbench.received.url in screen_text(app))
    await send(pilot, session(1, "hi", "good day"))
    await until(pilot, lambda: "✓ talk-1" in screen_text(app))
    assert "stale" not in screen_text(app)


async def test_sessions_are_listed_opened_and_saved_as_cases(write_agent, monkeypatch):
    monkeypatch.setattr(sessions, "QUIET", -1.0)
    folder = write_agent(AGENT, name="greeter")
    write_cases(folder, "greetings", {"hi": [turn("hi", "hello")]})
    async with workbench_on(folder, (80, 24)) as (app, pilot):
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


async def test_a_session_is_stale_when_its_case_or_config_is_another_one(write_agent, monkeypatch):
    monkeypatch.setattr(sessions, "QUIET", -1.0)
    folder = write_agent(AGENT, name="greeter")
    write_cases(folder, "greetings", {"hi": [turn("hi", "good day")]})
    async with workbench_on(folder, (120, 36)) as (app, pilot):
        workbench = app.workbench
        await pass_session(app, pilot)
        for cases in ({"hi": [turn("hi", "farewell")]}, {"bye": [turn("bye", "farewell")]}):
            write_cases(folder, "greetings", {"hi": [turn("hi", "good day")]})
            await workbench.open()
            await until(pilot, lambda: "stale" not in screen_text(app))
            write_cases(folder, "greetings", cases)
            await workbench.open()
            await until(pilot, lambda: "stale: case" in screen_text(app))
        # Nor by the criteria of now.
        write_cases(folder, "greetings", {"hi": [turn("hi", "good day")]})
        for config in ({"response_match_score": 0.5}, {"unknown": 1}):
            (folder / "test_config.json").write_text(json.dumps({"criteria": config}))
            await workbench.open()
            await until(pilot, lambda: "stale: config" in screen_text(app))
        (folder / "test_config.json").unlink()
        await workbench.open()
        await until(pilot, lambda: "stale" not in screen_text(app))


async def test_a_session_is_stale_when_the_function_that_scored_it_is_another_one(write_agent, monkeypatch):
    monkeypatch.setattr(sessions, "QUIET", -1.0)
    folder = write_agent(AGENT, name="greeter")
    write_cases(folder, "greetings", {"hi": [turn("hi", "good day")]})
    (folder / "own.py").write_text("def polite(actual, expected, criterion):\n    return 1.0\n")
    config = {
        "criteria": {},
        "evaltui": {"criteria": {"polite": {"function": "own.polite", "threshold": 1.0}}},
    }
    (folder / "test_config.json").write_text(json.dumps(config))
    async with workbench_on(folder, (120, 36)) as (app, pilot):
        workbench = app.workbench
        await pass_session(app, pilot)
        (folder / "own.py").write_text("def polite(actual, expected, criterion):\n    return 0.0\n")
        await workbench.open()
        await until(pilot, lambda: "stale: config" in screen_text(app))


async def test_a_session_is_stale_where_its_case_has_unsaved_edits(write_agent, monkeypatch):
    monkeypatch.setattr(sessions, "QUIET", -1.0)
    folder = write_agent(AGENT, name="greeter")
    path = write_cases(folder, "greetings", {"hi": [turn("hi", "good day")]})
    async with workbench_on(folder, (120, 36)) as (app, pilot):
        workbench = app.workbench
        await until(pilot, lambda: workbench.sets.listed)
        assert workbench.editing.do("edit", path, lambda one: one.case(0).turn(0).answer.set_text("bye", 0))
        workbench.received.start(0)
        await pilot.press("T")
        await until(pilot, lambda: workbench.received.url in screen_text(app))
        await send(pilot, session(1, "hi", "good day"))
        await until(pilot, lambda: "talk-1" in screen_text(app))
        await until(pilot, lambda: "stale: case" in screen_text(app))


async def test_a_port_that_is_taken_is_said(write_agent):
    folder = write_agent(AGENT, name="greeter")
    first, second = Workbench(folder), Workbench(folder)
    first.received.start(0)
    app = WorkbenchApp(second)
    async with app.run_test() as pilot:
        await until(pilot, lambda: first.received.url)
        second.received.start(0)
        await until(pilot, lambda: "listens already" in getattr(second.messages.notice, "text", ""))
        assert not second.received.is_on
    await first.close()


def talk(number, said, *calls):
    """A session whose only turn makes these calls and answers."""
    document = session(number, said, f"done {number}")
    (scoped,) = document["resourceSpans"][0]["scopeSpans"]
    (root,) = scoped["spans"]
    for place, name in enumerate(calls, start=1):
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.arguments": json.dumps({"what": f"{name} {number}"}),
            "gen_ai.tool.call.result": json.dumps({"key": SECRET}),
        }
        scoped["spans"].append(
            {
                **root,
                "spanId": f"{number * 10 + place:016x}",
                "parentSpanId": root["spanId"],
                "startTimeUnixNano": str(int(root["startTimeUnixNano"]) + place),
                "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
            }
        )
    return document


SECRET = "sk-" + "4f" * 20
PATTERNS = [("find",), ("find", "buy"), ("find", "find"), ("refund",), ("find", "refund"), ("buy",)]


async def offered(write_agent, monkeypatch, count):
    monkeypatch.setattr(sessions, "QUIET", -1.0)
    folder = write_agent(AGENT, name="shop")
    (folder / ".env").write_text(f"SHOP_API_KEY={SECRET}\n")
    cases = {
        "_".join(calls): [
            turn(f"{' '.join(calls)} first", "done", *({"name": name, "args": {}} for name in calls))
        ]
        for calls in PATTERNS[:4]
    }
    write_cases(folder, "shopping", cases)
    async with workbench_on(folder, (120, 40)) as (app, pilot):
        workbench = app.workbench
        await until(pilot, lambda: workbench.sets.listed)
        workbench.received.start(0)
        await pilot.press("T")
        await until(pilot, lambda: workbench.received.url)
        documents = []
        for number in range(count):
            calls = PATTERNS[number % 6]
            documents.append(talk(number + 1, f"{' '.join(calls)} please {number}", *calls))
            await send(pilot, documents[-1])
        await until(pilot, lambda: "2 trajectories that no case has" in screen_text(app))
        assert "new trajectory" in screen_text(app)
        await pilot.press("n")
        await until(pilot, lambda: "find → refund" in screen_text(app))
        found = {one.calls: one.sessions for one in workbench.received.new_trajectories}
        assert found == {
            calls: len(range(place, count, 6)) for place, calls in enumerate(PATTERNS) if place > 3
        }
        for left in (1, 0):
            await pilot.press("ctrl+t")
            await until(pilot, lambda: isinstance(app.screen, SaveCaseScreen))
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
            await until(pilot, lambda left=left: len(workbench.received.new_trajectories) == left)
        assert "Cases have all trajectories of the sessions" in screen_text(app)
        # The sessions that the cases were made of have nothing new any more.
        await pilot.press("n")
        await until(pilot, lambda: "talk-1" in screen_text(app))
        assert "new trajectory" not in screen_text(app)
        await workbench.editing.save(folder / "shopping.evalset.json")
    traces = folder.parent / "traces.jsonl"
    traces.write_text("\n".join(map(json.dumps, documents)))
    return folder, traces


async def test_trajectories_that_no_case_has_become_cases_that_pass(write_agent, monkeypatch):
    await asyncio.to_thread(assert_pass, *await offered(write_agent, monkeypatch, 7), 2)


@pytest.mark.thorough
@pytest.mark.timeout(600)
async def test_of_six_trajectories_in_500_sessions_two_are_offered(write_agent, monkeypatch):
    await asyncio.to_thread(assert_pass, *await offered(write_agent, monkeypatch, 500), 2)


def assert_pass(folder, traces, new):
    """The cases that were made pass against the traces that they are from; the secret is in none."""
    (path,) = folder.glob("*.evalset.json")
    assert SECRET not in path.read_text()
    cases = [one["eval_id"] for one in json.loads(path.read_text())["eval_cases"]]
    assert len(cases) == 4 + new
    selected = f"{path}:{','.join(cases[4:])}"
    report = folder / "report.json"
    call("score", traces, "--sets", selected, "--home", folder, "--only-paired", "--report", f"json={report}")
    assert [one["status"] for one in json.loads(report.read_text())["cases"]] == ["PASSED"] * new
