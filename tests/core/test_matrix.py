from evaltui.core.compare.matrix import Matrix, Paired, matrix_of
from evaltui.core.compare.run_summary import CaseSummary, RunSummary, selected_cases, summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status
from evaltui.core.model.variants import Variant

P, F, E, N = Status.PASSED, Status.FAILED, Status.ERROR, Status.NOT_EVALUATED
GLYPHS = {"p": P, "f": F, "e": E, "n": N}


def summary(eval_id: str, repeats: str, path: str = "lights.json", **fields) -> CaseSummary:
    """A case of which each run came out as a letter says: `ppf`."""
    statuses = tuple(GLYPHS[one] for one in repeats)
    passed = statuses.count(P)
    status = statuses[0] if len(set(statuses)) == 1 else Status.FLAKY if passed else F
    return CaseSummary(
        path.removesuffix(".json"),
        eval_id,
        status,
        runs=len(statuses),
        passed=passed,
        policy_met=passed == len(statuses),
        statuses=statuses if len(set(statuses)) > 1 else (),
        path=path,
        **fields,
    )


def column(name: str, *cases: CaseSummary, waits: tuple[str, ...] = ()) -> RunSummary:
    selected = [*(case.id for case in cases), *(CaseId("lights.json", one) for one in waits)]
    rows = selected_cases([(case, case.path) for case in selected], {one.id: one for one in cases})
    return RunSummary(f"run of {name}", rows, matrix="m", variant=Variant(name))


def directions(matrix: Matrix, place: int) -> list[str]:
    return [row.cells[place].direction for row in matrix.rows]


BASE = column("base", summary("a", "ppppp"), summary("b", "pfpfp"), summary("c", "fffff"), summary("d", "e"))
PRO = column("pro", summary("a", "ppppf"), summary("b", "ppppp"), summary("c", "fffff"), summary("d", "p"))


def test_cells_are_compared_with_those_of_the_base():
    matrix = matrix_of([BASE, PRO])
    assert directions(matrix, 0) == ["", "", "", ""]
    assert matrix.paired[1].p == 1.0
    assert directions(matrix, 1) == ["worse", "better", "same", ""]
    # An error is no verdict that proves anything.
    assert matrix.paired == (None, Paired(better=1, worse=1, cases=3))
    assert [row.differs for row in matrix.rows] == [True, True, False, True]
    assert matrix.rows[1].cells[0].case.outcomes == (P, F, P, F, P)
    assert matrix.rows[2].cells[0].case.outcomes == (F,) * 5


def test_another_base_swaps_better_and_worse():
    matrix = matrix_of([BASE, PRO]).with_base(1)
    assert directions(matrix, 0) == ["better", "worse", "same", ""]
    assert matrix.paired == (Paired(better=1, worse=1, cases=3), None)


def test_totals_count_executions_and_what_is_unknown_stays_so():
    timed = column(
        "timed",
        summary("a", "pp", seconds=2.0, times=(1.0, 3.0), tokens=10.0),
        summary("b", "f", seconds=5.0, tokens=7.0),
        waits=("c",),
    )
    totals, unknown = matrix_of([timed, BASE]).totals
    assert (totals.runs, totals.passed_runs, totals.cases, totals.passed, totals.open_cases) == (
        3,
        2,
        2,
        1,
        1,
    )
    assert (totals.p50, totals.p95, totals.tokens) == (3.0, 4.8, 27.0)
    assert (unknown.p50, unknown.p95, unknown.tokens) == (None, None, None)
    assert unknown.rate.mean == (1 + 0.6) / 4
    assert unknown.rate.interval.low < 0.4 < unknown.rate.interval.high


def test_an_unfinished_matrix_has_a_row_for_every_selected_case():
    begun = column("slow", summary("b", "p"), waits=("a", "z"))
    matrix = matrix_of([BASE, begun])
    assert [row.case.eval_id for row in matrix.rows] == ["a", "b", "c", "d", "z"]
    assert not matrix.is_complete
    cells = {row.case.eval_id: row.cells[1] for row in matrix.rows}
    assert cells["a"].is_open
    assert cells["a"].rate is None
    # Not selected is not open.
    assert not cells["c"].is_open
    nothing = matrix_of([column("base"), column("pro")])
    assert (nothing.rows, nothing.totals[0].rate) == ((), None)


def test_cases_that_are_not_the_same_are_not_compared():
    mine, theirs = summary("a", "f", expects="1"), summary("a", "p", expects="2")
    judged, unjudged = summary("b", "p"), summary("b", "n")
    matrix = matrix_of([column("base", mine, judged), column("git", theirs, unjudged)])
    assert directions(matrix, 1) == ["", ""]
    assert matrix.rows[0].cells[1].reasons == ("case changed",)
    assert matrix.paired[1] == Paired(0, 0, 0)


def test_rows_of_a_set_stand_together():
    first = column("base", summary("a", "p"), summary("x", "p", "other.json"), summary("b", "p"))
    matrix = matrix_of([first, column("pro", summary("y", "p", "other.json"))])
    assert {path: [row.case.eval_id for row in rows] for path, rows in matrix.sets.items()} == {
        "lights.json": ["a", "b"],
        "other.json": ["x", "y"],
    }


def test_a_summary_keeps_statuses_and_times_of_its_runs():
    repeats = (RepeatResult(P, seconds=1.0), RepeatResult(E, seconds=2.0), RepeatResult(F, seconds=0.5))
    case = CaseResult("a", Status.FLAKY, eval_set_id="lights", repeats=repeats, policy_met=False)
    found = summarize(case)
    assert found.outcomes == (P, E, F)
    assert found.times == (1.0, 2.0, 0.5)
    once = summarize(CaseResult("a", P, eval_set_id="lights", repeats=repeats[:1]))
    assert (once.statuses, once.times) == ((), ())
