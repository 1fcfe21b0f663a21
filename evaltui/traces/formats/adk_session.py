"""Sessions that google-adk stores: as JSON, and in databases; and its files of scenarios.

A session has the events of its turns and the state at its end. The state before the first turn is that of the
keys that no event has changed. Source: google-adk 2.13, `sessions`, `evaluation/conversation_scenarios.py`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StrictStr
from pydantic.alias_generators import to_camel

from evaltui.core.conversation.adk_steps import is_internal, node_name, step_from_adk
from evaltui.core.model.base_model import DataModel, dump
from evaltui.core.model.content import Content, UsageMetadata
from evaltui.core.model.eval_set import ConversationScenario
from evaltui.core.model.events import (
    ANSWERS,
    CALLS,
    MODEL_CALLS,
    Event,
    Json,
    Step,
    split_step,
    with_own_id,
)
from evaltui.core.model.json_values import ABSENT, field_of
from evaltui.core.model.model_errors import validate_model
from evaltui.text.figures import counted, short_list
from evaltui.text.values import visible
from evaltui.traces.span import Recorded, UnreadableTraceError
from evaltui.traces.writing.turn import LENGTH, OWNER, REMARKS, SESSION, Held, spans_of_turns

_EXPECTED = "expected is a session of google-adk 2.0 to 2.13. For one of a later version, update evaltui"
_SCHEMA = "1"
_SECOND = 1_000_000_000
# Turns are in the order of their times.
_APART = 1e-6
_YEAR_10000 = 253_402_300_800
_NO_REQUESTS = "a session has no requests to models"
_NO_RESPONSE = "the turn has no response in the session: the agent failed or was stopped"
_AT_ONCE = (
    "agents responded in parallel, and the session does not say which response was the last: run the case "
    "instead"
)
# `adk web` keeps the name of a session there. It renames by setting the whole state, of which this is a part.
_WEB = "__session_metadata__"
# Other sessions change these, too.
_SHARED = ("app:", "user:")


class _Stored(DataModel):
    """google-adk's JSON, in either spelling; keys of other versions are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class _Actions(_Stored):
    state_delta: dict[str, Any] | None = None
    rewind_before_invocation_id: str | None = None


class _Event(_Stored):
    author: StrictStr
    id: str | None = None
    invocation_id: str | None = None
    timestamp: Annotated[float, Field(ge=0, lt=_YEAR_10000)] = 0.0
    content: Content | None = None
    usage_metadata: UsageMetadata | None = None
    actions: _Actions | None = None
    partial: bool | None = None

    @property
    def delta(self) -> Json:
        """The changes of the session state, without those that no session keeps."""
        delta = (self.actions.state_delta if self.actions else None) or {}
        return {key: value for key, value in delta.items() if _is_stored(key)}

    @property
    def renames(self) -> bool:
        """Whether `adk web` has renamed the session."""
        delta = (self.actions.state_delta if self.actions else None) or {}
        return self.content is None and _WEB in delta


class _Session(_Stored):
    id: StrictStr
    app_name: StrictStr
    user_id: StrictStr
    state: dict[str, Any] = Field(default_factory=dict)
    events: list[_Event] = Field(default_factory=list)


class _Scenarios(_Stored):
    scenarios: list[ConversationScenario]


def read_scenarios(data: Json) -> Recorded:
    """The scenarios of a file. Raises UnreadableTraceError, naming the place, where one is wrong."""
    read, problems = validate_model(_Scenarios, data)
    if read is None:
        expected = "expected are scenarios with starting_prompt, conversation_plan and perhaps user_persona"
        raise UnreadableTraceError(f"{problems[0].sentence}; {expected}")
    return Recorded(scenarios=[dump(scenario) for scenario in read.scenarios])


def read_session(data: Json) -> Recorded:
    """A session as spans. Raises UnreadableTraceError, naming the place, where it is wrong."""
    session, problems = validate_model(_Session, data)
    if session is None:
        raise UnreadableTraceError(f"{problems[0].sentence}; {_EXPECTED}")
    history = _History(session, field_of(data, "events") or [])
    warnings = [f"session {visible(session.id)}: {warning}" for warning in history.warnings]
    if not history.turns:
        return Recorded(warnings=warnings, sessions=1)
    events = list(history.events())
    about = {"app_name": session.app_name, "user_id": session.user_id, **history.initial_state()}
    held = Held(
        session.id,
        next((event.agent for event in events if event.agent), session.app_name),
        round(history.began * _SECOND),
        {
            SESSION: json.dumps(about),
            OWNER: f"{session.app_name}/{session.user_id}",
            LENGTH: len(session.events),
        },
        history.errors(),
        {key: value for key, value in session.state.items() if _is_stored(key)},
    )
    return Recorded(spans_of_turns(held, events, ()), warnings=warnings, sessions=1)


