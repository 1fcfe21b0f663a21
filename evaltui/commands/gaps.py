"""`evaltui gaps`: changes of recorded conversations that eval sets do not notice, and what no case covers."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from math import fsum
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from evaltui.agents.call_recorder import CallRecorder
from evaltui.agents.errors import RunStoppedError
from evaltui.commands.exit_codes import HAD_ERRORS, SOME_FAILED
from evaltui.commands.output import (
    UsageError,
    agent_of,
    complain,
    parse_targets,
    require_one_agent,
    settings_of,
    write_result,
    write_stderr,
)
from evaltui.core.cost.metering import spent_by
from evaltui.core.cost.prices import load_table
from evaltui.core.gaps.gaps import NO_RESULT, GapReport, KindOfChange, ToJudge
from evaltui.core.gaps.judged_changes import JudgedCase
from evaltui.core.gaps.mutants import RecordedCase
from evaltui.core.metrics.preflight import withheld_metrics
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Json
from evaltui.core.model.modes import Modes
from evaltui.core.model.problems import SelectionError
from evaltui.core.model.spending import Spending
from evaltui.project.agent_address import AgentAddress
from evaltui.project.run_settings import RunSettings
from evaltui.project.settings import secrets_of
from evaltui.project.workspace import open_workspace, select
from evaltui.reports.details import mark_words, plain_spans
from evaltui.runner.execution import gate_of
from evaltui.runner.gate import Estimates, Stop
from evaltui.runner.interrupts import run_interruptible
from evaltui.runner.metric_checks import checked
from evaltui.runner.plan import RunPlan
from evaltui.runner.recording_files import OF_GAPS, SCORED, recordings_path
from evaltui.runner.run_recordings import SetRecordings
from evaltui.runner.scoring import LocalScoring, ScoringKind
from evaltui.runner.verdicts import CaseJudge, Judges, Verdicts
from evaltui.runs.gaps import MAX_RUNS, CasesInRun, CasesInRuns, GapsOfRuns, cases_in_runs
from evaltui.runs.store import RunStore
from evaltui.text.figures import UNKNOWN, counted, short_list, show_number, show_rate
from evaltui.text.json_pieces import json_pieces
from evaltui.text.lines import Line, cut, pad, wrap_behind
from evaltui.text.lines import cells as cells_in
from evaltui.text.values import cut as cut_text
from evaltui.text.values import visible
from evaltui.views.gaps import (
    coverage_rows,
    gap_row,
    headline,
    in_words,
    judges_in_words,
    no_changes,
    not_counted,
    not_judged,
    noticed_by,
    still_gives,
    uncovered,
)

VERSION = 1
_MAX_GAPS = 5
_MAX_NAMES = 12
_MAX_REASON = 160
_GAPS = TypeAdapter(GapReport)
_KIND = 26


def gaps_json(report: GapReport, runs: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The document; `runs` are the ids of the runs by the files of sets. Its keys are a promise."""
    return {"version": VERSION, "runs": dict(runs), **_GAPS.dump_python(report, mode="json")}


def gap_lines(report: GapReport, runs: Sequence[str], width: int) -> Iterator[Line]:
    """The lines of a console; `runs` are the names of the runs."""
    figures = "   ".join(
        f"{subject} {show_number(noticed)}/{show_number(changes)}"
        for subject, (noticed, changes) in report.by_subject().items()
    )
    if report.meant_so:
        figures = f"{figures}   {show_number(report.meant_so)} meant so"
    details = "   ".join(filter(None, [figures, f"{short_list(runs)}, {judges_in_words(report)}"]))
    yield from wrap_behind([(f"{headline(report)}   ", "bold")], [(details, "muted")], width)
    kinds = [kind for kind in report.kinds if kind.gaps]
    if kinds:
        yield []
        yield [("NOT NOTICED", "bold")]
    has_several = len({gap.path for kind in kinds for gap in kind.gaps}) > 1
    for kind in kinds:
        yield from _kind(kind, width, with_set=has_several)
    if complete := [
        kind.kind for kind in report.kinds if kind.changes and not kind.gaps and not kind.not_judged
    ]:
        yield from _named("NOTICED", complete, width)
    if metrics := list(noticed_by(report)):
        yield from _named("NOTICED BY", metrics, width)
    yield from _coverage(report, width)
    for title, names in uncovered(report):
        yield from _named(title.upper(), names, width)
    yield from _by_reason("NOT JUDGED", list(not_judged(report)), width)
    yield from _by_reason("NOT COUNTED", list(not_counted(report)), width)
    to_judge = report.to_judge
    if to_judge is not None:
        text = f"{short_list(list(to_judge.metrics))} about {in_words(to_judge)}. --judges asks"
        yield from _named("NOT ASKED", [text], width)
    if left_out := [name for name in report.left_out_metrics if not to_judge or name not in to_judge.metrics]:
        text = f"{short_list(left_out)}. They need a judge or the agent's process"
        yield from _named("METRICS LEFT OUT", [text], width)


