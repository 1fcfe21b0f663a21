"""The current run: starting, cancelling, resuming; and the repeats of its cases."""

from __future__ import annotations

import asyncio
import importlib
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.agents.exception_kinds import nearest_first
from evaltui.core.model.case_id import CaseId
from evaltui.documents.saving import fingerprint_of
from evaltui.project.eval_set_file import stamp_of
from evaltui.text.figures import counted, short_list, show_number
from evaltui.text.keys import key_of
from evaltui.workbench.agent.agent_state import AgentState, Console
from evaltui.workbench.agent.background import return_memory
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.messages import FilesChanged, Messages, RunProgressed
from evaltui.workbench.state import CANCELLING, READ_ONLY, RepeatChoice, Run, Stage, nothing_to_cancel

if TYPE_CHECKING:
    from evaltui.runner.starting import StartedHost
    from evaltui.runs.execution import RunService
    from evaltui.runs.resuming import Resumption


# What fewer cases leave behind when they have been run is not worth looking for.
_MANY_CASES = 1_000
# Of each file the cases that are meant, None for all of them.
ChosenCases = Mapping[Path, tuple[str, ...] | None]


@dataclass
class MoreRepeats:
    """A run of more repeats of cases in a variant of a matrix, and its progress."""

    title: str
    total: int
    done: int = 0
    stage: Stage = Stage.RUNNING

    def __str__(self) -> str:
        """`movie_mode in pro: 2 of 5 runs`"""
        return f"{self.title}: {show_number(self.done)} of {counted(self.total, 'run')}"


