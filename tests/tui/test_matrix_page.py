"""Lines of a matrix."""

import pytest
from stored_matrix import write_matrix

from evaltui.core.compare.matrix import Row
from evaltui.runs.run_kind import ROOT_AGENT
from evaltui.runs.store import RunStore
from evaltui.text.lines import cells, draw
from evaltui.tui.matrix.page import Columns, row_line, verdict_line
from evaltui.workbench.matrix.matrices import read_matrix


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    write_matrix(folder)
    return read_matrix(RunStore(folder), ROOT_AGENT, None, None)[0].matrix


def row(matrix, eval_id):
    return next(one for one in matrix.rows if isinstance(one, Row) and one.case.eval_id == eval_id)


@pytest.mark.parametrize("width", [60, 70, 78, 90, 100, 114, 150, 220])
def test_figures_of_a_cell_are_whole_or_left_out(matrix, width):
    columns = Columns.fitting(matrix, width, 10, 0)
    for one in matrix.rows:
        line = row_line(matrix, one, one.case.eval_id, columns, None)
        assert cells(line) <= width
        assert "…" not in draw(line, color=False)


def test_the_verdict_line_counts_undecided_cases_as_such(matrix):
    """A case that fell from 5 of 5 to 3 of 5 may have done so by chance: that is not the same verdict."""
    place = 1 - matrix.base
    verdict = matrix.verdicts[place]
    assert verdict.undecided
    for width in (70, 150):
        line, _ = verdict_line(matrix, place, width)
        text = draw(line, color=False)
        assert f"{len(verdict.undecided)} undecided, {verdict.same} the same" in text
        assert "same verdict" not in text


def test_the_current_cell_is_marked_in_the_best_variant_too(matrix):
    columns = Columns.fitting(matrix, 78, 10, 0)
    for place in (0, 1):
        line = row_line(matrix, row(matrix, "movie_mode"), "movie_mode", columns, place)
        marked = "".join(text for text, role in line if "sel" in role.split())
        assert ("5/5" if place else "3/5") in marked
