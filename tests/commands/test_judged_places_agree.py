"""Each place says of a judged metric what its votes decide by the form that the judge was asked for."""

from __future__ import annotations

import asyncio
import csv
import html
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from command_line import call
from hypothesis import given
from hypothesis import strategies as st
from stored_runs import store_repeats

from evaltui import EvalCase, EvalConfig, Invocation, Status
from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.metrics.judges.judge import Answer, JudgeFailedError
from evaltui.core.metrics.registry import METRICS, info_of
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, ErrorInfo, RepeatResult, worst_status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.scoring import Expected, score_repeat
from evaltui.core.secrets import Secrets
from evaltui.core.thresholds import limits_of, rejudge, scores_decide
from evaltui.project.run_settings import RunSettings
from evaltui.runs.score_table import CaseRow, ScoreTable, Side
from evaltui.text.lines import draw
from evaltui.tui.result.case_result import ShownCase, write_case_result
from evaltui.tui.widgets.writer import Folding, Page
from evaltui.workbench.result.rescoring import score_again
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef

TEMPLATE = "tone"
NAMES = [*(name for name, info in METRICS.items() if info.judged), TEMPLATE]
# What a judge answers in the form that it is asked for; VALUE is the verdict.
FORMS = {
    "final_response_match": '{"reasoning": "so", "is_the_agent_response_valid": VALUE}',
    "rubric": '{"rubrics": [{"id": "short", "rationale": "so", "verdict": VALUE}]}',
    "hallucinations": '{"sentences": [{"sentence": 1, "reason": "so", "supporting": null, '
    '"contradicting": null, "label": VALUE}]}',
    "per_turn": '{"criteria": [], "reason": "so", "is_valid": VALUE}',
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
SILENT = {"junk": "I cannot judge.", "prose": "FORM but no", "cut": "FORM", "failed": ""}


MARKS = {"PASSED": "✓", "FAILED": "✗", "ERROR": "!", "NOT_EVALUATED": "–", "INFORMATIONAL": "·"}


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
        return info_of(self.name).judged_item == "score"

    @property
    def score(self) -> float | None:
        scores = sorted(vote.score for vote in self.votes if vote.score is not None)
        if not scores or 2 * len(scores) < len(self.votes):
            return None
        return sum(scores) / len(scores) if self.name == TEMPLATE else scores[(len(scores) - 1) // 2]

    @property
    def status(self) -> Status:
        if not self.votes:
            return Status.NOT_EVALUATED
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
    low, high = info_of(name).interval or (0.0, 1.0)
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
    votes = {metric.name: iter(metric.votes) for metric in metrics}

    async def judge(question: Any) -> Answer:
        vote = next(votes[question.metric])
        if vote.kind == "failed":
            raise JudgeFailedError(ErrorInfo("ServerError", "503", kind=None))
        return Answer(vote.text)

    withheld = {metric.name: "no key" for metric in metrics if not metric.votes}
    expected = Expected("s", case_of(metrics), config, withheld=withheld)
    actual = [Invocation.model_validate(TURN)]
    return asyncio.run(score_repeat(expected, actual, final_state=None, custom=None, judge=judge))


def outcome(repeat: RepeatResult, metrics: Sequence[Judged], config: EvalConfig) -> CaseOutcome:
    result = case_over_repeats("s", CASE.eval_id, [repeat], "all", CASE.path)
    return CaseOutcome(ResultInMemory.of(result), RunRef(1), StoredCase.of(case_of(metrics)), config)


def detail_marks(text: str) -> set[tuple[str, str]]:
    """Metrics with their marks in the details of a case: in their list, and at the turn."""
    rows = re.findall(r"^  (?:  )?([✓✗!–·]) (\w+)(?:  |$)", text, re.MULTILINE)
    return {(name, mark) for mark, name in rows}


def html_marks(page: str) -> set[tuple[str, str]]:
    rows = re.findall(r'<li class="metric"><span class="\w+">(.).*?<b>(\w+)</b>', page)
    head = r'<div class="judged[ a-z]*"><p><span class="\w+">(.)</span><span class="bold"> (\w+)<'
    return {(name, mark) for mark, name in [*rows, *re.findall(head, page)]}


def html_votes(page: str) -> Iterator[tuple[str, list[str]]]:
    """The marks below each metric."""
    for name, below in re.findall(r'<div class="judged.*?<span class="bold"> (\w+)<(.*?)</div>', page):
        yield name, re.findall(r'<p class="why" dir="auto">\s*<span class="\w+">([✓✗–·])</span>', below)


def screen_marks(repeat: RepeatResult, metrics: Sequence[Judged], config: EvalConfig) -> Counter[str]:
    page = Page(100)
    write_case_result(page, ShownCase(outcome(repeat, metrics, config), folding=Folding(all_open=True)))
    heads = "\n".join(draw(line, color=False) for line in page.lines)
    return Counter(re.findall(r"^▾ (?!Turn|answer_rules)\S+(?: \S+)? ([✓✗!–·])", heads, re.MULTILINE))


@given(SEVERAL)
def test_every_place_says_what_the_votes_on_a_case_decide(tmp_path_factory, metrics):
    repeat = scored(metrics, config_of(metrics))
    results = {result.name: result for result in repeat.metrics}
    for metric in metrics:
        result = results[metric.name]
        assert (result.status, result.score) == (metric.status, metric.score)
        for turn in result.per_invocation:
            (judgement,) = turn.judgements
            assert (turn.status, judgement.score) == (metric.status, metric.score)
            assert [vote.score for vote in judgement.votes] == [vote.score for vote in metric.votes]
    counting = [metric.status for metric in metrics if not metric.is_passed_over]
    assert repeat.status is worst_status([Status.PASSED, *counting])

    # Of a case that fails otherwise each report tells all.
    failing = config_of(metrics, "Bye")
    repeat = scored(metrics, failing)
    marks = {metric.name: MARKS[metric.status] for metric in metrics}
    texts = reports(tmp_path_factory.mktemp("agent"), repeat)
    for kind in ("console", "junit", "markdown"):
        told = detail_marks(html.unescape(texts[kind]))
        assert all(mark == marks.get(name, mark) for name, mark in told), kind
        assert {name for name, mark in marks.items() if mark != "·"} <= {name for name, _ in told}
    told = html_marks(texts["html"])
    assert {*told} - {("answer_rules", "✗")} == {*marks.items()}
    below = dict(html_votes(texts["html"]))
    for metric in filter(lambda metric: metric.votes, metrics):
        if metric.is_rated or info_of(metric.name).judged_item == "answer":
            assert {*below[metric.name]} == {metric.mark(vote.score) for vote in metric.votes}
        else:
            assert below[metric.name][0] == metric.mark(metric.score)
    (case,) = json.loads(texts["json"])["cases"]
    by_name = {row["name"]: row for row in case["metrics"]}
    rows = {row["metric_name"]: row for row in csv.DictReader(texts["csv"].splitlines())}
    for metric in metrics:
        assert by_name[metric.name]["status"] == metric.status == rows[metric.name]["metric_status"]
        assert {turn["status"] for turn in by_name[metric.name]["per_turn"]} <= {metric.status}
        assert rows[metric.name]["eval_status"] == metric.status
    shown = Counter(mark for mark in marks.values() if mark != "·")
    assert screen_marks(repeat, metrics, failing) == shown


SUFFIXES = {"json": "json", "junit": "xml", "csv": "csv", "markdown": "md", "html": "html", "console": "txt"}


def reports(agent: Path, repeat: RepeatResult) -> dict[str, str]:
    (agent / "agent.py").write_text("root_agent = lambda message: message\n")
    path = store_repeats(agent, {CASE.path: "s"}, {CASE: [repeat]}, RunSettings(runs=1, pass_if="all"))
    files = {kind: agent / f"out.{suffix}" for kind, suffix in SUFFIXES.items()}
    words = [word for kind, file in files.items() for word in ("--report", f"{kind}={file}")]
    assert call("report", agent, path, *words) == 0
    return {kind: file.read_text(encoding="utf-8") for kind, file in files.items()}


@given(SEVERAL, st.data())
def test_another_threshold_decides_as_scoring_by_it(metrics, data):
    others = [
        replace(metric, threshold=threshold, optional=data.draw(st.sampled_from([metric.optional, False])))
        for metric in metrics
        for some in [edges(metric.name, metric.votes)]
        for threshold in [data.draw(st.sampled_from(some if metric.lower else [None, *some]))]
    ]
    saved, edited = config_of(metrics), config_of(others)
    before = outcome(scored(metrics, saved), metrics, saved)
    after = outcome(scored(others, edited), metrics, edited).result
    actual = before.result.repeats[0].actual
    again = asyncio.run(score_again(before, {0: actual}, before.stored, edited, Secrets()))
    assert verdicts(again.result) == verdicts(after)
    if not scores_decide(saved, edited):
        return
    assert verdicts(rejudge(before.result, saved, edited)) == verdicts(after)
    table = ScoreTable(lambda number: CASE)
    table.add(0, before.result)
    table.put_cases([CaseRow(0, 0, 0, 0)])
    sides = Side("saved", limits_of(saved), "all"), Side("edited", limits_of(edited), "all")
    old, new = table.verdicts(*sides), table.verdicts(*reversed(sides))
    if before.result.status is not after.status:
        assert (old[CASE].status, new[CASE].status) == (before.result.status, after.status)
    else:
        assert [*old.values()] == [*new.values()]


def verdicts(result: CaseResult) -> tuple[dict[str, Status], dict[str, tuple[float | None, float | None]]]:
    scored = {
        metric.name: (metric.score, metric.threshold) for metric in result.metrics if metric.score is not None
    }
    return {"": result.status, **{metric.name: metric.status for metric in result.metrics}}, scored
