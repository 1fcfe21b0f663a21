"""Reading a run's file, during the run or afterwards."""

from __future__ import annotations

import json
import sqlite3
import time
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from itertools import chain
from operator import add
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.compare.totals import Totals
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.events import Event, Json
from evaltui.core.model.limits import Amount
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.model.spending import Cost, Spending
from evaltui.core.secrets import Secrets
from evaltui.runs.run_header import MergedPart, RunHeader, SelectedSet
from evaltui.runs.run_tables import (
    APPLICATION,
    RANKED,
    REPEAT,
    SUMMARY,
    VERSION,
    Row,
    column_text,
    column_value,
    connect,
    whole_case,
)
from evaltui.runs.store import run_id
from evaltui.text.values import value_in_words

_SPENDING_ROW = Row(Spending)
_EVENT = "path, eval_id, eval_set_id, repeat, event FROM events JOIN cases ON cases.id = case_id"
# The scores of the deciding repeats of cases, which are a JSON list of numbers.
_DECIDING_SCORES = f"""scores WHERE case_id IN (SELECT value FROM json_each(?)) AND repeat = (
    SELECT repeat FROM repeats JOIN cases ON cases.id = case_id WHERE repeats.case_id = scores.case_id
    ORDER BY repeats.status <> cases.status, CASE repeats.status {RANKED} END, repeat LIMIT 1
)"""
# Rows that are read at once.
_PAGE_ROWS = 1000
# Seconds until one who writes has taken the lock again that was free when it was looked for.
_RETRY_PAUSES = (0.01, 0.02, 0.0)


@dataclass(frozen=True, slots=True)
class CaseInRun:
    """A case with a result in a run's file."""

    number: int
    """Its position in the selection, from 1, which is its key in the file."""
    id: CaseId
    summary: CaseSummary


@dataclass(frozen=True, slots=True)
class RepeatInRun:
    """The result of one repeat of a case in a run's file."""

    case: CaseId
    """Counted from 0."""
    eval_set_id: str
    repeat: int
    """From 0."""
    data: Json


@dataclass(frozen=True)
class Ending:
    """The end of a run."""

    status: Status
    seconds: float | None = None
    """Wall time in seconds; None where it is unknown."""


@dataclass(frozen=True, slots=True)
class MetricTotal:
    """Totals of a metric over several cases."""

    cases: int = 0
    """Number of cases for which the metric has a verdict, or should have one."""
    passed: int = 0
    scored: int = 0
    """Number of cases with a score."""
    sum: float = 0.0
    """Sum of the scores."""
    failed: int = 0
    not_evaluated: int = 0

    @property
    def status(self) -> Status:
        """The worst status of the metric in a case."""
        if self.failed:
            return Status.FAILED
        if self.cases > self.passed + self.not_evaluated:
            return Status.ERROR
        return Status.NOT_EVALUATED if self.not_evaluated else Status.PASSED

    def __add__(self, other: MetricTotal) -> MetricTotal:
        return MetricTotal(*map(add, astuple(self), astuple(other)))


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raises OSError for an unreadable file and ValueError for a damaged one, in place of SQLite's errors."""
    try:
        yield
    except sqlite3.Error as error:
        # What is missing in the file, as a table, is an error of the SQL.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code == sqlite3.SQLITE_NOTADB:
            raise ValueError(f"{path} is not a run of evaltui") from error
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            raise OSError(f"{path} cannot be read: {error}") from error
        raise ValueError(f"{path} is damaged: {error}") from error


