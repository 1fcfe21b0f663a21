"""Scoring a case: expected case, actual invocations and config give a result. Pure except for custom metrics.

`adk_verdicts` switches deliberate differences from google-adk off: then thoughts are scored,
`final_session_state` and the `evaltui` block are ignored, metrics without a verdict do not prevent passing,
and a case whose agent raised is FAILED.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from evaltui.core.compare.diff import diff_state, expectation_of, turn_result
from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.conversation.waiting import REQUESTS
from evaltui.core.matching.rules import REQUEST_ID_RULES, CaseRules, rules_of_case, with_patience
from evaltui.core.metrics.answer_rules import ANSWER_RULES, Answer, answer_rules_result
from evaltui.core.metrics.declaration import built_in
from evaltui.core.metrics.intermediate_match import align_texts, knows_texts
from evaltui.core.metrics.judges.judge import Judge, JudgedMetric
from evaltui.core.metrics.judges.prompt_templates import judged_by_template
from evaltui.core.metrics.judges.rubrics import rubrics_of_conversation
from evaltui.core.metrics.metric import CriterionError, MetricInput, informational, unpaired_reason
from evaltui.core.metrics.metric import not_evaluated as metric_not_evaluated
from evaltui.core.metrics.preflight import STATED_IN
from evaltui.core.metrics.registry import (
    is_known,
    lower_is_better,
    metrics_to_run,
    run_judged_metric,
    run_metric,
)
from evaltui.core.metrics.trajectory import compares_order, ignores_args
from evaltui.core.metrics.unknown import all_is_known, differing_turns, unknown_result
from evaltui.core.model.answer_rule import AnswerRule
from evaltui.core.model.config import EvalConfig, EvalMetric, EvaltuiBlock
from evaltui.core.model.errors import NOT_RECORDED
from evaltui.core.model.eval_set import (
    EvalCase,
    Invocation,
    full_text,
    responding_agent,
    scored_text,
    texts_before,
    tool_calls,
    unscored_texts,
)
from evaltui.core.model.events import ANSWERS, ARGUMENTS, EXPECTATION, TURN
from evaltui.core.model.outcome import (
    CaseResult,
    ErrorInfo,
    Expectation,
    InvocationScore,
    MetricResult,
    RepeatResult,
    StateDiff,
    Status,
    TurnResult,
    worst_status,
)
from evaltui.core.model.spending import Spending
from evaltui.core.model.text_diff import OUTPUT, AuthoredText, IntermediateDiff
from evaltui.core.model.validation import case_warnings
from evaltui.text.outcomes import CONTEXT_TURN

CustomScorer = Callable[[MetricInput], Awaitable[MetricResult]]
FINAL_STATE = "final_session_state"
"""The name of the metric of the final session state."""
# What stands of a metric that a judge decides where none is asked.
KnownJudgement = Callable[[MetricInput], MetricResult]


@dataclass(frozen=True)
class Expected:
    """A case with its set and config. `withheld` are metrics that cannot be computed here, with reasons; they
    are not tried."""

    eval_set_id: str
    case: EvalCase
    config: EvalConfig
    adk_verdicts: bool = False
    withheld: Mapping[str, str] = field(default_factory=dict)
    config_name: str = "the config"
    """Name of the config in error messages."""

    @cached_property
    def effective_config(self) -> EvalConfig:
        return config_as_adk(self.config) if self.adk_verdicts else self.config

    @cached_property
    def metrics(self) -> Sequence[EvalMetric]:
        """The metrics of the config, then the other efficiency metrics."""
        return metrics_to_run(self.effective_config)

    @cached_property
    def is_judged(self) -> bool:
        """Whether a judge affects the verdict."""
        return any(
            decides_by_judge(metric) and metric.metric_name not in self.withheld for metric in self.metrics
        )

    @cached_property
    def ignores_args(self) -> bool:
        """Whether calls are compared without their arguments."""
        return any(ignores_args(metric) for metric in self.metrics)

    @cached_property
    def takes_any_order(self) -> bool:
        """Whether calls are compared, and no metric compares their order."""
        orders = [compares_order(metric) for metric in self.metrics]
        return False in orders and True not in orders

    def of_case(self, case: EvalCase) -> Expected:
        """The expectation for another case of the set, with cached values of the config."""
        other = replace(self, case=case)
        vars(other).update({name: getattr(self, name) for name in _CONFIG_PROPERTIES})
        return other

    @property
    def score_thoughts(self) -> bool:
        return self.adk_verdicts or self.config.evaltui.thoughts == "score"

    def scored_turns(self, actual: Sequence[Invocation]) -> Sequence[Invocation]:
        """The actual turns with their scored responses."""
        return [turn.with_output for turn in actual] if self.score_outputs else actual

    @property
    def score_outputs(self) -> bool:
        return self.effective_config.evaltui.outputs == "score"

    @cached_property
    def rules(self) -> CaseRules:
        """The rules for arguments in this case."""
        own = () if self.adk_verdicts or not _requests(self.case) else REQUEST_ID_RULES
        rules = (*own, *self.effective_config.evaltui.rules)
        return rules_of_case(rules, self.eval_set_id, self.case.eval_id)

    @property
    def answer_rules(self) -> Sequence[AnswerRule]:
        """The checks of answers that hold in this case."""
        return self.effective_config.answer_rules(self.eval_set_id, self.case.eval_id)

    @property
    def unspecified(self) -> bool:
        """Whether absent responses and calls of the case are not checked."""
        return not self.adk_verdicts and not self.case.checks_unspecified

    def turns_marked(self, mode: str) -> frozenset[int]:
        config = self.effective_config
        if not config.evaltui.turns:
            return frozenset()
        turns = range(len(self.case.conversation or []))
        return frozenset(
            turn for turn in turns if config.turn_mode(self.eval_set_id, self.case.eval_id, turn) == mode
        )


_CONFIG_PROPERTIES = ("effective_config", "metrics", "is_judged", "ignores_args", "takes_any_order")


def _requests(case: EvalCase) -> bool:
    """Whether the case expects a request to a person."""
    turns = case.conversation or ()
    return any(call.name in REQUESTS for turn in turns for call in tool_calls(turn.intermediate_data))


def config_as_adk(config: EvalConfig) -> EvalConfig:
    """The config reduced to the settings that ADK reads."""
    return config.model_copy(update={"evaltui": EvaltuiBlock()})


async def score_case(
    expected: EvalCase,
    actual: Sequence[Invocation],
    config: EvalConfig,
    *,
    eval_set_id: str = "",
    final_state: Mapping[str, Any] | None = None,
    adk_verdicts: bool = False,
) -> CaseResult:
    """Scores the actual turns of a case.

    `final_state` is the session state after the last turn. Custom metrics are NOT_EVALUATED: only `evaluate`
    runs the user's code.
    """
    expectation = Expected(eval_set_id, expected, config, adk_verdicts)
    repeat = await score_repeat(expectation, actual, final_state=final_state, custom=None)
    return case_over_repeats(expectation.eval_set_id, expected.eval_id, [repeat], "all")


async def score_repeat(
    expected: Expected,
    actual: Sequence[Invocation],
    *,
    final_state: Mapping[str, Any] | None,
    custom: CustomScorer | None,
    judge: Judge | None = None,
    judged: KnownJudgement = run_metric,
    seconds: float = 0.0,
    spent: Spending | None = None,
) -> RepeatResult:
    """The result of a run of a case.

    Without a `judge`, the results of judged metrics come from `judged`, else they are NOT_EVALUATED.
    """
    actual = expected.scored_turns(actual)
    held = _known_turns(actual)
    metrics = await metric_results(
        expected,
        actual,
        final_state=final_state,
        custom=custom,
        judge=judge,
        judged=judged,
        spent=spent,
    )
    state: tuple[StateDiff, ...] = ()
    if final_state is not None and _compares_state(expected) and not differing_turns(actual):
        state = diff_state(expected.case.final_session_state or {}, dict(final_state))
    return RepeatResult(
        status=status_of(metrics, expected),
        metrics=tuple(metrics),
        actual=_without_app_details(actual),
        turns=turn_results(expected, held, metrics),
        state=state,
        seconds=seconds,
        final_state=None if final_state is None else dict(final_state),
    )


async def metric_results(
    expected: Expected,
    actual: Sequence[Invocation],
    *,
    final_state: Mapping[str, Any] | None,
    custom: CustomScorer | None = None,
    judge: Judge | None = None,
    judged: KnownJudgement = run_metric,
    spent: Spending | None = None,
    only: Container[str] | None = None,
) -> list[MetricResult]:
    """The results of the metrics of a case for its `scored_turns`, as in `score_repeat`.

    With `only`, those of these names, without what else keeps a case from passing.
    """
    held = _known_turns(actual)
    rules = with_patience(expected.rules, expected.config_name)
    is_all_known = all_is_known(held)
    differing = differing_turns(actual)

    metrics: list[MetricResult] = []
    for metric in expected.metrics:
        if only is not None and metric.metric_name not in only:
            continue
        reason = _withheld(expected, metric)
        if reason is None and differing and _is_of_conversation(metric):
            reason = f"the conversation is another one: {differing}"
        inputs = metric_input(expected, metric, held, rules, spent)
        if reason is not None:
            result = metric_not_evaluated(metric, reason)
        else:
            unknown = None if is_all_known else unknown_result(inputs)
            result = unknown if unknown is not None else await _metric_result(inputs, custom, judge, judged)
            result = informational(result) if metric.is_informational else result
        is_unchecked = (reason is None and _checks_no_calls(inputs)) or _leaves_unstated(inputs)
        is_optional = result.is_optional or is_unchecked or _may_be_absent(metric, result, expected)
        metrics.append(replace(result, is_optional=is_optional, lower_is_better=lower_is_better(metric)))
    if _compares_state(expected) and (only is None or FINAL_STATE in only):
        why = "not compared: the conversation is another one" if differing else ""
        why = "final session state is unknown" if final_state is None else why
        state = () if why else diff_state(expected.case.final_session_state or {}, dict(final_state or {}))
        metrics.append(_state_result(state, why))
    rules_of_answers = expected.answer_rules
    if rules_of_answers and (only is None or ANSWER_RULES in only):
        answers = list(_answers(expected, held))
        if differing:
            answers = [answer._replace(is_known=False) for answer in answers]
        turns = len(expected.case.conversation or ())
        metrics.append(answer_rules_result(rules_of_answers, answers, turns))
    if only is None:
        metrics += _reservations(expected)
    if differing:
        metrics.append(MetricResult(_CONVERSATION, None, None, Status.NOT_EVALUATED, reason=differing))
    return metrics


def _known_turns(actual: Sequence[Invocation]) -> list[Invocation]:
    return [turn for turn in actual if EXPECTATION not in turn.untold]


def _compares_state(expected: Expected) -> bool:
    return bool(expected.case.final_session_state) and not expected.adk_verdicts


_CONVERSATION = "conversation"
_LIVE_REASON = "live (audio) runs are not done by this version of evaltui; the case was run with text"


def not_evaluated(expected: Expected, name: str, reason: str) -> RepeatResult:
    """The result of a case that cannot be run, with the reason in place of a metric."""
    result = MetricResult(name, None, None, Status.NOT_EVALUATED, reason=reason)
    return RepeatResult(Status.NOT_EVALUATED, metrics=(result,))


def failed_repeat(
    expected: Expected, error: ErrorInfo, actual: Sequence[Invocation], seconds: float
) -> RepeatResult:
    """The result of a run with an agent error; earlier turns are kept. google-adk makes it FAILED."""
    actual = expected.scored_turns(actual)
    failed_as_adk = expected.adk_verdicts and error.type != NOT_RECORDED
    return RepeatResult(
        Status.FAILED if failed_as_adk else Status.ERROR,
        error=error,
        actual=_without_app_details(actual),
        turns=turn_results(expected, actual, ()),
        seconds=seconds,
    )


def _without_app_details(actual: Sequence[Invocation]) -> tuple[Invocation, ...]:
    # What the agents were told is there for the metrics only, and is the same in case after case.
    return tuple(
        turn.model_copy(update={"app_details": None}) if turn.app_details is not None else turn
        for turn in actual
    )


def reads_app_details(expected: Expected) -> bool:
    """Whether a metric needs the instructions and tools of the agents."""
    return expected.is_judged or any(metric.custom_function_path is not None for metric in expected.metrics)


def _checks_no_calls(inputs: MetricInput) -> bool:
    """Whether a metric only compares calls, which are unchecked in every scored turn."""
    info = built_in(inputs.metric)
    if info is None or info.judged is not None:
        return False
    scored = set(range(len(inputs.expected or ()))) - inputs.context
    return info.reads_calls and bool(scored) and scored <= inputs.skip_calls and not unpaired_reason(inputs)


def _leaves_unstated(inputs: MetricInput) -> bool:
    """Whether a metric only compares or judges what a case leaves out that need not state everything.

    Google's metrics of an `eval_config.yaml` judge more, such as rubrics that they write themselves.
    """
    info = built_in(inputs.metric)
    if not inputs.unspecified or info is None or inputs.metric.definition is not None:
        return False
    turns = inputs.expected or ()
    if info.rubric_type:
        try:
            return not rubrics_of_conversation(inputs, range(len(turns)))
        except CriterionError:
            return False
    name = STATED_IN.get(info.compares)
    return name is not None and all(
        getattr(turn, name) is None for number, turn in enumerate(turns) if number not in inputs.context
    )


def _withheld(expected: Expected, metric: EvalMetric) -> str | None:
    """Why a metric is not computed; None where it is."""
    info = built_in(metric)
    if expected.adk_verdicts and info is not None and info.source == "evaltui":
        return "unknown to google-adk, so --adk-verdicts passes it over"
    return expected.withheld.get(metric.metric_name)


def _is_of_conversation(metric: EvalMetric) -> bool:
    """Whether a built-in metric needs all turns at once, because a judge also sees earlier turns."""
    info = built_in(metric)
    return info is not None and (info.judged is not None or info.lower_is_better)


def decides_by_judge(metric: EvalMetric) -> bool:
    """Whether a metric asks a judge."""
    return _judged_metric(metric) is not None


def _judged_metric(metric: EvalMetric) -> JudgedMetric | None:
    if metric.prompt_template:
        return judged_by_template
    info = built_in(metric)
    return info.judged if info is not None and not metric.not_evaluated else None


def metric_input(
    expected: Expected,
    metric: EvalMetric,
    actual: Sequence[Invocation],
    rules: CaseRules | None = None,
    spent: Spending | None = None,
) -> MetricInput:
    """The input of a metric for a case; `rules` are those for this scoring."""
    return MetricInput(
        metric=metric,
        expected=expected.case.conversation,
        actual=actual,
        thoughts=expected.score_thoughts,
        outputs=expected.score_outputs,
        skip_calls=expected.turns_marked("skip"),
        unspecified=expected.unspecified,
        context=expected.turns_marked("context"),
        rules=with_patience(expected.rules, expected.config_name) if rules is None else rules,
        case_rubrics=expected.case.rubrics or (),
        scenario=expected.case.conversation_scenario,
        case=expected.case if metric.definition is not None else None,
        as_adk=expected.adk_verdicts,
        spent=spent,
    )


async def _metric_result(
    inputs: MetricInput, custom: CustomScorer | None, judge: Judge | None, judged: KnownJudgement
) -> MetricResult:
    metric = inputs.metric
    if (judged_metric := _judged_metric(metric)) is not None:
        return judged(inputs) if judge is None else await run_judged_metric(inputs, judged_metric, judge)
    if metric.custom_function_path is None:
        return run_metric(inputs)
    if custom is None:
        reason = "custom metrics run in the agent's own process: use evaluate()"
        return MetricResult(metric.metric_name, None, metric.threshold, Status.NOT_EVALUATED, reason=reason)
    return await custom(inputs)


def _answers(expected: Expected, actual: Sequence[Invocation]) -> Iterator[Answer]:
    """The response of each turn that was run beside the expected one."""
    thoughts, context = expected.score_thoughts, expected.turns_marked("context")
    conversation = expected.case.conversation or ()
    for number, turn in enumerate(actual):
        want = conversation[number] if number < len(conversation) else None
        is_expected = want is not None and want.final_response is not None
        yield Answer(
            scored_text(turn, thoughts=thoughts),
            scored_text(want, thoughts=thoughts) if want is not None and is_expected else None,
            CONTEXT_TURN if number in context else "",
            not {TURN, ANSWERS} & {*turn.untold},
            responding_agent(turn, thoughts=thoughts),
        )


def _state_result(state: Sequence[StateDiff], not_compared: str) -> MetricResult:
    if not_compared:
        return MetricResult(FINAL_STATE, None, None, Status.NOT_EVALUATED, reason=not_compared)
    if not state:
        return MetricResult(FINAL_STATE, 1.0, 1.0, Status.PASSED, reason="all expected keys are equal")
    keys = ", ".join(difference.path for difference in state)
    return MetricResult(FINAL_STATE, 0.0, 1.0, Status.FAILED, reason=f"keys differ: {keys}")


def _reservations(expected: Expected) -> list[MetricResult]:
    """Metric results that prevent passing although nothing failed."""
    if expected.adk_verdicts:
        return []
    reasons = [("eval_case", str(problem)) for problem in case_warnings(expected.case)]
    if expected.config.live_model_config is not None:
        reasons.append(("live_model_config", _LIVE_REASON))
    return [MetricResult(name, None, None, Status.NOT_EVALUATED, reason=reason) for name, reason in reasons]


def _may_be_absent(metric: EvalMetric, result: MetricResult, expected: Expected) -> bool:
    is_optional = metric.metric_name in expected.effective_config.evaltui.optional
    # One that nobody knows would never be evaluated, wherever it is run.
    return is_optional and is_known(metric) and not _lacks_votes(result)


def _lacks_votes(metric: MetricResult) -> bool:
    """Whether a judge was asked and gave no verdict: the metric can run here."""
    return any(
        judgement.votes and judgement.score is None
        for turn in metric.per_invocation
        for judgement in turn.judgements
    )


# Errors of custom metrics that end a run of google-adk 2.13 without a verdict: a result that breaks the
# contract, and the end of the process.
_ENDS_ADK = ("CustomMetricError", "SystemExit", "AgentProcessError")


def status_of(metrics: Iterable[MetricResult], expected: Expected) -> Status:
    """The status of a case by the results of its metrics."""
    return worst_status(metric.status for metric in metrics if not is_passed_over(metric, expected))


def is_passed_over(metric: MetricResult, expected: Expected) -> bool:
    """Whether the status of a case ignores the result of a metric."""
    if expected.adk_verdicts and metric.name != _CONVERSATION:
        if metric.error is not None and metric.error.type in _ENDS_ADK:
            return False
        # As google-adk 2.13: each other metric without a verdict.
        return metric.status not in (Status.PASSED, Status.FAILED)
    return metric.is_passed_over


def turn_results(
    expected: Expected, actual: Sequence[Invocation], metrics: Sequence[MetricResult]
) -> tuple[TurnResult, ...]:
    """The turns with expected and actual side; turns that were not reached have no actual side."""
    conversation = expected.case.conversation
    if conversation is None:
        return tuple(_simulated_turn(expected, did) for did in actual)
    scores = _turn_scores(metrics)
    rules = with_patience(expected.rules)
    turns = []
    for number, want in enumerate(conversation):
        did = actual[number] if number < len(actual) else None
        did = None if did is None or TURN in did.untold else did
        is_unknown = did is not None and ANSWERS in did.untold
        thoughts = expected.score_thoughts
        wanted_text = scored_text(want, thoughts=thoughts)
        actual_text = scored_text(did, thoughts=thoughts) if did else None
        turns.append(
            turn_result(
                want,
                did,
                expectation=_expectation(expected, number, want, did),
                expected_text=wanted_text or None,
                # Most answers are those expected: of thousands of results, each text is in memory once.
                actual_text=None
                if is_unknown
                else (wanted_text if actual_text == wanted_text else actual_text),
                response_score=scores[number].score if number < len(scores) else None,
                unscored=_unscored_texts(did, thoughts=thoughts) if did else (),
                intermediate=_intermediate(want, did, thoughts=thoughts),
                ignore_args=expected.ignores_args or (did is not None and ARGUMENTS in did.untold),
                any_order=expected.takes_any_order,
                rules=rules,
                leaves_response=expected.unspecified and want.final_response is None,
                has_unknown_response=is_unknown,
            )
        )
    return tuple(turns)


def _unscored_texts(did: Invocation, *, thoughts: bool) -> tuple[AuthoredText, ...]:
    texts = unscored_texts(did, thoughts=thoughts)
    return texts if did.output is None else (*texts, AuthoredText(OUTPUT, did.output))


def _intermediate(want: Invocation, did: Invocation | None, *, thoughts: bool) -> Sequence[IntermediateDiff]:
    """The texts before the answer side by side, if some are expected and the actual ones are known."""
    expected_texts = texts_before(want, thoughts=thoughts)
    if not expected_texts or did is None or not knows_texts(did):
        return ()
    return align_texts(expected_texts, texts_before(did, thoughts=thoughts))


def _simulated_turn(expected: Expected, did: Invocation) -> TurnResult:
    """A turn with a simulated user, whose message was not known before."""
    thoughts = expected.score_thoughts
    turn = turn_result(
        None,
        did,
        expectation="simulated",
        expected_text=None,
        actual_text=scored_text(did, thoughts=thoughts),
        unscored=_unscored_texts(did, thoughts=thoughts),
    )
    return replace(turn, user=full_text(did.user_content))


def _turn_scores(metrics: Sequence[MetricResult]) -> tuple[InvocationScore, ...]:
    named = (m.per_invocation for m in metrics if m.name == "response_match_score")
    return next(named, ())


def _expectation(
    expected: Expected, turn: int, invocation: Invocation, did: Invocation | None
) -> Expectation:
    if turn in expected.turns_marked("context"):
        return "context"
    if turn in expected.turns_marked("skip"):
        return "not checked"
    if expected.unspecified and invocation.intermediate_data is None:
        return "not checked"
    if did is not None and did.intermediate_data is None:
        return "unknown"
    return expectation_of(invocation)
