"""Talking with the agent: from anywhere, in the list of what was said, and while a message is written."""

from __future__ import annotations

from functools import partial

from evaltui.workbench.actions.action import Action, Scope, action
from evaltui.workbench.state import NOTHING_TO_CANCEL
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
        return "there is no conversation here yet: r runs the case"
    if scored.stored.outline.turns is not None:
        return "the case says itself what its user says; this is for simulated users"
    return None if scored.shown.turns else "no turn went through to its end"


def _cancel(workbench: Workbench) -> None:
    """Cancels the turn; the run where no turn is running."""
    if workbench.chat.busy:
        workbench.chat.cancel()
    else:
        workbench.runs.cancel()


def _nothing_to_cancel(workbench: Workbench) -> str | None:
    return None if workbench.chat.busy or workbench.runs.is_running else NOTHING_TO_CANCEL


_BOTH = (Scope.CHAT, Scope.MESSAGE)
_here = partial(action, where=(Scope.CHAT,))
_writing = partial(action, where=(Scope.MESSAGE,))


CHAT: tuple[Action, ...] = (
    action(
        "chat_from_here",
        "chat",
        "Continue the selected case, from the selected turn, in a conversation; without a case begin one",
        "c",
        where=(Scope.CASES, Scope.START, Scope.CASE, Scope.RESULT, Scope.TRACE, Scope.CONSOLE),
        rank=5,
    ),
    action(
        "result_to_case",
        "to a case",
        "Make a case of what was said to a simulated user: choose turns and what is expected of them",
        "ctrl+t",
        where=(Scope.RESULT,),
        refusal=_no_conversation,
        rank=0,
    ),
    _here("write_message", "write", "Go to the message and write", "i", rank=0),
    _here("toggle_result", "result", "Show the result below its call, and fold it again", "space"),
    _here(
        "edit_message",
        "edit",
        "Change this message and send it again: the conversation goes back to there",
        "e",
        refusal=_refuses_to_rewind,
        rank=0,
    ),
    _here(
        "rewind",
        "rewind",
        "Go back to before this message: it and what followed are taken away",
        "delete",
        "D",
        refusal=_refuses_to_rewind,
    ),
    _here(
        "restore_chat",
        "bring back",
        "Bring back what the last rewind, resend, replay or new conversation took away",
        "B",
        do=lambda workbench: workbench.chat.restore(),
        refusal=lambda workbench: workbench.chat.refuses_to_restore(),
    ),
    _here("session_state", "state", "Show the session state in full", "S", refusal=_refuses_to_rewind),
    _here(
        "cancel_turn",
        "cancel turn",
        "Cancel turn; a second time forces it to end. Without a turn, cancel the run",
        "ctrl+c",
        where=_BOTH,
        do=_cancel,
        refusal=_nothing_to_cancel,
        rank=-1,
        word=lambda workbench: "cancel turn" if workbench.chat.busy else "cancel run",
    ),
    _here(
        "retry",
        "again",
        "Send the last message again, in place of what came of it",
        "ctrl+r",
        where=_BOTH,
        do=lambda workbench: workbench.chat.retry(),
        refusal=_refuses_to_repeat,
        rank=0,
    ),
    _here(
        "save_as_case",
        "to a case",
        "Make a case of the conversation: choose turns and what is expected of them",
        "ctrl+t",
        where=_BOTH,
        refusal=lambda workbench: workbench.chat.refuses_to_save(),
        rank=0,
    ),
    _here(
        "new_chat",
        "new",
        "Begin a new conversation: with a state, a user, a sub-agent",
        "ctrl+n",
        where=_BOTH,
        rank=0,
    ),
    _here(
        "replay",
        "replay",
        "Send the whole conversation again, on the code as it is now, and show what is different",
        "ctrl+l",
        where=_BOTH,
        do=lambda workbench: workbench.chat.replay(),
        refusal=_refuses_to_repeat,
        rank=6,
    ),
    _writing("send", "send", "Send the message", "enter", rank=-2),
    _writing("new_line", "new line", "Begin a new line", "alt+enter", "ctrl+j", "shift+enter", rank=3),
    _writing(
        "leave_message",
        "to the list",
        "Cancel the change of an earlier message; else go to the conversation",
        "escape",
        rank=-1,
    ),
    _writing(
        "respond_to_next",
        "switch",
        "Respond to the next call that waits, or send a message instead",
        "f7",
        rank=-1,
        refusal=_nothing_waits,
    ),
    _writing("attach_file", "attach", "Send a file along", "f6", rank=7),
    _writing("message_in_editor", "$EDITOR", "Go on in $VISUAL or $EDITOR", "ctrl+e"),
    _writing("earlier_message", "earlier", "On the first line: the message sent before", "up"),
    _writing("later_message", "later", "On the last line: the message sent after it", "down"),
    _writing("earlier_rows", "scroll up", "Scroll the conversation up", "pageup"),
    _writing("later_rows", "scroll down", "Scroll the conversation down", "pagedown"),
)