class RunFile:
    """A run's file opened for reading, also during the run and after the file was deleted.

    Every method raises OSError for an unreadable file, and ValueError for a file that is no run, has another
    version, or is damaged.
    """

    def __init__(self, path: Path, db: sqlite3.Connection | None = None) -> None:
        """Opens the file; `db` is an existing connection to it, which is closed with this object."""
        self.path = path
        self._db = db or connect(path)
        # A connection is in a cycle of references: it would stay open until these are collected.
        weakref.finalize(self, self._db.close)
        with translate_errors(path):
            if self._value("PRAGMA application_id") != APPLICATION:
                raise ValueError(f"{path} is not a run of evaltui")
            if (version := self._value("PRAGMA user_version")) != VERSION:
                age = "a newer" if version > VERSION else "an older"
                raise ValueError(f"{path} was written by {age} version of evaltui (format {version})")

    @property
    def id(self) -> str:
        return run_id(self.path)

    @property
    def is_in_memory(self) -> bool:
        """Whether the run is in memory because its file is missing or incomplete."""
        return not self._value("SELECT length(file) FROM pragma_database_list WHERE name = 'main'")

    # The run

    @property
    def number(self) -> int | None:
        """The number of the run, from 1; None for a run outside of an agent's runs."""
        number: int | None = self._value("SELECT number FROM run")
        return number

    @cached_property
    def header(self) -> RunHeader:
        """The settings and the selection of the run."""
        columns = ("started", "number", "evaltui", "stopped")
        *values, text = self._row(f"SELECT {', '.join(columns)}, header FROM run")
        in_columns = dict(zip(columns, values, strict=True))
        in_columns["stopped"] = in_columns["stopped"] or ""
        try:
            return RunHeader.from_json(self._json(text), sets=tuple(self._sets()), **in_columns)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            place = ".".join(("header", *map(str, problem["loc"])))
            raise ValueError(f"{self.path} is damaged: {place}: {problem['msg']}") from error

    def _sets(self) -> Iterator[SelectedSet]:
        cases: dict[str, list[tuple[Any, ...]]] = {}
        for path, *case in self._rows(
            "SELECT path, eval_id, place, tags, conversations, runs_asked FROM cases ORDER BY id"
        ):
            cases.setdefault(path, []).append(tuple(case))
        columns = "fingerprint, file, config_path, not_used, whole, of_traces, config, defaulted"
        for path, eval_set_id, fingerprint, file, config_path, not_used, whole, *rest in self._rows(
            f"SELECT path, eval_set_id, {columns} FROM sets ORDER BY rowid"
        ):
            if not isinstance(path, str):
                raise ValueError(f"{self.path} is damaged: {value_in_words(path)} is the path of a set")
            of_traces, config, defaulted = rest
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
                file,
                config_path,
                None if defaulted is None else tuple(self._json(defaulted, list)),
                not_used,
            )

    @cached_property
    def parts(self) -> tuple[MergedPart, ...]:
        """The runs that its results are of: others, too, where it was merged or resumed."""
        header = self.header
        if header.is_merged:
            return header.parts
        others = {number for part in header.parts for number in part.cases}
        numbers = (number for number, _ in enumerate(header.selected(), start=1) if number not in others)
        return (*header.parts, MergedPart(self.id, header.started, header.resumed, tuple(numbers)))

    @property
    def agent(self) -> Json:
        """The metadata of the agent from its host; {} where the agent was not imported."""
        text = self._value("SELECT agent FROM run")
        data: Json = self._json(text) if text else {}
        return data

    @property
    def ending(self) -> Ending | None:
        """The end of the run; None for a run in progress or interrupted."""
        status, seconds = self._row("SELECT status, seconds FROM run")
        return Ending(self.header.status_of([Status(status)]), seconds) if status else None

    @property
    def seconds(self) -> float | None:
        """Wall time in seconds; None for a run in progress, after a kill, and where it is unknown."""
        seconds: float | None = self._value("SELECT seconds FROM run")
        return seconds

    @property
    def notes(self) -> list[str]:
        """The remarks on the run, in order."""
        return [text for (text,) in self._rows("SELECT text FROM notes ORDER BY id")]

    @property
    def last_moment(self) -> float:
        """The time of the last event or of the end, in seconds since the epoch."""
        event = self._value("SELECT event FROM events ORDER BY id DESC LIMIT 1")
        seconds = self.seconds
        if seconds is None:
            seconds = float(self._json(event).get("t", 0.0)) if event else 0.0
        return self.header.started.timestamp() + seconds

    def require_whole(self) -> None:
        """Raises ValueError for a file that lacks written data, such as a copy made during the run."""
        if self.ending is None and not is_being_written(self.path):
            result = self._value("PRAGMA integrity_check(1)")
            if result != "ok":
                copied = "was it copied while the run went on, or without its -journal?"
                raise ValueError(f"{self.path} is damaged: {result}; {copied}")

    @property
    def totals(self) -> Totals:
        """Totals of the cases, without totals of executions."""
        done = "FROM cases WHERE status IS NOT NULL"
        counts = Counter(dict(self._rows(f"SELECT status, count(*) {done} GROUP BY status")))
        flaky, tokens, all_tokens, usd, saved, unpriced, unseen, with_cost = self._row(
            "SELECT total(status = 'FLAKY' AND policy_met), sum(tokens * runs), "
            "count(tokens) = count(*), sum(usd), sum(saved_usd), total(unpriced), "
            f"total(iif(unpriced IS NULL, runs, unseen)), count(unpriced) {done}"
        )
        seconds = [value for (value,) in self._rows(f"SELECT seconds {done} AND seconds IS NOT NULL")]
        return Totals(
            counts,
            int(flaky),
            tokens=tokens if all_tokens else None,
            total_cost=Cost(usd, saved, int(unpriced), int(unseen)) if with_cost else None,
            p50=median(seconds) if seconds else None,
        )

    @property
    def spent_without_result(self) -> Amount:
        """The spending of model calls that is not part of any result."""
        return Amount(*self._row("SELECT total(usd), total(tokens) FROM spending"))

    # Cases

    @property
    def eval_cases(self) -> Iterator[tuple[CaseId, str]]:
        """The selected cases as JSON text, as they were at the start."""
        for path, eval_id, text in self._paged(
            "SELECT id, path, eval_id, eval_case FROM eval_cases JOIN cases ON id = case_id "
            "WHERE id > ? ORDER BY id"
        ):
            yield CaseId(path, eval_id), text

    def unselected(self, path: str) -> set[str]:
        """Fingerprints of the unselected cases of a set."""
        text = self._value("SELECT unselected FROM sets WHERE path = ?", column_value(path))
        return set(self._json(text, list)) if text else set()

    def eval_case(self, case: CaseId) -> Json | None:
        """A selected case as it was at the start; None where it is unknown."""
        text = self._value(
            "SELECT eval_case FROM eval_cases JOIN cases ON id = case_id WHERE path = ? AND eval_id = ?",
            *map(column_value, case),
        )
        data: Json | None = None if text is None else self._json(text)
        return data

    @property
    def cases(self) -> Iterator[CaseInRun]:
        """The cases with a result, in the order of the selection."""
        last = 0
        while page := list(
            self._cases(f"WHERE id > ? AND status IS NOT NULL ORDER BY id LIMIT {_PAGE_ROWS}", last)
        ):
            yield from page
            last = page[-1].number

    @property
    def numbers(self) -> dict[CaseId, int]:
        """The numbers of the cases with a result."""
        rows = self._rows("SELECT path, eval_id, id FROM cases WHERE status IS NOT NULL")
        return {CaseId(path, eval_id): number for path, eval_id, number in rows}

    def case(self, case: CaseId) -> CaseInRun | None:
        """A case with its result; None without a result."""
        return next(
            self._cases("WHERE path = ? AND eval_id = ? AND status IS NOT NULL", *map(column_value, case)),
            None,
        )

    def statuses_of(self, case: CaseId) -> list[str]:
        """The statuses of the finished repeats of a case, in order."""
        query = (
            "SELECT repeats.status FROM repeats JOIN cases ON cases.id = case_id "
            "WHERE path = ? AND eval_id = ? ORDER BY repeat"
        )
        return [status for (status,) in self._rows(query, *map(column_value, case))]

    def case_at(self, number: int) -> CaseInRun:
        """The case with a number. Raises ValueError for a case without a result."""
        case = next(self._cases("WHERE id = ? AND status IS NOT NULL", number), None)
        if case is None:
            raise ValueError(f"{self.path} has no result of its case {number}")
        return case

    def failing(self, most: int) -> Iterator[CaseInRun]:
        """The first cases that did not pass, flaky ones by their policy."""
        passed = "status = 'PASSED' OR (status = 'FLAKY' AND policy_met)"
        return self._cases(f"WHERE status IS NOT NULL AND NOT ({passed}) ORDER BY id LIMIT ?", most)

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
            summary = self._read(SUMMARY.read, {**self._json(text), **named})
            yield CaseInRun(number, CaseId(path, eval_id), summary)

    def deciding_scores(self, numbers: Collection[int]) -> dict[int, dict[str, tuple[float, str]]]:
        """Scores and statuses of metrics in the deciding repeat, by number of the case."""
        scores: dict[int, dict[str, tuple[float, str]]] = {}
        for number, metric, score, status in self._rows(
            f"SELECT case_id, metric, score, status FROM {_DECIDING_SCORES} AND score IS NOT NULL",
            json.dumps(list(numbers)),
        ):
            scores.setdefault(number, {})[metric] = score, status
        return scores

    def metric_totals(self, numbers: Collection[int]) -> dict[str, MetricTotal]:
        """Totals of the metrics that decide cases, from the deciding repeats; `numbers` are those of the
        cases."""
        rows = self._rows(
            "SELECT metric, count(*), total(status = 'PASSED'), count(score), total(score), "
            "total(status = 'FAILED'), total(status = 'NOT_EVALUATED') "
            f"FROM {_DECIDING_SCORES} AND status != 'INFORMATIONAL' GROUP BY metric",
            json.dumps(list(numbers)),
        )
        return {
            name: MetricTotal(cases, int(passed), scored, total, int(failed), int(not_evaluated))
            for name, cases, passed, scored, total, failed, not_evaluated in rows
        }

    # Repeats

    @property
    def repeats(self) -> Iterator[RepeatInRun]:
        """The results of all repeats, in the order in which they finished."""
        return self._repeats("")

    @property
    def judged_repeats(self) -> Iterator[RepeatInRun]:
        """The results of the repeats for which a judge was asked."""
        return self._repeats("AND instr(result, '\"judge\":{')")

    def _repeats(self, condition: str) -> Iterator[RepeatInRun]:
        for path, eval_id, eval_set_id, repeat, text in self._paged(
            "SELECT repeats.rowid, path, eval_id, eval_set_id, repeat, result FROM repeats "
            f"JOIN cases ON cases.id = case_id WHERE repeats.rowid > ? {condition} ORDER BY repeats.rowid"
        ):
            yield RepeatInRun(CaseId(path, eval_id), eval_set_id, repeat, self._json(text))

    @property
    def costs(self) -> Iterator[tuple[str, Spending | None]]:
        """Path and spending of each case with a result, then of each repeat of a case without one; None for
        unknown spending."""
        for path, text in chain(
            self._paged("SELECT id, path, report FROM cases WHERE id > ? AND status IS NOT NULL ORDER BY id"),
            self._paged(
                "SELECT repeats.rowid, path, result FROM repeats JOIN cases ON cases.id = case_id "
                "WHERE repeats.rowid > ? AND cases.status IS NULL ORDER BY repeats.rowid"
            ),
        ):
            spent = self._json(text).get("spent")
            yield path, spent and self._read(_SPENDING_ROW.read, spent)

    def results(
        self, number: int, *, with_actual: bool = True, secrets: Secrets | None = None
    ) -> list[RepeatResult]:
        """The results of the repeats of a case, by its number; `with_actual` includes the actual turns, with
        masked secrets."""
        rows = self._repeats_of(number, secrets)
        return [self.result(row, with_actual=with_actual) for row in rows]

    def _repeats_of(self, number: int, secrets: Secrets | None) -> list[Json]:
        rows = self._rows("SELECT result FROM repeats WHERE case_id = ? ORDER BY repeat", number)
        repeats = [self._json(secrets.mask_json(text, json.dumps) if secrets else text) for (text,) in rows]
        if not repeats:
            eval_id = self._value("SELECT eval_id FROM cases WHERE id = ?", number)
            raise ValueError(f"{self.path} is damaged: it has no repeat of {eval_id}")
        return repeats

    def reported(self, case: CaseInRun, secrets: Secrets) -> Json:
        """The JSON data of a case for reports, with masked secrets."""
        text = self._value("SELECT report FROM cases WHERE id = ?", case.number)
        row = self._json(secrets.mask_json(text, json.dumps))
        ids = {"path": case.id.path, "eval_id": case.id.eval_id, "eval_set_id": case.summary.eval_set_id}
        repeats = self._repeats_of(case.number, secrets)
        reported: Json = self._read(lambda values: whole_case(values, repeats), {**row, **ids})
        return reported

    def repeat(self, case: CaseId, repeat: int) -> RepeatResult:
        """The result of a repeat with its actual turns. Raises KeyError for a missing repeat."""
        key = "path = ? AND eval_id = ? AND repeat = ?"
        joined = "JOIN cases ON cases.id = case_id"
        text = self._value(
            f"SELECT result FROM repeats {joined} WHERE {key}", *map(column_value, case), repeat
        )
        if text is None:
            raise KeyError(repeat)
        return self.result(self._json(text), with_actual=True)

    def result(self, data: Json, *, with_actual: bool = False) -> RepeatResult:
        """The result in stored data; `with_actual` includes the actual turns."""
        result: RepeatResult = self._read(REPEAT.read, {**data, "actual": ()})
        if not with_actual:
            return result
        return replace(result, actual=self._read(_invocations, data))

    def _read(self, read: Callable[[Any], Any], data: Any) -> Any:
        try:
            return read(data)
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{self.path} is damaged: a result cannot be read: {error}") from error

    # Events

    def events(self, number: int) -> dict[int, list[Event]]:
        """The events of a case by repeat, from the number of the case."""
        events: dict[int, list[Event]] = {}
        for row in self._rows(f"SELECT {_EVENT} WHERE case_id = ? ORDER BY events.id", number):
            event = self._event(*row)
            events.setdefault(event.repeat, []).append(event)
        return events

    def events_of(self, case: CaseId) -> dict[int, list[Event]]:
        """The events of a case by repeat; {} for a case outside of the run."""
        number = self._value("SELECT id FROM cases WHERE path = ? AND eval_id = ?", *map(column_value, case))
        return {} if number is None else self.events(number)

    def events_of_kinds(self, *kinds: str) -> Iterator[Event]:
        """The events of some kinds, of all cases."""
        of_kinds = f"events.kind IN ({', '.join('?' * len(kinds))})"
        for row in self._paged(
            f"SELECT events.id, {_EVENT} WHERE events.id > ? AND {of_kinds} ORDER BY events.id", *kinds
        ):
            yield self._event(*row)

    def event_texts(self, case: CaseId, repeat: int) -> Iterator[tuple[str, str]]:
        """Kind and JSON text of each event of a repeat."""
        return self._rows(
            "SELECT kind, event FROM events JOIN cases ON cases.id = case_id "
            "WHERE path = ? AND eval_id = ? AND repeat = ? ORDER BY events.id",
            *map(column_value, case),
            repeat,
        )

    def size_of_events(self, number: int) -> int:
        """Number of characters in the events of a case, by its number."""
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
            raise ValueError(
                f"{self.path} is damaged: {value_in_words(value)} stands in it for a {kind.__name__}"
            )
        return value

    def _rows(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        with translate_errors(self.path), closing(self._db.execute(query, values)) as cursor:
            # All at once: while rows are fetched, the run cannot commit.
            rows = cursor.fetchall()
        return (tuple(map(column_text, row)) for row in rows)

    def _paged(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, page by page, without their first column, by which they are ordered."""
        last = 0
        while rows := list(self._rows(f"{query} LIMIT {_PAGE_ROWS}", last, *values)):
            yield from (row[1:] for row in rows)
            last = rows[-1][0]

    def _row(self, query: str) -> tuple[Any, ...]:
        row = next(self._rows(query), None)
        if row is None:
            raise ValueError(f"{self.path} is damaged: it has no run")
        return row

    def _value(self, query: str, *values: object) -> Any:
        return next((row[0] for row in self._rows(query, *values)), None)


def _invocations(repeat: Json) -> tuple[Invocation, ...]:
    """The actual turns of a repeat."""
    # As JSON, in which bytes are base64.
    return tuple(Invocation.model_validate_json(to_json(turn)) for turn in repeat["actual"])


def is_being_written(path: Path) -> bool:
    """Whether the run of a file is in progress in any process, which holds the write lock of the file.

    Raises OSError for an unreadable file.
    """
    journal = path.with_name(f"{path.name}-journal")
    with closing(connect(path, wait=0)) as db:
        # A run commits without the lock for a moment, but beside its journal.
        for pause in _RETRY_PAUSES:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            db.execute("ROLLBACK")
            if not journal.exists():
                return False
            time.sleep(pause)
        return False
