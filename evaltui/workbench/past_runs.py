"""Earlier runs: one opened as if it had just been run, and what came of each case before this sitting.

Importing this loads the models: do it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from evaltui.core.compare.repeats import pass_if_of
from evaltui.core.compare.run_comparison import config_of
from evaltui.core.conversation.replay import events_of_invocation
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.events import Event
from evaltui.core.model.json_values import member
from evaltui.core.model.outcome import CaseResult
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.trace.model_calls import ModelCalls
from evaltui.files.agent_address import AgentAddress
from evaltui.files.workspace import Workspace
from evaltui.runs.adk_reader import AdkRun
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.adk_results import read_adk_result
from evaltui.runs.history import run_id
from evaltui.runs.listing import run_title
from evaltui.runs.resuming import files_changed_since
from evaltui.runs.run_file import CaseInRun, RunFile
from evaltui.runs.run_header import RunHeader
from evaltui.runs.store import RunStore
from evaltui.workbench.agent_state import PYTHON
from evaltui.workbench.background import Progress
from evaltui.workbench.kept_results import ResultInFile, ResultsInLog
from evaltui.workbench.open_sets import OpenSets
from evaltui.workbench.results import Results
from evaltui.workbench.sets_of_run import SetOfRun, SetsOfRun
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
    sets: OpenSets,
    workspace: Workspace,
    code: int,
    changed: Callable[[], None],
    progress: Progress,
) -> PastRun:
    """In a thread. `code` is the version of the agent's code now; `changed` is told what is read later.

    Raises OSError, and ValueError for what is neither a run log nor a result file.
    """
    results = Results()
    traces = Traces(results.get, changed)
    outcomes: list[tuple[CaseId, CaseOutcome]] = []
    gone = unclear = 0
    file = None if path.name.endswith(ADK_SUFFIX) else RunFile(path)
    sets_of_run = SetsOfRun(sets, workspace, file.header.sets if file else ())
    for found in _of_adk(read_adk_result(path)) if file is None else _of_file(file, run.name):
        progress.step()
        case = workspace.find(found.id, found.eval_set_id, by_label=found.by_label)
        if case is None:
            is_unclear = found.by_label and workspace.shares_label(found.eval_set_id)
            gone, unclear = gone + (not is_unclear), unclear + is_unclear
            continue
        eval_set = sets_of_run.get(case.path, found.id.path)
        stored, config = eval_set.case(case.eval_id), eval_set.config or eval_set.config_then
        if stored is None or config is None:
            gone += 1
            continue
        kept, pass_if = found.kept, pass_if_of(found.kept.policy)
        logged = kept if isinstance(kept, ResultInFile) else None
        kept = kept if logged is None else logged.in_set(eval_set.file.eval_set_id)
        scored = CaseOutcome(kept, run, stored, config, code=code, pass_if=pass_if, logged=logged)
        outcomes.append((CaseId(case.path, stored.eval_id), scored))
        if logged is None:
            traces.keep(case, run, found.events)
    results.put_all(outcomes)
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


def _of_file(file: RunFile, name: str) -> Iterator[_Found]:
    results = ResultsInLog(file.path, name)
    for case in file.cases:
        kept = ResultInFile.of(results, case.number, case.summary)
        yield _Found(case.id, kept.eval_set_id, kept, by_label=False)


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
    sets: OpenSets,
    workspace: Workspace,
    code: int,
    address: AgentAddress,
    python: str = "",
) -> Iterator[list[tuple[CaseId, CaseOutcome]]]:
    """The last result of every case that has one, some at a time, those of the newest run first.

    `code` is the version now of the agent with this `address`; results of an agent that was changed since
    have version -1, those of another sub-agent are left out. Of one behind a network, and where traces were
    scored, no change is known. `python` is the agent's Python now, "" where none was looked for.
    What cannot be read of a log is passed over.
    """
    count = sum(len({case.eval_id for case in one.cases}) for one in workspace.sets)
    done: set[CaseId] = set()
    names = {run: name for name, run in store.names().items()}
    for log in store.files()[: -MOST_RUNS - 1 : -1]:
        if len(done) == count:
            return
        found: set[CaseId] = set()
        with suppress(OSError, ValueError):
            file = RunFile(log)
            header = file.header
            if header.variant is not None and header.variant.changes:
                # Not what the agent does as it is.
                continue
            if not header.of_traces and header.data.get("agent_name") != address.name:
                continue
            title = run_title(header.number, header.started, names.get(run_id(log), ""))
            read = _Reading(store, sets, workspace, code, address.url, python, file, title)
            if any(read.is_wanted(case, done) for case, _ in header.selected()):
                outcomes = read.outcomes(done, found)
                while some := list(islice(outcomes, _AT_ONCE)):
                    yield some
        done.update(found)


@dataclass(frozen=True)
class _Reading:
    """A run whose results are read; the other fields are as in `last_outcomes`."""

    store: RunStore
    sets: OpenSets
    workspace: Workspace
    code: int
    url: str
    python: str
    file: RunFile
    title: str

    @property
    def header(self) -> RunHeader:
        return self.file.header

    def is_wanted(self, case: CaseId, done: Container[CaseId]) -> bool:
        """Whether there is such a case now, and it is not `done`."""
        return case not in done and self.workspace.find(case, "", by_label=False) is not None

    def outcomes(self, done: Container[CaseId], found: set[CaseId]) -> Iterator[tuple[CaseId, CaseOutcome]]:
        """The results of the cases that can be shown and are not `done`, which are added to `found`.

        Raises what `RunFile` raises.
        """
        results = ResultsInLog(self.file.path, self.title)
        for row in self.file.cases:
            case = self.workspace.find(row.id, row.summary.eval_set_id, by_label=False)
            if case is None or case in done:
                continue
            outcome = self._outcome(case, row, ResultInFile.of(results, row.number, row.summary))
            if outcome is not None:
                # The id as the set has it: ten thousand more take megabytes.
                case = CaseId(self.workspace.by_case_path[case.path].case_path, outcome.stored.eval_id)
                found.add(case)
                yield case, outcome

    def _outcome(self, case: CaseId, row: CaseInRun, kept: ResultInFile) -> CaseOutcome | None:
        """None for a case that cannot be shown."""
        eval_set = self._sets.get(case.path, row.id.path)
        # A config that cannot be read now does not take the result away.
        stored, config = eval_set.case(case.eval_id), eval_set.config or eval_set.config_then
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
            calls=_UNKNOWN,
            code=self._version,
            pass_if=pass_if,
            logged=kept,
            changed_files=self._changed,
            **_ran_as(self.header, row, eval_set, stored, config),
        )

    @cached_property
    def _ref(self) -> RunRef:
        return RunRef(log=self.file.path, title=self.title)

    @cached_property
    def _sets(self) -> SetsOfRun:
        return SetsOfRun(self.sets, self.workspace, self.header.sets)

    @cached_property
    def _changed(self) -> tuple[str, ...]:
        """The files of the agent that were changed since the run."""
        agent = AgentAddress(self.store.agent_dir)
        files = files_changed_since(self.file, agent) if self.header.files else ()
        python = member(self.header.data, "settings", dict, {}).get("python")
        return (*files, PYTHON) if self.python and python and python != self.python else files

    @cached_property
    def _version(self) -> int:
        """That of the agent's code in the run."""
        header = self.header
        # Of an agent that held its conversations elsewhere, no change is known either.
        is_elsewhere = bool(self.url or header.of_traces)
        is_same = is_elsewhere or bool(header.files and not self._changed)
        return self.code if is_same and header.data.get("url", "") == self.url else -1


def _ran_as(
    header: RunHeader, row: CaseInRun, eval_set: SetOfRun, stored: StoredCase, config: EvalConfig
) -> dict[str, Any]:
    """The fields of `CaseOutcome` that say what the run was of, and whether case and config of now are it."""
    forms = eval_set.forms
    ids = row.summary.eval_set_id, row.id.eval_id
    config_then: EvalConfig | None = config
    if forms is not None and config_of(forms[0], *ids) != config_of(forms[1], *ids):
        config_then = eval_set.config_then
    expects = row.summary.expects
    is_case = not expects or eval_set.is_same or expects == stored.fingerprint
    is_scoring_known = config_then is not None and not header.data.get("adk_verdicts")
    ran = (stored if is_case else None, config_then if is_scoring_known else None)
    return {
        "config": config_then or config,
        "ran": None if None not in ran else ran,
        "given": row.summary.given,
        "unscored": None in ran
        or config_then is not config
        or eval_set.config is None
        or row.summary.eval_set_id != eval_set.file.eval_set_id,
    }
