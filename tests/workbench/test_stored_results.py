"""Results stay in files: a list has figures of each, and one is read when somebody looks at it."""

import pytest
from stored_runs import change

from evaltui.core.model.case_id import CaseId
from evaltui.runs import history
from evaltui.runs.history import open_run, result_of
from evaltui.runs.score_table import ScoreTable
from evaltui.workbench.cases.navigation import CaseOrder, sort_cases
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.criteria.effect import flips_of
from evaltui.workbench.criteria.rows import MetricRow
from evaltui.workbench.matrix.matrices import mark_failing
from evaltui.workbench.result import set_results
from evaltui.workbench.result.stored_results import StoredResult

CASES = {f"case_{number}": ("hello", "goodbye" if number % 3 == 0 else "hello") for number in range(6)}


@pytest.fixture
def path(write_agent, write_set):
    return write_set(
        write_agent("root_agent = lambda message, session: message", name="echo"), "echoes", **CASES
    )


@pytest.fixture
async def ran(path, open_workbench):
    """A sitting in which everything was run."""
    workbench = await open_workbench(path.parent)
    workbench.runs.run_all()
    await workbench.runs.finished()
    return workbench


@pytest.fixture
async def opened(path, ran, open_workbench):
    """The next sitting."""
    workbench = await open_workbench(path.parent)
    await workbench.outcomes.restore()
    return workbench


@pytest.fixture
def read(monkeypatch):
    """The cases whose results have been read."""
    cases = []

    def counted(file, case, **options):
        cases.append(case.id.eval_id)
        return result_of(file, case, **options)

    monkeypatch.setattr(history, "result_of", counted)
    return cases


def counted_calls(monkeypatch, module, name):
    """The arguments of every call of a function."""
    calls, function = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args: calls.append(args) or function(*args))
    return calls


def key(path, number):
    return CaseId(path.name, f"case_{number}")


def expect_hello(workbench, path, number):
    workbench.editing.do(
        "answer", path, lambda eval_set: eval_set.case(number).turn(0).answer.set_text("hello")
    )


def shown(result):
    return result.status, result.turns, [(one.name, one.score, one.status) for one in result.metrics]


async def test_only_what_is_looked_at_is_read(path, ran, read, open_workbench):
    workbench = await open_workbench(path.parent)
    await workbench.outcomes.restore()
    outcomes, (eval_set,) = workbench.outcomes, workbench.sets.listed
    assert outcomes.counts_of() == {"PASSED": 4, "FAILED": 2}
    assert outcomes.results.attention == {key(path, 0), key(path, 3)}
    assert list(sort_cases(eval_set, range(6), CaseOrder.OUTCOME, outcomes.get)) == [0, 3, 1, 2, 4, 5]
    workbench.navigation.set_filter("fail score<0.5 response_match<0.5")
    assert workbench.navigation.filtered.matching == {path.name: [0, 3]}
    totals = outcomes.results_of_set(eval_set)
    assert not read
    first = outcomes.get(key(path, 0)).result
    assert read == ["case_0"]
    assert shown(first) == shown(ran.outcomes.get(key(path, 0)).result)
    results = [outcomes.get(case).result for case in workbench.sets.every_case()]
    for name, total in totals.metrics.items():
        metrics = [metric for result in results for metric in result.metrics if metric.name == name]
        passed = sum(metric.status == "PASSED" for metric in metrics)
        assert (total.cases, total.scored, total.passed) == (6, 6, passed)
        assert total.sum == sum(metric.score for metric in metrics)
    assert list(totals.metrics) == [one.name for one in first.metrics if one.status != "INFORMATIONAL"]
    assert totals.failing == [key(path, 0), key(path, 3)]


async def test_a_filter_compares_every_score_without_reading_results(path, opened, read):
    opened.navigation.set_filter("tool_call_count_v1=0 fail")
    assert opened.navigation.filtered.matching == {path.name: [0, 3]}
    opened.navigation.set_filter("score>=1")
    assert opened.navigation.filtered.matching == {path.name: [1, 2, 4, 5]}
    assert not read


