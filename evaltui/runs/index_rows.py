"""The results that the index of a log has: whole ones, or only the figures that lists need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from evaltui.core.compare.run_summary import STATUSES, CaseSummary, costs_in, scores_in
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import WORST_FIRST, Status
from evaltui.core.model.spending import Cost, Payer
from evaltui.runs.log_header import RunHeader
from evaltui.runs.log_index import index_parts
from evaltui.runs.log_lines import INDEX, RESULT, are_places, line_at, parsed

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoggedCase:
    """The result of a case as a log has it, and where in the log the rest of it is, in bytes: the stretch
    that has its events, None where it has none, and the results of its runs."""

    id: CaseId
    summary: CaseSummary
    events: tuple[int, int] | None = None
    repeats_at: tuple[int, ...] = ()


class LoggedFigures(NamedTuple):
    """What lists need of a result; the fields are as in `CaseSummary`."""

    place: int
    """Where its line is, for `logged_case_at`."""
    id: CaseId
    eval_set_id: str
    status: Status
    runs: int
    passed: int
    policy: str
    policy_met: bool
    scores: Mapping[str, float]
    seconds: float | None
    tokens: float | None
    costs: Mapping[Payer, Cost]
    expects: str
    given: str


def logged_cases(path: Path, header: RunHeader) -> Iterator[LoggedCase]:
    """The results of a log as they were written, one after the other. Of several results of a case,
    `stands_instead` tells which one stands.

    Raises OSError, and ValueError for a log that is damaged.
    """
    for _, part in index_parts(path):
        for row in _rows(path, part):
            yield logged_case_of(path, header, row)


def logged_figures(path: Path, header: RunHeader) -> Iterator[LoggedFigures]:
    """As `logged_cases`, a few times as fast: a line that is as nearly all are is not read as JSON."""
    for place, part in index_parts(path):
        # A character is a byte, so that places are the same.
        text, at = part.decode("latin-1"), 0
        while (match := _USUAL.match(text, at)) and (figures := _figures(place + at, match)):
            yield figures
            at = match.end()
        rest = part[at:]
        for row, line in zip(_rows(path, rest), rest.splitlines(keepends=True), strict=False):
            yield _figures_of(place + at, logged_case_of(path, header, row))
            at += len(line)


def logged_case_at(path: Path, header: RunHeader, place: int) -> LoggedCase:
    """The result of a case by the place of its line. Raises OSError, and ValueError for another line."""
    line = line_at(path, place)
    if not line.startswith((RESULT, INDEX)) or not line.endswith(b"\n"):
        raise ValueError(f"{path} is damaged: it has no result of a case at {place}")
    return next(logged_case_of(path, header, row) for row in parsed(path, line))


def stands_instead(header: RunHeader, case: CaseId, eval_set_id: str, later: Status, earlier: Status) -> bool:
    """Whether a result stands instead of an earlier one of its case: a case may have been finished again.

    Of twins in a log of an earlier version the worst result stands.
    """
    is_twin = header.twins and (eval_set_id, case.eval_id) in header.twins
    return not is_twin or _gravity(later) <= _gravity(earlier)


def _gravity(status: Status) -> int:
    """0 for what is gravest."""
    return WORST_FIRST.index(status) if status in WORST_FIRST else len(WORST_FIRST)


def _rows(path: Path, part: bytes) -> list[Json]:
    """The lines of a part of an index as objects."""
    try:
        # Much faster than line by line.
        rows: list[Json] = json.loads(b"[%b]" % part.rstrip(b"\n").replace(b"\n", b","))
    except (ValueError, RecursionError):
        rows = []
    if rows and all(type(row) is dict for row in rows):
        return rows
    return [row for line in part.splitlines(keepends=True) for row in parsed(path, line)]


def logged_case_of(path: Path, header: RunHeader, row: Json) -> LoggedCase:
    """A line of an index. Raises ValueError for what is none."""
    try:
        summary = CaseSummary.from_json(row)
        events, repeats_at = row.get("events"), row.get("repeats_at", [])
        if events is not None and not (are_places(events) and len(events) == 2 and events[0] <= events[1]):
            raise ValueError(f"{events!r} is no stretch of a log")
        if not are_places(repeats_at):
            raise ValueError(f"{repeats_at!r} are no places in a log")
        case = header.id_of(summary.path, summary.eval_set_id, summary.eval_id)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: a result of a case cannot be read: {error}") from error
    own_path = "" if case.path == summary.eval_set_id else case.path
    if own_path != summary.path:
        summary = replace(summary, path=own_path)
    return LoggedCase(case, summary, events and (events[0], events[1]), tuple(repeats_at))


def _figures_of(place: int, logged: LoggedCase) -> LoggedFigures:
    one = logged.summary
    return LoggedFigures(
        place,
        logged.id,
        one.eval_set_id,
        one.status,
        one.runs,
        one.passed,
        one.policy,
        one.policy_met,
        one.scores,
        one.seconds,
        one.tokens,
        one.costs,
        one.expects,
        one.given,
    )


# The line of a case that was run once: of each member what JSON allows and the log writes, without escapes in
# texts. Everything else is read as JSON, which tells what is wrong with it.
_TEXT = r'"([^"\\\x00-\x1f\x7f-\xff]++)"'
_FLAT = r"\{[^{}\\]*+\}"
_JUDGE = r'"[^"\\\x00-\x1f\x7f-\xff]++":"[^"\\\x00-\x1f\x7f-\xff]++"'
_EXPONENT = r"e-[0-9]{1,3}+"
_NUMBER = rf"(?:0|[1-9][0-9]{{0,15}}+)(?:\.[0-9]++(?:{_EXPONENT})?|{_EXPONENT})"
_PLACE = r"(?:0|[1-9][0-9]{0,17}+)"
_USUAL = re.compile(
    rf'\{{"kind":"(?:index|case_result)","path":{_TEXT},"eval_id":{_TEXT},"eval_set_id":{_TEXT},'
    rf'"status":"([A-Z_]++)"(?:,"scores":({_FLAT}))?(?:,"seconds":({_NUMBER}))?(?:,"tokens":({_NUMBER}))?'
    rf'(?:,"throttled":{_NUMBER})?(?:,"expects":{_TEXT})?(?:,"given":{_TEXT})?(?:,"judges":\{{{_JUDGE}(?:,{_JUDGE})*+\}})?'
    rf'(?:,"costs":(\{{"[a-z ]++":{_FLAT}(?:,"[a-z ]++":{_FLAT})*+\}}))?'
    rf'(?:,"events":\[({_PLACE}),({_PLACE})\])?(?:,"repeats_at":\[{_PLACE}(?:,{_PLACE})*+\])?\}}\n'
)


def _figures(place: int, line: re.Match[str]) -> LoggedFigures | None:
    """None for a line that has to be read as JSON."""
    path, eval_id, eval_set_id, known, *figures, start, stop = line.groups()
    scores, seconds, tokens, expects, given, costs = figures
    status = STATUSES.get(known)
    if status is None or (start is not None and int(start) > int(stop)):
        return None
    passed = status is Status.PASSED
    try:
        return LoggedFigures(
            place,
            CaseId(path, eval_id),
            eval_set_id,
            status,
            1,
            int(passed),
            "all",
            passed,
            _scores(scores),
            None if seconds is None else float(seconds),
            None if tokens is None else float(tokens),
            _costs(costs),
            expects or "",
            given or "",
        )
    except ValueError:
        return None


# Most cases have the same ones as others.


@lru_cache(maxsize=1024)
def _scores(text: str | None) -> Mapping[str, float]:
    return {} if text is None else scores_in(json.loads(text))


@lru_cache(maxsize=1024)
def _costs(text: str | None) -> Mapping[Payer, Cost]:
    return {} if text is None else costs_in(json.loads(text))
