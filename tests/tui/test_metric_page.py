"""The metrics of a result as parts of its page, and each of them in full."""

from __future__ import annotations

import pytest
from test_result_page import EXPECTED, MADE, lines_of, outcome, page_of

from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.metrics.requirements import Readiness
from evaltui.core.model.config import EvalConfig
from evaltui.tui.pages.metric import write_criterion, write_requirements, write_scores
from evaltui.tui.pages.writer import Page

TRAJECTORY, RESPONSE = "tool_trajectory_avg_score", "response_match_score"


def metric_of(scored, name):
    return next(metric for metric in scored.result.metrics if metric.name == name)


@pytest.mark.parametrize("width", [78, 116, 40])
def test_every_metric_is_a_part_of_the_page_where_its_name_stands(width):
    page = page_of(outcome(EXPECTED, MADE), width)
    names = [link.opens for link in page.links]
    assert names[:2] == [TRAJECTORY, RESPONSE]
    for link in page.links[:2]:
        text = lines_of(page)[link.first].ljust(page.width)[link.start : link.end]
        assert text.startswith(" ")
        assert (
            text.split()[1].removeprefix("tool_").split("_")[0]
            == link.opens.removeprefix("tool_").split("_")[0]
        )


def test_cards_have_one_for_the_history():
    assert [link.opens for link in page_of(outcome(EXPECTED, MADE), 116).links] == [TRAJECTORY, RESPONSE, ""]


def test_the_scores_of_a_metric_by_turn_and_by_way_to_match():
    page = Page(78)
    write_scores(page, metric_of(outcome(EXPECTED, MADE), TRAJECTORY))
    lines = lines_of(page)
    assert [line.split()[:2] for line in lines[:2]] == [["score", "✗"], ["turn", "1"]]
    assert lines[0].endswith("≥ 1.00")
    assert "EXACT ✗  IN_ORDER ✗  ANY_ORDER ✗" in "\n".join(lines)


def test_the_criterion_of_a_metric_and_what_it_means():
    config = EvalConfig.model_validate(
        {"criteria": {TRAJECTORY: {"threshold": 0.5, "matchType": "IN_ORDER"}}}
    )
    page = Page(78)
    write_criterion(page, TRAJECTORY, config)
    assert lines_of(page)[0] == "Rate of turns whose calls match the expected calls."
    assert '      "matchType": "IN_ORDER"' in lines_of(page)
    other = Page(78)
    write_criterion(other, RESPONSE, config)
    assert lines_of(other)[-1] == "Not in the criteria of this run"


def test_what_a_metric_needs_and_what_the_run_found():
    page = Page(78)
    lacking = MetricCheck("safety_v1", Readiness.CANNOT, "GOOGLE_API_KEY is not set", "set it", cases=3)
    write_requirements(page, "safety_v1", [lacking, MetricCheck(RESPONSE, Readiness.RUNS)])
    lines = lines_of(page)
    assert lines[0].split() == ["needs", "a", "judge", "model"]
    assert "none of 3 cases" in lines[3]
    assert not any(RESPONSE in line for line in lines)
