"""Conversations with a real agent in a process of its own."""

import asyncio
import json
import re

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.chat.controller import LOADING_NOTICE, NEW_CHAT_TITLE
from evaltui.workbench.chat.conversation import SessionStart, TurnStage
from evaltui.workbench.workbench import Workbench

AGENT = """
    import os
    import threading
    import time
    from evaltui.events import tool_call, tool_result

    GREETING = "hello"

    def root_agent(message, session):
        session.state["turns"] = session.state.get("turns", 0) + 1
        if message == "raise":
            raise ValueError("not today")
        if message.startswith("keep"):
            open(os.path.join(os.path.dirname(__file__), "kept.json"), "w").write("{}")
        if message == "keep, then raise":
            raise ValueError("kept")
        if message == "forever":
            yield "well"
            while True:
                time.sleep(0.01)
        if message == "die":
            os._exit(3)
        if message == "die later":
            threading.Timer(0.05, os._exit, (3,)).start()
        if message == "look":
            yield tool_call("look_up", {"what": "weather"})
            open("asked", "a").write("x")
            yield tool_result("look_up", {"sky": "blue"})
        users = [one.parts[0].text for one in session.history if one.role == "user" and one.parts[0].text]
        print("heard", message)
        yield f"{GREETING} {message} after {users}"
"""


def said(text):
    return {"role": "user", "parts": [{"text": text}]}


def answer_of(turn):
    texts = [event for event in turn.events if event.kind == "text" and not event.data.get("partial")]
    return texts[-1].content["parts"][0]["text"]


def stages(chat):
    return [turn.stage for turn in chat.transcript.turns]


@pytest.fixture
async def chatting(write_agent, write_set, monkeypatch, until, open_workbench):
    """A workbench on the agent, in the agent's folder, and a way to say something and wait for the end."""
    folder = write_agent(AGENT)
    monkeypatch.chdir(folder)
    write_set(folder, one=("hi", "something"))
    workbench = await open_workbench(folder)

    async def talk(*messages):
        for message in messages:
            workbench.chat.send(said(message))
            await until(lambda: not workbench.chat.busy)
        return workbench.chat.transcript.turns[-1]

    workbench.talk = talk
    return workbench


def change(workbench, old, new):
    source = workbench.agent.dir / "agent.py"
    source.write_text(source.read_text("utf-8").replace(old, new), "utf-8")


async def test_a_message_begins_a_conversation(chatting):
    turn = await chatting.talk("one")
    chat = chatting.chat
    assert chat.transcript.title == NEW_CHAT_TITLE
    assert (turn.stage, turn.source) == (TurnStage.DONE, "said")
    assert answer_of(turn) == "hello one after []"
    assert (turn.state_before, turn.state_after) == ({}, {"turns": 1})
    assert turn.events[0].kind == "user"
    assert turn.seconds > 0
    assert chat.session.info["framework"] == chatting.agent.info["framework"] == "function"
    second = await chatting.talk("two")
    assert answer_of(second) == "hello two after ['one']"
    assert (second.state_before, chat.transcript.state) == ({"turns": 1}, {"turns": 2})
    assert [event.turn for event in second.events] == [1] * len(second.events)
    assert chat.inputs == ["one", "two"]
    assert [(line.run, line.text) for line in chatting.console] == [(0, "heard one"), (0, "heard two")]


async def test_a_new_conversation_has_its_session_before_anything_is_said(chatting, until):
    chat = chatting.chat
    chat.new(SessionStart(user_id="ann", state={"turns": 10}))
    assert chat.busy
    assert not chat.answering
    assert chat.refuses_to_send() is None
    await until(lambda: not chat.busy)
    assert chat.transcript.opened_state == {"turns": 10}
    turn = await chatting.talk("one")
    assert turn.state_after == {"turns": 11}


async def test_a_message_may_be_sent_while_the_agent_is_imported(chatting, until):
    chat = chatting.chat
    chat.new()
    await until(lambda: chat.session.opening)
    turn = await chatting.talk("early")
    assert answer_of(turn) == "hello early after []"


async def test_a_turn_that_fails_stays_and_does_not_count(chatting):
    await chatting.talk("one", "raise")
    failed = chatting.chat.transcript.turns[-1]
    assert failed.stage is TurnStage.FAILED
    assert re.match(r"agent\.py:\d+( in \w+)?: ValueError: not today$", str(failed.error))
    assert "raise ValueError" in failed.error.traceback
    third = await chatting.talk("three")
    assert stages(chatting.chat) == [TurnStage.DONE, TurnStage.FAILED, TurnStage.DONE]
    assert answer_of(third) == "hello three after ['one']"
    assert (third.state_before, third.state_after) == ({"turns": 1}, {"turns": 2})


