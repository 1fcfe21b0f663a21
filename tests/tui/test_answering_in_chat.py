"""What waits for a person is answered in the chat, and the conversation is a case that passes."""

import json

import pytest

pytest.importorskip("google.adk")

from pilots import screen_text, until, until_ran, write_cases
from requesting_agents import DESK, write_agent

from evaltui.tui.app import WorkbenchApp
from evaltui.tui.screens.save_case import SaveCaseScreen
from evaltui.tui.widgets.fields import MessageField
from evaltui.workbench.workbench import Workbench

pytestmark = pytest.mark.adk


async def test_a_confirmation_is_answered_saved_and_passes(tmp_path):
    folder = write_agent(tmp_path / "desk", DESK)
    path = write_cases(folder, "desk", {})
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(80, 60)) as pilot:
        chat = app.workbench.chat

        async def send(text, turns):
            app.focused.insert(text)
            await pilot.press("enter")
            await until_ran(pilot, lambda: not chat.busy and len(chat.transcript.counted()) == turns)

        await until(pilot, lambda: app.workbench.sets.workspace is not None)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.focused, MessageField))
        await send("pay wire", 1)
        assert "Confirm pay(amount=3)?" in screen_text(app)
        assert "respond to adk_request_confirmation 1/2: yes or no" in screen_text(app)

        # What the call does not take is said, and stays to be changed.
        app.focused.insert("perhaps")
        await pilot.press("enter")
        await until(pilot, lambda: "type yes or no" in screen_text(app))
        assert (app.focused.text, len(chat.transcript.turns)) == ("perhaps", 1)
        app.focused.clear()

        await send("yes", 2)
        assert 'response to adk_request_confirmation: {"confirmed": true}' in screen_text(app)
        # A message in between sets the other call aside; it can still be turned to.
        await pilot.press("f7")
        await until(pilot, lambda: "1 call waits for a response" in screen_text(app))
        await send("hello", 3)
        assert "Nothing to do." in screen_text(app)
        await pilot.press("f7")
        await send('yes {"at_most": 2}', 4)
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
