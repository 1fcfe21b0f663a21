"""Conversations of recorded traces and sessions as transcripts, which are saved as cases like any other."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from evaltui.documents.files import is_there, typed_path
from evaltui.exchange.row_files import CSV_SUFFIXES
from evaltui.text.figures import counted
from evaltui.text.keys import key_of
from evaltui.traces.conversations import RecordedConversation, conversations_in
from evaltui.traces.drafting import not_expected, turn_events, unknown_state, unusable
from evaltui.traces.reading import read_files
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.chat import saving
from evaltui.workbench.chat.conversation import ChatTurn, SessionStart, Transcript, TurnStage


def dropped_path(text: str) -> Path:
    """The path in a text that was typed, pasted or dragged into a field: without quotes or `file://`."""
    text = text.strip()
    if text.startswith("file://"):
        return Path(unquote(text.removeprefix("file://").removeprefix("localhost")))
    if not is_there(typed_path(text)):
        try:
            words = shlex.split(text)
        except ValueError:
            words = []
        text = words[0] if len(words) == 1 else text
    return typed_path(text)


def path_problem(text: str) -> str | None:
    """Why no traces can be read from a path, as a sentence."""
    return None if is_there(dropped_path(text)) else "No such file"


def read_conversations(text: str) -> tuple[RecordedConversation, ...]:
    """The conversations in a file of traces, or in a folder of such files.

    Raises OSError, and ValueError for unreadable files, and for files without a conversation.
    """
    path = dropped_path(text)
    if path.suffix.lower() in CSV_SUFFIXES:
        raise ValueError(f"{path} is a table; `evaltui import FILE --into SET` makes cases of its rows")
    read = conversations_in(read_files([path]))
    if not read.conversations:
        hint = "; `evaltui import FILE --into SET` makes cases of its scenarios" if read.scenarios else ""
        raise ValueError(f"{path} has no conversation of an agent{hint}")
    return read.conversations


def transcript_of(conversation: RecordedConversation) -> tuple[Transcript, str]:
    """The turns that a case can have, and a sentence about the turns left out; "" for none.

    Raises ValueError for a conversation without such turns.
    """
    turns: list[ChatTurn] = []
    left_out: list[str] = []
    missing: list[str] = []
    for number, turn in enumerate(conversation.turns):
        if reason := unusable(turn):
            left_out.append(f"turn {number + 1} {reason}")
            continue
        missing += [*not_expected(turn), *turn.remarks]
        events = turn_events(conversation, number)
        content = events[0].content or {"role": "user", "parts": []}
        after = conversation.state_after(number)
        turns.append(
            ChatTurn(content, "recorded", TurnStage.DONE, events, state_after=after, spent=turn.seconds)
        )
    if not turns:
        raise ValueError(left_out[0])
    remarks = [f"{counted(len(left_out), 'turn')} left out: {left_out[0]}"] if left_out else []
    session = conversation.session
    if session is None:
        transcript = Transcript(conversation.id, turns=turns, has_unknown_state=True)
    else:
        start = SessionStart(session.app_name, session.user_id, state=session.state)
        transcript = Transcript(conversation.id, start, turns=turns)
        missing += unknown_state(session)
    return transcript, "; ".join([*remarks, *missing[:1]])


def save_all(agent: AgentState, editing: Editing, conversations: Iterable[RecordedConversation]) -> None:
    """Adds a case of each conversation to the selected set, unsaved, and says how many."""
    added, problem = 0, ""
    for conversation in conversations:
        try:
            transcript, _ = transcript_of(conversation)
            choices = saving.propose_choices(editing, transcript)
        except ValueError as error:
            problem = problem or f"; {conversation.id} not added: {error}"
            continue
        if not saving.save(agent, editing, transcript, choices):
            return
        added += 1
    if added and editing.navigation.file is not None:
        where = f"to {editing.navigation.file.name}   {key_of('save')} save"
        editing.say(f"Added {counted(added, 'case')} {where}{problem}")
    else:
        editing.say(f"No case added{problem}")
