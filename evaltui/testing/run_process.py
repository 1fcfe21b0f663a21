"""The process that all runs of a pytest session are in, where they share Python's lock with no test.

`python -m evaltui.testing.run_process channel FD` serves one pytest, and ends when that closes its channel;
`... shared FOLDER PID` serves the workers of pytest-xdist through a socket in the folder, until the pytest of
this process id, which controls them, asks for the end or is gone.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import shutil
import socket
import sys
import time
import traceback
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltui.commands.baselines import alpha_of, baseline_of, require_effect
from evaltui.commands.output import UsageError
from evaltui.core.compare.run_comparison import CaseChange, Comparison, compare, compare_case
from evaltui.core.compare.run_summary import CaseSummary, RunSummary, summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.core.statistics.differences import ALPHA
from evaltui.files.folders import case_path
from evaltui.files.settings import secrets_of
from evaltui.runner.parent.starting import HostSettings, start_host
from evaltui.runner.plan import CaseDone, Happened, Noted, RunStopped
from evaltui.runs.baselines import LaterRun
from evaltui.runs.execution import ExecutedRun, LogGrew, RunUpdate, Selected
from evaltui.runs.execution import run as run_and_keep
from evaltui.runs.history import run_in, summary_of
from evaltui.runs.run_file import RunFile
from evaltui.runs.selection import SelectedRun
from evaltui.testing.messages import Ending, FinishedCase, FinishedRun, RunOrder, Unpacker, packed
from evaltui.testing.requests import options_of, request_of
from evaltui.text.figures import counted, show_p
from evaltui.views.comparison import comparison_lines

SOCKET = "socket"
_CHUNK = 1 << 16
# Seconds between two looks whether pytest is still there.
_LOOK_EVERY = 1.0


class _Run:
    """A run, and the tests' processes that are told of it."""

    def __init__(self, order: RunOrder) -> None:
        self.finished: FinishedRun | None = None
        self._order = order
        self._told: list[bytes] = []
        self._followers: list[asyncio.StreamWriter] = []
        self._notes: list[str] = []
        self._printed: defaultdict[CaseId, list[str]] = defaultdict(list)
        self._count = self._done = 0
        self._baseline: RunSummary | None = None
        self._log: Path | None = None
        self._begun: RunSummary | None = None
        self._undecided: list[FinishedCase] = []
        self._excuses = False
        self._alpha = ALPHA
        self.task = asyncio.create_task(self._work())

    def cancel(self) -> None:
        """End it, unless it has only to be stored."""
        if not self._count or self._done < self._count:
            self.task.cancel()

    def follow(self, writer: asyncio.StreamWriter) -> None:
        """Tell a process of every case, also of those that are over."""
        writer.write(b"".join(self._told))
        self._followers.append(writer)

    def leave(self, writer: asyncio.StreamWriter) -> None:
        if writer in self._followers:
            self._followers.remove(writer)

    def _tell(self, message: FinishedCase | FinishedRun) -> None:
        data = packed(message)
        self._told.append(data)
        for writer in self._followers:
            writer.write(data)

    async def _work(self) -> None:
        began = time.monotonic()
        executed, problem = None, ""
        try:
            executed = await self._execute()
        except asyncio.CancelledError:
            problem = "the run was cancelled"
        except (UsageError, SelectionError, EvalSetError) as error:
            problem = str(error)
        except Exception:
            problem = traceback.format_exc()
        comparison = self._compared(executed)
        self._tell_undecided(comparison)
        self.finished = FinishedRun(
            self._order,
            self._done,
            time.monotonic() - began,
            executed.log if executed else None,
            tuple(self._notes),
            self._lines(comparison),
            problem,
        )
        self._tell(self.finished)

    async def _execute(self) -> ExecutedRun:
        order = self._order
        _move_to(order)
        request, sets = request_of(order)
        options = options_of(order.words)
        self._excuses = options.fail_on_regression
        self._alpha = alpha_of(options)
        cases = {case_path(request.agent_dir, path): eval_ids for path, eval_ids in request.cases.items()}
        later = LaterRun(request.store, cases, request.kind)
        baseline = await asyncio.to_thread(baseline_of, options, later)
        if baseline is not None:
            self._baseline = baseline.run
            self._notes += filter(None, [baseline.note])
            request = replace(request, baseline=baseline.run.id)
        settings = HostSettings(request.agent, request.settings.timeout)
        return await run_and_keep(request, sets, self._on_update, lambda: start_host(settings))

    def _on_update(self, update: RunUpdate) -> None:
        match update:
            case CaseDone(result):
                self._on_result(result)
            case Happened(event):
                if event.kind == "console" and event.case:
                    text = str(event.data.get("text", ""))
                    self._printed[CaseId(event.path, event.case)].append(text)
            case Noted(text) | RunStopped(reason=text):
                self._notes.append(text)
            case LogGrew(log):
                self._log = log
            case Selected(selected):
                self._count = selected.plan.case_count
                self._require_effect(selected)
                # What is imported and read by now stays.
                gc.freeze()
                gc.enable()

    def _require_effect(self, selected: SelectedRun) -> None:
        """Raises UsageError where no failure could be a regression."""
        if self._baseline is not None and self._excuses:
            try:
                require_effect(self._baseline, selected, self._alpha)
            except UsageError as error:
                raise UsageError(str(error).replace("--", "--evaltui-")) from error

    def _on_result(self, result: CaseResult) -> None:
        summary = summarize(result)
        self._done += 1
        counted_as = result.verdict
        is_flaky = result.status is Status.FLAKY
        finished = FinishedCase(
            self._order.key,
            result.id,
            counted_as,
            sum(one.seconds or 0.0 for one in result.repeats),
            tuple((one.name, one.score) for one in result.metrics if one.score is not None),
            f"{result.passed_repeats} of {counted(len(result.repeats), 'repeat')} passed" if is_flaky else "",
            "",
            "\n".join(self._printed.pop(result.id, ())),
            pickle.dumps(result, pickle.HIGHEST_PROTOCOL),
        )
        if self._baseline is None or not self._excuses or not summary.is_judged or summary.passes:
            self._tell(finished)
        else:
            self._tell_failed(finished, summary, self._baseline)

    def _tell_failed(self, finished: FinishedCase, summary: CaseSummary, baseline: RunSummary) -> None:
        """Tell of a failure and what excuses it, at the end of the run where that is not known before."""
        change = self._change(summary, baseline)
        if change is None or (change.may_be_regression and change.may_be_chance(self._alpha)):
            # All cases together may be the evidence that its own repeats are not.
            self._undecided.append(finished)
        elif change.may_be_regression:
            self._tell(finished)
        else:
            self._tell(replace(finished, excuse=f"no regression from {baseline.id}"))

    def _change(self, summary: CaseSummary, baseline: RunSummary) -> CaseChange | None:
        """How a case differs from the baseline; None where the run is in memory until it is over."""
        if self._log is None:
            return None
        if self._begun is None:
            self._begun = summary_of(RunFile(self._log))
        return compare_case(summary.id, baseline, replace(self._begun, cases={summary.id: summary}))

    def _tell_undecided(self, comparison: Comparison | None) -> None:
        for finished in self._undecided:
            excuse = _excuse(finished.id, comparison) if comparison is not None else ""
            self._tell(replace(finished, excuse=excuse))

    def _compared(self, executed: ExecutedRun | None) -> Comparison | None:
        if self._baseline is None or executed is None:
            return None
        return compare(self._baseline, run_in(executed.file).summary, self._alpha)

    def _lines(self, comparison: Comparison | None) -> tuple[Any, ...]:
        if comparison is None:
            return ()
        # Logs of earlier versions may hold secrets.
        masked = secrets_of(self._order.agent_dir).masked(comparison)
        return tuple(comparison_lines(masked, self._order.width))


