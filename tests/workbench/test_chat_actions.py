"""The keys of the chat: what they do, and why not."""

import pytest

from evaltui.workbench.actions import ACTIONS_BY_ID, Scope, hints
from evaltui.workbench.chat.conversation import ChatTurn, Transcript, TurnStage
from evaltui.workbench.state import Stage
from evaltui.workbench.workbench import Workbench


@pytest.fixture
def workbench(tmp_path):
    return Workbench(tmp_path)


def test_before_anything_is_said_there_is_nothing_to_go_back_to(workbench):
    for name in ("edit_message", "rewind", "session_state", "retry", "save_as_case", "replay"):
        assert ACTIONS_BY_ID[name].refusal(workbench) == "No messages yet"
    assert ACTIONS_BY_ID["restore_chat"].refusal(workbench) == "No rewind to undo"
    assert ACTIONS_BY_ID["cancel_turn"].refusal(workbench) == "Nothing to cancel; q quits"
    for name in ("send", "new_chat", "write_message", "chat_from_here"):
        assert ACTIONS_BY_ID[name].refusal(workbench) is None


def test_after_a_turn_there_is(workbench):
    turn = ChatTurn({"parts": [{"text": "hi"}]}, stage=TurnStage.DONE)
    workbench.chat.transcript = Transcript("t", turns=[turn])
    for name in ("edit_message", "rewind", "session_state", "retry", "replay"):
        assert ACTIONS_BY_ID[name].refusal(workbench) is None
    assert ACTIONS_BY_ID["save_as_case"].refusal(workbench) == "Loading eval sets…"


@pytest.mark.parametrize("name", ["retry", "replay", "restore_chat"])
def test_what_cannot_be_done_is_said(workbench, name):
    ACTIONS_BY_ID[name].do(workbench)
    assert workbench.messages.notice.text == ACTIONS_BY_ID[name].refusal(workbench)


async def test_ctrl_c_ends_the_turn_and_a_second_one_forces_it(write_agent, until, open_workbench):
    folder = write_agent("import time\ndef root_agent(message, session):\n    time.sleep(60)\n")
    workbench = await open_workbench(folder)
    workbench.chat.send({"role": "user", "parts": [{"text": "hi"}]})
    await until(lambda: workbench.chat.transcript.turns[0].events)
    cancel = ACTIONS_BY_ID["cancel_turn"]
    assert (cancel.refusal(workbench), cancel.footer_word(workbench)) == (None, "cancel turn")
    assert cancel.keys == ACTIONS_BY_ID["cancel_run"].keys == ("ctrl+c",)
    assert cancel in hints(Scope.CHAT, lambda name: ACTIONS_BY_ID[name].refusal(workbench, Scope.CHAT))
    host = workbench.chat.session._conversation._started.host
    cancel.do(workbench)
    assert workbench.messages.notice.text == "Cancelling… (force-stop in 3 s)"
    assert host.alive
    cancel.do(workbench)
    await workbench.chat._forcing
    assert not host.alive
    await until(lambda: not workbench.chat.busy)
    assert workbench.chat.transcript.turns[0].stage is TurnStage.CANCELLED


async def test_ctrl_c_in_the_chat_ends_a_run_where_no_turn_runs(
    write_agent, write_set, until, open_workbench
):
    folder = write_agent("import time\ndef root_agent(message, session):\n    time.sleep(60)\n")
    write_set(folder, endless=("hi", ""))
    workbench = await open_workbench(folder)
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.running)
    assert ACTIONS_BY_ID["cancel_turn"].footer_word(workbench) == "cancel run"
    host = workbench.runs._host.host
    ACTIONS_BY_ID["cancel_turn"].do(workbench)
    assert workbench.runs.current.stage is Stage.CANCELLING
    ACTIONS_BY_ID["cancel_turn"].do(workbench)
    await workbench.runs._forcing
    assert not host.alive
    await until(lambda: workbench.runs.current.over)
