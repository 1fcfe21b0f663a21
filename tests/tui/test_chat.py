"""Talking with the agent on screen: the message, what is shown of the conversation, going back, new code."""

from contextlib import asynccontextmanager

import pytest
from pilots import focused_tab, screen_lines, screen_text, turn, until, until_ran, workbench_on, write_cases
from rich.cells import cell_len

from evaltui.tui.chat.begin import ChatFromScreen, NewChatScreen
from evaltui.tui.chat.view import ChatView
from evaltui.tui.dialogs.prompt import PromptScreen
from evaltui.tui.inspector import Inspector, InspectorLines
from evaltui.tui.widgets.choices import ChoiceLine
from evaltui.tui.widgets.fields import MessageField
from evaltui.workbench.chat.conversation import TurnStage
from evaltui.workbench.state import Selection

NARROW, WIDE = (80, 24), (160, 45)
DESK = """
    import asyncio
    from evaltui.events import text, tool_call, tool_result

    async def root_agent(message, session):
        if message == "slow":
            yield text("I begin.")
            await asyncio.sleep(60)
        if message == "look":
            yield tool_call("find", {"[/where]": "\\x1b[31mhere"}, id="c1")
            yield tool_result("find", {"found": ["a", "b"]}, id="c1")
        if message == "long":
            yield text("\\n".join(f"line {number}" for number in range(60)))
            return
        session.state["count"] = session.state.get("count", 0) + 1
        files = [part for part in session.content.parts if part.inline_data]
        yield text(f"You said: {message}" + (f" and sent {len(files)} file" if files else ""))
"""


@pytest.fixture
def desk(write_agent):
    folder = write_agent(DESK, name="desk")
    write_cases(
        folder,
        "desk",
        {
            "polite": [turn("hello", "You said: hello"), turn("bye", "Farewell")],
            "other": [turn("look", "x")],
        },
    )
    return folder


async def opened(app, pilot):
    """The chat is shown, and the message has the focus."""
    await until(pilot, lambda: app.workbench.sets.workspace is not None)
    await pilot.press("4")
    await until(pilot, lambda: isinstance(app.focused, MessageField))


@asynccontextmanager
async def chatting(folder, size=NARROW):
    """The app with the chat of an agent, and its pilot."""
    async with workbench_on(folder, size) as (app, pilot):
        await opened(app, pilot)
        yield app, pilot


async def say(app, pilot, message):
    await pilot.press(*message.replace(" ", "_"), "enter")
    await until_ran(pilot, lambda: not app.workbench.chat.busy)


def page_text(app):
    """What the inspector of the chat says."""
    lines = app.screen.query_one("#chat-inspector", Inspector).lines.page.lines
    return "\n".join("".join(text for text, _ in line) for line in lines)


async def test_the_inspector_follows_the_row_and_says_which_turn_changed_the_state(desk):
    async with chatting(desk, WIDE) as (app, pilot):
        await say(app, pilot, "hi")
        await say(app, pilot, "look")
        # The trace below it is that of the chat.
        trace = app.screen.query_one("#trace-frame").region
        await until(pilot, lambda: "chat   8 events" in screen_lines(app)[trace.bottom - 1])
        assert "Inspector" not in screen_text(app)
        await pilot.press("escape", "z", "home", "down")
        await until(pilot, lambda: "response  turn 1" in page_text(app))
        state = next(line for line in page_text(app).splitlines() if line.startswith(" count"))
        assert state.split() == ["count", "2", "turn", "2"]
        await pilot.press("down", "down", "down")
        await until(pilot, lambda: "find  tool call" in page_text(app))
        assert "turns       2" in page_text(app)
        inspector = app.screen.query_one("#chat-inspector", Inspector)
        assert (inspector.region.width, inspector.display) == (42, True)


def stages(app):
    return [one.stage for one in app.workbench.chat.transcript.turns]


def marked(app):
    """The row that the cursor is on."""
    return [line.rpartition("▌")[2].strip() for line in screen_lines(app) if "▌" in line]


async def test_a_double_click_opens_a_row_once(desk):
    async with chatting(desk) as (app, pilot):
        await say(app, pilot, "hi")
        await until(pilot, lambda: "You said: hi" in screen_text(app))
        row = next(number for number, line in enumerate(screen_lines(app)) if "You said: hi" in line)
        await pilot.click(offset=(30, row), times=2)
        await until(pilot, lambda: isinstance(app.focused, InspectorLines))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.focused, ChatView))


