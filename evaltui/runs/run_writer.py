"""Writing a run's file during the run."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event, Json, parts_in
from evaltui.core.model.limits import Amount
from evaltui.core.model.outcome import CaseResult, RepeatResult
from evaltui.core.secrets import Secrets
from evaltui.project.packages import own_version
from evaltui.project.settings import secrets_of
from evaltui.runner.plan import Happened
from evaltui.runs.run_file import Ending, RepeatInRun, RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_tables import (
    APPLICATION,
    REPEAT,
    SCHEMA,
    SUMMARY,
    VERSION,
    case_row,
    column_value,
    connect,
    connect_memory,
)
from evaltui.runs.store import STAMP, SUFFIX, RunStore, start_in_name
from evaltui.text.values import valid_text

_TABLES_OF_REPEATS = ("repeats", "scores", "events")
_EVENT = "INSERT INTO events (case_id, repeat, kind, event) VALUES (?, ?, ?, ?)"
_EVAL_CASE = "INSERT OR REPLACE INTO eval_cases VALUES (?, ?)"
_IN_MEMORY_NAME = Path("this run")
# What comes by the thousand is committed together, so many seconds after the last commit.
_COMMIT_SECONDS = 0.2
# Seconds. Another process that locks the file for longer is waited for later on, and at last at the end.
_PATIENCE = 2.0
_RETRY_EVERY = 3.0
_LAST_PATIENCE = 300.0

to_json_text = json.JSONEncoder(separators=(",", ":")).encode


class RunLogError(OSError):
    """Why a run's file can neither be written nor read any more, as a sentence that names it."""


CaseTexts = Iterable[tuple[CaseId, str]]
"""Selected cases, each as JSON text."""


def begin_run(store: RunStore, header: RunHeader, cases: CaseTexts = ()) -> RunWriter:
    """Creates `<utc>-<hex>.sqlite` in the folder of a store, or in the user's folder where that is not
    writable.

    The run gets the number in its header unless another run has it. Other behavior as in `RunWriter`. Raises
    OSError where neither folder is writable.
    """
    try:
        return _begin_run(store, store.make(), header, cases)
    except OSError as error:
        writer = _begin_run(store, store.make_folder_of_user(), header, cases)
        writer.elsewhere = f"Run stored in {writer.path.parent}: {error}"
        return writer


def _begin_run(store: RunStore, folder: Path, header: RunHeader, cases: CaseTexts) -> RunWriter:
    with _lock_folder(folder):
        number = max(header.number or 0, next_number(store))
        path = folder / f"{_stamp(store)}-{uuid.uuid4().hex[:6]}{SUFFIX}"
        numbered, secrets = replace(header, number=number), secrets_of(store.agent_dir)
        return RunWriter(path, numbered, secrets, cases)


def _stamp(store: RunStore) -> str:
    """The time stamp for the id of a new run, after all earlier ones even if the clock was set back."""
    now = datetime.now(UTC)
    for path in reversed(store.files()):
        with suppress(ValueError):
            now = max(now, start_in_name(path) + timedelta(milliseconds=1))
            break
    return f"{now.strftime(STAMP)[:-3]}Z"


def next_number(store: RunStore) -> int:
    """Number of the next run, from 1. Raises OSError."""
    files = store.files()
    # Within a millisecond, ids do not tell which run came first.
    moment = files[-1].name.partition("-")[0] if files else ""
    numbers = []
    for path in files:
        if path.name.startswith(moment):
            # What cannot be read, such as a run of another user, keeps no other from being stored.
            with suppress(OSError, ValueError):
                numbers.append(RunFile(path).number or 0)
    return 1 + max(numbers, default=len(files))


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Locks a folder against other processes, where its file system supports that."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


