"""The verdict on each run of a case: metrics computed here, custom ones by scoring hosts, and judges."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial

from pydantic import BaseModel

from evaltui.agents.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.agents.model_gate import SHORTEST_WAIT
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.conversation.model_failures import unanswered_failure
from evaltui.core.cost.metering import spent_in
from evaltui.core.metrics.custom import result_of_evaluation, result_of_turns
from evaltui.core.metrics.metric import MetricInput, unpaired
from evaltui.core.metrics.metric import not_evaluated as metric_not_evaluated
from evaltui.core.metrics.preflight import withheld
from evaltui.core.model.case_id import case_text, fingerprint
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.events import Json
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
from evaltui.project.settings import secrets_of
from evaltui.runner.judges import CaseJudge, Judges
from evaltui.runner.metric_checks import checked
from evaltui.runner.plan import RunPlan, WorkItem
from evaltui.runner.scoring import ScoringHosts
from evaltui.runner.work import ExecutionResult

_ANY_KEY = "one masked secret is like another: store it masked in the case, too, to compare without it"


class Verdicts:
    """Computes the results of a run's cases; `hosts` compute custom metrics and ask judges."""

    def __init__(self, plan: RunPlan, hosts: ScoringHosts) -> None:
        self._plan = plan
        self._hosts = hosts
        self.judges = Judges(hosts)
        # By the paths of sets, the reasons of metrics that cannot be computed.
        self._withheld = {
            path: withheld(plan.checks, path) for path in {eval_set.case_path for eval_set in plan.sets}
        }
        # By the place of a case in the plan, while it is run.
        self._expected: dict[int, Expected] = {}
        # Of some case of each set, by the set's path.
        self._expected_of: dict[str, Expected] = {}
        # As `_withheld`, of scoring hosts on other machines.
        self._withheld_there: dict[str, dict[str, str]] = {}

    @cached_property
    def secrets(self) -> Secrets:
        """Secrets that stay out of recordings."""
        return secrets_of(self._plan.agent_dir)

    def reason_withheld(self, item: WorkItem, metric: str) -> str | None:
        """Why a metric, or the simulation of a user, cannot be computed; None where it can."""
        return self._withheld[item.case.path].get(metric)

    def expected(self, item: WorkItem) -> Expected:
        """The expected side of a case, kept until `forget`."""
        path, eval_set = item.case.path, item.set
        if item.number not in self._expected:
            case = eval_set.cases[item.index]
            if path not in self._expected_of:
                self._expected_of[path] = Expected(
                    eval_set.eval_set_id,
                    case,
                    eval_set.config,
                    self._plan.settings.adk_verdicts,
                    self._withheld[path],
                    eval_set.config_name,
                )
            self._expected[item.number] = self._expected_of[path].of_case(case)
        return self._expected[item.number]

    def forget(self, item: WorkItem) -> None:
        """All repeats of the case are over."""
        self._expected.pop(item.number, None)

    def possible(self, item: WorkItem) -> Expected:
        """The expected side, without the judges that the scoring hosts cannot ask."""
        expected, access = self.expected(item), self._hosts.gemini
        if access is None:
            return expected
        path = item.case.path
        if path not in self._withheld_there:
            self._withheld_there[path] = withheld(checked(self._plan, access).checks, path)
        return replace(expected, withheld=self._withheld_there[path])

    async def of(
        self, item: WorkItem, expected: Expected, ran: ExecutionResult, judge: CaseJudge | None
    ) -> RepeatResult:
        """The result of a run of a case, with the spending of the case and its judges."""
        text = case_text(expected.case)
        prices = self._plan.prices_of(item.set)
        spent = await spent_in(ran.events, (), prices)
        verdict = await self._scored(expected, text, ran, judge, spent)
        if judge is not None:
            spent += await spent_in((), judge.calls, prices)
        modes = modes_of(self._plan.settings.record, self._plan.settings.tools, item.set.config.evaltui.tools)
        verdict = replace(
            verdict,
            expects=fingerprint(text),
            given=given_to_agent(expected.case, modes),
            stopped=stopped(ran.events),
            spent=spent,
        )
        if ran.throttled >= SHORTEST_WAIT:
            verdict = replace(verdict, throttled=round(ran.throttled, 3))
        return verdict

    async def _scored(
        self, expected: Expected, text: str, ran: ExecutionResult, judge: CaseJudge | None, spent: Spending
    ) -> RepeatResult:
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
        by_all = partial(score, custom=partial(score_custom, self._hosts), judge=judge)
        secrets = self.secrets
        if not secrets.has_marks(text) and self._plan.held is None:
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

        def judged(metric_input: MetricInput) -> MetricResult:
            return results[metric_input.metric.metric_name]

        async def custom(metric_input: MetricInput) -> MetricResult:
            return judged(metric_input)

        by_keys = replace(by_marks, case=case)
        return _decided(result, await score(by_keys, done, final_state=state, custom=custom, judged=judged))


async def score_custom(hosts: ScoringHosts, metric_input: MetricInput) -> MetricResult:
    """The verdict of a custom metric's function, or that of the threshold on its scores; an error of the
    function is an ERROR of this metric, with its traceback."""
    metric, scenario = metric_input.metric, metric_input.scenario
    if metric.scores_turns and (problem := unpaired(metric_input)):
        return metric_not_evaluated(metric, problem)
    expected = metric_input.expected
    request: Json = {
        "op": "metric",
        "path": metric.custom_function_path,
        "metric": metric.model_dump(mode="json", exclude_unset=True, serialize_as_any=True),
        "scores_turns": metric.scores_turns,
        "actual": list(map(_dumped, metric_input.actual)),
        "expected": None if expected is None else list(map(_dumped, expected)),
        "scenario": None if scenario is None else _dumped(scenario),
        "without": sorted(metric_input.context),
    }
    try:
        answer = await hosts.answer("metrics", request)
    except (AgentBrokenError, RequestFailedError, HostLostError) as failed:
        error = failed.error.of_judge
        name, threshold = metric.metric_name, metric.threshold
        return MetricResult(name, None, threshold, Status.ERROR, reason=str(error), error=error)
    if metric.scores_turns:
        return result_of_turns(metric_input, answer["turns"])
    return result_of_evaluation(metric_input, answer["result"], answer["where"])


def _dumped(model: BaseModel) -> Json:
    return model.model_dump(mode="json", exclude_none=True)


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
    # Also where other metrics without a verdict are skipped.
    status = worst_status((by_marks.status, Status.NOT_EVALUATED))
    return replace(by_marks, status=status, metrics=metrics)
