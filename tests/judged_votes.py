"""Judged metrics with generated votes and policies, and what follows from them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from evaltui import EvalCase, EvalConfig, Invocation, Status
from evaltui.core.metrics.judges.judge import Answer, JudgeFailedError, Question
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import ErrorInfo, RepeatResult
from evaltui.core.scoring import Expected, score_repeat

TEMPLATE = "tone"
NAMES = (
    "response_evaluation_score",
    "safety_v1",
    "final_response_match_v2",
    "hallucinations_v1",
    "rubric_based_final_response_quality_v1",
    "rubric_based_tool_use_quality_v1",
    "rubric_based_multi_turn_trajectory_quality_v1",
    "multi_turn_task_success_v1",
    "multi_turn_trajectory_quality_v1",
    "multi_turn_tool_use_quality_v1",
    "per_turn_user_simulator_quality_v1",
    TEMPLATE,
)
# What a judge answers in the form that it is asked for; VALUE is the verdict.
FORMS = {
    "final_response_match": '{"reasoning": "so", "is_the_agent_response_valid": VALUE}',
    "rubric": '{"rubrics": [{"id": "short", "rationale": "so", "verdict": VALUE}]}',
    "hallucinations": '{"sentences": [{"sentence": 1, "reason": "so", "supporting": null, '
    '"contradicting": null, "label": VALUE}]}',
    "per_turn": '{"criteria": [], "reason": "so", "is_valid": VALUE}',
    TEMPLATE: '{"reason": "so", "score": VALUE}',
    "": '{"for": [], "against": [], "reason": "so", "score": VALUE}',
}
WORDS = {
    "final_response_match": {"good": '"valid"', "bad": '"invalid"'},
    "rubric": {"good": '"yes"', "bad": '"no"', "open": '"unknown"'},
    "hallucinations": {"good": '"supported"', "bad": '"contradictory"'},
    "per_turn": {"good": "true", "bad": "false"},
    "response_evaluation": {"good": "5", "bad": "1", "middle": "3"},
    "": {"good": "1", "bad": "0", "middle": "0.5"},
}
SILENT = {"junk": "I cannot judge.", "prose": "FORM but no", "cut": "FORM", "failed": "", "missed": ""}


def of(table: Mapping[str, Any], name: str) -> Any:
    return next(value for start, value in table.items() if start in name)


@dataclass(frozen=True)
class Vote:
    name: str
    kind: str

    @property
    def score(self) -> float | None:
        if self.kind not in ("good", "middle", "bad"):
            return None
        word: str = of(WORDS, self.name)[self.kind]
        return {"good": 1.0, "bad": 0.0}[self.kind] if word[0] in '"tf' else float(word)

    @property
    def text(self) -> str:
        form: str = of(FORMS, self.name)
        if self.kind not in SILENT:
            return form.replace("VALUE", of(WORDS, self.name)[self.kind])
        good = form.replace("VALUE", of(WORDS, self.name)["good"])
        return good[:-1] if self.kind == "cut" else SILENT[self.kind].replace("FORM", good)


@dataclass(frozen=True)
class Judged:
    """A metric with its votes and its policy, and what follows from them; without votes it cannot run."""

    name: str
    votes: Sequence[Vote]
    threshold: float | None
    optional: bool
    lower: bool

    @property
    def is_rated(self) -> bool:
        return "score" in of(FORMS, self.name)

    @property
    def score(self) -> float | None:
        scores = sorted(vote.score for vote in self.votes if vote.score is not None)
        if self.is_missed or not scores or 2 * len(scores) < len(self.votes):
            return None
        return sum(scores) / len(scores) if self.name == TEMPLATE else scores[(len(scores) - 1) // 2]

    @property
    def is_missed(self) -> bool:
        """Whether a replay lacks a question: it is an error, whatever the others say."""
        return any(vote.kind == "missed" for vote in self.votes)

    @property
    def status(self) -> Status:
        if not self.votes:
            return Status.NOT_EVALUATED
        if self.is_missed:
            return Status.ERROR
        if self.score is None:
            is_readable = any(vote.score is not None or vote.kind == "open" for vote in self.votes)
            return Status.NOT_EVALUATED if is_readable else Status.ERROR
        if self.threshold is None:
            return Status.INFORMATIONAL
        passes = self.score <= self.threshold if self.lower else self.score >= self.threshold
        return Status.PASSED if passes else Status.FAILED

    @property
    def is_passed_over(self) -> bool:
        return self.status is Status.INFORMATIONAL or (self.optional and not self.votes)

    def mark(self, score: float | None) -> str:
        """The mark of a vote or of the verdict."""
        if score is None:
            return "–"
        if not self.is_rated:
            return "✓" if score == 1.0 else "✗"
        if self.threshold is None:
            return "·"
        return "✓" if (score <= self.threshold if self.lower else score >= self.threshold) else "✗"

    def add_to(self, block: dict[str, Any]) -> None:
        options: dict[str, Any] = {"judge_model_options": {"num_samples": len(self.votes) or 1}}
        if self.threshold is not None:
            lower = {"lower_is_better": True} if self.lower else {}
            block["criteria"][self.name] = {"threshold": self.threshold, **options, **lower}
        if self.name == TEMPLATE:
            block["metrics_to_run"][self.name] = {"prompt_template": "Rate {response}", **options}
        elif self.threshold is None:
            block["metrics_to_run"][self.name] = options
        block["optional"] += [self.name] * self.optional


@st.composite
def judged(draw: st.DrawFn, names: Sequence[str]) -> Judged:
    name = draw(st.sampled_from(names))
    words = of(WORDS, name)
    kinds = st.sampled_from([*words, *words, *SILENT])
    votes = [Vote(name, kind) for kind in draw(st.lists(kinds, max_size=5))]
    threshold = draw(st.sampled_from([None, *edges(name, votes)]))
    lower = name == TEMPLATE and threshold is not None and draw(st.booleans())
    return Judged(name, votes, threshold, draw(st.booleans()), lower)


def edges(name: str, votes: Sequence[Vote]) -> list[float]:
    """Thresholds at the ends of the range, at each score, and just above each."""
    low, high = (1.0, 5.0) if name == "response_evaluation_score" else (0.0, 1.0)
    scores = [score for vote in votes if (score := vote.score) is not None]
    return [low, high, *scores, *(math.nextafter(score, 9) for score in scores if score < high)]


ONE_BY_ONE = [name for name in NAMES if not name.startswith("per_turn")]
SEVERAL = st.one_of(
    st.lists(judged(ONE_BY_ONE), min_size=1, max_size=4, unique_by=lambda metric: metric.name),
    st.tuples(judged([name for name in NAMES if name not in ONE_BY_ONE])),
)
SAID = {"role": "model", "parts": [{"text": "Hello."}]}
FIND = [{"function_declarations": [{"name": "find"}]}]
DETAILS = {"name": "agent", "instructions": "Be kind.", "tool_declarations": FIND}
TURN = {
    "user_content": {"role": "user", "parts": [{"text": "Hi"}]},
    "intermediate_data": {"invocation_events": []},
    "final_response": SAID,
    "app_details": {"agent_details": {"agent": DETAILS}},
}
SCENARIO = {"starting_prompt": "Hi", "conversation_plan": "Say hi."}
RUBRIC = {"rubric_id": "short", "rubric_content": {"text_property": "Is short."}}
CASE = CaseId("s.evalset.json", "a")


def case_of(metrics: Sequence[Judged]) -> EvalCase:
    is_simulated = metrics[0].name not in ONE_BY_ONE
    talk = {"conversation_scenario": SCENARIO} if is_simulated else {"conversation": [TURN]}
    return EvalCase.model_validate({"eval_id": CASE.eval_id, "rubrics": [RUBRIC], **talk})


def config_of(metrics: Sequence[Judged], says: str = "Hello") -> EvalConfig:
    block: dict[str, Any] = {"criteria": {}, "metrics_to_run": {}, "optional": []}
    for metric in metrics:
        metric.add_to(block)
    return EvalConfig.model_validate({"evaltui": {**block, "answers": [{"contains": [says]}]}})


def scored(metrics: Sequence[Judged], config: EvalConfig) -> RepeatResult:
    """The result of a case under a config of these metrics."""
    return asyncio.run(score(metrics, config))


async def score(metrics: Sequence[Judged], config: EvalConfig) -> RepeatResult:
    votes = {metric.name: iter(metric.votes) for metric in metrics}

    def answer(question: Question) -> str:
        vote = next(votes[question.metric])
        return {"failed": FAILED, "missed": MISSED}.get(vote.kind) or vote.text

    withheld = {metric.name: "no key" for metric in metrics if not metric.votes}
    expected = Expected("s", case_of(metrics), config, withheld=withheld)
    return await judged_repeat(expected, [Invocation.model_validate(TURN)], answer)


FAILED, MISSED = "a failed request", "no recorded request"


async def judged_by(
    case: EvalCase, config: EvalConfig, actual: Sequence[Invocation], answer: Callable[[Question], str]
) -> RepeatResult:
    """The result of a case under a config, with a judge that answers by a function."""
    return await judged_repeat(Expected("s", case, config), actual, answer)


async def judged_repeat(
    expected: Expected, actual: Sequence[Invocation], answer: Callable[[Question], str | Answer]
) -> RepeatResult:
    """The result of a case with a judge that answers by a function."""

    async def judge(question: Question) -> Answer:
        text = answer(question)
        if text == FAILED:
            raise JudgeFailedError(ErrorInfo("ServerError", "503", kind=None))
        if text == MISSED:
            raise JudgeFailedError(ErrorInfo("NotRecordedError", "not there", kind=None), was_asked=False)
        return text if isinstance(text, Answer) else Answer(text)

    return await score_repeat(expected, actual, final_state=None, custom=None, judge=judge)