class RunWriter:
    """A run's file during the run.

    After a kill at any moment, the file is still readable with `RunFile`. Added data is in the file after
    `commit`, or a moment later; after the lock of another process is released. After an OSError, as on a full
    disk, the file is that of an interrupted run. Secrets are masked, except in ids of sets and cases.
    """

    def __init__(self, path: Path | None, header: RunHeader, secrets: Secrets, cases: CaseTexts = ()) -> None:
        """Creates the file; in memory without a path. Raises OSError."""
        self.path = path or _IN_MEMORY_NAME
        self.secrets = secrets
        self.elsewhere = ""
        """Where the file is and why, a sentence; "" for one in the folder that it belongs to."""
        self.on_locked: Callable[[str], None] = lambda text: None
        """Gets a sentence where another process locks the file, once."""
        self._is_told = False
        self._retry_at = 0.0
        self.is_in_memory = path is None
        self.may_continue_in_memory = False
        """Whether the run continues in memory where its file cannot be written to its end."""
        self.problem = ""
        """Why the run continues in memory; "" where it does not."""
        self._numbers: dict[CaseId, int] = {}
        # Statements since the last commit, which a copy in memory needs.
        self._uncommitted: list[tuple[str, Sequence[Sequence[object]]]] = []
        self._committed = time.monotonic()
        if path is None:
            self._db = connect_memory()
            self._create(header, cases)
            self._db.execute("BEGIN IMMEDIATE")
            return
        # Whoever looks at the runs meanwhile finds no file that is not one yet.
        draft = path.with_name(f"{path.name}.begun")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            self._db = connect(draft)
            self._create(header, cases)
            self._db.close()
            draft.rename(path)
            self._db = connect(path)
            self._reopen()
        except OSError:
            with suppress(OSError):
                draft.unlink()
            raise

    def _create(self, header: RunHeader, cases: CaseTexts) -> None:
        with self._translate_errors():
            self._db.execute("PRAGMA synchronous = OFF")
            self._db.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; {SCHEMA}"
            )
            moment, versions = header.started.isoformat(), (own_version(), platform.python_version())
            stopped = column_value(self.secrets.mask_text(header.stopped)) if header.stopped else None
            self._db.execute(
                "INSERT INTO run (started, number, evaltui, python, stopped, header) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (moment, header.number, *versions, stopped, self._header(header)),
            )
            for eval_set in header.sets:
                self._add_set(eval_set)
            self._db.executemany(_EVAL_CASE, self._eval_cases(cases))
            self._db.execute("COMMIT")
        self._uncommitted.clear()

    def _header(self, header: RunHeader) -> str | bytes:
        data = header.to_json()
        masked = self._mask_data(data)
        if header.shards is not None:
            # Ids of sets and cases, by which shards are compared.
            masked["shards"] = data["shards"]
        return to_json_text(masked)

    def _eval_cases(self, cases: CaseTexts) -> Iterator[tuple[int, str | bytes]]:
        for case, text in cases:
            yield self._numbers[case], column_value(self._mask_text(text))

    def _reopen(self) -> None:
        with self._translate_errors():
            # The truncated journal stays beside the file until the run is closed. A process that is killed
            # loses nothing although the disk is not waited for; a machine that stops could. Pages that are
            # written before a commit would lock out whoever reads.
            patience = f"busy_timeout = {int(_PATIENCE * 1000)}"
            for pragma in ("journal_mode = TRUNCATE", "synchronous = OFF", "cache_spill = OFF", patience):
                self._db.execute(f"PRAGMA {pragma}")
            # The write lock tells others that the run goes on.
            self._db.execute("BEGIN IMMEDIATE")

    def _add_set(self, eval_set: SelectedSet) -> None:
        config = None if eval_set.config is None else to_json_text(self._mask_data(eval_set.config))
        defaulted = None if eval_set.defaulted is None else to_json_text(eval_set.defaulted)
        paths = [
            None if path is None else column_value(path) for path in (eval_set.file, eval_set.config_path)
        ]
        not_used = None if eval_set.not_used is None else column_value(eval_set.not_used)
        unselected = to_json_text(eval_set.unselected) if eval_set.unselected else None
        self._execute(
            "INSERT INTO sets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                column_value(eval_set.path),
                column_value(eval_set.eval_set_id),
                eval_set.whole,
                eval_set.fingerprint,
                eval_set.conversations is not None,
                config,
                *paths,
                defaulted,
                not_used,
                unselected,
            ),
        )
        places = eval_set.places or (None,) * len(eval_set.eval_ids)
        for eval_id, place in zip(eval_set.eval_ids, places, strict=True):
            tags, ids = eval_set.tags.get(eval_id), (eval_set.conversations or {}).get(eval_id)
            self._add_case(
                CaseId(eval_set.path, eval_id),
                eval_set.eval_set_id,
                place,
                to_json_text(tags) if tags else None,
                to_json_text(ids) if ids else None,
                eval_set.more.get(eval_id),
            )

    def _add_case(self, case: CaseId, eval_set_id: str, *columns: object) -> int:
        rest = (*columns, None, None, None, None)[:4]
        number = self._numbers[case] = len(self._numbers) + 1
        self._execute(
            "INSERT INTO cases (id, path, eval_id, eval_set_id, place, tags, conversations, runs_asked) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, *map(column_value, case), column_value(eval_set_id), *rest),
        )
        return number

    def _number(self, case: CaseId, eval_set_id: str) -> int:
        return self._numbers.get(case) or self._add_case(case, eval_set_id)

    def set_header(self, header: RunHeader) -> None:
        """Replaces the header, when more files of the agent are known."""
        self._execute("UPDATE run SET header = ?", (self._header(header),))

    def set_agent(self, agent: Json) -> None:
        """Adds the agent's metadata from its host."""
        self._execute("UPDATE run SET agent = ?", (to_json_text(self._mask_data(agent)),))

    def add_note(self, text: str) -> None:
        """Adds a remark on the run, a sentence."""
        self._execute("INSERT INTO notes (text) VALUES (?)", (column_value(self.secrets.mask_text(text)),))

    def stop(self, reason: str) -> None:
        """Adds the reason why cases have no result, a sentence."""
        self._execute("UPDATE run SET stopped = ?", (column_value(self.secrets.mask_text(reason)),))

    def start(self, case: CaseId, eval_set_id: str, repeat: int) -> None:
        """Starts a repeat of a case; data of an earlier attempt is deleted."""
        number = self._number(case, eval_set_id)
        for table in _TABLES_OF_REPEATS:
            self._execute(f"DELETE FROM {table} WHERE case_id = ? AND repeat = ?", (number, repeat))

    def add_event(self, event: Event, text: str = "") -> None:
        """Adds an event; `text` is its JSON text if it is known. It is committed soon."""
        case = CaseId(event.path, event.case) if event.path else None
        number = self._number(case, event.set) if case else None
        text = self._mask_text(text or to_json_text(event.to_json()))
        self._execute(_EVENT, (number, event.repeat, event.kind, text))
        self._commit_soon()

    def add_repeat(self, case: CaseId, eval_set_id: str, repeat: int, result: RepeatResult) -> None:
        """Adds the result of a repeat of a case."""
        self._add_repeat(case, eval_set_id, repeat, REPEAT.write(result))
        self._commit_soon()

    def _add_repeat(self, case: CaseId, eval_set_id: str, repeat: int, data: Json) -> None:
        key = (self._number(case, eval_set_id), repeat)
        self._execute(
            "INSERT OR REPLACE INTO repeats VALUES (?, ?, ?, ?, ?)",
            (*key, data["status"], data["seconds"], self._mask_text(to_json_text(data))),
        )
        self._execute(
            "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?)",
            *(
                (*key, valid_text(metric["name"]), metric["score"], metric["threshold"], metric["status"])
                for metric in data["metrics"]
            ),
        )

    def add_case(self, summary: CaseSummary, result: CaseResult) -> int:
        """Adds the result of a case and returns its number, for `RunFile.case_at`."""
        data = SUMMARY.write(summary)
        cost = summary.cost
        costs = (None,) * 4 if cost is None else (cost.usd, cost.saved_usd, cost.unpriced, cost.unseen)
        number = self._number(summary.id, summary.eval_set_id)
        self._execute(
            "UPDATE cases SET status = ?, runs = ?, passed = ?, policy_met = ?, seconds = ?, tokens = ?, "
            "usd = ?, saved_usd = ?, unpriced = ?, unseen = ?, summary = ?, report = ? WHERE id = ?",
            (
                summary.status.value,
                summary.runs,
                summary.passed,
                summary.policy_met,
                summary.seconds,
                summary.tokens,
                *costs,
                self._mask_text(to_json_text(data)),
                self._mask_text(to_json_text(case_row(result))),
                number,
            ),
        )
        self._commit_soon()
        return number

    def add_spending(self, amount: Amount) -> None:
        """Adds spending that is not part of a result."""
        self._execute("INSERT INTO spending VALUES (?, ?)", (amount.usd, amount.tokens))
        self._commit_soon()

    def copy_repeat(self, earlier: RunFile, finished: RepeatInRun) -> None:
        """Copies the events and the result of a repeat from another run."""
        self.start(finished.case, finished.eval_set_id, finished.repeat)
        number = self._numbers[finished.case]
        self._execute(
            _EVENT,
            *(
                (number, finished.repeat, kind, self._mask_text(text))
                for kind, text in earlier.event_texts(finished.case, finished.repeat)
            ),
        )
        self._add_repeat(finished.case, finished.eval_set_id, finished.repeat, finished.data)
        # Until then, all of it is in memory.
        self._commit_soon()

    def copy_eval_cases(self, earlier: RunFile) -> None:
        """Copies the cases of another run as they were at its start."""
        for row in self._eval_cases(earlier.eval_cases):
            self._execute(_EVAL_CASE, row)
            self._commit_soon()

    def end(self, ending: Ending | None, seconds: float | None = None) -> None:
        """Ends the run: complete with an ending, interrupted without one, after `seconds`."""
        status, seconds = (ending.status.value, ending.seconds) if ending else (None, seconds)
        self._execute("UPDATE run SET status = ?, seconds = ?", (status, seconds))
        self.commit()

    def close(self, ending: Ending | None = None) -> RunFile:
        """Closes the file and opens it for reading; `ending` as in `end`, None after a call of `end`."""
        if ending is not None:
            self.end(ending)
        with self._translate_errors():
            self._wait_for("COMMIT")
            # From here on also a machine that stops loses nothing.
            self._db.execute("PRAGMA synchronous = FULL")
            self._wait_for("UPDATE run SET seconds = seconds")
            self._db.execute("PRAGMA journal_mode = DELETE")
        return RunFile(self.path, self._db)

    def _commit_soon(self) -> None:
        if time.monotonic() - self._committed > _COMMIT_SECONDS:
            self.commit()

    def commit(self) -> None:
        """Commits everything added so far, unless another process locks the file."""
        if time.monotonic() < self._retry_at:
            return
        with self._translate_errors():
            if not self._is_done("COMMIT"):
                # What was added waits for the next time; agents do not.
                self._retry_at = time.monotonic() + _RETRY_EVERY
                return
            self._wait_for("BEGIN IMMEDIATE")
        self._uncommitted.clear()
        self._committed = time.monotonic()

    def _is_done(self, statement: str, *values: object) -> bool:
        """Executes a statement; returns False where another process locks the file."""
        try:
            self._db.execute(statement, values)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            if not self._is_told:
                self._is_told = True
                self.on_locked(f"{self.path.name} is locked by another process; results wait until it ends")
            return False
        return True

    def _wait_for(self, statement: str, *values: object) -> None:
        """Executes a statement after locks of other processes are released. Raises sqlite3.Error."""
        end = time.monotonic() + _LAST_PATIENCE
        while time.monotonic() < end:
            if self._is_done(statement, *values):
                return
        self._db.execute(statement, values)

    def _execute(self, query: str, *rows: Sequence[object]) -> None:
        """Executes a statement once for each row."""
        self._uncommitted.append((query, rows))
        with self._translate_errors():
            self._db.executemany(query, rows)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            why = error if self.path.exists() else "moved or deleted during the run"
            if not self.may_continue_in_memory:
                with suppress(sqlite3.Error):
                    self._db.close()
                raise RunLogError(self.problem or f"{self.path}: {why}") from error
            self.may_continue_in_memory, self.problem = False, f"{self.path}: {why}"
            try:
                self._continue_in_memory()
            except (OSError, sqlite3.Error) as unreadable:
                self.problem = f"{self.path}: emptied or damaged during the run, which lost its results"
                raise RunLogError(self.problem) from unreadable

    def _continue_in_memory(self) -> None:
        """Continues the run in memory. Raises OSError and sqlite3.Error for a file that is not readable
        either."""
        memory = connect_memory()
        try:
            # Of a file that was moved, the open one is all there is.
            with closing(self._db) as file:
                file.rollback()
                file.backup(memory)
        except sqlite3.Error:
            memory = self._read_again()
        self._db, self.is_in_memory = memory, True
        self._db.execute("BEGIN IMMEDIATE")
        for query, rows in self._uncommitted:
            self._db.executemany(query, rows)

    def _read_again(self) -> sqlite3.Connection:
        """A copy of the file in memory. Raises OSError for an unreadable one."""
        memory = connect_memory()
        try:
            with closing(connect(self.path)) as file:
                file.backup(memory)
        except sqlite3.Error as error:
            raise OSError(f"{self.path}: {error}") from error
        return memory

    def _mask_data(self, data: Json) -> Json:
        masked: Json = self.secrets.without(data)
        return masked

    def _mask_text(self, text: str) -> str:
        return self.secrets.mask_json(text, to_json_text)


