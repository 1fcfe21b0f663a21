"""More repeats of cases in a variant of a matrix. They are stored with the earlier results of the variant in
a new log, which replaces the old one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError
from evaltui.project.agent_address import as_variant
from evaltui.project.variants import hidden_in
from evaltui.runner.plan import RepeatDone
from evaltui.runner.starting import HostSettings, start_host
from evaltui.runs import execution
from evaltui.runs.resuming import ResumeError, begun_with, read_resumption
from evaltui.runs.selection import RunRequest, resuming
from evaltui.text.figures import counted, show_number
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.messages import Messages, RunProgressed
from evaltui.workbench.runs.running import EditedSets
from evaltui.workbench.state import CANCELLING, nothing_to_cancel

if TYPE_CHECKING:
    from evaltui.project.agent_address import AgentAddress
    from evaltui.runner.starting import StartedHost
    from evaltui.runs.execution import ExecutedRun, RunService, RunUpdate
    from evaltui.runs.resuming import Resumption

# More is a matter for the command line.
_MOST = 1000


def runs_problem(text: str) -> str | None:
    """Why a text is no valid number of repeats, as a sentence; None where it is."""
    return None if text.isdecimal() and 1 <= int(text) <= _MOST else f"A number from 1 to {_MOST}"


class MoreRepeats:
    """Runs more repeats, one such run at a time, and only while no other run is in progress.

    The list of cases does not get the results: it shows the agent without variants. `refuses` returns why no
    run can be started; `service` is that of `RunController`.
    """

    def __init__(
        self,
        agent: AgentState,
        sets: OpenSets,
        refuses: Callable[[], str | None],
        messages: Messages,
        service: RunService | None = None,
    ) -> None:
        self._agent = agent
        self._sets = sets
        self._refuses = refuses
        self._messages = messages
        self._service = service
        self._task: asyncio.Task[None] | None = None
        self._host: StartedHost | None = None
        self._title = ""
        self._done = self._total = 0
        self._is_cancelling = False
        self._killing: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def progress(self) -> str:
        """The progress: `movie_mode in pro: 2 of 5 runs`; "" while nothing runs."""
        if not self.is_running:
            return ""
        return f"{self._title}: {show_number(self._done)} of {counted(self._total, 'run')}"

    def start(self, log: Path, cases: Collection[CaseId], runs: int, title: str) -> None:
        """Runs each of the cases `runs` more times, with the variant of a log."""
        if reason := self._refuses():
            self._messages.say(reason)
            return
        if problem := self._agent.read_settings():
            self._messages.say(problem)
            return
        self._title, self._done, self._total = title, 0, runs * len(cases)
        self._is_cancelling = False
        self._task = asyncio.create_task(self._work(log, dict.fromkeys(cases, runs)))
        self._messages.say("")
        self._messages.publish(RunProgressed())

    def cancel(self) -> None:
        """Cancels the run: finished repeats stay, and its log can be resumed. A second call kills the
        processes."""
        if not self.is_running or self._task is None:
            self._messages.say(nothing_to_cancel())
        elif self._is_cancelling and self._host is not None:
            self._killing = asyncio.create_task(self._host.host.kill())
        else:
            self._is_cancelling = True
            self._task.cancel()
            self._messages.say(CANCELLING)

    async def close(self) -> None:
        """Cancels the run."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self, log: Path, more: dict[CaseId, int]) -> None:

        try:
            executed = await self._run(log, more)
            end = ", cancelled" if executed.status is None else ""
            self._messages.say(f"{self._title}: {counted(self._done, 'run')}{end}")
        except asyncio.CancelledError:
            self._messages.say(f"{self._title}: cancelled")
        except EvalSetError as error:
            self._messages.say(f"Cannot run: {error.problems[0].located()}")
        except ResumeError as error:
            again = ". Run the matrix again" if error.differs else ""
            self._messages.say(f"Cannot run: {error}{again}")
        except (OSError, ValueError) as error:
            self._messages.say(f"Cannot run: {error}")
        finally:
            self._host = None
            self._messages.publish(RunProgressed())

    async def _run(self, log: Path, more: dict[CaseId, int]) -> ExecutedRun:

        header = await asyncio.to_thread(begun_with, log)
        variant, sets = header.variant, EditedSets(self._sets)
        if variant is None:
            raise ResumeError("the run is of no variant")
        if name := hidden_in(variant):
            raise ResumeError(f"the value of {name} is secret, so the run log does not have it")
        with ExitStack() as ready:
            # A commit is checked out.
            as_it_runs = as_variant(self._agent.address, variant, None)
            address = await asyncio.to_thread(ready.enter_context, as_it_runs)
            resumption = await asyncio.to_thread(read_resumption, address, log, sets, frozenset(), more=more)
            request = self._request(address, resumption)
            run = self._service or execution.run
            return await run(request, sets, self._on_update, lambda: self._start(address))

    def _request(self, address: AgentAddress, resumption: Resumption) -> RunRequest:

        return resuming(RunRequest(address, settings=self._agent.settings), resumption)

    def _start(self, address: AgentAddress) -> StartedHost:

        settings = HostSettings(address, self._agent.settings.timeout)
        self._host = start_host(settings)
        return self._host

    def _on_update(self, update: RunUpdate) -> None:

        if isinstance(update, RepeatDone):
            self._done += 1
            self._messages.publish(RunProgressed())
