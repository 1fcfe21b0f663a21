"""The workbench: what is open and selected, what runs, what came of it, and who is told."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import SIMULATED_USER
from evaltui.core.model.problems import Problem, Severity
from evaltui.core.recordings.choices import DEFAULT_MODE, RecordMode, ToolMode
from evaltui.core.trace.model_calls import ModelCalls, count_model_calls, judge_calls
from evaltui.files.case_paths import case_path
from evaltui.files.workspace import SetEntry, Workspace, open_workspace
from evaltui.workbench.agent_state import AgentState
from evaltui.workbench.case_places import CasePlaces
from evaltui.workbench.console import Console
from evaltui.workbench.differences import differences_of, made_call
from evaltui.workbench.documents import Documents, OpenSet
from evaltui.workbench.editing import Editing
from evaltui.workbench.filtering import Filtered, Scores, scores_of
from evaltui.workbench.histories import CasePast, Histories
from evaltui.workbench.live_sets import LiveSets
from evaltui.workbench.rescoring import Rescoring
from evaltui.workbench.results import Results
from evaltui.workbench.state import (
    CaseKey,
    CaseOutcome,
    DifferenceAt,
    Notice,
    Repeated,
    Run,
    Selection,
    Stage,
)
from evaltui.workbench.steps import Step
from evaltui.workbench.traces import Trace, Traces
from evaltui.workbench.verdicts import NOT_RUN, RUNNING
from evaltui.workbench.watching import Watching

if TYPE_CHECKING:
    from evaltui.core.model.config import EvalConfig
    from evaltui.core.model.events import Event
    from evaltui.core.model.outcome import CaseResult
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.runner.parent.pool import StartedHost
    from evaltui.runner.plan import Update
    from evaltui.workbench.chat.chat import Chat
    from evaltui.workbench.past_runs import PastRun
    from evaltui.workbench.resuming import Resumption
    from evaltui.workbench.running import Prepared

Observer = Callable[[], None]
# What fewer cases leave behind when they have been run is not worth looking for.
_MANY = 1_000
# Of each file the cases that are meant, None for all of them.
Chosen = Mapping[Path, tuple[str, ...] | None]


class Workbench:
    """`given` are eval sets from elsewhere: files and folders, beside those that the agent has. A `config` is
    one for all sets, instead of their own.

    `record_mode` and `tool_mode` are for the runs to come; see `core.recordings.choices`. `keys` are the keys
    that the user has chosen, by action. Everything is called from the event loop's thread. Observers are
    called after every change.
    """

    def __init__(
        self,
        agent_dir: Path,
        given: Sequence[str | Path] = (),
        record_mode: RecordMode = DEFAULT_MODE,
        config: Path | None = None,
    ) -> None:
        self.agent = AgentState(agent_dir, self._changed, lambda: self.busy)
        self.config = config
        self._given = tuple(given)
        self.record_mode = record_mode
        self.tool_mode: ToolMode | None = None
        self.workspace: Workspace | None = None
        self.documents = Documents(config)
        self.results = Results()
        self._filtered = Filtered()
        self._filter_is_stale = False
        self.selection = Selection()
        self._difference: tuple[CaseKey | None, DifferenceAt | None] = (None, None)
        self.run: Run | None = None
        self.traces = Traces(self._changed)
        self.trace_search = ""
        self.shows_equal_calls = False
        self.console = Console()
        self.editing = Editing(self)
        self.watching = Watching(self, (*self._given, *([config] if config else [])), self._changed)
        self._live_sets = LiveSets(self.editing, self.documents)
        self._rescoring = Rescoring(
            lambda key: self.traces.events_of(key), self._rescored, lambda: self.agent.secrets
        )
        self.past: PastRun | None = None
        # What was seen before an earlier run was opened.
        self._latest: tuple[Results, Traces] | None = None
        self._histories = Histories(agent_dir, self._changed)
        self.notice: Notice | None = None
        self.keys: Mapping[str, tuple[str, ...]] = {}
        self._observers: list[Observer] = []
        self._task: asyncio.Task[None] | None = None
        self._reading: dict[Path, asyncio.Task[OpenSet]] = {}
        self._runs = 0
        self._pasts = 0
        self._last: tuple[str, Chosen, Repeated | None] | None = None

    @cached_property
    def chat(self) -> Chat:
        """The conversation with the agent; the first frame does not wait for it to be imported."""
        from evaltui.workbench.chat.chat import Chat

        return Chat(self, self._changed)

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
        found = await asyncio.to_thread(open_workspace, self.agent.dir, self._given)
        self.workspace = found
        self.editing.look_outside()
        keys = set(self.every_case())
        # What came of its cases is still true while a file cannot be read.
        unreadable = [entry.path for entry in self.sets if entry.format is None]
        keys |= {key for path in unreadable for key, _ in self.results.of(path)}
        for results, traces in self._every_outcome():
            results.keep_only(keys)
            traces.keep_only(keys)
        if self.selection.path is None or self.entry(self.selection.path) is None:
            self.selection = self._first()
        elif self.selection.case is not None and self.selection.case not in keys:
            self.selection = Selection(self.selection.path)
        self._filter_is_stale = True
        self._changed()

    # Edits

    def edited(self, step: Step) -> None:
        """Show what an edit has made, and score again what it concerns."""
        for results, traces in self._every_outcome():
            results.move(step.moved)
            traces.move(step.moved)
        self.editing.unapplied.follow(step.moved)
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
        self.editing.unapplied.follow()
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
        paths = set(paths)
        concerned = self.sets_of(paths)
        for path in self.results.paths():
            opened = self.documents.last(path)
            if opened is None or opened.config is None or path not in concerned:
                continue
            for key, scored in self.results.of(path):
                stored, config = opened.stored_case(key.eval_id), opened.config.config
                if stored is not None and not _scored_by(scored, stored, config):
                    self._rescoring.add(key, scored, scored.result.eval_set_id, stored, config)

    def sets_of(self, paths: Collection[Path]) -> set[Path]:
        """The sets that there are among these files, and those that configs among them score, or did."""
        sets = {entry.path for entry in self.sets}
        above = {path.parent for path in paths if path not in sets}
        is_for_all = self.config is not None and self.config in paths
        return {path for path in sets if path in paths or is_for_all or not above.isdisjoint(path.parents)}

    async def rescore(self, paths: Iterable[Path]) -> None:
        """Score what was run before of these sets, which may have been read anew, and wait for that."""
        self._rescore(paths)
        await self._rescoring.finish()

    def _rescored(self, key: CaseKey, scored: CaseOutcome) -> None:
        known = self.results.get(key)
        if known is not None and known.run == scored.run:
            self.results.put(key, replace(scored, chosen=known.chosen))
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

    @property
    def difference(self) -> DifferenceAt | None:
        """The difference that is selected in the result of the selected case, as long as it has it."""
        case, at = self._difference
        if at is None or case is None or case != self.selection.case:
            return None
        scored = self.results.get(case)
        return at if scored and at in differences_of(scored.shown) else None

    def made_call(self, at: DifferenceAt) -> int | None:
        """Which call of its turn, as they were made, a difference of the selected case is of."""
        scored = self.results.get(self.selection.case) if self.selection.case else None
        return made_call(scored.shown, at) if scored else None

    def select_difference(self, at: DifferenceAt | None) -> None:
        self._difference = self.selection.case, at
        self._changed()

    def _first(self) -> Selection:
        for entry in self.sets:
            for case in entry.cases:
                return Selection(entry.path, case.eval_id)
        return Selection(self.sets[0].path) if self.sets else Selection()

    def select_failing(self, step: int) -> None:
        """Select the next (1) or the previous (-1) case that did not pass, around the end."""
        order = {key: number for number, key in enumerate(self.every_case())}
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

    def every_case(self) -> Iterator[CaseKey]:
        """The cases of all sets, in their order."""
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

    def prepare_filter(self) -> None:
        """A filter is about to be typed."""
        self._filtered.prepare(self.sets)

    def clear_filter(self) -> None:
        self.set_filter("")

    def toggle_equal_calls(self) -> None:
        """Show calls that are as expected one by one in results, or many as one line."""
        self.shows_equal_calls = not self.shows_equal_calls
        self._changed()

    def search_trace(self, text: str) -> None:
        """Show only what of traces has this in it; "" shows all."""
        self.trace_search = text
        self._changed()

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

    def is_stale(self, key: CaseKey) -> bool:
        """Whether the agent, the case or the config has been changed since the case's last result."""
        return bool(self.changed_since(key))

    def changed_since(self, key: CaseKey) -> tuple[str, ...]:
        """What has been changed since the case's last result: `the agent`, `the case`, `the config`."""
        scored = self.results.get(key)
        if scored is None:
            return ()
        return (("the agent",) if scored.code != self.agent.code_version else ()) + scored.outdated

    def _every_outcome(self) -> Iterator[tuple[Results, Traces]]:
        """What is shown, and what is kept for when an earlier run is no longer shown."""
        yield self.results, self.traces
        if self._latest is not None:
            yield self._latest

    def history(self, key: CaseKey) -> CasePast | None:
        """What earlier runs say of a case; None while they are being read, and observers are told then."""
        entry = self.entry(key.path)
        return self._histories.get(self.case_id(key), entry.eval_set_id) if entry else None

    def runs_changed(self) -> None:
        """There are other runs than before, or they are called otherwise."""
        self._histories.outdate()
        self._changed()

    # Earlier runs

    async def restore(self) -> None:
        """Show the last result that earlier sittings have of each case, where this one has none yet."""
        from evaltui.workbench.last_outcomes import MOST_RUNS, last_outcomes

        # Numbers below zero are those of no run of this sitting.
        number = -self._pasts - 1
        self._pasts += MOST_RUNS
        found = last_outcomes(self.agent.dir, self.sets, self.documents, self.agent.code_version, number)
        while (outcomes := await asyncio.to_thread(next, found, None)) is not None:
            results, traces = self._latest or (self.results, self.traces)
            running = self.run.running if self.run is not None else set()
            for one in outcomes:
                if results.get(one.key) is None and one.key not in running:
                    results.put(one.key, one.scored)
                    traces.keep_stretch(one.key, one.scored.run, one.log, one.logged)
            self._filter_is_stale = True
            self._changed()

    async def open_run(self, path: Path, title: str) -> bool:
        """Show what came of an earlier run, instead of the last results; False where it cannot be read."""
        from evaltui.workbench.past_runs import Opening, open_past_run

        self._pasts += 1
        # Numbers below zero are those of no run of this sitting.
        opening = Opening(
            self.agent.dir,
            path,
            title,
            -self._pasts,
            self.sets,
            self.documents,
            self._changed,
            self.agent.code_version,
        )
        try:
            past = await asyncio.to_thread(open_past_run, opening)
        except (OSError, ValueError) as error:
            self.say(str(error))
            return False
        if reason := self.refuses_to_open():
            self.say(reason)
            return False
        self._latest = self._latest or (self.results, self.traces)
        self.past, self.results, self.traces = past, past.results, past.traces
        self._filter_is_stale = True
        self.notice = None
        if past.unclear:
            many = "1 of its cases" if past.unclear == 1 else f"{past.unclear} of its cases"
            self.say(f"{many} may be of several files with the same set id, so none is shown")
        elif past.gone:
            self.say(f"{past.gone} of its cases are not in the eval sets any more")
        self._changed()
        return True

    def case_id(self, key: CaseKey) -> CaseId:
        return CaseId(case_path(self.agent.dir, key.path), key.eval_id)

    def case_of(self, case: CaseId, eval_set_id: str) -> Selection | None:
        """Where a case of a run is now; None where it is not any more."""
        by_label = case.path == eval_set_id
        key = CasePlaces(self.agent.dir, self.sets).find(case, eval_set_id, by_label=by_label)
        return Selection(*key) if key else None

    def refuses_to_open(self) -> str | None:
        """Why no earlier run can be shown now, as a sentence."""
        return "a run is going on: its results are shown as they come, esc cancels it" if self.busy else None

    def leave_past(self) -> None:
        """Show the last results again."""
        if self._latest is None:
            return
        self.results, self.traces = self._latest
        self.past = self._latest = None
        self._filter_is_stale = True
        # What is expected may have been changed meanwhile.
        self._rescore(self.results.paths())
        self._changed()

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

    def run_repeatedly(self, repeated: Repeated) -> None:
        """Run the selected case so often; with a set selected, all of its cases."""
        path, key = self.selection.path, self.selection.case
        if key is not None:
            self._start(key.eval_id, {key.path: (key.eval_id,)}, repeated)
        elif path is not None and (entry := self.entry(path)):
            self._start(entry.eval_set_id, {path: None}, repeated)

    def run_set(self) -> None:
        """Run every case of the selected set."""
        if self.selection.path is not None and (entry := self.entry(self.selection.path)):
            self._start(entry.eval_set_id, {entry.path: None})

    def run_all(self) -> None:
        sets: dict[Path, tuple[str, ...] | None] = {entry.path: None for entry in self.sets if entry.cases}
        self._start("every set", sets)

    def run_failed(self) -> None:
        """Run every case whose last result is one to stop at."""
        self.run_cases("what did not pass", self.results.attention)

    def run_cases(self, title: str, keys: Collection[CaseKey], repeated: Repeated | None = None) -> None:
        """Run these cases, as far as there are such."""
        self._start(title, self.chosen(keys), repeated)

    def run_again(self) -> None:
        """Run what was run last, as far as it still exists."""
        if self._last is not None:
            title, chosen, repeated = self._last
            paths = {entry.path for entry in self.sets}
            there = {path: eval_ids for path, eval_ids in chosen.items() if path in paths}
            self._start(title, there, repeated)

    @property
    def has_run(self) -> bool:
        return self._last is not None

    def chosen(self, keys: Collection[CaseKey]) -> Chosen:
        """Those of the cases that there are, by their files and in their order."""
        found: dict[Path, list[str]] = {}
        for key in self.every_case():
            if key in keys:
                found.setdefault(key.path, []).append(key.eval_id)
        return {path: tuple(eval_ids) for path, eval_ids in found.items()}

    def _start(self, title: str, chosen: Chosen, repeated: Repeated | None = None) -> None:
        if reason := self.refuses_to_run():
            self.say(reason)
            return
        self._last = title, chosen, repeated
        self.notice = None
        self.start_run(f"{title}, {repeated.runs} times" if repeated else title, chosen, repeated=repeated)

    async def resume(self, path: Path) -> bool:
        """Run what an interrupted run left to do, in a run that has all of it; False where that cannot be."""
        from evaltui.workbench.resuming import read_resumption

        if reason := self.refuses_to_run():
            self.say(reason)
            return False
        try:
            resumption = await asyncio.to_thread(
                read_resumption, self.agent.dir, path, self.sets, self.documents
            )
        except (OSError, ValueError) as error:
            self.say(str(error))
            return False
        if reason := self.refuses_to_run():
            self.say(reason)
            return False
        self.notice = None
        self.start_run(f"what {resumption.id} left", resumption.chosen, resumes=resumption)
        return True

    def start_run(
        self,
        title: str,
        chosen: Chosen,
        first: StartedHost | None = None,
        repeated: Repeated | None = None,
        resumes: Resumption | None = None,
    ) -> Run:
        """Run cases while nothing else runs; `first` is a host that has the agent already."""
        self.leave_past()
        self._runs += 1
        self.run = Run(
            self._runs,
            title,
            self.agent.code_version,
            repeated=repeated,
            resumes=resumes,
            selected=self._keys_of(chosen),
        )
        self._task = asyncio.create_task(self._work(self.run, chosen, first or self.agent.start_host()))
        self._changed()
        return self.run

    def _keys_of(self, chosen: Chosen) -> frozenset[CaseKey]:
        """The chosen cases that the list shows."""
        of_file = {path: None if some is None else frozenset(some) for path, some in chosen.items()}
        listed = (key for key in self.every_case() if key.path in of_file)
        return frozenset(key for key in listed if (some := of_file[key.path]) is None or key.eval_id in some)

    async def run_over(self) -> None:
        """Wait until nothing runs."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self, run: Run, chosen: Chosen, first: StartedHost) -> None:
        try:
            await self._run_chosen(run, chosen, first)
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
            await first.end()
            self.agent.keep_host_warm()
            self._histories.outdate()
            # What was expected may have been changed while it ran.
            self._rescore({key.path for key in run.done})
            self._changed()
            if len(run.done) >= _MANY:
                from evaltui.workbench.memory import give_back

                await asyncio.to_thread(give_back)

    async def _run_chosen(self, run: Run, chosen: Chosen, first: StartedHost) -> None:
        plans = await asyncio.to_thread(self._prepare, run, chosen)
        run.selected = frozenset(key for prepared in plans for key in prepared.cases)
        if not run.selected and not run.remarks:
            run.remarks.append("the selected cases are no longer in their files")
        if self._list_is_stale(run.selected, chosen):
            await self.open()
        from evaltui.runs.log_reader import read_run
        from evaltui.workbench.running import perform

        for number, prepared in enumerate(plans):
            run.stage = Stage.STARTING
            self._changed()
            host = first if number == 0 else self.agent.start_host()
            await perform(prepared, run, partial(self._take, run, prepared), host)
            if run.resumes and run.log:
                # What was carried over was never heard of while it ran.
                for logged in (await asyncio.to_thread(read_run, run.log)).results:
                    self.traces.keep_stretch(prepared.keys[logged.id], run.number, run.log, logged)

    def _prepare(self, run: Run, chosen: Chosen) -> list[Prepared]:
        """In a thread: imports the models and reads the sets."""
        from evaltui.workbench.running import Chosen, prepare

        given = [Chosen(path, eval_ids) for path, eval_ids in chosen.items()]
        return prepare(self.agent.dir, given, self.documents, run, self.record_mode, self.tool_mode)

    def _list_is_stale(self, keys: frozenset[CaseKey], chosen: Chosen) -> bool:
        """Whether the files have other cases than the list shows."""
        known = set(self.every_case())
        whole = {path for path, eval_ids in chosen.items() if eval_ids is None}
        listed = {key for key in known if key.path in whole}
        return not keys <= known or not listed <= keys

    def _take(self, run: Run, prepared: Prepared, update: Update) -> None:
        from evaltui.runner import plan

        match update:
            case plan.AgentLoaded(info):
                self.agent.imported(info)
            case plan.AgentBroken(error):
                self.agent.failed(error)
            case plan.CaseStarted(case=case, repeat=repeat):
                key = prepared.keys[case]
                run.running.add(key)
                self.traces.started(key, run.number, repeat, run.log_size)
                run.working_since = run.working_since or time.monotonic()
                if run.stage is Stage.STARTING:
                    run.stage = Stage.RUNNING
            case plan.Noted(text):
                run.remarks.append(text)
            case plan.MetricsImported(files):
                self.watching.follow_metrics(files)
            case plan.RepeatDone(result=repeat):
                run.calls.take_result(repeat)
            case plan.Happened(event):
                run.calls.take(event)
                self._follow(run, prepared, event)
            case plan.CaseDone(result):
                key = prepared.keys[result.id]
                run.running.discard(key)
                calls = sum(map(judge_calls, result.repeats), self._model_calls(key))
                self.traces.done(key, result.id, result.eval_set_id, run.log, run.log_size)
                run.done.add(key)
                run.told = time.time()
                run.counts[result.status] += 1
                stored, config = prepared.cases[key]
                policy = prepared.plan.pass_if
                scored = CaseOutcome(
                    _light(result), run.number, stored, config, calls, run.code, pass_if=policy
                )
                self.results.put(key, scored)
                self._filter_is_stale = True
        self._changed()

    def _model_calls(self, key: CaseKey) -> ModelCalls:
        """Those of a case that has just been run."""
        # A function may ask any model in its own way, and nobody knows.
        reported = self.agent.info is not None and self.agent.info["framework"] != "function"
        return count_model_calls(self.traces.all_live_events(key), reported=reported)

    def _follow(self, run: Run, prepared: Prepared, event: Event) -> None:
        key = prepared.keys.get(CaseId(event.path, event.case))
        if event.kind == "console" and event.agent != SIMULATED_USER:
            self.console.add(run.number, event.data["source"], event.data["text"], key)
        if key is not None:
            self.traces.happened(key, event)

    def trace(self, key: CaseKey) -> Trace | None:
        """What happened in a case in its last run, in the repeat that is shown; live while it runs.

        None where the case has not been run, or while its log is being read: observers are told then.
        """
        if self.status(key) == RUNNING:
            return self.traces.get(key, 0)
        scored = self.results.get(key)
        return self.traces.get(key, scored.repeat) if scored else None

    def step_repeat(self, step: int) -> None:
        """Show the next (1) or the previous (-1) run of a case that was run several times."""
        key = self.selection.case
        scored = self.results.get(key) if key else None
        if key is not None and scored is not None and len(scored.result.repeats) > 1:
            self.show_repeat((scored.repeat + step) % len(scored.result.repeats))

    def show_repeat(self, repeat: int) -> None:
        """Show one of the runs of the selected case, counted from 0."""
        key = self.selection.case
        scored = self.results.get(key) if key else None
        if key is not None and scored is not None:
            self.results.put(key, replace(scored, chosen=repeat))
            self._changed()

    def call_op(self, key: CaseKey, run: int, repeat: int, turn: int, call: int) -> str:
        """How a call that the agent made differs from what is expected, "" where nothing tells.

        `turn` and `call` count from 0.
        """
        scored = self.results.get(key)
        if scored is None or scored.run != run or not repeat < len(scored.result.repeats):
            return ""
        turns = scored.result.repeats[repeat].turns
        made = [row.op for row in turns[turn].calls if row.actual] if turn < len(turns) else []
        return made[call] if call < len(made) else ""

    def cancel(self) -> None:
        """End the run: its cases in flight stay as they were before, what is finished stays."""
        if self.run is None or self._task is None or not self.busy:
            return
        if self.run.stage is Stage.CANCELLING:
            self.say("already cancelling: an agent that does not answer is ended within seconds")
            return
        self.run.stage = Stage.CANCELLING
        # Not before its first step: cancelled by then it would never begin, and so never end in order.
        asyncio.get_running_loop().call_soon(self._task.cancel)
        self._changed()

    @property
    def can_step_back(self) -> bool:
        views = self.trace_search, self.filtered.filter, self.past
        return self.busy or bool(self.editing.marking) or any(views)

    def step_back(self) -> None:
        """Cancel what runs; else forget what is marked, the search of the trace, the filter, then leave the
        earlier run that is shown."""
        if self.busy:
            self.cancel()
        elif self.editing.marking:
            self.editing.marking.clear()
            self._changed()
        elif self.trace_search:
            self.search_trace("")
        elif self.filtered.filter:
            self.clear_filter()
        else:
            self.leave_past()

    async def close(self) -> None:
        """End what runs, the agent's processes included."""
        await self.watching.stop()
        await self.chat.close()
        await self._histories.close()
        if self._task is not None:
            if self.busy and self.run is not None and self.run.stage is not Stage.CANCELLING:
                self.cancel()
            await asyncio.wait([self._task])
        await self.agent.close()


def _scored_by(scored: CaseOutcome, stored: StoredCase, config: EvalConfig) -> bool:
    """Whether this is what a result was scored by, although it may have been read again since then."""
    same_case = stored is scored.stored or stored.says_the_same(scored.stored)
    return same_case and (config is scored.config or config == scored.config)


def _light(result: CaseResult) -> CaseResult:
    """Without the invocations: ten thousand results would take hundreds of megabytes with them."""
    return replace(result, repeats=tuple(replace(repeat, actual=()) for repeat in result.repeats))
