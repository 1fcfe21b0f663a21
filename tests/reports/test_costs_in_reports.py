"""What model calls cost, in every report."""

import csv
import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from example_runs import json_of, passed, report
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from evaltui.core.cost.cost_lines import cost_lines
from evaltui.core.cost.prices import OWN_PRICE_SOURCE
from evaltui.core.model.spending import ModelSpending, Spending, Tokens
from evaltui.reports.console import render_console
from evaltui.reports.csv_report import csv_report
from evaltui.reports.json_report import report_schema
from evaltui.reports.junit import junit_report
from evaltui.reports.markdown_report import markdown_report
from evaltui.text.lines import draw
from tests.closed_schemas import closed

TABLE = "genai-prices 0.2.3"
TOKENS = Tokens(9612, 1200, 300, 1038)
AGENT = ModelSpending(
    "agent", "gemini-2.5-flash", 12, 3, 0, 0, TOKENS, Tokens(400, output=20), 0.0082, 0.0004, prices=TABLE
)
JUDGE = ModelSpending("judge", "my.judges:strict", 2, unmetered=2, unpriced=2)
FREE = Spending((ModelSpending("agent", "scripted-desk", 4, tokens=TOKENS, usd=0.0),))


def costing(*spent):
    """A run with a case for each of these."""
    cases = (replace(passed(f"c{number}"), repeats=()) for number, _ in enumerate(spent))
    of_case = zip(cases, passed("x").repeats * len(spent), spent, strict=True)
    return report(*(replace(case, repeats=(replace(repeat, spent=one),)) for case, repeat, one in of_case))


RUN = costing(Spending((AGENT, JUDGE)), Spending(), None)


def console(run, width=100):
    return "".join(render_console(run, color=False, width=width)).splitlines()


def test_the_console_has_the_sum_and_a_line_per_payer_and_model():
    text = "\n".join(console(costing(Spending((AGENT, JUDGE))), 140))
    cost = (
        "cost  $0.0082 + 2 unpriced calls, saved $0.00040, estimated from list prices of genai-prices 0.2.3"
    )
    assert cost in text
    rows = [line.split() for line in text.splitlines() if line.startswith(("  agent", "  judge"))]
    assert " ".join(rows[0]) == (
        "agent gemini-2.5-flash $0.0082, saved $0.00040 12 calls, 3 replayed "
        "10,012 → 1,058 tokens (1,200 cached, 300 thoughts)"
    )
    assert " ".join(rows[1]) == "judge my.judges:strict 2 unpriced calls 2 calls — tokens"


def test_each_case_has_its_cost_where_there_is_room():
    wide = [line for line in console(RUN) if line[2:4] in ("c0", "c1", "c2")]
    assert [cost in line for cost, line in zip(("$0.0082+", " $0", " —"), wide, strict=True)] == [True] * 3
    narrow = [line for line in console(RUN, 60) if line[2:4] == "c0"]
    assert "$" not in narrow[0]


@pytest.mark.parametrize("spent", [None, Spending(), Spending(unseen=1), FREE])
def test_a_run_that_cost_nothing_that_is_known_says_nothing_of_it(spent):
    assert "cost" not in "\n".join(console(costing(spent)))
    assert "Cost" not in markdown_report(costing(spent))


def test_own_prices_are_no_estimate_from_a_list():
    own = Spending((replace(AGENT, prices=OWN_PRICE_SOURCE),))
    assert "estimated from own prices" in "\n".join(console(costing(own)))
    both = costing(own, Spending((AGENT,)))
    assert "estimated from list prices of genai-prices 0.2.3 and own prices" in "\n".join(console(both))


@given(st.integers(40, 200))
def test_the_lines_fit(width):
    assert all(cell_len(draw(line, color=False)) <= width for line in cost_lines(RUN.spent, width))


def test_json_has_it_of_the_run_each_case_and_each_repeat():
    document = json_of(RUN)
    assert [error.message for error in closed(report_schema()).iter_errors(document)] == []
    cost = {"usd": 0.0082, "saved_usd": 0.0004, "unpriced": 2, "unseen": 1, "prices": [TABLE]}
    assert {name: document["spent"][name] for name in cost} == cost
    [agent, judge] = document["spent"]["models"]
    assert agent["tokens"] == {"input": 9612, "cached": 1200, "thoughts": 300, "output": 1038}
    assert (judge["usd"], judge["unpriced"], judge["tokens"]["input"]) == (None, 2, None)
    cases = [case["spent"] for case in document["cases"]]
    assert [one and one["usd"] for one in cases] == [0.0082, 0.0, None]
    assert [case["repeats"][0]["spent"] for case in document["cases"]] == cases


def test_csv_has_it_once_per_repeat_so_that_a_column_adds_up():
    rows = list(csv.DictReader(io.StringIO("".join(csv_report(costing(Spending((AGENT, JUDGE)), None))))))
    assert [row["cost_usd"] for row in rows if row["eval_id"] == "c0" and row["cost_usd"]] == ["0.0082"]
    assert [row["unpriced_calls"] for row in rows if row["unpriced_calls"]] == ["2"]
    assert [row["thought_tokens"] for row in rows if row["thought_tokens"]] == ["300"]


def test_junit_has_properties():
    root = ET.fromstring("".join(junit_report(RUN)))
    found = {one.get("name"): one.get("value") for one in root.iter("property")}
    assert found["cost_usd"] == "0.0082"
    assert found["cost"] == "$0.0082 + 2 unpriced calls + unseen calls of the agent, saved $0.00040"
    assert found["cost_prices"] == "estimated from list prices of genai-prices 0.2.3"
    assert "cost_usd" not in "".join(junit_report(costing(None)))


def test_markdown_has_the_sum_and_the_models_folded():
    text = markdown_report(RUN)
    assert " · $0.0082 + 2 unpriced calls" in text
    assert "<summary>Cost</summary>" in text
    assert "my.judges:strict" in text
