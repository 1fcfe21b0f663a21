"""The report of a stored run, from its file or a result file of google-adk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.events import Event
from evaltui.core.model.limits import Amount
from evaltui.core.secrets import Secrets
from evaltui.core.trace.model_calls import CallCounts
from evaltui.project.agent_address import AgentAddress
from evaltui.project.folders import file_of, seen_from_here
from evaltui.runs.history import StoredRun, missing_case_notes
from evaltui.runs.report import ReportedCases, RunReport, no_events
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.text.figures import counted, show_money
from evaltui.views.served import other_models


def stored_report(run: StoredRun, secrets: Secrets) -> RunReport:
    """The report of a stored run. Raises OSError, and ValueError for a damaged file."""
    cases = ReportedCases.of_run(run, secrets)
    file = run.file
    header, agent, is_of_adk = file.header, file.agent, run.summary.by_label
    address = AgentAddress(
        Path(header.agent_dir),
        name=header.agent_name,
        module=header.module,
        url=header.url,
    )

    name = str(agent.get("name") or address.folder.resolve().stem or run.id)

    def events(case: CaseId) -> Mapping[int, Sequence[Event]]:
        return secrets.masked(run.events(case))

    def expected(case: CaseId) -> Sequence[Invocation]:
        data = file.eval_case(case)
        return () if data is None else EvalCase.model_validate(secrets.masked(data)).conversation or ()

    return RunReport(
        cases=cases,
        status=header.status_of(case.status for case in run.summary.cases.values()),
        agent="google-adk" if is_of_adk else name,
        started=run.started,
        seconds=run.seconds,
        sets=tuple(_sets(header, cases)),
        log=None if file.is_in_memory and not is_of_adk else str(run.path),
        notes=(*file.notes, *_notes(run, file)),
        calls=_calls(file),
        checks=header.preflight,
        python=_python(file),
        settings=header.settings,
        model=str(agent.get("model") or ""),
        address=address.as_arguments if header.agent_dir else "",
        # Those of google-adk's results are made of its turns, without times.
        events=no_events if is_of_adk else events,
        expected=expected,
        unscored=header.unscored,
    )


def _sets(header: RunHeader, cases: ReportedCases) -> Iterator[SelectedSet]:
    """The sets in the header of a run, and the sets of other cases in its file."""
    agent_dir = Path(header.agent_dir)
    for selected in header.sets:
        yield (
            selected
            if selected.file is not None
            else replace(selected, file=seen_from_here(file_of(agent_dir, selected.path)))
        )
    paths = {selected.path for selected in header.sets}
    for case_path, label in dict.fromkeys(
        (selected.id.path, selected.eval_set_id) for selected in cases.summaries
    ):
        if case_path not in paths:
            yield SelectedSet(case_path, label, ())


def _notes(run: StoredRun, file: RunFile) -> Iterator[str]:
    if file.header.in_process:
        yield "the agent is an object, run in the process that evaluated it"
    yield from missing_case_notes(run.summary, file)
    if (amount := file.spent_without_result) != Amount():
        text = show_money(amount.usd) if amount.usd else counted(round(amount.tokens), "token")
        yield f"spent besides, on calls that no result counts: {text}"
    yield from other_models(run.summary.cases.values())


def _python(file: RunFile) -> str:
    """The agent's Python and framework: `3.12.1 from .venv /shop/.venv/bin/python, google-adk 2.13.0`; "" for
    evaltui's own Python, and where no agent was run."""
    interpreter, agent = file.header.interpreter, file.agent
    if interpreter is None or not interpreter.reason or file.header.of_traces:
        return ""
    version = f"{agent.get('python', '')} from {interpreter.reason}  {interpreter.path}".lstrip()
    return ", ".join(filter(None, [version, agent.get("version", "")]))


def _calls(file: RunFile) -> CallCounts:
    """The numbers of model calls in a run; for scored traces, only those of judges."""
    counts = CallCounts()
    for stored in file.judged_repeats:
        counts.on_result(file.result(stored.data))
    if not file.header.of_traces:
        for event in file.events_of_kinds("model_request", "tool_result"):
            counts.on_event(event)
    return counts
