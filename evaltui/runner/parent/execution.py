"""A plan at work: what runs its cases, and where what they did comes together."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from evaltui.core.compare.run_result import RunResult
from evaltui.core.cost.prices import load_table
from evaltui.core.model.budget import Amount, parse_budget
from evaltui.core.model.events import Event, Json
from evaltui.core.model.outcome import ErrorInfo, RepeatResult, Status
from evaltui.core.scoring import Expected
from evaltui.runner.call_recorder import CallRecorder
from evaltui.runner.executors import executor_of
from evaltui.runner.parent.case_requests import CaseRequests
from evaltui.runner.parent.case_results import CaseResults
from evaltui.runner.parent.executor import ExecutorError
from evaltui.runner.parent.gate.gate import Gate, Stop
from evaltui.runner.parent.judges import CaseJudge
from evaltui.runner.parent.pool import ExecutionResult, LoadingHost
from evaltui.runner.parent.recordings import RecordingsOfSets, SavedNowAndThen, open_recordings
from evaltui.runner.parent.run_events import RunEvents
from evaltui.runner.parent.verdicts import Verdicts
from evaltui.runner.parent.work import WorkQueue
from evaltui.runner.plan import (
    AgentBroken,
    AgentLoaded,
    AtWork,
    CaseStarted,
    Judging,
    Noted,
    OnUpdate,
    RepeatDone,
    RunPlan,
    RunStopped,
    SpentWithoutResult,
    WorkItem,
    work_items,
)
from evaltui.runner.protocol import FilesOpened
from evaltui.text.figures import counted


async def run_plan(
    plan: RunPlan,
    on_update: OnUpdate,
    *,
    first: LoadingHost | None = None,
    recordings: RecordingsOfSets | None = None,
) -> RunResult:
    """Run everything in a plan and tell what happens while it does.

    `first` is a host that was started for this agent already, `recordings` were read before. Cancelling ends
    the agent's processes; what is finished by then has been told. Raises ValueError where the plan has
    nothing to run, EvalSetError for recordings that cannot be read, ExecutorError where the rest of it cannot
    be run.
    """
    items = work_items(plan)
    if recordings is None:
        recordings = await open_recordings(plan, lambda text: on_update(Noted(text)))
    run = _Run(plan, items, on_update, first, recordings, keeps=True)
    await run.work()
    return replace(run.results.result(), stopped=run.stopped)


async def follow_plan(
    plan: RunPlan,
    on_update: OnUpdate,
    *,
    first: LoadingHost | None = None,
    recordings: RecordingsOfSets | None = None,
) -> Status:
    """As `run_plan`, but results are told only: with ten thousand cases, keeping all of them is too much."""
    items = work_items(plan)
    if recordings is None:
        recordings = await open_recordings(plan, lambda text: on_update(Noted(text)))
    run = _Run(plan, items, on_update, first, recordings, keeps=False)
    await run.work()
    return run.results.status()


def _gate_of(plan: RunPlan) -> Gate | None:
    """None where nothing is limited. What earlier runs of cases have spent is spent of the budget."""
    settings = plan.settings
    if not (settings.limits or settings.budget):
        return None
    gate = Gate(
        settings.limits,
        budget=parse_budget(settings.budget) if settings.budget else None,
        prices=plan.prices_of_run(),
        allows_unmetered=settings.allow_unmetered,
        shared=plan.shared,
    )
    if gate.ledger is not None and plan.shared is None:
        gate.ledger.carry_over(plan.spent)
    return gate


def _spent_by(plan: RunPlan, result: RepeatResult) -> Amount:
    """What a conversation cost that was held elsewhere is no part of it."""
    spent = result.spent
    return Amount.of(spent if spent is None or plan.held is None else spent.of("judge"))


class _Run:
    """One run: what the pool works for, and where results come together."""

    def __init__(
        self,
        plan: RunPlan,
        items: Iterable[WorkItem],
        on_update: OnUpdate,
        first: LoadingHost | None,
        recordings: RecordingsOfSets,
        *,
        keeps: bool,
    ) -> None:
        self._plan = plan
        self._on_update = on_update
        began = first.settings.started if first else time.monotonic()
        self._events = RunEvents(on_update, began)
        self._gate = _gate_of(plan)
        # What is spent before the first call, and in results then.
        self._counted = ledger.total if self._gate and (ledger := self._gate.ledger) else Amount()
        # The cases without a result because the run was stopped, by their place in the plan.
        self._left: set[int] = set()
        self.stopped = ""
        """Why, a sentence; "" where all cases have a result."""
        self._executor, self._scoring = executor_of(plan, self, began, first, self._gate, on_update)
        self._requests = CaseRequests(plan)
        self.results = CaseResults(plan, items, on_update, keeps=keeps)
        self._queue = WorkQueue[WorkItem](self.results.most)
        self._refused: deque[WorkItem] = deque()
        self._verdicts = Verdicts(plan, self._scoring)
        self._judging = asyncio.TaskGroup()
        self._not_passed_on: tuple[str, ...] = ()
        self._opened = FilesOpened()
        self._recordings = recordings
        self._saving = SavedNowAndThen(list(self._recordings.values()))

    async def work(self) -> None:
        self._queue.begin(self._to_be_run(), lambda item: item.number)
        self._close_queue()
        hosts = self._executor.host_count(len(self._queue))
        self._on_update(AtWork(self._kill, hosts, self._gate.rate if self._gate else lambda: None))
        try:
            self.results.tell_known()
            while self._refused:
                item = self._refused.popleft()
                await self.done(item, ExecutionResult(refusal=self._requests.refusal(item)))
            if self._plan.settings.budget is not None:
                # Not when the first call waits for its price.
                await asyncio.to_thread(load_table)
            self._close_queue()
            await self._run()
            self._tell_opened()
            if self._left and self._gate is not None and (stop := self._gate.stopped):
                left = counted(len(self._left), "case")
                # With what cases without a result have spent, which no report counts.
                spent = f", {ledger} spent" if (ledger := self._gate.ledger) and ledger.is_used_up else ""
                self.stopped = f"{left} not run: {stop.reason}{spent}"
                self._on_update(RunStopped(self.stopped, stop.is_refusal))
        finally:
            if self._gate is not None:
                self._gate.close()
            for recordings in self._recordings.values():
                recordings.abandon()
            await asyncio.gather(self._executor.close(), self._scoring.close(), self._saving.save())
            self._tell_spent()

    def _tell_spent(self) -> None:
        """Once nothing is under way any more."""
        if self._gate is None or self._gate.ledger is None:
            return
        without_result = self._gate.ledger.total.beyond(self._counted)
        # Sums of floats have noise in their last digits.
        if round(without_result.usd, 9) or round(without_result.tokens):
            self._on_update(SpentWithoutResult(without_result))

    async def _run(self) -> None:
        """Raises ExecutorError; what has run by then is judged first."""
        failed: ExecutorError | None = None
        async with self._judging:
            try:
                await self._executor.run(self._queue)
            except ExecutorError as error:
                failed = error
        if failed is not None:
            raise failed

    def _to_be_run(self) -> Iterator[WorkItem]:
        """Of those that are to be run at first those of which there is anything to run."""
        for item in self.results.take_asked():
            if self._requests.is_refused(item):
                self._refused.append(item)
            else:
                yield item

    def _ask(self, item: WorkItem, urgency: float) -> None:
        """Have an item run, if there is anything to run."""
        if self._requests.is_refused(item):
            self._refused.append(item)
        else:
            self._queue.add([item], item.number, urgency)

    def _close_queue(self) -> None:
        """Let hosts end as soon as nothing waits for one, unless more may come."""
        if not self.results.may_ask:
            self._queue.close()

    async def _kill(self) -> None:
        await asyncio.gather(self._executor.kill(), self._scoring.kill())

    def message(self, item: WorkItem) -> Json:
        message = self._requests.message(item)
        self._note_names(message["session"])
        if recordings := self._recordings.get(item.set.path):
            case = self._requests.expected(item).case
            message["recorded"] = recordings.begin(case, item.repeat)
        return message

    def started(self, item: WorkItem) -> None:
        self._on_update(CaseStarted(item.case, item.set.eval_set_id, item.repeat))

    def happened(self, item: WorkItem, text: str) -> Event:
        return self._events.happened(item, text)

    def recorded(self, item: WorkItem, line: Json) -> None:
        self._recordings[item.set.path].keep(item.case.eval_id, item.repeat, line)

    def _note(self, text: str) -> None:
        self._on_update(Noted(text))

    def printed(self, item: WorkItem | None, source: str, line: str) -> None:
        self._events.printed(item, source, line)

    def _note_names(self, session: Json) -> None:
        """Notes once which names of a session the agent has no place for; every session must have them."""
        if names := [name for name in self._not_passed_on if session.get(name)]:
            self._note(f"session_input: {', '.join(names)} not passed on; this kind of agent takes none")
            self._not_passed_on = ()

    def _tell_opened(self) -> None:
        opened = self._opened | self._executor.opened | self._scoring.opened
        if opened is not self._opened:
            self._opened = opened
            self._on_update(opened)

    def loaded(self, info: Json) -> None:
        self._on_update(AgentLoaded(info))
        self._tell_opened()
        self._not_passed_on = tuple(info.get("not_passed_on", ()))
        if self._gate is not None and (why := info.get("unrecorded")):
            self._on_ungated(self._gate, why)
        if self._recordings and (why := info.get("unrecorded")):
            self._note(f"nothing is recorded: {why}")

    def _on_ungated(self, gate: Gate, why: str) -> None:
        if self._plan.settings.budget is not None and not self._plan.settings.allow_unmetered:
            what = f"a budget cannot count the model calls of the agent: {why}"
            gate.stop(Stop(f"{what}. --allow-unmetered runs it all the same", is_refusal=True))
            return
        of = " and ".join(
            ["limits"] * bool(self._plan.settings.limits) + ["the budget"] * bool(self._plan.settings.budget)
        )
        do = "do" if self._plan.settings.limits else "does"
        self._note(f"{of} {do} not reach the model calls of the agent: {why}")

    def broken(self, error: ErrorInfo) -> None:
        self._on_update(AgentBroken(error))

    async def done(self, item: WorkItem, ran: ExecutionResult) -> None:
        if ran.is_left:
            self._leave(item)
            self._end_recording(item, None, complete=False)
            return
        if ran.error is not None:
            turn = ran.events[-1].turn if ran.events else None
            self._events.ended_in(item, ran.error, turn)
            ran = replace(ran, error=replace(ran.error, turn=turn))
        expected = self._verdicts.possible(item, self._requests.expected(item))
        if ran.error is None and expected.is_judged and ran.refusal is None:
            # The hosts go on meanwhile, but not so far ahead that what cases did fills the memory.
            self._on_update(Judging(item.case))
            await self._scoring.room.enter()
            self._judging.create_task(self._judge(item, expected, ran))
        else:
            await self._conclude(item, expected, ran, None)

    def _leave(self, item: WorkItem) -> None:
        """The run has been stopped: what waits comes to nothing, and nothing more will follow."""
        self._left.add(item.number)
        self._queue.close()

    async def _judge(self, item: WorkItem, expected: Expected, ran: ExecutionResult) -> None:
        recorder: CallRecorder | None = None
        if recordings := self._recordings.get(item.set.path):
            recorder = recordings.judging(item.case.eval_id, item.repeat, self._verdicts.secrets)
        try:
            await self._conclude(item, expected, ran, self._verdicts.judge_for(recorder))
        finally:
            self._scoring.room.leave()

    async def _conclude(
        self, item: WorkItem, expected: Expected, ran: ExecutionResult, judge: CaseJudge | None
    ) -> None:
        recorded = ""
        try:
            verdict = await self._verdicts.of(item, expected, ran, judge)
        finally:
            recorded = self._end_recording(item, judge, complete=ran.error is None)
        verdict = replace(verdict, recorded=recorded)
        self._tell_opened()
        await self._saving.save_if_due()
        if judge is not None and judge.is_left:
            self._leave(item)
            return
        self._counted += _spent_by(self._plan, verdict)
        self._on_update(RepeatDone(item.case, item.set.eval_set_id, item.repeat, verdict))
        self._put(item, verdict)

    def _end_recording(self, item: WorkItem, judge: CaseJudge | None, *, complete: bool) -> str:
        """Returns the fingerprint of the recording, "" where there is none."""
        if (recordings := self._recordings.get(item.set.path)) is None:
            return ""
        judged = judge.finished if judge else ()
        return recordings.end(item.case.eval_id, item.repeat, complete=complete, judged=judged)

    def _put(self, item: WorkItem, verdict: RepeatResult) -> None:
        more, urgency = self.results.add(item, verdict)
        for one in more:
            self._ask(one, urgency)
        if self.results.end_if_over(item):
            self._requests.forget(item)
            self._close_queue()
