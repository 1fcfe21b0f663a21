"""Changes of files on disk: they are shown, and in watch mode the cases that they concern are run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.agents.errors import AgentBrokenError
from evaltui.core.model.case_id import CaseId
from evaltui.project.agent_files import AgentFiles
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.files.saves import (
    MOMENT_SECONDS,
    DueCases,
    Reaction,
    ReactionStep,
    SavedSets,
    Waiting,
    join_names,
)
from evaltui.workbench.messages import AgentChanged, CodeSaved, FilesRead, Messages, WorkbenchMessage
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.runs.run_controller import RunController
from evaltui.workbench.state import READ_ONLY, RepeatChoice, Run, Stage

if TYPE_CHECKING:
    from evaltui.core.model.events import Json
    from evaltui.project.watching import Changed, WatchedFiles
    from evaltui.runner.starting import StartedHost

# Seconds between two looks at which runs there are.
_POLL_SECONDS = 1.0


class Following:
    """Reads again the changed files of the agent's folder and of `paths` (files and folders), and its runs.

    `reload` lists the sets again. No case is run and no agent is imported.
    """

    def __init__(
        self,
        agent: AgentState,
        outcomes: Outcomes,
        paths: Sequence[str | Path],
        reload: Callable[[], Awaitable[None]],
        messages: Messages,
    ) -> None:
        self.version = 0
        """A number that changes whenever other runs are stored."""
        self._agent = agent
        self._outcomes = outcomes
        self._paths = paths
        self._reload = reload
        self._messages = messages
        self._logs: Sequence[Path] = ()
        # When the log of each run that is over was written.
        self._over: dict[Path, int] = {}
        self._ready = asyncio.Event()
        # Results are read for one reason at a time.
        self._reading = asyncio.Lock()
        self._files: WatchedFiles | None = None
        messages.subscribe(self._follow_read, FilesRead)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Reads the earlier results of each case, and follows changes from now on."""
        self._agent.followed = True
        self._tasks = [
            asyncio.create_task(self._report_errors(loop))
            for loop in (self._follow_files(), self._follow_runs())
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _report_errors(self, following: Coroutine[None, None, None]) -> None:
        try:
            await following
        except Exception as error:  # whatever it is, the workbench goes on and says so
            self._messages.say(f"Changes on disk are no longer shown: {type(error).__name__}: {error}")

    async def _follow_files(self) -> None:
        self._files = self._agent.watched_files(self._paths)
        self._follow_read()
        try:
            await self._files.follow(self._on_save, self._ready.set)
        finally:
            self._ready.set()

    def _follow_read(self, _: WorkbenchMessage | None = None) -> None:
        """Follows the files that runs have read outside of the agent's folder, too."""
        if self._files is not None:
            self._files.contents = self._agent.read_contents
            self._files.modules = frozenset(self._agent.read_files.values())

    async def _on_save(self, change: Changed) -> None:
        # They are compared by their contents: of a run, the agent may have written some itself.
        if change.sets:
            await self._reload()
        elif change.code or change.others:
            await self._agent.compare_files(during_run=self._agent.is_running())
        await self._read_results()

    async def _follow_runs(self) -> None:
        # What is saved from now on is not missed; what was saved since the sets were read may have been.
        await self._ready.wait()
        await self._reload()
        while True:
            await self.read_runs()
            await asyncio.sleep(_POLL_SECONDS)

    async def note_runs(self) -> None:
        """Notes the stored runs, whose results are read elsewhere."""
        self._logs, self._over = await asyncio.to_thread(self._find_logs)

    async def read_runs(self, own: Path | None = None) -> None:
        """Shows the runs that were stored since the last call, also by other processes; `own` is shown
        already."""
        logs, over = await asyncio.to_thread(self._find_logs)
        is_new = any(log != own and self._over.get(log) != written for log, written in over.items())
        self._over = over
        if is_new or logs != self._logs:
            self._logs = logs
            self.version += 1
            self._outcomes.runs_changed()
        if is_new:
            await self._read_results()

    def _find_logs(self) -> tuple[Sequence[Path], dict[Path, int]]:
        """In a thread: the logs of runs, and the time at which the log of each ended run was written."""
        from evaltui.runs.run_file import is_being_written

        logs = self._agent.store.files()
        over = {}
        for log in logs:
            # One that is pruned meanwhile is gone the next time.
            with suppress(OSError):
                written = log.stat().st_mtime_ns
                if self._over.get(log) == written or not is_being_written(log):
                    over[log] = written
        return logs, over

    async def _read_results(self) -> None:
        async with self._reading:
            await self._outcomes.restore()


# Seconds without another save before anything is run: after a single save since it was written and since it
# was heard of, and where several come in a row.
_QUIET_SECONDS = 0.03
_QUIET_SINCE_HEARD = 0.01
_QUIET_AFTER_SEVERAL = 0.15
_SERIES_SECONDS = 0.3
# What changes during so many runs in a row, or soon after them, is written by the agent itself.
_MAX_OWN_WRITES = 5
_SOON_SECONDS = 1.0
_SOURCE_SUFFIXES = (".py", ".yaml", ".yml", ".toml", ".env")


class Watch:
    """Watch mode: follows saves in the agent's folder, in `paths` (files and folders), and in the folders of
    the modules that the agent imports.

    `reload` lists the sets again.
    """

    def __init__(
        self,
        agent: AgentState,
        editing: Editing,
        runs: RunController,
        paths: Sequence[str | Path],
        reload: Callable[[], Awaitable[None]],
        messages: Messages,
    ) -> None:
        self.on = False
        """Whether saves are followed."""
        self.last: Reaction | None = None
        """The reaction to the last save; None before the first one."""
        self.repeated: RepeatChoice | None = None
        """How often cases are run; None to run them as their configs define."""
        self._agent = agent
        self._sets = editing.sets
        self._outcomes = editing.outcomes
        self._runs = runs
        self._paths = paths
        self._messages = messages
        messages.subscribe(self._follow_read, FilesRead)
        self._names = AgentFiles(agent.dir)
        self._saved_sets = SavedSets(self._sets, self._outcomes, reload)
        self._due = DueCases(self._sets, self._outcomes, editing.navigation)
        self._own_writes = _OwnWrites(messages)
        self._task: asyncio.Task[None] | None = None
        self._reaction: asyncio.Task[None] | None = None
        self._learning: asyncio.Task[None] | None = None
        self._scoring: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._modules: frozenset[Path] = frozenset()
        self._files: WatchedFiles | None = None
        self._saved_at = 0.0
        self._heard_at = 0.0
        # Whether the last save was one of several: where a formatter or an editor of many files writes, the
        # next one will be, too.
        self._several = False
        self._waiting = Waiting()
        # What that was made of: the stale cases, and the sets of which nothing can be run.
        self._stale: tuple[frozenset[CaseId], frozenset[str]] | None = None

    # On and off

    def limit(self, is_included: Callable[[CaseId], bool]) -> None:
        """Runs, from now on, only cases for which this is true."""
        self._due.is_included = is_included

    def switch(self) -> None:
        """Turns watch mode on or off; cases that are running go on."""
        if self.on:
            self._end()
        else:
            self.start()
        self._messages.publish(AgentChanged())

    def start(self) -> None:
        if self._agent.read_only:
            self._messages.say(READ_ONLY)
        elif not self.on:
            self.on = True
            self._ready.clear()
            self._task = asyncio.create_task(self._watch(self._task))

    async def ready(self) -> None:
        """Waits until every save is seen."""
        await self._ready.wait()

    async def stop(self) -> None:
        """Stops watching, and the work that it has started, but no run."""
        self._end()
        if tasks := self._tasks():
            await asyncio.wait(tasks)

    def _end(self) -> None:
        self.on = self._agent.followed = False
        for task in self._tasks():
            task.cancel()
        if self.last is not None and self.last.step not in (ReactionStep.DONE, ReactionStep.BROKEN):
            # Nobody will tell how it went on.
            self.last = None

    def _tasks(self) -> list[asyncio.Task[None]]:
        tasks = (self._task, self._reaction, self._learning, self._scoring)
        return [task for task in tasks if task is not None]

    async def _watch(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        self._files = self._agent.watched_files(self._paths)
        self._follow_read()
        try:
            await self._agent.compare_files()
            self._agent.followed = self.on
            await self._saved_sets.changed_cases(self._sets.listed)
            await self._files.follow(self._on_save, self._on_ready)
        except Exception as error:  # whatever it is, the workbench goes on and says so
            self.on = self._agent.followed = False
            self._ready.set()
            self._messages.say(f"Watch mode ended: {type(error).__name__}: {error}")
            self._messages.publish(AgentChanged())

    def _on_ready(self) -> None:
        self._ready.set()
        self._learning = asyncio.create_task(self._import_agent())
        self._messages.publish(AgentChanged())

    async def _import_agent(self) -> None:
        """Finds the modules that the agent imports, and whether it can be imported."""

        code = self._agent.code_version
        started = self._agent.start_host()
        try:
            info = await started.loading
            # What has been saved since then speaks for itself.
            if self._agent.code_version == code:
                self._on_imported(started, info)
        except AgentBrokenError as broken:
            if self._agent.code_version == code:
                self._agent.failed(broken.error)
        finally:
            await started.end()
            self._agent.keep_host_warm()

    def _on_imported(self, started: StartedHost, info: Json) -> None:
        # Those from elsewhere are watched as well.
        self._modules = started.host.files
        self._follow_read()
        self._agent.imported(info)

    def _follow_read(self, _: WorkbenchMessage | None = None) -> None:
        """Watches the imported modules, and the files that runs have read outside of the agent's folder."""
        if self._files is not None:
            self._files.contents = self._agent.read_contents
            self._files.modules = self._modules | frozenset(self._agent.read_files.values())

    # What was saved

    async def _on_save(self, change: Changed) -> None:
        run = self._runs.current
        is_of_run = run is not None and (run.ended is None or time.monotonic() - run.ended <= _SOON_SECONDS)
        names = [name for name in change.code if not (is_of_run and self._agent.writes(name))]
        code = self._own_writes.without_own(names, run)
        due = await self._take_over_sets(change) if change.sets else frozenset()
        version = self._agent.code_version
        if change.code:
            # Also what starts no run may make results stale.
            await self._agent.compare_files(during_run=self._agent.is_running())
        if not code and not due:
            return
        now = time.monotonic()
        in_a_row = now - self._heard_at < _SERIES_SECONDS
        is_single = not (in_a_row or self._several)
        self._several = in_a_row
        self._heard_at, self._saved_at = now, change.saved
        self._due.cases |= due
        if code:
            self._due.files |= dict.fromkeys(code)
            if self._agent.code_version == version:
                # A module from elsewhere that no run has opened yet, or data during a run.
                self._agent.code_changed(code)
            self._messages.publish(CodeSaved())
        before = self._reaction
        if before is not None:
            before.cancel()
        self._reaction = asyncio.create_task(self._react(change, before, is_single=is_single))

    async def _take_over_sets(self, change: Changed) -> frozenset[CaseId]:
        """Takes over the changes that other programs have written, and scores the concerned results again;
        returns the cases to run."""
        changes = await self._saved_sets.take_over(change.sets)
        names = tuple(map(self._names.name, change.sets))
        if changes.due:
            self._due.set_files |= dict.fromkeys(names)
        is_only_scored = changes.from_outside and not changes.due and not self._due.files
        reaction = Reaction(names, ReactionStep.SCORING) if is_only_scored else None
        if reaction is not None:
            self._show(reaction)
        for path in changes.paths:
            await asyncio.to_thread(self._sets.open, path)
        # It may take long, and later saves must be heard meanwhile.
        self._scoring = asyncio.create_task(self._score(changes.paths, reaction, change.saved))
        return changes.due

    async def _score(self, paths: Sequence[Path], reaction: Reaction | None, saved: float) -> None:
        """Scores results again and shows their number, unless another reaction is shown by then."""
        await self._outcomes.rescored(paths)
        if reaction is not None and self.last is reaction:
            # The end of a run, or whatever else follows files, may have scored them before this was heard of.
            results = map(self._outcomes.results.of, map(self._sets.case_path, paths))
            rescored = sum(scored.rescored_at >= saved for of_set in results for _, scored in of_set)
            seconds = time.time() - saved
            self._show(
                replace(reaction, step=ReactionStep.DONE, rescored=rescored, seconds=seconds, at=time.time())
            )

    # What follows

    async def _react(self, change: Changed, before: asyncio.Task[None] | None, *, is_single: bool) -> None:
        """Imports the agent anew, then runs the due cases; a later save cancels this."""

        single = max(_QUIET_SECONDS - (time.time() - change.saved), _QUIET_SINCE_HEARD)
        quiet_until = self._heard_at + (single if is_single else _QUIET_AFTER_SEVERAL)
        self._show(Reaction(self._due.names, ReactionStep.IMPORTING))
        # A host is used once: the one that is ready is for the last of several saves.
        started = self._agent.start_host() if is_single else None
        try:
            if before is not None:
                await asyncio.wait([before])
            await self._end_older_run()
            await asyncio.sleep(quiet_until - time.monotonic())
            if change.saved_again():
                await asyncio.sleep(_QUIET_AFTER_SEVERAL)
            if started is None:
                started = self._agent.start_host()
            try:
                self._on_imported(started, await started.loading)
            except AgentBrokenError as broken:
                await asyncio.sleep(MOMENT_SECONDS)
                self._agent.failed(broken.error)
                seconds = time.time() - self._saved_at
                self._show(Reaction(self._due.names, ReactionStep.BROKEN, seconds=seconds))
                return
            # Whatever was started meanwhile runs the new code already.
            await self._runs.finished()
            handed_over, started = started, None
            await self._run(handed_over)
        finally:
            if started is not None:
                await started.end()
                self._agent.keep_host_warm()

    async def _end_older_run(self) -> None:
        """Cancels a run of older files; its unfinished cases stay due."""
        run, code = self._runs.current, self._agent.code_version
        if run is None or run.over or (run.code == code and not run.selected & self._due.cases):
            return
        await self._runs.close()
        self._due.cases |= run.selected - run.done

    async def _run(self, started: StartedHost) -> None:
        """Runs the due cases; then the cases that need no model as long as the agent sends the same
        requests."""
        due, names = self._due, self._due.names
        self._outcomes.leave_previous_run()
        cases = due.to_run()
        replays = self._agent.settings.record in ("auto", "replay")
        replaying = due.free(replays=replays) - cases if due.files else set()
        if replaying and not any(map(due.was_replayed, cases)):
            # One of them shows whether the recordings still fit.
            cases.add(min(replaying))
        probes = [case for case in cases if due.was_replayed(case)]
        if not cases:
            await started.end()
            due.clear()
            self._show(Reaction(names, ReactionStep.DONE, seconds=time.time() - self._saved_at))
            return
        await self._run_cases(names, cases, started)
        still_fits = not any(map(due.made_live_calls, probes))
        rest = {case for case in replaying if self._outcomes.is_stale(case)}
        run = self._runs.current
        if rest and still_fits and run is not None and run.stage is Stage.FINISHED:
            await self._run_cases(names, rest)
        due.clear()

    async def _run_cases(
        self, names: tuple[str, ...], cases: Collection[CaseId], started: StartedHost | None = None
    ) -> None:
        calls = self._due.calls_of(cases)
        title = f"{join_names(names)} changed"
        run = self._runs.start(title, self._runs.chosen(cases), started, self.repeated)
        reaction = Reaction(names, ReactionStep.RUNNING, run.number, len(cases), calls)
        self._show(reaction)
        await self._runs.finished()
        last = run.last_verdict_at if run.stage is Stage.FINISHED else None
        seconds = None if last is None else last - self._saved_at
        self._show(replace(reaction, run=run.number, step=ReactionStep.DONE, seconds=seconds))

    def _show(self, reaction: Reaction) -> None:
        self.last = reaction
        self._messages.publish(AgentChanged())

    # What waits

    def waiting(self) -> Waiting:
        """The cases with a stale result that can be run, also of earlier sessions; none during a run."""
        if self._runs.is_running:
            return Waiting()
        stale = self._outcomes.stale()
        broken = frozenset(path for path in self._outcomes.results.paths() if self._sets.broken(path))
        if self._stale is None or self._stale[0] is not stale or self._stale[1] != broken:
            self._stale = stale, broken
            cases = frozenset(case for case in stale if case.path not in broken) if broken else stale
            self._waiting = Waiting(cases, self._due.calls_of(cases))
        return self._waiting

    def run_waiting(self) -> None:
        """Runs the cases with a stale result."""
        self.run("stale cases", self.waiting().cases)

    def run(self, title: str, cases: Collection[CaseId]) -> None:
        """Runs cases as often as they are run after a save."""
        self._runs.run_cases(title, cases, self.repeated)


class _OwnWrites:
    """Files that the agent writes while it works: a run for each of these saves would never end."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        # In which runs in a row a file has changed.
        self._runs_of: dict[str, list[int]] = {}

    def without_own(self, names: Sequence[str], run: Run | None) -> tuple[str, ...]:
        """The files without those that the agent itself writes. `run` is the last one."""
        if run is None or (run.ended is not None and time.monotonic() - run.ended > _SOON_SECONDS):
            self._runs_of.clear()
            return tuple(names)
        others = []
        for name in names:
            runs = self._runs_of.setdefault(name, [])
            if runs[-1:] not in ([run.number], [run.number - 1]):
                runs.clear()
            if runs[-1:] != [run.number]:
                runs.append(run.number)
            if len(runs) < _MAX_OWN_WRITES or name.endswith(_SOURCE_SUFFIXES):
                others.append(name)
            elif len(runs) == _MAX_OWN_WRITES:
                self._messages.say(f"{name} changes in every run, so its saves start no run")
        return tuple(others)
