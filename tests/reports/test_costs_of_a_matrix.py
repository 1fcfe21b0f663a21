"""Where a matrix shows a cost, calls without a price are named beside it."""

import csv
import io
from html import unescape

import pytest
from stored_matrix import write_variant

from evaltui.core.compare.matrix import Row
from evaltui.core.model.spending import ModelSpending, Spending, Tokens
from evaltui.core.model.variants import Change
from evaltui.core.secrets import Secrets
from evaltui.reports.console import render_matrix
from evaltui.reports.csv_report import matrix_csv
from evaltui.reports.html.matrix_page import html_matrix
from evaltui.reports.markdown_report import markdown_matrix
from evaltui.reports.matrix_report import stored_matrix_report
from evaltui.runs.matrices import open_matrix, stored_matrices
from evaltui.runs.store import RunStore
from evaltui.text.lines import draw
from evaltui.tui.matrix.page import Columns, plot_lines, row_line, verdict_line, write_heads


def calls(usd, unpriced=0):
    model = ModelSpending(
        "agent", "gemini-2.5-pro", calls=3, tokens=Tokens(100, 0, 0, 10), usd=usd, unpriced=unpriced
    )
    return Spending((model,))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("costs")
    for name, spent in (("known", calls(0.02)), ("partly", calls(0.004, 3)), ("none", calls(None, 2))):
        write_variant(
            folder,
            name,
            {"lights": {"hello": "f" if name == "known" else "p"}},
            Change("env.A", name),
            spent=spent,
        )
    [stored] = stored_matrices(RunStore(folder))
    return stored_matrix_report(open_matrix(stored), Secrets())


def test_reports_name_calls_without_a_price_in_cells_and_sums(report):
    console = render_matrix(report, color=False, width=160)
    for text in map(unescape, (console, markdown_matrix(report), html_matrix(report))):
        # Of the cell, of the sum, per case that passed, and in the verdict.
        assert text.count("$0.0040 + 3 unpriced calls") == 4
        # Nothing is known to be shared among the cases that passed.
        assert text.count("2 unpriced calls") == 3
        assert "$0.020" in text
        assert "$0.0040+" not in text
    rows = list(csv.DictReader(io.StringIO(matrix_csv(report))))
    assert [(row["usd"], row["unpriced_calls"]) for row in rows] == [("0.02", "0"), ("0.004", "3"), ("", "2")]


@pytest.mark.parametrize("width", [80, 160, 220])
def test_the_screen_names_them_above_the_cases(report, width):
    matrix = report.matrix
    shown = ""
    for first in range(2):
        columns = Columns.fitting(matrix, width, 10, first)
        heads = [draw(line, color=False) for line in write_heads(matrix, columns, 1, 9)]
        shown += next(line for line in heads if line.startswith("cost"))
    assert "$0.020" in shown
    assert "$0.0040 + 3 unpriced" in shown
    assert " 2 unpriced calls" in shown


def test_a_cell_of_the_screen_has_them_where_there_is_room(report):
    matrix = report.matrix
    [row] = (one for one in matrix.rows if isinstance(one, Row))
    line = " ".join(
        draw(row_line(matrix, row, "hello", Columns(26, 60, (0, 1, 2)), None), color=False).split()
    )
    assert "$0.0040 + 3 unpriced calls 1 s" in line
    assert " 2 unpriced calls 1 s" in line
    line = " ".join(
        draw(row_line(matrix, row, "hello", Columns(26, 36, (0, 1, 2)), None), color=False).split()
    )
    # Every figure has its room before a cost has all of its words.
    assert "$0.0040+ 1 s" in line
    assert " — " in line


def test_a_cost_that_is_not_known_in_full_is_not_compared(report):
    _, right = verdict_line(report.matrix, 1, 160)
    assert "cost" not in draw(right, color=False)
    page = html_matrix(report)
    assert "pass rate against cost" in page
    assert page.count("<circle") == 1
    [title, *plot] = [draw(line, color=False) for line in plot_lines(report.matrix, 0, 60, 10)]
    assert title == "pass rate against cost"
    assert "known" in "".join(plot)
    assert "partly" not in "".join(plot)
