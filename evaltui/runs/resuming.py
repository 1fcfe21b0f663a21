"""Interrupted runs: their remaining cases, and whether they can be resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from evaltui.agents.protocol import FilesOpened
from evaltui.core.compare.repeats import FixedRuns
from evaltui.core.compare.run_comparison import config_changes
from evaltui.core.metrics.normal_config import normal_config
from evaltui.core.metrics.requirements import functions_of
from evaltui.core.model.case_id import CaseId, case_fingerprint
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.limits import Amount
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.model.stored_cases import ids_and_turns
from evaltui.project.agent_address import AgentAddress, files_of_agent
from evaltui.project.agent_files import (
    UNKNOWN,
    FilesNow,
    changed_files,
    function_digest,
    is_prompt,
    is_read_only,
    prints_of,
    used_files,
    was_written_since,
)
from evaltui.project.folders import agent_folder
from evaltui.project.interpreters import Interpreter
from evaltui.project.packages import PACKAGE, installed_packages
from evaltui.project.settings import secrets_of
from evaltui.runner.plan import SetPlan
from evaltui.runner.recording_files import SCORED, Recordings, read_recordings, recordings_path
from evaltui.runs.run_file import RunFile, is_being_written
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_kind import RunKind
from evaltui.runs.sets import SetSource
from evaltui.runs.store import is_adk_result, run_id
from evaltui.text.figures import short_list

FinishedRepeats = Mapping[CaseId, Mapping[int, RepeatResult]]


class ResumeError(ValueError):
    """Why a run cannot be resumed, as a sentence.

    With `differs`, the reason is a change since the run started, so that old and new results would not belong
    together.
    """

    def __init__(self, why: str, *, differs: bool = False) -> None:
        super().__init__(why)
        self.differs = differs


class CompleteError(ResumeError):
    """The run is complete, so that nothing is left to resume."""


@dataclass(frozen=True)
class Resumption:
    """A run to resume.

    `eval_ids` are the cases that it was started with, by file; `finished` are the results of finished
    repeats.
    """

    path: Path
    header: RunHeader
    eval_ids: Mapping[Path, tuple[str, ...]]
    finished: FinishedRepeats
    more: Mapping[CaseId, int] = field(default_factory=dict)
    """Numbers of runs for the cases that have more runs than the others."""
    spent: Amount = field(default_factory=Amount)
    """The spending of model calls that is not part of the results in `finished`."""
    known_spent: Amount = field(default_factory=Amount)
    """The spending of the results in `finished`."""
    of_other_variant: bool = False
    """Whether the run is of another variant, and only its selection and settings are used."""

    @property
    def id(self) -> str:
        return run_id(self.path)

    @property
    def notes(self) -> list[str]:
        """Remarks on the reused results. Raises the errors of `RunFile`."""
        return [note for note in RunFile(self.path).notes if self.finished and note != self.header.stopped]

    def carried(self) -> Iterator[tuple[CaseId, int]]:
        """The reused runs of cases, each with its number from 0."""
        for case, repeats in self.finished.items():
            yield from ((case, number) for number in repeats)


def resumable_header(path: Path, *, of_traces: bool = False) -> RunHeader:
    """The header of a run that may be resumed.

    Raises ResumeError for a run of another kind (`of_traces`: a run that scored traces), OSError, and
    ValueError for a file that is no run.
    """
    if is_adk_result(path):
        raise ResumeError("ADK result files cannot be resumed")
    file = RunFile(path)
    header = file.header
    if header.of_traces is not of_traces:
        what, command = ("the agent was run", "run") if of_traces else ("traces were scored", "score")
        raise ResumeError(f"{what}: use `evaltui {command} --resume {run_id(path)}`")
    if is_being_written(path):
        raise ResumeError("Run in progress")
    file.require_whole()
    return header


def read_resumption(
    agent: AgentAddress,
    path: Path,
    sets: SetSource,
    kinds: AbstractSet[ErrorKind] | None = None,
    *,
    of_traces: bool = False,
    more: Mapping[CaseId, int] | None = None,
) -> Resumption:
    """The remaining cases and repeats of a run: those without a result, and errors of these `kinds`.

    `more` adds repeats of some cases. Sets and configs must be read as for the run; for `of_traces` see
    `resumable_header`. Raises ResumeError for a changed agent, set or config, and for nothing left to run;
    EvalSetError, OSError, and ValueError for a damaged log.
    """
    agent_dir, header = agent.folder, resumable_header(path, of_traces=of_traces)
    _refuse_another(agent, path, header, sets, of_traces=of_traces)
    opened = [_open_set(agent_dir, selected, sets) for selected in header.sets]
    if not opened and header.shards is not None:
        raise CompleteError("Nothing to resume: the shard has no case")
    if not opened:
        raise ResumeError("the run has no selected cases", differs=True)
    _refuse_other_functions(agent, header, opened)
    file = RunFile(path)
    finished, spent = finished_repeats(file, kinds, of_traces=of_traces)
    results: dict[CaseId, Mapping[int, RepeatResult]] = {}
    changed_cases: list[str] = []
    recorded_otherwise: list[str] = []
    more_of: dict[CaseId, int] = {}
    missing, known_spent = 0, Amount()
    for began, plan in zip(header.sets, opened, strict=True):
        runs = header.settings.runs or plan.config.evaltui.repeats.runs
        cases = plan.only(began.eval_ids).cases
        recordings = _replay_recordings(agent, header, plan)
        for number, (eval_id, _) in enumerate(ids_and_turns(cases)):
            case = CaseId(plan.case_path, eval_id)
            rule = header.repeat_rule(began, eval_id, plan.config.evaltui.repeats)
            if more is not None and (header.settings.confidence is None or case in more):
                least = rule.most if header.settings.confidence is None else 0
                rule = FixedRuns(max(least, len(finished.get(case, {}))) + more.get(case, 0))
            is_fixed = isinstance(rule, FixedRuns) and not of_traces
            if is_fixed and (header.settings.confidence is not None or rule.most != runs):
                more_of[case] = rule.most
            done = {repeat: result for repeat, result in finished.get(case, {}).items() if repeat < rule.most}
            repeats = StoredRepeats(file, case, tuple(done))
            if done:
                results[case] = repeats
                if {result.expects for result in done.values()} != {case_fingerprint(cases[number])}:
                    changed_cases.append(eval_id)
                if recordings and _has_other_recording(eval_id, done, recordings):
                    recorded_otherwise.append(eval_id)
                known_spent = sum((result.spent for result in done.values()), known_spent)
            missing += len(rule.due(repeats))
    _refuse_changed({"finished cases": changed_cases, "recordings of finished cases": recorded_otherwise})
    if not missing and file.ending is not None:
        of_kind = "" if kinds == set(ErrorKind) else f" of kind {', '.join(sorted(kinds or ()))}"
        what = f"run has no errors{of_kind}" if kinds else "run is complete"
        raise CompleteError(f"Nothing to resume: {what}")
    return Resumption(path, header, _selected_ids(header, opened), results, more_of, spent, known_spent)


def _refuse_other_functions(agent: AgentAddress, header: RunHeader, opened: Sequence[SetPlan]) -> None:
    """Raises ResumeError where the code of a metric, judge or simulated user has changed."""
    now = functions_now((plan.config for plan in opened), agent.folder, agent.interpreter.executable)
    changed = [name for name, digest in header.functions.items() if now.get(name, digest) != digest]
    _refuse_changed({"functions": changed})


def functions_now(configs: Iterable[EvalConfig], agent_dir: Path, python: Path | None) -> dict[str, str]:
    """Fingerprints of the code of the user's metrics, judges and simulated users, by the paths of their
    functions, where it is found. `python` is the agent's, None for evaltui's."""
    digests = {}
    for config in configs:
        for function in functions_of(config):
            name = ":".join(function.rpartition(".")[::2])
            digests[function] = function_digest(name, agent_dir, python)
        for definition in config.evaltui.metrics_to_run.values():
            # Code in the config is a part of that.
            if definition.is_function and not definition.source:
                digests[definition.place] = prints_of(agent_dir, [definition.file]).get(definition.file, "")
    return {function: digest for function, digest in digests.items() if digest}


def _replay_recordings(agent: AgentAddress, header: RunHeader, plan: SetPlan) -> Recordings | None:
    """The current recordings of a set; None for a run that does not only replay. Raises EvalSetError."""
    if header.settings.record != "replay" or plan.path is None:
        return None
    variant = agent.variant.recordings if agent.variant else ""
    folder = SCORED if header.of_traces else variant
    return read_recordings(recordings_path(plan.path, plan.eval_set_id, folder))


def _has_other_recording(eval_id: str, done: Mapping[int, FinishedRepeat], recordings: Recordings) -> bool:
    return any(result.recorded != recordings.fingerprint(eval_id, repeat) for repeat, result in done.items())


def _refuse_changed(changed: Mapping[str, Sequence[str]]) -> None:
    """Raises ResumeError if `changed` has any ids of cases, which are grouped by the kind of change."""
    for what, eval_ids in changed.items():
        if eval_ids:
            raise ResumeError(f"{what} changed: {short_list(eval_ids)}", differs=True)


def _refuse_another(
    agent: AgentAddress, path: Path, header: RunHeader, sets: SetSource, *, of_traces: bool
) -> None:
    """Raises ResumeError for a run of another agent, or of an agent that changed."""
    if (url := header.url) != agent.url:
        raise ResumeError(f"the run is of {url or 'the agent in its folder'}", differs=True)
    now, before = RunKind.of(agent), header.kind
    if now.file != before.file or (now.module and now.module != before.module):
        other = before.module or before.file or "the agent in its folder"
        raise ResumeError(f"the run is of {other}", differs=True)
    if header.in_process:
        raise ResumeError("the agent was an object, which only the process that made it can run")
    if header.initial_session and sets.initial_session is None:
        command = "score" if of_traces else "run"
        raise ResumeError(f"The run has an --initial-session: resume it with `evaltui {command} --resume`")
    then = header.interpreter
    if not (of_traces or url or then is None or then.is_in_environment_of(agent.interpreter)):
        change = f"{then.path} → {agent.interpreter.path}"
        raise ResumeError(f"its Python changed: {change} (--python chooses it)", differs=True)
    # What was installed since may be what the unfinished cases lacked.
    packages = (
        name for name in packages_changed(header, agent.interpreter) if name in (header.packages or ())
    )
    named = (f"{PACKAGE}{name}" for name in packages)
    if not of_traces and (changed := (*named, *files_changed_since(RunFile(path), agent))):
        raise ResumeError(f"{short_list(changed)} changed", differs=True)


def packages_changed(header: RunHeader, interpreter: Interpreter) -> tuple[str, ...]:
    """The packages of its Python that are new, gone or of another version since a run."""
    if header.packages is None:
        return ()
    return changed_files(header.packages, installed_packages(interpreter.path))


def read_selection(agent: AgentAddress, path: Path, sets: SetSource) -> Resumption:
    """The selection of a run, to run it with another variant of its matrix: the same cases, all of them.

    Raises ResumeError for changed sets or configs, EvalSetError, OSError, and ValueError for a damaged log.
    """
    header = resumable_header(path)
    opened = [_open_set(agent.folder, selected_set, sets) for selected_set in header.sets]
    return Resumption(path, header, _selected_ids(header, opened), {}, of_other_variant=True)


def _selected_ids(header: RunHeader, opened: Sequence[SetPlan]) -> dict[Path, tuple[str, ...]]:
    """The ids of the selected cases of a run, by file."""
    files = (plan.path for plan in opened)
    return {file: began.eval_ids for began, file in zip(header.sets, files, strict=True) if file}


def _open_set(agent_dir: Path, began: SelectedSet, sets: SetSource) -> SetPlan:
    name = began.eval_set_id
    path = sets.find(began.path, name)
    if path is None:
        raise ResumeError(f"{began.path} was deleted", differs=True)
    plan = sets.open(path)
    if plan.eval_set_id != name:
        raise ResumeError(f"{began.path} no longer has the set {name}", differs=True)
    here = {*plan.eval_ids}
    if gone := [eval_id for eval_id in began.eval_ids if eval_id not in here]:
        raise ResumeError(f"{name} no longer has {short_list(gone)}", differs=True)
    # As the log has it.
    now = normal_config(secrets_of(agent_dir).masked(plan.config.scoring()))
    if changes := list(config_changes(began.scored_by, now)):
        raise ResumeError(f"the scoring of {name} changed: {'; '.join(changes)}", differs=True)
    return plan


def run_spending(log: Path) -> Amount:
    """The spending of the model calls in a run's log. Raises OSError, and ValueError for a damaged log."""
    file = RunFile(log)
    return sum(
        (Amount.of(file.result(stored.data).spent) for stored in file.repeats), file.spent_without_result
    )


