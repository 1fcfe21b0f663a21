"""An earlier run, opened: what came of its cases as if it had just been run.

Importing this loads the models: do it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.core.compare.repeats import pass_if_of
from evaltui.core.model.adk_results import AdkRun
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.events import Event
from evaltui.core.model.fingerprints import case_fingerprint
from evaltui.core.model.outcome import CaseResult
from evaltui.core.recording.replay import steps_of_invocation
from evaltui.core.recording.steps import split
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.files.workspace import Workspace
from evaltui.runs import log_reader as logs
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.adk_results import read_adk_result
from evaltui.runs.history import result_of, run_id
from evaltui.workbench.documents import Documents
from evaltui.workbench.results import Results
from evaltui.workbench.state import CaseOutcome, RunRef
from evaltui.workbench.traces import Traces


@dataclass(frozen=True)
class PastRun:
    """`gone` is how many of its cases there are no more, or cannot be read, `unclear` how many may be in
    several files."""

    path: Path
    title: str
    results: Results
    traces: Traces
    gone: int = 0
    unclear: int = 0

    @property
    def id(self) -> str:
        return run_id(self.path)


@dataclass(frozen=True)
class Opening:
    """What a run is opened with. `code` is the version of the agent's code now."""

    path: Path
    title: str
    workspace: Workspace
    documents: Documents
    changed: Callable[[], None]
    code: int = 0


def open_past_run(opening: Opening) -> PastRun:
    """In a thread. Raises OSError, and ValueError for what is neither a run log nor a result file."""
    run = RunRef(log=opening.path, title=opening.title)
    results, traces = Results(), Traces(opening.changed)
    workspace = opening.workspace
    opened: dict[str, EvalSetFile] = {}
    gone = unclear = 0
    for found in _found(opening.path):
        eval_set_id = found.result.eval_set_id
        key = workspace.find(found.result.id, eval_set_id, by_label=found.by_label)
        if key is None:
            is_unclear = found.by_label and workspace.shares_label(eval_set_id)
            gone, unclear = gone + (not is_unclear), unclear + is_unclear
            continue
        if key.path not in opened:
            opened[key.path] = opening.documents.open(workspace.by_case_path[key.path].path)
        stored, config = opened[key.path].stored_case(key.eval_id), opened[key.path].config
        if stored is None or config is None:
            gone += 1
            continue
        light = tuple(replace(repeat, actual=()) for repeat in found.result.repeats)
        result = replace(found.result, repeats=light)
        scored = CaseOutcome(
            result,
            run,
            stored,
            config.config,
            code=opening.code,
            pass_if=pass_if_of(result.policy),
        )
        results.put(key, scored)
        if found.logged is not None:
            traces.keep_stretch(key, run, opening.path, found.logged)
        else:
            traces.keep(key, run, found.events)
    return PastRun(opening.path, opening.title, results, traces, gone, unclear)


def case_changed(scored: CaseOutcome) -> bool:
    """Whether the case says something else now than it did in the run, as far as the run tells."""
    expects = scored.result.repeats[0].expects if scored.result.repeats else ""
    return bool(expects) and expects != case_fingerprint(scored.case)


@dataclass(frozen=True)
class _Found:
    """A result, and what happened: a stretch of the log, or the events by repeat."""

    result: CaseResult
    events: Mapping[int, Sequence[Event]]
    by_label: bool
    logged: logs.LoggedCase | None = None


def _found(path: Path) -> Iterator[_Found]:
    if path.name.endswith(ADK_SUFFIX):
        yield from _of_adk(read_adk_result(path))
        return
    run = logs.read_run(path)
    for logged in run.results:
        yield _Found(result_of(path, logged), {}, run.header.by_label, logged)


def _of_adk(run: AdkRun) -> Iterator[_Found]:
    """It keeps no events, but what was said and called tells of some."""
    for case in run.cases:
        events = {
            number: tuple(_events(repeat.actual))
            for number, repeat in enumerate(case.repeats)
            if repeat.actual
        }
        yield _Found(case, events, by_label=True)


def _events(actual: Sequence[Invocation]) -> Iterator[Event]:
    for turn, invocation in enumerate(actual):
        user, *others = steps_of_invocation(invocation, turn)
        yield Event("user", user.content, turn=turn)
        for step in others:
            yield from split(step)
