"""The spool: all that was received, on disk before it is acknowledged, trace by trace.

It is a database of SQLite in one file, which every commit brings to the disk (`synchronous=FULL`): a machine
that loses its power loses nothing that was acknowledged. One listener at a time has it open.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.text.figures import show_size
from evaltui.traces.formats.otlp import read_otlp
from evaltui.traces.receiver.parts import Part
from evaltui.traces.span import Recorded

SPOOL = "spool.sqlite"
LARGEST_SPOOL = 2 * 1024**3
"""Bytes; sessions that were handed on make room for new ones then, the oldest first."""
LARGEST_SESSION = 256 * 1024**2
"""Bytes of a session that is still read into memory."""

_VERSION = 2
# Tells a spool from other databases: "evsp".
_APPLICATION = 0x65767370
_LOCK = "spool.lock"
_PRIVATE = 0o600
# Seconds in which the other thread ends its transaction.
_PATIENCE = 30.0
# A commit looks at the size of the file once in so many.
_SIZE_EVERY = 64
_MAX_AT_ONCE = 1_000
_ROOM = 0.9
_SCHEMA = """
create table part (
    id integer primary key, trace text not null, received real not null, rooted integer not null,
    bytes integer not null, data blob not null
);
create index part_trace on part (trace, received, rooted, bytes);
create table member (
    session text not null, trace text not null, bytes integer not null, waiting integer not null,
    primary key (session, trace)
) without rowid;
create index member_trace on member (trace, bytes);
create view trace as
    select trace as id, max(received) as last, max(rooted) as rooted, sum(bytes) as bytes
    from part group by trace;
create view settled as
    select * from trace
    where exists (select 1 from member where member.trace = trace.id and member.bytes = trace.bytes);
"""
# The session of a trace of which no conversation can be made.
_NO_SESSION = ""
# The trace that stands for those of a session that were deleted; its members are never in `part`.
_DELETED = ""


class SpoolInUseError(Exception):
    """Another process listens for the same folder."""

    def __init__(self, folder: Path, process: str) -> None:
        who = f"process {process}" if process else "another process"
        super().__init__(f"{folder / SPOOL} is open in {who}, which listens already; send to that one")


class SpoolError(Exception):
    """The spool cannot be opened; the message says why, and what to do."""


class SpoolFullError(Exception):
    """The spool is full: nothing can be added for now."""


@dataclass(frozen=True)
class Session:
    """A conversation of the spool, by its id."""

    id: str
    bytes: int
    """Bytes of all of its traces."""
    is_whole: bool = True
    """Whether none of its traces was deleted."""


class Spool:
    """Opened by `open_spool`. Several threads may use it, one at a time, and close it between two uses: one
    whose task was cancelled may still be at work, and would bring the process down."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._database = sqlite3.connect(
            path, timeout=_PATIENCE, check_same_thread=False, isolation_level=None
        )
        # Where a file system cannot have WAL, as some in a network, SQLite stays with a journal.
        self._database.execute("pragma journal_mode=wal")
        self._database.execute("pragma synchronous=full")
        self._commits = 0
        self._is_full = True

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All that a query finds. Raises sqlite3.Error, also where it is closed."""
        with self._lock:
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Context of a transaction: it is done as a whole or not at all. Raises sqlite3.Error."""
        with self._lock:
            self._database.execute("begin immediate")
            try:
                yield self._database
                self._database.execute("commit")
            except BaseException:
                # SQLite ends it by itself where the disk is full.
                if self._database.in_transaction:
                    self._database.execute("rollback")
                raise

    def prepare(self) -> None:
        """Make the tables of a new spool. Raises SpoolError for one of another version."""
        ((version,),) = self.rows("pragma user_version")
        if version == 0:
            marks = f"pragma application_id={_APPLICATION}; pragma user_version={_VERSION};"
            self._database.executescript(f"begin; {_SCHEMA} {marks} commit;")
        elif version != _VERSION:
            raise SpoolError(f"{self._path} is of version {version}, not {_VERSION}. Delete it to begin anew")

    def close(self) -> None:
        """Closes the database: an operation that runs is finished first, later ones raise
        sqlite3.ProgrammingError."""
        with self._lock:
            self._database.close()

    def add(self, parts: Iterable[Part], now: float) -> None:
        """Keep parts, all or none; when this returns, they are on the disk. `now` is seconds since 1970.

        Raises SpoolFullError where the spool or the disk has no room, or the disk fails.
        """
        try:
            with self._transaction() as database:
                self._make_room(database)
                database.executemany(
                    "insert into part (trace, received, rooted, bytes, data) values (?, ?, ?, ?, ?)",
                    ((part.trace_id, now, part.is_rooted, len(part.data), part.data) for part in parts),
                )
        except sqlite3.Error as error:
            raise SpoolFullError(f"{self._path}: {error}") from error

    def _make_room(self, database: sqlite3.Connection) -> None:
        self._commits += 1
        if self._commits % _SIZE_EVERY and not self._is_full:
            return
        self._is_full = (size := _used(database)) > LARGEST_SPOOL
        if not self._is_full:
            return
        excess = size - int(LARGEST_SPOOL * _ROOM)
        oldest = database.execute(f"{_FINISHED} limit {_MAX_AT_ONCE}").fetchall()
        if not oldest:
            full = show_size(LARGEST_SPOOL)
            raise SpoolFullError(f"{self._path} holds {full} of sessions that are not complete yet")
        for trace, amount, _ in oldest:
            _forget(database, [trace])
            excess -= amount
            if excess <= 0:
                break

    def forget(self, before: float) -> None:
        """Delete sessions that were handed on and to which nothing was added since; seconds since 1970."""
        query = f"select id from ({_FINISHED}) where last < ? and id not in ({_GOING_ON})"
        with self._transaction() as database:
            rows = database.execute(query, [before, before]).fetchall()
            _forget(database, [trace for (trace,) in rows])

    def quiet_traces(self, rooted_before: float, before: float, most: int) -> list[tuple[str, int]]:
        """Traces to which nothing was added since a moment, and their bytes: an earlier one for those whose
        first span has not ended."""
        query = (
            "select id, bytes from trace where (last < ? or (rooted and last < ?)) "
            "and id not in (select id from settled) order by last limit ?"
        )
        return self.rows(query, [before, rooted_before, most])

    def read(self, traces: Iterable[str]) -> Iterator[Recorded]:
        """The spans in the parts of traces."""
        for trace in traces:
            for place in self.rows("select id from part where trace = ? order by id", [trace]):
                for (data,) in self.rows("select data from part where id = ?", place):
                    yield read_otlp(json.loads(data))

    def settle(self, members: Iterable[tuple[str, int, Iterable[str]]]) -> None:
        """Traces belong to these sessions, which wait to be handed on. With each are its bytes when it was
        read: one that grew meanwhile stays as it is."""
        with self._transaction() as database:
            for trace, seen, sessions in members:
                size = database.execute("select bytes from trace where id = ?", [trace]).fetchone()
                if size != (seen,):
                    continue
                sessions = tuple(sessions)
                # Later spans may name a session that the first ones did not.
                others = ", ".join("?" * (len(sessions) + 1))
                database.execute(
                    f"update member set waiting = 1 where trace = ? and session not in ({others})",
                    [trace, _NO_SESSION, *sessions],
                )
                for session in sessions or (_NO_SESSION,):
                    database.execute(
                        "insert or replace into member values (?, ?, ?, ?)",
                        [session, trace, seen, session != _NO_SESSION],
                    )

    def waiting(self) -> list[Session]:
        """The sessions that changed since they were handed on."""
        query = (
            "select session, sum(part.bytes), session not in (select session from member where trace = ?) "
            "from member join part on part.trace = member.trace "
            "where session in (select session from member where waiting) "
            "group by session order by max(received)"
        )
        rows = self.rows(query, [_DELETED])
        return [Session(name, size, bool(is_whole)) for name, size, is_whole in rows]

    def traces_of(self, session: str) -> list[str]:
        """The traces of a session that were not deleted."""
        query = "select trace from member where session = ? and trace != ? order by trace"
        rows = self.rows(query, [session, _DELETED])
        return [trace for (trace,) in rows]

    def leave(self, session: str) -> None:
        """Forget a session whose spans are of another one."""
        with self._transaction() as database:
            database.execute("delete from member where session = ?", [session])

    def handed_on(self, session: str) -> None:
        """A session was dealt with: it waits no longer, until there is more of it."""
        with self._transaction() as database:
            database.execute("update member set waiting = 0 where session = ?", [session])