CaseRun = tuple[str, str, int]
"""The path of a case's file, the id of the case, and the repeat."""
_Stream = tuple[CaseRun, str, str]


class SecretPieces:
    """Masks secrets that are cut over several events of a stream.

    An event whose text ends with a possible start of a secret is held back until the next texts of its stream
    arrive; a stream is a text that the agent streams, or console output.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held: dict[_Stream, list[Happened]] = {}

    def add(self, update: Happened) -> Iterator[Happened]:
        """Adds an update and returns the updates that can be logged now, in the order of each stream."""
        event = update.event
        if (stream := _stream(event)) is None:
            # A message that streamed is whole.
            yield from self._end([stream for stream in self._held if _is_ended_by(stream, event)])
            yield update
            return
        held = [*self._held.pop(stream, ()), update]
        text = "".join(piece for held_update in held for piece in _texts(held_update.event))
        unsettled = self._secrets.open_tail(text)
        held = self._mask_pieces(held, unsettled)
        first = len(held)
        while unsettled > 0:
            first -= 1
            unsettled -= len("".join(_texts(held[first].event)))
        if first < len(held):
            self._held[stream] = held[first:]
        yield from held[:first]

    def end(self, case: CaseRun) -> Iterator[Happened]:
        """The remaining updates of a run of a case."""
        yield from self._end([stream for stream in self._held if stream[0] == case])

    def close(self) -> Iterator[Happened]:
        """The remaining updates of all cases."""
        yield from self._end(list(self._held))

    def _end(self, streams: Iterable[_Stream]) -> Iterator[Happened]:
        for stream in streams:
            yield from self._mask_pieces(self._held.pop(stream))

    def _mask_pieces(self, held: Sequence[Happened], unsettled: int = 0) -> list[Happened]:
        """The updates without secrets that are cut over several of them; the last `unsettled` characters are
        unchanged."""
        pieces = [text for update in held for text in _texts(update.event)]
        masked = self._secrets.mask_pieces(pieces, unsettled)
        if len(pieces) < 2 or masked == pieces:
            return list(held)
        new = iter(masked)
        return [
            Happened(_with_texts(update.event, [next(new) for _ in _texts(update.event)])) for update in held
        ]


def _stream(event: Event) -> _Stream | None:
    """The stream that an event belongs to; None for a single event."""
    case = (event.path, event.case, event.repeat)
    if event.kind == "console" and "text" in event.data:
        return case, "console", str(event.data.get("source"))
    if event.kind == "text" and event.data.get("partial") and _texts(event):
        return case, "text", f"{event.agent}\n{event.branch}"
    return None


def _is_ended_by(stream: _Stream, event: Event) -> bool:
    case, kind, who = stream
    is_of_case = case == (event.path, event.case, event.repeat)
    return is_of_case and kind == "text" and (event.kind == "user" or who.startswith(f"{event.agent}\n"))


def _texts(event: Event) -> list[str]:
    if event.kind == "console":
        return [f"{event.data['text']}\n"]
    parts = parts_in(event.content)
    return [part["text"] for part in parts if isinstance(part.get("text"), str)]


def _with_texts(event: Event, texts: Sequence[str]) -> Event:
    if event.kind == "console":
        return replace(event, data={**event.data, "text": texts[0].removesuffix("\n")})
    rest, content = iter(texts), event.content or {}
    parts = [
        {**part, "text": next(rest)} if isinstance(part.get("text"), str) else part
        for part in content["parts"]
    ]
    return replace(event, content={**content, "parts": parts})