def notes_on_kept(resumption: Resumption, agent: AgentAddress) -> Iterator[str]:
    """Sentences about files that the agent or its user changed while a run was in progress, and about
    packages that were installed since."""
    before = resumption.header.files
    if not (before and resumption.finished):
        return
    if not resumption.header.of_traces and (new := packages_changed(resumption.header, agent.interpreter)):
        yield f"{PACKAGE}{short_list(new)} was installed since: kept results are without it"
    if changed := [name for name in changed_files(before, files_of_agent(agent, before)) if name in before]:
        either = "Unless the agent wrote that, kept results may be of the earlier version"
        yield f"{short_list(changed)} changed while run {resumption.id} went on. {either}"


class FinishedRepeat(NamedTuple):
    """Facts about a finished repeat that are needed before its result is read."""

    expects: str
    """Fingerprint of the case in the run."""
    recorded: str
    """Fingerprint of its recording in the run; "" for a run without recordings."""
    spent: Amount


class StoredRepeats(Mapping[int, RepeatResult]):
    """The results of the repeats of one case, by number from 0, read on demand.

    Reading raises the errors of `RunFile`.
    """

    __slots__ = ("_case", "_file", "_numbers")

    def __init__(self, file: RunFile, case: CaseId, numbers: tuple[int, ...]) -> None:
        self._file = file
        self._case = case
        self._numbers = numbers

    def __getitem__(self, number: int) -> RepeatResult:
        if number not in self._numbers:
            raise KeyError(number)
        return self._file.repeat(self._case, number)

    def __contains__(self, number: object) -> bool:
        return number in self._numbers

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def finished_repeats(
    file: RunFile, kinds: AbstractSet[ErrorKind] | None = None, *, of_traces: bool = False
) -> tuple[dict[CaseId, dict[int, FinishedRepeat]], Amount]:
    """The repeats of a run that have a result, without those with an error (of these `kinds` if given); and
    the other spending.

    Raises the errors of `RunFile`.
    """
    finished: dict[CaseId, dict[int, FinishedRepeat]] = {}
    besides = file.spent_without_result
    for stored in file.repeats:
        result = file.result(stored.data)
        spent = result.spent
        amount = Amount.of(spent if spent is None or not of_traces else spent.of("judge"))
        if not _had_error(result, kinds):
            repeat = FinishedRepeat(result.expects, result.recorded, amount)
            finished.setdefault(stored.case, {})[stored.repeat] = repeat
        else:
            besides += amount
    return finished, besides


