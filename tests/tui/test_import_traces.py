"""Recorded traces as cases, on screen: a path that is pasted, a conversation and its turns, one undo."""

import json

import pytest
from pilots import screen_text, turn, until, workbench_on, write_cases
from textual import events

from evaltui.core.model.events import Event, text, tool_call, tool_result
from evaltui.traces.writing.otlp import otlp_json
from evaltui.traces.writing.turn import Held, spans_of_turns
from evaltui.tui.chat.save_case import SaveCaseScreen
from evaltui.tui.dialogs.prompt import PromptScreen, QuestionNote
from evaltui.tui.sessions import ConversationScreen

AGENT = """
    from evaltui.events import text

    def root_agent(message, session):
        yield text(message)
"""


def conversation(name, *messages):
    found = []
    for number, message in enumerate(messages):
        said = {"role": "user", "parts": [{"text": message}]}
        for event in (
            Event("user", said, data={"invocation_id": f"i{number}"}),
            tool_call("find", {"what": message}, id="adk-1", agent="shop"),
            tool_result("find", {"key": "sk-very-secret-value"}, id="adk-1", agent="shop"),
            text(f"Found {message}.", agent="shop"),
        ):
            found.append(Event.from_json({**event.to_json(), "turn": number, "t": len(found) / 10}))
    held = Held(name, "shop", 10**18)
    return {"service.name": "shop"}, spans_of_turns(held, found, ())


async def test_a_pasted_path_becomes_a_case(write_agent, tmp_path):
    folder = write_agent(AGENT, name="shop")
    (folder / ".env").write_text("SHOP_API_KEY=sk-very-secret-value\n")
    write_cases(folder, "shop", {"one": [turn("here", "x")]})
    before = (folder / "shop.evalset.json").read_text()
    trace = tmp_path / "two sessions.json"
    document = otlp_json([conversation("s1", "lamp"), conversation("s2", "rug", "desk")], "1")
    trace.write_text(json.dumps(document))
    async with workbench_on(folder, (80, 24)) as (app, pilot):

        async def paste(path):
            await pilot.press("I")
            await until(pilot, lambda: isinstance(app.screen, PromptScreen) and app.focused is not None)
            app.post_message(events.Paste(path))
            await until(pilot, lambda: getattr(app.focused, "value", "") == path)
            await pilot.press("enter")

        # What holds no conversation is said.
        await paste(str(folder / "agent.py"))
        await until(
            pilot, lambda: len(app.screen_stack) == 1 and "agent.py" in app.workbench.messages.notice.text
        )
        # As terminals write a path with blanks that is dragged into them.
        await paste(f"'{trace}'")
        await until(pilot, lambda: isinstance(app.screen, ConversationScreen) and "rug" in screen_text(app))
        # What happened in the current one is seen before anything is imported.
        assert "tool  find" in screen_text(app)
        assert "sk-very-secret-value" not in screen_text(app)
        await pilot.press(*"rug", "enter")
        await until(pilot, lambda: isinstance(app.screen, SaveCaseScreen) and app.focused is not None)
        assert "[x]" in screen_text(app)
        # Nothing is in the set before it is accepted.
        assert not app.workbench.editing.unsaved()
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await until(pilot, lambda: [case.eval_id for case in eval_set_cases(app)] == ["one", "rug"])
        await pilot.press("ctrl+s")
        await until(pilot, lambda: not app.workbench.editing.unsaved())
        saved = (folder / "shop.evalset.json").read_text()
        assert "adk-1" not in saved
        assert "sk-very-secret-value" not in saved
        case = json.loads(saved)["eval_cases"][-1]
        assert [one["user_content"]["parts"] for one in case["conversation"]] == [
            [{"text": "rug"}],
            [{"text": "desk"}],
        ]
        # The same conversation again is said to be there, and can be added all the same.
        await pilot.press("1")
        await paste(f"'{trace}'")
        await until(pilot, lambda: isinstance(app.screen, ConversationScreen) and "rug" in screen_text(app))
        await pilot.press(*"rug", "enter")
        await until(pilot, lambda: "! Already in shop as rug" in screen_text(app))
        assert "-problem" not in app.screen.query_one(QuestionNote).classes
        # Another expectation makes it another case of the same user.
        await pilot.press("tab", "tab", "right", "space")
        await until(pilot, lambda: "! rug in shop has the same user messages" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await pilot.press("u", "ctrl+s")
        await until(pilot, lambda: (folder / "shop.evalset.json").read_text() == before)


async def test_a_path_is_completed_and_several_conversations_are_imported_at_once(write_agent, tmp_path):
    folder = write_agent(AGENT, name="shop")
    write_cases(folder, "shop", {"one": [turn("here", "x")]})
    found = [conversation("s1", "lamp"), conversation("s2", "rug"), conversation("s3", "desk")]
    (tmp_path / "recorded").mkdir()
    (tmp_path / "recorded" / "sessions.json").write_text(json.dumps(otlp_json(found, "1")))
    async with workbench_on(folder, (160, 45)) as (app, pilot):
        await pilot.press("I")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen) and app.focused is not None)
        app.focused.value = f"{tmp_path}/rec"
        await pilot.press("tab")
        await until(pilot, lambda: app.focused.value.endswith("/recorded/"))
        await pilot.press("tab", "enter")
        await until(pilot, lambda: isinstance(app.screen, ConversationScreen) and "desk" in screen_text(app))
        await pilot.press("space", "down")
        await until(pilot, lambda: 'what "desk"' in screen_text(app))
        await pilot.press("space", "enter")
        await until(pilot, lambda: [case.eval_id for case in eval_set_cases(app)] == ["one", "lamp", "desk"])
        await until(pilot, lambda: "Added 2 cases to shop.evalset.json" in screen_text(app))


