"""Each report says of a judged metric what its votes decide by the form that the judge was asked for."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

from command_line import every_report
from hypothesis import given
from judged_votes import CASE, SEVERAL, config_of, scored
from stored_runs import store_repeats

from evaltui import Status
from evaltui.core.model.outcome import RepeatResult, worst_status

MARKS = {"PASSED": "✓", "FAILED": "✗", "ERROR": "!", "NOT_EVALUATED": "–", "INFORMATIONAL": "·"}


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
        if metric.is_rated or metric.name.startswith("final_response_match"):
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


def reports(agent: Path, repeat: RepeatResult) -> dict[str, str]:
    (agent / "agent.py").write_text("root_agent = lambda message: message\n")
    path = store_repeats(agent, {CASE.path: "s"}, {CASE: [repeat]})
    code, texts = every_report(agent, "report", agent, path)
    assert code == 0
    return texts