def _had_error(result: RepeatResult, kinds: AbstractSet[ErrorKind] | None) -> bool:
    """Whether an error prevented a verdict, of one of these `kinds` if given."""
    if result.status is not Status.ERROR and not result.errors:
        return False
    # Not every error has a kind: with all kinds, it is among them.
    return kinds is None or kinds >= set(ErrorKind) or not kinds.isdisjoint(result.error_kinds)


# Seconds.
_MOMENT = 1.0


def with_opened_files(header: RunHeader, agent: AgentAddress, opened: FilesOpened) -> RunHeader:
    """The header with the files that processes of the run have opened by now.

    The fingerprint is `UNKNOWN` for a file that was opened late and is newer than the run: its earlier
    content is unknown. For an agent behind a network, only the files that score it count.
    """
    read, written = (used_files(agent.code, paths) for paths in (opened.read, opened.written))
    new = {name: path for name, path in read.items() if name not in header.files and name not in written}
    started = header.started.timestamp()
    prints = {} if header.url else prints_of(agent.code, new)
    prints |= {name: UNKNOWN for name in prints if was_written_since(new[name], started)}
    missing = {} if header.url else dict.fromkeys(new, "")
    return replace(
        header,
        files={**header.files, **missing, **prints},
        read=tuple(sorted({*header.read, *read})),
        written=tuple(sorted({*header.written, *written})),
    )


