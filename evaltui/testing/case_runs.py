"""The eval cases of one pytest session, and the runs that they are in."""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from evaltui.commands.baselines import nothing_compared
from evaltui.commands.output import UsageError, require_agent, settings_of
from evaltui.commands.parser import parser_of
from evaltui.commands.repeat_arguments import confidence_of
from evaltui.core.compare.explain import sentence
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult
from evaltui.core.model.problems import EvalSetError
from evaltui.core.secrets import Secrets
from evaltui.project.agents import agents_in, is_agent
from evaltui.project.folders import project_root
from evaltui.project.remote_address import is_url
from evaltui.project.settings import secrets_of
from evaltui.runs.given import read_config_argument
from evaltui.runs.sets import FileSets
from evaltui.testing.agent_run import AgentRun, FinishedCase, FinishedRun, NoResultError, merged
from evaltui.testing.options import FLAGS, GATE, RUN_OPTIONS
from evaltui.testing.workers import Shards
from evaltui.text.figures import short_list
from evaltui.text.values import without_commands

_MAX_NAMES = 5


class NoAgentError(ValueError):
    """No agent can be told for an eval set; the message says what to do."""


def agent_of_set(path: Path, root: Path) -> Path:
    """The nearest agent at or above the folder of a set, else the only one beside one of these folders in its
    project.

    Agents are looked for up to the project of the set, or `root` where it is in none. Raises NoAgentError.
    """
    folders = [path.parent, *path.parent.parents]
    project = project_root(path.parent)
    top = project or root
    within = folders[: folders.index(top) + 1] if top in folders else folders[:1]
    for folder in within:
        if is_agent(folder):
            return folder
    for folder in within if project else ():
        if names := agents_in(folder):
            if len(names) == 1:
                return folder / names[0]
            raise NoAgentError(
                f"{path.name} may belong to {short_list(names, _MAX_NAMES)}. Name one: --evaltui-agent DIR"
            )
    raise NoAgentError(f"no agent at or above {path.parent}. Name it: --evaltui-agent DIR")


# Arguments of `evaluate` that are no settings.
_OF_RUN = ("runs", "pass_if", "confidence", "max_runs", "adk_verdicts")


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
    tags: tuple[str, ...] = field(default=(), compare=False)


class BackgroundLoop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        # Nobody waits for it where pytest itself is ended.
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="evaltui", daemon=True
        )
        self._thread.start()
        self._ready.wait()

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._ready.set()
        await self._stopped.wait()

    def stop(self) -> None:
        """End the thread once everything that was begun in it is over."""
        self.loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()


