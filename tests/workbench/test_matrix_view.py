"""What is shown of a matrix, without a screen."""

from dataclasses import replace

import pytest
from stored_matrix import BASE, PRO, write_matrix, write_variant

from evaltui.core.compare.matrix import Row, matrix_of
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status
from evaltui.core.model.variants import Change
from evaltui.runs.run_kind import ROOT_AGENT
from evaltui.runs.store import RunStore
from evaltui.text.lines import draw
from evaltui.tui.matrix.page import Columns, best_of, cell_lines, title_line, write_heads
from evaltui.views.repeats import repeat_rows
from evaltui.workbench.matrix.matrices import CellResult, MatrixView, cell_result, read_matrix, rows_of


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two variants of five cases."""
    folder = tmp_path_factory.mktemp("pair")
    write_matrix(folder)
    return read_matrix(RunStore(folder), ROOT_AGENT, None, None)[0]


@pytest.fixture(scope="module")
def seven(tmp_path_factory):
    """Seven variants of which none has more than one case."""
    folder = tmp_path_factory.mktemp("seven")
    for number in range(7):
        write_variant(folder, f"v{number}", {"lights": {"hello": "p"}}, Change("model", f"m{number}"))
    return read_matrix(RunStore(folder), ROOT_AGENT, None, None)[0]


def shown(opened):
    view = MatrixView()
    view.show(opened)
    return view


def ids(view):
    return [row.case.eval_id for row in view.rows() if isinstance(row, Row)]


def test_runs_that_were_not_evaluated_lower_no_rate_of_a_set(pair):
    run = pair.matrix.columns[0]
    first, *others = run.cases
    open_case = replace(run.cases[first], status=Status.NOT_EVALUATED, passed=0, statuses=())
    without = replace(run, cases={case: run.cases[case] for case in others})
    opened = matrix_of([replace(run, cases={**run.cases, first: open_case}), without])
    heads = [draw(line, color=False) for line in write_heads(opened, Columns(20, 40, (0, 1)), 0, 9)]
    assert "of 4/5 cases" in "".join(heads)
    title, *_ = rows_of(opened, "set", 0, differing=False, folded=())
    assert title.sums[0][:2] == title.sums[1][:2] != (0, 0)
    line = draw(title_line(opened, title, Columns(20, 30, (0, 1))), color=False)
    assert f"{title.sums[0][0]}/{title.sums[0][1]} –1 ━━━━━━━─" in line


def test_a_set_is_not_green_where_cases_did_not_run(tmp_path):
    for name, of_cases in (("base", {"a": "p", "b": "p"}), ("pro", {"a": "p", "b": ""})):
        changes = () if name == "base" else (Change("model", "x"),)
        write_variant(tmp_path, name, {"lights": of_cases}, *changes)
    view = shown(read_matrix(RunStore(tmp_path), ROOT_AGENT, None, None)[0])
    title, *_ = view.rows()
    line = title_line(view.opened.matrix, title, Columns(20, 30, (0, 1)))
    assert "2/2     ━━━━━━━━" in (text := draw(line, color=False))
    assert "1/1 ○1  ━━━━────" in text
    heads = [
        draw(line, color=False) for line in write_heads(view.opened.matrix, Columns(20, 30, (0, 1)), 0, 9)
    ]
    assert "pts" not in heads[0]
    assert "same rate" not in heads[0]
    assert best_of(view.opened.matrix) is None


@pytest.mark.parametrize(
    ("calls", "words", "row"),
    [
        ({"tool_uses": []}, "repeats 1, 2 fail, same calls", "the same in every repeat"),
        (None, "calls unknown", "—"),
    ],
)
def test_repeats_have_no_more_in_common_than_is_known(pair, calls, words, row):
    """They may fail with other responses, and of some agents the calls are unknown."""
    view = shown(pair)
    turn = Invocation.model_validate(
        {"user_content": {"parts": [{"text": "hi"}]}, "intermediate_data": calls}
    )
    repeats = tuple(RepeatResult(Status.FAILED, actual=(turn,)) for _ in range(2))
    failed = CaseResult("a", Status.FAILED, repeats=repeats)
    lines = [draw(line, color=False) for line in cell_lines(view, "base", "base", CellResult(failed), 80)]
    assert lines[1] == f"✗ repeat 1 of 2   {words}"
    assert [draw(of.line, color=False) for of in repeat_rows(failed) if of.label == "calls"] == [row]


def test_rows_are_sorted_hidden_and_folded(pair):
    view = shown(pair)
    assert ids(view) == ["hello", "movie_mode", "kitchen", "night", "away"]
    view.differing = True
    assert ids(view) == ["movie_mode", "night", "away"]
    view.sort()
    assert (view.order, ids(view)) == ("difference", ["away", "night", "movie_mode"])
    view.sort()
    assert (view.order, ids(view)[0]) == ("pass rate", "away")
    view.sort()
    view.fold("lights.evalset.json")
    assert ids(view) == ["night", "away"]
    view.fold("lights.evalset.json")
    assert len(ids(view)) == 3


def test_another_variant_becomes_the_base(pair):
    view = shown(pair)
    assert (view.column, view.refusal(besides_base=True)) == (1, None)
    view.set_base()
    assert (view.opened.matrix.base, view.column) == (1, 0)
    view.step(-1, 1)
    assert view.refusal(besides_base=True) == "This is the base; select another variant"
    assert view.refusal() is None


def test_a_response_that_was_not_evaluated_is_not_one_that_differs(pair):
    view, found = shown(pair), cell_result(pair, 0, CaseId("lights.evalset.json", "hello"))
    metrics = tuple(
        replace(metric, status=Status.NOT_EVALUATED, score=None, per_invocation=())
        for metric in found.result.repeats[0].metrics
    )
    repeats = tuple(replace(one, metrics=metrics) for one in found.result.repeats)
    not_evaluated = CellResult(replace(found.result, repeats=repeats))
    lines = [draw(line, color=False) for line in cell_lines(view, "base", "base", not_evaluated, 80)]
    assert "= response" in lines


def test_the_current_variant_is_always_among_those_that_are_shown(seven):
    view = shown(seven)
    steps = (1, 2, 0), (1, 3, 0), (1, 4, 1), (9, 6, 3), (-1, 5, 3), (-3, 2, 1), (-9, 0, 1)
    for step, column, first in steps:
        view.step(step, 3)
        assert (view.column, view.first) == (column, first)


def test_what_is_current_stays_when_the_same_matrix_is_read_again(pair, seven):
    view = shown(seven)
    view.go_to(5, 2)
    view.show(seven)
    assert (view.column, view.first) == (5, 3)
    view.show(pair)
    assert (view.column, view.first) == (1, 0)
    view.show(None)
    assert view.rows() == []


def test_repeats_are_gone_through_from_the_one_that_decides(pair):
    view = shown(pair)
    case = CaseId("lights.evalset.json", "movie_mode")
    result = cell_result(pair, 0, case).result
    assert view.repeat_of(result) == 1
    assert [view.step_repeat(1, result) for _ in range(4)] == [
        f"Repeat {number} of 5" for number in (3, 4, 5, 1)
    ]
    assert view.step_repeat(-1, result) == "Repeat 5 of 5"
    # A variant that was run less often shows its last one.
    assert view.repeat_of(replace(result, repeats=result.repeats[:2])) == 1
    assert view.step_repeat(1, replace(result, repeats=result.repeats[:1])) == "One repeat"


def test_without_a_matrix_nothing_can_be_done():
    view = MatrixView()
    assert view.refusal() == "Reading the runs…"
    view.step(1, 1)
    view.set_base()
    assert (view.rows(), view.column) == ([], 0)


def test_a_variant_that_was_run_again_counts_with_its_last_run(tmp_path):
    write_variant(tmp_path, "base", BASE)
    open_case = {**PRO, "thermostat": {"night": "p", "away": ""}}
    write_variant(tmp_path, "pro", open_case, Change("model", "pro"))
    before, _ = read_matrix(RunStore(tmp_path), ROOT_AGENT, None, None)
    assert not before.matrix.is_complete
    write_variant(tmp_path, "pro", PRO, Change("model", "pro"))
    after, _ = read_matrix(RunStore(tmp_path), ROOT_AGENT, None, before)
    assert after.matrix.is_complete
