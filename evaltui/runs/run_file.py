"""A run is one SQLite file: its tables, writing them while the run goes on, and asking them.

Nothing else knows SQL of runs. guide/formats.md documents the tables for users.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import sqlite3
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import TypeAdapter

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.budget import Amount
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event, Json
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.model.spending import Cost
from evaltui.core.secrets import Secrets
from evaltui.files.packages import own_version
from evaltui.files.settings import secrets_of
from evaltui.runs.run_header import RunHeader, SelectedSet, header_from_json
from evaltui.runs.store import SUFFIX, RunStore
from evaltui.text.values import in_words

VERSION = 1
"""`user_version` of the file. A newer one is refused; there is no older one."""
_APPLICATION = 0x6576616C
_SCHEMA = """
CREATE TABLE run (
    started TEXT NOT NULL, number INTEGER, evaltui TEXT NOT NULL, python TEXT NOT NULL,
    status TEXT, seconds REAL, header TEXT NOT NULL, agent TEXT
);
CREATE TABLE sets (
    path TEXT PRIMARY KEY, eval_set_id TEXT NOT NULL, whole INTEGER NOT NULL, fingerprint TEXT,
    of_traces INTEGER NOT NULL, config TEXT
);
CREATE TABLE cases (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, eval_id TEXT NOT NULL, eval_set_id TEXT NOT NULL,
    place INTEGER, tags TEXT, conversations TEXT, runs_asked INTEGER,
    status TEXT, runs INTEGER, passed INTEGER, policy_met INTEGER, seconds REAL, tokens REAL,
    usd REAL, saved_usd REAL, unpriced INTEGER, unseen INTEGER, summary TEXT,
    UNIQUE (path, eval_id)
);
CREATE TABLE repeats (
    case_id INTEGER NOT NULL REFERENCES cases, repeat INTEGER NOT NULL, status TEXT NOT NULL,
    seconds REAL NOT NULL, result TEXT NOT NULL,
    UNIQUE (case_id, repeat)
);
CREATE TABLE scores (
    case_id INTEGER NOT NULL REFERENCES cases, repeat INTEGER NOT NULL, metric TEXT NOT NULL,
    score REAL, threshold REAL, status TEXT NOT NULL,
    PRIMARY KEY (case_id, repeat, metric)
) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY, case_id INTEGER REFERENCES cases, repeat INTEGER NOT NULL, kind TEXT NOT NULL,
    event TEXT NOT NULL
);
CREATE INDEX events_of_repeats ON events (case_id, repeat);
CREATE TABLE spending (usd REAL NOT NULL, tokens REAL NOT NULL);
"""
_EVENT = "path, eval_id, eval_set_id, repeat, event FROM events JOIN cases ON cases.id = case_id"
_TABLES_OF_REPEATS = ("repeats", "scores", "events")

# Rows that are read at once.
_PAGE = 1000
# Seconds that one who writes or reads waits for the other.
_WAIT = 60.0
# Events come by the thousand: they are written together, at most this many seconds late.
_COMMIT_EVERY = 0.2

_SUMMARY = TypeAdapter(CaseSummary)
_REPEAT = TypeAdapter(RepeatResult)
_IN_COLUMNS = {"path", "eval_id", "eval_set_id"}
_dumped = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class CaseInRun:
    """A selected case with its result in a run's file."""

    number: int
    """Its place in the selection, from 1, by which it is found again."""
    id: CaseId
    summary: CaseSummary


@dataclass(frozen=True, slots=True)
class RepeatInRun:
    """The result of one run of a case in a run's file."""

    case: CaseId
    eval_set_id: str
    repeat: int
    """From 0."""
    data: Json


@dataclass(frozen=True)
class Ending:
    """How a run ended."""

    status: Status
    seconds: float | None = None
    """Wall time; None where nobody knows."""


