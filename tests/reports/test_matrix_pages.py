"""The matrix as HTML and Markdown."""

import re
from itertools import pairwise

from stored_matrix import write_matrix, write_variant

from evaltui.core.model.variants import Change
from evaltui.core.secrets import Secrets
from evaltui.reports.console import render_matrix
from evaltui.reports.html.matrix_page import html_matrix
from evaltui.reports.markdown_report import markdown_matrix
from evaltui.reports.matrix_report import stored_matrix_report
from evaltui.runs.matrices import open_matrix, stored_matrices
from evaltui.runs.store import RunStore
from evaltui.text.lines import draw
from evaltui.tui.matrix.page import Columns, row_line


def report(folder):
    [stored] = stored_matrices(RunStore(folder))
    return stored_matrix_report(open_matrix(stored), Secrets())


def test_the_page_links_the_details_of_what_failed_and_has_no_script(tmp_path):
    write_matrix(tmp_path)
    page = html_matrix(report(tmp_path))
    links, ids = (set(re.findall(pattern, page)) for pattern in (r'href="#([^"]+)"', r'open id="([^"]+)"'))
    assert {one.replace(":", "%3A") for one in ids} == {one.replace(":", "%3A") for one in links}
    assert "pro:thermostat:away" in ids
    assert "base:lights:movie_mode" in ids
    assert len(ids) == 5
    assert "<script" not in page
    assert "script-src" not in page
    assert page.count("<circle") == 2
    assert "+2 −0 of 4/5 cases, p = 0.5" in page
    assert "no response within 30 s" in page


def test_every_report_and_the_screen_have_the_same_figures_of_a_case(tmp_path):
    write_matrix(tmp_path)
    found = report(tmp_path)
    row = next(row for row in found.matrix.rows if row.case.eval_id == "night")
    page = re.sub("<[^>]+>", "", html_matrix(found))
    console = render_matrix(found, color=False, width=160)
    screen = draw(row_line(found.matrix, row, "night", Columns(26, 60, (0, 1)), None), color=False)
    for text in (console, markdown_matrix(found), page, screen):
        line = next(line for line in text.splitlines() if "night" in line)
        assert re.search(r"2/5 +0\.70 +1\.2 s.* 5/5 +1\.00 +3\.2 s +▲", line)
    for text in (console, markdown_matrix(found), page):
        assert "5 cases, 2 variants, 50 executions" in text


def test_texts_of_others_are_texts(tmp_path):
    evil = "<img onerror=x>|@all"
    write_variant(tmp_path, "base", {"lights": {evil: "pf"}})
    write_variant(tmp_path, evil, {"lights": {evil: "f"}}, Change("env.A", evil))
    found = report(tmp_path)
    assert "<img" not in html_matrix(found)
    text = markdown_matrix(found)
    assert "<img" not in text
    assert "@all" not in text


def test_names_in_the_plot_do_not_run_into_each_other(tmp_path):
    for name in ("base", "cold", "french"):
        write_variant(tmp_path, name, {"lights": {"hello": "pp"}})
    names = re.findall(r'class="name" x="([^"]+)" y="([^"]+)">(\w+)<', html_matrix(report(tmp_path)))
    assert [name for *_, name in names] == ["base", "cold", "french"]
    rows = sorted(float(y) for _, y, _ in names)
    assert all(below - above >= 12 for above, below in pairwise(rows))


def test_markdown_has_the_sums_and_the_cases_that_differ(tmp_path):
    write_matrix(tmp_path)
    text = markdown_matrix(report(tmp_path))
    assert "| pass rate | 76% | 76% |" in text
    assert "### 3 cases differ" in text
    [night] = [line for line in text.splitlines() if "night" in line and line.startswith("|")]
    assert night.endswith("| ≈ 2/5 0.70 1.2 s | ✓ 5/5 1.00 3.2 s ▲ |")
    assert "hello" not in text


def test_an_open_matrix_and_one_without_differences_are_told(tmp_path):
    write_variant(tmp_path, "base", {"lights": {"a": "p", "b": ""}})
    write_variant(tmp_path, "pro", {"lights": {"a": "p", "b": ""}})
    found = report(tmp_path)
    assert "> 2 results missing" in markdown_matrix(found)
    assert "No case differs so far." in markdown_matrix(found)
    assert "2 results" in html_matrix(found)
    assert found.seconds is None


def test_a_comparison_of_some_of_the_cases_says_so(tmp_path):
    """A case that passes in the base and ends with an error is in neither count."""
    write_variant(tmp_path, "base", {"lights": {"a": "p", "b": "p"}})
    write_variant(tmp_path, "pro", {"lights": {"a": "p", "b": "e"}})
    assert "| against base | base | +0 −0 of 1/2 cases, p = 1 |" in markdown_matrix(report(tmp_path))