def _by_reason(title: str, reasons: Sequence[tuple[str, Sequence[str]]], width: int) -> Iterator[Line]:
    if reasons:
        yield []
        yield [(title, "bold")]
    for reason, places in reasons:
        yield from wrap_behind(
            [("  ", "")],
            plain_spans(f"{cut_text(visible(reason), _MAX_REASON)}: {short_list(places)}"),
            width,
        )


def _kind(kind: KindOfChange, width: int, *, with_set: bool) -> Iterator[Line]:
    figures = f"{show_number(kind.noticed)}/{show_number(kind.changes)}"
    title: Line = [(f"  {pad(kind.kind, _KIND)}", "bold"), (f"{figures:>7}   ", "")]
    yield from wrap_behind(title, [(still_gives(kind), "muted")], width)
    last = ""
    for gap in kind.gaps[:_MAX_GAPS]:
        row = gap_row(gap, with_set=with_set)
        sides = (
            mark_words(row.words)
            if row.words
            else plain_spans(f"{row.before or UNKNOWN} → {row.after or UNKNOWN}")
        )
        place: Line = [(f"    {row.place}  ", "muted")]
        if cells_in(place) > width // 2:
            if row.place != last:
                yield [(f"    {_cut_start(row.place, width - 4)}", "muted")]
            place = [("      ", "")]
        last = row.place
        yield cut([*place, *sides], width)
    if (more := len(kind.gaps) - _MAX_GAPS) > 0:
        yield [(f"    and {counted(more, 'more change')}; --report json=FILE has all", "muted")]


def _cut_start(text: str, width: int) -> str:
    """The end of a text that is too long: the turn is there."""
    return text if cells_in([(text, "")]) <= width else f"…{text[1 - width :]}"


def _coverage(report: GapReport, width: int) -> Iterator[Line]:
    rows = list(coverage_rows(report))
    if not rows:
        return
    yield []
    yield [(f"{'COVERAGE':20}{'reached':>10}{'expected':>10}{'noticed':>10}", "bold")]
    for row in rows:
        counts = (row.reached, row.expected, row.noticed)
        cells = "".join(f"{UNKNOWN if count is None else f'{count}/{row.cells}':>10}" for count in counts)
        yield cut([(f"  {row.title:18}{cells}", "")], width)


def _named(title: str, names: Sequence[str], width: int) -> Iterator[Line]:
    yield []
    yield from wrap_behind([(f"{title}  ", "bold")], plain_spans(short_list(names, _MAX_NAMES)), width)


_Hosts = TypeVar("_Hosts", bound=LocalScoring)


class _UnaskedHosts(LocalScoring):
    """Hosts that start no process and answer nothing."""

    @cached_property
    def questions(self) -> list[tuple[str, int]]:
        """The model and the characters of each question."""
        return []

    async def answer(self, kind: ScoringKind, message: Json) -> Json:
        self.questions.append((message["judge"], len(message["prompt"])))
        raise RunStoppedError


