"""Earlier runs: opening one, and the last results of cases from before this session.

Importing this loads the models: do it in a thread.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from evaltui.core.compare.repeats import pass_if_of
from evaltui.core.compare.run_comparison import config_of
from evaltui.core.metrics.normal_config import normal_config
from evaltui.core.model.case_id import CaseId, fingerprint
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.events import Json
from evaltui.core.model.modes import Modes, modes_of
from evaltui.core.model.problems import EvalSetError
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.trace.model_calls import ModelCalls
from evaltui.project.agent_address import AgentAddress
from evaltui.project.agent_files import UNKNOWN
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.project.interpreters import Interpreter
from evaltui.project.packages import PACKAGE
from evaltui.project.settings import secrets_of
from evaltui.project.workspace import Workspace
from evaltui.runs.adk_results import open_run_file
from evaltui.runs.listing import run_title
from evaltui.runs.resuming import files_changed_since, packages_changed
from evaltui.runs.run_file import CaseInRun, RunFile, is_being_written
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_kind import RunKind
from evaltui.runs.store import RunStore, is_adk_result, run_id
from evaltui.text.figures import counted, show_number
from evaltui.workbench.agent.agent_state import PYTHON
from evaltui.workbench.agent.background import Progress
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.messages import Messages
from evaltui.workbench.result.results import Results
from evaltui.workbench.result.stored_results import RunResults, StoredResult
from evaltui.workbench.state import CaseOutcome, RunRef
from evaltui.workbench.trace.traces import Traces


@dataclass(frozen=True)
class PastRun:
    """An earlier run that is shown.

    `gone` is the number of its cases that are deleted or unreadable, `unclear` the number that may be in
    several files.
    """

    path: Path
    title: str
    started: datetime
    results: Results
    traces: Traces
    gone: int = 0
    unclear: int = 0
    extent: str = ""
    """How many of the selected cases had a result when it was opened; "" where all had."""

    @property
    def id(self) -> str:
        return run_id(self.path)

    @property
    def missing(self) -> str:
        """A sentence about the cases that are not shown; "" where all are."""
        if self.unclear:
            return f"{counted(self.unclear, 'case')} not shown: several files have the same set id"
        return f"{counted(self.gone, 'case')} no longer in the eval sets" if self.gone else ""


def open_past_run(
    run: RunRef,
    path: Path,
    sets: OpenSets,
    workspace: Workspace,
    agent: AgentNow,
    messages: Messages,
    progress: Progress,
) -> PastRun:
    """In a thread: opens an earlier run.

    Raises OSError, and ValueError for a file that is neither a run log nor a result file.
    """
    results = Results()
    traces = Traces(results.get, messages)
    outcomes: list[tuple[CaseId, CaseOutcome]] = []
    read = _RunReader(sets, workspace, agent, open_run_file(path), run.title)
    gone = unclear = 0
    goes_on = read.file.ending is None and is_being_written(path)
    for row in read.file.cases:
        progress.step()
        case = read.find(row.id)
        outcome = read.outcome(case, row) if case is not None else None
        is_unclear = outcome is None and read.is_by_set_id and workspace.shares_label(row.id.path)
        unclear += is_unclear
        gone += outcome is None and not is_unclear
        outcomes += [outcome] if outcome is not None else []
    results.put_all(outcomes)
    extent = _extent(read, len(outcomes) + gone + unclear, goes_on=goes_on)
    return PastRun(path, run.title, read.header.started, results, traces, gone, unclear, extent)


def _extent(read: _RunReader, done: int, *, goes_on: bool) -> str:
    selected = sum(1 for _ in read.header.selected())
    if done == selected:
        return ""
    return (
        f"{show_number(done)} of {counted(selected, 'case')}{', in progress when opened' if goes_on else ''}"
    )


# Keys wait for no more than these.
_BATCH_SIZE = 1000

# Nobody has counted the calls of an earlier sitting: nothing may be run again because it was free.
_UNKNOWN_CALLS = ModelCalls(is_known=False)


class AgentNow(NamedTuple):
    """The agent whose runs are read."""

    store: RunStore
    address: AgentAddress
    code: int
    """The version of its code."""
    python: Interpreter | None = None
    """Its Python; None where no process of it may be started, and for an agent with a URL."""


def last_outcomes(
    sets: OpenSets, workspace: Workspace, agent: AgentNow
) -> Iterator[list[tuple[CaseId, CaseOutcome]]]:
    """The last result of each case, in batches, those of the newest run first.

    Results of another agent are left out. Changes of an agent behind a network are unknown. Results of scored
    traces are used for cases that have no other. Unreadable parts of a log are skipped.
    """
    store = agent.store
    count = sum(len({case.eval_id for case in eval_set.cases}) for eval_set in workspace.sets)
    done: set[CaseId] = set()
    kind = RunKind.of(agent.address)
    names = store.names_by_run()
    of_traces: list[Path] = []
    for log in chain(reversed(store.files()), of_traces):
        if len(done) == count:
            return
        shown: set[CaseId] = set()
        with suppress(OSError, ValueError):
            file = RunFile(log)
            header = file.header
            if not header.is_of(kind):
                continue
            if header.of_traces and log not in of_traces:
                # For cases that have no other result.
                of_traces.append(log)
                continue
            name = names.get(file.id, ("",))[-1]
            title = run_title(header.number, header.started, name, header.kind)
            read = _RunReader(sets, workspace, agent, file, title)
            selected = (read.find(case) for case, _ in header.selected())
            if any(case is not None and case not in done for case in selected):
                outcomes = read.outcomes(done, shown)
                while some := list(islice(outcomes, _BATCH_SIZE)):
                    yield some
        done.update(shown)


def names_used(logs: Iterable[Path]) -> tuple[set[str], dict[str, float]]:
    """The names of the files that the agent of these runs has read and not written in one of them, also
    outside of its folder, and of those that it has written with the start of the last of these runs."""
    read, written = set[str](), dict[str, float]()
    for log in sorted(logs):
        with suppress(OSError, ValueError):
            header = RunFile(log).header
            read |= {*header.read} - {*header.written}
            written |= dict.fromkeys(header.written, header.started.timestamp())
    return read, written


@dataclass(frozen=True)
class _RunReader:
    """A run whose results are being read."""

    sets: OpenSets
    workspace: Workspace
    agent: AgentNow
    file: RunFile
    title: str

    @property
    def header(self) -> RunHeader:
        return self.file.header

    @property
    def is_by_set_id(self) -> bool:
        """Whether the run is a result file of google-adk, which has ids of sets instead of paths."""
        return is_adk_result(self.file.path)

    def find(self, case: CaseId) -> CaseId | None:
        """The current id of a case of the run; where it was moved, the only case with its id. None where it
        is deleted."""
        if self.is_by_set_id:
            return self.workspace.find(case, case.path, by_label=True)
        if (match := self.workspace.find(case, "", by_label=False)) is not None:
            return match
        moved = self._cases_by_id.get(case.eval_id, ())
        return moved[0] if len(moved) == 1 else None

    @cached_property
    def _cases_by_id(self) -> Mapping[str, Sequence[CaseId]]:
        by_id: dict[str, list[CaseId]] = {}
        for eval_set in self.workspace.sets:
            for case in eval_set.cases:
                by_id.setdefault(case.eval_id, []).append(CaseId(eval_set.case_path, case.eval_id))
        return by_id

    def outcomes(self, done: Container[CaseId], shown: set[CaseId]) -> Iterator[tuple[CaseId, CaseOutcome]]:
        """The results of the cases that can be shown and are not `done`; their ids are added to `shown`.

        Raises the errors of `RunFile`.
        """
        for row in self.file.cases:
            case = self.find(row.id)
            if case is None or case in done:
                continue
            if (outcome := self.outcome(case, row)) is not None:
                shown.add(outcome[0])
                yield outcome

    def outcome(self, case: CaseId, row: CaseInRun) -> tuple[CaseId, CaseOutcome] | None:
        """The outcome of a case, with its id; None for one that cannot be shown."""
        eval_set = self._sets.get(case.path, row.id.path)
        # A config that cannot be read now does not take the result away.
        stored, config = eval_set.case(case.eval_id), eval_set.config or eval_set.config_then
        if stored is None or config is None:
            return None
        if case != row.id and not self.is_by_set_id and stored.fingerprint != row.summary.expects:
            # Elsewhere, only the same case is the one of the run.
            return None
        ref = StoredResult(row.summary, self._results, row.number)
        try:
            policy = pass_if_of(row.summary.policy)
        except ValueError:
            return None
        # Without the option, the policy is that of the config, which may have changed.
        pass_if = policy if self.header.of_adk else self.header.settings.pass_if
        scored = CaseOutcome(
            ref,
            self._ref,
            stored,
            calls=_UNKNOWN_CALLS,
            code=self._version,
            pass_if=pass_if,
            logged=ref,
            changed_files=self._changed_files,
            modes=self._modes,
            prices=self.header.settings.prices if self._modes is not None else None,
            recorded=row.summary.recorded if self._modes is not None else "",
            of_traces=self.header.of_traces,
            **_run_fields(self.header, row, eval_set, stored, config),
        )
        # The id as the set has it: ten thousand more take megabytes.
        return CaseId(self.workspace.by_case_path[case.path].case_path, stored.eval_id), scored

    @cached_property
    def _results(self) -> RunResults:
        return RunResults(self.file.path, self.title)

    @cached_property
    def _ref(self) -> RunRef:
        return RunRef(log=self.file.path, title=self.title, started=self.header.started.timestamp())

    @cached_property
    def _sets(self) -> SetsOfRun:
        return SetsOfRun(self.sets, self.workspace, self.header.sets)

    @cached_property
    def _modes(self) -> Modes | None:
        header = self.header
        if header.of_traces or header.session or header.of_adk:
            return None
        return modes_of(header.settings.record, header.settings.tools, {})

    @cached_property
    def _changed_files(self) -> dict[str, str]:
        """The files of the agent that were changed since the run, with their fingerprints in it."""
        agent = AgentAddress(self.agent.store.agent_dir)
        files = files_changed_since(self.file, agent) if self._is_known else ()
        # Of an agent behind a network, only the times of files are compared.
        missing = UNKNOWN if self.header.url else ""
        changed = {name: self.header.files.get(name, missing) for name in files}
        now, then = self.agent.python, self.header.interpreter
        if now is None or then is None:
            return changed
        if not then.is_in_environment_of(now):
            return changed | {PYTHON: UNKNOWN}
        packages = self.header.packages or {}
        return changed | {
            f"{PACKAGE}{name}": fingerprint(packages[name]) if name in packages else ""
            for name in packages_changed(self.header, now)
        }

    @cached_property
    def _version(self) -> int:
        """The version of the agent's code that `_changed_files` are compared with; -1 for another agent."""
        is_same = self._is_known and self.header.url == self.agent.address.url
        return self.agent.code if is_same else -1

    @property
    def _is_known(self) -> bool:
        """Whether the run has the fingerprints of the agent's files."""
        return bool(self.header.files or self.header.url)


