"""What follows from a save: as little is run as shows what has changed, and as soon as can be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.model.aliases import spelt
from evaltui.core.model.case_prints import CasePrint, case_print
from evaltui.core.trace.model_calls import NO_CALLS, ModelCalls
from evaltui.files.agent_files import AgentFiles, write_times
from evaltui.files.eval_sets import read_set_data
from evaltui.files.saving import fingerprint_of
from evaltui.runner.parent.failures import AgentBrokenError
from evaltui.workbench.state import CaseKey, CaseOutcome, Repeated, Stage

if TYPE_CHECKING:
    from evaltui.core.model.events import Json
    from evaltui.core.model.outcome import ErrorInfo
    from evaltui.files.watching import Changed, WatchedFiles
    from evaltui.runner.parent.pool import StartedHost
    from evaltui.workbench.workbench import Workbench

# Seconds without another save before anything is run: after a single save since it was written and since it
# was heard of, and after several in a row.
_QUIET = 0.08
_QUIET_SINCE_HEARD = 0.05
_QUIET_AFTER_SEVERAL = 0.15
_IN_A_ROW = 0.3
# Seconds in which a file that cannot be read may be finished: many editors empty it before they write it.
_MOMENT = 0.3
# What changes during so many runs in a row, or soon after them, is written by the agent itself.
_OWN_WRITES = 5
_SOON = 1.0
_NOT_WRITTEN_BY_AGENTS = (".py", ".yaml", ".yml", ".toml", ".env")

_Prints = Mapping[str, CasePrint]


class Step(StrEnum):
    IMPORTING = "importing the agent"
    RUNNING = "running"
    SCORING = "scoring again"
    DONE = "done"
    BROKEN = "the agent cannot be imported"


@dataclass(frozen=True)
class Reaction:
    """What follows from a save. `changed` are the files as seen from the agent's folder.

    `run` is the number of the run that it led to, of `cases`, which made `calls` when they were run last.
    `rescored` cases were scored again without the agent. `seconds` is from the save to the last verdict, None
    before that. `at` is when this was known, in seconds since the epoch.
    """

    changed: tuple[str, ...]
    step: Step
    run: int | None = None
    cases: int = 0
    calls: ModelCalls = NO_CALLS
    rescored: int = 0
    seconds: float | None = None
    at: float = field(default_factory=time.time)


@dataclass(frozen=True)
class Waiting:
    """Cases whose result is of the agent as it was before, and the model calls they made then."""

    keys: frozenset[CaseKey] = frozenset()
    calls: ModelCalls = NO_CALLS


class Watching:
    """`workbench` is told of everything, `changed` is called whenever something has changed here.

    `given` are the eval sets from elsewhere. `repeated` is how often cases are run, None as their configs
    say, and `concerns` which cases are run at all. `last` is what the last save led to, if there was one.
    """

    def __init__(
        self, workbench: Workbench, given: Sequence[str | Path], changed: Callable[[], None]
    ) -> None:
        self.on = False
        self.last: Reaction | None = None
        self.repeated: Repeated | None = None
        self.concerns: Callable[[CaseKey], bool] = lambda key: True
        self._workbench = workbench
        self._given = given
        self._changed = changed
        self._names = AgentFiles(workbench.agent.dir)
        self._task: asyncio.Task[None] | None = None
        self._reaction: asyncio.Task[None] | None = None
        self._learning: asyncio.Task[None] | None = None
        self._scoring: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._modules: frozenset[Path] = frozenset()
        self._of_metrics: frozenset[Path] = frozenset()
        self._files: WatchedFiles | None = None
        self._prints: dict[Path, _Prints] = {}
        # What was saved, and which cases have to be run, since a run came to its end.
        self._saved_code: dict[str, None] = {}
        self._saved_sets: dict[str, None] = {}
        self._owed: set[CaseKey] = set()
        self._saved_at = 0.0
        self._heard_at = 0.0
        # In which runs in a row a file has changed.
        self._during_runs: dict[str, list[int]] = {}
        self._waiting: tuple[object, Waiting] = (None, Waiting())

    # On and off

    def switch(self) -> None:
        """On, or off again; what runs by then goes on."""
        if self.on:
            self._end()
        else:
            self.start()
        self._changed()

    def start(self) -> None:
        if not self.on:
            self.on = True
            self._ready.clear()
            self._task = asyncio.create_task(self._watch(self._task))

    async def ready(self) -> None:
        """Wait until no save is missed any more."""
        await self._ready.wait()

    async def stop(self) -> None:
        """End it, and whatever it has begun but a run."""
        self._end()
        if tasks := self._tasks():
            await asyncio.wait(tasks)

    def _end(self) -> None:
        self.on = False
        for task in self._tasks():
            task.cancel()
        if self.last is not None and self.last.step not in (Step.DONE, Step.BROKEN):
            # Nobody will tell how it went on.
            self.last = None

    def _tasks(self) -> list[asyncio.Task[None]]:
        tasks = (self._task, self._reaction, self._learning, self._scoring)
        return [task for task in tasks if task is not None]

    async def _watch(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        # It builds on a library that the first frame does not wait for.
        from evaltui.files.watching import WatchedFiles

        self._files = WatchedFiles(self._workbench.agent.dir, self._given)
        self._files.modules = self._modules | self._of_metrics
        try:
            await self._compare_with_last_run()
            await self._read_prints(entry.path for entry in self._workbench.sets.entries)
            await self._files.follow(self._take, self._follows)
        except Exception as error:  # whatever it is, the workbench goes on and says so
            self.on = False
            self._ready.set()
            self._workbench.say(f"watching has ended: {type(error).__name__}: {error}")

    def _follows(self) -> None:
        self._ready.set()
        self._learning = asyncio.create_task(self._learn())
        self._changed()

    async def _learn(self) -> None:
        """Find out what the agent imports, and whether it can be imported at all."""
        code = self._workbench.agent.code_version
        started = self._workbench.agent.start_host()
        try:
            self._is_imported(started, await started.loading)
        except AgentBrokenError as broken:
            # What has been saved since then speaks for itself.
            if self._workbench.agent.code_version == code:
                self._workbench.agent.failed(broken.error)
        finally:
            await started.end()
            self._workbench.agent.keep_host_warm()

    async def _compare_with_last_run(self) -> None:
        run = self._workbench.run
        if run is not None:
            written = await asyncio.to_thread(write_times, self._workbench.agent.dir)
            if max(written.values(), default=0.0) > run.at:
                self._workbench.agent.code_changed()

    def _is_imported(self, started: StartedHost, info: Json) -> None:
        # Those from elsewhere are watched as well.
        self._modules = started.host.files
        if self._files is not None:
            self._files.modules = self._modules | self._of_metrics
        self._workbench.agent.imported(info)

    def follow_metrics(self, files: frozenset[Path]) -> None:
        """Watch the files that custom metrics are made of, too."""
        self._of_metrics = files
        if self._files is not None:
            self._files.modules = self._modules | files

    # What was saved

    async def _take(self, change: Changed) -> None:
        code = self._written_by_user(change.code)
        owed = await self._take_sets(change) if change.sets else set()
        if not code and not owed:
            return
        now = time.monotonic()
        in_a_row = now - self._heard_at < _IN_A_ROW
        self._heard_at, self._saved_at = now, change.saved
        self._owed |= owed
        if code:
            self._saved_code |= dict.fromkeys(code)
            self._workbench.agent.code_changed()
            self._workbench.chat.look_at_code()
        before = self._reaction
        if before is not None:
            before.cancel()
        self._reaction = asyncio.create_task(self._react(change, before, in_a_row=in_a_row))

    def _written_by_user(self, names: Sequence[str]) -> tuple[str, ...]:
        """Without what the agent writes while it works, which would make it run without end."""
        run = self._workbench.run
        if run is None or (run.ended is not None and time.monotonic() - run.ended > _SOON):
            self._during_runs.clear()
            return tuple(names)
        kept = []
        for name in names:
            runs = self._during_runs.setdefault(name, [])
            if runs[-1:] not in ([run.number], [run.number - 1]):
                runs.clear()
            if runs[-1:] != [run.number]:
                runs.append(run.number)
            if len(runs) < _OWN_WRITES or name.endswith(_NOT_WRITTEN_BY_AGENTS):
                kept.append(name)
            elif len(runs) == _OWN_WRITES:
                self._workbench.say(f"{name} changes in every run: as long as it does, that starts no run")
        return tuple(kept)

    async def _take_sets(self, change: Changed) -> set[CaseKey]:
        """Take over what others have written, and score again what that concerns.

        Returns the cases that the agent gets to see otherwise than before, and those that are new in a set;
        a set that is new itself is for the user to run.
        """
        workbench = self._workbench
        if any([await asyncio.to_thread(_may_be_unfinished, path) for path in change.sets]):
            await asyncio.sleep(_MOMENT)
        known = {entry.path for entry in workbench.sets.entries}
        results = {
            key: scored
            for path in workbench.outcomes.results.paths()
            for key, scored in workbench.outcomes.results.of(path)
        }
        outside = [path for path in change.sets if not await self._is_ours(path)]
        if outside:
            for path in outside:
                if workbench.editing.draft(path) is None:
                    workbench.sets.documents.forget(path)
            await workbench.open()
        paths = self._sets_of(change.sets)
        other = await self._read_prints(paths)
        owed = {key for key in other if key.path in known}
        names = tuple(map(self._names.name, change.sets))
        if owed:
            self._saved_sets |= dict.fromkeys(names)
        told = Reaction(names, Step.SCORING) if outside and not owed and not self._saved_code else None
        if told is not None:
            self._tell(told)
        for path in paths:
            await asyncio.to_thread(workbench.sets.documents.open, path)
        # It may take long, and later saves must be heard meanwhile.
        self._scoring = asyncio.create_task(self._score(paths, results, told, change.saved))
        return owed

    async def _score(
        self,
        paths: Sequence[Path],
        results: Mapping[CaseKey, CaseOutcome],
        told: Reaction | None,
        saved: float,
    ) -> None:
        """Score results again; where nobody has been told anything else meanwhile, tell how many."""
        await self._workbench.outcomes.rescored(paths)
        if told is not None and self.last is told:
            now = self._workbench.outcomes.results
            rescored = sum(_was_rescored(before, now.get(key)) for key, before in results.items())
            seconds = time.time() - saved
            self._tell(replace(told, step=Step.DONE, rescored=rescored, seconds=seconds, at=time.time()))

    async def _is_ours(self, path: Path) -> bool:
        """Whether a file is what was saved or read here last."""
        draft = self._workbench.editing.draft(path)
        if draft is None or draft.fingerprint is None:
            return False
        return draft.fingerprint == await asyncio.to_thread(fingerprint_of, path)

    def _sets_of(self, paths: Sequence[Path]) -> list[Path]:
        """The sets that there are among these files, and those that configs among them score."""
        concerned = self._workbench.sets.scored_by(paths)
        return [entry.path for entry in self._workbench.sets.entries if entry.path in concerned]

    async def _read_prints(self, paths: Iterable[Path]) -> set[CaseKey]:
        """Read sets, as they are edited; the cases that are given otherwise to the agent than before."""
        other: set[CaseKey] = set()
        for path in list(paths):
            draft = self._workbench.editing.draft(path)
            edited = None if draft is None else draft.document.value
            now = await asyncio.to_thread(_prints_of, path, edited)
            if now is None:
                # It cannot be read: what is known of it is what it was before.
                continue
            before = self._prints.get(path, {})
            for eval_id, one in now.items():
                key = CaseKey(path, eval_id)
                if eval_id in before:
                    is_other = before[eval_id].given != one.given
                else:
                    # A case that was renamed has the result that it had.
                    is_other = self._workbench.outcomes.get(key) is None
                if is_other:
                    other.add(key)
            self._prints[path] = now
        return other

    # What follows

    async def _react(self, change: Changed, before: asyncio.Task[None] | None, *, in_a_row: bool) -> None:
        """Import the agent anew, then run what is to be run; a later save cancels this."""
        single = max(_QUIET - (time.time() - change.saved), _QUIET_SINCE_HEARD)
        quiet_until = self._heard_at + (_QUIET_AFTER_SEVERAL if in_a_row else single)
        self._tell(Reaction(self._saved_names(), Step.IMPORTING))
        # After several saves in a row more may come: they need not all start a process.
        started = None if in_a_row else self._workbench.agent.start_host()
        try:
            if before is not None:
                await asyncio.wait([before])
            await self._end_older_run()
            await asyncio.sleep(quiet_until - time.monotonic())
            if change.saved_again():
                await asyncio.sleep(_QUIET_AFTER_SEVERAL)
            if started is None:
                started = self._workbench.agent.start_host()
            try:
                self._is_imported(started, await started.loading)
            except AgentBrokenError as broken:
                await asyncio.sleep(_MOMENT)
                self._workbench.agent.failed(broken.error)
                self._tell(Reaction(self._saved_names(), Step.BROKEN, seconds=time.time() - self._saved_at))
                return
            # Whatever was begun meanwhile runs the new code already.
            await self._workbench.run_over()
            handed_over, started = started, None
            await self._run(handed_over)
        finally:
            if started is not None:
                await started.end()
                self._workbench.agent.keep_host_warm()

    async def _end_older_run(self) -> None:
        """End a run of what is no longer so; what it did not get to is still to be run."""
        run = self._workbench.run
        if (
            run is None
            or run.over
            or (run.code == self._workbench.agent.code_version and not run.selected & self._owed)
        ):
            return
        self._workbench.cancel()
        await self._workbench.run_over()
        self._owed |= run.selected - run.done

    async def _run(self, started: StartedHost) -> None:
        """Run what is to be run; then what needs no model as long as the agent asks what it asked before."""
        workbench, names = self._workbench, self._saved_names()
        workbench.outcomes.leave_previous_run()
        keys = self._to_run()
        replaying = self._free() - keys if self._saved_code else set()
        if replaying and not any(map(self._was_replayed, keys)):
            # One of them shows whether the recordings still fit.
            keys.add(min(replaying))
        probes = [key for key in keys if self._was_replayed(key)]
        if not keys:
            await started.end()
            self._settled()
            self._tell(Reaction(names, Step.DONE, seconds=time.time() - self._saved_at))
            return
        await self._run_cases(names, keys, started)
        still_fits = not any(self._live_calls(key) for key in probes)
        rest = {key for key in replaying if workbench.outcomes.is_stale(key)}
        if rest and still_fits and workbench.run is not None and workbench.run.stage is Stage.FINISHED:
            await self._run_cases(names, rest)
        self._settled()

    async def _run_cases(
        self, names: tuple[str, ...], keys: Collection[CaseKey], started: StartedHost | None = None
    ) -> None:
        workbench = self._workbench
        calls = _calls_of(workbench.outcomes.get(key) for key in keys)
        title = f"{in_short(names)} changed"
        run = workbench.start_run(title, workbench.chosen(keys), started, self.repeated)
        reaction = Reaction(names, Step.RUNNING, run.number, len(keys), calls)
        self._tell(reaction)
        await workbench.run_over()
        told = run.told if run.stage is Stage.FINISHED else None
        seconds = None if told is None else told - self._saved_at
        self._tell(replace(reaction, step=Step.DONE, seconds=seconds))

    def _to_run(self) -> set[CaseKey]:
        """What failed, what is selected, and what no model is needed for; not what may ask one."""
        workbench = self._workbench
        keys = set(self._owed)
        if self._saved_code:
            wanted = {*workbench.outcomes.results.attention, *workbench.navigation.marking.marked}
            if workbench.navigation.selection.case is not None:
                wanted.add(workbench.navigation.selection.case)
            keys |= {
                key
                for key in wanted
                if workbench.outcomes.get(key) is None or workbench.outcomes.is_stale(key)
            }
            keys |= {key for key in self._free() if not self._was_replayed(key)}
        return {key for key in keys & set(workbench.sets.every_case()) if self.concerns(key)}

    def _free(self) -> set[CaseKey]:
        """The cases with an old result that asked no model then, and will not now if they ask the same."""
        replays = self._workbench.record_mode in ("auto", "replay")
        return {
            key
            for key in self._stale()
            if (scored := self._workbench.outcomes.get(key)) is not None
            and scored.calls.need_no_model
            and (replays or not scored.calls.replayed)
            and self.concerns(key)
        }

    def _was_replayed(self, key: CaseKey) -> bool:
        scored = self._workbench.outcomes.get(key)
        return scored is not None and scored.calls.replayed > 0 and not scored.calls.live

    def _live_calls(self, key: CaseKey) -> int:
        scored = self._workbench.outcomes.get(key)
        return 0 if scored is None else scored.calls.live

    def _stale(self) -> Iterator[CaseKey]:
        workbench = self._workbench
        for path in workbench.outcomes.results.paths():
            yield from (
                key for key, _ in workbench.outcomes.results.of(path) if workbench.outcomes.is_stale(key)
            )

    def _settled(self) -> None:
        """Whatever is saved from now on is another matter."""
        self._saved_code.clear()
        self._saved_sets.clear()
        self._owed.clear()

    def _saved_names(self) -> tuple[str, ...]:
        return (*self._saved_code, *self._saved_sets)

    def _tell(self, reaction: Reaction) -> None:
        self.last = reaction
        self._changed()

    # What waits

    def waiting(self) -> Waiting:
        """What was not run after a change; nothing while anything runs."""
        run = self._workbench.run
        if run is None or self._workbench.busy:
            return Waiting()
        version = self._workbench.agent.code_version, run.number, run.stage
        if self._waiting[0] != version:
            keys = frozenset(self._stale())
            self._waiting = version, Waiting(keys, _calls_of(map(self._workbench.outcomes.results.get, keys)))
        return self._waiting[1]

    def run_waiting(self) -> None:
        """Run what waits."""
        self.run("what waited", self.waiting().keys)

    def run(self, title: str, keys: Collection[CaseKey]) -> None:
        """Run cases as often as they are run after a save."""
        self._workbench.run_cases(title, keys, self.repeated)


def in_short(names: Sequence[str]) -> str:
    """`agent.py`, `agent.py and tools.py`, `agent.py and 3 more`"""
    if len(names) > 2:
        return f"{names[0]} and {len(names) - 1} more"
    return " and ".join(names)


def in_a_line(error: ErrorInfo) -> str:
    """`agent.py:12: NameError: name 'tols' is not defined`"""
    where = error.where.partition(" ")[0]
    said = error.message.strip().splitlines()
    return ": ".join(part for part in (where, error.type, said[0] if said else "") if part)


def calls_in_words(calls: ModelCalls) -> str:
    """`no live model call`, `3 live model calls`, `at least 3 live model calls`, or that nobody knows; with
    `and 5 live judge calls` behind it where a judge was asked."""
    of_models = calls.live - calls.judged
    judges = f" and {calls.judged} live judge call{'' if calls.judged == 1 else 's'}" if calls.judged else ""
    if not calls.known and not of_models:
        return f"live model calls not known{judges}"
    if not of_models:
        return f"no live model call{judges}"
    least = "" if calls.known else "at least "
    return f"{least}{of_models} live model call{'' if of_models == 1 else 's'}{judges}"


def _calls_of(results: Iterable[CaseOutcome | None]) -> ModelCalls:
    """What the cases made when they were run last; of one that was never run, nothing is known."""
    calls = NO_CALLS
    for scored in results:
        calls += ModelCalls(known=False) if scored is None else scored.calls
    return calls


def _was_rescored(before: CaseOutcome, now: CaseOutcome | None) -> bool:
    return now is not None and now is not before and now.run == before.run


def _prints_of(path: Path, edited: Any | None) -> _Prints | None:
    """In a thread: every case of a set; None for a file that is none."""
    data = read_set_data(path).data if edited is None else edited
    cases = data.get(spelt("eval_cases", data)) if isinstance(data, dict) else None
    if not isinstance(cases, list):
        return None
    ids = ((case.get(spelt("eval_id", case)), case) for case in cases if isinstance(case, dict))
    return {eval_id: case_print(case) for eval_id, case in ids if isinstance(eval_id, str)}


def _may_be_unfinished(path: Path) -> bool:
    """In a thread: whether JSON was cut off, or is still to be written."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64))
            return not file.read().rstrip().endswith((b"}", b"]"))
    except OSError:
        return False