def _excuse(case: CaseId, comparison: Comparison) -> str:
    """Why the failure of a case is no regression, a sentence; "" where it is one."""
    base = comparison.base.id
    change = next((one for one in comparison.cases if one.case == case), None)
    if change is not None and not change.may_be_regression:
        return f"no regression from {base}"
    p = next((one.p for one in comparison.without_evidence if one.case == case), None)
    return "" if p is None else f"no evidence of a regression from {base}: {show_p(p)}"


def _move_to(order: RunOrder) -> None:
    """Have the agent find what it would find in pytest."""
    if Path.cwd() != order.folder:
        os.chdir(order.folder)
    for name in os.environ.keys() - order.environment.keys():
        del os.environ[name]
    os.environ.update(order.environment)


class RunServer:
    """Runs what it is asked to, each of several equal orders once."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self.is_over = asyncio.Event()
        """Set once somebody has asked for the end, and knows what every run came to."""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a process until it closes its side."""
        unpacker = Unpacker()
        with suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                for message in unpacker.feed(data):
                    if isinstance(message, Ending):
                        await self._end(writer)
                    else:
                        self._run(message).follow(writer)
        for run in self._runs.values():
            run.leave(writer)

    def _run(self, order: RunOrder) -> _Run:
        if order.key not in self._runs:
            self._runs[order.key] = _Run(order)
        return self._runs[order.key]

    async def _end(self, writer: asyncio.StreamWriter) -> None:
        await self.cancel()
        for run in self._runs.values():
            assert run.finished is not None
            writer.write(packed(run.finished))
        with suppress(ConnectionError):
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        self.is_over.set()

    async def cancel(self) -> None:
        """End what still runs, and wait until its processes are gone."""
        for run in self._runs.values():
            run.cancel()
        await asyncio.gather(*(run.task for run in self._runs.values()), return_exceptions=True)


async def serve_channel(channel: socket.socket) -> None:
    """Serve the process at the other end until it closes it."""
    server = RunServer()
    reader, writer = await asyncio.open_connection(sock=channel)
    await server.talk(reader, writer)
    await server.cancel()
    writer.close()


async def serve_folder(folder: Path, controller: int) -> None:
    """Serve all who connect to the socket in a folder, which is deleted in the end."""
    server = RunServer()
    listening = await asyncio.start_unix_server(server.talk, folder / SOCKET)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not server.is_over.is_set() and _is_alive(controller):
        with suppress(TimeoutError):
            await asyncio.wait_for(server.is_over.wait(), _LOOK_EVERY)
    listening.close()
    await server.cancel()
    shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def main(kind: str, *words: str) -> None:
    gc.disable()
    if kind == "channel":
        asyncio.run(serve_channel(socket.socket(fileno=int(words[0]))))
    else:
        asyncio.run(serve_folder(Path(words[0]), int(words[1])))
    # Nothing is left to be done, and pytest waits.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