class GapJudges:
    """Judges the changes of a search that are left to judges.

    Their answers are recorded beside those of runs, which are used, too. `note` gets remarks for the user.
    """

    def __init__(
        self,
        searched: GapsOfRuns,
        agent: AgentAddress,
        settings: RunSettings,
        note: Callable[[str], None],
    ) -> None:
        sets = tuple(item.plan for item in searched.cases.in_runs)
        self._plan = RunPlan(agent, sets, settings)
        self._searched = searched
        self._note = note
        self._secrets = secrets_of(agent.folder)
        # By the files of the sets.
        self._sets: dict[Path, SetRecordings] = {}
        self._gate = gate_of(self._plan)

    @property
    def stopped(self) -> Stop | None:
        """Why further questions were not asked; None where all were."""
        return self._gate.stopped if self._gate else None

    @cached_property
    def _checked(self) -> RunPlan:
        """The plan with the metrics that cannot run here; in a replay, the recording decides."""
        return self._plan if self._plan.settings.record == "replay" else checked(self._plan)

    def _hosts(self, kind: type[_Hosts]) -> _Hosts:
        plan, settings = self._plan, self._plan.settings
        return kind(
            plan.agent,
            settings.parallel,
            settings.timeout,
            lambda *printed: None,
            self._gate,
            on_start=self._note,
        )

    async def to_judge(self) -> ToJudge | None:
        """The changes that judges look at, and what asking takes, without recorded answers. None for no such
        changes. Raises EvalSetError for recordings that cannot be read."""
        hosts, changes = self._hosts(_UnaskedHosts), 0
        judges = Verdicts(self._plan, hosts).judges
        for item, case_id, recorded in self._searched.unjudged():
            recordings = await self._recordings(item)
            judge = CaseJudge(judges, self._recorder(recordings, case_id, recorded))
            judged = JudgedCase(self._with_withheld(item, recorded), judge)
            for mutant in self._searched.search.mutants_to_judge(recorded, case_id):
                changes += await judged.sees(mutant)
            if recordings is not None:
                recordings.forget()
        if not changes:
            return None
        models = tuple(dict.fromkeys(model for model, _ in hosts.questions))
        usd = await asyncio.to_thread(self._price, hosts.questions)
        return ToJudge(self._searched.search.judged_metrics, changes, len(hosts.questions), models, usd)

    async def judge(self) -> None:
        """Asks judges about all changes that are left to them, several cases at once; then none is left.

        Raises EvalSetError for recordings that cannot be read.
        """
        search, plan = self._searched.search, self._plan
        search.spent = Spending()
        hosts = self._hosts(LocalScoring)
        judges = Verdicts(plan, hosts).judges
        try:
            if plan.settings.budget is not None:
                # Not when the first call waits for its price.
                await asyncio.to_thread(load_table)
            async with asyncio.TaskGroup() as tasks:
                for item, case_id, recorded in self._searched.unjudged():
                    recordings = await self._recordings(item)
                    await hosts.room.enter()
                    case = self._judge(judges, recordings, item, case_id, recorded)
                    tasks.create_task(case).add_done_callback(lambda _: hosts.room.leave())
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            if self._gate is not None:
                self._gate.close()
            await asyncio.gather(hosts.close(), *(recordings.save() for recordings in self._sets.values()))

    async def _judge(
        self,
        judges: Judges,
        recordings: SetRecordings | None,
        item: CasesInRun,
        case_id: CaseId,
        recorded: RecordedCase,
    ) -> None:
        search = self._searched.search
        judge = CaseJudge(judges, self._recorder(recordings, case_id, recorded))
        judged = JudgedCase(self._with_withheld(item, recorded), judge)
        mutants = search.mutants_to_judge(recorded, case_id)
        verdicts = [await judged.verdict(mutant) for mutant in mutants]
        if judge.is_left and (stop := self.stopped):
            verdicts = [
                replace(verdict, reason=f"not asked: {stop.reason}") if verdict.reason else verdict
                for verdict in verdicts
            ]
        search.judge(case_id, verdicts)
        spent = await spent_by(judge.calls, self._plan.prices_of(item.plan))
        search.spent = (search.spent or Spending()) + spent
        if recordings is not None:
            recordings.end(case_id.eval_id, recorded.repeat, complete=True, judged=judge.finished)

    async def _recordings(self, item: CasesInRun) -> SetRecordings | None:
        """The recordings of a set, read once; None where nothing is recorded or replayed."""
        plan, modes = item.plan, Modes(self._plan.settings.record)
        if modes.is_off or plan.path is None:
            return None
        if plan.path not in self._sets:
            path, of_run = (
                recordings_path(plan.path, plan.eval_set_id, folder)
                for folder in (OF_GAPS, SCORED if item.file.header.of_traces else "")
            )
            recordings = SetRecordings(path, plan.path, modes, self._note, [of_run])
            await recordings.open()
            self._sets[plan.path] = recordings
        return self._sets[plan.path]

    def _recorder(
        self, recordings: SetRecordings | None, case_id: CaseId, recorded: RecordedCase
    ) -> CallRecorder | None:
        if recordings is None:
            return None
        return recordings.judging(case_id.eval_id, recorded.repeat, self._secrets)

    def _with_withheld(self, item: CasesInRun, recorded: RecordedCase) -> RecordedCase:
        """The case without the metrics that cannot run here."""
        withheld = withheld_metrics(self._checked.checks, item.plan.case_path)
        return replace(recorded, expected=replace(recorded.expected, withheld=withheld))

    def _price(self, questions: Sequence[tuple[str, int]]) -> float | None:
        load_table()
        prices, estimates, now = self._plan.prices_of(*self._plan.sets), Estimates(), datetime.now(UTC)
        dollars = [prices.price_of(model, estimates.tokens(model, size), now) for model, size in questions]
        priced = [usd for usd in dollars if usd is not None]
        return fsum(priced) if len(priced) == len(dollars) else None