async def test_several_lines_and_messages_sent_before(desk):
    async with chatting(desk) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "Message is empty" in screen_text(app))
        await pilot.press("o", "n", "e", "ctrl+j", "t", "w", "o", "enter")
        await until(pilot, lambda: stages(app) == [TurnStage.DONE])
        assert app.workbench.chat.transcript.turns[0].text == "one\ntwo"
        field = app.focused
        await say(app, pilot, "hi")
        await pilot.press(*"now", "up")
        assert field.text == "hi"
        await pilot.press("up")
        assert field.text == "one\ntwo"
        # From its last line up to its first one, and only then further back.
        await pilot.press("up", "up")
        assert field.text == "one\ntwo"
        await pilot.press("down", "down")
        assert field.text == "hi"
        await pilot.press("down")
        assert field.text == "now"
        await pilot.press("tab")
        assert not isinstance(app.focused, MessageField)


async def test_ctrl_c_cancels_a_turn_and_escape_leaves_the_message(desk):
    async with chatting(desk) as (app, pilot):
        await pilot.press(*"slow", "enter")
        await until(pilot, lambda: "I begin." in screen_text(app))
        assert "4 Chat ◐" in screen_text(app)
        await pilot.press("escape")
        assert app.focused.id == "chat"
        await pilot.press("i", "ctrl+c")
        await until(pilot, lambda: stages(app) == [TurnStage.CANCELLED])
        await until(pilot, lambda: "cancelled; the next message" in screen_text(app))
        assert isinstance(app.focused, MessageField)
        await pilot.press("escape")
        assert app.focused.id == "chat"
        await pilot.press("i")
        assert isinstance(app.focused, MessageField)


async def test_an_earlier_message_is_changed_and_the_one_being_written_is_kept(desk):
    async with chatting(desk) as (app, pilot):
        await say(app, pilot, "hi")
        await say(app, pilot, "look")
        await until(pilot, lambda: "You said: look" in screen_text(app))
        await pilot.press(*"later", "escape", "home", "e")
        await until(pilot, lambda: "in place of turn 1" in screen_text(app))
        await pilot.press("exclamation_mark", "enter")
        await until(pilot, lambda: "You said: hi!" in screen_text(app))
        await until(pilot, lambda: stages(app) == [TurnStage.DONE])
        assert "You said: look" not in screen_text(app)
        assert app.focused.text == "later"
        await pilot.press("escape", "B")
        await until(pilot, lambda: "You said: look" in screen_text(app))
        await pilot.press("home", "e", "escape")
        await until(pilot, lambda: "in place of turn 1" not in screen_text(app))
        assert app.focused.text == "later"


async def test_a_file_goes_along_as_a_chip(desk, tmp_path):
    (tmp_path / "dot.png").write_bytes(b"x" * 2048)
    async with chatting(desk) as (app, pilot):
        for _ in range(2):
            await pilot.press("f6")
            await until(pilot, lambda: isinstance(app.screen, PromptScreen))
            app.screen.query_one("QuestionInput").value = str(tmp_path / "dot.png")
            await pilot.press("enter")
            await until(pilot, lambda: not isinstance(app.screen, PromptScreen))
        await until(pilot, lambda: screen_text(app).count("dot.png  image/png  2 KB") == 2)
        await pilot.press("backspace")
        await until(pilot, lambda: screen_text(app).count("dot.png  image/png  2 KB") == 1)
        await say(app, pilot, "see")
        await until(pilot, lambda: "You said: see and sent 1 file" in screen_text(app))
        assert "[image/png 2 KB]" in screen_text(app)
        assert "dot.png" not in screen_text(app)


async def test_the_end_is_followed_until_one_looks_elsewhere(desk):
    async with chatting(desk) as (app, pilot):
        await say(app, pilot, "long")
        await until(pilot, lambda: "line 59" in screen_text(app) and "line 0" not in screen_text(app))
        await pilot.press("pageup")
        await until(pilot, lambda: "↓ " in screen_text(app))
        await pilot.press("pageup", "pageup", "pageup")
        await until(pilot, lambda: "line 0" in screen_text(app))
        await pilot.press("escape", "end")
        await until(pilot, lambda: "↓ " not in screen_text(app))
        # What is longer than the screen is gone through from the end that one comes from, line by line.
        await until(pilot, lambda: "line 59" in screen_text(app) and "line 42" not in screen_text(app))
        await pilot.press("up")
        await until(pilot, lambda: "line 42" in screen_text(app) and "line 59" not in screen_text(app))


async def test_new_code_is_told_of_and_the_conversation_is_replayed_on_it(desk):
    async with chatting(desk) as (app, pilot):
        await say(app, pilot, "hi")
        agent = desk / "agent.py"
        agent.write_text(agent.read_text("utf-8").replace("You said:", "You meant:"), "utf-8")
        await until(pilot, lambda: "agent.py changed: the next turn uses the new code" in screen_text(app))
        await pilot.press("ctrl+l")
        await until(pilot, lambda: "You meant: hi" in screen_text(app))
        await until(pilot, lambda: "≠ now different: response differs" in screen_text(app))
        assert "agent.py changed: from here on the new code" in screen_text(app)
        assert "You said" not in screen_text(app)
        await pilot.press("escape")
        while not marked(app)[-1].startswith("≠"):
            await pilot.press("up")
        await pilot.press("enter")
        await until(pilot, lambda: "You said meant: hi" in screen_text(app))