@dataclass(frozen=True)
class RunTotals:
    """What the finished cases of a run add up to."""

    counts: Mapping[str, int]
    """Cases by status."""
    flaky_passed: int = 0
    """How many of the flaky ones pass by their policy."""
    tokens: float | None = None
    """Of all cases; None where nobody knows."""
    cost: Cost | None = None
    """Of all cases; None where nobody knows."""
    case_seconds: float | None = None
    """Median of the seconds that a run of a case took; None where nobody knows."""


def _stored(text: str) -> str | bytes:
    """A text as a column has it: one that is not Unicode, as the name of a file may be, as bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _text(value: Any) -> Any:
    """The value of a column; what `_stored` made bytes is a text again."""
    return value.decode("utf-8", "surrogatepass") if type(value) is bytes else value


def _connect(path: Path, wait: float = _WAIT) -> sqlite3.Connection:
    """Raises OSError for a file that is not there or cannot be opened."""
    path.stat()
    # Opened for writing, since a run that was killed is rolled back by whoever reads it first.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        return sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from error


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raises OSError for a file that cannot be read, ValueError for a damaged one."""
    try:
        yield
    except sqlite3.Error as error:
        # What is missing in the file, as a table, is an error of the SQL.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            raise OSError(f"{path} cannot be read: {error}") from error
        raise ValueError(f"{path} is damaged: {error}") from error


