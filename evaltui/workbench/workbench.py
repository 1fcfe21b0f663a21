"""The workbench: what is open and selected, what runs, what came of it, and who is told."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.problems import Problem, Severity
from evaltui.files.folders import CONFIG_NAME
from evaltui.files.workspace import SetEntry, Workspace, open_workspace
from evaltui.workbench.console import Console
from evaltui.workbench.documents import Documents, OpenSet
from evaltui.workbench.drafts import Step
from evaltui.workbench.editing import Editing
from evaltui.workbench.filtering import Filtered, Scores, scores_of
from evaltui.workbench.live_sets import LiveSets
from evaltui.workbench.rescoring import Rescoring
from evaltui.workbench.results import Results
from evaltui.workbench.state import CaseKey, Notice, Run, Scored, Selection, Stage
from evaltui.workbench.traces import Trace, Traces
from evaltui.workbench.verdicts import NOT_RUN, RUNNING, deciding_repeat

if TYPE_CHECKING:
    from evaltui.core.events import Event
    from evaltui.core.outcome import CaseResult, ErrorInfo
    from evaltui.runner.plan import Update
    from evaltui.workbench.running import Prepared

Observer = Callable[[], None]


class Workbench:
    """`given` are eval sets from elsewhere: files and folders, beside those that the agent has.

    `keys` are the keys that the user has chosen, by action. Everything is called from the event loop's
    thread. Observers are called after every change.
    """

    def __init__(self, agent_dir: Path, given: Sequence[str | Path] = ()) -> None:
        self.agent_dir = agent_dir
        self._given = tuple(given)
        self.workspace: Workspace | None = None
        self.documents = Documents()
        self.results = Results()
        self._filtered = Filtered()
        self._filter_is_stale = False
        self.selection = Selection()
        self.run: Run | None = None
        self.agent: dict[str, Any] | None = None
        self.agent_error: ErrorInfo | None = None
        self.traces = Traces(self._changed)
        self.console = Console()
        self.editing = Editing(self)
        self._live_sets = LiveSets(self.editing, self.documents)
        self._rescoring = Rescoring(self.traces.events_of, self._rescored)
        self.notice: Notice | None = None
        self.keys: Mapping[str, tuple[str, ...]] = {}
        self._observers: list[Observer] = []
        self._task: asyncio.Task[None] | None = None
        self._reading: dict[Path, asyncio.Task[OpenSet]] = {}
        self._learning: asyncio.Task[None] | None = None
        self._runs = 0
        self._last: tuple[str, dict[Path, tuple[str, ...] | None]] | None = None

    # Observers

    def subscribe(self, observer: Observer) -> None:
        self._observers.append(observer)

    def _changed(self) -> None:
        for observer in self._observers:
            observer()

    def say(self, text: str) -> None:
        """Show a sentence for a while."""
        self.notice = Notice(text)
        self._changed()

    # Files

    async def open(self) -> None:
        """Look for the eval sets, again if they were open; results of cases that still exist are kept."""
        found = await asyncio.to_thread(open_workspace, self.agent_dir, self._given)
        self.workspace = found
        self.editing.look_outside()
        keys = {CaseKey(entry.path, case.eval_id) for entry in self.sets for case in entry.cases}
        self.results.keep_only(keys)
        self.traces.keep_only(keys)
        if self.selection.path is None or self.entry(self.selection.path) is None:
            self.selection = self._first()
        elif self.selection.case is not None and self.selection.case not in keys:
            self.selection = Selection(self.selection.path)
        self._filter_is_stale = True
        self._changed()

    # Edits

    def edited(self, step: Step) -> None:
        """Show what an edit has made, and score again what it concerns."""
        self.results.move(step.moved)
        self.traces.move(step.moved)
        self._follow_files(step.splices)
        self.selection = self._nearest(step.after)
        self._changed()

    def added(self, path: Path) -> None:
        """Show a new set, and select it."""
        self._follow_files([path])
        self.select(Selection(path))

    def files_changed(self, paths: Iterable[Path]) -> None:
        """Show files as they are being edited, wherever their text comes from."""
        self._follow_files(paths)
        self.selection = self._nearest(self.selection)
        self._changed()

    def _follow_files(self, paths: Iterable[Path]) -> None:
        if self.workspace is None:
            return
        self.workspace = self._live_sets.follow(self.workspace, paths)
        self._filter_is_stale = True
        self._rescore(paths)

    def _nearest(self, wanted: Selection) -> Selection:
        """What is wanted, or what is left of it."""
        entry = self.entry(wanted.path) if wanted.path else None
        if entry is None:
            return self._first()
        known = wanted.eval_id is None or any(case.eval_id == wanted.eval_id for case in entry.cases)
        return wanted if known else Selection(wanted.path)

    def _rescore(self, paths: Iterable[Path]) -> None:
        """Score what was run before against what is expected now; the agent is not asked."""
        folders = {path.parent for path in paths if path.name == CONFIG_NAME}
        for path in self.results.paths():
            opened = self.documents.last(path)
            if opened is None or opened.config is None or not (path in paths or path.parent in folders):
                continue
            for key, scored in self.results.of(path):
                stored, config = opened.stored_case(key.eval_id), opened.config.config
                if stored is not None and (stored is not scored.stored or config is not scored.config):
                    self._rescoring.add(key, scored, scored.result.eval_set_id, stored, config)

    def _rescored(self, key: CaseKey, scored: Scored) -> None:
        known = self.results.get(key)
        if known is not None and known.run == scored.run:
            self.results.put(key, scored)
            self._changed()

    def case_data(self, key: CaseKey) -> tuple[Any, int] | None:
        """The JSON of a set that has the case, and which of its cases it is; None while it is being read.

        A set that is being edited is there as a whole, of any other only this case.
        """
        if (draft := self.editing.draft(key.path)) is not None:
            return draft.document.value, self.editing.number(key)
        opened = self.opened(key.path)
        stored = opened.stored_case(key.eval_id) if opened else None
        if opened is None or stored is None:
            return None
        entry = self.entry(key.path)
        return {"eval_set_id": entry.eval_set_id if entry else "", "eval_cases": [stored.data()]}, 0

    async def warm_up(self) -> None:
        """Load the models in a thread, so that showing and running the first case does not wait for them."""
        await asyncio.to_thread(importlib.import_module, "evaltui.workbench.running")

    @property
    def sets(self) -> tuple[SetEntry, ...]:
        return self.workspace.sets if self.workspace else ()

    def entry(self, path: Path) -> SetEntry | None:
        return next((entry for entry in self.sets if entry.path == path), None)

    def opened(self, path: Path) -> OpenSet | None:
        """A set as models; None while it is being read, and observers are told when it has been."""
        if known := self.documents.known(path):
            return known
        if path not in self._reading:
            task = asyncio.create_task(asyncio.to_thread(self.documents.open, path))
            self._reading[path] = task
            task.add_done_callback(lambda _: self._was_read(path))
        return None

    def errors(self, entry: SetEntry) -> list[Problem]:
        """Why a set cannot be run, as far as is known: without its models not everything is."""
        opened = self.documents.last(entry.path)
        if opened is not None:
            return opened.errors
        return [problem for problem in entry.problems if problem.severity is Severity.ERROR]

    def _was_read(self, path: Path) -> None:
        del self._reading[path]
        self._changed()

    # Selection

    def select(self, selection: Selection) -> None:
        if selection != self.selection:
            self.selection = selection
            self._changed()

    def _first(self) -> Selection:
        for entry in self.sets:
            for case in entry.cases:
                return Selection(entry.path, case.eval_id)
        return Selection(self.sets[0].path) if self.sets else Selection()

    def select_failing(self, step: int) -> None:
        """Select the next (1) or the previous (-1) case that did not pass, around the end."""
        order = {key: number for number, key in enumerate(self._keys())}
        within = self._kept().keys() if self.filtered.filter else order.keys()
        failing = sorted(self.results.attention & within, key=order.__getitem__)
        if not failing:
            self.say("the filter hides every case that did not pass: esc clears it")
            return
        current = self.selection.case
        here = order.get(current, -1) if current else self._before_selected_set(order)
        ahead = [key for key in failing if (order[key] - here) * step > 0]
        if ahead:
            chosen = ahead[0] if step > 0 else ahead[-1]
        else:
            chosen = failing[0] if step > 0 else failing[-1]
            self.say("from the top again" if step > 0 else "from the bottom again")
        self.select(Selection(*chosen))

    def _before_selected_set(self, order: dict[CaseKey, int]) -> float:
        """A place just before the first case of the selected set."""
        numbers = [number for key, number in order.items() if key.path == self.selection.path]
        return min(numbers) - 0.5 if numbers else -0.5

    def _keys(self) -> Iterator[CaseKey]:
        for entry in self.sets:
            for case in entry.cases:
                yield CaseKey(entry.path, case.eval_id)

    # Filter

    @property
    def filtered(self) -> Filtered:
        """The cases that the filter keeps; the selected one stays when its outcome changes."""
        if self._filter_is_stale and self._filtered.filter:
            self._filter_is_stale = False
            self._filtered.update(
                self._filtered.text, self.sets, self._last_status, self.selection.case, self._last_scores
            )
        return self._filtered

    def set_filter(self, text: str) -> None:
        """Show only some of the cases; "" shows all."""
        self._filter_is_stale = False
        self._filtered.update(text, self.sets, self._last_status, scores=self._last_scores)
        kept = self._kept()
        if self._filtered.filter and kept and self.selection.case not in kept:
            self.selection = Selection(*next(iter(kept)))
        self._changed()

    def clear_filter(self) -> None:
        self.set_filter("")

    def _kept(self) -> dict[CaseKey, None]:
        """The cases that the filter keeps, in their order."""
        return {
            CaseKey(entry.path, entry.cases[number].eval_id): None
            for entry in self.sets
            for number in self.filtered.kept.get(entry.path, ())
        }

    def _last_status(self, key: CaseKey) -> str:
        scored = self.results.get(key)
        return scored.result.status if scored else NOT_RUN

    def _last_scores(self, key: CaseKey) -> Scores | None:
        scored = self.results.get(key)
        return scores_of(scored.result) if scored else None

    # Outcomes

    def status(self, key: CaseKey) -> str:
        """The status of a case's last result, or that it is running, or not run."""
        if self.run is not None and not self.run.over and key in self.run.running:
            return RUNNING
        return self._last_status(key)

    def is_waiting(self, key: CaseKey) -> bool:
        return self.run is not None and self.run.is_waiting(key)

    # Running

    @property
    def busy(self) -> bool:
        return self.run is not None and not self.run.over

    def refuses_to_run(self) -> str | None:
        """Why no run can be started now, as a sentence; None where one can."""
        if self.workspace is None:
            return "the eval sets are still being read"
        if self.run is not None and self.busy:
            return f"run {self.run.number} is not over yet: esc cancels it"
        if not any(entry.cases for entry in self.sets):
            return "there is no case to run"
        return None

    def run_case(self) -> None:
        """Run the selected case; with a set selected, all of its cases."""
        key = self.selection.case
        if key is None:
            self.run_set()
        else:
            self._start(key.eval_id, {key.path: (key.eval_id,)})

    def run_set(self) -> None:
        """Run every case of the selected set."""
        if self.selection.path is not None and (entry := self.entry(self.selection.path)):
            self._start(entry.eval_set_id, {entry.path: None})

    def run_all(self) -> None:
        sets: dict[Path, tuple[str, ...] | None] = {entry.path: None for entry in self.sets if entry.cases}
        self._start("every set", sets)

    def run_failed(self) -> None:
        """Run every case whose last result is one to stop at."""
        chosen: dict[Path, list[str]] = {}
        for key in self._keys():
            if key in self.results.attention:
                chosen.setdefault(key.path, []).append(key.eval_id)
        self._start("what did not pass", {path: tuple(eval_ids) for path, eval_ids in chosen.items()})

    def run_again(self) -> None:
        """Run what was run last, as far as it still exists."""
        if self._last is not None:
            title, chosen = self._last
            paths = {entry.path for entry in self.sets}
            self._start(title, {path: eval_ids for path, eval_ids in chosen.items() if path in paths})

    @property
    def has_run(self) -> bool:
        return self._last is not None

    def _start(self, title: str, chosen: dict[Path, tuple[str, ...] | None]) -> None:
        if reason := self.refuses_to_run():
            self.say(reason)
            return
        self._last = title, chosen
        self._runs += 1
        self.run = Run(self._runs, title)
        self.notice = None
        self._task = asyncio.create_task(self._work(self.run, chosen))
        self._changed()

    async def _work(self, run: Run, chosen: dict[Path, tuple[str, ...] | None]) -> None:
        try:
            await self._run_chosen(run, chosen)
            run.stage = Stage.FINISHED if run.selected else Stage.FAILED
        except asyncio.CancelledError:
            # The task is ours alone: a cancelled run is an outcome, nobody above waits for the exception.
            run.stage = Stage.CANCELLED
        except Exception as error:  # whatever it is, the workbench goes on and says so
            run.stage = Stage.FAILED
            run.remarks.append(f"{type(error).__name__}: {error}")
        finally:
            run.ended = time.monotonic()
            run.running.clear()
            self.traces.run_over()
            self._changed()

    async def _run_chosen(self, run: Run, chosen: dict[Path, tuple[str, ...] | None]) -> None:
        plans = await asyncio.to_thread(self._prepare, run, chosen)
        run.selected = frozenset(key for prepared in plans for key in prepared.cases)
        if not run.selected and not run.remarks:
            run.remarks.append("the selected cases are no longer in their files")
        if self._is_stale(run.selected, chosen):
            await self.open()
        from evaltui.workbench.running import perform

        for prepared in plans:
            run.stage = Stage.STARTING
            self._changed()
            await perform(prepared, run, partial(self._take, run, prepared))

    def _prepare(self, run: Run, chosen: dict[Path, tuple[str, ...] | None]) -> list[Prepared]:
        """In a thread: imports the models and reads the sets."""
        from evaltui.workbench.running import Chosen, prepare

        given = [Chosen(path, eval_ids) for path, eval_ids in chosen.items()]
        return prepare(self.agent_dir, given, self.documents, run)

    def _is_stale(self, keys: frozenset[CaseKey], chosen: dict[Path, tuple[str, ...] | None]) -> bool:
        """Whether the files have other cases than the list shows."""
        known = set(self._keys())
        whole = {path for path, eval_ids in chosen.items() if eval_ids is None}
        listed = {key for key in known if key.path in whole}
        return not keys <= known or not listed <= keys

    def _take(self, run: Run, prepared: Prepared, update: Update) -> None:
        from evaltui.runner import plan

        match update:
            case plan.AgentLoaded(info):
                self.agent = info
                self.agent_error = None
            case plan.AgentBroken(error):
                self.agent_error = error
            case plan.CaseStarted(eval_set_id, eval_id, repeat):
                key = prepared.keys[eval_set_id, eval_id]
                run.running.add(key)
                self.traces.started(key, run.number, repeat, run.log_size)
                run.working_since = run.working_since or time.monotonic()
                if run.stage is Stage.STARTING:
                    run.stage = Stage.RUNNING
            case plan.Happened(event):
                self._follow(run, prepared, event)
            case plan.CaseDone(result):
                key = prepared.keys[result.eval_set_id, result.eval_id]
                run.running.discard(key)
                self.traces.done(key, result.eval_set_id, run.log, run.log_size)
                run.done.add(key)
                run.counts[result.status] += 1
                stored, config = prepared.cases[key]
                self.results.put(key, Scored(_light(result), run.number, stored, config))
                self._filter_is_stale = True
        self._changed()

    def _follow(self, run: Run, prepared: Prepared, event: Event) -> None:
        key = prepared.keys.get((event.set, event.case))
        if event.kind == "console":
            self.console.add(run.number, event.data["source"], event.data["text"], key)
        if key is not None:
            self.traces.happened(key, event)

    def learn_agent(self) -> None:
        """Ask the agent what tools it has, in the background, unless that is known or has been asked."""
        if self.agent is None and self._learning is None and not self.busy:
            self._learning = asyncio.create_task(self._learn_agent())

    async def _learn_agent(self) -> None:
        from evaltui.runner.pool import HostSettings, start_host
        from evaltui.runner.supervisor import IMPORT_TIMEOUT, AgentBrokenError

        settings = HostSettings(self.agent_dir, None, 0.0, IMPORT_TIMEOUT, time.monotonic())
        started = start_host(settings)
        try:
            self.agent = await started.loading
            self.agent_error = None
        except AgentBrokenError as broken:
            self.agent_error = broken.error
        finally:
            await started.host.close()
        self._changed()

    def trace(self, key: CaseKey) -> Trace | None:
        """What happened in a case in its last run, of its repeats the deciding one; live while it runs.

        None where the case has not been run, or while its log is being read: observers are told then.
        """
        if self.status(key) == RUNNING:
            return self.traces.get(key, 0)
        scored = self.results.get(key)
        return self.traces.get(key, deciding_repeat(scored.result)) if scored else None

    def cancel(self) -> None:
        """End the run: its cases in flight stay as they were before, what is finished stays."""
        if self.run is None or self._task is None or not self.busy:
            return
        if self.run.stage is Stage.CANCELLING:
            self.say("already cancelling: an agent that does not answer is ended within seconds")
            return
        self.run.stage = Stage.CANCELLING
        self._task.cancel()
        self._changed()

    def step_back(self) -> None:
        """Cancel what runs; where nothing does, forget what is marked, then show every case again."""
        if self.busy:
            self.cancel()
        elif self.editing.marking:
            self.editing.marking.clear()
            self._changed()
        else:
            self.clear_filter()

    async def close(self) -> None:
        """End what runs, the agent's processes included."""
        if self._learning is not None:
            self._learning.cancel()
            await asyncio.wait([self._learning])
        if self._task is not None:
            if self.busy and self.run is not None and self.run.stage is not Stage.CANCELLING:
                self.cancel()
            await asyncio.wait([self._task])


def _light(result: CaseResult) -> CaseResult:
    """Without the invocations: ten thousand results would take hundreds of megabytes with them."""
    return replace(result, repeats=tuple(replace(repeat, actual=()) for repeat in result.repeats))
