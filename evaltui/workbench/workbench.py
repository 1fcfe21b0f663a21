"""The workbench: what is open and selected, what runs, what came of it, and who is told."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import SIMULATED_USER
from evaltui.core.recordings.choices import DEFAULT_MODE, RecordMode, ToolMode
from evaltui.core.trace.model_calls import ModelCalls, count_model_calls, judge_calls
from evaltui.workbench.agent_state import AgentState
from evaltui.workbench.console import Console
from evaltui.workbench.editing import Editing
from evaltui.workbench.navigation import Navigation
from evaltui.workbench.open_sets import OpenSets
from evaltui.workbench.outcomes import Outcomes
from evaltui.workbench.state import (
    CaseKey,
    CaseOutcome,
    Notice,
    Repeated,
    Run,
    Stage,
)
from evaltui.workbench.watching import Watching

if TYPE_CHECKING:
    from evaltui.core.model.events import Event
    from evaltui.core.model.outcome import CaseResult
    from evaltui.runner.parent.pool import StartedHost
    from evaltui.runner.plan import Update
    from evaltui.workbench.chat.chat import Chat
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
        self.sets = OpenSets(agent_dir, given, config, self._changed, self.say)
        self.outcomes = Outcomes(self.agent, self.sets, lambda: self.run, self._changed, self.say)
        self.navigation = Navigation(self.sets, self.outcomes, self._changed, self.say)
        self.editing = Editing(self.sets, self.outcomes, self.navigation, self._changed, self.say)
        self.record_mode = record_mode
        self.tool_mode: ToolMode | None = None
        self.run: Run | None = None
        self.console = Console()
        self.watching = Watching(self, (*given, *([config] if config else [])), self._changed)
        self.notice: Notice | None = None
        self.keys: Mapping[str, tuple[str, ...]] = {}
        self._observers: list[Observer] = []
        self._task: asyncio.Task[None] | None = None
        self._runs = 0
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
        """Show a sentence for a while; "" shows none."""
        self.notice = Notice(text) if text else None
        self._changed()

    # Files

    async def open(self) -> None:
        """Look for the eval sets, again if they were open; results of cases that still exist are kept."""
        await self.sets.read()
        self.editing.look_outside()
        self.outcomes.keep_only(set(self.sets.every_case()))
        self.navigation.select_nearest(self.navigation.selection)
        self._changed()

    async def warm_up(self) -> None:
        """Load the models in a thread, so that showing and running the first case does not wait for them."""
        await asyncio.to_thread(importlib.import_module, "evaltui.workbench.running")

    # Running

    @property
    def busy(self) -> bool:
        return self.run is not None and not self.run.over

    def refuses_to_run(self) -> str | None:
        """Why no run can be started now, as a sentence; None where one can."""
        if not self.sets.is_read:
            return "the eval sets are still being read"
        if self.run is not None and self.busy:
            return f"run {self.run.number} is not over yet: esc cancels it"
        if not any(entry.cases for entry in self.sets.entries):
            return "there is no case to run"
        return None

    def run_case(self) -> None:
        """Run the selected case; with a set selected, all of its cases."""
        key = self.navigation.selection.case
        if key is None:
            self.run_set()
        else:
            self._start(key.eval_id, {key.path: (key.eval_id,)})

    def run_repeatedly(self, repeated: Repeated) -> None:
        """Run the selected case so often; with a set selected, all of its cases."""
        path, key = self.navigation.selection.path, self.navigation.selection.case
        if key is not None:
            self._start(key.eval_id, {key.path: (key.eval_id,)}, repeated)
        elif path is not None and (entry := self.sets.entry(path)):
            self._start(entry.eval_set_id, {path: None}, repeated)

    def run_set(self) -> None:
        """Run every case of the selected set."""
        if entry := self.sets.entry(self.navigation.selection.path):
            self._start(entry.eval_set_id, {entry.path: None})

    def run_all(self) -> None:
        self._start("every set", {entry.path: None for entry in self.sets.entries if entry.cases})

    def run_failed(self) -> None:
        """Run every case whose last result is one to stop at."""
        self.run_cases("what did not pass", self.outcomes.results.attention)

    def run_cases(self, title: str, keys: Collection[CaseKey], repeated: Repeated | None = None) -> None:
        """Run these cases, as far as there are such."""
        self._start(title, self.chosen(keys), repeated)

    def run_again(self) -> None:
        """Run what was run last, as far as it still exists."""
        if self._last is not None:
            title, chosen, repeated = self._last
            paths = {entry.path for entry in self.sets.entries}
            there = {path: eval_ids for path, eval_ids in chosen.items() if path in paths}
            self._start(title, there, repeated)

    @property
    def has_run(self) -> bool:
        return self._last is not None

    def chosen(self, keys: Collection[CaseKey]) -> Chosen:
        """Those of the cases that there are, by their files and in their order."""
        found: dict[Path, list[str]] = {}
        for key in self.sets.every_case():
            if key in keys:
                found.setdefault(key.path, []).append(key.eval_id)
        return {path: tuple(eval_ids) for path, eval_ids in found.items()}

    def _start(self, title: str, chosen: Chosen, repeated: Repeated | None = None) -> None:
        if reason := self.refuses_to_run():
            self.say(reason)
            return
        self._last = title, chosen, repeated
        self.start_run(f"{title}, {repeated.runs} times" if repeated else title, chosen, repeated=repeated)
        self.say("")

    async def resume(self, path: Path) -> bool:
        """Run what an interrupted run left to do, in a run that has all of it; False where that cannot be."""
        from evaltui.workbench.resuming import read_resumption

        if reason := self.refuses_to_run():
            self.say(reason)
            return False
        try:
            resumption = await asyncio.to_thread(
                read_resumption, self.agent.dir, path, self.sets.entries, self.sets.documents
            )
        except (OSError, ValueError) as error:
            self.say(str(error))
            return False
        if reason := self.refuses_to_run():
            self.say(reason)
            return False
        self.start_run(f"what {resumption.id} left", resumption.chosen, resumes=resumption)
        self.say("")
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
        self.outcomes.leave_previous_run()
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
        listed = (key for key in self.sets.every_case() if key.path in of_file)
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
            self.outcomes.traces.run_over()
            await first.end()
            self.agent.keep_host_warm()
            # What was expected may have been changed while it ran.
            self.outcomes.rescore({key.path for key in run.done})
            self.outcomes.runs_changed()
            if len(run.done) >= _MANY:
                from evaltui.files.memory import give_back

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
                    self.outcomes.traces.keep_stretch(prepared.keys[logged.id], run.number, run.log, logged)

    def _prepare(self, run: Run, chosen: Chosen) -> list[Prepared]:
        """In a thread: imports the models and reads the sets."""
        from evaltui.workbench.running import Chosen, prepare

        given = [Chosen(path, eval_ids) for path, eval_ids in chosen.items()]
        return prepare(self.agent.dir, given, self.sets.documents, run, self.record_mode, self.tool_mode)

    def _list_is_stale(self, keys: frozenset[CaseKey], chosen: Chosen) -> bool:
        """Whether the files have other cases than the list shows."""
        known = set(self.sets.every_case())
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
                self.outcomes.traces.started(key, run.number, repeat, run.log_size)
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
                self.outcomes.traces.done(key, result.id, result.eval_set_id, run.log, run.log_size)
                run.done.add(key)
                run.told = time.time()
                run.counts[result.status] += 1
                stored, config = prepared.cases[key]
                policy = prepared.plan.pass_if
                scored = CaseOutcome(
                    _light(result), run.number, stored, config, calls, run.code, pass_if=policy
                )
                self.outcomes.put(key, scored)
        self._changed()

    def _model_calls(self, key: CaseKey) -> ModelCalls:
        """Those of a case that has just been run."""
        # A function may ask any model in its own way, and nobody knows.
        reported = self.agent.info is not None and self.agent.info["framework"] != "function"
        return count_model_calls(self.outcomes.traces.all_live_events(key), reported=reported)

    def _follow(self, run: Run, prepared: Prepared, event: Event) -> None:
        key = prepared.keys.get(CaseId(event.path, event.case))
        if event.kind == "console" and event.agent != SIMULATED_USER:
            self.console.add(run.number, event.data["source"], event.data["text"], key)
        if key is not None:
            self.outcomes.traces.happened(key, event)

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
        navigation = self.navigation
        views = navigation.trace_search, navigation.filtered.filter, self.outcomes.previous_run
        return self.busy or bool(navigation.marking) or any(views)

    def step_back(self) -> None:
        """Cancel what runs; else forget what is marked, the search of the trace, the filter, then leave the
        previous run that is shown."""
        navigation = self.navigation
        if self.busy:
            self.cancel()
        elif navigation.marking:
            navigation.clear_marks()
        elif navigation.trace_search:
            navigation.search_trace("")
        elif navigation.filtered.filter:
            navigation.set_filter("")
        else:
            self.outcomes.leave_previous_run()

    async def close(self) -> None:
        """End what runs, the agent's processes included."""
        await self.watching.stop()
        await self.chat.close()
        await self.outcomes.close()
        if self._task is not None:
            if self.busy and self.run is not None and self.run.stage is not Stage.CANCELLING:
                self.cancel()
            await asyncio.wait([self._task])
        await self.agent.close()


def _light(result: CaseResult) -> CaseResult:
    """Without the invocations: ten thousand results would take hundreds of megabytes with them."""
    return replace(result, repeats=tuple(replace(repeat, actual=()) for repeat in result.repeats))
