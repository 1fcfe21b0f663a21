"""Changes that no computed metric noticed, judged: only metrics that are asked something else can notice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaltui.core.gaps.mutants import Mutant, RecordedCase
from evaltui.core.metrics.judges.judge import Answer, Judge, Question
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.outcome import MetricResult, Status
from evaltui.core.scoring import metric_results

# The metric, the turn and the text of a question.
_Asked = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class JudgedChange:
    """The verdict of judges on a change."""

    noticed_by: str = ""
    """The metric that noticed it; "" for none."""
    results: tuple[MetricResult, ...] = ()
    """The results of the metrics that looked at it and passed."""
    reason: str = ""
    """Why there is no verdict; "" where there is one."""


@dataclass(frozen=True)
class _Scoring:
    """The result of a metric, and how often each question was asked for it."""

    result: MetricResult
    questions: Counter[_Asked]

    @property
    def size(self) -> int:
        """The characters of all questions."""
        return sum(len(text) * times for (_, _, text), times in self.questions.items())


class JudgedCase:
    """Judges the changes of a recorded conversation. The same question is asked once for all of them."""

    def __init__(self, recorded: RecordedCase, judge: Judge) -> None:
        self._recorded = recorded
        self._judge = judge
        self._answers: dict[tuple[_Asked, int], asyncio.Future[Answer]] = {}
        self._originals: list[_Scoring] | None = None

    async def verdict(self, mutant: Mutant) -> JudgedChange:
        """Asks about a change, metric by metric, those with the shortest questions first, until one notices
        it."""
        passed: list[MetricResult] = []
        reasons: list[str] = []
        for original in await self._unchanged():
            before = original.result
            if before.is_passed_over:
                continue
            if before.status is not Status.PASSED:
                is_failed = before.status is Status.FAILED
                why = "does not pass the recorded conversation" if is_failed else before.reason
                reasons.append(f"{before.name}: {why}")
                continue
            scoring = await self._score(before.name, mutant.turns, mutant.final_state)
            if scoring.questions == original.questions:
                continue
            if scoring.result.status is Status.FAILED:
                return JudgedChange(before.name)
            if scoring.result.status is Status.PASSED:
                passed.append(scoring.result)
            else:
                reasons.append(f"{before.name}: {scoring.result.reason}")
        return JudgedChange("", tuple(passed), "; ".join(reasons))

    async def sees(self, mutant: Mutant) -> bool:
        """Whether a metric is asked something else about a change; asks whatever the answers are."""
        changed = [
            await self._score(original.result.name, mutant.turns, mutant.final_state)
            for original in await self._unchanged()
        ]
        return any(
            scoring.questions != original.questions
            for scoring, original in zip(changed, await self._unchanged(), strict=True)
        )

    async def _unchanged(self) -> Sequence[_Scoring]:
        if self._originals is None:
            recorded = self._recorded
            scorings = [
                await self._score(name, recorded.turns, recorded.final_state)
                for name in recorded.judged_metrics
            ]
            self._originals = sorted(scorings, key=lambda scoring: scoring.size)
        return self._originals

    async def _score(
        self, name: str, turns: Sequence[Invocation], final_state: Mapping[str, Any] | None
    ) -> _Scoring:
        questions: Counter[_Asked] = Counter()

        async def judge(question: Question) -> Answer:
            content = question.metric, question.turn, question.prompt
            key = content, questions[content]
            questions[content] += 1
            if key not in self._answers:
                self._answers[key] = asyncio.ensure_future(self._judge(question))
            return await self._answers[key]

        result, *_ = await metric_results(
            self._recorded.expected, turns, final_state=final_state, judge=judge, only={name}
        )
        return _Scoring(result, questions)