class RunController:
    """Runs cases of several sets, one run at a time.

    `reload` lists the sets again. `service` selects, executes and stores the runs: that of `evaltui.runs`
    where it is None; `tests/fake_runs.py` has one that needs no process.
    """

    def __init__(
        self,
        agent: AgentState,
        editing: Editing,
        console: Console,
        reload: Callable[[], Awaitable[None]],
        messages: Messages,
        service: RunService | None = None,
    ) -> None:
        self.current: Run | None = None
        """The last started run; None before the first one."""
        self.more: MoreRepeats | None = None
        """The run of more repeats that is in progress."""
        self._agent = agent
        self._editing = editing
        self._sets = editing.sets
        self._outcomes = editing.outcomes
        self._navigation = editing.navigation
        self._console = console
        self._reload = reload
        self._messages = messages
        self._service = service
        self._task: asyncio.Task[None] | None = None
        self._host: StartedHost | None = None
        self._forcing: asyncio.Task[None] | None = None
        self._reloading: asyncio.Future[None] | None = None
        self._started = 0
        self._last: tuple[str, ChosenCases, RepeatChoice | None] | None = None

    async def warm_up(self) -> None:
        """Loads in a thread the modules for showing, running and editing the first case."""
        for name in ("evaltui.workbench.runs.running", "evaltui.documents.open_file", "filelock"):
            await asyncio.to_thread(importlib.import_module, name)

    @property
    def is_running(self) -> bool:
        return self.current is not None and not self.current.over

    @property
    def is_busy(self) -> bool:
        """Whether any run is in progress."""
        return self.is_running or self.more is not None

    @property
    def has_run(self) -> bool:
        """Whether there is a run to repeat."""
        return self._last is not None

    def refuses_to_run(self) -> str | None:
        """Why no run can be started now, as a sentence; None where one can."""
        if self._agent.read_only:
            return READ_ONLY
        if not self._sets.is_read:
            return "Loading eval sets…"
        if self.is_busy:
            return f"Run in progress ({key_of('cancel_run')} cancels)"
        if not any(eval_set.cases for eval_set in self._sets.listed):
            return "No case to run"
        return None

    # Starting

    def run_case(self, repeated: RepeatChoice | None = None) -> None:
        """Runs the selected case, `repeated` times; with a set selected, all of its cases."""
        case = self._navigation.selection.case
        if case is None:
            self.run_set(repeated)
        else:
            self._start(case.eval_id, {self._sets.file_of(case.path): (case.eval_id,)}, repeated)

    def run_chosen(self) -> None:
        """Runs the marked cases; without any, the selected case or set."""
        if marked := self._navigation.marking.marked:
            self.run_cases(counted(len(marked), "marked case"), marked)
        else:
            self.run_case()

    def run_set(self, repeated: RepeatChoice | None = None) -> None:
        """Runs every case of the selected set."""
        if eval_set := self._sets.by_case_path(self._navigation.selection.path):
            self._start(eval_set.eval_set_id, {eval_set.path: None}, repeated)

    def run_all(self) -> None:
        self._start("all sets", self._all_sets)

    @property
    def _all_sets(self) -> ChosenCases:
        return {eval_set.path: None for eval_set in self._sets.listed if eval_set.cases}

    def run_failed(self) -> None:
        """Runs every case whose last result needs attention."""
        self.run_cases("failed cases", self._outcomes.results.attention)

    def run_cases(self, title: str, cases: Collection[CaseId], repeated: RepeatChoice | None = None) -> None:
        """Runs the existing ones of these cases."""
        self._start(title, self.chosen(cases), repeated)

    def run_again(self) -> None:
        """Runs the cases of the last run that still exist."""
        if self._last is not None:
            title, chosen, repeated = self._last
            paths = {eval_set.path for eval_set in self._sets.listed}
            there = {path: eval_ids for path, eval_ids in chosen.items() if path in paths}
            self._start(title, there, repeated)

    def chosen(self, cases: Collection[CaseId]) -> ChosenCases:
        """The existing ones of the cases, by file and in file order."""
        by_path: dict[str, list[str]] = {}
        for case in self._sets.every_case():
            if case in cases:
                by_path.setdefault(case.path, []).append(case.eval_id)
        return {self._sets.file_of(path): tuple(eval_ids) for path, eval_ids in by_path.items()}

    def _is_refused(self) -> bool:
        """Whether no run can be started now, with a message."""
        reason = self.refuses_to_run() or self._agent.read_settings()
        if reason:
            self._messages.say(reason)
        return bool(reason)

    def _start(self, title: str, chosen: ChosenCases, repeated: RepeatChoice | None = None) -> None:
        if self._is_refused():
            return
        self._last = title, chosen, repeated
        self.start(f"{title}, {repeated.in_words}" if repeated else title, chosen, repeated=repeated)
        self._messages.say("")

    async def resume(self, path: Path) -> bool:
        """Resumes an interrupted run, in a new run that has all results; False where that is impossible."""
        from evaltui.workbench.runs.running import read_remaining

        if self._is_refused():
            return False
        resumption = await read_remaining(self._agent.address, self._sets, path)
        reason = resumption if isinstance(resumption, str) else self.refuses_to_run()
        if isinstance(resumption, str) or reason:
            self._messages.say(reason or "")
            return False
        number = resumption.header.number
        title = f"rest of run {number}" if number else f"rest of {resumption.id}"
        self.start(title, resumption.eval_ids, resumes=resumption)
        self._messages.say("")
        return True

    def start(
        self,
        title: str,
        chosen: ChosenCases,
        first: StartedHost | None = None,
        repeated: RepeatChoice | None = None,
        resumes: Resumption | None = None,
    ) -> Run:
        """Starts a run; no other may be in progress. `first` is a host that has imported the agent
        already."""
        self._outcomes.leave_previous_run()
        # Those of other sittings count, too.
        self._started = max(self._started + 1, self._next_number())
        self.current = Run(
            self._started,
            title,
            self._agent.code_version,
            repeated=repeated,
            resumes=resumes,
            selected=self._keys_of(chosen),
        )
        if problem := self._agent.read_settings():
            self.current.remarks.append(problem)
        self._outcomes.run_begins(self.current)
        self._host = first
        self._task = asyncio.create_task(self._work(self.current, chosen, first))
        self._messages.publish(RunProgressed())
        return self.current

    def _next_number(self) -> int:
        from evaltui.runs.run_writer import next_number

        try:
            return next_number(self._agent.store)
        except OSError:
            return 1

    def _keys_of(self, chosen: ChosenCases) -> frozenset[CaseId]:
        """The chosen cases in the list."""
        of_set = {
            self._sets.case_path(file): None if some is None else frozenset(some)
            for file, some in chosen.items()
        }
        listed = (case for case in self._sets.every_case() if case.path in of_set)
        return frozenset(
            case for case in listed if (some := of_set[case.path]) is None or case.eval_id in some
        )

    # At work

    async def _work(self, run: Run, chosen: ChosenCases, first: StartedHost | None) -> None:
        try:
            await self._editing.merge_outside_changes()
            await self._agent.compare_files()
            chosen = await self._with_new_sets(run, chosen)
            run.code = self._agent.code_version
            try:
                stage = await self._execute(run, chosen, first)
            finally:
                # While nobody has seen its end: what changes from then on is no work of the agent's.
                await self._agent.compare_files(after_run=True)
            if stage is not Stage.FAILED:
                run.remarks += self._not_read(chosen)
            await self._reload_if_changed(run)
            run.stage = stage
        except asyncio.CancelledError:
            # The task is ours alone: a cancelled run is an outcome, nobody above waits for the exception.
            has_all = run.selected and len(run.done) == len(run.selected)
            run.stage = Stage.FINISHED if has_all else Stage.CANCELLED
        except Exception as error:  # whatever it is, the workbench goes on and says so
            run.stage = Stage.FAILED
            self._tell_failure(run, error)
        finally:
            run.ended = time.monotonic()
            run.running.clear()
            self._outcomes.run_ends()
            self._outcomes.traces.run_over()
            if first is not None:
                await first.end()
            self._agent.keep_host_warm()
            # What was expected may have been changed while it ran, also of cases that it did not finish.
            self._outcomes.rescore(map(self._sets.file_of, run.paths))
            self._outcomes.runs_changed()
            if len(run.done) >= _MANY_CASES:
                await asyncio.to_thread(return_memory)

    async def _with_new_sets(self, run: Run, chosen: ChosenCases) -> ChosenCases:
        """For a run of all sets, those that are on disk now, unless files are followed."""
        if self._agent.followed or chosen != self._all_sets:
            return chosen
        await self._sets.read()
        if (now := self._all_sets) != chosen:
            run.selected = self._keys_of(now)
            self._outcomes.run_begins(run)
            self._messages.publish(FilesChanged())
        return now

    def _not_read(self, chosen: ChosenCases) -> list[str]:
        """A remark for a run of all sets on files that are meant as eval sets and have another name."""
        workspace = self._sets.workspace
        if workspace is None or chosen != self._all_sets:
            return []
        names = [skipped.path.name for skipped in workspace.skipped if skipped.is_set]
        return [f"{counted(len(names), 'file')} not read: {short_list(names)}"] if names else []

    def _tell_failure(self, run: Run, error: Exception) -> None:
        # Of what ran side by side, what failed by itself.
        own = next(cause for cause in nearest_first(error) if not isinstance(cause, BaseExceptionGroup))
        run.remarks.append(f"{type(own).__name__}: {own}")
        for line in "".join(traceback.format_exception(own)).splitlines():
            self._console.add(run.number, "stderr", line, None)

    async def _execute(self, run: Run, chosen: ChosenCases, first: StartedHost | None) -> Stage:
        """Executes the run and returns how it ended."""
        if run.remarks:
            # The settings cannot be used.
            return Stage.FAILED
        await self.warm_up()
        from evaltui.runs import execution
        from evaltui.workbench.runs import running

        follower = running.RunFollower(
            run,
            self._agent,
            self._outcomes,
            self._console,
            selected=lambda: self._reload_if_stale(run, chosen),
            messages=self._messages,
        )
        request = running.request_of(run, chosen, self._agent, self._outcomes.logs_in_use)
        execute = self._service or execution.run
        executed = await execute(
            request,
            running.EditedSets(self._sets),
            follower.on_update,
            lambda: self._use(first or self._agent.start_host()),
        )
        run.logged_seconds = None if executed.log is None else executed.seconds
        if self._reloading is not None:
            await self._reloading
        if not run.selected:
            run.remarks = run.remarks or ["The selected cases are no longer in their files"]
            return Stage.FAILED
        if executed.problem:
            # In full: the status line may have no room for it.
            self._console.add(run.number, "stderr", executed.problem, None)
            run.is_stopped = bool(run.done)
            return Stage.CANCELLED if run.done else Stage.FAILED
        if executed.status is None:
            return Stage.CANCELLED
        if run.resumes and run.log:
            await follower.read_carried_over(run.log)
        return Stage.FINISHED

    def _use(self, host: StartedHost) -> StartedHost:
        """Notes the host of the run, for `cancel`."""
        self._host = host
        return host

    # More repeats

    def run_more(self, log: Path, cases: Collection[CaseId], runs: int, title: str) -> None:
        """Runs each of the cases `runs` more times, with the variant of a log.

        The repeats are stored with the earlier results of the variant in a new log, which replaces the old
        one. The list of cases does not get them: it shows the agent without variants.
        """
        if not self._is_refused():
            self.more = MoreRepeats(title, runs * len(cases))
            self._task = asyncio.create_task(self._work_more(self.more, log, dict.fromkeys(cases, runs)))
            self._messages.say("")
            self._messages.publish(RunProgressed())

    async def _work_more(self, more: MoreRepeats, log: Path, repeats: Mapping[CaseId, int]) -> None:
        from evaltui.workbench.runs.running import run_more

        def on_done() -> None:
            more.done += 1
            self._messages.publish(RunProgressed())

        try:
            ended = await run_more(self._agent, self._sets, self._service, log, repeats, on_done, self._use)
            if isinstance(ended, str):
                self._messages.say(ended)
            else:
                end = ", cancelled" if ended.status is None else ""
                self._messages.say(f"{more.title}: {counted(more.done, 'run')}{end}")
        except asyncio.CancelledError:
            self._messages.say(f"{more.title}: cancelled")
        finally:
            self.more = self._host = None
            self._messages.publish(RunProgressed())

    def _reload_if_stale(self, run: Run, chosen: ChosenCases) -> None:
        """Lists the sets again where the files differ from the list."""
        existing = set(self._sets.every_case())
        whole = {self._sets.case_path(file) for file, eval_ids in chosen.items() if eval_ids is None}
        listed = {case for case in existing if case.path in whole}
        is_other = any(self._sets.differs_from_list(file) for file in chosen)
        if is_other or not run.selected <= existing or not listed <= run.selected:
            self._reloading = asyncio.ensure_future(self._reload())

    async def _reload_if_changed(self, run: Run) -> None:
        """Lists the sets again where one of the run changed on disk meanwhile, unless files are followed."""
        paths = () if self._agent.followed else [*map(self._sets.file_of, run.paths)]
        if any([await asyncio.to_thread(self._is_other_on_disk, path) for path in paths]):
            await self._reload()

    def _is_other_on_disk(self, path: Path) -> bool:
        """In a thread: whether a set on disk is another than the one that was read or saved last."""
        opened, listed = self._sets.files.get(path), self._sets.by_path(path)
        if opened is None and listed is not None and listed.fingerprint is None:
            # One of an old format.
            return listed.stamp != stamp_of(path)
        latest = opened or listed
        return latest is None or latest.fingerprint != fingerprint_of(path)

    async def finished(self) -> None:
        """Waits until the run has ended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def cancel(self) -> None:
        """Cancels the run: finished cases stay, unfinished ones keep their earlier result.

        A second call kills its processes, which otherwise happens after some seconds.
        """
        run = self.current if self.is_running else self.more
        if run is None or self._task is None:
            self._messages.say(nothing_to_cancel())
        elif run.stage is Stage.CANCELLING:
            self._forcing = asyncio.create_task(self._kill(run))
        else:
            self._cancel(run, self._task)
            self._messages.say(CANCELLING)

    async def _kill(self, run: Run | MoreRepeats) -> None:
        if self._host is not None:
            await self._host.host.kill()
        if isinstance(run, Run) and run.kill is not None:
            await run.kill()

    def _cancel(self, run: Run | MoreRepeats, task: asyncio.Task[None]) -> None:
        run.stage = Stage.CANCELLING
        # Not before its first step: cancelled by then it would never begin, and so never end in order.
        asyncio.get_running_loop().call_soon(task.cancel)
        self._messages.publish(RunProgressed())

    async def close(self) -> None:
        """Cancels the run and waits for its end."""
        if self._task is not None:
            run = self.current if self.is_running else self.more
            if run is not None and run.stage is not Stage.CANCELLING:
                self._cancel(run, self._task)
            await asyncio.wait([self._task])