class RunFile:
    """A run's file opened for reading, also while the run goes on or after the file was deleted.

    Everything raises OSError for a file that cannot be read, and ValueError for one that is not a run, was
    written by a newer version, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = _connect(path)
        # A connection is in a cycle of references: it would stay open until these are collected.
        weakref.finalize(self, self._db.close)
        with _reading(path):
            if self._value("PRAGMA application_id") != _APPLICATION:
                raise ValueError(f"{path} is not a run of evaltui")
            if (version := self._value("PRAGMA user_version")) > VERSION:
                raise ValueError(f"{path} was written by a newer version of evaltui (format {version})")

    @property
    def id(self) -> str:
        return self.path.name.removesuffix(SUFFIX)

    # The run

    @property
    def number(self) -> int | None:
        """The number of the run, from 1; None for one outside of the runs of an agent."""
        number: int | None = self._value("SELECT number FROM run")
        return number

    @cached_property
    def header(self) -> RunHeader:
        """The settings and the selection that the run was begun with."""
        columns = "started, number, evaltui, python, header"
        started, number, evaltui, python, text = self._row(f"SELECT {columns} FROM run")
        data = {
            **self._json(text),
            "started": started,
            "number": number,
            "evaltui": evaltui,
            "python": python,
        }
        return header_from_json(data, tuple(self._sets()))

    def _sets(self) -> Iterator[SelectedSet]:
        cases: dict[str, list[tuple[Any, ...]]] = {}
        for path, *case in self._rows(
            "SELECT path, eval_id, place, tags, conversations, runs_asked FROM cases ORDER BY id"
        ):
            cases.setdefault(path, []).append(tuple(case))
        for path, eval_set_id, whole, fingerprint, of_traces, config in self._rows(
            "SELECT path, eval_set_id, whole, fingerprint, of_traces, config FROM sets ORDER BY rowid"
        ):
            mine = cases.get(path, [])
            places = tuple(place for _, place, *_ in mine)
            yield SelectedSet(
                path,
                eval_set_id,
                tuple(eval_id for eval_id, *_ in mine),
                None if config is None else self._json(config),
                bool(whole),
                None if None in places else places,
                {eval_id: tuple(self._json(tags, list)) for eval_id, _, tags, *_ in mine if tags},
                {eval_id: tuple(self._json(ids, list)) for eval_id, _, _, ids, _ in mine if ids}
                if of_traces
                else None,
                {eval_id: runs for eval_id, *_, runs in mine if runs},
                fingerprint,
            )

    @property
    def agent(self) -> Json:
        """The agent as its host imported it; {} where the run did not get that far."""
        text = self._value("SELECT agent FROM run")
        data: Json = self._json(text) if text else {}
        return data

    @property
    def ending(self) -> Ending | None:
        """How the run ended; None where it goes on or was interrupted."""
        status, seconds = self._row("SELECT status, seconds FROM run")
        return Ending(Status(status), seconds) if status else None

    @property
    def totals(self) -> RunTotals:
        """Totals of the cases that have a result."""
        done = "FROM cases WHERE status IS NOT NULL"
        counts = Counter(dict(self._rows(f"SELECT status, count(*) {done} GROUP BY status")))
        flaky, tokens, all_tokens, usd, saved, unpriced, unseen, with_cost = self._row(
            "SELECT total(status = 'FLAKY' AND policy_met), sum(tokens * runs), count(tokens) = count(*), "
            f"sum(usd), sum(saved_usd), total(unpriced), total(unseen), count(unpriced) {done}"
        )
        # A case of unknown cost counts as unseen.
        unseen += counts.total() - with_cost
        seconds = [value for (value,) in self._rows(f"SELECT seconds {done} AND seconds IS NOT NULL")]
        return RunTotals(
            counts,
            int(flaky),
            # Of some cases only it would look like little.
            tokens if all_tokens else None,
            Cost(usd, saved, int(unpriced), int(unseen)) if with_cost else None,
            median(seconds) if seconds else None,
        )

    @property
    def spent_without_result(self) -> Amount:
        """What model calls have spent that no result counts."""
        return Amount(*self._row("SELECT total(usd), total(tokens) FROM spending"))

    # Cases

    @property
    def cases(self) -> Iterator[CaseInRun]:
        """The cases that have a result, in the order of the selection."""
        last = 0
        while page := list(
            self._cases(f"WHERE id > ? AND status IS NOT NULL ORDER BY id LIMIT {_PAGE}", last)
        ):
            yield from page
            last = page[-1].number

    def case(self, case: CaseId) -> CaseInRun | None:
        """A case with its result; None without one."""
        return next(
            self._cases("WHERE path = ? AND eval_id = ? AND status IS NOT NULL", *map(_stored, case)), None
        )

    def case_at(self, number: int) -> CaseInRun:
        """A case by its number. Raises ValueError for one without a result."""
        case = next(self._cases("WHERE id = ? AND status IS NOT NULL", number), None)
        if case is None:
            raise ValueError(f"{self.path} has no result of its case {number}")
        return case

    def _cases(self, where: str, *values: object) -> Iterator[CaseInRun]:
        columns = "id, path, eval_id, eval_set_id, summary"
        for number, path, eval_id, eval_set_id, text in self._rows(
            f"SELECT {columns} FROM cases {where}", *values
        ):
            named = {
                "path": "" if path == eval_set_id else path,
                "eval_id": eval_id,
                "eval_set_id": eval_set_id,
            }
            summary = self._read(_SUMMARY, {**self._json(text), **named})
            yield CaseInRun(number, CaseId(path, eval_id), summary)

    def scores(self, numbers: Collection[int]) -> dict[int, dict[str, list[float | None]]]:
        """Scores of the repeats of cases, by the number of the case and the metric."""
        scores: dict[int, dict[str, list[float | None]]] = {}
        rows = self._rows(
            "SELECT case_id, metric, score FROM scores WHERE case_id IN (SELECT value FROM json_each(?)) "
            "ORDER BY case_id, repeat",
            json.dumps(list(numbers)),
        )
        for number, metric, score in rows:
            scores.setdefault(number, {}).setdefault(metric, []).append(score)
        return scores

    # Repeats

    @property
    def repeats(self) -> Iterator[RepeatInRun]:
        """The results of all repeats, in the order in which they were finished."""
        for path, eval_id, eval_set_id, repeat, text in self._paged(
            "SELECT repeats.rowid, path, eval_id, eval_set_id, repeat, result FROM repeats "
            "JOIN cases ON cases.id = case_id WHERE repeats.rowid > ? ORDER BY repeats.rowid"
        ):
            yield RepeatInRun(CaseId(path, eval_id), eval_set_id, repeat, self._json(text))

    def results(self, number: int, *, with_actual: bool = True) -> list[RepeatResult]:
        """The results of the repeats of a case, by its number; `with_actual` with the turns as they ran."""
        events = self.events(number) if with_actual else {}
        return [
            self.result(self._json(text), events.get(repeat, ()))
            for repeat, text in self._rows(
                "SELECT repeat, result FROM repeats WHERE case_id = ? ORDER BY repeat", number
            )
        ]

    def repeat(self, case: CaseId, repeat: int) -> RepeatResult:
        """The result of a repeat of a case, with the turns as they ran. Raises KeyError without one."""
        key = "path = ? AND eval_id = ? AND repeat = ?"
        joined = "JOIN cases ON cases.id = case_id"
        text = self._value(f"SELECT result FROM repeats {joined} WHERE {key}", *map(_stored, case), repeat)
        if text is None:
            raise KeyError(repeat)
        rows = self._rows(f"SELECT {_EVENT} WHERE {key} ORDER BY events.id", *map(_stored, case), repeat)
        return self.result(self._json(text), [self._event(*row) for row in rows])

    def result(self, data: Json, events: Sequence[Event] = ()) -> RepeatResult:
        """The result of a repeat, with the turns as they ran where its events are given."""
        result: RepeatResult = self._read(_REPEAT, data)
        if not events:
            return result
        try:
            return replace(result, actual=tuple(invocations_from_events(events)))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self.path} is damaged: the events of a case cannot be read: {error!r}"
            ) from error

    def _read(self, adapter: TypeAdapter[Any], data: Json) -> Any:
        try:
            return adapter.validate_python(data)
        except ValueError as error:
            raise ValueError(f"{self.path} is damaged: a result cannot be read: {error}") from error

    # Events

    def events(self, number: int) -> dict[int, list[Event]]:
        """The events of a case by repeat, by the number of the case."""
        events: dict[int, list[Event]] = {}
        for row in self._rows(f"SELECT {_EVENT} WHERE case_id = ? ORDER BY events.id", number):
            event = self._event(*row)
            events.setdefault(event.repeat, []).append(event)
        return events

    def events_of(self, case: CaseId) -> dict[int, list[Event]]:
        """The events of a case by repeat; {} for a case that is not in the run."""
        number = self._value("SELECT id FROM cases WHERE path = ? AND eval_id = ?", *map(_stored, case))
        return {} if number is None else self.events(number)

    def events_of_kinds(self, *kinds: str) -> Iterator[Event]:
        """The events of these kinds of all cases."""
        of_kinds = f"events.kind IN ({', '.join('?' * len(kinds))})"
        for row in self._paged(
            f"SELECT events.id, {_EVENT} WHERE events.id > ? AND {of_kinds} ORDER BY events.id", *kinds
        ):
            yield self._event(*row)

    def event_texts(self, case: CaseId, repeat: int) -> Iterator[tuple[str, str]]:
        """The kind and the JSON of each event of a repeat."""
        return self._rows(
            "SELECT kind, event FROM events JOIN cases ON cases.id = case_id "
            "WHERE path = ? AND eval_id = ? AND repeat = ? ORDER BY events.id",
            *map(_stored, case),
            repeat,
        )

    def size_of_events(self, number: int) -> int:
        """Characters of the events of a case, by its number."""
        return int(self._value("SELECT total(length(event)) FROM events WHERE case_id = ?", number))

    def _event(self, path: str, eval_id: str, eval_set_id: str, repeat: int, text: str) -> Event:
        # Ids are as the columns have them, without masks.
        data = {**self._json(text), "path": path, "case": eval_id, "set": eval_set_id, "repeat": repeat}
        try:
            return Event.from_json(data)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.path} is damaged: {error}") from error

    # Asking

    def _json(self, text: Any, kind: type = dict) -> Any:
        try:
            value = json.loads(text)
        except (RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"{self.path} is damaged: {error}") from error
        if not isinstance(value, kind):
            raise ValueError(f"{self.path} is damaged: {in_words(value)} stands in it for a {kind.__name__}")
        return value

    def _rows(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        with _reading(self.path), closing(self._db.execute(query, values)) as cursor:
            # All at once: while rows are fetched, the run cannot commit.
            rows = cursor.fetchall()
        return (tuple(map(_text, row)) for row in rows)

    def _paged(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """The rows of a query without their first column, which orders them and is asked to be above a value.

        A run of many cases does not fit into the memory.
        """
        last = 0
        while rows := list(self._rows(f"{query} LIMIT {_PAGE}", last, *values)):
            yield from (row[1:] for row in rows)
            last = rows[-1][0]

    def _row(self, query: str) -> tuple[Any, ...]:
        row = next(self._rows(query), None)
        if row is None:
            raise ValueError(f"{self.path} is damaged: it has no run")
        return row

    def _value(self, query: str, *values: object) -> Any:
        return next((row[0] for row in self._rows(query, *values)), None)


def begin_run(store: RunStore, header: Json, sets: Sequence[SelectedSet]) -> RunWriter:
    """Creates `<utc>-<hex>.sqlite` in a store.

    The header gets the time of the start unless it has it, and the number: its own unless another run has
    that already. Raises OSError where the folder cannot be written.
    """
    folder = store.make()
    with _locked(folder):
        number = max(header.get("number") or 0, next_number(store))
        now = datetime.now(UTC)
        stamp = now.strftime("%Y%m%dT%H%M%S.%f")[:-3]
        path = folder / f"{stamp}Z-{uuid.uuid4().hex[:6]}{SUFFIX}"
        begun = {"started": now.isoformat(), **header, "number": number}
        return RunWriter(path, begun, sets, secrets_of(store.agent_dir))


def next_number(store: RunStore) -> int:
    """Number of the run that begins next, from 1: one more than that of the newest run. Raises OSError."""
    files = store.files()
    # Within a millisecond, ids do not tell which run came first.
    moment = files[-1].name.partition("-")[0] if files else ""
    numbers = []
    for path in files:
        if path.name.startswith(moment):
            with suppress(ValueError):
                numbers.append(RunFile(path).number or 0)
    return 1 + max(numbers, default=len(files))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time. Not every file system can lock a folder."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def is_being_written(path: Path) -> bool:
    """Whether the run of a file goes on, in this process or in another: it holds the file's write lock.

    Raises OSError for a file that cannot be opened.
    """
    with closing(_connect(path, wait=0)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
        return False


class RunWriter:
    """A run's file while it is written. Killed at any moment, it leaves a file that `RunFile` reads.

    Results are in the file when a method returns, events a moment later. An OSError, as on a full disk, has
    ended the file: it is that of a run that was interrupted. Secrets are masked, except in ids of sets and
    cases.
    """

    def __init__(self, path: Path, header: Json, sets: Sequence[SelectedSet], secrets: Secrets) -> None:
        """Creates the file. `header` needs `started`. Raises OSError."""
        self.path = path
        self.secrets = secrets
        self.has_masked = False
        """Whether there were secrets."""
        self._numbers: dict[CaseId, int] = {}
        self._committed = time.monotonic()
        # Whoever looks at the runs meanwhile finds no file that is not one yet.
        draft = path.with_name(f"{path.name}.begun")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            self._db = _connect(draft)
            self._begin(dict(header), sets)
            draft.rename(path)
            self._db = _connect(path)
            self._go_on()
        except OSError:
            with suppress(OSError):
                draft.unlink()
            raise

    def _begin(self, header: Json, sets: Sequence[SelectedSet]) -> None:
        with self._writing():
            self._db.execute("PRAGMA synchronous = OFF")
            self._db.executescript(
                f"BEGIN; PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {VERSION}; {_SCHEMA}"
            )
            started, number = header.pop("started"), header.pop("number", None)
            shards = header.get("shards")
            masked = self._masked(header)
            if shards is not None:
                # Ids of sets and cases, by which shards are compared.
                masked["shards"] = shards
            self._db.execute(
                "INSERT INTO run (started, number, evaltui, python, header) VALUES (?, ?, ?, ?, ?)",
                (started, number, own_version(), platform.python_version(), _dumped(masked)),
            )
            for one in sets:
                self._add_set(one)
            self._db.execute("COMMIT")
            self._db.close()

    def _go_on(self) -> None:
        with self._writing():
            # The truncated journal stays beside the file until the run is closed. A process that is killed
            # loses nothing although the disk is not waited for; a machine that stops could.
            for pragma in ("journal_mode = TRUNCATE", "synchronous = OFF"):
                self._db.execute(f"PRAGMA {pragma}")
            # The write lock tells others that the run goes on.
            self._db.execute("BEGIN IMMEDIATE")

    def _add_set(self, one: SelectedSet) -> None:
        config = None if one.config is None else _dumped(self._masked(one.config))
        self._db.execute(
            "INSERT INTO sets VALUES (?, ?, ?, ?, ?, ?)",
            (
                _stored(one.path),
                _stored(one.eval_set_id),
                one.whole,
                one.fingerprint,
                one.conversations is not None,
                config,
            ),
        )
        places = one.places or (None,) * len(one.eval_ids)
        for eval_id, place in zip(one.eval_ids, places, strict=True):
            tags, ids = one.tags.get(eval_id), (one.conversations or {}).get(eval_id)
            self._add_case(
                CaseId(one.path, eval_id),
                one.eval_set_id,
                place,
                _dumped(tags) if tags else None,
                _dumped(ids) if ids else None,
                one.more.get(eval_id),
            )

    def _add_case(self, case: CaseId, eval_set_id: str, *columns: object) -> int:
        rest = (*columns, None, None, None, None)[:4]
        cursor = self._db.execute(
            "INSERT INTO cases (path, eval_id, eval_set_id, place, tags, conversations, runs_asked) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*map(_stored, case), _stored(eval_set_id), *rest),
        )
        number = cursor.lastrowid
        assert number is not None
        self._numbers[case] = number
        return number

    def _number(self, case: CaseId, eval_set_id: str) -> int:
        return self._numbers.get(case) or self._add_case(case, eval_set_id)

    def set_agent(self, agent: Json) -> None:
        """Add the agent as its host imported it."""
        with self._writing():
            self._db.execute("UPDATE run SET agent = ?", (_dumped(self._masked(agent)),))

    def start(self, case: CaseId, eval_set_id: str, repeat: int) -> None:
        """A repeat of a case begins, or begins anew after a crash: what came of it before is deleted."""
        with self._writing():
            number = self._number(case, eval_set_id)
            for table in _TABLES_OF_REPEATS:
                self._db.execute(f"DELETE FROM {table} WHERE case_id = ? AND repeat = ?", (number, repeat))

    def add_event(self, event: Event, text: str = "") -> None:
        """Add an event; `text` is the same as JSON, if it is known. It is committed soon."""
        case = CaseId(event.path, event.case) if event.path else None
        with self._writing():
            number = self._number(case, event.set) if case else None
            self._db.execute(
                "INSERT INTO events (case_id, repeat, kind, event) VALUES (?, ?, ?, ?)",
                (number, event.repeat, event.kind, self._masked_text(text or _dumped(event.to_json()))),
            )
        if time.monotonic() - self._committed > _COMMIT_EVERY:
            self._commit()

    def add_repeat(self, case: CaseId, eval_set_id: str, repeat: int, result: RepeatResult) -> None:
        """Add the result of a repeat of a case, without the turns as they ran: the events tell of them."""
        data = _REPEAT.dump_python(result, mode="json", exclude_defaults=True, exclude={"actual"})
        self._add_repeat(case, eval_set_id, repeat, data)
        # Nothing may follow for long, while another repeat hangs.
        self._commit()

    def _add_repeat(self, case: CaseId, eval_set_id: str, repeat: int, data: Json) -> None:
        with self._writing():
            key = (self._number(case, eval_set_id), repeat)
            self._db.execute(
                "INSERT OR REPLACE INTO repeats VALUES (?, ?, ?, ?, ?)",
                (*key, data["status"], data.get("seconds", 0.0), self._masked_text(_dumped(data))),
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (*key, one["name"], one["score"], one["threshold"], one["status"])
                    for one in data.get("metrics", ())
                ],
            )

    def add_case(self, summary: CaseSummary) -> int:
        """Add the result of a case; returns its number, for `RunFile.case_at`."""
        data = _SUMMARY.dump_python(summary, mode="json", exclude_defaults=True, exclude=_IN_COLUMNS)
        cost = summary.cost
        costs = (None,) * 4 if cost is None else (cost.usd, cost.saved_usd, cost.unpriced, cost.unseen)
        with self._writing():
            number = self._number(summary.id, summary.eval_set_id)
            self._db.execute(
                "UPDATE cases SET status = ?, runs = ?, passed = ?, policy_met = ?, seconds = ?, tokens = ?, "
                "usd = ?, saved_usd = ?, unpriced = ?, unseen = ?, summary = ? WHERE id = ?",
                (
                    summary.status.value,
                    summary.runs,
                    summary.passed,
                    summary.policy_met,
                    summary.seconds,
                    summary.tokens,
                    *costs,
                    self._masked_text(_dumped(data)),
                    number,
                ),
            )
        self._commit()
        return number

    def add_spending(self, amount: Amount) -> None:
        """Add what model calls have spent that no result counts."""
        with self._writing():
            self._db.execute("INSERT INTO spending VALUES (?, ?)", (amount.usd, amount.tokens))
        self._commit()

    def copy_repeat(self, earlier: RunFile, stored: RepeatInRun) -> None:
        """Copy the events and the result of a repeat from another run."""
        self.start(stored.case, stored.eval_set_id, stored.repeat)
        number = self._numbers[stored.case]
        with self._writing():
            self._db.executemany(
                "INSERT INTO events (case_id, repeat, kind, event) VALUES (?, ?, ?, ?)",
                [
                    (number, stored.repeat, kind, self._masked_text(text))
                    for kind, text in earlier.event_texts(stored.case, stored.repeat)
                ],
            )
        self._add_repeat(stored.case, stored.eval_set_id, stored.repeat, stored.data)

    def close(self, ending: Ending | None = None) -> None:
        """End the file. With an ending the run is complete, without one it was interrupted."""
        status, seconds = (ending.status.value, ending.seconds) if ending else (None, None)
        with self._writing():
            self._db.execute("COMMIT")
            # From here on also a machine that stops loses nothing.
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("UPDATE run SET status = ?, seconds = ?", (status, seconds))
            self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.close()

    def _commit(self) -> None:
        with self._writing():
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")
        self._committed = time.monotonic()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.close()
            raise OSError(f"{self.path}: {error}") from error

    def _masked(self, data: Json) -> Json:
        masked: Json = self.secrets.without(data)
        self.has_masked |= masked is not data
        return masked

    def _masked_text(self, text: str) -> str:
        masked = self.secrets.in_json(text, _dumped)
        self.has_masked |= masked is not text
        return masked