def _run_fields(
    header: RunHeader, row: CaseInRun, eval_set: SetOfRun, stored: StoredCase, config: EvalConfig
) -> dict[str, Any]:
    """The fields of `CaseOutcome` for the case and config of the run, compared with the current ones."""
    forms = eval_set.forms
    ids = row.summary.eval_set_id, row.id.eval_id
    config_then: EvalConfig | None = config
    is_alike = forms is None or config_of(forms[0], *ids) == config_of(forms[1], *ids)
    if not is_alike or (forms is not None and _has_other_repeats(header, row.summary.runs, forms)):
        config_then = eval_set.config_then
    expects = row.summary.expects
    is_case = not expects or eval_set.is_same or expects == stored.fingerprint
    is_scoring_known = config_then is not None and not header.settings.adk_verdicts
    ran = (stored if is_case else None, config_then if is_scoring_known else None)
    return {
        "config": config_then or config,
        "ran": None if None not in ran else ran,
        "agent_input": row.summary.given,
        "unscored": None in ran
        or config_then is not config
        or eval_set.config is None
        or row.summary.eval_set_id != eval_set.file.eval_set_id,
    }


def _has_other_repeats(header: RunHeader, runs: int, forms: tuple[Json, Json]) -> bool:
    """Whether the current config has another pass policy for these runs of a case than that of the run, or
    more runs."""
    then, now = ((form.get("evaltui") or {}).get("repeats") or {} for form in forms)
    is_by_config = runs > 1 and header.settings.pass_if is None
    has_more: bool = then.get("runs") != now.get("runs", 1) > runs
    return has_more or (is_by_config and then.get("pass_if") != now.get("pass_if"))


