"""A plan at work: what its hosts are asked, what they report, and the verdict on each run of a case."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.conversation.replay import expected_places
from evaltui.core.conversation.waiting import responses_in
from evaltui.core.cost.metering import spent_in
from evaltui.core.metrics.preflight import SCENARIO, withheld
from evaltui.core.metrics.scoring import (
    Expected,
    failed_repeat,
    not_evaluated,
    reads_app_details,
    score_repeat,
)
from evaltui.core.model.case_id import CaseId, case_text, fingerprint
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import Event, Json
from evaltui.core.model.outcome import CaseResult, ErrorInfo, RepeatResult, RunResult, Status, worst_status
from evaltui.core.model.spending import Spending
from evaltui.core.model.stored_cases import ids_and_turns
from evaltui.core.simulated_users import simulated_user, stopped
from evaltui.files.folders import agent_folder
from evaltui.runner.call_recorder import CallRecorder
from evaltui.runner.model_gate import SHORTEST_WAIT
from evaltui.runner.parent.gate.gate import Gate
from evaltui.runner.parent.held_pool import HeldPool
from evaltui.runner.parent.judges import CaseJudge, Judges
from evaltui.runner.parent.metric_host import MetricHost
from evaltui.runner.parent.pool import ExecutionResult, HostPool, HostSettings, LoadingHost
from evaltui.runner.parent.recordings import SavedNowAndThen, recordings_of
from evaltui.runner.plan import (
    AgentBroken,
    AgentLoaded,
    AtWork,
    CaseDone,
    CaseStarted,
    Happened,
    Judging,
    MetricsImported,
    Noted,
    OnUpdate,
    RepeatDone,
    RunPlan,
    WorkItem,
    work_items,
)
from evaltui.runner.protocol import decode_event, places_to_json


async def run_plan(plan: RunPlan, on_update: OnUpdate, *, first: LoadingHost | None = None) -> RunResult:
    """Run everything in a plan and tell what happens while it does.

    `first` is a host that was started for this agent already. Cancelling ends the agent's processes; what
    is finished by then has been told. Raises ValueError where the plan has nothing to run.
    """
    run = _Run(plan, work_items(plan), on_update, first, keeps=True)
    await run.work()
    return run.result()


async def follow_plan(plan: RunPlan, on_update: OnUpdate, *, first: LoadingHost | None = None) -> Status:
    """As `run_plan`, but results are told only: with ten thousand cases, keeping all of them is too much."""
    run = _Run(plan, work_items(plan), on_update, first, keeps=False)
    await run.work()
    return run.status()


def _refusal(case: EvalCase, config: EvalConfig, out_of_reach: Mapping[str, str]) -> tuple[str, str] | None:
    """Why a case is not run at all, a sentence, after the name of what has it."""
    user = simulated_user(case, config)
    if user is not None:
        reason = out_of_reach.get(SCENARIO) or user.refusal
        return None if reason is None else (SCENARIO, reason)
    if not case.conversation:
        return "eval_case", _EMPTY
    return None


_EMPTY = "the conversation is empty; nothing to run"
_NOT_HELD = "no conversation in the traces is of this case"


def _place(item: WorkItem) -> Json:
    """The fields of an event that say which run of a case it belongs to."""
    path, eval_id = item.case
    return {"path": path, "set": item.set.eval_set_id, "case": eval_id, "repeat": item.repeat}


@lru_cache(maxsize=64)
def _place_text(case: CaseId, eval_set_id: str, repeat: int) -> str:
    """The same, as the members of a JSON object."""
    place = {"path": case.path, "set": eval_set_id, "case": case.eval_id, "repeat": repeat}
    given = {name: value for name, value in place.items() if value != ""}
    return json.dumps(given, separators=(",", ":"))[1:-1]


@dataclass(slots=True)
class _Progress:
    """What is known of one case so far; `expected` only while it is being run."""

    awaited: int = 0
    expected: Expected | None = None
    repeats: dict[int, RepeatResult] | None = None
    status: Status | None = None
    result: CaseResult | None = None


class _Run:
    """One run: what the pool works for, and where results come together."""

    def __init__(
        self,
        plan: RunPlan,
        items: Sequence[WorkItem],
        on_update: OnUpdate,
        first: LoadingHost | None,
        *,
        keeps: bool,
    ) -> None:
        self._plan = plan
        self._keeps = keeps
        self._on_update = on_update
        self._began = first.settings.started if first else time.monotonic()
        settings = HostSettings(plan.agent, plan.timeout, plan.import_timeout, self._began)
        self._gate = gate = Gate(plan.limits) if plan.limits else None
        self._pool: HostPool[WorkItem] | HeldPool = (
            HostPool(settings, self, plan.parallel, plan.workers, first, gate)
            if plan.held is None
            else HeldPool(plan.held, {"name": plan.held_by} if plan.held_by else {}, self)
        )
        self._seq = 0
        self._progress = [_Progress() for _ in range(plan.case_count)]
        for item in items:
            self._progress[item.number].awaited += 1
        self._known = [item for item in items if item.repeat in plan.known.get(item.case, {})]
        self._items = [item for item in items if item.repeat not in plan.known.get(item.case, {})]
        self._withheld = {path: withheld(plan.checks, path) for path in map(plan.path_of, plan.sets)}
        # Of some case of each set, by the set's path.
        self._expected_of: dict[str, Expected] = {}
        python = plan.agent.interpreter.executable
        self._metrics = MetricHost(plan.agent_dir, plan.timeout, self._print_alone, python)
        # Hosts of their own: a metric function that blocks its process would hold up every answer. Models are
        # asked from evaltui's own Python, functions that stand for one are in the agent's.
        models = MetricHost(plan.agent_dir, plan.timeout, self._print_alone, gate=gate)
        functions = MetricHost(plan.agent_dir, plan.timeout, self._print_alone, python, gate)
        self._other_hosts = (self._metrics, models, functions)
        self._judges = Judges(models, functions, plan.agent_dir)
        self._being_judged = asyncio.Semaphore(plan.parallel)
        self._judging = asyncio.TaskGroup()
        self._recordings = recordings_of(plan, self._note)
        self._saving = SavedNowAndThen(list(self._recordings.values()))

    async def work(self) -> None:
        runnable: list[WorkItem] = []
        refused: list[WorkItem] = []
        for item in self._items:
            (refused if self._is_refused(item) else runnable).append(item)
        self._on_update(AtWork(self._kill, self._pool.host_count(len(runnable))))
        try:
            await self._open_recordings()
            for item in self._known:
                self._put(item, self._plan.known[item.case][item.repeat])
            for item in refused:
                await self.done(item, ExecutionResult(refusal=self._refusal(item)))
            async with self._judging:
                await self._pool.run(runnable)
            if self._metrics.files:
                self._on_update(MetricsImported(self._metrics.files))
        finally:
            if self._gate is not None:
                self._gate.close()
            for recordings in self._recordings.values():
                recordings.abandon()
            await asyncio.gather(
                self._pool.close(), *(one.close() for one in self._other_hosts), self._saving.save()
            )

    async def _kill(self) -> None:
        await asyncio.gather(self._pool.kill(), *(one.kill() for one in self._other_hosts))

    def _is_refused(self, item: WorkItem) -> bool:
        """Whether there is nothing to run; what a case says is looked at only where it has a say in it."""
        if self._plan.held is None and item.turns is not None:
            return item.turns == 0
        return self._refusal(item) is not None

    def _refusal(self, item: WorkItem) -> tuple[str, str] | None:
        """Why a case is not run at all, a sentence, after the name of what has it."""
        if self._plan.held is not None:
            if item.turns == 0:
                return "eval_case", _EMPTY
            return None if self._plan.held.get(item.case) else ("conversation", _NOT_HELD)
        out_of_reach = self._withheld[item.case.path]
        return _refusal(item.set.cases[item.index], item.set.config, out_of_reach)

    async def _open_recordings(self) -> None:
        for one in self._plan.sets:
            if recordings := self._recordings.get(one.path):
                await recordings.open()
                if one.whole:
                    recordings.note_others(eval_id for eval_id, _ in ids_and_turns(one.cases))

    def result(self) -> RunResult:
        cases = tuple(one.result for one in self._progress if one.result is not None)
        return RunResult(cases, self.status(), self._plan.agent.in_process)

    def status(self) -> Status:
        return worst_status(one.status for one in self._progress if one.status is not None)

    def _expected(self, item: WorkItem) -> Expected:
        progress, one = self._progress[item.number], item.set
        if progress.expected is None:
            case = one.cases[item.index]
            if (other := self._expected_of.get(item.case.path)) is None:
                verdicts, reasons = self._plan.adk_verdicts, self._withheld[item.case.path]
                other = Expected(one.eval_set_id, case, one.config, verdicts, reasons, one.config_name)
                self._expected_of[item.case.path] = other
            progress.expected = other.of_case(case)
        return progress.expected

    def message(self, item: WorkItem) -> Json:
        case = self._expected(item).case
        given = case.session_input
        session: Json = {}
        if given is not None:
            session = {
                "app_name": given.app_name,
                "user_id": given.user_id,
                "session_id": given.session_id or "",
                "state": given.state,
            }
        message: Json = {"op": "run", "session": session, **self._fixed_by_case(case, item.set.config)}
        if recordings := self._recordings.get(item.set.path):
            message["recorded"] = recordings.begin(case, item.repeat)
        return message

    def _fixed_by_case(self, case: EvalCase, config: EvalConfig) -> Json:
        """What the user of a case says, or who plays the user."""
        if (user := simulated_user(case, config)) is not None:
            # A folder would be made importable, and this process is somebody else's.
            here = self._plan.agent.in_process
            folder = None if here else str(agent_folder(self._plan.agent_dir))
            return {"simulated_user": {"user": user.played.to_json(), "agent_folder": folder}}
        turns = case.conversation or []
        messages = [turn.user_content.model_dump(mode="json", exclude_none=True) for turn in turns]
        if not any(map(responses_in, messages)):
            return {"turns": messages}
        return {"turns": messages, "places": places_to_json(expected_places(turns))}

    def started(self, item: WorkItem) -> None:
        self._on_update(CaseStarted(item.case, item.set.eval_set_id, item.repeat))

    def happened(self, item: WorkItem, text: str) -> Event:
        self._seq += 1
        data = decode_event(text)
        data.update(_place(item), seq=self._seq)
        event = Event.from_json(data)
        # Encoded once: what the host wrote, with its place at the end.
        place = _place_text(item.case, item.set.eval_set_id, item.repeat)
        self._on_update(Happened(event, f'{text[:-1]},{place},"seq":{self._seq}}}'))
        return event

    def _add(self, item: WorkItem, event: Event) -> None:
        """Something that happened in a case, of which its host told nothing."""
        self._seq += 1
        self._on_update(Happened(replace(event, seq=self._seq, **_place(item))))

    def recorded(self, item: WorkItem, line: Json) -> None:
        self._recordings[item.set.path].keep(item.case.eval_id, item.repeat, line)

    def _note(self, text: str) -> None:
        self._on_update(Noted(text))

    def printed(self, item: WorkItem | None, source: str, line: str) -> None:
        since = time.monotonic() - self._began
        event = Event("console", data={"source": source, "text": line}, t=since)
        if item is None:
            self._seq += 1
            self._on_update(Happened(replace(event, seq=self._seq)))
        else:
            self._add(item, event)

    def _print_alone(self, source: str, line: str) -> None:
        self.printed(None, source, line)

    def loaded(self, info: Json) -> None:
        self._on_update(AgentLoaded(info))
        if self._recordings and (why := info.get("unrecorded")):
            self._note(f"nothing is recorded: {why}")

    def broken(self, error: ErrorInfo) -> None:
        self._on_update(AgentBroken(error))

    async def done(self, item: WorkItem, ran: ExecutionResult) -> None:
        if ran.error is not None:
            # What ended the case is the last thing that happened in it.
            since, turn = time.monotonic() - self._began, ran.events[-1].turn if ran.events else None
            data = asdict(ran.error)
            del data["turn"]
            data["kind"] = ran.error.kind and ran.error.kind.value
            self._add(item, Event("error", data=data, t=since, turn=turn))
            ran = replace(ran, error=replace(ran.error, turn=turn))
        expected = self._expected(item)
        if ran.error is None and expected.is_judged and ran.refusal is None:
            # The hosts go on meanwhile, but not so far ahead that what cases did fills the memory.
            self._on_update(Judging(item.case))
            await self._being_judged.acquire()
            self._judging.create_task(self._judge(item, expected, ran))
        else:
            await self._conclude(item, expected, ran, None)

    async def _judge(self, item: WorkItem, expected: Expected, ran: ExecutionResult) -> None:
        recorder: CallRecorder | None = None
        if recordings := self._recordings.get(item.set.path):
            recorder = recordings.judging(item.case.eval_id, item.repeat, self._judges.secrets)
        try:
            await self._conclude(item, expected, ran, self._judges.judge_for(recorder))
        finally:
            self._being_judged.release()

    async def _conclude(
        self, item: WorkItem, expected: Expected, ran: ExecutionResult, judge: CaseJudge | None
    ) -> None:
        says = case_text(expected.case)
        try:
            prices = self._plan.prices_of(item.set)
            spent = await spent_in(ran.events, (), prices)
            verdict = await self._verdict(expected, says, ran, judge, spent)
        finally:
            if recordings := self._recordings.get(item.set.path):
                judged = judge.finished if judge else ()
                recordings.end(item.case.eval_id, item.repeat, complete=ran.error is None, judged=judged)
        await self._saving.save_if_due()
        spent += await spent_in((), judge.calls if judge else (), prices)
        verdict = replace(verdict, expects=fingerprint(says), stopped=stopped(ran.events), spent=spent)
        if ran.throttled >= SHORTEST_WAIT:
            verdict = replace(verdict, throttled=round(ran.throttled, 3))
        self._on_update(RepeatDone(item.case, item.set.eval_set_id, item.repeat, verdict))
        self._put(item, verdict)

    def _put(self, item: WorkItem, verdict: RepeatResult) -> None:
        progress = self._progress[item.number]
        progress.repeats = {**(progress.repeats or {}), item.repeat: verdict}
        if len(progress.repeats) < progress.awaited:
            return
        pass_if = self._plan.pass_if or item.set.config.evaltui.repeats.pass_if
        repeats = [progress.repeats[number] for number in sorted(progress.repeats)]
        path, eval_id = item.case
        result = case_over_repeats(item.set.eval_set_id, eval_id, repeats, pass_if, path)
        progress.status = result.status
        progress.expected = progress.repeats = None
        if self._keeps:
            progress.result = result
        self._on_update(CaseDone(result))

    async def _verdict(
        self, expected: Expected, says: str, ran: ExecutionResult, judge: CaseJudge | None, spent: Spending
    ) -> RepeatResult:
        """`says` is the case's text."""
        if ran.refusal is not None:
            return not_evaluated(expected, *ran.refusal)
        try:
            actual = invocations_from_events(ran.events, app_details=reads_app_details(expected))
        except ValueError as error:
            failed = ErrorInfo(type(error).__name__, str(error), kind=ErrorKind.AGENT)
            return failed_repeat(expected, failed, [], ran.seconds)
        if ran.error is not None:
            return failed_repeat(expected, ran.error, actual, ran.seconds)
        state = ran.state
        secrets = self._judges.secrets
        if secrets.has_marks(says):
            # What is expected was kept without its secrets, so what was done is compared without them.
            case, config = secrets.masked(expected.case), secrets.masked(expected.config)
            expected = replace(expected, case=case, config=config)
            actual, state = secrets.masked(actual), secrets.masked(state)
        return await score_repeat(
            expected,
            actual,
            final_state=state,
            custom=self._metrics.score,
            judge=judge,
            seconds=ran.seconds,
            spent=spent,
        )
