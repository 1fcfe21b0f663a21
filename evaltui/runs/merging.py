"""Merging runs: shards of one selection, or runs of different cases of the same agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import combinations
from operator import itemgetter
from pathlib import Path

from evaltui.core.compare.repeats import RepeatRule, case_over_repeats
from evaltui.core.compare.run_comparison import config_changes
from evaltui.core.compare.run_summary import different_files, summarize
from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.model.case_id import CaseId, case_fingerprint, fingerprint
from evaltui.core.model.confidence import Confidence
from evaltui.core.model.config import EvalConfig, PassIf
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.limits import Amount
from evaltui.core.model.modes import DEFAULT_MODE
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status, worst_status
from evaltui.documents.files import target_of
from evaltui.project.agent_files import UNKNOWN, changed_files, is_prompt, is_source
from evaltui.project.packages import PACKAGE
from evaltui.runs.run_file import Ending, RepeatInRun, RunFile, is_being_written
from evaltui.runs.run_header import MergedPart, RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter
from evaltui.runs.shards import ShardsOfRun
from evaltui.runs.store import is_adk_result
from evaltui.text.figures import counted, short_list
from evaltui.text.values import show_value


def differences(first: RunHeader, other: RunHeader) -> Iterator[str]:
    """Differences that prevent merging two logs, in words."""
    if first.of_traces is not other.of_traces:
        yield "only one of them is of traces"
    folders = [Path(header.agent_dir) for header in (first, other) if header.agent_dir and not header.url]
    # On another machine, the same agent may be in a folder with another name.
    if len({folder.name for folder in folders}) > 1 and all(folder.exists() for folder in folders):
        yield f"agent {folders[0].name} → {folders[1].name}"
    options = _options(first), _options(other)
    for word in options[0]:
        before, now = (values[word] for values in options)
        if before != now:
            yield f"{word} {_option_text(before)} → {_option_text(now)}"
    # Data an agent may change itself while it works.
    own = {*first.written, *other.written}
    yield from (
        f"{name} changed"
        for name in different_files(first.files, other.files, ())
        if is_source(name) or (is_prompt(name) and name not in own)
    )
    if first.shards and other.shards:
        # Each shard looks at all conversations, wherever the files are on its machine.
        for mine, theirs in ((first.trace_files, other.trace_files), (other.trace_files, first.trace_files)):
            yield from (f"{name} changed" for name, digest in mine.items() if digest not in theirs.values())
    if first.settings.record == "replay":
        changed = changed_files(first.recordings, other.recordings)
        yield from (
            f"recordings of {path} changed" for path in changed if first.set_of(path) and other.set_of(path)
        )
    sets = {eval_set.path: eval_set for eval_set in other.sets}
    for eval_set in first.sets:
        same = sets.get(eval_set.path)
        if same is None:
            continue
        if same.eval_set_id != eval_set.eval_set_id:
            yield f"{eval_set.path} has the set id {eval_set.eval_set_id} → {same.eval_set_id}"
        yield from (
            f"{eval_set.path}: {change}" for change in config_changes(eval_set.scored_by, same.scored_by)
        )
    yield from _shard_differences(first.shards, other.shards)


def _options(header: RunHeader) -> dict[str, object]:
    """The options that all runs of one plan share, by label; only those that were given."""
    settings, confidence = header.settings, header.settings.confidence
    return {
        "URL": header.url or None,
        "file": header.kind.file or None,
        "agent": header.agent_name,
        "module": header.module or None,
        "variant": header.variant.to_json() if header.variant else None,
        "runs": settings.runs,
        "pass-if": settings.pass_if,
        "confidence": confidence.level if confidence else None,
        "max-runs": confidence.max_runs if confidence else None,
        "ADK's verdicts": settings.adk_verdicts or None,
        "record": settings.record if settings.record != DEFAULT_MODE else None,
        "tools": settings.tools,
        "case-from": header.case_from or None,
    }


def _option_text(value: object) -> str:
    return "not given" if value is None else show_value(value)


def _shard_differences(first: ShardsOfRun | None, other: ShardsOfRun | None) -> Iterator[str]:
    if first is None or other is None:
        if first is not other:
            yield "only one of them is of a shard"
        return
    if first.count != other.count:
        yield f"{first.count} shards → {other.count}"
    if first.divided_by != other.divided_by:
        yield "divided by other durations"
    for path in dict.fromkeys([*first.sets, *other.sets]):
        before, now = first.sets.get(path), other.sets.get(path)
        if before != now:
            yield (
                f"selected cases of {path} changed" if before and now else f"only one of them selects {path}"
            )


# Files and versions that a note names.
_MAX_NAMES = 20
Create = Callable[[RunHeader], RunWriter]
_PartsOfCases = Mapping[CaseId, MergedPart]
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


class MergeError(ValueError):
    """Why runs cannot be merged, as a sentence that names them."""

    page = "ci"
    """The page of the guide about it."""


def _plan_error(run: RunFile, other: RunFile, why: str) -> MergeError:
    return MergeError(f"{run.path.name} is not of the same plan as {other.path.name}: {why}")


@dataclass(frozen=True)
class MergedRun:
    """A run merged from several runs."""

    log: Path
    seconds: float | None
    """Wall time of the longest run, in seconds; None where it is unknown."""


def merge(logs: Sequence[Path], create: Create, baseline: str = "") -> MergedRun:
    """Merges runs into a run that `create` makes for a header, and closes it.

    `baseline` is the id of the run to compare with, "" for the baseline in the logs. Raises MergeError for
    runs that do not belong together, OSError, and ValueError for a damaged file or no run; the new file is
    deleted then.
    """
    merge = _Merge([*_read(logs)])
    merge.check()
    into = create(merge.header(baseline))
    try:
        return merge.write(into)
    except BaseException:
        into.path.unlink(missing_ok=True)
        raise


def _read(logs: Sequence[Path]) -> Iterator[RunFile]:
    """The runs of these files, each once."""
    for path in dict.fromkeys(map(target_of, logs)):
        if is_adk_result(path):
            raise MergeError(f"{path.name} is an ADK result file; only run logs can be merged")
        run = RunFile(path)
        if run.ending is None and is_being_written(path):
            raise MergeError(f"{path.name}: run in progress")
        run.require_whole()
        yield run


@dataclass(slots=True)
class _Case:
    """A selected case while logs are merged."""

    set: SelectedSet
    rule: RepeatRule
    pass_if: PassIf
    repeats: dict[int, RepeatResult] = field(default_factory=dict)


class _Merge:
    def __init__(self, runs: Sequence[RunFile]) -> None:
        self._by_id = {part.id: part for run in runs for part in run.parts}
        # In the order of their starts, a merged run by its last part, whatever the order of the logs.
        self._runs = sorted(runs, key=lambda run: (max(map(self._start, run.parts)), run.id))
        self._parts = [*map(_parts_of_cases, self._runs)]
        self._shards = _merged_shards(self._runs)
        self.sets = tuple(self._merged_sets())

    def _start(self, part: MergedPart) -> datetime:
        """The start of a run, after that of the run that it resumed also where its clock was behind."""
        resumed = self._by_id.get(part.resumed, part)
        return (
            part.started if resumed is part else max(part.started, self._start(resumed) + datetime.resolution)
        )

    # Checking

    def check(self) -> None:
        """Checks that all logs have one plan.

        Raises MergeError where they do not, OSError, and ValueError.
        """
        names = dict.fromkeys(run.header.variant.name if run.header.variant else "" for run in self._runs)
        if len(names) > 1:
            named = short_list([name or "none" for name in names])
            raise MergeError(
                f"the runs are of several variants: {named}. Merge those of each variant with -o; "
                "`evaltui report` of the merged logs is their matrix"
            )
        # Sets that two runs have in common may not be in a third.
        for earlier, later in combinations(self._runs, 2):
            if changes := list(differences(earlier.header, later.header)):
                raise _plan_error(later, earlier, short_list(changes))
        self._check_cases()

    def _check_cases(self) -> None:
        """Raises MergeError for a case that differs between its runs, or from the last run of its set."""
        prints: dict[CaseId, tuple[str, RunFile]] = {}
        for run in self._runs:
            for case, text in run.eval_cases:
                mine = fingerprint(text)
                theirs, other = prints.setdefault(case, (mine, run))
                # A file may have been written in another way.
                if mine != theirs and _expects(run, case) != _expects(other, case):
                    raise _plan_error(run, other, f"{case.eval_id} of {case.path} changed")
        selected = {
            case
            for run in self._runs
            for case, _ in run.header.selected()
            if self._last.get(case.path) is run
        }
        for case, (_, run) in prints.items():
            if case not in selected and _expects(run, case) not in self._unselected[case.path]:
                changed = f"{case.eval_id} of {case.path} was changed or deleted"
                raise _plan_error(self._last[case.path], run, changed)

    @cached_property
    def _last(self) -> dict[str, RunFile]:
        """The last started run of each set, by path of the set."""
        runs = zip(self._runs, self._parts, strict=True)
        cases = ((self._start(part), case.path, run) for run, parts in runs for case, part in parts.items())
        return {path: run for _, path, run in sorted(cases, key=itemgetter(0))}

    @cached_property
    def _unselected(self) -> dict[str, set[str]]:
        """Fingerprints of the cases that these runs did not select, by path of the set."""
        return {path: run.unselected(path) for path, run in self._last.items()}

    def _merged_sets(self) -> Iterator[SelectedSet]:
        """Every set of the logs, with all selected cases, in the order of the set if it is known."""
        by_path: dict[str, list[tuple[datetime, SelectedSet]]] = {}
        # Of each case, those of the run that selected it last.
        conversations: dict[str, dict[str, tuple[datetime, tuple[str, ...]]]] = {}
        for path, divided in self._shards.sets.items() if self._shards else ():
            logged = SelectedSet(path, divided.eval_set_id, divided.eval_ids, whole=divided.whole)
            by_path[path] = [(_BEFORE_ALL, logged)]
        for run, parts in zip(self._runs, self._parts, strict=True):
            for logged in run.header.sets:
                cases = [CaseId(logged.path, eval_id) for eval_id in logged.eval_ids]
                starts = [self._start(parts[case]) for case in cases if case in parts]
                by_path.setdefault(logged.path, []).append((max(starts, default=_BEFORE_ALL), logged))
                for eval_id, ids in (logged.conversations or {}).items():
                    if part := parts.get(CaseId(logged.path, eval_id)):
                        of_set = conversations.setdefault(logged.path, {})
                        last = self._start(part), ids
                        of_set[eval_id] = max(last, of_set.get(eval_id, last), key=itemgetter(0))
        for path, selections in by_path.items():
            selections.sort(key=itemgetter(0))
            merged = _merged_set([logged for _, logged in selections])
            is_of_traces = any(logged.conversations is not None for _, logged in selections)
            ids_of_cases = {eval_id: ids for eval_id, (_, ids) in conversations.get(path, {}).items()}
            yield replace(merged, conversations=ids_of_cases if is_of_traces else None)

    # Writing

    def header(self, baseline: str) -> RunHeader:
        """The header of the first log, with the selections of all logs."""
        headers = [run.header for run in self._runs]
        # A merged run that regressed must not be the next baseline.
        baselines = (baseline, *(header.baseline for header in headers))
        is_of_matrix = all(header.matrix == headers[0].matrix for header in headers)
        packages = [header.packages for header in headers if header.packages is not None]
        return replace(
            headers[0],
            sets=tuple(
                replace(merged, unselected=tuple(sorted(self._unselected.get(merged.path, ()))))
                for merged in self.sets
            ),
            files=_merged_files([header.files for header in headers]),
            packages=_merged_files(packages) if packages else None,
            functions={name: text for header in headers for name, text in header.functions.items()},
            read=tuple(sorted({name for header in headers for name in header.read})),
            written=tuple(sorted({name for header in headers for name in header.written})),
            started=min(header.started for header in headers),
            number=None,
            matrix=headers[0].matrix if is_of_matrix else "",
            shards=self._shards,
            traces=tuple(dict.fromkeys(name for header in headers for name in header.traces)),
            trace_files={name: text for header in headers for name, text in header.trace_files.items()},
            # Each shard looks at all conversations.
            unpaired=max(header.unpaired for header in headers),
            lost=tuple(dict.fromkeys(text for header in headers for text in header.lost)),
            preflight=tuple(self._checks()),
            stopped="",
            resumed="",
            baseline=next(filter(None, baselines), ""),
            parts=tuple(self._merged_parts()),
        )

    def _merged_parts(self) -> Iterator[MergedPart]:
        numbers: dict[tuple[str, datetime], list[int]] = {}
        parts = {(part.id, part.started): part for run in self._runs for part in run.parts}
        for number, case in enumerate(self._cases, start=1):
            # A case of a missing shard is of no run.
            if case in self._winners:
                part = self._parts[self._winners[case][0]][case]
                numbers.setdefault((part.id, part.started), []).append(number)
        for key, part in parts.items():
            yield replace(part, cases=tuple(numbers.get(key, ())))

    def write(self, into: RunWriter) -> MergedRun:
        if agent := next((run.agent for run in self._runs if run.agent), None):
            into.set_agent(agent)
        for run in self._runs:
            into.copy_eval_cases(run)
        winners, cases = self._winners, self._cases
        finished: dict[CaseId, Status] = {}
        awaited = {case: repeats for case, (_, repeats) in winners.items()}
        for number, run in enumerate(self._runs):
            for stored in run.repeats:
                if not self._belongs(run, stored) or winners[stored.case][0] != number:
                    continue
                into.copy_repeat(run, stored)
                case = cases[stored.case]
                # Which calls they have in common is said of several repeats only.
                several = case.rule.most > 1
                case.repeats[stored.repeat] = run.result(stored.data, with_actual=several)
                awaited[stored.case] -= 1
                if not awaited[stored.case] and case.rule.is_over(case.repeats):
                    result = _result(stored.case, case, self._runs[0].header.settings.confidence)
                    finished[stored.case] = result.status
                    into.add_case(summarize(result), result)
                    case.repeats.clear()
        parts = {(part.id, part.started) for run in self._runs for part in run.header.parts}
        for run in self._runs:
            # A merged or resumed run has that of its parts.
            is_part = (run.id, run.header.started) in parts
            if not is_part and (spent := run.spent_without_result) != Amount():
                into.add_spending(spent)
        seconds_of_runs = [run.ending.seconds if run.ending else None for run in self._runs]
        for note in self._notes():
            into.add_note(note)
        durations = [duration for duration in seconds_of_runs if duration is not None]
        seconds = max(durations) if len(durations) == len(seconds_of_runs) else None
        is_complete = len(finished) == len(cases)
        into.close(Ending(worst_status(finished.values()), seconds) if is_complete else None)
        return MergedRun(into.path, seconds)

    def _notes(self) -> Iterator[str]:
        """The notes of the runs, with ids where only some runs have them, and notes on the merge."""
        runs_of: dict[str, list[str]] = {}
        for run in self._runs:
            for text in dict.fromkeys(filter(None, (*run.notes, run.header.stopped))):
                runs_of.setdefault(text, []).append(run.id)
        for text, ids in runs_of.items():
            yield text if len(ids) == len(self._runs) else f"{short_list(ids)}: {text}"
        if duplicates := sum(map(Counter.total, self._counts)) - sum(
            count for _, count in self._winners.values()
        ):
            others = short_list(list(self._other_outcomes()))
            yield f"{counted(duplicates, 'result')} in several logs: the run started last counts" + (
                f"; not counted: {others}" if others else ""
            )
        if changed := self._changed_data():
            yield f"not the same in every run: {short_list(changed, _MAX_NAMES)}"

    def _checks(self) -> Iterator[MetricCheck]:
        """The metric checks of the runs; equal checks are joined."""
        groups: dict[str, dict[MetricCheck, list[MetricCheck]]] = {}
        checks = [check for run in self._runs for check in run.header.preflight]
        for check in checks:
            key = replace(check, sets=(), paths=(), cases=0, without=(), in_all=False)
            groups.setdefault(check.metric, {}).setdefault(key, []).append(check)
        count = len({path for check in checks for path in check.paths})
        for key, alike in (pair for group in groups.values() for pair in group.items()):
            of_checks = {path for check in alike for path in check.paths}
            sets = [eval_set for eval_set in self.sets if eval_set.path in of_checks]
            # Runs may have cases in common.
            cases = min(sum(check.cases for check in alike), sum(len(eval_set.eval_ids) for eval_set in sets))
            yield replace(
                key,
                sets=tuple(eval_set.eval_set_id for eval_set in sets),
                paths=tuple(eval_set.path for eval_set in sets),
                cases=cases,
                without=tuple(dict.fromkeys(case for check in alike for case in check.without)),
                in_all=len(sets) == count,
            )

    def _changed_data(self) -> tuple[str, ...]:
        """The differences that do not prevent a merge: agent data and `.env`, text of sets, recordings,
        versions."""
        headers = [run.header for run in self._runs]
        files = [header.files for header in headers]
        traces: dict[str, str] = {}
        own = frozenset[str]().union(*(header.own_data for header in headers))
        changed = {name for prints in files for name in different_files(files[0], prints, own)}
        names = {name for name in changed if not is_source(name)}
        packages = [header.packages for header in headers if header.packages is not None]
        names |= {f"{PACKAGE}{name}" for other in packages for name in changed_files(packages[0], other)}
        for name, digest in (trace for header in headers for trace in header.trace_files.items()):
            names |= {name} if traces.setdefault(name, digest) != digest else set()
        for path in {merged.path for merged in self.sets}:
            having = [(header, part) for header in headers if (part := header.set_of(path))]
            prints = {part.fingerprint for _, part in having}
            recordings = {header.recordings.get(path) for header, _ in having}
            names |= {path} if len(prints - {None}) > 1 else set()
            names |= {f"recordings of {path}"} if len(recordings) > 1 else set()
        agents = [run.agent for run in self._runs if run.agent]
        for word, versions in (
            ("evaltui", [header.evaltui for header in headers]),
            ("Python", [info.get("python") for info in agents]),
            ("framework", [f"{info.get('framework')} {info.get('version')}" for info in agents]),
        ):
            if len(different := list(dict.fromkeys(map(str, versions)))) > 1:
                names.add(f"{word} {' and '.join(different)}")
        return tuple(sorted(names))

    @cached_property
    def _cases(self) -> dict[CaseId, _Case]:
        header = self._runs[0].header
        cases: dict[CaseId, _Case] = {}
        for eval_set in self.sets:
            repeats = EvalConfig.model_validate(eval_set.config or {"criteria": {}}).evaltui.repeats
            pass_if = header.settings.pass_if or repeats.pass_if
            cases |= {
                CaseId(eval_set.path, eval_id): _Case(
                    eval_set, header.repeat_rule(eval_set, eval_id, repeats), pass_if
                )
                for eval_id in eval_set.eval_ids
            }
        return cases

    @cached_property
    def _counts(self) -> list[Counter[CaseId]]:
        """The numbers of repeats of each log that belong to the merged run, by case."""
        return [
            Counter(stored.case for stored in run.repeats if self._belongs(run, stored)) for run in self._runs
        ]

    @cached_property
    def _winners(self) -> dict[CaseId, tuple[int, int]]:
        """For each case the index of the log that counts and its number of repeats.

        The last log that finished the case counts, else the one with the most repeats: mixing two sequences
        of runs would invalidate a sequential test.
        """
        ranks: dict[CaseId, tuple[bool, int, datetime, int]] = {}
        for number, (run, parts) in enumerate(zip(self._runs, self._parts, strict=True)):
            ended, repeats = {case.id for case in run.cases}, self._counts[number]
            for case, part in parts.items():
                is_over = case in ended and bool(repeats[case])
                rank = (is_over, 0 if is_over else repeats[case], self._start(part), number)
                ranks[case] = max(ranks.get(case, rank), rank)
        return {case: (number, self._counts[number][case]) for case, (*_, number) in ranks.items()}

    def _other_outcomes(self) -> Iterator[str]:
        """The outcomes of cases that differ from those that count: `case_1 PASSED in 20261128T…`."""
        outcomes = [{case.id: case.summary.status for case in run.cases} for run in self._runs]
        for run, statuses in zip(self._runs, outcomes, strict=True):
            for case, status in statuses.items():
                if status is not outcomes[self._winners[case][0]].get(case, status):
                    yield f"{case.eval_id} {status} in {run.id}"

    def _belongs(self, run: RunFile, stored: RepeatInRun) -> bool:
        """Whether a stored repeat belongs to the merged run, under the same number."""
        case = self._cases[stored.case]
        return stored.repeat < case.rule.most and _same_conversations(case.set, run, stored.case)


def _expects(run: RunFile, case: CaseId) -> str:
    return case_fingerprint(EvalCase.model_validate(run.eval_case(case)))


def _merged_files(files: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Fingerprints of files, or versions of packages; of those that differ between the runs, `UNKNOWN`."""
    changed = {name for prints in files for name in different_files(files[0], prints, ())}
    return {name: UNKNOWN if name in changed else text for prints in files for name, text in prints.items()}