class CaseRuns:
    """Runs the selected cases of each agent as one plan, as soon as the first of them is asked for.

    All workers of pytest-xdist have the same cases: each begins with its part of them before the first test.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Raises pytest.UsageError for options that make no sense."""
        self._config = config
        self._run_of: dict[CaseToTest, AgentRun] = {}
        self._errors: dict[Path, EvalSetError | None] = {}
        self._secrets: dict[Path, Secrets] = {}
        self._worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._loop: BackgroundLoop | None = None
        # A fixture may be asked for in any thread.
        self._lock = threading.Lock()
        self.remarks: list[str] = []
        """Sentences for the end of the session."""
        self.finished: list[FinishedRun] = []
        """The runs that are over, once `end` was called."""
        policy = self._option("not_evaluated") or "error"
        if policy not in ("error", "skip"):
            raise pytest.UsageError(f"--evaltui-not-evaluated: {policy!r} is neither error nor skip")
        self.skips_not_evaluated = policy == "skip"
        """Whether a case that could not be evaluated is skipped; else it is an error."""
        if is_url(agent := self._option("agent") or ""):
            raise pytest.UsageError(f"--evaltui-agent: {agent} is a URL; `evaltui run` takes one")
        if agent:
            try:
                require_agent(self._path(agent))
            except UsageError as error:
                raise pytest.UsageError(f"--evaltui-agent: {error}") from error
        if self.config_file:
            # Else each case would say what is wrong with the config of all of them.
            try:
                read_config_argument(self.config_file)
            except EvalSetError as error:
                raise pytest.UsageError(f"--evaltui-config: {error}") from error
        try:
            options = options_of([*self._words(Path())])
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error
        for flag in ("fail_on_regression", "alpha"):
            if getattr(options, flag) and not options.baseline:
                raise pytest.UsageError(f"--evaltui-{flag.replace('_', '-')} needs --evaltui-baseline RUN")

        if options.fail_on_regression and self.skips_not_evaluated:
            raise pytest.UsageError(
                "--evaltui-fail-on-regression and --evaltui-not-evaluated skip exclude each other: a case "
                "without a verdict may have broken"
            )

    def agent_of(self, path: Path) -> Path:
        """The agent that the cases of a file are put to. Raises NoAgentError."""
        agent = self._option("agent")
        return self._path(agent) if agent else agent_of_set(path, self._config.rootpath)

    @property
    def config_file(self) -> Path | None:
        """The config of all eval sets; None where each has its own."""
        config = self._option("config")
        return self._path(config) if config else None

    def result(self, case: CaseToTest, session: pytest.Session) -> FinishedCase:
        """A case that is over, waited for. Raises what `problem` has a text for."""
        with self._lock:
            if case not in self._run_of:
                self._start(case, session)
        try:
            return self._run_of[case].result(case.id)
        except NoResultError as error:
            # A set with errors is left out; these are its errors.
            raise self._errors_of(case.path) or error from None

    def start_in_worker(self, session: pytest.Session) -> None:
        """Begin all runs, of which other workers of pytest-xdist may need results first."""
        if self._worker is not None:
            for case in cases_of(session):
                # Told by the test of the case.
                with suppress(NoResultError):
                    if case not in self._run_of:
                        self._start(case, session)

    def _errors_of(self, path: Path) -> EvalSetError | None:
        """The error of an eval set, which is validated once; None for a valid one."""
        if path not in self._errors:
            self._errors[path] = None
            try:
                FileSets(path.parent, self.config_file).open(path)
            except EvalSetError as error:
                self._errors[path] = error
        return self._errors[path]

    def printed(self, case: CaseToTest, finished: FinishedCase) -> str:
        """The agent's prints during a case."""
        return without_commands(self._secrets_of(case).masked(finished.printed))

    def sentence(self, case: CaseToTest, finished: FinishedCase) -> str:
        """Why a case came out as it did."""
        return sentence(self.masked(case, finished.result))

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
        is_ours = isinstance(error, NoResultError | EvalSetError)
        return without_commands(str(error)) if is_ours else None

    def _start(self, case: CaseToTest, session: pytest.Session) -> None:
        """Begin the run of a case, with all others of its agent that have none. Raises NoResultError."""
        if self._worker is not None and not Path(self._worker["evaltui_folder"]).is_dir():
            raise NoResultError("eval cases run on the machine of pytest; leave out --tx")
        agent = case.agent_dir, case.config
        cases = [
            to_test
            for to_test in cases_of(session)
            if (to_test.agent_dir, to_test.config) == agent and to_test not in self._run_of
        ]
        selected: dict[Path, tuple[str, ...] | None] = {}
        for path, of_set in groupby(sorted(cases, key=attrgetter("path")), attrgetter("path")):
            ids, sizes = zip(*((to_test.id.eval_id, to_test.set_size) for to_test in of_set), strict=True)
            selected[path] = None if len(ids) == sizes[0] else ids
        options = options_of([*self._words(*agent)])
        run = AgentRun(
            options, selected, [to_test.id for to_test in cases], self._shards(options, len(cases))
        )
        self._run_of |= dict.fromkeys(cases, run)
        run.start(self.loop)

    def _shards(self, options: argparse.Namespace, cases: int) -> Shards | None:
        """A shard for each worker, but not for more than there may be cases at once and agent processes."""
        if self._worker is None:
            return None
        try:
            settings = settings_of(options)
            most = min(settings.parallel, settings.workers or settings.parallel, cases)
        except UsageError:
            # Told by the run.
            most = 1
        folder, count = Path(self._worker["evaltui_folder"]), min(self._worker["workercount"], most)
        return Shards(folder, len({*self._run_of.values()}), self._worker["evaltui_number"], count)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop for tests that are no coroutines, in a thread of its own."""
        if self._loop is None:
            self._loop = BackgroundLoop()
        return self._loop.loop

    def settings_of(self, agent_dir: Path) -> dict[str, Any]:
        """The options of pytest as arguments of `evaluate`."""
        options = options_of([*self._words(agent_dir)])
        settings = settings_of(options)
        of_run = {name: getattr(options, name) for name in _OF_RUN}
        names = ("parallel", "workers", "timeout", "record", "tools")
        limits = {limit.model: limit.to_json() for limit in settings.limits}
        return of_run | {name: getattr(settings, name) for name in names} | {"limits": limits}

    def _words(self, agent_dir: Path, config: Path | None = None) -> Iterator[str]:
        """The words of `evaltui run`. A `config` goes before the one of the options."""
        yield str(agent_dir)
        for option in RUN_OPTIONS:
            value = self._option(option.name.replace("-", "_"))
            if option.name == "config" and (chosen := config or self.config_file):
                value = str(chosen)
            if option.name == "python" and not value and self.python_of(agent_dir) is None:
                # What is tested is what is installed beside pytest, as in tox.
                value = sys.executable
            if value:
                yield from (f"--{option.name}", value)
        yield from (f"--{flag.name}" for flag in FLAGS if self._is_set(flag.dest))

    def python_of(self, agent_dir: Path) -> str | None:
        """The Python of an agent by an option or by its project; None for that of pytest."""
        options = argparse.Namespace(agent_dir=agent_dir, python=self._option("python"))
        try:
            return settings_of(options).python
        except UsageError:
            # Told by the run.
            return None

    def _is_set(self, name: str) -> bool:
        return bool(self._config.getoption(name) or self._config.getini(name))

    def _option(self, name: str) -> str | None:
        value: str | None = self._config.getoption(f"evaltui_{name}") or self._config.getini(
            f"evaltui_{name}"
        )
        return value or None

    def _path(self, text: str) -> Path:
        """On the command line it is seen from the current folder, in the ini file from where that is."""
        path = Path(text)
        return path.absolute() if path.exists() else self._config.rootpath / path

    def end(self, session: pytest.Session, *, is_interrupted: bool) -> None:
        """Cancel what still runs, and wait until all processes are gone.

        Unless the session `is_interrupted`, what other workers of pytest-xdist wait for is run to its end.
        """
        runs = [*dict.fromkeys(self._run_of.values())]
        for run in runs:
            run.end(is_awaited=self._worker is not None and not is_interrupted)
        self.finished += [run.wait() for run in runs]
        if self._loop is not None:
            self._loop.stop()
        # A worker of pytest-xdist runs a part of the cases.
        for finished in self.finished if self._worker is None else ():
            self.require_compared(session, finished)

    def merge(self, session: pytest.Session, folder: Path) -> None:
        """Make one run of the shards that the workers of pytest-xdist have run."""
        finished = merged(folder, lambda agent_dir: options_of([*self._words(agent_dir)]))
        if finished is not None:
            self.finished.append(finished)
            self.require_compared(session, finished)
            if finished.problem:
                # Its verdicts are of several states of the files.
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def require_compared(self, session: pytest.Session, run: FinishedRun) -> None:
        """Fails a session in which only regressions fail, if a run has no case in common with its
        baseline."""
        if self._is_set(GATE.dest) and run.comparison is not None and run.comparison.compares_nothing:
            self.remarks.append(f"--evaltui-{GATE.name}: {nothing_compared(run.comparison)}")
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """Parses options as `evaltui run` does. Raises UsageError, with the names that the options have in
    pytest."""
    output = io.StringIO()
    try:
        with redirect_stderr(output):
            options = parser_of("run").parse(words)
    except SystemExit as error:
        message = output.getvalue().strip().removeprefix("evaltui run: ")
        raise UsageError(message.replace("argument --", "--evaltui-")) from error
    try:
        confidence_of(options)
    except UsageError as error:
        raise UsageError(str(error).replace("--", "--evaltui-")) from error
    return options


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
