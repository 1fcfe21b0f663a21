"""Earlier runs: one opened as if it had just been run, and what came of each case before this sitting.

Importing this loads the models: do it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from evaltui.core.compare.repeats import pass_if_of
from evaltui.core.compare.run_comparison import config_of
from evaltui.core.conversation.replay import events_of_invocation
from evaltui.core.model.case_id import CaseId
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
from evaltui.runs.history import run_id
from evaltui.runs.listing import run_title
from evaltui.runs.log_header import RunHeader
from evaltui.runs.log_reader import LoggedCase
from evaltui.runs.resuming import files_changed_since
from evaltui.runs.store import RunStore
from evaltui.workbench.kept_results import ResultInFile, ResultsInLog
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
    code: int,
    changed: Callable[[], None],
) -> PastRun:
    """In a thread. `code` is the version of the agent's code now; `changed` is told what is read later.

    Raises OSError, and ValueError for what is neither a run log nor a result file.
    """
    results = Results()
    traces = Traces(results.get, changed)
    gone = unclear = 0
    # To look whether a set is still the same takes time.
    open_once = cache(open_set)
    for found in _found(path, run.name):
        case = workspace.find(found.id, found.eval_set_id, by_label=found.by_label)
        if case is None:
            is_unclear = found.by_label and workspace.shares_label(found.eval_set_id)
            gone, unclear = gone + (not is_unclear), unclear + is_unclear
            continue
        opened = open_once(workspace.by_case_path[case.path].path)
        stored, config = opened.case(case.eval_id), opened.config
        if stored is None or config is None:
            gone += 1
            continue
        kept, pass_if = found.kept, pass_if_of(found.kept.policy)
        logged = kept if isinstance(kept, ResultInFile) else None
        scored = CaseOutcome(kept, run, stored, config.config, code=code, pass_if=pass_if, logged=logged)
        results.put(CaseId(case.path, stored.eval_id), scored)
        if logged is None:
            traces.keep(case, run, found.events)
    return PastRun(path, run.title, results, traces, gone, unclear)


def case_changed(scored: CaseOutcome) -> bool:
    """Whether the case says something else now than it did in the run, as far as the run tells."""
    repeats = scored.result.repeats
    expects = repeats[0].expects if repeats else ""
    return bool(expects) and expects != scored.stored.fingerprint


class _Found(NamedTuple):
    """A result, with the ids that its run knows; the events by repeat where the run has no log."""

    id: CaseId
    eval_set_id: str
    kept: CaseResult | ResultInFile
    by_label: bool
    events: Mapping[int, Sequence[Event]] = MappingProxyType({})


def _found(path: Path, name: str) -> Iterator[_Found]:
    if path.name.endswith(ADK_SUFFIX):
        yield from _of_adk(read_adk_result(path))
        return
    header = logs.read_header(path)
    file = ResultsInLog(path, name, header)
    found: dict[CaseId, ResultInFile] = {}
    for place, logged in logs.logged_cases(path, header):
        known = found.get(logged.id)
        if known is None or logs.stands_instead(logged, known.status, header):
            found[logged.id] = ResultInFile.of(file, place, logged.summary)
    for case, kept in found.items():
        yield _Found(case, kept.eval_set_id, kept, header.by_label)


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
        light = replace(case, repeats=tuple(replace(repeat, actual=()) for repeat in case.repeats))
        yield _Found(case.id, case.eval_set_id, light, by_label=True, events=events)


# Cases that none of the newest runs had stay `not run`.
MOST_RUNS = 50
# Keys wait for no more than these.
_AT_ONCE = 1000

# Nobody has counted the calls of an earlier sitting: nothing may be run again because it was free.
_UNKNOWN = ModelCalls(known=False)


def last_outcomes(
    store: RunStore,
    workspace: Workspace,
    open_set: Callable[[Path], EvalSetFile],
    code: int,
    url: str = "",
) -> Iterator[list[tuple[CaseId, CaseOutcome]]]:
    """The last result of every case that has one, some at a time, those of the newest run first.

    `code` is the agent's version now; results of an agent that was changed since have version -1. Of one
    behind a network with this `url`, and where traces were scored, no change is known.
    A log that cannot be read is passed over.
    """
    # The ids as the sets have them: ten thousand more take megabytes.
    wanted = {
        case: case
        for one in workspace.sets
        for case in (CaseId(one.case_path, stored.eval_id) for stored in one.cases)
    }
    names = {run: name for name, run in store.names().items()}
    for place, log in list(enumerate(store.logs(), 1))[: -MOST_RUNS - 1 : -1]:
        if not wanted:
            return
        try:
            header = logs.read_header(log)
            if header.variant is not None and header.variant.changes:
                # Not what the agent does as it is.
                continue
            if not header.by_label and not any(case in wanted for case, _ in header.selected()):
                continue
            title = run_title(header.number or place, header.started, names.get(run_id(log), ""))
            read = _Reading(store, workspace, open_set, code, url, log, title, header)
            found = read.outcomes(wanted)
        except (OSError, ValueError):
            continue
        for case in found:
            del wanted[case]
        outcomes = iter(found.items())
        while some := list(islice(outcomes, _AT_ONCE)):
            yield some


@dataclass(frozen=True)
class _Reading:
    """A run whose results are read; the other fields are as in `last_outcomes`."""

    store: RunStore
    workspace: Workspace
    open_set: Callable[[Path], EvalSetFile]
    code: int
    url: str
    log: Path
    title: str
    header: RunHeader

    def outcomes(self, wanted: Mapping[CaseId, CaseId]) -> dict[CaseId, CaseOutcome]:
        """What came of the wanted cases that can be shown.

        Raises OSError, and ValueError for a log that is damaged.
        """
        header, find = self.header, self.workspace.find
        file = ResultsInLog(self.log, self.title, header)
        found: dict[CaseId, CaseOutcome] = {}
        for place, logged in logs.logged_cases(self.log, header):
            case = find(logged.id, logged.summary.eval_set_id, by_label=header.by_label)
            if case is None or (case := wanted.get(case)) is None:
                continue
            known = found.get(case)
            if known is None or logs.stands_instead(logged, known.status, header):
                outcome = self._outcome(case, logged, ResultInFile.of(file, place, logged.summary))
                if outcome is not None:
                    found[case] = outcome
        return found

    def _outcome(self, case: CaseId, logged: LoggedCase, kept: ResultInFile) -> CaseOutcome | None:
        """None for a case that cannot be shown."""
        opened = self._sets(case.path)
        stored, config = opened.case(case.eval_id), opened.config
        if stored is None or config is None:
            return None
        try:
            pass_if = pass_if_of(kept.policy)
        except ValueError:
            return None
        return CaseOutcome(
            kept,
            self._ref,
            stored,
            config.config,
            _UNKNOWN,
            self._version,
            pass_if=pass_if,
            logged=kept,
            changed_files=self._changed,
            outdated=tuple(_changed_since(self.header, logged, stored, config.config)),
        )

    @cached_property
    def _ref(self) -> RunRef:
        return RunRef(log=self.log, title=self.title)

    @cached_property
    def _sets(self) -> Callable[[str], EvalSetFile]:
        """The opened set with this path; to look whether it is still the same takes time."""
        return cache(lambda path: self.open_set(self.workspace.by_case_path[path].path))

    @cached_property
    def _changed(self) -> tuple[str, ...]:
        """The files of the agent that were changed since the run."""
        before = self.header.files
        agent = AgentAddress(self.store.agent_dir)
        return tuple(files_changed_since(self.log, before, agent)) if before else ()

    @cached_property
    def _version(self) -> int:
        """That of the agent's code in the run."""
        header = self.header
        # Of an agent that held its conversations elsewhere, no change is known either.
        is_elsewhere = bool(self.url or header.data.get("traces"))
        is_same = is_elsewhere or bool(header.files and not self._changed)
        return self.code if is_same and header.data.get("url", "") == self.url else -1


def _changed_since(
    header: RunHeader, logged: LoggedCase, stored: StoredCase, config: EvalConfig
) -> Iterator[str]:
    """What was another one when a case was run, besides the agent: `case`, `config`, `scoring`."""
    expects = logged.summary.expects
    if expects and expects != stored.fingerprint:
        yield "case"
    began_with = next((one for one in header.sets if one.path == logged.id.path), None)
    if began_with is None or began_with.config is None:
        return
    now = config.scoring()
    ids = logged.summary.eval_set_id, logged.id.eval_id
    if began_with.config != now and config_of(began_with.config, *ids) != config_of(now, *ids):
        yield "config"
    elif header.data.get("adk_verdicts"):
        yield "scoring"