async def test_a_conversation_continues_a_case_before_the_turn_that_failed(desk):
    async with workbench_on(desk, WIDE) as (app, pilot):
        await pilot.press("r")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        assert app.workbench.navigation.selection.eval_id == "polite"
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, ChatFromScreen))
        await until(pilot, lambda: " turn 2 of 2   bye" in screen_text(app))
        assert any(row.startswith("● Continue from run 1") for row in marked(app))
        await pilot.press("enter")
        await until(pilot, lambda: "› bye" in screen_text(app))
        assert isinstance(app.focused, MessageField)
        assert [one.source for one in app.workbench.chat.transcript.turns] == ["recorded"]
        await pilot.press("enter")
        await until(pilot, lambda: "You said: bye" in screen_text(app))
        # The result stays in sight beside the conversation.
        assert "3 Result" in screen_text(app)


@pytest.mark.parametrize(
    ("way", "turns"), [("Start a new chat", []), ("Replay the whole case", [TurnStage.DONE] * 2)]
)
async def test_from_a_case_a_chat_can_begin_in_other_ways(desk, way, turns):
    async with workbench_on(desk, NARROW) as (app, pilot):
        await pilot.press("c")
        await until(pilot, lambda: "the end   after 2 turns" in screen_text(app))
        await pilot.press("left", "left")
        await until(pilot, lambda: " turn 1 of 2   hello" in screen_text(app))
        while not any(row.startswith(f"● {way}") for row in marked(app)):
            await pilot.press("down")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.focused, MessageField) and stages(app) == turns)


async def test_a_conversation_begins_with_a_state(desk):
    async with chatting(desk) as (app, pilot):
        await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, NewChatScreen))
        await pilot.press("tab", "tab", *"ann", "tab", "tab", "left_curly_bracket", "ctrl+j")
        await until(pilot, lambda: "! line 1" in screen_text(app))
        assert isinstance(app.screen, NewChatScreen)
        await pilot.press("ctrl+a", "ctrl+k", *'{"count":', "4", "1", "right_curly_bracket", "ctrl+j")
        await until(pilot, lambda: not isinstance(app.screen, NewChatScreen))
        assert app.workbench.chat.transcript.session.user_id == "ann"
        await until(pilot, lambda: 'state       {"count": 41}' in screen_text(app))
        await say(app, pilot, "hi")
        await until(pilot, lambda: "41 → 42" in screen_text(app))


async def test_a_conversation_begins_as_a_case_does(desk):
    async with chatting(desk) as (app, pilot):
        app.workbench.navigation.select(Selection(app.workbench.sets.listed[0].case_path, "polite"))
        await pilot.press("ctrl+n")
        await until(pilot, lambda: "as polite" in screen_text(app))
        await pilot.press("right")
        await until(pilot, lambda: app.screen.query_one("#chat-begin", ChoiceLine).chosen == 1)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.workbench.chat.transcript is None


async def test_a_click_on_the_message_goes_there(desk):
    async with chatting(desk, WIDE) as (app, pilot):
        await pilot.press("escape", "1")
        assert app.focused.id == "cases"
        await pilot.click("#message-field")
        await until(pilot, lambda: isinstance(app.focused, MessageField))
        assert focused_tab(app) == "4 Chat"


EVIL = "[/x] [bold]b[/] \x1b[31mred\x07 \u202e 日本語テスト🎉 " * 20


@pytest.mark.parametrize("size", [(60, 20), NARROW, (200, 50)], ids="{0[0]}x{0[1]}".format)
async def test_hostile_words_are_shown_safely_at_every_size(desk, size):
    def check():
        lines = screen_lines(app)
        assert len(lines) == size[1]
        assert all(cell_len(line) <= size[0] for line in lines)
        assert not {letter for line in lines for letter in line if letter < " " or letter in "\x7f\u202e"}

    async with chatting(desk, size) as (app, pilot):
        app.workbench.chat.send({"role": "user", "parts": [{"text": EVIL}]})
        await until(pilot, lambda: stages(app) == [TurnStage.DONE])
        await until(pilot, lambda: "Δ count  — → 1" in screen_text(app))
        check()
        for key in ("ctrl+t", "ctrl+n", "f1"):
            await pilot.press("escape", key)
            await until(pilot, lambda: len(app.screen_stack) == 2)
            check()
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)
        await pilot.press("escape", "home", "e")
        await until(pilot, lambda: "in place of turn 1" in screen_text(app))
        check()