# A trace is not asked for while one of its sessions waits.
_FINISHED = (
    "select id, bytes, last from settled where id not in (select trace from member where session in "
    "(select session from member where waiting)) order by last"
)
# The traces of sessions to which something was added since a moment.
_GOING_ON = (
    "select trace from member where session in (select session from member "
    f"join part on part.trace = member.trace where session != '{_NO_SESSION}' and received >= ?)"
)


def is_spool(path: Path) -> bool:
    """Whether a database is one. Raises sqlite3.Error."""
    with _to_read(path) as database:
        return bool(database.execute("pragma application_id").fetchone() == (_APPLICATION,))


def read_spool(path: Path) -> Iterator[Recorded]:
    """All that a spool holds, part by part, also while a listener has it. Raises sqlite3.Error."""
    with _to_read(path) as database:
        # A listener may delete sessions meanwhile.
        database.execute("begin")
        rows = database.execute("select session from member where trace = ?", [_DELETED]).fetchall()
        yield Recorded(incomplete={session for (session,) in rows})
        for (data,) in database.execute("select data from part order by id"):
            yield read_otlp(json.loads(data))


@contextmanager
def _to_read(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        yield database


@contextmanager
def open_spool(folder: Path) -> Iterator[Spool]:
    """The spool in a folder that exists.

    Raises SpoolInUseError, SpoolError and OSError.
    """
    with (folder / _LOCK).open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise SpoolInUseError(folder, lock.read().strip()) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        path = folder / SPOOL
        # SQLite would make it readable for all.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, _PRIVATE))
        try:
            spool = Spool(path)
        except sqlite3.Error as error:
            raise SpoolError(f"{path}: {error}. Delete it to begin anew") from error
        with closing(spool):
            try:
                spool.prepare()
            except sqlite3.Error as error:
                raise SpoolError(f"{path}: {error}. Delete it to begin anew") from error
            yield spool


def _forget(database: sqlite3.Connection, traces: Sequence[str]) -> None:
    # More of such a session may come, and it would be judged without its first turns.
    database.executemany(
        "insert or ignore into member select session, ?, 0, 0 from member where trace = ? and session != ?",
        ((_DELETED, trace, _NO_SESSION) for trace in traces),
    )
    for table in ("part", "member"):
        database.executemany(f"delete from {table} where trace = ?", [(trace,) for trace in traces])


def _used(database: sqlite3.Connection) -> int:
    """Bytes that are in use; those that became free are used before the file grows."""
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (int(database.execute(f"pragma {name}").fetchone()[0]) for name in names)
    return (pages - free) * size
