"""Scoring earlier results against the current case or its draft, without an agent or model.

Importing this loads the models.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.metrics.custom import rejudge
from evaltui.core.metrics.metric import MetricInput, effective_threshold
from evaltui.core.metrics.registry import by_open_judgements, run_metric
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import CaseResult, MetricResult, RepeatResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.scoring import Expected, failed_repeat, metric_input, score_repeat
from evaltui.core.secrets import Secrets
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.workbench.messages import DraftChanged, Messages
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef, SameConfig

Events = Mapping[int, Sequence[Event]]
Actual = Mapping[int, tuple[Invocation, ...]]

# Of many cases, results are shown in about so many steps: what shows them may go through all cases.
_BATCH_SIZE = 50


class _Scoring(NamedTuple):
    """A scheduled scoring: the result, and the case, the config and the set id to score it by."""

    scored: CaseOutcome
    stored: StoredCase
    config: EvalConfig
    eval_set_id: str


class Rescoring:
    """Scores results again in the background.

    `events_of` returns the events of a case, by repeat; `done` is called with new results, None where the
    events are unknown. `secrets` are masked where events come from a log. Only the last scheduled scoring of
    a case is done; a result that is already scored is not scored again.
    """

    def __init__(
        self,
        events_of: Callable[[CaseId], Events | None],
        done: Callable[[Sequence[tuple[CaseId, CaseOutcome | None]]], None],
        secrets: Callable[[], Secrets],
    ) -> None:
        self._events_of = events_of
        self._secrets = secrets
        self._done = done
        self._waiting: dict[CaseId, _Scoring] = {}
        # The case that is being scored, None where its result is not wanted any more.
        self._scoring: CaseId | None = None
        # New results that are not shown yet; None where nobody knows what happened.
        self._scored: dict[CaseId, CaseOutcome | None] = {}
        self._task: asyncio.Task[None] | None = None
        self._actual: tuple[CaseId, RunRef, Actual] | None = None

    def score(
        self,
        results: Iterable[tuple[CaseId, CaseOutcome]],
        opened: EvalSetFile,
        config: EvalConfig,
        draft: StoredCase | None = None,
    ) -> None:
        """Schedules the scoring of results of a set's cases, replacing earlier schedules for them; results
        that would not change are skipped. Results of one case are scored by its draft."""
        is_same, eval_set_id = SameConfig(config), opened.eval_set_id
        for case, scored in results:
            self._waiting.pop(case, None)
            self._scored.pop(case, None)
            if self._scoring == case:
                self._scoring = None
            stored = draft or opened.case(case.eval_id)
            is_scored = not scored.unscored and is_same(scored.config)
            if stored is not None and not (is_scored and _is_case_of(scored, stored, eval_set_id)):
                self._waiting[case] = _Scoring(scored, stored, config, eval_set_id)
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._work())

    def stop(self) -> None:
        """Drops all scheduled scorings, because other results are shown."""
        self._waiting.clear()
        self._scored.clear()
        self._scoring = None

    def is_waiting(self, case: CaseId) -> bool:
        """Whether a case is scheduled."""
        return case in self._waiting or case in self._scored or self._scoring == case

    async def finish(self) -> None:
        """Waits until all scheduled results have been scored."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        while self._waiting:
            self._scoring = case = next(iter(self._waiting))
            scored, stored, config, eval_set_id = self._waiting.pop(case)
            actual, new = await self._actual_of(case, scored), None
            if actual is not None:
                secrets = self._secrets()
                new = await score_again(scored, actual, stored, config, secrets, eval_set_id)
            is_wanted, self._scoring = self._scoring == case, None
            if is_wanted:
                self._scored[case] = new
            if self._scored and len(self._scored) * _BATCH_SIZE >= len(self._waiting):
                outcomes, self._scored = [*self._scored.items()], {}
                self._done(outcomes)
            # Keys come first.
            await asyncio.sleep(0)

    async def _actual_of(self, case: CaseId, scored: CaseOutcome) -> Actual | None:
        """The agent's turns, as invocations; cached for the last case."""
        if self._actual is None or self._actual[:2] != (case, scored.run):
            # A log may be long, and there may be thousands of cases.
            actual = await asyncio.to_thread(self._read, case)
            if actual is None:
                return None
            self._actual = case, scored.run, actual
        return self._actual[2]

    def _read(self, case: CaseId) -> Actual | None:
        """In a thread: the invocations; None where no events are stored."""
        events = self._events_of(case)
        return None if events is None else actual_of(events)


