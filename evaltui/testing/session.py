"""The hooks of a pytest session with eval cases: their failures and times, and a line at the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from typing import Any

import pytest

from evaltui.project.settings import secrets_of
from evaltui.testing.accepting import accept_cases
from evaltui.testing.agent_run import FinishedRun
from evaltui.testing.case_runs import CaseRuns
from evaltui.testing.failures import FailureLines
from evaltui.testing.items import EvalCaseItem
from evaltui.testing.options import FAILURE, ask
from evaltui.text.figures import counted, show_duration
from evaltui.text.lines import draw
from evaltui.text.values import without_commands
from evaltui.views.comparison import comparison_lines


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
        self.runs.end(is_interrupted=is_stopped or exitstatus == pytest.ExitCode.INTERRUPTED)

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
