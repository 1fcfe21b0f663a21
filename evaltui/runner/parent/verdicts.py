"""The verdict on each run of a case: its metrics, computed here, in the agent's Python, or by judges."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.cost.metering import spent_in
from evaltui.core.metrics.scoring import (
    Expected,
    failed_repeat,
    not_evaluated,
    reads_app_details,
    score_repeat,
)
from evaltui.core.model.case_id import case_text, fingerprint
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.outcome import ErrorInfo, RepeatResult
from evaltui.core.model.spending import Spending
from evaltui.core.secrets import Secrets
from evaltui.core.simulated_users import stopped
from evaltui.runner.call_recorder import CallRecorder
from evaltui.runner.model_gate import SHORTEST_WAIT
from evaltui.runner.parent.gate.gate import Gate
from evaltui.runner.parent.judges import CaseJudge, Judges
from evaltui.runner.parent.metric_host import MetricHost
from evaltui.runner.parent.pool import ExecutionResult
from evaltui.runner.plan import MetricsImported, OnUpdate, RunPlan, WorkItem


class Verdicts:
    """Of one run. It has hosts for metrics and judges, which start when they are first asked."""

    def __init__(self, plan: RunPlan, on_console: Callable[[str, str], None], gate: Gate | None) -> None:
        self._plan = plan
        python = plan.agent.interpreter.executable
        self._metrics = MetricHost(plan.agent_dir, plan.timeout, on_console, python)
        # Hosts of their own: a metric function that blocks its process would hold up every answer. Models are
        # asked from evaltui's own Python, functions that stand for one are in the agent's.
        models = MetricHost(plan.agent_dir, plan.timeout, on_console, gate=gate)
        functions = MetricHost(plan.agent_dir, plan.timeout, on_console, python, gate)
        self._hosts = (self._metrics, models, functions)
        self._judges = Judges(models, functions, plan.agent_dir)

    @property
    def secrets(self) -> Secrets:
        """What stays out of recordings."""
        return self._judges.secrets

    def judge_for(self, recorder: CallRecorder | None) -> CaseJudge:
        """Who judges one run of a case; `recorder` has its recording, if there is one."""
        return self._judges.judge_for(recorder)

    async def close(self) -> None:
        """End its hosts."""
        await asyncio.gather(*(one.close() for one in self._hosts))

    async def kill(self) -> None:
        """End its hosts by force."""
        await asyncio.gather(*(one.kill() for one in self._hosts))

    def tell_imported(self, on_update: OnUpdate) -> None:
        """Tell which of the user's files custom metrics are made of."""
        if self._metrics.files:
            on_update(MetricsImported(self._metrics.files))

    async def of(
        self, item: WorkItem, expected: Expected, ran: ExecutionResult, judge: CaseJudge | None
    ) -> RepeatResult:
        """The result of a run of a case, with what it and its judges spent."""
        says = case_text(expected.case)
        prices = self._plan.prices_of(item.set)
        spent = await spent_in(ran.events, (), prices)
        verdict = await self._scored(expected, says, ran, judge, spent)
        spent += await spent_in((), judge.calls if judge else (), prices)
        verdict = replace(verdict, expects=fingerprint(says), stopped=stopped(ran.events), spent=spent)
        if ran.throttled >= SHORTEST_WAIT:
            verdict = replace(verdict, throttled=round(ran.throttled, 3))
        return verdict

    async def _scored(
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