def _is_case_of(scored: CaseOutcome, stored: StoredCase, eval_set_id: str) -> bool:
    """Whether this case scored a result, also if its file was read again since."""
    if (scored.unscored and scored.ran is not None) or scored.figures.eval_set_id != eval_set_id:
        return False
    return stored is scored.stored or stored.says_the_same(scored.stored)


class DraftResult:
    """The result of a case by its draft, scored in the background. `events_of` and `secrets` are those of
    `Rescoring`."""

    def __init__(
        self,
        events_of: Callable[[CaseId], Events | None],
        messages: Messages,
        secrets: Callable[[], Secrets],
    ) -> None:
        self.case: CaseId | None = None
        """The case of the draft; None without one."""
        self.draft: StoredCase | None = None
        """The edited case."""
        self._result: CaseOutcome | None = None
        self._messages = messages
        self._rescoring = Rescoring(events_of, self._scored, secrets)

    @property
    def is_waiting(self) -> bool:
        """Whether the draft is about to be scored."""
        return self.case is not None and self._rescoring.is_waiting(self.case)

    def of(self, case: CaseId, scored: CaseOutcome) -> CaseOutcome | None:
        """The result of a case by its draft; None where the draft has no effect on it."""
        result = self._result if case == self.case else None
        return result if result is not None and result.run == scored.run else None

    def score(self, scored: CaseOutcome | None, opened: EvalSetFile | None) -> None:
        """Scores a result of the case by the draft; `opened` is None where the draft cannot be scored."""
        self._rescoring.stop()
        if self.case and self.draft and scored and opened and opened.config:
            self._rescoring.score([(self.case, scored)], opened, opened.config.config, self.draft)
        if self._result is not None and not self.is_waiting:
            self._result = None
            self._messages.publish(DraftChanged())

    def _scored(self, outcomes: Sequence[tuple[CaseId, CaseOutcome | None]]) -> None:
        for _, self._result in outcomes:
            self._messages.publish(DraftChanged())

    async def finish(self) -> None:
        """Waits until the draft has been scored."""
        await self._rescoring.finish()


# One result


def actual_of(events: Events) -> Actual:
    """The agent's turns in each repeat, as invocations."""
    return {number: tuple(invocations_from_events(some, app_details=True)) for number, some in events.items()}


_STALE_REMARK = "stale score; run again"


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
    set_id_then = (scored.logged or scored.ref).figures.eval_set_id
    eval_set_id = eval_set_id or scored.figures.eval_set_id
    case_then, config_then = ran = scored.ran or (scored.stored, scored.config)

    @cache
    def before() -> Expected | None:
        """The expectation in the run; None where the log does not have all of it."""
        if case_then is None or config_then is None:
            return None
        return _make_expectation(set_id_then, case_then, config_then, secrets)

    masked = secrets if needs_masking(stored, secrets) else None
    expected = _make_expectation(eval_set_id, stored, config, secrets)
    result = await _score_by(scored, actual, before, expected, masked)
    new = replace(
        scored,
        ref=ResultInMemory.of(result),
        stored=stored,
        config=config,
        ran=ran,
        unscored=False,
        undecided=_has_stale_scores(result),
        rescored_at=time.time(),
    )
    if not secrets.may_hold_secret(stored.text) or _is_known(new, scored, secrets):
        return new
    unmasked = Expected(eval_set_id, stored.model(), config)
    by_secrets = await _score_by(scored, actual, before, unmasked, masked)
    if by_secrets.status is result.status:
        return new
    # Without them, one key is like another: it may have been the wrong one.
    return replace(new, ref=scored.ref, undecided=True)


def _has_stale_scores(result: CaseResult) -> bool:
    """Whether a deciding metric would get another input than in the run."""
    return any(
        metric.reason.startswith(_STALE_REMARK) and metric.status is not Status.INFORMATIONAL
        for repeat in result.repeats
        for metric in repeat.metrics
    )


def _is_known(new: CaseOutcome, last: CaseOutcome, secrets: Secrets) -> bool:
    """Whether a result that depends on secrets is valid: it equals the one of the run, with the same
    secrets."""
    if last.undecided or last.unscored or new.result.status is not last.result.status:
        return False
    return secrets.secrets_in(new.stored.text) == secrets.secrets_in(last.stored.text)


