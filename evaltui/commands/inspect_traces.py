"""`evaltui inspect`: the content of recorded traces and sessions, and missing parts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from evaltui.commands.output import write_lines, write_stdout
from evaltui.commands.recorded import conversations_of
from evaltui.core.model.events import CALLS, Event, Json, is_answer, parts_in, spoken_texts
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_local
from evaltui.text.json_pieces import json_pieces
from evaltui.text.lines import Line
from evaltui.text.values import cut, visible
from evaltui.traces.conversations import Conversations, RecordedConversation, RecordedTurn
from evaltui.traces.drafting import missing_content, shown_message, unknown_state
from evaltui.traces.reading import files_in, read_file
from evaltui.traces.span import Recorded

VERSION = 1

_MAX_TEXT_LENGTH = 70


@dataclass
class _File:
    """The formats of a file, and what it holds; its fields are keys of the JSON output."""

    path: Path
    formats: dict[str, None] = field(default_factory=dict)
    spans: int = 0
    log_records: int = 0
    sessions: int = 0
    scenarios: int = 0


def inspect_traces(options: argparse.Namespace) -> int:
    """Prints the content of the files."""
    files: list[_File] = []
    read = conversations_of(_recorded(options.traces, files))
    if options.format == "json":
        write_stdout("".join(json_pieces(_document(files, read))))
    else:
        write_lines(_lines(files, read))
    return 0


def _document(files: Sequence[_File], read: Conversations) -> Json:
    return {
        "version": VERSION,
        "files": [{**asdict(file), "path": str(file.path), "formats": list(file.formats)} for file in files],
        "conversations": [_conversation_json(conversation) for conversation in read.conversations],
        "scenarios": list(read.scenarios),
        "warnings": list(read.warnings),
    }


def _recorded(paths: Sequence[Path], files: list[_File]) -> Iterator[Recorded]:
    """Reads the files, and adds an entry for each to `files`."""
    for path in files_in(paths):
        file = _File(path)
        files.append(file)
        for recorded in read_file(path):
            file.formats |= recorded.formats
            file.spans += 0 if recorded.sessions else len(recorded.spans)
            file.log_records += len(recorded.logs)
            file.sessions += recorded.sessions
            file.scenarios += len(recorded.scenarios)
            yield recorded


def _conversation_json(conversation: RecordedConversation) -> Json:
    return {
        "id": conversation.id,
        "began": datetime.fromtimestamp(conversation.began, UTC).isoformat() if conversation.began else None,
        "case": conversation.named_case or None,
        "session": None if conversation.session is None else asdict(conversation.session),
        "traces": list(conversation.traces),
        "turns": [_turn_json(turn) for turn in conversation.turns],
    }


def _turn_json(turn: RecordedTurn) -> Json:
    error = turn.error
    return {
        "user": turn.user,
        "calls": _calls(turn.events),
        "response": _response(turn.events),
        "seconds": turn.seconds,
        "spans": turn.spans,
        "error": None if error is None else {"type": error.type, "message": error.message},
        "missing": dict(turn.untold),
        "remarks": list(turn.remarks),
    }


def _calls(events: Sequence[Event]) -> list[Json]:
    """The calls of agents, without those inside tool calls; a call with unknown arguments has no `args`."""
    made = (event for event in events if event.kind == "tool_call" and not event.data.get("nested"))
    calls = (part["function_call"] for event in made for part in parts_in(event.content))
    return [{name: call[name] for name in ("name", "args") if name in call} for call in calls]


def _response(events: Sequence[Event]) -> str | None:
    """The text of the agents' response; None where there is none."""
    answers = [event for event in events if is_answer(event)]
    texts = spoken_texts(event.content for event in answers[-1:])
    return "\n".join(texts) if texts else None


def _lines(files: Sequence[_File], read: Conversations) -> Iterator[Line]:
    for file in files:
        counts = {
            "span": file.spans,
            "log record": file.log_records,
            "session": file.sessions,
            "scenario": file.scenarios,
        }
        held = [counted(count, what) for what, count in counts.items() if count] or [counted(0, "span")]
        facts = "   ".join([", ".join(file.formats) or "empty", *held])
        yield [(visible(str(file.path)), "bold"), (f"   {facts}", "muted")]
    for warning in read.warnings:
        yield [("note  ", "warning"), (visible(warning), "")]
    if not read.conversations and not read.scenarios:
        yield [("No conversation of an agent", "warning")]
    for scenario in read.scenarios:
        yield []
        yield [("scenario   ", ""), (_short(scenario["starting_prompt"]), "bold")]
        yield [("     ", ""), (_short(scenario["conversation_plan"]), "")]
    for conversation in read.conversations:
        yield []
        yield from _conversation(conversation)


def _conversation(conversation: RecordedConversation) -> Iterator[Line]:
    calls = sum(len(_calls(turn.events)) for turn in conversation.turns)
    is_known = all(CALLS not in turn.untold for turn in conversation.turns)
    facts = [counted(len(conversation.turns), "turn"), counted(calls if is_known else None, "call")]
    facts += (
        [f"began {show_local(datetime.fromtimestamp(conversation.began, UTC))}"] if conversation.began else []
    )
    facts += [f"case {visible(conversation.named_case)}"] if conversation.named_case else []
    yield [("conversation ", ""), (visible(conversation.id), "bold"), ("   " + "   ".join(facts), "muted")]
    session = conversation.session
    if session is not None and (session.app_name or session.user_id or session.state):
        state = json.dumps(session.state, ensure_ascii=False)
        names = f"app {session.app_name}   user {session.user_id}   state before the first turn "
        yield [("  session  ", "muted"), (visible(names), "muted"), (_short(state), "")]
    for number, turn in enumerate(conversation.turns, 1):
        user = _short(shown_message(turn)) or UNKNOWN
        seconds = show_duration(turn.seconds) if turn.seconds else UNKNOWN
        yield [(f"  {number}  ", "muted"), (user, "bold"), (f"   {seconds}", "muted")]
        for call in _calls(turn.events):
            args = json.dumps(call["args"], ensure_ascii=False) if "args" in call else UNKNOWN
            yield [("     → ", "muted"), (visible(call["name"]), ""), (f"  {_short(args)}", "muted")]
        response = _response(turn.events)
        if response is not None:
            yield [("     ", ""), (_short(response), "")]
        if turn.error is not None:
            yield [("     ! ", "error"), (_short(f"{turn.error.type}: {turn.error.message}"), "error")]
        yield from ([("     ", ""), (visible(remark), "warning")] for remark in turn.remarks)
    for sentence in unknown_state(session) if session else ():
        yield [("  note  ", "warning"), (visible(sentence), "")]
    for what, remedy in missing_content(conversation.turns):
        yield [("  missing  ", "warning"), (f"{what}: ", ""), (visible(remedy), "")]


def _short(text: str) -> str:
    return visible(cut(" ".join(text.split()), _MAX_TEXT_LENGTH))
