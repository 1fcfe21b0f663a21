"""The verdict on each run of a case: metrics computed here, custom ones by scoring hosts, and judges."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, cached_property, partial

from pydantic import BaseModel

from evaltui.agents.call_recorder import CallRecorder, ModelExchange
from evaltui.agents.errors import (
    AgentBrokenError,
    HostLostError,
    RequestFailedError,
    RunStoppedError,
    error_from_json,
)
from evaltui.agents.exception_kinds import kind_of
from evaltui.agents.model_gate import SHORTEST_WAIT
from evaltui.core.conversation.instances import instance_of
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.conversation.model_failures import unanswered_failure
from evaltui.core.cost.metering import MeteredCall, calls_in, served_in, spent_by, tokens_of
from evaltui.core.metrics.custom import result_of_evaluation, result_of_instance, result_of_turns
from evaltui.core.metrics.judges.judge import Answer, JudgeFailedError, Question
from evaltui.core.metrics.metric import MetricInput, effective_threshold, unpaired_reason
from evaltui.core.metrics.metric import not_evaluated as metric_not_evaluated
from evaltui.core.metrics.preflight import withheld_metrics
from evaltui.core.model.case_id import case_text, fingerprint
from evaltui.core.model.config import DefinedMetric
from evaltui.core.model.content import Content
from evaltui.core.model.criteria import JudgeModelOptions
from evaltui.core.model.errors import NOT_RECORDED, ErrorInfo, ErrorKind
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.events import Json, text_content
from evaltui.core.model.modes import modes_of
from evaltui.core.model.outcome import MetricResult, RepeatResult, Status, worst_status
from evaltui.core.model.spending import Spending
from evaltui.core.recordings.entry import FUNCTION_CODE, JUDGE_OF, JsonRequest
from evaltui.core.recordings.given import agent_input_fingerprint
from evaltui.core.scoring import (
    Expected,
    failed_repeat,
    not_evaluated,
    reads_app_details,
    score_repeat,
)
from evaltui.core.secrets import Secrets
from evaltui.core.simulated_users import stop_reason
from evaltui.project.agent_files import function_digest
from evaltui.project.settings import secrets_of
from evaltui.runner.metric_checks import checked
from evaltui.runner.plan import RunPlan, WorkItem
from evaltui.runner.pool import ExecutionResult
from evaltui.runner.scoring import ScoringHosts, ScoringKind


class Judges:
    """Asks the questions of all cases, of each metric at most as many at once as its options allow."""

    def __init__(self, hosts: ScoringHosts, code: Callable[[str], Json] = lambda model: {}) -> None:
        """`code` is `Verdicts.function_code`."""
        self._hosts = hosts
        self.function_code = code
        self._limits: dict[tuple[str, int], asyncio.Semaphore] = {}

    async def ask(self, question: Question) -> Answer:
        """Raises RequestFailedError, HostLostError, AgentBrokenError or RunStoppedError."""
        options = question.options
        key = question.metric, options.parallelism_limit
        request: Json = {
            "op": "ask",
            "judge": options.judge_model,
            "prompt": question.prompt,
            "config": _config_to_ask(question),
        }
        async with self._limits.setdefault(key, asyncio.Semaphore(options.parallelism_limit)):
            # A `module:callable` of the project stands for a model.
            kind: ScoringKind = "functions" if ":" in options.judge_model else "models"
            reply = await self._hosts.answer(kind, request)
        return Answer(
            reply["text"],
            cut_off=reply["cut_off"],
            usages=tuple(reply["usages"]),
            version=reply["version"],
        )


class CaseJudge:
    """The `Judge` of one run of a case."""

    def __init__(self, judges: Judges, recorder: CallRecorder | None) -> None:
        """`recorder` has the recording of the run; None where there is none."""
        self._judges = judges
        self._recorder = recorder
        self._unanswered: Counter[str] = Counter()
        self._numbers: Counter[tuple[str, int]] = Counter()
        self.is_left = False
        """Whether the run was stopped before every question was answered."""
        self.calls: list[MeteredCall] = []
        """Calls of judges, replayed ones included."""

    @property
    def finished(self) -> set[str]:
        """Metrics with questions, each of which was answered."""
        return {metric for metric, number in self._unanswered.items() if number == 0}

    async def __call__(self, question: Question) -> Answer:
        self._unanswered[question.metric] += 1
        self._numbers[question.metric, question.turn] += 1
        number = self._numbers[question.metric, question.turn]
        try:
            answer = await self._answer(question, self._exchange(question))
        except JudgeFailedError as failed:
            if failed.was_asked:
                self._meter(question, number, failed.usages)
            raise
        usages = answer.usages or (None,)
        self._meter(question, number, usages, answer.version, is_replayed=answer.is_replayed)
        self._unanswered[question.metric] -= 1
        return answer

    def _meter(
        self,
        question: Question,
        number: int,
        usages: Sequence[Json | None],
        version: str = "",
        *,
        is_replayed: bool = False,
    ) -> None:
        model, tokens, now = question.options.judge_model, tuple(map(tokens_of, usages)), datetime.now(UTC)
        turn, metric = question.turn, question.metric
        self.calls.append(
            MeteredCall("judge", model, tokens, is_replayed, now, version, turn, number, metric)
        )

    def _exchange(self, question: Question) -> ModelExchange:
        if self._recorder is None:
            return ModelExchange()
        self._recorder.turn = question.turn
        prompt = text_content("user", question.prompt)
        model = question.options.judge_model
        config = (_config(question.options) or {}) | self._judges.function_code(model)
        request = JsonRequest(model, [prompt], config=config)
        return self._recorder.model_call(request, f"{JUDGE_OF}{question.metric}")

    async def _answer(self, question: Question, exchange: ModelExchange) -> Answer:
        if exchange.missed is not None:
            error = ErrorInfo(NOT_RECORDED, str(exchange.missed), kind=ErrorKind.CONFIG)
            raise JudgeFailedError(error, was_asked=False)
        if exchange.is_replayed:
            return _replayed(exchange)
        try:
            answer = await self._judges.ask(question)
        except RunStoppedError as stopped:
            self.is_left = True
            error = ErrorInfo("RunStoppedError", "the run makes no more model calls", kind=None)
            raise JudgeFailedError(error, was_asked=False) from stopped
        except (AgentBrokenError, RequestFailedError, HostLostError) as failed:
            if isinstance(failed, RequestFailedError):
                _keep_failure(exchange, failed.error)
            usages = failed.usages if isinstance(failed, RequestFailedError) else ()
            raise JudgeFailedError(failed.error.of_judge, usages=usages) from failed
        cut_off = {"finish_reason": answer.cut_off} if answer.cut_off else {}
        usage = {"usage": answer.usages[-1]} if answer.usages else {}
        version = {"model_version": answer.version} if answer.version else {}
        response = {"parts": [{"text": answer.text}], **cut_off, **usage, **version}
        exchange.keep([response], None, answer.version)
        return answer


def _replayed(exchange: ModelExchange) -> Answer:
    if exchange.error is not None:
        name = exchange.error["type"].rpartition(":")[2]
        kind = kind_of(error_from_json(exchange.error))
        error = ErrorInfo(name, exchange.error["message"], kind=kind).of_judge
        raise JudgeFailedError(error, was_asked=False)
    parts = [part for response in exchange.responses for part in response["parts"]]
    cut_off = next(
        (response["finish_reason"] for response in exchange.responses if "finish_reason" in response), ""
    )
    usages = tuple(response["usage"] for response in exchange.responses if "usage" in response)
    version = next((response.get("model_version", "") for response in reversed(exchange.responses)), "")
    text = "".join(part["text"] for part in parts)
    return Answer(text, is_replayed=True, cut_off=cut_off, usages=usages, version=version)


def _keep_failure(exchange: ModelExchange, error: ErrorInfo) -> None:
    # That nobody waited for an answer is none.
    if error.type not in ("TimeoutError", "CancelledError"):
        failure = error_from_json({"type": f"builtins:{error.type}", "message": error.message})
        exchange.keep([], failure, "")


def _config(options: JudgeModelOptions) -> Json | None:
    config = options.judge_model_config
    return None if config is None else config.model_dump(mode="json", exclude_none=True)


def _config_to_ask(question: Question) -> Json | None:
    """The config, with the form of the answer where Gemini takes one and the user asks for no other.

    It is left out of recordings: the question is the same without it.
    """
    config = _config(question.options)
    if question.schema is None or not _takes_schema(question.options.judge_model, config or {}):
        return config
    form = {"response_mime_type": "application/json", "response_schema": question.schema}
    return {**(config or {}), **form}


def _takes_schema(model: str, config: Json) -> bool:
    # Other models that google-genai reaches, such as Gemma, refuse JSON, and Gemini does beside tools.
    name = model.rpartition("/")[2]
    return name.startswith("gemini-") and not (_KEYS_OF_FORM & config.keys())


_KEYS_OF_FORM = {
    "response_mime_type",
    "response_schema",
    "response_json_schema",
    "response_modalities",
    "tools",
}


_ANY_KEY = "one masked secret is like another: store it masked in the case, too, to compare without it"


class Verdicts:
    """Computes the results of a run's cases; `hosts` compute custom metrics and ask judges."""

    def __init__(self, plan: RunPlan, hosts: ScoringHosts) -> None:
        self._plan = plan
        self._hosts = hosts
        self._digest = cache(
            partial(function_digest, agent_dir=plan.agent_dir, python=plan.agent.interpreter.executable)
        )
        self.judges = Judges(hosts, self.function_code)
        # By the paths of sets, the reasons of metrics that cannot be computed.
        self._withheld = {
            path: withheld_metrics(plan.checks, path)
            for path in {eval_set.case_path for eval_set in plan.sets}
        }
        # By the place of a case in the plan, while it is run.
        self._expected: dict[int, Expected] = {}
        # Of some case of each set, by the set's path.
        self._expected_of: dict[str, Expected] = {}
        # As `_withheld`, of scoring hosts on other machines.
        self._withheld_there: dict[str, dict[str, str]] = {}

    def function_code(self, model: str) -> Json:
        """The part of a request's config that changes with the code of a function in place of a model; empty
        for a model, and where the code is not found."""
        digest = self._digest(model) if ":" in model else ""
        return {FUNCTION_CODE: digest} if digest else {}

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
            self._withheld_there[path] = withheld_metrics(checked(self._plan, access).checks, path)
        return replace(expected, withheld=self._withheld_there[path])

    async def of(
        self, item: WorkItem, expected: Expected, ran: ExecutionResult, judge: CaseJudge | None
    ) -> RepeatResult:
        """The result of a run of a case, with the spending of the case and its judges."""
        text = case_text(expected.case)
        prices = self._plan.prices_of(item.set)
        calls, counts = calls_in(ran.events)
        spent = await spent_by(calls, prices, counts)
        verdict = await self._scored(expected, text, ran, judge, spent)
        if judge is not None:
            spent += await spent_by(judge.calls, prices)
            calls += judge.calls
        modes = modes_of(self._plan.settings.record, self._plan.settings.tools, item.set.config.evaltui.tools)
        verdict = replace(
            verdict,
            expects=fingerprint(text),
            given=agent_input_fingerprint(expected.case, modes),
            stopped=stop_reason(ran.events),
            spent=spent,
            served=served_in(calls),
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
        if expected.adk_verdicts and (failure := _response_to_other_id(expected.case, actual)) is not None:
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


def _response_to_other_id(case: EvalCase, actual: Sequence[Invocation]) -> ErrorInfo | None:
    """The error with which google-adk ends a case that responds to a call by a recorded id: it sends the
    response as it is, and each run has other ids. None where the ids are the same."""
    for number, (turn, done) in enumerate(zip(case.conversation or (), actual, strict=False), start=1):
        recorded, sent = (_response_ids(content) for content in (turn.user_content, done.user_content))
        if recorded != sent:
            message = f"turn {number} responds to a call of an earlier run, which google-adk cannot run"
            return ErrorInfo("ValueError", message, kind=ErrorKind.AGENT)
    return None


def _response_ids(content: Content) -> list[str | None]:
    return [part.function_response.id for part in content.parts or () if part.function_response]


async def score_custom(hosts: ScoringHosts, metric_input: MetricInput) -> MetricResult:
    """The verdict of a custom metric's function, or that of the threshold on its scores; an error of the
    function is an ERROR of this metric, with its traceback."""
    metric = metric_input.metric
    if metric.scores_turns and (problem := unpaired_reason(metric_input)):
        return metric_not_evaluated(metric, problem)
    if metric.definition is None:
        request = _request(metric_input)
    else:
        request = _request_of_instance(metric_input, metric.definition)
        if "response" not in request["instance"]:
            # agents-cli calls no metric without one.
            return metric_not_evaluated(metric, "no response text")
    try:
        answer = await hosts.answer("metrics", request)
    except (AgentBrokenError, RequestFailedError, HostLostError) as failed:
        error, threshold = failed.error.of_judge, effective_threshold(metric)
        return MetricResult(metric.metric_name, None, threshold, Status.ERROR, reason=str(error), error=error)
    if metric.definition is not None:
        return result_of_instance(metric_input, answer["result"], answer["where"])
    if metric.scores_turns:
        return result_of_turns(metric_input, answer["turns"])
    return result_of_evaluation(metric_input, answer["result"], answer["where"])


def _request(metric_input: MetricInput) -> Json:
    metric, expected, scenario = metric_input.metric, metric_input.expected, metric_input.scenario
    return {
        "op": "metric",
        "path": metric.custom_function_path,
        "metric": metric.model_dump(mode="json", exclude_unset=True, serialize_as_any=True),
        "scores_turns": metric.scores_turns,
        "actual": list(map(_dumped, metric_input.actual)),
        "expected": None if expected is None else list(map(_dumped, expected)),
        "scenario": None if scenario is None else _dumped(scenario),
        "without": sorted(metric_input.context),
    }


def _request_of_instance(metric_input: MetricInput, definition: DefinedMetric) -> Json:
    """The request of a function of agents-cli."""
    case = metric_input.case
    return {
        "op": "metric",
        "path": definition.place,
        "source": definition.source,
        "file": definition.file,
        "first_line": definition.first_line,
        "instance": {} if case is None else instance_of(case, metric_input.actual),
    }


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