async def test_a_cancelled_turn_stays_and_does_not_count(chatting, until):
    chat = chatting.chat
    await chatting.talk("one")
    chat.send(said("forever"))
    await until(lambda: len(chat.transcript.turns[-1].events) > 1)
    assert chat.refuses_to_send() == chat.refuses_to_save() == chat.refuses_to_repeat()
    chat.send(said("too early"))
    assert chatting.messages.notice.text == "Turn in progress (ctrl+c cancels)"
    chat.cancel()
    assert chat.cancelling
    await until(lambda: not chat.busy)
    assert stages(chat) == [TurnStage.DONE, TurnStage.CANCELLED]
    assert not chat.cancelling
    assert answer_of(await chatting.talk("two")) == "hello two after ['one']"


async def test_a_process_that_dies_is_replaced(chatting):
    await chatting.talk("one", "die")
    failed = chatting.chat.transcript.turns[-1]
    assert (failed.stage, failed.error.type) == (TurnStage.FAILED, "AgentProcessError")
    assert answer_of(await chatting.talk("two")) == "hello two after ['one']"


async def test_a_process_that_died_between_turns_costs_no_turn(chatting, until):
    await chatting.talk("die later")
    host = chatting.chat.session._conversation._started.host
    await until(lambda: not host.alive)
    assert answer_of(await chatting.talk("two")) == "hello two after ['die later']"


async def test_retry_says_the_last_message_again(chatting, until):
    chat = chatting.chat
    await chatting.talk("one", "raise")
    change(chatting, 'if message == "raise"', "if False")
    chat.retry()
    await until(lambda: not chat.busy)
    assert stages(chat) == [TurnStage.DONE, TurnStage.DONE]
    assert answer_of(chat.transcript.turns[1]) == "hello raise after ['one']"
    chat.restore()
    assert stages(chat) == [TurnStage.DONE, TurnStage.FAILED]


async def test_going_back_and_saying_something_else(chatting, until):
    chat = chatting.chat
    await chatting.talk("one", "two", "three")
    chat.resend(1, said("other"))
    await until(lambda: not chat.busy)
    assert [turn.text for turn in chat.transcript.turns] == ["one", "other"]
    assert answer_of(chat.transcript.turns[1]) == "hello other after ['one']"
    assert chat.transcript.state == {"turns": 2}
    chat.restore()
    assert [turn.text for turn in chat.transcript.turns] == ["one", "two", "three"]
    assert answer_of(await chatting.talk("four")) == "hello four after ['one', 'two', 'three']"


async def test_going_back_proposes_what_was_said(chatting, until):
    chat = chatting.chat
    await chatting.talk("one", "two")
    chat.rewind(0)
    assert chat.transcript.turns == []
    assert (chat.take_proposal(), chat.take_proposal()) == (said("one"), None)
    await until(lambda: not chat.busy)
    assert answer_of(await chatting.talk("again")) == "hello again after []"


async def test_going_back_ends_the_turn_that_runs(chatting, until):
    chat = chatting.chat
    await chatting.talk("one")
    chat.send(said("forever"))
    await until(lambda: len(chat.transcript.turns[-1].events) > 1)
    chat.resend(1, said("two"))
    await until(lambda: not chat.busy)
    assert answer_of(chat.transcript.turns[1]) == "hello two after ['one']"
    assert len(chat.transcript.turns) == 2


async def test_changed_code_is_noticed_and_used_by_the_next_turn(chatting, until):
    chat = chatting.chat
    await chatting.talk("one")
    change(chatting, '"hello"', '"good day"')
    chat.session.check_code()
    await until(lambda: chat.session.code_changes)
    assert chat.session.code_changes == ("agent.py",)
    version = chatting.agent.code_version
    turn = await chatting.talk("two")
    # Results of the code before are stale.
    assert chatting.agent.code_version > version
    assert answer_of(turn) == "good day two after ['one']"
    assert (turn.new_code, chat.session.code_changes) == (("agent.py",), ())
    assert (await chatting.talk("three")).new_code == ()
    change(chatting, '"good day"', '"hello"')
    chat.new()
    assert (await chatting.talk("one")).new_code == ()


