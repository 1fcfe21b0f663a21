"""Scoring one result against the current expectations, without an agent or model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome

if TYPE_CHECKING:
    from evaltui.core.metrics.metric import MetricInput
    from evaltui.core.model.config import EvalConfig
    from evaltui.core.model.eval_set import Invocation
    from evaltui.core.model.events import Event
    from evaltui.core.model.outcome import CaseResult, MetricResult, RepeatResult
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.core.scoring import CustomScorer, Expected, KnownJudgement
    from evaltui.core.secrets import Secrets

Events = Mapping[int, Sequence["Event"]]
Actual = Mapping[int, tuple["Invocation", ...]]


def actual_of(events: Events) -> Actual:
    """The agent's turns in each repeat, as invocations."""
    from evaltui.core.conversation.invocations import invocations_from_events

    return {number: tuple(invocations_from_events(some, app_details=True)) for number, some in events.items()}


_STALE = "stale score; run again"


async def score_again(
    scored: CaseOutcome,
    actual: Actual,
    stored: StoredCase,
    config: EvalConfig,
    secrets: Secrets,
    eval_set_id: str = "",
) -> CaseOutcome:
    """Scores the events of a run by another case or config; errors stay the same.

    `eval_set_id` is the new id of a renamed set, which rules and marks of the config use. Secrets are masked
    in logs, so a case with secrets is compared with them masked. Where the secrets decide the outcome, the
    last result stays and is undecided.
    """
    from evaltui.core.scoring import Expected

    set_id_then = (scored.logged or scored.ref).figures.eval_set_id
    eval_set_id = eval_set_id or scored.figures.eval_set_id
    ran = scored.ran or (scored.stored, scored.config)
    before = partial(_expected_in_run, set_id_then, *ran, secrets)
    again = partial(_scored_by, scored, actual, before)
    masked = secrets if needs_masking(stored, secrets) else None
    result = await again(_expected(eval_set_id, stored, config, secrets), masked)
    new = replace(
        scored,
        ref=ResultInMemory.of(result),
        stored=stored,
        config=config,
        ran=ran,
        unscored=False,
        undecided=_has_stale_scores(result),
    )
    if not secrets.may_be_in(stored.text) or _is_known(new, scored, secrets):
        return new
    by_secrets = await again(Expected(eval_set_id, stored.model(), config), masked)
    if by_secrets.status is result.status:
        return new
    # Without them, one key is like another: it may have been the wrong one.
    return replace(new, ref=scored.ref, undecided=True)


def _has_stale_scores(result: CaseResult) -> bool:
    """Whether a deciding metric would get another input than in the run."""
    from evaltui.core.model.outcome import Status

    return any(
        metric.reason.startswith(_STALE) and metric.status is not Status.INFORMATIONAL
        for repeat in result.repeats
        for metric in repeat.metrics
    )


def _is_known(new: CaseOutcome, last: CaseOutcome, secrets: Secrets) -> bool:
    """Whether a result that depends on secrets is valid: it equals the one of the run, with the same
    secrets."""
    if last.undecided or last.unscored or new.result.status is not last.result.status:
        return False
    return secrets.hidden_in(new.stored.text) == secrets.hidden_in(last.stored.text)


async def _scored_by(
    scored: CaseOutcome,
    actual: Actual,
    before: Callable[[], Expected | None],
    expected: Expected,
    secrets: Secrets | None,
) -> CaseResult:
    """The result of a case, for events without `secrets`."""
    from evaltui.core.compare.repeats import case_over_repeats
    from evaltui.core.scoring import failed_repeat, score_repeat

    repeats: list[RepeatResult] = []
    for number, repeat in enumerate(scored.result.repeats):
        done, state = actual.get(number, ()), repeat.final_state
        if secrets is not None:
            done, state = secrets.masked(done), secrets.masked(state)
        if repeat.error is not None:
            new = failed_repeat(expected, repeat.error, done, repeat.seconds)
        else:
            new = await score_repeat(
                expected,
                done,
                final_state=state,
                custom=_custom_scorer(repeat, before),
                judged=_judge_scorer(repeat, before),
                seconds=repeat.seconds,
                spent=repeat.spent,
            )
        repeats.append(replace(new, actual=(), stopped=repeat.stopped, spent=repeat.spent))
    pass_if = expected.config.evaltui.repeats.pass_if if scored.pass_if is None else scored.pass_if
    eval_id = expected.case.eval_id
    decision = scored.result.decision
    return case_over_repeats(
        expected.eval_set_id,
        eval_id,
        repeats,
        pass_if,
        scored.result.path,
        decision.confidence if decision else None,
    )


