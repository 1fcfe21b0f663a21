"""Run logs read back: all of one, or only the part that is asked for."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.json_values import member
from evaltui.core.model.outcome import WORST_FIRST, Status
from evaltui.runs.log import VERSION
from evaltui.runs.log_header import RunHeader, header_from_json
from evaltui.runs.store import SUFFIX
from evaltui.text.values import in_words

Json = dict[str, Any]

# Those that are read; the first one told cases by set id only.
_VERSIONS = (2, VERSION)
# How the lines begin that are not events: the many events need not be parsed to be passed over.
_HEADER = b'{"kind":"header"'
_AGENT = b'{"kind":"agent"'
_REPEAT = b'{"kind":"repeat_result"'
_RESULT = b'{"kind":"case_result"'
_INDEX = b'{"kind":"index"'
_FOOTER = b'{"kind":"footer"'
_OUR_LINE = (_HEADER, _REPEAT, _RESULT, _INDEX, _FOOTER)
# The footer is shorter than this.
_END = 4096


@dataclass(frozen=True)
class LoggedCase:
    """The result of a case as a log has it, and where in the log the rest of it is, in bytes: the stretch
    that has its events, None where it has none, and the results of its runs."""

    id: CaseId
    summary: CaseSummary
    events: tuple[int, int] | None = None
    repeats_at: tuple[int, ...] = ()


@dataclass(frozen=True)
class StoredRun:
    """A log that was read: its header, the results of its cases in the order in which they were finished, and
    its footer, None where the run did not come to its end."""

    path: Path
    header: RunHeader
    results: tuple[LoggedCase, ...]
    footer: Footer | None = None

    @property
    def id(self) -> str:
        return self.path.name.removesuffix(SUFFIX)

    @property
    def complete(self) -> bool:
        return self.footer is not None


@dataclass(frozen=True)
class Footer:
    """How a run ended; `seconds` is wall time, None where nobody knows."""

    status: Status
    seconds: float | None = None


def read_run(path: Path) -> StoredRun:
    """The header and the results of a log, without its events.

    A last line that was cut off is left out. Raises OSError, and ValueError for a file that is not a run
    log, was written by another version, or is damaged.
    """
    header = read_header(path)
    results: dict[CaseId, LoggedCase] = {}
    for line in read_index(path).splitlines(keepends=True):
        for row in _parsed(path, line):
            one = _logged_case(path, header, row)
            # A case may have been finished again. Of twins in an earlier log the worst result stands.
            known = results.get(one.id) if (one.summary.eval_set_id, one.id.eval_id) in header.twins else None
            if known is None or _gravity(known) >= _gravity(one):
                results[one.id] = one
    return StoredRun(path, header, tuple(results.values()), _footer(path))


def _gravity(case: LoggedCase) -> int:
    """0 for what is gravest."""
    status = case.summary.status
    return WORST_FIRST.index(status) if status in WORST_FIRST else len(WORST_FIRST)


def _logged_case(path: Path, header: RunHeader, row: Json) -> LoggedCase:
    with _damage(path, "a result of a case"):
        summary = CaseSummary.from_json(row)
        events, repeats_at = row.get("events"), row.get("repeats_at", [])
        if events is not None and not (_are_places(events) and len(events) == 2 and events[0] <= events[1]):
            raise ValueError(f"{events!r} is no stretch of a log")
        if not _are_places(repeats_at):
            raise ValueError(f"{repeats_at!r} are no places in a log")
        case = header.id_of(summary.path, summary.eval_set_id, summary.eval_id)
        summary = replace(summary, path="" if case.path == summary.eval_set_id else case.path)
        return LoggedCase(case, summary, events and (events[0], events[1]), tuple(repeats_at))


def _are_places(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


@contextmanager
def _damage(path: Path, what: str) -> Iterator[None]:
    """What is wrong in a log, as a sentence that names it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {what} cannot be read: {error}") from error


def _without_kind(line: Json) -> Json:
    return {name: value for name, value in line.items() if name != "kind"}