# The sets of a run as they are now


@dataclass(frozen=True)
class SetOfRun:
    """An eval set of a run, and its current config."""

    file: EvalSetFile
    config: EvalConfig | None
    """None where it has errors."""
    is_same: bool
    """Whether the file is the same as in the run. It need not be validated then."""
    scored_then: Json | None = None
    """The config that scored it in the run; None where it is unknown, or equal to the current one."""
    forms: tuple[Json, Json] | None = None
    """Normal form of the config of the run and of the current one; None where they are equal, or unknown."""

    @cached_property
    def config_then(self) -> EvalConfig | None:
        """The config that scored it in the run; None where it is unreadable."""
        try:
            return EvalConfig.model_validate(self.scored_then)
        except ValueError:
            return None

    def case(self, eval_id: str) -> StoredCase | None:
        """A case that can be scored, even if the set has other errors; None for none."""
        number = self.file.number(eval_id)
        if number is None:
            return None
        stored = self.file.cases[number]
        if not self.is_same and self.file.eval_set is None:
            try:
                stored.model()
            except ValueError:
                return None
        return stored


class SetsOfRun:
    """The sets of a run, for use in a thread: each is read once, which takes time."""

    def __init__(self, sets: OpenSets, workspace: Workspace, began_with: Iterable[SelectedSet] = ()) -> None:
        """`began_with` are the sets in the log of the run; empty where it has none."""
        self._sets = sets
        self._workspace = workspace
        self._began_with = {eval_set.path: eval_set for eval_set in began_with}
        self._cached: dict[tuple[str, str], SetOfRun] = {}

    def get(self, path: str, path_then: str) -> SetOfRun:
        """The set with this path, which the workspace has; `path_then` is its path in the run."""
        key = path, path_then
        if key not in self._cached:
            then = self._began_with.get(path_then)
            self._cached[key] = self._read(self._workspace.by_case_path[path], then)
        return self._cached[key]

    def _read(self, listed: EvalSetFile, then: SelectedSet | None) -> SetOfRun:
        is_same = then is not None and then.fingerprint is not None and then.fingerprint == listed.fingerprint
        file = listed if is_same else self._sets.open(listed.path)
        current = self._sets.config_now(listed.path) if is_same else file.config
        if current is None or isinstance(current, EvalSetError):
            return SetOfRun(file, None, is_same, then.config if then else None)
        # As the log has it.
        now = secrets_of(self._sets.agent_dir).masked(current.config.scoring())
        if then is None or then.scored_by is None or then.config == now:
            return SetOfRun(file, current.config, is_same)
        forms = then.scored_by, normal_config(now)
        if forms[0] == forms[1]:
            return SetOfRun(file, current.config, is_same)
        return SetOfRun(file, current.config, is_same, then.config, forms)
