"""The hooks of a pytest session with eval cases: their failures and times, and a line at the end."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Generator, Sequence
from difflib import unified_diff
from typing import Any

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.project.settings import secrets_of
from evaltui.testing.agent_run import FinishedRun
from evaltui.testing.case_runs import CaseRuns
from evaltui.testing.items import EvalCaseItem, FailureLines
from evaltui.testing.options import FAILURE, ask
from evaltui.text.figures import counted, show_duration, show_number
from evaltui.text.lines import draw
from evaltui.text.values import visible, without_commands
from evaltui.views.comparison import comparison_lines
from evaltui.workbench.result.acceptable import Choice
from evaltui.workbench.result.accepting import FileChange, Proposal, accept, propose
from evaltui.workbench.workbench import Workbench

Say = Callable[[str], None]
Ask = Callable[[str], str]
_QUESTION = "Accept? [y]es, [n]o, [a]ll the rest, [q]uit: "


def accept_cases(run: FinishedRun, say: Say, ask: Ask | None) -> None:
    """Accept what the failing cases of a run did: all of them, or those for which `ask` returns `y`.

    What changes is said before. Nothing is written before every question is answered: `n` leaves a case out,
    `a` accepts all the rest, `q` ends the questions.
    """
    if run.log is None or run.request is None:
        say("not accepted: the run is not stored")
        return
    request, cases = run.request, run.failed
    settings = {"results_dir": request.settings.results_dir}
    # A question is asked while no loop runs: so an interrupt ends it.
    with asyncio.Runner() as runner:
        workbench = Workbench(request.agent, [*request.cases], settings, run.config)
        try:
            runner.run(workbench.open())
            if not runner.run(workbench.outcomes.open_run(run.log, "")):
                say("not accepted: the run cannot be read")
                return
            groups = [cases] if ask is None else [[case] for case in cases]
            accepted = _accept(runner, workbench, groups, say, ask or (lambda _: "a"))
            if accepted and runner.run(_saved(workbench)):
                say(f"accepted {counted(accepted, 'case')}; the next run expects what they did")
            elif accepted:
                say("not accepted: a file has changed meanwhile")
        finally:
            # What was not saved shall not be offered when the workbench is opened next.
            runner.run(workbench.editing.discard())
            runner.run(workbench.close())


def _accept(
    runner: asyncio.Runner, workbench: Workbench, groups: Sequence[Sequence[CaseId]], say: Say, ask: Ask
) -> int:
    """Show what accepting each group of cases changes, and do it; returns how many cases that were."""
    accepted, answer = 0, ""
    for number, group in enumerate(groups, 1):
        if len(groups) > 1:
            say(f"{group[0].eval_id} ({show_number(number)} of {show_number(len(groups))})")
        many = counted(len(group), "case")
        choice = Choice("case", f"All {many}", f"accept {many}", tuple(group))
        proposal = runner.run(propose(workbench.editing, choice))
        _show(proposal, say)
        if proposal.problem:
            say(f"not accepted: {proposal.problem}")
            continue
        answer = "a" if answer == "a" else _answer(ask)
        if answer == "q":
            break
        if answer in ("y", "a") and runner.run(_accepted(workbench, proposal)):
            accepted += sum(change.cases for change in proposal.changes)
    return accepted


def _answer(ask: Ask) -> str:
    while (answer := ask(_QUESTION)) not in ("y", "n", "a", "q"):
        pass
    return answer


async def _accepted(workbench: Workbench, proposal: Proposal) -> bool:
    return accept(workbench.editing, proposal)


async def _saved(workbench: Workbench) -> bool:
    return await workbench.editing.save_all()


def _show(proposal: Proposal, say: Say) -> None:
    for change in proposal.changes:
        _show_diff(change, say)
    for remark in proposal.remarks:
        say(remark)


def _show_diff(change: FileChange, say: Say) -> None:
    before, after = change.before.text.splitlines(), change.after.text.splitlines()
    name = str(change.path)
    for line in unified_diff(before, after, name, name, lineterm=""):
        say(visible(line))


class EvaltuiSession:
    """The plugin that is registered as soon as a session asks for an eval case."""

    def __init__(self, config: pytest.Config) -> None:
        """Raises pytest.UsageError for options that make no sense."""
        self.runs = CaseRuns(config)
        """The runs that its cases are in."""
        self._config = config

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, Any]:
        """A test takes as long as its case, not as long as it was waited for; errors are our lines, too."""
        report = yield
        if isinstance(item, EvalCaseItem):
            if report.failed and call.excinfo is not None:
                report.longrepr = item.repr_failure(call.excinfo)
            decides = report.when == "call" or not report.passed
            report.duration = item.finished.seconds if item.finished is not None and decides else 0.0
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self, report: pytest.TestReport) -> Generator[None, Any, Any]:
        data = yield
        if isinstance(report.longrepr, FailureLines):
            data[FAILURE] = report.longrepr.to_json()
        return data

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if not self._config.getoption("collectonly"):
            self.runs.start_in_worker(session)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        is_stopped = bool(session.shouldfail or session.shouldstop)
        self.runs.end(session, is_interrupted=is_stopped or exitstatus == pytest.ExitCode.INTERRUPTED)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for remark in self.runs.remarks:
            terminalreporter.write_line(f"evaltui: {remark}")
        for run in self.runs.finished:
            if run.failed:
                self._accept(run, terminalreporter)
            for note in run.notes:
                terminalreporter.write_line(without_commands(f"evaltui: {note}"))
            if run.comparison is not None:
                # Logs of earlier versions may hold secrets.
                masked = secrets_of(run.agent_dir).masked(run.comparison)
                for line in comparison_lines(masked, shutil.get_terminal_size().columns):
                    terminalreporter.write_line(draw(line, color=terminalreporter.hasmarkup))
            if run.log is not None:
                done, took = counted(run.cases, "case"), show_duration(run.seconds)
                agent_dir, log = (os.path.relpath(path) for path in (run.agent_dir, run.log))
                where = f"log {log} · `evaltui {agent_dir}` opens it"
                terminalreporter.write_line(f"evaltui: {done} of {agent_dir} in {took} · {where}")

    def _accept(self, run: FinishedRun, terminalreporter: Any) -> None:
        reviews = self._config.getoption("evaltui_review")
        if not (reviews or self._config.getoption("evaltui_accept")):
            return

        def answer(question: str) -> str:
            terminalreporter.flush()
            return ask(self._config, question)[:1] or "q"

        try:
            accept_cases(run, terminalreporter.write_line, answer if reviews else None)
        except KeyboardInterrupt:
            terminalreporter.write_line("not accepted: interrupted")
