"""A stored run as a report has it: as far as its log, or the result file of google-adk, says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaltui.core.compare.run_result import RunResult
from evaltui.core.compare.run_summary import RunSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import CaseResult, worst_status
from evaltui.core.model.spending import RunningTotal, total
from evaltui.core.secrets import Secrets
from evaltui.core.trace.model_calls import CallCounts
from evaltui.files.agent_address import AgentAddress
from evaltui.files.folders import file_of
from evaltui.reports.model import RunReport
from evaltui.reports.set_totals import RunningTotals, SetTotal
from evaltui.runs.history import missing_in_words, open_run
from evaltui.runs.logged_results import LoggedResults, results_of, summaries_of
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunHeader
from evaltui.runs.sets import SetInfo


def stored_report(path: Path, secrets: Secrets) -> RunReport:
    """Raises OSError, and ValueError for what is no run, nor a result file, or is damaged."""
    run = open_run(path)
    cases = results_of(run, secrets)
    result = RunResult(cases, worst_status(case.status for case in run.summary.cases.values()))

    def events(case: CaseId) -> Mapping[int, Sequence[Event]]:
        return secrets.masked(run.events(case))

    if run.file is None:
        return RunReport(result, "google-adk", run.started, run.seconds, tuple(_sets(None, cases)), str(path))
    header, agent = run.file.header, run.file.agent
    calls, found = _calls(run.file, header)
    is_large = isinstance(cases, LoggedResults)
    address = AgentAddress(
        Path(header.agent_dir),
        name=header.agent_name,
        module=header.module,
        url=header.url,
    )
    return RunReport(
        result=replace(result, in_process=header.in_process),
        agent=str(agent.get("name") or address.folder.name or run.id),
        started=run.started,
        seconds=run.seconds,
        sets=tuple(_sets(header, cases)),
        log=str(path),
        notes=tuple(_notes(run.summary, run.file)),
        record=header.settings.record,
        calls=calls,
        known_spending=total(one.spent.value for one in found.values()) if is_large else None,
        known_totals=_totals(found, run.summary.results) if is_large else None,
        python=", ".join(str(agent[name]) for name in ("python", "version") if agent.get(name)),
        model=str(agent.get("model") or ""),
        address=address.as_arguments if header.agent_dir else "",
        events=events,
    )


def _sets(header: RunHeader | None, cases: Sequence[CaseResult]) -> Iterator[SetInfo]:
    """Those that the header names, and those of which there are cases besides."""
    logged = header.sets if header else ()
    agent_dir = Path(header.agent_dir) if header else Path()
    for one in logged:
        config = one.config or {"criteria": {}}
        path = file_of(agent_dir, one.path)
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        yield SetInfo(
            one.eval_set_id, shown, None, config, case_path=one.path, knows_file=False, tags=one.tags
        )
    known = {one.path for one in logged}
    for case_path, label in dict.fromkeys((one.id.path, one.eval_set_id) for one in summaries_of(cases)):
        if case_path not in known:
            effective: dict[str, object] = {"criteria": {}}
            yield SetInfo(label, Path(case_path), None, effective, case_path=case_path, knows_file=False)


def _notes(run: RunSummary, file: RunFile) -> Iterator[str]:
    if file.header.in_process:
        yield "the agent is an object, run in the process that evaluated it"
    yield from missing_in_words(run, file)


@dataclass(slots=True)
class _OfCase:
    """The time and the cost of the runs of a case."""

    seconds: float = 0.0
    spent: RunningTotal = field(default_factory=RunningTotal)


def _calls(file: RunFile, header: RunHeader) -> tuple[CallCounts, dict[CaseId, _OfCase]]:
    """What models were asked in a run, and what its cases took.

    Of scored traces, only what judges were asked: the rest was called before.
    """
    counts = CallCounts()
    found: dict[CaseId, _OfCase] = {}
    for stored in file.repeats:
        result = file.result(stored.data)
        counts.on_result(result)
        of_case = found.setdefault(stored.case, _OfCase())
        of_case.seconds += result.seconds
        of_case.spent.add(result.spent)
    if not header.of_traces:
        for event in file.events_of_kinds("model_request", "tool_result"):
            counts.on_event(event)
    return counts, found


def _totals(found: Mapping[CaseId, _OfCase], cases: Collection[CaseId]) -> Mapping[str, SetTotal]:
    """What the cases that have a result come to."""
    added = RunningTotals()
    for case, one in found.items():
        if case in cases:
            added.add(case.path, one.seconds, one.spent.value)
    return added.of_sets