def read_header(path: Path) -> RunHeader:
    """Raises OSError, and ValueError for a file that is not a run log or was written by another version."""
    with path.open("rb") as file:
        line = file.readline()
    data = next(_parsed(path, line), None) if line.startswith(_HEADER) else None
    if data is None:
        raise ValueError(f"{path} is not a run log")
    if data.get("version") not in _VERSIONS:
        raise ValueError(f"{path} was written by another version of evaltui ({data.get('evaltui')})")
    with _damage(path, "its header"):
        return header_from_json(path, _without_kind(data))


def read_agent(path: Path) -> Json:
    """What the run found out of its agent; {} where it did not get to import it. Raises OSError."""
    with _mapped(path) as log:
        line = next(_found(log, _AGENT), b"")
    return _without_kind(next(_parsed(path, line), {}))


def _footer(path: Path) -> Footer | None:
    data = _read_footer(path)
    # One of an interrupted run says only where its index is.
    if data is None or "status" not in data:
        return None
    with _damage(path, "its footer"):
        seconds = member(data, "seconds", (int, float, type(None)), None)
        return Footer(Status(data["status"]), seconds)


def _read_footer(path: Path) -> Json | None:
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _END))
        last = file.read().splitlines(keepends=True)[-1:]
    if not last or not last[0].startswith(_FOOTER):
        return None
    return next(_parsed(path, last[0]), None)