def gaps(options: argparse.Namespace) -> int:
    """Writes the gaps of the selected sets; returns the exit code."""
    try:
        targets = parse_targets(options.report, ("console", "json"))
        _require_judges(options)
        cases = _cases(options)
        changes = cases.changed_since(options.agent_dir)
        report = run_interruptible(_report(options, cases))
    except (OSError, ValueError) as error:
        return complain("gaps", error)
    runs: dict[str, list[str]] = {}
    for item in cases.in_runs:
        runs.setdefault(item.plan.case_path, []).append(item.file.id)
    write_result(
        targets, lambda: json_pieces(gaps_json(report, runs)), partial(gap_lines, report, cases.runs)
    )
    if changes:
        _note(f"stale: {visible(changes)}")
    if not report.changes + report.not_judged:
        _note("every change is left to judges: --judges asks them" if report.to_judge else no_changes(report))
        return HAD_ERRORS
    return 0 if options.fail_under is None else _compared(report, options.fail_under)


def _compared(report: GapReport, least: float) -> int:
    """The exit code for the rate of noticed changes; those that were not judged, or whose case has no
    result, may be either."""
    changes = report.changes + report.not_judged
    rate, most = report.noticed / changes, (report.noticed + report.not_judged) / changes
    if most < least:
        at_most = "at most " if report.not_judged else ""
        _note(f"{at_most}{show_rate(most)} noticed, below --fail-under {least:g}")
        return SOME_FAILED
    if rate < least:
        _note(f"--fail-under {least:g} is not decided: {counted(report.not_judged, 'change')} not judged")
        return HAD_ERRORS
    if not_run := sum(skipped.reason == NO_RESULT for skipped in report.not_counted):
        _note(f"--fail-under {least:g} is not decided: {counted(not_run, 'case')} without a result")
        return HAD_ERRORS
    return 0


_OF_JUDGES = ("record", "budget", "limits", "allow_unmetered")


def _require_judges(options: argparse.Namespace) -> None:
    """Raises UsageError for an option that is of judges alone, which are not asked."""
    for name in _OF_JUDGES:
        if not options.judges and getattr(options, name):
            raise UsageError(f"--{name.removesuffix('s').replace('_', '-')} needs --judges")


async def _report(options: argparse.Namespace, cases: CasesInRuns) -> GapReport:
    """Searches the cases, and asks judges if the options say so. Raises UsageError where these cannot be
    asked as they say."""
    searched = GapsOfRuns(options.agent_dir, cases)
    report = await searched.find()
    if not searched.search.unjudged:
        return report

    judges = GapJudges(searched, agent_of(options), settings_of(options), _note)
    to_judge = await judges.to_judge()
    if not options.judges:
        return replace(report, to_judge=to_judge)
    if to_judge is not None:
        _note(f"judging {in_words(to_judge)}")
    await judges.judge()
    if (stop := judges.stopped) is not None:
        if stop.is_refusal:
            raise UsageError(stop.reason)
        _note(stop.reason)
    return searched.report()


def _note(text: str) -> None:
    write_stderr(f"evaltui gaps: {text}")


def _cases(options: argparse.Namespace) -> CasesInRuns:
    """The selected cases with their runs. Raises SelectionError where no run has any of them."""
    store = RunStore.of(options.agent_dir, settings_of(options), options.module, options.url)
    if not store.files():
        require_one_agent(options)
    selections = select(open_workspace(options.agent_dir, in_project=not options.url), options.selectors)
    cases = cases_in_runs(agent_of(options), store, selections, options.run or "")
    if not cases.in_runs:
        runs = f"run {options.run}" if options.run else f"last {counted(MAX_RUNS, 'run')}"
        sets = short_list([eval_set.case_path for eval_set, _ in selections])
        remedy = f"Run it first: `evaltui run {store.as_arguments}`"
        raise SelectionError(f"{store.title}: nothing of {sets} in the {runs}. {remedy}")
    return cases