async def test_a_deleted_log_leaves_how_cases_came_out_and_why_there_is_no_more(
    path, ran, until, open_workbench
):
    workbench = await open_workbench(path.parent)
    await workbench.outcomes.restore()
    ran.runs.current.log.unlink()
    scored = workbench.outcomes.get(key(path, 0))
    assert (scored.result.status, scored.result.turns) == ("FAILED", ())
    assert scored.problem == "Run log of run 1 was deleted; run again"
    assert workbench.outcomes.counts_of() == {"PASSED": 4, "FAILED": 2}
    await until(lambda: workbench.outcomes.trace(key(path, 0)) is not None)
    assert workbench.outcomes.trace(key(path, 0)).problem == scored.problem
    # Nothing is scored again without what was done.
    expect_hello(workbench, path, 0)
    await workbench.outcomes.rescored([path])
    assert workbench.outcomes.get(key(path, 0)).status == "FAILED"


async def test_a_row_that_cannot_be_read_is_told_of_its_case_alone(path, ran, opened):
    log = ran.runs.current.log
    for table, column in (("repeats", "result"), ("events", "event")):
        change(log, f"UPDATE {table} SET {column} = '#####' WHERE case_id = 4")
    assert "is unreadable" in opened.outcomes.get(key(path, 3)).problem
    assert opened.outcomes.events_of(key(path, 3)) is None
    assert not opened.outcomes.get(key(path, 0)).problem
    log.write_bytes(log.read_bytes()[:5000])
    assert opened.outcomes.get(key(path, 1)).problem
    assert opened.outcomes.get(key(path, 1)).result.status == "PASSED"


async def test_results_of_a_run_are_in_its_file_and_those_scored_again_in_memory(path, open_workbench):
    workbench = await open_workbench(path.parent)
    workbench.runs.run_all()
    await workbench.runs.finished()
    outcomes = workbench.outcomes
    cases = list(workbench.sets.every_case())
    assert all(isinstance(outcomes.get(case).ref, StoredResult) for case in cases)
    run = open_run(workbench.runs.current.log)
    for case in cases:
        assert shown(outcomes.get(case).result) == shown(run.case(case))
        assert outcomes.events_of(case)
    for number in (0, 3):
        expect_hello(workbench, path, number)
    await workbench.outcomes.rescored([path])
    assert outcomes.counts_of() == {"PASSED": 6}
    assert sum(isinstance(outcomes.get(case).ref, StoredResult) for case in cases) == len(cases) - 2
    for case in cases:
        result = outcomes.get(case).result
        assert (result.status, result.turns[0].response.expected) == ("PASSED", "hello")
        assert outcomes.events_of(case)


async def test_a_moved_threshold_reads_no_result(path, opened, read, monkeypatch):
    scores = counted_calls(monkeypatch, ScoreTable, "add_stored")
    criteria = Criteria(opened.editing, path)

    def row(name="response_match_score"):
        rows = (one for section in criteria.sections() for one in section.rows)
        return next(one for one in rows if isinstance(one, MetricRow) and one.name == name)

    opened.sets.open(path)
    assert flips_of(criteria).cases == ()
    assert (row().trial.scored, row().trial.passing) == (6, 4)
    assert row("tool_call_count_v1").trial.scored == 6
    assert [len(numbers) for *_, numbers in scores] == [6]
    assert criteria.set_threshold(row(), 0.0)
    assert {flip.case for flip in flips_of(criteria).cases} == {key(path, 0), key(path, 3)}
    assert row().trial.passing == 6
    assert (len(scores), read) == (1, [])
    criteria.end_move()
    await opened.outcomes.rescored([path])
    assert {flip.case for flip in flips_of(criteria).cases} == {key(path, 0), key(path, 3)}
    assert (row().trial.passing, len(scores)) == (6, 1)


async def test_a_set_is_added_up_before_its_page_is_looked_at(path, ran, monkeypatch, open_workbench):
    counted = counted_calls(monkeypatch, set_results, "results_of_set")
    workbench = await open_workbench(path.parent)
    await workbench.outcomes.restore()
    assert workbench.outcomes.results_of_set(workbench.sets.listed[0]).failing == [key(path, 0), key(path, 3)]
    assert len(counted) == 1


async def test_failing_cases_are_marked_without_reading_the_run_again(opened, read, monkeypatch):
    opened_runs = counted_calls(monkeypatch, history, "open_run")
    await mark_failing(opened)
    assert opened.messages.notice.text == "2 cases marked that failed"
    assert not opened_runs
    assert not read
