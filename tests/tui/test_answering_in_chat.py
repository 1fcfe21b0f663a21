"""What waits for a person is answered in the chat, and the conversation is a case that passes."""

import json

import pytest

pytest.importorskip("google.adk")

from pilots import screen_text, until, until_ran, workbench_on, write_cases
from requesting_agents import DESK, write_agent

from evaltui.tui.chat.save_case import SaveCaseScreen
from evaltui.tui.widgets.choices import ChoiceLine
from evaltui.tui.widgets.fields import MessageField

pytestmark = pytest.mark.adk


async def test_a_confirmation_is_answered_saved_and_passes(tmp_path):
    folder = write_agent(tmp_path / "desk", DESK)
    path = write_cases(folder, "desk", {})
    async with workbench_on(folder, (80, 60)) as (app, pilot):
        chat = app.workbench.chat

        async def send(text, turns):
            app.focused.insert(text)
            await pilot.press("enter")
            await until_ran(pilot, lambda: not chat.busy and len(chat.transcript.counted()) == turns)

        await until(pilot, lambda: app.workbench.sets.workspace is not None)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.focused, MessageField))
        await send("pay wire", 1)
        await until(pilot, lambda: isinstance(app.focused, ChoiceLine))
        assert screen_text(app).count("Confirm pay(amount=3)?") == 2
        assert "Confirmation requested 1/2" in screen_text(app)

        # From one to the other, to a message, and back.
        await pilot.press("f7")
        await until(pilot, lambda: "Confirmation requested 2/2" in screen_text(app))
        await until(pilot, lambda: isinstance(app.focused, ChoiceLine))
        await pilot.press("f7")
        await until(pilot, lambda: isinstance(app.focused, MessageField))
        await pilot.press("f7")
        await until(pilot, lambda: "Confirmation requested 1/2" in screen_text(app))
        await until(pilot, lambda: isinstance(app.focused, ChoiceLine))

        # Nothing is approved unless that is chosen.
        await pilot.press("enter")
        await until(pilot, lambda: "decision: choose Approve, Reject" in screen_text(app))
        assert len(chat.transcript.turns) == 1
        await pilot.press("right", "ctrl+s")
        await until_ran(pilot, lambda: not chat.busy and len(chat.transcript.counted()) == 2)
        assert 'response to adk_request_confirmation: {"confirmed": true}' in screen_text(app)

        # What is typed stays while a message is written, which sets the other call aside.
        await until(pilot, lambda: isinstance(app.focused, ChoiceLine))
        await pilot.press("right", "tab", *"{]", "enter")
        await until(pilot, lambda: "payload: must be JSON" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "1 call waits for a response" in screen_text(app))
        assert isinstance(app.focused, MessageField)
        await send("hello", 3)
        assert "Nothing to do." in screen_text(app)
        await pilot.press("f7")
        await until(pilot, lambda: isinstance(app.focused, ChoiceLine))
        await pilot.press("tab", "backspace", *'"at_most": 2}', "ctrl+s")
        await until_ran(pilot, lambda: not chat.busy and len(chat.transcript.counted()) == 4)
        assert chat.waiting() == []

        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.screen, SaveCaseScreen) and app.focused is not None)
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await pilot.press("ctrl+s", "r")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        assert app.workbench.runs.current.counts == {"PASSED": 1}
        await pilot.press("3")
        await until(pilot, lambda: "response to adk_request_confirmation" in screen_text(app))
        await until(pilot, lambda: not app.workbench.editing.unsaved())
        (case,) = json.loads(path.read_text("utf-8"))["eval_cases"]
        said = [turn["user_content"]["parts"][0] for turn in case["conversation"]]
        assert [list(part) for part in said] == [
            ["text"],
            ["function_response"],
            ["text"],
            ["function_response"],
        ]
        assert said[3]["function_response"]["response"] == {"confirmed": True, "payload": {"at_most": 2}}
