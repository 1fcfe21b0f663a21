"""Runs a plan: hands its items to an executor, scores them, and reports updates."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from importlib.util import find_spec

from evaltui.agents.call_recorder import CallRecorder
from evaltui.agents.protocol import FilesOpened, decode_event, places_to_json
from evaltui.core.compare.repeats import RepeatRule, case_over_repeats
from evaltui.core.compare.run_result import RunResult
from evaltui.core.conversation.replay import expected_places
from evaltui.core.conversation.waiting import responses_in
from evaltui.core.cost.prices import load_table
from evaltui.core.metrics.preflight import SCENARIO
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.events import Event, Json, parts_in
from evaltui.core.model.limits import Amount, parse_budget
from evaltui.core.model.outcome import CaseResult, ErrorInfo, RepeatResult, Status, worst_status
from evaltui.core.model.stored_cases import ids_and_turns
from evaltui.core.scoring import Expected
from evaltui.core.simulated_users import simulated_user
from evaltui.project.folders import agent_folder
from evaltui.project.settings import secrets_of
from evaltui.runner.gate import Gate, SharedByGates, Stop
from evaltui.runner.plan import (
    AgentBroken,
    AgentLoaded,
    AtWork,
    CaseDone,
    CaseStarted,
    Happened,
    Judging,
    Noted,
    OnUpdate,
    RepeatDone,
    RunPlan,
    RunStopped,
    SpentWithoutResult,
    Update,
    WorkItem,
    check_plan,
)
from evaltui.runner.pool import ExecutionResult, Executor, ExecutorError, HostPool, WorkQueue
from evaltui.runner.run_recordings import RunRecordings, open_recordings
from evaltui.runner.scoring import LocalScoring, ScoringHosts
from evaltui.runner.starting import HostSettings, StartedHost
from evaltui.runner.verdicts import CaseJudge, Verdicts
from evaltui.text.figures import counted, plural, short_list

_EMPTY = "the conversation is empty; nothing to run"


async def run_plan(
    plan: RunPlan,
    on_update: OnUpdate,
    *,
    first: StartedHost | None = None,
    recordings: RunRecordings | None = None,
) -> RunResult:
    """Run a plan as `follow_plan` does, and return the results of all of its cases in their order."""
    results: dict[CaseId, CaseResult] = {}
    repeats: defaultdict[CaseId, list[str]] = defaultdict(list)
    stopped = ""

    def collect(update: Update) -> None:
        nonlocal stopped
        if isinstance(update, CaseDone):
            result = update.result
            results[CaseId(result.path, result.eval_id)] = result
        elif isinstance(update, RepeatDone):
            repeats[update.case].append(update.result.status)
        elif isinstance(update, RunStopped):
            stopped = update.reason
        on_update(update)

    await follow_plan(plan, collect, first=first, recordings=recordings)
    cases = tuple(
        results[case] if case in results else CaseResult.not_run(case, label, repeats[case])
        for case, label in plan.selected()
    )
    return RunResult(
        cases,
        worst_status(result.status for result in cases),
        plan.agent.in_process,
        stopped=stopped,
        secrets=secrets_of(plan.agent_dir),
    )


async def follow_plan(
    plan: RunPlan,
    on_update: OnUpdate,
    *,
    first: StartedHost | None = None,
    recordings: RunRecordings | None = None,
) -> Status:
    """Run everything in a plan, report updates, and return the worst status of its cases.

    `first` is a host that was started for this agent already, `recordings` were read before. Cancelling ends
    the agent's processes; finished cases have been reported by then. Raises ValueError where the plan has
    nothing to run, EvalSetError for recordings that cannot be read, ExecutorError where the rest of it cannot
    be run.
    """
    check_plan(plan)
    if recordings is None:
        recordings = await open_recordings(plan, lambda text: on_update(Noted(text)))
    run = _Run(plan, on_update, first, recordings)
    await run.work()
    return worst_status(run.statuses)


def gate_of(plan: RunPlan) -> Gate | None:
    """None where nothing is limited. The spending of earlier runs of cases counts against the budget."""
    settings = plan.settings
    if not (settings.limits or settings.budget):
        return None
    return Gate(
        settings.limits,
        budget=parse_budget(settings.budget) if settings.budget else None,
        prices=plan.prices_of(*plan.sets),
        allows_unmetered=settings.allow_unmetered,
        shared=plan.shared or SharedByGates(plan.spent),
    )


@dataclass(slots=True)
class _Progress:
    """A case with open repeats."""

    rule: RepeatRule
    earlier: Mapping[int, RepeatResult]
    """Results of an earlier run, which may be read when they are needed."""
    due: set[int]
    """Numbers of the repeats of this run."""
    repeats: dict[int, RepeatResult] = field(default_factory=dict)
    """Results of this run."""

    @property
    def all_repeats(self) -> dict[int, RepeatResult]:
        """By number."""
        return {**self.earlier, **self.repeats}


class _Run:
    """A run of a plan, the `Listener` of its executor."""

    def __init__(
        self,
        plan: RunPlan,
        on_update: OnUpdate,
        first: StartedHost | None,
        recordings: RunRecordings,
    ) -> None:
        self._plan = plan
        self._on_update = on_update
        self._started = first.settings.started if first else time.monotonic()
        self._last_event = 0
        self._gate = gate_of(plan)
        # Spending before the first call, and in results.
        self._counted = ledger.total if self._gate and (ledger := self._gate.ledger) else Amount()
        # Places in the plan of the cases without a result because the run was stopped.
        self._left: set[int] = set()
        self._executor, self._scoring = self._executors(first)
        # Of a hundred thousand cases only those that are being run have one.
        self._progress: dict[int, _Progress] = {}
        self.statuses: set[Status] = set()
        """Statuses of the cases that are over."""
        self._open = 0
        self._queue = WorkQueue[WorkItem]()
        self._refused: deque[WorkItem] = deque()
        self._verdicts = Verdicts(plan, self._scoring)
        self._judging = asyncio.TaskGroup()
        self._not_passed_on: tuple[str, ...] = ()
        self._opened = FilesOpened()
        self._recordings = recordings

    def _executors(self, first: StartedHost | None) -> tuple[Executor, ScoringHosts]:
        """The executor of the items, and the hosts that score them. Raises ExecutorError where an extra is
        not installed."""
        plan, settings = self._plan, self._plan.settings
        # Runs of an agent name its Python.
        is_silent = plan.held is None and not plan.agent.url
        local = LocalScoring(
            plan.agent,
            settings.parallel,
            settings.timeout,
            partial(self.printed, None),
            self._gate,
            on_start=None if is_silent else self._note,
        )
        if plan.held is not None:
            return _HeldConversations(plan, self), local
        host = HostSettings(plan.agent, settings.timeout, self._started, limits_time=plan.limits_time)
        if first is not None:
            host = replace(host, folder=first.settings.folder, environ=first.settings.environ)
        if not plan.scheduler:
            return HostPool(host, self, settings.parallel, settings.workers, first, self._gate), local
        if find_spec("distributed") is None:
            raise ExecutorError("a scheduler needs the extra dask: pip install 'evaltui[dask]'")
        from evaltui.runner.dask.executor import DaskExecutor

        executor = DaskExecutor(plan, host, self, first, self._gate, self._on_update)
        # The files of an agent behind a network are on this machine alone.
        return executor, local if plan.agent.url else executor.scoring

    async def work(self) -> None:
        """Run all items. Raises ExecutorError."""
        over = self._add_items()
        self._close_queue()
        hosts = self._executor.host_count(len(self._queue))
        self._on_update(AtWork(self._kill, hosts, self._gate.rate if self._gate else lambda: None))
        try:
            for item in over:
                self._end_case(item)
            while self._refused:
                item = self._refused.popleft()
                await self.done(item, ExecutionResult(refusal=self._refusal(item)))
            if self._plan.settings.budget is not None:
                # Not when the first call waits for its price.
                await asyncio.to_thread(load_table)
            self._close_queue()
            await self._execute()
            self._report_opened()
            if self._left and self._gate is not None and (stop := self._gate.stopped):
                left = counted(len(self._left), "case")
                # With the spending of cases without a result, which no report counts.
                spent = f", {ledger} spent" if (ledger := self._gate.ledger) and ledger.is_used_up else ""
                self._on_update(RunStopped(f"{left} not run: {stop.reason}{spent}", stop.is_refusal))
        finally:
            if self._gate is not None:
                self._gate.close()
            self._recordings.abandon()
            await asyncio.gather(self._executor.close(), self._scoring.close(), self._recordings.save())
            self._report_spending()

    def _add_items(self) -> list[WorkItem]:
        """Queue the items of the plan; returns one of each case whose results are all of an earlier part.

        Raises ValueError for a case that could never pass.
        """
        over: list[WorkItem] = []
        due: list[WorkItem] = []
        for eval_set in self._plan.sets:
            for index, (eval_id, turns) in enumerate(ids_and_turns(eval_set.cases)):
                case = CaseId(eval_set.case_path, eval_id)
                item = WorkItem(case, eval_set, turns, index, self._open, 0)
                numbers = self._plan.repeat_rule(eval_set, case).due(self._plan.earlier.get(case, {}))
                items = [replace(item, repeat=number) for number in numbers]
                if not items:
                    over.append(item)
                elif self._refusal(item) is not None:
                    self._refused.extend(items)
                else:
                    due.extend(items)
                self._open += 1
        self._queue.add_first(due, lambda item: item.number)
        return over

    async def _execute(self) -> None:
        """Raises ExecutorError; the items that have run by then are judged first."""
        failed: ExecutorError | None = None
        async with self._judging:
            try:
                await self._executor.run(self._queue)
            except ExecutorError as error:
                failed = error
        if failed is not None:
            raise failed

    def _close_queue(self) -> None:
        """Let hosts end as soon as no item waits, unless results may ask for more repeats."""
        if self._plan.settings.confidence is None or not self._open:
            self._queue.close()

    async def _kill(self) -> None:
        await asyncio.gather(self._executor.kill(), self._scoring.kill())

    def _report_spending(self) -> None:
        """Reports, once no call is under way any more, the spending that no result has."""
        if self._gate is None or self._gate.ledger is None:
            return
        without_result = self._gate.ledger.total.beyond(self._counted)
        # Sums of floats have noise in their last digits.
        if round(without_result.usd, 9) or round(without_result.tokens):
            self._on_update(SpentWithoutResult(without_result))

    def _report_opened(self) -> None:
        opened = self._opened | self._executor.opened | self._scoring.opened
        if opened is not self._opened:
            self._opened = opened
            self._on_update(opened)

    def _note(self, text: str) -> None:
        self._on_update(Noted(text))

    # Requests

    def _refusal(self, item: WorkItem) -> tuple[str, str] | None:
        """Place or metric, and the sentence why a case is not run; None where it is."""
        if item.turns == 0:
            return "eval_case", _EMPTY
        if (held := self._plan.held) is not None:
            missing = "no conversation in the traces is of this case"
            return None if held.get(item.case) else ("conversation", missing)
        if item.turns is not None:
            return None
        user = simulated_user(item.set.cases[item.index], item.set.config)
        if user is None:
            return "eval_case", _EMPTY
        reason = self._verdicts.reason_withheld(item, SCENARIO) or user.refusal
        return None if reason is None else (SCENARIO, reason)

    def message(self, item: WorkItem) -> Json:
        case = self._verdicts.expected(item).case
        session: Json = {}
        if (start := case.session_input) is not None:
            session = {
                "app_name": start.app_name,
                "user_id": start.user_id,
                "session_id": start.session_id or "",
                "state": start.state,
            }
        if names := [name for name in self._not_passed_on if session.get(name)]:
            self._note(f"session_input: {', '.join(names)} not passed on; this kind of agent takes none")
            # Every session must have them: once is enough.
            self._not_passed_on = ()
        message: Json = {"op": "run", "session": session}
        if (user := simulated_user(case, item.set.config)) is not None:
            # A folder would be made importable, and this process is somebody else's.
            folder = None if self._plan.agent.in_process else str(agent_folder(self._plan.agent_dir))
            played = user.played
            if ":" in played.model:
                # A function takes no options; its code is part of what a recording answers.
                played = replace(played, options=self._verdicts.function_code(played.model))
            message["simulated_user"] = {"user": played.to_json(), "agent_folder": folder}
        else:
            turns = case.conversation or []
            contents = [turn.user_content.model_dump(mode="json", exclude_none=True) for turn in turns]
            message["turns"] = contents
            if any(map(responses_in, contents)):
                message["places"] = places_to_json(expected_places(turns))
        if recordings := self._recordings.of(item):
            message["recorded"] = recordings.start(case, item.repeat)
        return message

    # Events

    def started(self, item: WorkItem) -> None:
        self._on_update(CaseStarted(item.case, item.set.eval_set_id, item.repeat))

    def happened(self, item: WorkItem, text: str) -> Event:
        self._last_event += 1
        data = decode_event(text)
        data.update(_place(item), seq=self._last_event)
        event = Event.from_json(data)
        # Encoded once: the host's text, with its place at the end.
        place = _place_text(item.case, item.set.eval_set_id, item.repeat)
        self._on_update(Happened(event, f'{text[:-1]},{place},"seq":{self._last_event}}}'))
        return event

    def _add_event(self, item: WorkItem | None, event: Event) -> None:
        """Report an event that comes from no host."""
        self._last_event += 1
        place = {} if item is None else _place(item)
        t = time.monotonic() - self._started
        self._on_update(Happened(replace(event, t=t, seq=self._last_event, **place)))

    def printed(self, item: WorkItem | None, source: str, line: str) -> None:
        self._add_event(item, Event("console", data={"source": source, "text": line}))

    def recorded(self, item: WorkItem, line: Json) -> None:
        if recordings := self._recordings.of(item):
            recordings.add(item.case.eval_id, item.repeat, line)

    def loaded(self, info: Json) -> None:
        self._on_update(AgentLoaded(info))
        self._report_opened()
        self._not_passed_on = tuple(info.get("not_passed_on", ()))
        if self._gate is not None and (why := info.get("unrecorded")):
            self._on_ungated(self._gate, why)
        if self._recordings.sets and (why := info.get("unrecorded")):
            self._note(f"nothing of the agent is recorded: {why}")

    def _on_ungated(self, gate: Gate, why: str) -> None:
        settings = self._plan.settings
        if settings.budget is not None and not settings.allow_unmetered:
            what = f"a budget cannot count the model calls of the agent: {why}"
            gate.stop(Stop(f"{what}. --allow-unmetered runs it all the same", is_refusal=True))
            return
        of = " and ".join(["limits"] * bool(settings.limits) + ["the budget"] * bool(settings.budget))
        do = "do" if settings.limits else "does"
        self._note(f"{of} {do} not reach the model calls of the agent: {why}")

    def broken(self, error: ErrorInfo) -> None:
        self._on_update(AgentBroken(error))

    def recovered(self, items: Sequence[WorkItem], error: ErrorInfo) -> None:
        repeats = [f" (repeat {item.repeat + 1})" if item.repeat else "" for item in items]
        names = short_list(
            [f"{item.case.eval_id}{repeat}" for item, repeat in zip(items, repeats, strict=True)]
        )
        self._note(f"{names}: {error.message}, but not when run again alone")

    # Results

    async def done(self, item: WorkItem, ran: ExecutionResult) -> None:
        if ran.is_left:
            self._leave(item)
            self._end_recording(item, None, complete=False)
            return
        if ran.error is not None:
            ran = replace(ran, error=_with_running_tools(ran.error, ran.events))
            assert ran.error is not None
            turn = ran.events[-1].turn if ran.events else None
            # A conversation that was held elsewhere may lack later turns of its case.
            turn = turn if ran.error.turn is None else ran.error.turn
            data = asdict(ran.error) | {"kind": ran.error.kind and ran.error.kind.value}
            del data["turn"]
            self._add_event(item, Event("error", data=data, turn=turn))
            ran = replace(ran, error=replace(ran.error, turn=turn))
        expected = self._verdicts.possible(item)
        if ran.error is None and expected.is_judged and ran.refusal is None:
            # The hosts go on meanwhile, but not so far ahead that events of cases fill the memory.
            self._on_update(Judging(item.case))
            await self._scoring.room.enter()
            self._judging.create_task(self._judge(item, expected, ran))
        else:
            await self._conclude(item, expected, ran, None)

    def _leave(self, item: WorkItem) -> None:
        """Marks an item as left because the run was stopped, and closes the queue: no more will follow."""
        self._left.add(item.number)
        self._queue.close()

    async def _judge(self, item: WorkItem, expected: Expected, ran: ExecutionResult) -> None:
        recorder: CallRecorder | None = None
        if recordings := self._recordings.of(item):
            recorder = recordings.judging(item.case.eval_id, item.repeat, self._verdicts.secrets)
        try:
            await self._conclude(item, expected, ran, CaseJudge(self._verdicts.judges, recorder))
        finally:
            self._scoring.room.leave()

    async def _conclude(
        self, item: WorkItem, expected: Expected, ran: ExecutionResult, judge: CaseJudge | None
    ) -> None:
        recorded = ""
        try:
            result = await self._verdicts.of(item, expected, ran, judge)
        finally:
            recorded = self._end_recording(item, judge, complete=ran.error is None)
        result = replace(result, recorded=recorded)
        self._report_opened()
        await self._recordings.save_if_due()
        if judge is not None and judge.is_left:
            self._leave(item)
            return
        # The spending of conversations that were held elsewhere is not of this run.
        spent = result.spent
        self._counted += Amount.of(spent if spent is None or self._plan.held is None else spent.of("judge"))
        self._on_update(RepeatDone(item.case, item.set.eval_set_id, item.repeat, result))
        self._add_result(item, result)

    def _end_recording(self, item: WorkItem, judge: CaseJudge | None, *, complete: bool) -> str:
        """Returns the fingerprint of the recording, "" where there is none."""
        if (recordings := self._recordings.of(item)) is None:
            return ""
        judged = judge.finished if judge else ()
        return recordings.end(item.case.eval_id, item.repeat, complete=complete, judged=judged)

    def _progress_of(self, item: WorkItem) -> _Progress:
        if item.number not in self._progress:
            earlier = self._plan.earlier.get(item.case, {})
            rule = self._plan.repeat_rule(item.set, item.case)
            self._progress[item.number] = _Progress(rule, earlier, set(rule.due(earlier)))
        return self._progress[item.number]

    def _add_result(self, item: WorkItem, result: RepeatResult) -> None:
        """Queue the repeats that the result asks for, and end the case if none is open."""
        progress = self._progress_of(item)
        progress.repeats[item.repeat] = result
        repeats = progress.all_repeats
        more = [number for number in progress.rule.due(repeats) if number not in progress.due]
        progress.due.update(more)
        items = [replace(item, repeat=number) for number in more]
        if items and self._refusal(item) is None:
            self._queue.add(items, item.number, progress.rule.urgency(repeats))
        else:
            self._refused.extend(items)
        if len(progress.repeats) == len(progress.due):
            self._end_case(item)
            self._verdicts.forget(item)
            self._close_queue()

    def _end_case(self, item: WorkItem) -> None:
        plan = self._plan
        repeats = [repeat for _, repeat in sorted(self._progress_of(item).all_repeats.items())]
        del self._progress[item.number]
        result = case_over_repeats(
            item.set.eval_set_id,
            item.case.eval_id,
            repeats,
            plan.pass_if_of(item.set),
            item.case.path,
            plan.settings.confidence if plan.held is None else None,
        )
        self.statuses.add(result.status)
        self._open -= 1
        self._on_update(CaseDone(result))


class _HeldConversations:
    """An `Executor` of conversations that were held elsewhere: repeats their events."""

    opened = FilesOpened()

    def __init__(self, plan: RunPlan, run: _Run) -> None:
        self._plan = plan
        self._run = run

    def host_count(self, items: int) -> int:
        del items
        return 0

    async def run(self, work: WorkQueue[WorkItem]) -> None:
        assert self._plan.held is not None
        self._run.loaded({"name": self._plan.held_by} if self._plan.held_by else {})
        while (item := await work.next()) is not None:
            held = self._plan.held[item.case][item.repeat].read()
            self._run.started(item)
            # As a host writes it.
            texts = (json.dumps(event.to_json(), separators=(",", ":")) for event in held.events)
            events = tuple(self._run.happened(item, text) for text in texts)
            ran = ExecutionResult(events, held.final_state, held.error, held.seconds)
            await self._run.done(item, ran)
            # Keys and signals come first.
            await asyncio.sleep(0)

    async def close(self) -> None:
        """It has no process."""

    async def kill(self) -> None:
        """It has no process."""


def _place(item: WorkItem) -> Json:
    """The fields of an event with its case and repeat."""
    path, eval_id = item.case
    return {"path": path, "set": item.set.eval_set_id, "case": eval_id, "repeat": item.repeat}


@lru_cache(maxsize=64)
def _place_text(case: CaseId, eval_set_id: str, repeat: int) -> str:
    """The same fields as the members of a JSON object."""
    place = {"path": case.path, "set": eval_set_id, "case": case.eval_id, "repeat": repeat}
    fields = {name: value for name, value in place.items() if value != ""}
    return json.dumps(fields, separators=(",", ":"))[1:-1]


def _with_running_tools(error: ErrorInfo, events: Sequence[Event]) -> ErrorInfo:
    """The error of a process that ended, or of a case that took too long, and the tools at work."""
    if error.kind not in (ErrorKind.HOST_LOST, ErrorKind.TIMEOUT):
        return error
    returned = {event.parent for event in events if event.kind == "tool_result"}
    contents = (event.content for event in events if event.kind == "tool_call" and event.id not in returned)
    parts = (part for content in contents for part in parts_in(content))
    names = [call["name"] for part in parts if (call := part.get("function_call"))]
    if not names:
        return error
    tools = f"{plural(len(names), 'tool')} {', '.join(names)} {plural(len(names), 'was', 'were')}"
    return replace(error, message=f"{error.message}; {tools} running")
