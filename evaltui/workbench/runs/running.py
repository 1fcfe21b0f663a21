"""Following a run: its cases, and its updates as state of the workbench.

Importing this loads the models: do it in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from evaltui.agents.protocol import FilesOpened
from evaltui.core.compare.run_summary import summarize
from evaltui.core.metrics.preflight import problems_text
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig, OwnPrice, PassIf
from evaltui.core.model.events import SIMULATED_USER, Event
from evaltui.core.model.modes import Modes, modes_of
from evaltui.core.model.outcome import CaseResult
from evaltui.core.model.problems import EvalSetError
from evaltui.core.model.stored_cases import StoredCase, StoredCases
from evaltui.core.trace.model_calls import ModelCalls, count_model_calls, judge_calls
from evaltui.project.agent_address import AgentAddress, as_variant
from evaltui.project.variants import hidden_in
from evaltui.runner.plan import (
    AgentBroken,
    AgentLoaded,
    AtWork,
    CaseDone,
    CaseStarted,
    Happened,
    Judging,
    Noted,
    RepeatDone,
    RunStopped,
    Scaled,
    SetPlan,
)
from evaltui.runner.starting import HostSettings, StartedHost, start_host
from evaltui.runs import execution
from evaltui.runs.execution import ExecutedRun, LogGrew, RunSelected, RunService, RunUpdate
from evaltui.runs.resuming import ResumeError, Resumption, read_resumption, resumable_header
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_kind import RunKind
from evaltui.runs.selection import RunRequest, SelectedRun, resume_request
from evaltui.workbench.agent.agent_state import AgentState, Console
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.messages import Messages, RunProgressed
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.result.stored_results import ResultInMemory, RunResults, StoredResult
from evaltui.workbench.runs.repeats import confidence_of
from evaltui.workbench.state import CaseOutcome, Run, Stage

# Results that are read before keys are looked at again.
_BATCH_SIZE = 1000


class EditedSets:
    """The sets of a run with their unsaved edits."""

    initial_session: Path | None = None

    def __init__(self, sets: OpenSets) -> None:
        self.config = sets.config
        self._entries = sets.listed
        self._open = sets.open

    def open(self, path: Path) -> SetPlan:
        opened = self._open(path)
        if opened.eval_set is None or opened.config is None or opened.errors:
            raise EvalSetError(opened.errors)
        cases = StoredCases(opened.cases)
        set_id, problems = opened.eval_set.eval_set_id, opened.problems
        return SetPlan(
            opened.case_path,
            set_id,
            cases,
            opened.config,
            path,
            whole=True,
            fingerprint=opened.fingerprint,
            problems=problems,
        )

    def find(self, case_path_in_log: str, eval_set_id: str) -> Path | None:
        for eval_set in self._entries:
            if eval_set.case_path == case_path_in_log:
                return eval_set.path
        # Logs of earlier versions may know the id only.
        by_id = [eval_set.path for eval_set in self._entries if eval_set.eval_set_id == eval_set_id]
        return by_id[0] if case_path_in_log == eval_set_id and len(by_id) == 1 else None


async def read_remaining(agent: AgentAddress, sets: OpenSets, path: Path) -> Resumption | str:
    """The rest of an interrupted run; or why it cannot be resumed, as a sentence."""
    try:
        resumption = await asyncio.to_thread(read_resumption, agent, path, EditedSets(sets))
    except ResumeError as error:
        return f"Cannot resume: {error}" if error.differs else str(error)
    except EvalSetError as error:
        return f"Cannot resume: {error.problems[0].located()}"
    except (OSError, ValueError) as error:
        return str(error)
    variant, kind = resumption.header.variant, resumption.header.kind
    if variant or kind.agent != RunKind.of(agent):
        # Its results would stand in the list as those of the agent as it is.
        what = f"variant {variant.name}" if variant else ", ".join(kind.in_words) or "the root agent"
        return f"The run is of {what}: evaltui run --resume {resumption.id}"
    return resumption


def request_of(
    run: Run,
    chosen: Mapping[Path, tuple[str, ...] | None],
    agent: AgentState,
    logs_in_use: Callable[[], Collection[Path]],
) -> RunRequest:
    """The request for a run of the chosen cases."""
    request = RunRequest(agent.address, settings=agent.settings, number=run.number, logs_in_use=logs_in_use)
    if run.resumes:
        return resume_request(request, run.resumes)
    settings = agent.settings
    if repeated := run.repeated:
        settings = replace(
            settings,
            runs=repeated.runs if repeated.confidence is None else None,
            pass_if=repeated.pass_if,
            confidence=confidence_of(repeated),
        )
    return replace(request, cases=chosen, skips_invalid=True, settings=settings)


async def run_more(
    agent: AgentState,
    sets: OpenSets,
    service: RunService | None,
    log: Path,
    repeats: Mapping[CaseId, int],
    on_done: Callable[[], None],
    use: Callable[[StartedHost], StartedHost],
) -> ExecutedRun | str:
    """Runs more repeats of cases with the variant of a log; returns why it could not, as a sentence.

    `on_done` is called after each repeat, `use` with the host.
    """

    def on_update(update: RunUpdate) -> None:
        if isinstance(update, RepeatDone):
            on_done()

    try:
        variant, edited = (await asyncio.to_thread(resumable_header, log)).variant, EditedSets(sets)
        if variant is None:
            raise ResumeError("the run is of no variant")
        if name := hidden_in(variant):
            raise ResumeError(f"the value of {name} is secret, so the run log does not have it")
        with ExitStack() as ready:
            # A commit is checked out.
            as_it_runs = as_variant(agent.address, variant, None)
            address = await asyncio.to_thread(ready.enter_context, as_it_runs)
            rest = await asyncio.to_thread(read_resumption, address, log, edited, frozenset(), more=repeats)
            request = resume_request(RunRequest(address, settings=agent.settings), rest)
            settings = HostSettings(address, agent.settings.timeout)
            run = service or execution.run
            return await run(request, edited, on_update, lambda: use(start_host(settings)))
    except EvalSetError as error:
        return f"Cannot run: {error.problems[0].located()}"
    except ResumeError as error:
        return f"Cannot run: {error}{'. Run the matrix again' if error.differs else ''}"
    except (OSError, ValueError) as error:
        return f"Cannot run: {error}"


@lru_cache(1024)
def _shared_calls(calls: ModelCalls) -> ModelCalls:
    """Returns one shared object for equal counts, to save memory for many cases."""
    return calls


class RunFollower:
    """Applies the updates of a run. `selected` is called when the cases of the run are known."""

    def __init__(
        self,
        run: Run,
        agent: AgentState,
        outcomes: Outcomes,
        console: Console,
        *,
        selected: Callable[[], None],
        messages: Messages,
    ) -> None:
        self._run = run
        self._agent = agent
        self._outcomes = outcomes
        self._console = console
        self._selected = selected
        self._messages = messages
        self._cases: Mapping[CaseId, StoredCase] = {}
        # By the path of `CaseId`.
        self._configs: dict[str, EvalConfig] = {}
        self._pass_if: PassIf | None = None
        self._modes: Modes | None = None
        self._prices: Mapping[str, OwnPrice] = {}
        self._file: RunResults | None = None
        # The number of the last result in the file; None where none can be written.
        self._logged: int | None = None

    def on_update(self, update: RunUpdate) -> None:
        run = self._run
        match update:
            case RunSelected(selected):
                self._on_selected(selected)
            case AgentLoaded(info):
                self._agent.imported(info)
            case AgentBroken(error):
                self._agent.failed(error)
            case LogGrew(log, result=result):
                if log is not None and log != run.log:
                    with suppress(OSError, ValueError):
                        run.renumber(RunFile(log).number or run.number)
                    run.log, self._file = log, RunResults(log, run.ref.name)
                self._logged = result
                return
            case CaseStarted(case=case, repeat=repeat):
                run.running.add(case)
                self._outcomes.traces.started(case, run.ref, repeat)
                run.working_since = run.working_since or time.monotonic()
                if run.stage is Stage.STARTING:
                    run.stage = Stage.RUNNING
            case AtWork(kill, hosts):
                run.kill, run.hosts = kill, hosts
            case Scaled() as scale:
                run.scale = scale
            case Judging(case):
                run.judging.add(case)
            case Noted(text, at_once=False):
                run.remarks.append(text)
            case RunStopped(reason):
                run.remarks.append(reason)
                run.is_stopped = True
            case FilesOpened():
                self._agent.opened(update, run.started)
            case RepeatDone(case=case, result=repeated):
                run.judging.discard(case)
                run.calls.on_result(repeated)
            case Happened(event):
                run.calls.on_event(event)
                run.traffic.on_event(event)
                self._happened(event)
            case CaseDone(result):
                self._done(result)
        self._messages.publish(RunProgressed())

    def _on_selected(self, selected: SelectedRun) -> None:
        cases: dict[CaseId, StoredCase] = {}
        for planned in selected.plan.sets:
            cases_of_set = planned.cases
            if not isinstance(cases_of_set, StoredCases):
                cases_of_set = StoredCases(map(StoredCase.of, cases_of_set))
            self._configs[planned.case_path] = planned.config
            for case in cases_of_set.stored:
                cases[CaseId(planned.case_path, case.eval_id)] = case
        self._cases = cases
        settings = selected.plan.settings
        self._pass_if = settings.pass_if
        self._modes = modes_of(settings.record, settings.tools, {})
        self._prices = settings.prices
        self._run.checks = selected.plan.checks
        self._run.parallel = settings.parallel
        self._run.unready = problems_text(selected.plan.checks)
        self._run.selected = frozenset(cases)
        self._outcomes.run_begins(self._run)
        if cases:
            self._run.stage = Stage.STARTING
        self._selected()

    def _done(self, result: CaseResult) -> None:
        run, case = self._run, result.id
        calls = _shared_calls(sum(map(judge_calls, result.repeats), self._model_calls(case)))
        run.running.discard(case)
        figures, logged = summarize(result), None
        if self._file is not None and self._logged is not None:
            logged = StoredResult(figures, self._file, self._logged)
        self._outcomes.traces.done(case, is_logged=logged is not None)
        run.done.add(case)
        run.last_verdict_at = time.time()
        run.counts[result.status] += 1
        if not result.passed:
            run.failures.append(case)
        stored, config = self._cases[case], self._configs[case.path]
        # Ten thousand results take hundreds of megabytes with the invocations.
        repeats = tuple(replace(repeat, actual=()) for repeat in result.repeats)
        ref = logged or ResultInMemory(figures, replace(result, repeats=repeats))
        self._outcomes.put(
            case,
            CaseOutcome(
                ref,
                run.ref,
                stored,
                config,
                calls,
                run.code,
                pass_if=self._pass_if,
                logged=logged,
                modes=self._modes,
                prices=self._prices,
                recorded=figures.recorded,
            ),
        )

    def _model_calls(self, case: CaseId) -> ModelCalls:
        """The model calls of a case that has just been run."""
        # A function may ask any model in its own way, and nobody knows.
        reported = self._agent.info is not None and not self._agent.info.get("unrecorded")
        return count_model_calls(self._outcomes.traces.all_live_events(case), reported=reported)

    def _happened(self, event: Event) -> None:
        named = CaseId(event.path, event.case)
        case = named if named in self._cases else None
        if event.kind == "console" and event.agent != SIMULATED_USER:
            self._console.add(self._run.number, event.data["source"], event.data["text"], case)
        if case is not None:
            self._outcomes.traces.happened(case, event)

    async def read_carried_over(self, log: Path) -> None:
        """Notes the results that a resumed run took over from the earlier run, without an update.

        Raises the errors of `RunFile`.
        """
        file = self._file or RunResults(log, self._run.ref.name)
        cases = (await asyncio.to_thread(RunFile, log)).cases
        while some := await asyncio.to_thread(list, islice(cases, _BATCH_SIZE)):
            for case in some:
                self._outcomes.moved_to(case.id, StoredResult(case.summary, file, case.number))