async def test_a_changed_file_that_the_agent_has_read_elsewhere_is_used_by_the_next_turn(write_agent, until):
    folder = write_agent("""
        from pathlib import Path

        GREETING = (Path(__file__).parent.parent / "data" / "greeting.txt").read_text()

        def root_agent(message, session):
            return GREETING
    """)
    path = folder.parent / "data" / "greeting.txt"
    path.parent.mkdir()
    workbench = Workbench(folder)
    responses = []
    for text in ("hello", "good evening", "good evening"):
        path.write_text(text)
        workbench.chat.send({"role": "user", "parts": [{"text": "hi"}]})
        await until(lambda: not workbench.chat.busy)
        turn = workbench.chat.transcript.turns[-1]
        responses.append((turn.events[-1].content["parts"][0]["text"], turn.new_code))
    assert responses == [
        ("hello", ()),
        ("good evening", ("../data/greeting.txt",)),
        ("good evening", ()),
    ]
    await workbench.close()


async def test_replaying_tells_what_is_different_on_the_new_code(chatting, until):
    chat = chatting.chat
    await chatting.talk("one", "raise", "look")
    change(chatting, '"what": "weather"', '"what": "sky"')
    chat.replay()
    await until(lambda: not chat.busy)
    one, look = chat.transcript.turns
    assert (one.difference.sentence, one.new_code, look.new_code) == ("", ("agent.py",), ())
    assert look.difference.sentence == 'look_up: what is "sky", expected "weather"'
    assert look.difference.turn.calls[0].op == "changed"
    assert [turn.stage for turn in chat.transcript.turns] == [TurnStage.DONE] * 2


async def test_a_replay_that_is_cancelled_goes_on_with_retry(chatting, until):
    chat = chatting.chat
    await chatting.talk("one", "two", "three")
    change(chatting, 'message == "forever"', 'message == "two" and not os.path.exists("go")')
    chat.replay()
    await until(lambda: any(event.kind == "text" for event in chat.transcript.turns[1].events))
    chat.cancel()
    await until(lambda: not chat.busy)
    assert stages(chat) == [TurnStage.DONE, TurnStage.CANCELLED, TurnStage.WAITING]
    (chatting.agent.dir / "go").touch()
    chat.retry()
    await until(lambda: not chat.busy)
    assert stages(chat) == [TurnStage.DONE] * 3
    assert chat.transcript.turns[1].difference.sentence == ""


async def test_broken_code_is_told_and_mended_by_the_next_turn(chatting, until):
    chat = chatting.chat
    change(chatting, 'GREETING = "hello"', "GREETING = hello")
    chat.new()
    await until(lambda: not chat.busy)
    assert chat.transcript.broken.type == chatting.agent.error.type == "NameError"
    failed = await chatting.talk("one")
    assert (failed.stage, failed.error.where) == (TurnStage.FAILED, "agent.py:7")
    change(chatting, "GREETING = hello", 'GREETING = "hello"')
    turn = await chatting.talk("two")
    assert answer_of(turn) == "hello two after []"
    assert (turn.new_code, chat.transcript.broken, chatting.agent.error) == (("agent.py",), None, None)


# Cases


@pytest.fixture
def long_case(chatting, write_set):
    """A case of three turns, the last of which raises."""
    path = chatting.agent.dir / "greetings.evalset.json"
    data = json.loads(path.read_text("utf-8"))
    expected = {
        "invocation_events": [
            {
                "author": "root_agent",
                "content": {
                    "role": "model",
                    "parts": [{"function_call": {"name": "look_up", "args": {"what": "tea"}}}],
                },
            }
        ]
    }
    case = {
        "eval_id": "long",
        "session_input": {"app_name": "a", "user_id": "u", "state": {"turns": 5}},
        "conversation": [
            {
                "user_content": said("look"),
                "final_response": {"role": "model", "parts": [{"text": "expected"}]},
                "intermediate_data": expected,
            },
            {"user_content": said("two")},
            {"user_content": said("raise")},
        ],
    }
    data["eval_cases"].append(case)
    path.write_text(json.dumps(data), "utf-8")
    return CaseId(path.name, "long")


async def run_long(workbench, until, key):
    await workbench.open()
    workbench.navigation.select(workbench.navigation.selection._replace(eval_id=key.eval_id))
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.over)


async def test_a_failing_case_is_continued_from_its_result(chatting, long_case, until):
    await run_long(chatting, until, long_case)
    chat, asked = chatting.chat, chatting.agent.dir / "asked"
    origin = await chat.origin(long_case)
    assert [len(origin.happened), len(origin.messages)] == [2, 3]
    assert origin.refuses(2, "result") is None
    assert origin.refuses(3, "result") == "only 2 of 3 turns finished in the last run of long"
    chat.continue_from(long_case, 2)
    await until(lambda: chat.transcript is not None and not chat.busy)
    assert chat.transcript.title == "long › turn 3"
    assert [(turn.source, turn.text) for turn in chat.transcript.turns] == [
        ("recorded", "look"),
        ("recorded", "two"),
    ]
    assert [turn.state_after for turn in chat.transcript.turns] == [{"turns": 6}, {"turns": 7}]
    assert chat.take_proposal() == said("raise")
    turn = await chatting.talk("three")
    assert answer_of(turn) == "hello three after ['look', 'two']"
    assert turn.state_after == {"turns": 8}
    assert asked.read_text() == "x"


