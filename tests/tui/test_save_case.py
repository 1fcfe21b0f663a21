"""Making a case of the conversation, on screen."""

import json

import pytest
from pilots import screen_text, turn, until, until_ran, workbench_on, write_cases

from evaltui.tui.chat.save_case import SaveCaseScreen
from evaltui.tui.widgets.fields import MessageField

NARROW = (80, 24)
DESK = """
    from evaltui.events import text, tool_call, tool_result

    def root_agent(message, session):
        session.state["count"] = session.state.get("count", 0) + 1
        if message == "look":
            yield tool_call("find", {"where": "here"}, id="c1")
            yield tool_result("find", {"found": ["a", "b"]}, id="c1")
        yield text(f"You said: {message}")
"""


@pytest.fixture
def desk(write_agent):
    folder = write_agent(DESK, name="desk")
    write_cases(folder, "desk", {"hello_there": [turn("hello", "You said: hello")]})
    write_cases(folder, "other", {"x": [turn("x", "You said: x")]})
    return folder


async def said(app, pilot, *messages):
    """Each of the messages has been answered, and the dialog is open."""
    await until(pilot, lambda: app.workbench.sets.workspace is not None)
    await pilot.press("4")
    await until(pilot, lambda: isinstance(app.focused, MessageField))
    for count, message in enumerate(messages, 1):
        await pilot.press(*message.replace(" ", "_"), "enter")
        await until_ran(pilot, lambda count=count: len(counted(app)) == count and not app.workbench.chat.busy)
    await pilot.press("ctrl+t")
    await until(pilot, lambda: isinstance(app.screen, SaveCaseScreen) and app.focused is not None)


def counted(app):
    transcript = app.workbench.chat.transcript
    return transcript.counted() if transcript else []


async def saved(app, pilot, path):
    await until(pilot, lambda: len(app.screen_stack) == 1)
    await pilot.press("ctrl+s")
    await until(pilot, lambda: not app.workbench.editing.unsaved())
    return json.loads(path.read_text("utf-8"))["eval_cases"][-1]


async def test_what_was_said_is_a_case_that_passes_at_once(desk):
    async with workbench_on(desk, NARROW) as (app, pilot):
        await said(app, pilot, "look", "bye")
        assert " look_1 " not in screen_text(app)
        await pilot.press("enter")
        case = await saved(app, pilot, desk / "desk.evalset.json")
        assert app.focused.id == "case"
        assert case["eval_id"] == "look"
        assert [one["user_content"]["parts"][0]["text"] for one in case["conversation"]] == ["look", "bye"]
        await pilot.press("r")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        assert app.workbench.runs.current.counts == {"PASSED": 1}


async def test_turns_and_what_is_expected_of_them_are_chosen(desk):
    async with workbench_on(desk, NARROW) as (app, pilot):
        await said(app, pilot, "one", "look", "three")
        # The first turn is context, of the second one the answer is not expected, the last one is left out.
        await pilot.press("tab", "tab", "space", "down", *["right"] * 4, "space", "down", *["left"] * 4)
        await pilot.press("space", "space")
        await until(pilot, lambda: "left out" in screen_text(app))
        assert "1  context" in screen_text(app)
        await pilot.press("down", "down", "space")
        await until(pilot, lambda: '[x] expect the final state  {"count": 2}' in screen_text(app))
        await pilot.press("enter")
        case = await saved(app, pilot, desk / "desk.evalset.json")
        assert [one["user_content"]["parts"][0]["text"] for one in case["conversation"]] == ["one", "look"]
        assert "final_response" not in case["conversation"][1]
        assert case["final_session_state"] == {"count": 2}
        config = json.loads((desk / "test_config.json").read_text("utf-8"))
        assert config["evaltui"]["turns"] == [
            {"set": "desk", "case": "one", "turn": 0, "mode": "context"},
        ]


async def test_an_id_that_is_taken_is_refused_and_another_set_is_chosen(desk):
    async with workbench_on(desk, NARROW) as (app, pilot):
        await said(app, pilot, "hi")
        await pilot.press(*"hello_there", "enter")
        await until(pilot, lambda: "! " in screen_text(app) and isinstance(app.screen, SaveCaseScreen))
        await pilot.press("tab", "right")
        await until(pilot, lambda: "other.evalset.json" in screen_text(app))
        await until(pilot, lambda: "! " not in screen_text(app))
        await pilot.press("right")
        await until(pilot, lambda: "new id" in screen_text(app))
        await pilot.press("tab", "ctrl+u", *"fresh", "enter")
        case = await saved(app, pilot, desk / "fresh.evalset.json")
        assert case["eval_id"] == "hello_there"


async def test_cells_are_changed_by_clicks(desk):
    async with workbench_on(desk, NARROW) as (app, pilot):
        await said(app, pilot, "look")
        dialog = app.screen
        rows = dialog.query_one("#save-turns")
        await until(pilot, lambda: rows.line_count == 3)
        for mode in ("context", "left out", "scored"):
            await pilot.click(rows, offset=(6, 0))
            await until(pilot, lambda mode=mode: dialog.choices.turns[0].mode == mode)
        await pilot.click(rows, offset=(rows.size.width - 5, 0))
        await until(pilot, lambda: "answer" not in dialog.choices.turns[0].expects)
        assert "calls" in dialog.choices.turns[0].expects
        await pilot.click(rows, offset=(6, 2))
        await until(pilot, lambda: dialog.choices.final_state)