async def test_a_session_of_adk_becomes_a_case_with_the_state_it_began_in(write_agent, tmp_path):
    folder = write_agent(AGENT, name="shop")
    write_cases(folder, "shop", {"one": [turn("here", "x")]})
    said = [{"author": author, "content": {"parts": [{"text": author}]}} for author in ("user", "shop")]
    said[1]["actions"] = {"stateDelta": {"seen": 1}}
    session = {"id": "s1", "appName": "desk", "userId": "ada", "state": {"city": "Oslo", "seen": 1}}
    path = tmp_path / "s1.session.json"
    path.write_text(json.dumps(session | {"events": said * 2}))
    async with workbench_on(folder, (80, 24)) as (app, pilot):
        await pilot.press("I")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen) and app.focused is not None)
        app.focused.value = str(path)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ConversationScreen) and "s1" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SaveCaseScreen) and app.focused is not None)
        assert 'start with the state  {"city": "Oslo"}' in screen_text(app)
        assert "initial state of seen unknown" in app.workbench.messages.notice.text
        await pilot.press("enter")
        await until(pilot, lambda: len(eval_set_cases(app)) == 2)
    session_input = eval_set_cases(app)[1].value["session_input"]
    assert session_input == {"app_name": "desk", "user_id": "ada", "state": {"city": "Oslo"}}


@pytest.mark.parametrize(
    ("name", "text", "makes"),
    [
        ("rows.csv", "user,expected\nhi,ho\n", "cases of its rows"),
        ("suite.json", '{"prompts": ["x"], "providers": ["echo"], "tests": []}', "cases of its tests"),
        (
            "scenarios.json",
            '{"scenarios": [{"starting_prompt": "Hi", "conversation_plan": "Go"}]}',
            "cases of its scenarios",
        ),
    ],
)
async def test_a_file_of_another_kind_names_the_command_that_reads_it(
    write_agent, tmp_path, name, text, makes
):
    path = tmp_path / name
    path.write_text(text)
    async with workbench_on(write_agent(AGENT, name="shop"), (160, 45)) as (app, pilot):
        await pilot.press("I")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen) and app.focused is not None)
        app.focused.value = str(path)
        await pilot.press("enter")
        await until(pilot, lambda: f"SET` makes {makes}" in app.workbench.messages.notice.text)


def eval_set_cases(app):
    return app.workbench.sets.listed[0].cases
