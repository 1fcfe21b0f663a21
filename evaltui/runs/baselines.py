"""The meaning of `last` as the run to compare with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from pathlib import Path

from evaltui.core.compare.run_comparison import compare
from evaltui.core.compare.run_summary import RunSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import SelectionError
from evaltui.core.model.variants import Variant
from evaltui.core.statistics import ALPHA
from evaltui.project.folders import agent_file
from evaltui.runs.history import header_of, open_run, runs_by_id
from evaltui.runs.run_file import RunFile, is_being_written
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_kind import RunKind
from evaltui.runs.store import RunStore, is_adk_result, run_id
from evaltui.text.figures import counted, short_list

CasesOfSets = Mapping[str, Collection[str] | None]
"""Ids of cases by the path of their set; None for all cases."""

_PARTIAL_RUN = "not all of the cases"
_SAME_SETTINGS = "agent, variant and verdicts (--agent, -m, URL, --variant, --adk-verdicts, traces)"


@dataclass(frozen=True)
class LaterRun:
    """A run to compare with an earlier one."""

    store: RunStore
    cases: CasesOfSets
    kind: RunKind
    variant: Variant | None = None
    """The variant; None for the unchanged agent."""
    logs: Collection[Path] = ()
    """Logs that cannot be its baseline: its own, those it was merged from, and that of a resumed run."""
    matrix: str = ""
    """The id of its matrix; "" for none."""


def stored_run(store: RunStore, *logs: Path) -> LaterRun:
    """The data of a stored run, or of several runs to be merged. Raises OSError, ValueError."""
    headers = [RunFile(log).header for log in logs if not is_adk_result(log)]
    cases: dict[str, Collection[str] | None] = {}
    for header in headers:
        # Each shard was compared as a part of the whole selection.
        divided = header.shards.sets if header.shards else {logged.path: logged for logged in header.sets}
        for path, selected in divided.items():
            others = cases.get(path, ())
            cases[path] = None if selected.whole or others is None else {*others, *selected.eval_ids}
    if not headers:
        return LaterRun(store, cases, RunKind(agent_file(store.agent_dir)), logs=logs)
    first = headers[0]
    return LaterRun(store, cases, first.kind, first.variant, logs, first.matrix)


def last_baseline(later: LaterRun, alpha: float = ALPHA) -> tuple[Path, str]:
    """The newest run of the same kind and variant that is complete, has none of the later run's results, and
    in which no case broke since its own baseline. Where it lacks cases, an older run that lacks fewer sets
    comes first.

    Returns its log, and a note on it: why newer runs are skipped, and which cases broke in it since earlier
    runs, as nothing gated it; "" for neither. Raises SelectionError where there is no such run.
    """
    best, most = None, -1
    skipped: dict[Path, str] = {}
    files = later.store.files()
    logs = {run_id(path): path for path in files}
    parts = {part for log in later.logs for part in _parts(log, logs)}
    for path in reversed(files):
        if most == len(later.cases):
            break
        try:
            header = RunFile(path).header
            if _have_common(parts, _parts(path, logs)) or not _is_comparable(header, later):
                continue
            sets = sum(_covers_set(header, *selected) for selected in later.cases.items())
            skipped[path] = _problem(path, header, later.store, alpha) if sets > most else _PARTIAL_RUN
        except (OSError, ValueError):
            skipped[path] = "cannot be read"
        if not skipped[path]:
            if best is not None:
                skipped[best] = _PARTIAL_RUN
            best, most = path, sets
    newer = takewhile(lambda path: path != best, skipped)
    reasons = short_list([f"{run_id(path)} ({skipped[path]})" for path in newer])
    if best is None:
        if not reasons:
            others = f" with the same {_SAME_SETTINGS}" if later.store.files() else ""
            raise SelectionError(f"--baseline last: no runs of {later.store.title}{others} yet")
        raise SelectionError(f"--baseline last: no run to compare with: {reasons}. Name a run")
    notes = [f"--baseline last is {run_id(best)}"]
    notes += [f"Skipped: {reasons}"] if reasons else []
    # A run that is skipped for a regression may have mended another case.
    newest_first = [*takewhile(lambda path: path != best, skipped), *files[: files.index(best)][::-1]]
    broken, always_failing = _broken_in(best, newest_first, later, alpha)
    if always_failing:
        number, compared = counted(always_failing, "case"), counted(_MAX_OTHERS, "other run")
        notes.append(f"{number} did not pass in {run_id(best)}, nor in {compared}")
    if broken:
        cases = short_list([f"{case.eval_id} (in {run_id(path)})" for case, path in broken.items()])
        number = counted(len(broken), "case")
        notes.append(f"{number} that other runs passed did not pass in {run_id(best)}: {cases}")
    if always_failing or broken:
        notes.append("Name a run that passed to compare with it")
    return best, ". ".join(notes) if notes[1:] else ""


# Runs that are compared with a baseline.
_MAX_OTHERS = 10


def _broken_in(
    path: Path, newest_first: Sequence[Path], later: LaterRun, alpha: float
) -> tuple[dict[CaseId, Path], int]:
    """The cases that do not pass in a run and passed in another one, each with the newest such run; and the
    number of those that passed in none of the runs that are compared, where there are more runs."""
    run = open_run(path).summary
    failing = [case for case, summary in run.cases.items() if case.path in later.cases and not summary.passes]
    passed: dict[CaseId, Path] = {}
    compared = 0
    for other in newest_first:
        if compared == _MAX_OTHERS or passed.keys() >= {*failing}:
            break
        with suppress(OSError, ValueError):
            if _is_comparable(RunFile(other).header, later):
                compared += 1
                unresolved = [case for case in failing if case not in passed]
                sides = (_only(open_run(other).summary, unresolved), _only(run, unresolved))
                changes = compare(*sides, alpha).cases
                passed = {change.case: other for change in changes if change.kind == "broken"} | passed
    broken = {case: passed[case] for case in failing if case in passed}
    return broken, len(failing) - len(broken) if compared == _MAX_OTHERS else 0


def _only(run: RunSummary, cases: Sequence[CaseId]) -> RunSummary:
    """The run as if it had these cases only."""
    return replace(run, cases={case: run.cases[case] for case in cases if case in run.cases})


_Part = tuple[str, datetime | None]
"""The id of a run and its start, by which it is another one than a file of the same name; None where it is
unknown."""


def _parts(log: Path, logs: Mapping[str, Path]) -> set[_Part]:
    """A run and the runs that it has results of, as it resumed them or is made of them; `logs` are those by
    id that can be asked."""
    parts: set[_Part] = set()
    left: list[tuple[Path | None, _Part]] = [(log, (run_id(log), None))]
    while left:
        path, part = left.pop()
        header = header_of(path) if path else None
        if header is not None and part[1] is None:
            part = part[0], header.started
        if part in parts:
            continue
        parts.add(part)
        if header is not None and part[1] == header.started:
            others: list[_Part] = [(own.id, own.started) for own in header.parts]
            others += [(header.resumed, None)] if header.resumed else []
            left += [(logs.get(other[0]), other) for other in others]
    return parts


def _have_common(parts: Collection[_Part], others: Collection[_Part]) -> bool:
    return any(
        run == other and (start == moment or None in (start, moment))
        for run, start in parts
        for other, moment in others
    )


def _is_comparable(header: RunHeader, later: LaterRun) -> bool:
    variant = later.variant.name if later.variant and later.variant.changes else ""
    same = later.kind.of_any_deployment._replace(variant=variant)
    return header.kind.of_any_deployment == same and not (later.matrix and header.matrix == later.matrix)


def _covers_set(header: RunHeader, path: str, eval_ids: Collection[str] | None) -> bool:
    """Whether a run has all selected cases of a set; new cases in a complete set do not count."""
    logged = header.set_of(path)
    if logged is None:
        return False
    return logged.whole or (eval_ids is not None and {*eval_ids} <= {*logged.eval_ids})


def _problem(path: Path, header: RunHeader, store: RunStore, alpha: float) -> str:
    """Why a run cannot be a baseline, in short; "" where it can. Raises OSError, ValueError."""
    run = open_run(path)
    if run.status is None:
        return "still running" if is_being_written(path) else header.ended_early
    if run.summary.unfinished:
        return "incomplete"
    base_id = header.baseline
    if not base_id or all(case.passes for case in run.summary.cases.values()):
        return ""
    # Not by a name or number, which the file of a baseline elsewhere may have, too.
    try:
        base = open_run(runs_by_id(store)[base_id])
    except (KeyError, OSError, ValueError):
        return f"its baseline {base_id} is missing"
    comparison = compare(base.summary, run.summary, alpha)
    if regressions := comparison.regressions:
        return f"{counted(len(regressions), 'regression')} from {base_id}"
    # Else a case could fall a little in every run, each time without evidence.
    if broken := comparison.broken_without_evidence:
        return f"{counted(len(broken), 'case')} broken since {base_id}, without evidence"
    return ""
