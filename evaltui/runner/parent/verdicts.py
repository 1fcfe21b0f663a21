"""The verdict on each run of a case: its metrics, computed here, in the agent's Python, or by judges."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.conversation.model_failures import unanswered_failure
from evaltui.core.cost.metering import spent_in
from evaltui.core.metrics.metric import MetricInput
from evaltui.core.metrics.preflight import withheld
from evaltui.core.model.case_id import case_text, fingerprint
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.modes import modes_of
from evaltui.core.model.outcome import ErrorInfo, MetricResult, RepeatResult, Status, worst_status
from evaltui.core.model.spending import Spending
from evaltui.core.recordings.given import given_to_agent
from evaltui.core.scoring import (
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

_ANY_KEY = "one masked secret is like another: store it masked in the case, too, to compare without it"


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
        score = partial(score_repeat, seconds=ran.seconds, spent=spent)
        by_all = partial(score, custom=self._metrics.score, judge=judge)
        secrets = self._judges.secrets
        if not secrets.has_marks(says) and self._plan.held is None:
            return await by_all(expected, actual, final_state=ran.state)
        # One side was stored without its secrets, so both are compared without them.
        case, config = secrets.masked(expected.case), secrets.masked(expected.config)
        by_marks = replace(expected, case=case, config=config)
        result = await by_all(by_marks, secrets.masked(actual), final_state=secrets.masked(ran.state))
        case = secrets.named.masked(expected.case)
        if case == by_marks.case:
            return result
        done, state = secrets.named.masked(actual), secrets.named.masked(ran.state)
        results = {metric.name: metric for metric in result.metrics}

        def judged(given: MetricInput) -> MetricResult:
            return results[given.metric.metric_name]

        async def custom(given: MetricInput) -> MetricResult:
            return judged(given)

        by_keys = replace(by_marks, case=case)
        return _decided(result, await score(by_keys, done, final_state=state, custom=custom, judged=judged))


def _decided(by_marks: RepeatResult, by_keys: RepeatResult) -> RepeatResult:
    """A result without the passes that another key than the right one may have, too."""
    metrics = tuple(
        replace(metric, status=Status.NOT_EVALUATED, score=None, reason=_ANY_KEY, per_invocation=())
        if metric.status is Status.PASSED and other.status is not Status.PASSED
        else metric
        for metric, other in zip(by_marks.metrics, by_keys.metrics, strict=True)
    )
    if metrics == by_marks.metrics:
        return by_marks
    # Also where other metrics without a verdict are passed over.
    status = worst_status((by_marks.status, Status.NOT_EVALUATED))
    return replace(by_marks, status=status, metrics=metrics)
