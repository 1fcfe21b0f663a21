"""Talking with the agent: from anywhere, in the transcript, and while a message is written."""

from __future__ import annotations

from evaltui.workbench.actions.action import Action, no_messages
from evaltui.workbench.state import nothing_to_cancel
from evaltui.workbench.workbench import Workbench


def _nothing_to_resend(workbench: Workbench) -> str | None:
    return workbench.chat.refuses_to_repeat()


def _no_conversation(workbench: Workbench) -> str | None:
    """Why the conversation of the last run cannot become a case; only simulated users have one."""
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
        workbench.runs.cancel()


# fmt: off
CHAT: tuple[Action, ...] = (
    Action("chat_from_here", "Chat from this turn", "c", "cases start case result trace console",
        "Continue the selected case from the selected turn in a chat, or start a chat", rank=50,
        ranks={"result": 8}, footer="chat", acts=True),
    Action("write_message", "Write message", "i", "chat",
        "Go to the message field", rank=0, footer="write", acts=True),
    Action("edit_message", "Edit and resend", "e", "chat",
        "Rewind to this message, edit it and send it again", no_messages, rank=0, footer="edit",
        acts=True),
    Action("rewind", "Rewind", "delete D", "chat",
        "Remove this message and everything after it", no_messages, acts=True),
    Action("restore_chat", "Undo rewind", "B", "chat",
        "Restore what the last rewind, resend, replay or new chat removed",
        lambda bench: bench.chat.refuses_to_restore(),
        do=lambda bench: bench.chat.restore(), acts=True),
    Action("session_state", "Show session state", "S", "chat", "Show the whole session state", no_messages),
    Action("cancel_turn", "Cancel turn", "ctrl+c", "chat message",
        "Cancel the turn; a second time forces it to end. Without a turn, cancel the run",
        lambda bench: None if bench.chat.busy or bench.is_running else nothing_to_cancel(), do=_cancel,
        rank=-10, footer=lambda bench: "cancel turn" if bench.chat.busy else "cancel run"),
    Action("retry", "Resend last message", "ctrl+r", "chat message",
        "Send the last message again, in place of its response", _nothing_to_resend,
        do=lambda bench: bench.chat.retry(), rank=0, footer="resend", acts=True),
    Action("save_as_case", "Save as case…", "ctrl+t", "chat message result sessions",
        "Save turns of the conversation as a case, with their expected calls and responses",
        lambda bench: bench.chat.refuses_to_save(), rank=0, ranks={"sessions": 10},
        refusals={"result": _no_conversation, "sessions": None}, footer="save case", acts=True),
    Action("new_chat", "New chat…", "ctrl+n", "chat message",
        "Start a chat with a session state, a user or a sub-agent", rank=0, footer="new", acts=True),
    Action("replay", "Replay and compare", "ctrl+l", "chat message",
        "Send the whole conversation again on the current code and show the differences",
        _nothing_to_resend, do=lambda bench: bench.chat.replay(), rank=60, footer="replay", acts=True),
    Action("send", "Send message", "enter", "message",
        "Send the message", rank=-20, footer="send", acts=True),
    Action("new_line", "New line", "alt+enter ctrl+j shift+enter", "message", "Insert a line break", rank=30),
    Action("leave_message", "Leave message", "escape", "message",
        "Cancel the change of an earlier message, or go to the conversation", rank=-10,
        footer="transcript"),
    Action("respond_to_next", "Switch request", "f7", "message",
        "Respond to the next request, or write a message instead",
        lambda bench: None if bench.chat.waiting() else "No call waits for a response", rank=-10,
        footer="switch"),
    Action("attach_file", "Attach file…", "f6", "message",
        "Attach a file to the message", rank=70, footer="attach", acts=True),
    Action("earlier_message", "Earlier message", "up", "message",
        "On the first line: recall the previous message"),
    Action("later_message", "Later message", "down", "message", "On the last line: recall the next message"),
)
# fmt: on