def _is_stored(key: str) -> bool:
    return not key.startswith("temp:") and not is_internal(key) and key != _WEB


@dataclass
class _Turn:
    """A message of the user and the steps of agents after it."""

    message: Step
    at: float
    """Seconds since 1970."""
    changes: Json
    """Changes of the state since the turn before that no agent made."""
    steps: list[tuple[Step, float]] = field(default_factory=list)

    def unknown(self) -> dict[str, str]:
        """The parts that the session does not have, each with its remedy."""
        parts = {MODEL_CALLS: _NO_REQUESTS}
        steps = [step for step, _ in self.steps]
        # A call that waits for the user ends a turn, too.
        if not steps or not (steps[-1].final or any(step.long_running for step in steps)):
            parts |= dict.fromkeys((ANSWERS, CALLS), _NO_RESPONSE)
        elif any(step.final and _is_beside(step.branch, steps[-1].branch) for step in steps):
            parts[ANSWERS] = _AT_ONCE
        return parts


class _History:
    """The turns of a session, without those that were rewound."""

    def __init__(self, session: _Session, events: Sequence[Json]) -> None:
        self.turns: list[_Turn] = []
        self.warnings: list[str] = []
        self._session = session
        self._changed: set[str] = set()
        self._constant: Json = {}
        rewound, early = _rewound(session.events), 0
        # The state after the last turn, as far as events tell of it, and its changes since.
        state: Json = {}
        outside: Json = {}
        at = 0.0
        for index, (event, data) in enumerate(zip(session.events, events, strict=True)):
            delta = event.delta
            if event.renames:
                self._constant |= {key: value for key, value in delta.items() if key not in self._changed}
                delta = {key: value for key, value in delta.items() if key in self._changed}
            self._changed |= delta.keys()
            content = event.content is not None and bool(event.content.parts)
            is_users = event.author == "user" and not node_name(data)
            if event.partial or index in rewound or (is_users and not content):
                outside |= delta
                continue
            step = _step(data, index)
            if is_users:
                outside |= delta
                changes = {key: value for key, value in outside.items() if state.get(key, ABSENT) != value}
                at = max(event.timestamp, at + _APART)
                self.turns.append(_Turn(step, at, changes))
                state |= changes
                outside = {}
            elif self.turns:
                at = max(event.timestamp, at)
                self.turns[-1].steps.append((step, at))
                state |= delta
            else:
                outside |= delta
                early += 1
        if not self.turns:
            self.warnings.append("no message of a user; left out")
        elif early:
            self.warnings.append(f"{counted(early, 'event')} before the first message left out")

    @property
    def began(self) -> float:
        return self.turns[0].at

    def initial_state(self) -> Json:
        """The state before the first turn, and the keys of which it is not, or not surely, known."""
        state, start = self._session.state, self.turns[0].changes
        constant = self._constant | {
            key: value for key, value in state.items() if _is_stored(key) and key not in self._changed
        }
        return {
            "state": constant | {key: value for key, value in start.items() if value is not None},
            "unknown": sorted(self._changed - start.keys() - constant.keys()),
            "shared": sorted(key for key in constant if key.startswith(_SHARED)),
        }

    def errors(self) -> dict[str, Json]:
        """The errors that ended turns, by the numbers of the turns."""
        last_steps = ((number, turn.steps[-1][0]) for number, turn in enumerate(self.turns) if turn.steps)
        return {
            str(number): {"type": step.error_code, "message": step.error_message or step.error_code}
            for number, step in last_steps
            if step.error_code
        }

    def events(self) -> Iterator[Event]:
        for number, turn in enumerate(self.turns):
            unknown = turn.unknown()
            data: Json = {
                "step": turn.message.id or f"{number}:user",
                "invocation_id": turn.message.invocation_id,
                "timestamp": turn.at,
                "untold": list(unknown),
                "remedies": unknown,
            }
            changes = turn.changes if number else {}
            if changes:
                keys = short_list(sorted(changes))
                data[REMARKS] = [f"state of {keys} set before the turn: a case has no place for it"]
            t = turn.at - self.began
            yield Event("user", turn.message.content, data=data, turn=number, t=t)
            if changes:
                delta = {"delta": changes, "step": f"{number}:state"}
                yield Event("state", data=delta, turn=number, t=t)
            ids: set[str] = set()
            for index, (step, at) in enumerate(turn.steps):
                step = replace(step, id=step.id or f"{number}:{index}", turn=number)
                for event in split_step(with_own_id(step, ids)):
                    yield replace(event, t=at - self.began)


