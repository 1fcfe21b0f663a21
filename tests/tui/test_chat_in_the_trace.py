"""The trace of the chat: from a row to its span and back, side by side, while the agent works."""

import pytest
from pilots import screen_text, turn, until, until_ran, workbench_on, write_cases

from evaltui.tui.chat.view import ChatView
from evaltui.tui.inspector import Inspector
from evaltui.tui.trace.view import TraceView
from evaltui.tui.widgets.fields import MessageField

DESK = """
    import asyncio
    from evaltui.events import text, tool_call, tool_result

    async def root_agent(message, session):
        yield tool_call("find", {"where": message}, id="c1")
        if message == "slow":
            while True:
                await asyncio.sleep(0.01)
                if session.state.get("never"):
                    return
        yield tool_result("find", {"found": message}, id="c1")
        yield text(f"It is {message}.")
"""


@pytest.mark.parametrize(
    ("size", "cases"),
    [((80, 24), True), pytest.param((160, 45), False, marks=pytest.mark.thorough)],
    ids=["narrow", "wide, no case yet"],
)
async def test_a_row_leads_to_its_span_and_back_while_the_agent_works(write_agent, size, cases):
    folder = write_agent(DESK, name="desk")
    if cases:
        write_cases(folder, "desk", {"one": [turn("here", "x")], "two": [turn("there", "x")]})
    async with workbench_on(folder, size) as (app, pilot):
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.focused, MessageField))
        for message in ("here", "there"):
            await pilot.press(*message, "enter")
            await until_ran(pilot, lambda: not app.workbench.chat.busy)
        chat, trace = app.screen.query_one(ChatView), app.screen.query_one(TraceView)

        def row():
            """What the cursor of the chat is on."""
            return chat.chat_place()

        def marked():
            """The row of the trace that the cursor is on."""
            return "".join(text for text, _ in trace.line(trace.cursor))

        await pilot.press("escape", "home", "down")
        await until(pilot, lambda: row().events and row().events[0].kind == "tool_call")
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.focused, TraceView))
        await until(pilot, lambda: '"here"' in marked())
        assert "chat" in "".join(text for text, _ in trace.heading())
        inspector = app.screen.query_one("#trace-inspector", Inspector)
        assert "Expected" not in [tab.name for tab in inspector._inspected.tabs]
        # The chat goes along, seen or not.
        await pilot.press("end")
        await until(pilot, lambda: row().turn == 1 and row().events[0].kind == "text")
        await pilot.press("up")
        await until(pilot, lambda: row().events[0].kind == "tool_call")
        seen = chat.is_on_screen, trace.is_on_screen, chat.region.right < trace.region.x
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.focused, ChatView) and row().turn == 1)
        if not cases:
            assert seen == (True, True, True)
            return
        # A turn that is running grows in the trace.
        await pilot.press("i", *"slow", "enter")
        await until_ran(pilot, lambda: "find" in str(app.workbench.chat.transcript.turns[-1].events))
        await pilot.press("escape", "end", "t")
        await until(pilot, lambda: isinstance(app.focused, TraceView) and "slow" in screen_text(app))
        known = trace.line_count
        await pilot.press("t", "ctrl+c")
        await until_ran(pilot, lambda: not app.workbench.chat.busy)
        await pilot.press("home", "delete")
        await until(pilot, lambda: not app.workbench.chat.transcript.turns)
        await pilot.press("5")
        await until(pilot, lambda: trace.line_count < known and "No messages yet" in screen_text(app))
        # Another case has its own trace.
        await pilot.press("1", "down")
        await until(pilot, lambda: app.workbench.navigation.selection.eval_id == "two")
        await pilot.press("5")
        await until(pilot, lambda: isinstance(app.focused, TraceView) and "Not run" in screen_text(app))
