"""The eval cases of one pytest session, and the runs that they are in."""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evaltui.commands.arguments import run_parser
from evaltui.commands.output import UsageError, agent_of, settings_of
from evaltui.core.compare.explain import sentence
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult
from evaltui.core.model.problems import EvalSetError
from evaltui.core.secrets import Secrets
from evaltui.files.eval_sets import load_eval_set
from evaltui.files.settings import secrets_of
from evaltui.files.workspace import SelectionError
from evaltui.runner.parent.pool import start_host
from evaltui.runner.parent.warm_hosts import WarmHosts
from evaltui.runs.selection import RunRequest
from evaltui.runs.sets import FileSets
from evaltui.testing.agents import agent_of_set
from evaltui.testing.background import BackgroundLoop, BackgroundRun, NoResultError, StartHost
from evaltui.testing.options import RUN_OPTIONS

if TYPE_CHECKING:
    from evaltui.files.agent_address import AgentAddress


@dataclass(frozen=True)
class CaseToTest:
    """A case that is a test, or that a test asks for."""

    id: CaseId
    path: Path
    """The file of its eval set."""
    agent_dir: Path
    set_size: int
    """How many cases the set has."""
    config: Path | None = None
    """The config that scores it; None for that of its set."""


class CaseRuns:
    """Runs the selected cases of each agent as one plan, as soon as the first of them is asked for.

    A worker of pytest-xdist does not know which cases it will get: there, each is a run of its own, which is
    not kept.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Raises pytest.UsageError for options that make no sense."""
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self.runs: list[BackgroundRun] = []
        """Those that were begun."""
        self._run_of: dict[CaseToTest, BackgroundRun] = {}
        self._errors: dict[Path, EvalSetError | None] = {}
        self._secrets: dict[Path, Secrets] = {}
        self._loop: BackgroundLoop | None = None
        self._warm_hosts: dict[AgentAddress, WarmHosts] = {}
        given = self._option("not_evaluated") or "error"
        if given not in ("error", "skip"):
            raise pytest.UsageError(f"--evaltui-not-evaluated: {given!r} is neither error nor skip")
        self.skips_not_evaluated = given == "skip"
        """Whether a case that could not be evaluated is skipped; else it is an error."""
        self._options(Path())

    def agent_of(self, path: Path) -> Path:
        """The agent that the cases of a file are put to. Raises NoAgentError."""
        given = self._option("agent")
        return self._path(given) if given else agent_of_set(path, self._config.rootpath)

    def result(self, case: CaseToTest, session: pytest.Session) -> CaseResult:
        """The result of a case, waited for. Raises what `problem` has a text for."""
        if case not in self._run_of:
            others = [case] if self._is_worker else [*cases_of(session)]
            self._start([one for one in others if self._belongs(one, case)])
        try:
            return self._run_of[case].result(case.id)
        except NoResultError as error:
            # A set with errors is left out; these are its errors.
            raise self._errors_of(case.path) or error from None

    def _errors_of(self, path: Path) -> EvalSetError | None:
        """What is wrong with an eval set, which is looked for once; None where nothing is."""
        if path not in self._errors:
            self._errors[path] = None
            try:
                load_eval_set(path)
            except EvalSetError as error:
                self._errors[path] = error
        return self._errors[path]

    def printed(self, case: CaseToTest) -> str:
        """What the agent printed during a case."""
        return self._secrets_of(case).masked(self._run_of[case].printed(case.id))

    def sentence(self, case: CaseToTest, result: CaseResult) -> str:
        """Why a case came out as it did."""
        return sentence(self.masked(case, result))

    def masked(self, case: CaseToTest, result: CaseResult) -> CaseResult:
        """The result without secrets."""
        return self._secrets_of(case).masked(result)

    def _secrets_of(self, case: CaseToTest) -> Secrets:
        if case.agent_dir not in self._secrets:
            self._secrets[case.agent_dir] = secrets_of(case.agent_dir)
        return self._secrets[case.agent_dir]

    @staticmethod
    def problem(error: BaseException) -> str | None:
        """Why a case has no result; None for an error of ours, which is shown with its traceback."""
        if isinstance(error, NoResultError | EvalSetError | SelectionError | UsageError):
            return str(error)
        return None

    def _belongs(self, one: CaseToTest, case: CaseToTest) -> bool:
        same = (one.agent_dir, one.config) == (case.agent_dir, case.config)
        return same and one not in self._run_of

    def _start(self, cases: list[CaseToTest]) -> None:
        first = cases[0]
        options = self._options(first.agent_dir)
        if first.config is not None:
            options.config = first.config
        settings = settings_of(options)
        if options.python is None and settings.python is None:
            # What is tested is what is installed beside pytest, as in tox.
            options.python = sys.executable
        agent = agent_of(options)
        sets = FileSets(first.agent_dir, options.config)
        asked: dict[Path, list[str] | None] = {}
        for path, of_set in groupby(sorted(cases, key=attrgetter("path")), attrgetter("path")):
            ids, sizes = zip(*((one.id.eval_id, one.set_size) for one in of_set), strict=True)
            asked[path] = None if len(ids) == sizes[0] else list(ids)
        request = RunRequest(
            agent,
            asked,
            skips_invalid=True,
            runs=options.runs,
            pass_if=options.pass_if,
            adk_verdicts=options.adk_verdicts,
            settings=settings,
        )
        run = BackgroundRun(request, sets, self._start_host(agent), keeps_log=not self._is_worker)
        self.runs.append(run)
        self._run_of |= dict.fromkeys(cases, run)
        warm_hosts = self._warm_hosts.get(agent)
        run.start(self.loop, then=warm_hosts.prepare if warm_hosts else lambda: None)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that runs are in, in a thread of its own."""
        if self._loop is None:
            self._loop = BackgroundLoop()
        return self._loop.loop

    def _start_host(self, agent: AgentAddress) -> StartHost:
        if not self._is_worker:
            return start_host
        if agent not in self._warm_hosts:
            self._warm_hosts[agent] = WarmHosts(agent)
        return self._warm_hosts[agent].start

    def settings_of(self, agent_dir: Path) -> dict[str, Any]:
        """What the options of pytest say of a run, as arguments of `evaluate`."""
        options = self._options(agent_dir)
        settings = settings_of(options)
        of_run = {name: getattr(options, name) for name in ("runs", "pass_if", "adk_verdicts")}
        names = ("parallel", "workers", "timeout", "record", "tools")
        return of_run | {name: getattr(settings, name) for name in names}

    def _options(self, agent_dir: Path) -> argparse.Namespace:
        """What `evaltui run` is given. Raises pytest.UsageError."""
        words = [str(agent_dir)]
        for option in RUN_OPTIONS:
            if value := self._option(option.name.replace("-", "_")):
                words += [f"--{option.name}", value]
        if self._config.getoption("evaltui_adk_verdicts"):
            words.append("--adk-verdicts")
        said = io.StringIO()
        try:
            with redirect_stderr(said):
                options = run_parser().parse(words)
        except SystemExit as error:
            message = (
                said.getvalue().strip().removeprefix("evaltui run: ").replace("argument --", "--evaltui-")
            )
            raise pytest.UsageError(message) from error
        if options.config is not None:
            options.config = self._path(str(options.config))
        return options

    def _option(self, name: str) -> str | None:
        given: str | None = self._config.getoption(f"evaltui_{name}") or self._config.getini(
            f"evaltui_{name}"
        )
        return given or None

    def _path(self, text: str) -> Path:
        """On the command line it is seen from the current folder, in the ini file from where that is."""
        path = Path(text)
        return path if path.exists() else self._config.rootpath / path

    def end(self) -> None:
        """Cancel what still runs, and wait until all processes are gone."""
        for run in self.runs:
            run.end()
        if self._loop is not None:
            for warm_hosts in self._warm_hosts.values():
                asyncio.run_coroutine_threadsafe(warm_hosts.close(), self.loop).result()
            self._loop.stop()


def cases_of(session: pytest.Session) -> Iterator[CaseToTest]:
    """The cases that the selected tests are, or ask for, each once."""
    seen = dict[CaseToTest, None]()
    for item in session.items:
        case = getattr(item, "case", None)
        if not isinstance(case, CaseToTest):
            callspec = getattr(item, "callspec", None)
            case = callspec.params.get("evaltui_case") if callspec is not None else None
        if isinstance(case, CaseToTest):
            seen[case] = None
    yield from seen