def files_changed_during(header: RunHeader, files: Mapping[str, str]) -> list[str]:
    """The files that changed from the start of a run until now, except data that the agent may have written;
    `files` are the current fingerprints."""
    changed = changed_files(header.files, files)
    return [
        name for name in changed if _is_read_only(name, header) or (name in header.files and is_prompt(name))
    ]


def files_changed_since(file: RunFile, agent: AgentAddress, files: FilesNow | None = None) -> tuple[str, ...]:
    """The agent's files that changed since a run started; `files` are the current ones, if they were read.

    Excluded are data written by its processes or by later runs, and data that the agent may have changed
    during the run. For an agent behind a network, the files that scored it, by their times. Raises
    the errors of `RunFile`.
    """
    header, folder = file.header, agent_folder(agent.code)
    if header.url:
        began = header.started.timestamp()
        read = (name for name in header.read if name not in header.written)
        return tuple(name for name in read if was_written_since(folder / name, began))

    # Of a run that was cut off only the last event is known.
    end = file.last_moment + (_MOMENT if file.seconds is None else 0.0)

    def may_be_own(name: str) -> bool:
        if _is_read_only(name, header):
            return False
        return (
            name in header.written
            or not was_written_since(folder / name, end)
            or name in _written_later(file.path, header.kind)
        )

    if files is None:
        changed = changed_files(header.files, files_of_agent(agent, header.files))
    else:
        changed = files.changed_since(header.files)
    return tuple(name for name in changed if not may_be_own(name))


def _written_later(path: Path, kind: RunKind) -> frozenset[str]:
    """The files that the same agent wrote in the later runs of a folder."""
    # Ids begin with the time.
    logs = [log for log in path.parent.glob(f"[0-9]*{path.suffix}") if log.name > path.name]
    written = (_written_in(log, log.stat().st_mtime_ns) for log in logs)
    return frozenset[str]().union(*(names for agent, names in written if agent == kind.agent))


@lru_cache(1000)
def _written_in(path: Path, at: int) -> tuple[RunKind | None, frozenset[str]]:
    """The agent of a run, and the files that it wrote; `at` is the time of the run's file."""
    try:
        header = RunFile(path).header
    except (OSError, ValueError):
        return None, frozenset()
    return header.kind.agent, frozenset(header.written)


def _is_read_only(name: str, header: RunHeader) -> bool:
    of_variant = header.variant.places if header.variant else ()
    is_of_variant = name in dict(of_variant).values()
    return is_of_variant or is_read_only(name, header.files, header.read, header.written)
