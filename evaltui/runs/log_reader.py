"""Run logs read back: all of one, or only the part that is asked for."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.model.budget import Amount
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.json_values import member
from evaltui.core.model.outcome import Status
from evaltui.runs.index_rows import LoggedCase, logged_case_of, logged_cases, stands_instead
from evaltui.runs.log import VERSION
from evaltui.runs.log_header import RunHeader, header_from_json
from evaltui.runs.log_index import index_parts, read_footer
from evaltui.runs.log_lines import (
    AGENT,
    CHECKPOINT,
    FOOTER,
    HEADER,
    INDEX,
    REPEAT,
    RESULT,
    SPENT,
    damage,
    lines_of,
    parsed,
    placed_lines,
)
from evaltui.runs.run_totals import RunTotals
from evaltui.runs.store import SUFFIX
from evaltui.text.values import in_words

Json = dict[str, Any]

# Those that are read; the first one told cases by set id only.
_VERSIONS = (2, 3, VERSION)
_NOT_OF_REPEATS = (HEADER, RESULT, INDEX, SPENT, CHECKPOINT, FOOTER)
_OUR_LINE = (REPEAT, *_NOT_OF_REPEATS)


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
    for one in logged_cases(path, header):
        case, summary, known = one.id, one.summary, results.get(one.id)
        if known is None or stands_instead(
            header, case, summary.eval_set_id, summary.status, known.summary.status
        ):
            results[case] = one
    return StoredRun(path, header, tuple(results.values()), _footer(path))


def read_ends(path: Path) -> StoredRun:
    """As `read_run`, without the results."""
    return StoredRun(path, read_header(path), (), _footer(path))


def totals_of(path: Path) -> RunTotals:
    """What the results of a log came to, as its footer has it; of a log without one they are read.

    Raises OSError, and ValueError for a log that is damaged.
    """
    data = read_footer(path)
    if data is None or "totals" not in data:
        return RunTotals.of(one.summary for one in read_run(path).results)
    with damage(path, "its footer"):
        return RunTotals.from_json(member(data, "totals", dict))


def _without_kind(line: Json) -> Json:
    return {name: value for name, value in line.items() if name != "kind"}


def read_header(path: Path) -> RunHeader:
    """Raises OSError, and ValueError for a file that is not a run log or was written by another version."""
    with path.open("rb") as file:
        line = file.readline()
    data = next(parsed(path, line), None) if line.startswith(HEADER) else None
    if data is None:
        raise ValueError(f"{path} is not a run log")
    if data.get("version") not in _VERSIONS:
        raise ValueError(f"{path} was written by another version of evaltui ({data.get('evaltui')})")
    with damage(path, "its header"):
        return header_from_json(path, _without_kind(data))


def read_agent(path: Path) -> Json:
    """What the run found out of its agent; {} where it did not get to import it. Raises OSError."""
    line = next(lines_of(path, AGENT), b"")
    return _without_kind(next(parsed(path, line), {}))


def spent_without_result(path: Path) -> Amount:
    """What model calls of a run with a budget have spent that none of its results counts.

    Raises OSError, and ValueError for a log that is damaged.
    """
    amount = Amount()
    for line in lines_of(path, SPENT):
        for data in parsed(path, line):
            with damage(path, "the line of spending"):
                amount += Amount.from_json(data)
    return amount


def _footer(path: Path) -> Footer | None:
    data = read_footer(path)
    # One of an interrupted run says only where its index is.
    if data is None or "status" not in data:
        return None
    with damage(path, "its footer"):
        seconds = member(data, "seconds", (int, float, type(None)), None)
        return Footer(Status(data["status"]), seconds)


def result_of(path: Path, header: RunHeader, case: CaseId, eval_set_id: str) -> LoggedCase | None:
    """The result of one case by a log's index, the last one where there are several; None without one.

    The id of its set is for logs of earlier versions. Raises OSError, and ValueError for a damaged log.
    """
    # Inside a text the quotes are escaped: what is found is the beginning of a result.
    name, value = ("eval_set_id", eval_set_id) if header.by_label else ("path", case.path)
    named = f'"{name}":{json.dumps(value)},"eval_id":{json.dumps(case.eval_id)},'.encode()
    line = b""
    for _, part in index_parts(path):
        if (at := part.rfind(named)) >= 0:
            end = part.find(b"\n", at)
            line = part[part.rfind(b"\n", 0, at) + 1 : end + 1 if end >= 0 else len(part)]
    found = next((logged_case_of(path, header, row) for row in parsed(path, line)), None)
    return found if found is not None and found.id == case else None


def repeats_of(path: Path, case: LoggedCase) -> list[Json]:
    """The results of the runs of a case.

    Raises OSError, and ValueError for a log that is damaged.
    """
    results = []
    with path.open("rb") as file:
        for place in case.repeats_at:
            file.seek(place)
            for data in parsed(path, file.readline()):
                if data.get("kind") != "repeat_result" or not isinstance(data.get("result"), dict):
                    raise ValueError(f"{path} is damaged: it has no result of {case.id.eval_id} at {place}")
                results.append(data["result"])
    return results


def scores_at(path: Path, places: Collection[int]) -> Iterator[tuple[int, dict[str, list[float | None]]]]:
    """What the runs of cases have scored by each metric, by the places of the lines of their results.

    Nothing but scores is made of what is read, for many cases at once; nothing is told of what is damaged.
    Raises OSError.
    """
    # It loads the models, which a log is listed without.
    from evaltui.core.model.stored_results import scores_in

    with path.open("rb") as file:
        for place in sorted(places):
            with suppress(AttributeError, KeyError, RecursionError, TypeError, ValueError):
                file.seek(place)
                scores: dict[str, list[float | None]] = {}
                for at in json.loads(file.readline())["repeats_at"]:
                    file.seek(at)
                    for name, score in scores_in(json.loads(file.readline())["result"]):
                        scores.setdefault(name, []).append(score)
                yield place, scores


def text_of(path: Path, case: LoggedCase) -> str:
    """What a log says of the runs of a case, with what else happened meanwhile. Raises OSError."""
    start, end = case.events or (0, 0)
    with path.open("rb") as file:
        file.seek(start)
        lines = [file.read(end - start)]
        for place in case.repeats_at:
            file.seek(place)
            lines.append(file.readline())
    return b"".join(lines).decode("utf-8", "replace")


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
        for data in parsed(path, line):
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
    with damage(path, "an event"):
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


@dataclass(frozen=True, slots=True)
class CaseLine:
    """A line of a log that is about a run of a case: `case_started`, an event, or a `repeat_result`.

    `text` is the line as it stands there, `place` where that is, in bytes.
    """

    case: CaseId
    eval_set_id: str
    repeat: int
    data: Json
    text: bytes
    place: int

    @property
    def kind(self) -> str:
        return str(self.data.get("kind"))


def lines_of_cases(path: Path, kinds: Collection[str] = ()) -> Iterator[CaseLine]:
    """Everything in a log that is about a run of a case, or only lines of these kinds.

    A last line that was cut off is left out. Raises OSError, and ValueError for a log that is damaged.
    """
    header = read_header(path)
    wanted = tuple(f'{{"kind":"{kind}"'.encode() for kind in kinds) or b"{"
    for place, line in placed_lines(path, wanted):
        if not line.startswith(_NOT_OF_REPEATS) and b'"case":' in line:
            yield from _case_lines(path, header, line, place)


def results_of_repeats(path: Path, header: RunHeader) -> Iterator[CaseLine]:
    """The results of runs of cases, in the order in which these were finished; raises what `lines_of_cases`
    does."""
    for place, line in placed_lines(path, REPEAT):
        yield from _case_lines(path, header, line, place)


def _case_lines(path: Path, header: RunHeader, line: bytes, place: int) -> Iterator[CaseLine]:
    for data in parsed(path, line):
        if "case" not in data:
            continue
        eval_set_id = data.get("set", "")
        with damage(path, "a line"):
            case = header.id_of(data.get("path"), eval_set_id, data["case"])
            if data.get("kind") == "repeat_result" and not isinstance(data.get("result"), dict):
                raise ValueError("without a result")
        yield CaseLine(case, eval_set_id, _repeat_number(path, data), data, line, place)