async def test_a_conversation_is_shown_again_where_a_case_cannot_be_read(chatting, until):
    chat = chatting.chat
    before = await chatting.talk("one")
    for cancel in (False, True):
        chat.continue_from(CaseId(chatting.sets.listed[0].case_path, "nobody"), 0)
        assert (chat.loading, chat.transcript.turns) == (True, [])
        assert chat.refuses_to_send() == chat.refuses_to_rewind() == LOADING_NOTICE
        if cancel:
            chat.cancel()
        await until(lambda: not chat.busy)
        assert chat.transcript.turns == [before]


async def test_a_case_is_continued_as_it_expects_itself(chatting, long_case, until):
    chat = chatting.chat
    await chatting.open()
    chat.continue_from(long_case, 1)
    await until(lambda: chatting.messages.notice)
    assert chatting.messages.notice.text == "long has no result; continue from its expected turns"
    assert chat.transcript is None
    chat.continue_from(long_case, 1, source="case")
    await until(lambda: chat.transcript is not None and not chat.busy)
    (recorded,) = chat.transcript.turns
    assert answer_of(recorded) == "expected"
    turn = await chatting.talk("two")
    assert (answer_of(turn), turn.state_after) == ("hello two after ['look']", {"turns": 6})
    assert not (chatting.agent.dir / "asked").exists()


async def test_a_case_is_continued_live(chatting, long_case, until):
    chat = chatting.chat
    await chatting.open()
    chat.continue_from(long_case, 1, how="live")
    await until(lambda: chat.transcript is not None and not chat.busy)
    (live,) = chat.transcript.turns
    assert (live.source, live.state_before) == ("said", {"turns": 5})
    assert (chatting.agent.dir / "asked").read_text() == "x"
    assert chat.take_proposal() == said("two")


async def test_everything_a_user_says_in_a_case_is_played(chatting, long_case, until):
    chat = chatting.chat
    await chatting.open()
    chat.play(long_case)
    await until(lambda: chat.transcript is not None and not chat.busy)
    assert chat.transcript.title == "long"
    assert stages(chat) == [TurnStage.DONE, TurnStage.DONE, TurnStage.FAILED]


async def test_a_case_that_is_gone_cannot_be_continued(chatting, until):
    chat = chatting.chat
    chat.continue_from(CaseId(chatting.sets.listed[0].case_path, "nobody"), 0)
    await until(lambda: chatting.messages.notice)
    assert chatting.messages.notice.text == "Cannot continue nobody: not in greetings.evalset.json"


async def test_another_sub_agent_gets_another_process(write_agent, until):
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    workbench = Workbench(folder)
    workbench.chat.new(agent_name="nobody")
    await until(lambda: not workbench.chat.busy)
    assert "nobody" in workbench.chat.transcript.broken.message
    assert workbench.agent.error is None
    workbench.chat.new()
    await until(lambda: not workbench.chat.busy)
    assert workbench.chat.transcript.broken is None
    await workbench.close()


async def test_a_process_is_ended_although_nobody_waits_for_it(chatting, until):
    await chatting.talk("one")
    session = chatting.chat.session
    host = session._conversation._started.host
    closing = asyncio.create_task(session._end())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    await chatting.agent.warm_hosts.close()
    assert not host.alive


async def test_closing_ends_a_turn(chatting, until):
    chatting.chat.send(said("forever"))
    await until(lambda: chatting.chat.answering and len(chatting.chat.transcript.turns[0].events) > 1)
    await chatting.close()
    assert stages(chatting.chat) == [TurnStage.CANCELLED]


@pytest.mark.parametrize("message", ["keep", "keep, then raise"])
async def test_data_that_the_agent_writes_in_a_chat_makes_no_result_stale(chatting, message):
    chatting.runs.run_all()
    await chatting.runs.finished()
    (case,) = chatting.sets.every_case()
    await chatting.talk(message)
    assert (chatting.agent.dir / "kept.json").exists()
    await chatting.open()
    assert chatting.outcomes.status(case) == "FAILED"
    assert chatting.outcomes.freshness(case).reasons == ()
    change(chatting, "hello", "hi")
    await chatting.open()
    assert chatting.outcomes.freshness(case).reasons == ("agent.py",)
