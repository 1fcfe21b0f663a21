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
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.trace.model_calls import ModelCalls
from evaltui.files.agent_address import AgentAddress
from evaltui.files.workspace import Workspace
from evaltui.runs import log_reader as logs
from evaltui.runs.adk_reader import AdkRun
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.adk_results import read_adk_result
from evaltui.runs.history import run_id
from evaltui.runs.index_rows import LoggedFigures, logged_figures, stands_instead
from evaltui.runs.listing import run_title
from evaltui.runs.log_header import RunHeader
from evaltui.runs.resuming import files_changed_since
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
    header = None if path.name.endswith(ADK_SUFFIX) else logs.read_header(path)
    sets_of_run = SetsOfRun(sets, workspace, header.sets if header else ())
    for found in _of_adk(read_adk_result(path)) if header is None else _of_log(path, run.name, header):
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


def _of_log(path: Path, name: str, header: RunHeader) -> Iterator[_Found]:
    file = ResultsInLog(path, name, header)
    found: dict[CaseId, ResultInFile] = {}
    for row in logged_figures(path, header):
        known = found.get(row.id)
        if known is None or stands_instead(header, row.id, row.eval_set_id, row.status, known.status):
            found[row.id] = ResultInFile.of_row(file, row)
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
    for place, log in list(enumerate(store.logs(), 1))[: -MOST_RUNS - 1 : -1]:
        if len(done) == count:
            return
        found: dict[CaseId, Status] = {}
        with suppress(OSError, ValueError):
            header = logs.read_header(log)
            if header.variant is not None and header.variant.changes:
                # Not what the agent does as it is.
                continue
            if not header.of_traces and header.data.get("agent_name") != address.name:
                continue
            title = run_title(header.number or place, header.started, names.get(run_id(log), ""))
            read = _Reading(store, sets, workspace, code, address.url, python, log, title, header)
            if header.by_label or any(read.is_wanted(case, done) for case, _ in header.selected()):
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
    log: Path
    title: str
    header: RunHeader

    def is_wanted(self, case: CaseId, done: Container[CaseId]) -> bool:
        """Whether there is such a case now, and it is not `done`."""
        return case not in done and self.workspace.find(case, "", by_label=False) is not None

    def outcomes(
        self, done: Container[CaseId], found: dict[CaseId, Status]
    ) -> Iterator[tuple[CaseId, CaseOutcome]]:
        """What came of the cases that can be shown and are not `done`, as it is read: a later one of a case
        stands instead of an earlier one. `found` is told which there are.

        Raises OSError, and ValueError for a log that is damaged.
        """
        header, find = self.header, self.workspace.find
        file, by_label = ResultsInLog(self.log, self.title, header), header.by_label
        for row in logged_figures(self.log, header):
            case = find(row.id, row.eval_set_id, by_label=by_label)
            if case is None or case in done:
                continue
            known = found.get(case)
            if known is None or stands_instead(header, row.id, row.eval_set_id, row.status, known):
                outcome = self._outcome(case, row, ResultInFile.of_row(file, row))
                if outcome is not None:
                    # The id as the set has it: ten thousand more take megabytes.
                    case = CaseId(self.workspace.by_case_path[case.path].case_path, outcome.stored.eval_id)
                    found[case] = outcome.status
                    yield case, outcome

    def _outcome(self, case: CaseId, row: LoggedFigures, kept: ResultInFile) -> CaseOutcome | None:
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
        return RunRef(log=self.log, title=self.title)

    @cached_property
    def _sets(self) -> SetsOfRun:
        return SetsOfRun(self.sets, self.workspace, self.header.sets)

    @cached_property
    def _changed(self) -> tuple[str, ...]:
        """The files of the agent that were changed since the run."""
        before = self.header.files
        agent = AgentAddress(self.store.agent_dir)
        files = files_changed_since(self.log, before, agent) if before else ()
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
    header: RunHeader, row: LoggedFigures, eval_set: SetOfRun, stored: StoredCase, config: EvalConfig
) -> dict[str, Any]:
    """The fields of `CaseOutcome` that say what the run was of, and whether case and config of now are it."""
    forms = eval_set.forms
    ids = row.eval_set_id, row.id.eval_id
    config_then: EvalConfig | None = config
    if forms is not None and config_of(forms[0], *ids) != config_of(forms[1], *ids):
        config_then = eval_set.config_then
    is_case = not row.expects or eval_set.is_same or row.expects == stored.fingerprint
    is_scoring_known = config_then is not None and not header.data.get("adk_verdicts")
    ran = (stored if is_case else None, config_then if is_scoring_known else None)
    return {
        "config": config_then or config,
        "ran": None if None not in ran else ran,
        "given": row.given,
        "unscored": None in ran or config_then is not config or eval_set.config is None,
    }
