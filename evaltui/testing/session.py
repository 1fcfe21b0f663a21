"""What is hooked into a pytest session with eval cases: their failures and times, and a line at the end."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

from evaltui.core.model.outcome import Status
from evaltui.reports.model import verdict
from evaltui.testing.background import BackgroundRun
from evaltui.testing.case_runs import CaseRuns
from evaltui.testing.items import EvalCaseItem
from evaltui.text.figures import counted, show_duration


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
            repeats = item.result.repeats if item.result is not None else ()
            decides = report.when == "call" or not report.passed
            report.duration = float(sum(one.seconds for one in repeats)) if decides else 0.0
        return report

    def pytest_sessionfinish(self) -> None:
        self.runs.end()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for run in self.runs.runs:
            if self._config.getoption("evaltui_accept"):
                self._accept(run, terminalreporter)
            for note in run.notes:
                terminalreporter.write_line(f"evaltui: {note}")
            if run.log is not None:
                done, took = counted(len(run.results), "case"), show_duration(run.seconds)
                agent_dir, log = (os.path.relpath(one) for one in (run.request.agent_dir, run.log))
                where = f"log {log} · `evaltui {agent_dir}` opens it"
                terminalreporter.write_line(f"evaltui: {done} of {agent_dir} in {took} · {where}")

    def _accept(self, run: BackgroundRun, terminalreporter: Any) -> None:
        failed = [case for case, result in run.results.items() if verdict(result) is Status.FAILED]
        if failed:
            from evaltui.testing.accepting import accept_cases

            for line in accept_cases(run.request, run.config, failed):
                terminalreporter.write_line(line)