def needs_masking(stored: StoredCase, secrets: Secrets) -> bool:
    """Whether a case has secrets, which a log has not, or was stored with masked secrets itself."""
    text = stored.text
    return secrets.may_be_in(text) or secrets.has_marks(text)


def _expected(eval_set_id: str, stored: StoredCase, config: EvalConfig, secrets: Secrets) -> Expected:
    from evaltui.core.scoring import Expected

    if not needs_masking(stored, secrets):
        return Expected(eval_set_id, stored.model(), config)
    return Expected(eval_set_id, secrets.masked(stored.model()), secrets.masked(config))


def _expected_in_run(
    eval_set_id: str, stored: StoredCase | None, config: EvalConfig | None, secrets: Secrets
) -> Expected | None:
    """The expectation in the run; None where the log does not have all of it."""
    if stored is None or config is None:
        return None
    return _expected(eval_set_id, stored, config, secrets)


def _custom_scorer(repeat: RepeatResult, before: Callable[[], Expected | None]) -> CustomScorer:
    """A scorer for custom metrics: they are the user's code and run with the agent only, so their last result
    is kept, with the current threshold. A remark is added where their input differs from that in the run
    (`before`)."""

    async def score(metric_input: MetricInput) -> MetricResult:
        from evaltui.core.metrics.custom import held_against
        from evaltui.core.model.outcome import MetricResult, Status

        metric = metric_input.metric
        last = next((result for result in repeat.metrics if result.name == metric.metric_name), None)
        if last is None:
            why = "computed when the case runs"
            return MetricResult(metric.metric_name, None, metric.threshold, Status.NOT_EVALUATED, reason=why)
        if metric.scores_turns:
            last = held_against(last, metric)
        is_same = last.threshold == metric.threshold and _is_same_input(metric_input, before())
        return _with_remark(last, _STALE, is_same)

    return score


def _judge_scorer(repeat: RepeatResult, before: Callable[[], Expected | None]) -> KnownJudgement:
    """A scorer for judged metrics: judges are called only when a case runs, so their last result is kept,
    with the current threshold. A remark is added where their input differs from that in the run (`before`).
    """
    from evaltui.core.metrics.custom import held_against
    from evaltui.core.metrics.metric import effective_threshold
    from evaltui.core.metrics.registry import run_metric

    def judged(metric_input: MetricInput) -> MetricResult:
        last = next(
            (result for result in repeat.metrics if result.name == metric_input.metric.metric_name), None
        )
        if last is None:
            return run_metric(metric_input)
        if last.score is not None and last.threshold != effective_threshold(metric_input.metric) is not None:
            last = held_against(last, metric_input.metric)
        is_same = _is_same_input(metric_input, before())
        if last.judge is None and not is_same:
            return run_metric(metric_input)
        return _with_remark(last, _STALE, is_same)

    return judged


def _with_remark(result: MetricResult, remark: str, is_same: bool) -> MetricResult:
    """A result from before, with a remark at its reason unless its input is the same."""
    reason = result.reason.removeprefix(remark).removeprefix("; ")
    return replace(result, reason=reason if is_same else "; ".join(filter(None, (remark, reason))))


def _is_same_input(scored: MetricInput, before: Expected | None) -> bool:
    from evaltui.core.scoring import metric_input

    return before is not None and any(
        _visible_input(metric_input(before, metric, scored.actual)) == _visible_input(scored)
        for metric in before.config.metrics()
        if metric.metric_name == scored.metric.metric_name
    )


def _visible_input(scored: MetricInput) -> MetricInput:
    """The part of the input that a judge sees: without thresholds, rules for arguments, and costs."""
    metric = scored.metric
    without: dict[str, object] = {"threshold": None, "lower_is_better": False}
    criterion = metric.criterion and metric.criterion.model_copy(update=without)
    plain = metric.model_copy(update={"threshold": None, "criterion": criterion})
    return replace(scored, metric=plain, rules={}, skip_calls=frozenset(), spent=None)
