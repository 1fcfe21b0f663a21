"""Talking with the agent: from anywhere, in the list of what was said, and while a message is written."""

from __future__ import annotations

from functools import partial

from evaltui.workbench.actions.action import Action, Scope, action
from evaltui.workbench.state import nothing_to_cancel
from evaltui.workbench.workbench import Workbench


def _refuses_to_rewind(workbench: Workbench) -> str | None:
    return workbench.chat.refuses_to_rewind()


def _refuses_to_repeat(workbench: Workbench) -> str | None:
    return workbench.chat.refuses_to_repeat()


def _nothing_waits(workbench: Workbench) -> str | None:
    return None if workbench.chat.waiting() else "No call waits for a response"


def _no_conversation(workbench: Workbench) -> str | None:
    """Of a case that says what its user says, there is a case already."""
    scored = workbench.outcomes.get(workbench.navigation.selection.case)
    if scored is None:
        return "Case not run"
    if scored.stored.outline.turns is not None:
        return "Only for simulated users; this case has its own user texts"
    return None if scored.shown.turns else "No finished turn to save"


def _cancel(workbench: Workbench) -> None:
    """Cancels the turn; the run where no turn is running."""
    if workbench.chat.busy:
        workbench.chat.cancel()
    else:
        workbench.cancel_run()


def _nothing_to_cancel(workbench: Workbench) -> str | None:
    return None if workbench.chat.busy or workbench.is_running else nothing_to_cancel()


_BOTH = (Scope.CHAT, Scope.MESSAGE)
_here = partial(action, where=(Scope.CHAT,))
_writing = partial(action, where=(Scope.MESSAGE,))


CHAT: tuple[Action, ...] = (
    action(
        "chat_from_here",
        "Chat from this turn",
        "Continue the selected case from the selected turn in a chat, or start a chat",
        "c",
        where=(Scope.CASES, Scope.START, Scope.CASE, Scope.RESULT, Scope.TRACE, Scope.CONSOLE),
        rank=5,
        footer="chat",
        acts=True,
    ),
    action(
        "result_to_case",
        "Save as case…",
        "Save the conversation with the simulated user as a case",
        "ctrl+t",
        where=(Scope.RESULT,),
        refusal=_no_conversation,
        rank=0,
        footer="save case",
        acts=True,
    ),
    _here(
        "write_message", "Write message", "Go to the message field", "i", rank=0, footer="write", acts=True
    ),
    _here(
        "trace_chat",
        "Show in trace",
        "Go to the trace of the chat: agents, model calls with their requests, tools",
        "t",
        refusal=_refuses_to_rewind,
        rank=0,
        footer="trace",
    ),
    _here(
        "edit_message",
        "Edit and resend",
        "Rewind to this message, edit it and send it again",
        "e",
        refusal=_refuses_to_rewind,
        rank=0,
        footer="edit",
        acts=True,
    ),
    _here(
        "rewind",
        "Rewind",
        "Remove this message and everything after it",
        "delete",
        "D",
        refusal=_refuses_to_rewind,
        acts=True,
    ),
    _here(
        "restore_chat",
        "Undo rewind",
        "Restore what the last rewind, resend, replay or new chat removed",
        "B",
        do=lambda workbench: workbench.chat.restore(),
        refusal=lambda workbench: workbench.chat.refuses_to_restore(),
        acts=True,
    ),
    _here(
        "session_state",
        "Show session state",
        "Show the whole session state",
        "S",
        refusal=_refuses_to_rewind,
        footer="state",
    ),
    _here(
        "cancel_turn",
        "Cancel turn",
        "Cancel the turn; a second time forces it to end. Without a turn, cancel the run",
        "ctrl+c",
        where=_BOTH,
        do=_cancel,
        refusal=_nothing_to_cancel,
        rank=-1,
        word=lambda workbench: "cancel turn" if workbench.chat.busy else "cancel run",
    ),
    _here(
        "retry",
        "Resend last message",
        "Send the last message again, in place of its response",
        "ctrl+r",
        where=_BOTH,
        do=lambda workbench: workbench.chat.retry(),
        refusal=_refuses_to_repeat,
        rank=0,
        footer="resend",
        acts=True,
    ),
    _here(
        "save_as_case",
        "Save as case…",
        "Save turns of the conversation as a case, with their expected calls and responses",
        "ctrl+t",
        where=_BOTH,
        refusal=lambda workbench: workbench.chat.refuses_to_save(),
        rank=0,
        footer="save case",
        acts=True,
    ),
    _here(
        "new_chat",
        "New chat…",
        "Start a chat with a session state, a user or a sub-agent",
        "ctrl+n",
        where=_BOTH,
        rank=0,
        footer="new",
        acts=True,
    ),
    _here(
        "replay",
        "Replay and compare",
        "Send the whole conversation again on the current code and show the differences",
        "ctrl+l",
        where=_BOTH,
        do=lambda workbench: workbench.chat.replay(),
        refusal=_refuses_to_repeat,
        rank=6,
        footer="replay",
        acts=True,
    ),
    _writing("send", "Send message", "Send the message", "enter", rank=-2, footer="send", acts=True),
    _writing("new_line", "New line", "Insert a line break", "alt+enter", "ctrl+j", "shift+enter", rank=3),
    _writing(
        "leave_message",
        "Leave message",
        "Cancel the change of an earlier message, or go to the conversation",
        "escape",
        rank=-1,
        footer="transcript",
    ),
    _writing(
        "respond_to_next",
        "Switch request",
        "Respond to the next request, or write a message instead",
        "f7",
        rank=-1,
        refusal=_nothing_waits,
        footer="switch",
    ),
    _writing(
        "attach_file",
        "Attach file…",
        "Attach a file to the message",
        "f6",
        rank=7,
        footer="attach",
        acts=True,
    ),
    _writing(
        "message_in_editor",
        "Write in $EDITOR",
        "Write the message in $VISUAL or $EDITOR",
        "ctrl+e",
        footer="$EDITOR",
        acts=True,
    ),
    _writing(
        "earlier_message",
        "Earlier message",
        "On the first line: recall the previous message",
        "up",
        footer="earlier",
    ),
    _writing(
        "later_message", "Later message", "On the last line: recall the next message", "down", footer="later"
    ),
)