async def _score_by(
    scored: CaseOutcome,
    actual: Actual,
    before: Callable[[], Expected | None],
    expected: Expected,
    secrets: Secrets | None,
) -> CaseResult:
    """The result of a case, for events without `secrets`."""
    repeats: list[RepeatResult] = []
    for number, repeat in enumerate(scored.result.repeats):
        done, state = actual.get(number, ()), repeat.final_state
        if secrets is not None:
            done, state = secrets.masked(done), secrets.masked(state)
        if repeat.error is not None:
            new = failed_repeat(expected, repeat.error, done, repeat.seconds)
        else:
            last = _LastScores(repeat, before)
            new = await score_repeat(
                expected,
                done,
                final_state=state,
                custom=last.custom,
                judged=last.judged,
                seconds=repeat.seconds,
                spent=repeat.spent,
            )
        repeats.append(replace(new, actual=(), stopped=repeat.stopped, spent=repeat.spent))
    pass_if = expected.config.evaltui.repeats.pass_if if scored.pass_if is None else scored.pass_if
    decision = scored.result.decision
    return case_over_repeats(
        expected.eval_set_id,
        expected.case.eval_id,
        repeats,
        pass_if,
        scored.result.path,
        decision.confidence if decision else None,
    )


def needs_masking(stored: StoredCase, secrets: Secrets) -> bool:
    """Whether a case has secrets, which a log has not, or was stored with masked secrets itself."""
    text = stored.text
    return secrets.may_hold_secret(text) or secrets.has_marks(text)


def _make_expectation(eval_set_id: str, stored: StoredCase, config: EvalConfig, secrets: Secrets) -> Expected:
    if not needs_masking(stored, secrets):
        return Expected(eval_set_id, stored.model(), config)
    return Expected(eval_set_id, secrets.masked(stored.model()), secrets.masked(config))


class _LastScores(NamedTuple):
    """The scores of custom and judged metrics in a run. Custom metrics are the user's code, and judges are
    models: both run only when the case does, so their last result is kept, with the current threshold. A
    remark is added where their input differs from that in the run (`before`)."""

    repeat: RepeatResult
    before: Callable[[], Expected | None]

    def _last(self, scored: MetricInput) -> MetricResult | None:
        name = scored.metric.metric_name
        last = next((result for result in self.repeat.metrics if result.name == name), None)
        return None if last is None else replace(last, is_optional=False)

    async def custom(self, scored: MetricInput) -> MetricResult:
        metric, last = scored.metric, self._last(scored)
        if last is None:
            why = "computed when the case runs"
            return MetricResult(metric.metric_name, None, metric.threshold, Status.NOT_EVALUATED, reason=why)
        gives_score = metric.scores_turns or metric.definition is not None
        last = rejudge(last, metric) if gives_score else last
        is_same_verdict = gives_score or last.threshold == metric.threshold
        is_same = is_same_verdict and _is_same_input(scored, self.before())
        return _with_remark(last, is_same=is_same)

    def judged(self, scored: MetricInput) -> MetricResult:
        last = self._last(scored)
        if last is None:
            return run_metric(scored)
        threshold = effective_threshold(scored.metric)
        limits = (last.threshold, last.lower_is_better), (threshold, scored.metric.lower_is_better)
        if threshold is not None and limits[0] != limits[1]:
            last = by_open_judgements(rejudge(last, scored.metric))
        is_same = _is_same_input(scored, self.before())
        if last.judge is None and not is_same:
            return run_metric(scored)
        return _with_remark(last, is_same=is_same)


def _with_remark(result: MetricResult, *, is_same: bool) -> MetricResult:
    """A result from before, with a remark at its reason unless its input is the same."""
    reason = result.reason.removeprefix(_STALE_REMARK).removeprefix("; ")
    return replace(result, reason=reason if is_same else "; ".join(filter(None, (_STALE_REMARK, reason))))


def _is_same_input(scored: MetricInput, before: Expected | None) -> bool:
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
    changes: dict[str, object] = {"threshold": None, "criterion": criterion}
    if metric.definition is not None:
        # With a threshold or without, the options are what a judge sees.
        options = (metric.criterion.model_extra if metric.criterion else None) or None
        changes |= {"criterion": options, "definition": metric.definition.meaning}
        changes["custom_function_path"] = None
    plain = metric.model_copy(update=changes)
    return replace(scored, metric=plain, rules={}, skip_calls=frozenset(), spent=None)
