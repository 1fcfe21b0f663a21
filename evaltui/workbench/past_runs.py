"""Earlier runs: one opened as if it had just been run, and what came of each case before this sitting.

Importing this loads the models: do it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.core.compare.repeats import pass_if_of
from evaltui.core.compare.run_comparison import config_of
from evaltui.core.conversation.replay import events_of_invocation
from evaltui.core.model.case_id import CaseId, case_fingerprint
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import CaseResult
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.trace.model_calls import ModelCalls
from evaltui.files.agent_address import AgentAddress
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.files.workspace import Workspace
from evaltui.runs import log_reader as logs
from evaltui.runs.adk_reader import AdkRun
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.adk_results import read_adk_result
from evaltui.runs.history import result_of, run_id
from evaltui.runs.listing import run_title
from evaltui.runs.log_reader import LoggedCase, StoredRun, read_run
from evaltui.runs.resuming import files_changed_since
from evaltui.runs.store import RunStore
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


def open_past_run(
    run: RunRef,
    path: Path,
    workspace: Workspace,
    open_set: Callable[[Path], EvalSetFile],
    traces: Traces,
    code: int,
) -> PastRun:
    """In a thread. `code` is the version of the agent's code now.

    Raises OSError, and ValueError for what is neither a run log nor a result file.
    """
    results = Results()
    opened: dict[str, EvalSetFile] = {}
    gone = unclear = 0
    for found in _found(path):
        eval_set_id = found.result.eval_set_id
        case = workspace.find(found.result.id, eval_set_id, by_label=found.by_label)
        if case is None:
            is_unclear = found.by_label and workspace.shares_label(eval_set_id)
            gone, unclear = gone + (not is_unclear), unclear + is_unclear
            continue
        if case.path not in opened:
            opened[case.path] = open_set(workspace.by_case_path[case.path].path)
        stored, config = opened[case.path].case(case.eval_id), opened[case.path].config
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
            code=code,
            pass_if=pass_if_of(result.policy),
        )
        results.put(case, scored)
        if found.logged is not None:
            traces.keep_stretch(case, run, path, found.logged)
        else:
            traces.keep(case, run, found.events)
    return PastRun(path, run.title, results, traces, gone, unclear)


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
            number: tuple(
                event
                for turn, invocation in enumerate(repeat.actual)
                for event in events_of_invocation(invocation, turn)
            )
            for number, repeat in enumerate(case.repeats)
            if repeat.actual
        }
        yield _Found(case, events, by_label=True)


# Cases that none of the newest runs had stay `not run`.
MOST_RUNS = 50
# Whoever leaves meanwhile waits for no more than these.
_AT_ONCE = 200


@dataclass(frozen=True)
class LastOutcome:
    """A case's result, the log that it is from, and where it is there."""

    case: CaseId
    scored: CaseOutcome
    log: Path
    logged: LoggedCase


def last_outcomes(
    store: RunStore,
    workspace: Workspace,
    open_set: Callable[[Path], EvalSetFile],
    code: int,
    url: str = "",
) -> Iterator[list[LastOutcome]]:
    """The last result of every case that has one, some at a time, those of the newest run first.

    `code` is the agent's version now; results of an agent that was changed since have version -1. Of one
    behind a network with this `url`, and where traces were scored, no change is known.
    A log that cannot be read is passed over.
    """
    wanted = {CaseId(one.case_path, case.eval_id) for one in workspace.sets for case in one.cases}
    names = {run: name for name, run in store.names().items()}
    logs = store.logs()
    for place, log in list(enumerate(logs, 1))[: -MOST_RUNS - 1 : -1]:
        if not wanted:
            return
        try:
            run = read_run(log)
            if run.header.variant is not None and run.header.variant.changes:
                # Not what the agent does as it is.
                continue
            found = [
                (case, logged)
                for logged in run.results
                if (case := _place(workspace, run, logged)) is not None and case in wanted
            ]
            if not found:
                continue
            before = run.header.files
            changed = tuple(files_changed_since(log, before, AgentAddress(store.agent_dir))) if before else ()
        except (OSError, ValueError):
            continue
        header = run.header
        title = run_title(header.number or place, header.started, names.get(run_id(log), ""))
        # Of an agent that held its conversations elsewhere, no change is known either.
        is_elsewhere = bool(url or header.data.get("traces"))
        is_same = header.data.get("url", "") == url and (is_elsewhere or bool(before and not changed))
        version = code if is_same else -1
        reading = _Reading(run, workspace, open_set, version, RunRef(log=log, title=title), changed)
        for start in range(0, len(found), _AT_ONCE):
            some = (reading.read(case, logged) for case, logged in found[start : start + _AT_ONCE])
            outcomes = [outcome for outcome in some if outcome is not None]
            wanted -= {outcome.case for outcome in outcomes}
            yield outcomes


def _place(workspace: Workspace, run: StoredRun, logged: LoggedCase) -> CaseId | None:
    return workspace.find(logged.id, logged.summary.eval_set_id, by_label=run.header.by_label)


@dataclass(frozen=True)
class _Reading:
    """A run whose results are read; `ref` is how it is shown, `code` the version of the agent's code, and
    `changed_files` are those of the agent that were changed since."""

    run: StoredRun
    workspace: Workspace
    open_set: Callable[[Path], EvalSetFile]
    code: int
    ref: RunRef
    changed_files: tuple[str, ...]

    def read(self, case: CaseId, logged: LoggedCase) -> LastOutcome | None:
        """None for a case that cannot be shown or read."""
        opened = self.open_set(self.workspace.by_case_path[case.path].path)
        stored, config = opened.case(case.eval_id), opened.config
        if stored is None or config is None:
            return None
        log = self.run.path
        try:
            result = result_of(log, logged)
            pass_if = pass_if_of(result.policy)
        except (OSError, ValueError):
            return None
        scored = CaseOutcome(
            result,
            self.ref,
            stored,
            config.config,
            # Nobody has counted them: nothing may be run again because it was free.
            ModelCalls(known=False),
            self.code,
            pass_if=pass_if,
            changed_files=self.changed_files,
            outdated=tuple(self._changed(logged, stored, config.config)),
        )
        return LastOutcome(case, scored, log, logged)

    def _changed(self, logged: LoggedCase, stored: StoredCase, config: EvalConfig) -> Iterator[str]:
        """What was another one when the case was run, besides the agent."""
        expects = logged.summary.expects
        if expects and expects != case_fingerprint(stored.model()):
            yield "case"
        sets = self.run.header.sets
        began_with = next((one for one in sets if one.path == logged.id.path), None)
        if began_with is None or began_with.config is None:
            return
        now = config.scoring()
        ids = logged.summary.eval_set_id, logged.id.eval_id
        if began_with.config != now and config_of(began_with.config, *ids) != config_of(now, *ids):
            yield "config"
        elif self.run.header.data.get("adk_verdicts"):
            yield "scoring"
