"""An earlier run, opened: what came of its cases as if it had just been run.

Importing this loads the models: do it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltui.core.adk_results import AdkRun
from evaltui.core.evalset import Invocation
from evaltui.core.events import Event
from evaltui.core.fingerprints import case_fingerprint
from evaltui.core.outcome import CaseResult
from evaltui.core.repeats import case_over_repeats, pass_if_of
from evaltui.core.replay import steps_of_invocation
from evaltui.core.steps import split
from evaltui.core.stored_results import repeat_from_json
from evaltui.files import runs as logs
from evaltui.files.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.files.adk_results import read_adk_result
from evaltui.files.history import run_id
from evaltui.files.workspace import SetEntry
from evaltui.workbench.documents import Documents, OpenSet
from evaltui.workbench.results import Results
from evaltui.workbench.state import CaseKey, Scored
from evaltui.workbench.traces import Traces

Key = tuple[str, str]


@dataclass(frozen=True)
class PastRun:
    """`gone` is how many of its cases there are no more, or cannot be read."""

    path: Path
    title: str
    results: Results
    traces: Traces
    gone: int = 0

    @property
    def id(self) -> str:
        return run_id(self.path)


@dataclass(frozen=True)
class Opening:
    """What a run is opened with. `number` is one that no other run has; `code` is the agent's version now."""

    path: Path
    title: str
    number: int
    sets: Sequence[SetEntry]
    documents: Documents
    changed: Callable[[], None]
    code: int = 0


def open_past_run(opening: Opening) -> PastRun:
    """In a thread. Raises OSError, and ValueError for what is neither a run log nor a result file."""
    results, traces = Results(), Traces(opening.changed)
    places = _places(opening.sets)
    opened: dict[Path, OpenSet] = {}
    gone = 0
    for found in _found(opening.path):
        key = places.get((found.result.eval_set_id, found.result.eval_id))
        if key is None:
            gone += 1
            continue
        if key.path not in opened:
            opened[key.path] = opening.documents.open(key.path)
        stored, config = opened[key.path].stored_case(key.eval_id), opened[key.path].config
        if stored is None or config is None:
            gone += 1
            continue
        light = tuple(replace(repeat, actual=()) for repeat in found.result.repeats)
        result = replace(found.result, repeats=light)
        scored = Scored(
            result,
            opening.number,
            stored,
            config.config,
            code=opening.code,
            pass_if=pass_if_of(result.policy),
            past=opening.title,
        )
        results.put(key, scored)
        if found.stretch is not None:
            traces.keep_stretch(key, opening.number, opening.path, found.stretch, result.eval_set_id)
        else:
            traces.keep(key, opening.number, found.events)
    return PastRun(opening.path, opening.title, results, traces, gone)


def case_changed(scored: Scored) -> bool:
    """Whether the case says something else now than it did in the run, as far as the run tells."""
    expects = scored.result.repeats[0].expects if scored.result.repeats else ""
    return bool(expects) and expects != case_fingerprint(scored.case)


def _places(sets: Sequence[SetEntry]) -> Mapping[Key, CaseKey]:
    """Where the cases are now; of files that share ids, in the first one."""
    places: dict[Key, CaseKey] = {}
    for entry in sets:
        for case in entry.cases:
            places.setdefault((entry.eval_set_id, case.eval_id), CaseKey(entry.path, case.eval_id))
    return places


@dataclass(frozen=True)
class _Found:
    """A result, and what happened: a stretch of the log, or the events by repeat."""

    result: CaseResult
    events: Mapping[int, Sequence[Event]]
    stretch: tuple[int, int] | None = None


def _found(path: Path) -> Iterator[_Found]:
    if path.name.endswith(ADK_SUFFIX):
        yield from _of_adk(read_adk_result(path))
        return
    for row in logs.read_run(path).results:
        repeats = [repeat_from_json(data) for data in logs.repeats_of(path, row)]
        if not repeats:
            raise ValueError(f"{path} has no result of {row['eval_id']}")
        pass_if = pass_if_of(row.get("pass_if", "all"))
        result = case_over_repeats(row["eval_set_id"], row["eval_id"], repeats, pass_if)
        yield _Found(result, {}, stretch_of(row))


def stretch_of(row: Mapping[str, Any]) -> tuple[int, int]:
    """Where in its log, in bytes, the events of a case are, given its row in the index."""
    start, end = row.get("events", (0, 0))
    return start, end


def stretches_of(log: Path) -> dict[Key, tuple[int, int]]:
    """Those of every case that is done. Raises OSError, and ValueError for a log that is damaged."""
    return {(row["eval_set_id"], row["eval_id"]): stretch_of(row) for row in logs.read_run(log).results}


def _of_adk(run: AdkRun) -> Iterator[_Found]:
    """It keeps no events, but what was said and called tells of some."""
    for case in run.cases:
        events = {
            number: tuple(_events(repeat.actual))
            for number, repeat in enumerate(case.repeats)
            if repeat.actual
        }
        yield _Found(case, events)


def _events(actual: Sequence[Invocation]) -> Iterator[Event]:
    for turn, invocation in enumerate(actual):
        user, *others = steps_of_invocation(invocation, turn)
        yield Event("user", user.content, turn=turn)
        for step in others:
            yield from split(step)