def _same_conversations(merged: SelectedSet, run: RunFile, case: CaseId) -> bool:
    """Whether the repeats of a case have the same conversations in a log as in the merged run."""
    if merged.conversations is None:
        return True
    theirs = run.header.set_of(case.path)
    of_run = (theirs and theirs.conversations) or {}
    return of_run.get(case.eval_id, ()) == merged.conversations.get(case.eval_id, ())


def _result(case: CaseId, merged: _Case, confidence: Confidence | None) -> CaseResult:
    repeats = [merged.repeats[number] for number in sorted(merged.repeats)]
    path, eval_id = case
    return case_over_repeats(merged.set.eval_set_id, eval_id, repeats, merged.pass_if, path, confidence)


def _parts_of_cases(run: RunFile) -> _PartsOfCases:
    """The part that the result of each selected case is of, or that selected it last."""
    cases = [case for case, _ in run.header.selected()]
    return {cases[number - 1]: part for part in run.parts for number in part.cases}


def _merged_set(parts: Sequence[SelectedSet]) -> SelectedSet:
    eval_ids = tuple(dict.fromkeys(eval_id for part in parts for eval_id in part.eval_ids))
    places = {
        eval_id: place
        for part in parts
        for eval_id, place in zip(part.eval_ids, part.places or (), strict=False)
    }
    has_places = len(set(places.values())) == len(eval_ids)
    # The newest selection of all of them has their order.
    complete = next((part for part in reversed(parts) if len(part.eval_ids) == len(eval_ids)), None)
    if complete is not None:
        eval_ids = complete.eval_ids
    elif has_places:
        eval_ids = tuple(sorted(eval_ids, key=places.__getitem__))
    more: dict[str, int] = {}
    for part in parts:
        more |= {eval_id: max(runs, more.get(eval_id, runs)) for eval_id, runs in part.more.items()}
    fingerprints = {part.fingerprint for part in parts if part.eval_ids}
    scored = next((part for part in parts if part.config is not None), parts[0])
    return SelectedSet(
        parts[0].path,
        parts[0].eval_set_id,
        eval_ids,
        scored.config,
        complete is not None and complete.whole,
        tuple(places[eval_id] for eval_id in eval_ids) if has_places else None,
        {eval_id: tags for part in parts for eval_id, tags in part.tags.items()},
        None,
        more,
        fingerprints.pop() if len(fingerprints) == 1 else None,
        scored.file,
        scored.config_path,
        scored.defaulted,
        scored.not_used,
    )


def _merged_shards(runs: Sequence[RunFile]) -> ShardsOfRun | None:
    shards = [run.header.shards for run in runs if run.header.shards is not None]
    if not shards:
        return None
    return replace(shards[0], numbers=tuple(sorted({number for part in shards for number in part.numbers})))
