"""The metrics of a result as parts of its page, and each of them in full."""

from __future__ import annotations

import pytest
from pilots import turn
from test_result_page import EXPECTED, MADE, lines_of, outcome, page_of

from evaltui.core.model.config import EvalConfig
from evaltui.tui.result.case_result import ShownCase, write_case_result, write_metric
from evaltui.tui.widgets.writer import Page, fold_of

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


def in_full(name, config, scored=None):
    """What stands of a metric below the strip, unfolded."""
    scored = scored or outcome(EXPECTED, MADE)
    page = Page(78)
    write_metric(page, metric_of(scored, name), config)
    return lines_of(page)


def test_a_metric_in_full_has_its_meaning_its_scores_and_its_criterion():
    criterion = {"threshold": 0.5, "matchType": "IN_ORDER"}
    config = EvalConfig.model_validate({"criteria": {TRAJECTORY: criterion}})
    lines = in_full(TRAJECTORY, config)
    assert lines[0].startswith(f"{TRAJECTORY} ──")
    assert lines[1] == "  Rate of turns whose calls match the expected calls."
    assert lines[2].split() == ["needs", "expected", "turns"]
    assert [line.split()[:2] for line in lines[3:5]] == [["score", "✗"], ["turn", "1"]]
    assert lines[3].endswith("≥ 1.00")
    assert "EXACT ✗  IN_ORDER ✗  ANY_ORDER ✗" in "\n".join(lines)
    assert '      "matchType": "IN_ORDER"' in lines
    assert in_full(RESPONSE, config)[-1] == "  Not in the criteria of this run"


@pytest.mark.parametrize("width", [78, 116])
def test_a_metric_is_unfolded_below_the_strip(width):
    scored = outcome(EXPECTED, MADE)
    page = Page(width, 180, unfolded={f"card {TRAJECTORY}"})
    write_case_result(page, ShownCase(scored))
    lines = lines_of(page)
    assert page.links[0].last < next(n for n, line in enumerate(lines) if line.startswith(f"{TRAJECTORY} ──"))
    assert not any(line.startswith(f"{RESPONSE} ──") for line in lines)


@pytest.mark.parametrize("width", [78, 116])
def test_a_difference_is_unfolded_where_it_stands(width):
    calls = [[{"name": "plan", "args": {"days": [{"from": "6", "to": to}] * 40}}] for to in (7, "8")]
    scored = outcome([turn("go", "", *calls[0])], [turn("go", "", *calls[1])])
    at = page_of(scored, width).differences[0].at
    page = Page(width, 180, unfolded={fold_of(at)})
    write_case_result(page, ShownCase(scored))
    first = page.differences[0]
    lines = [line.strip() for line in lines_of(page)[first.first : first.last]]
    assert lines[-4:] == ["expected  integer", "7", "actual  string", '"8"']