def _is_beside(branch: str, other: str) -> bool:
    """Whether two branches are of agents in parallel: none is in the other."""
    shorter, longer = sorted((f"{branch}.", f"{other}."), key=len)
    return bool(branch and other) and not longer.startswith(shorter)


def _step(data: Json, index: int) -> Step:
    """The step of an event; one in the name of the user is of the node that passes a result on."""
    try:
        step = step_from_adk(data)
    except (ValueError, TypeError, AttributeError) as error:
        reason = str(error).splitlines()[0]
        raise UnreadableTraceError(f"events[{index}]: not an event of ADK: {reason}; {_EXPECTED}") from error
    return replace(step, author=node_name(data)) if step.author == "user" and node_name(data) else step


def _rewound(events: Sequence[_Event]) -> set[int]:
    """The indexes of events that were taken back, as google-adk leaves them out of requests."""
    rewound: set[int] = set()
    index = len(events) - 1
    while index >= 0:
        actions = events[index].actions
        first = index
        if actions and (invocation_id := actions.rewind_before_invocation_id):
            ids = [event.invocation_id for event in events[:index]]
            first = ids.index(invocation_id) if invocation_id in ids else index
            rewound |= {*range(first, index + 1)}
        index = first - 1
    return rewound


def read_session_database(path: Path) -> Iterator[Recorded]:
    """The sessions in a database of google-adk, one at a time.

    Raises UnreadableTraceError for databases of other versions, and for what is wrong in a session.
    """
    try:
        # Transactions are short: an agent may be writing.
        uri = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as database:
            _check_schema(database, path)
            keys = database.execute("SELECT app_name, user_id, id FROM sessions ORDER BY rowid").fetchall()
            for key in keys:
                try:
                    recorded = read_session(_stored_session(database, key))
                except (ValueError, TypeError, AttributeError, RecursionError) as error:
                    raise UnreadableTraceError(f"session {visible(str(key[-1]))}: {error}") from error
                yield recorded
    except sqlite3.Error as error:
        raise UnreadableTraceError(f"a session database that cannot be read: {error}; {_EXPECTED}") from error


def _check_schema(database: sqlite3.Connection, path: Path) -> None:
    columns = {name for _, name, *_ in database.execute("PRAGMA table_info(events)")}
    if "event_data" not in columns:
        raise UnreadableTraceError(
            "a session database of an old schema, with pickled events. Convert it: adk migrate session "
            f"--source_db_url sqlite:///{path} --dest_db_url sqlite:///new.db"
        )
    # SqliteSessionService has none.
    if database.execute("PRAGMA table_info(adk_internal_metadata)").fetchall():
        query = "SELECT value FROM adk_internal_metadata WHERE key = 'schema_version'"
        version = (database.execute(query).fetchone() or ("unknown",))[0]
        if version != _SCHEMA:
            raise UnreadableTraceError(
                f"a session database of schema {version}, expected is schema {_SCHEMA}. Update evaltui, or "
                "save the session as JSON: adk run --save_session"
            )


def _stored_session(database: sqlite3.Connection, key: tuple[str, str, str]) -> Json:
    """The session as google-adk returns it: with the state of the app and of the user."""
    app_name, user_id, session_id = key
    of_session = "WHERE app_name = ? AND user_id = ? AND {} = ?"
    database.execute("BEGIN")
    try:
        states = [
            (prefix, row[0])
            for prefix, query, values in (
                ("", f"sessions {of_session.format('id')}", key),
                ("app:", "app_states WHERE app_name = ?", (app_name,)),
                ("user:", "user_states WHERE app_name = ? AND user_id = ?", (app_name, user_id)),
            )
            for row in database.execute(f"SELECT state FROM {query}", values)
        ]
        events = database.execute(
            f"SELECT event_data FROM events {of_session.format('session_id')} ORDER BY timestamp, rowid", key
        ).fetchall()
    finally:
        database.execute("COMMIT")
    state = {prefix + name: value for prefix, text in states for name, value in json.loads(text).items()}
    stored = [json.loads(text) for (text,) in events]
    return {"id": session_id, "app_name": app_name, "user_id": user_id, "state": state, "events": stored}
