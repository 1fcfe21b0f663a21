"""The verdict on each run of a case: its metrics, computed here, in the agent's Python, or by judges."""

from __future__ import annotations

from dataclasses import replace

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.conversation.model_failures import unanswered_failure
from evaltui.core.cost.metering import spent_in
from evaltui.core.metrics.preflight import withheld
from evaltui.core.model.case_id import case_text, fingerprint
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.modes import modes_of
from evaltui.core.model.outcome import ErrorInfo, RepeatResult
from evaltui.core.model.spending import Spending
from evaltui.core.recordings.given import given_to_agent
from evaltui.core.scoring.scoring import (
    Expected,
    failed_repeat,
    not_evaluated,
    reads_app_details,
    score_repeat,
)
from evaltui.core.secrets import Secrets
from evaltui.core.simulated_users import stopped
from evaltui.runner.call_recorder import CallRecorder
from evaltui.runner.model_gate import SHORTEST_WAIT
from evaltui.runner.parent.judges import CaseJudge, Judges
from evaltui.runner.parent.metric_calls import MetricCalls
from evaltui.runner.parent.metric_checks import checked
from evaltui.runner.parent.pool import ExecutionResult
from evaltui.runner.parent.scoring_hosts import ScoringHosts
from evaltui.runner.plan import RunPlan, WorkItem


class Verdicts:
    """Of one run. `hosts` compute custom metrics and ask judges."""

    def __init__(self, plan: RunPlan, hosts: ScoringHosts) -> None:
        self._plan = plan
        self._hosts = hosts
        self._metrics = MetricCalls(hosts, "metrics", plan.agent_dir)
        models = MetricCalls(hosts, "models", plan.agent_dir)
        functions = MetricCalls(hosts, "functions", plan.agent_dir)
        self._judges = Judges(models, functions, plan.agent_dir)
        # By the paths of sets, what the hosts cannot compute.
        self._withheld: dict[str, dict[str, str]] = {}

    @property
    def secrets(self) -> Secrets:
        """What stays out of recordings."""
        return self._judges.secrets

    def judge_for(self, recorder: CallRecorder | None) -> CaseJudge:
        """Who judges one run of a case; `recorder` has its recording, if there is one."""
        return self._judges.judge_for(recorder)

    def possible(self, item: WorkItem, expected: Expected) -> Expected:
        """What is expected, without the judges that cannot be asked where that is done."""
        access = self._hosts.gemini
        if access is None:
            return expected
        path = item.case.path
        if path not in self._withheld:
            self._withheld[path] = withheld(checked(self._plan, access).checks, path)
        return replace(expected, withheld=self._withheld[path])

    async def of(
        self, item: WorkItem, expected: Expected, ran: ExecutionResult, judge: CaseJudge | None
    ) -> RepeatResult:
        """The result of a run of a case, with what it and its judges spent."""
        says = case_text(expected.case)
        prices = self._plan.prices_of(item.set)
        spent = await spent_in(ran.events, (), prices)
        verdict = await self._scored(expected, says, ran, judge, spent)
        if judge is not None:
            spent += await spent_in((), judge.calls, prices)
        modes = modes_of(self._plan.settings.record, self._plan.settings.tools, item.set.config.evaltui.tools)
        given = given_to_agent(expected.case, modes)
        expects = fingerprint(says)
        verdict = replace(verdict, expects=expects, given=given, stopped=stopped(ran.events), spent=spent)
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
            events = invocations_from_events(ran.events, app_details=reads_app_details(expected))
            # Before secrets are masked, which only happens to the texts of a turn.
            actual = expected.scored_turns(events)
        except ValueError as error:
            failed = ErrorInfo(type(error).__name__, str(error), kind=ErrorKind.AGENT)
            return failed_repeat(expected, failed, [], ran.seconds)
        if ran.error is not None:
            return failed_repeat(expected, ran.error, actual, ran.seconds)
        if not expected.adk_verdicts and (failure := unanswered_failure(ran.events)) is not None:
            return failed_repeat(expected, failure, actual, ran.seconds)
        state = ran.state
        secrets = self._judges.secrets
        if secrets.has_marks(says) or self._plan.held is not None:
            # One side was stored without its secrets, so both are compared without them.
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