def read_index(path: Path) -> bytes:
    """The results of a log's cases as lines of JSON: its index, or what has been finished so far.

    Raises OSError, and ValueError for a log that is damaged.
    """
    footer = _read_footer(path)
    if footer is not None and "index" in footer:
        index = footer["index"]
        if not (_are_places(index) and len(index) == 2 and index[0] <= index[1] <= path.stat().st_size):
            raise ValueError(f"{path} is damaged: it has no index at {index!r}")
        start, end = index
        with path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)
    with _mapped(path) as log:
        return b"".join(_found(log, _RESULT))


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    """A log as bytes that are read where they are looked at."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            yield log


def _found(log: mmap.mmap | bytes, beginning: bytes) -> Iterator[bytes]:
    """The lines that begin so."""
    at = log.find(b"\n" + beginning)
    while at >= 0:
        end = log.find(b"\n", at + 1)
        yield log[at + 1 : end + 1 if end >= 0 else len(log)]
        at = log.find(b"\n" + beginning, end) if end >= 0 else -1


def result_of(
    path: Path, header: RunHeader, index: bytes, case: CaseId, eval_set_id: str
) -> LoggedCase | None:
    """The result of one case from a log's index, the last one where there are several; None without one.

    The id of its set is for logs of earlier versions. Raises ValueError for a log that is damaged.
    """
    # Inside a text the quotes are escaped: what is found is the beginning of a result.
    name, value = ("eval_set_id", eval_set_id) if header.by_label else ("path", case.path)
    named = f'"{name}":{json.dumps(value)},"eval_id":{json.dumps(case.eval_id)},'.encode()
    at = index.rfind(named)
    if at < 0:
        return None
    line = index[index.rfind(b"\n", 0, at) + 1 : index.find(b"\n", at) + 1]
    found = next((_logged_case(path, header, row) for row in _parsed(path, line)), None)
    return found if found is not None and found.id == case else None


def repeats_of(path: Path, case: LoggedCase) -> list[Json]:
    """The results of the runs of a case.

    Raises OSError, and ValueError for a log that is damaged.
    """
    results = []
    with path.open("rb") as file:
        for place in case.repeats_at:
            file.seek(place)
            for data in _parsed(path, file.readline()):
                if data.get("kind") != "repeat_result" or not isinstance(data.get("result"), dict):
                    raise ValueError(f"{path} is damaged: it has no result of {case.id.eval_id} at {place}")
                results.append(data["result"])
    return results


def events_between(
    path: Path, stretch: tuple[int, int], case: CaseId, eval_set_id: str
) -> dict[int, list[Event]]:
    """The events of one case by repeat, from a stretch of a log in bytes, both ends being ends of lines.

    A repeat that was tried again after a crash has the events of its last try only. Raises OSError, and
    ValueError for a log that is damaged.
    """
    start, end = stretch
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read(end - start).splitlines(keepends=True)
    # Other cases ran at the same time: their lines need not be parsed.
    named = f'"case":{json.dumps(case.eval_id)}'.encode()
    repeats: dict[int, list[Json]] = {}
    for line in lines:
        if named not in line or line.startswith(_OUR_LINE):
            continue
        for data in _parsed(path, line):
            # Lines of earlier versions do not name the file.
            path_of_line = data.get("path", case.path)
            if (path_of_line, data.get("set"), data.get("case")) != (case.path, eval_set_id, case.eval_id):
                continue
            repeat = _repeat_number(path, data)
            if data.get("kind") == "case_started":
                repeats[repeat] = []
            else:
                repeats.setdefault(repeat, []).append(data)
    return {repeat: [event_of(path, data) for data in events] for repeat, events in repeats.items()}


def event_of(path: Path, data: Json) -> Event:
    """An event of a log. Raises ValueError for what is none."""
    with _damage(path, "an event"):
        for name, value in data.items():
            if not isinstance(value, _KINDS_IN_EVENTS.get(name, object)):
                raise ValueError(f"{name} is {in_words(value)}")
        return Event.from_json(data)


_KINDS_IN_EVENTS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("kind", "agent", "id", "parent", "branch"), str),
    **dict.fromkeys(("content", "usage", "data"), dict),
    **dict.fromkeys(("duration", "t"), (int, float)),
    "turn": int,
}


def _repeat_number(path: Path, data: Json) -> int:
    repeat = data.get("repeat", 0)
    if type(repeat) is not int or repeat < 0:
        raise ValueError(f"{path} is damaged: {repeat!r} is not a repeat number")
    return repeat


@dataclass(frozen=True)
class CaseLine:
    """A line of a log that is about a run of a case: `case_started`, an event, or a `repeat_result`."""

    case: CaseId
    eval_set_id: str
    repeat: int
    data: Json

    @property
    def kind(self) -> str:
        return str(self.data.get("kind"))


def lines_of_cases(path: Path) -> Iterator[CaseLine]:
    """Everything in a log that is about a run of a case.

    A last line that was cut off is left out. Raises OSError, and ValueError for a log that is damaged.
    """
    header = read_header(path)
    with path.open("rb") as file:
        for line in file:
            if line.startswith((_HEADER, _RESULT, _INDEX, _FOOTER)) or b'"case":' not in line:
                continue
            yield from _case_lines(path, header, line)


def results_of_repeats(path: Path, header: RunHeader) -> Iterator[CaseLine]:
    """The results of runs of cases, in the order in which these were finished; raises what `lines_of_cases`
    does."""
    with _mapped(path) as log:
        for line in _found(log, _REPEAT):
            yield from _case_lines(path, header, line)


def _case_lines(path: Path, header: RunHeader, line: bytes) -> Iterator[CaseLine]:
    for data in _parsed(path, line):
        if "case" not in data:
            continue
        eval_set_id = data.get("set", "")
        with _damage(path, "a line"):
            case = header.id_of(data.get("path"), eval_set_id, data["case"])
            if data.get("kind") == "repeat_result" and not isinstance(data.get("result"), dict):
                raise ValueError("without a result")
        yield CaseLine(case, eval_set_id, _repeat_number(path, data), data)


def _parsed(path: Path, line: bytes) -> Iterator[Json]:
    """A line as an object; nothing for one that was cut off."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        if line.endswith(b"\n"):
            raise ValueError(f"{path} is damaged: {line[:60]!r} is not JSON") from None
        # The last line, cut off when the process was killed.
        return
    if not isinstance(data, dict):
        raise ValueError(f"{path} is damaged: {line[:60]!r} is not an object")
    yield data
