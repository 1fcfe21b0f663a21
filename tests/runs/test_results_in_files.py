"""Results, events and summaries come back from a run's file as they were, whatever is in them."""

from __future__ import annotations

import dataclasses
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_runs import add_case, change, selected, store_run, summary

from evaltui.core.compare.diff import align_calls
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.core.model.events import Event, Kind
from evaltui.core.model.judgement import Evidence, JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import (
    Call,
    Expectation,
    InvocationScore,
    MetricResult,
    RepeatResult,
    StateDiff,
    Status,
    TurnResult,
)
from evaltui.core.model.spending import Cost, ModelSpending, Payer, Spending, Tokens
from evaltui.core.model.text_diff import AuthoredText, IntermediateDiff, ResponseDiff
from evaltui.core.secrets import Secrets
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter

CASE = CaseId("s.evalset.json", "case")

# Lone surrogates as well.
texts = st.text(st.characters(codec=None), max_size=8)
keys = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(keys, values, max_size=2)
# As reports have seconds and dollars.
rounded = st.integers(0, 9000).map(lambda milliseconds: milliseconds / 1000)
numbers = st.none() | st.floats(0, 1)
counts = st.integers(0, 9)
statuses = st.sampled_from(Status)


calls = st.lists(
    st.builds(Call, st.sampled_from("ab"), st.none() | objects | st.just({"both": 1})), max_size=3
)
turns = st.builds(
    TurnResult,
    st.sampled_from(get_args(Expectation)),
    st.builds(align_calls, calls, calls).map(tuple),
    st.builds(ResponseDiff, st.none() | texts, st.none() | texts, numbers),
    st.lists(st.builds(AuthoredText, texts, texts), max_size=1).map(tuple),
    st.lists(
        st.builds(IntermediateDiff, texts, st.none() | texts, st.none() | texts, numbers), max_size=1
    ).map(tuple),
    texts,
)
errors = st.builds(ErrorInfo, texts, texts, texts, texts, kind=st.none() | st.sampled_from(ErrorKind))
votes = st.builds(Vote, numbers, texts, texts, texts)
judgements = st.builds(
    Judgement,
    texts,
    texts,
    numbers,
    texts,
    st.lists(st.builds(Evidence, texts, texts), max_size=1).map(tuple),
    st.lists(votes, max_size=2).map(tuple),
)
scores = st.builds(InvocationScore, numbers, statuses, texts, st.lists(judgements, max_size=1).map(tuple))
metrics = st.builds(
    MetricResult,
    texts,
    numbers,
    numbers,
    statuses,
    per_invocation=st.lists(scores, max_size=1).map(tuple),
    reason=texts,
    error=st.none() | errors,
    details=st.dictionaries(keys, numbers, max_size=1),
    judge=st.none() | st.builds(JudgedBy, texts, texts, *[counts] * 4),
    lower_is_better=st.booleans(),
    is_optional=st.booleans(),
)
tokens = st.builds(Tokens, *[st.none() | counts] * 4)
spendings = st.builds(
    Spending,
    st.lists(
        st.builds(
            ModelSpending,
            st.sampled_from(get_args(Payer)),
            texts,
            *[counts] * 4,
            tokens,
            tokens,
            st.none() | rounded,
        ),
        max_size=2,
    ).map(tuple),
    counts,
)
results = st.builds(
    RepeatResult,
    statuses,
    st.lists(metrics, max_size=2).map(tuple),
    st.none() | errors,
    turns=st.lists(turns, max_size=2).map(tuple),
    state=st.lists(st.builds(StateDiff, texts, values, values), max_size=1).map(tuple),
    seconds=rounded,
    throttled=rounded,
    final_state=st.none() | objects,
    expects=texts,
    given=texts,
    session_id=texts,
    user_id=texts,
    stopped=texts,
    spent=st.none() | spendings,
)
summaries = st.builds(
    CaseSummary,
    st.just("s"),
    st.just(CASE.eval_id),
    statuses,
    runs=counts,
    passed=counts,
    policy=texts,
    policy_met=st.booleans(),
    scores=st.dictionaries(keys, st.floats(0, 1), max_size=2),
    seconds=numbers,
    tokens=numbers,
    throttled=st.floats(0, 9),
    expects=texts,
    judges=st.dictionaries(keys, texts, max_size=2),
    path=st.just(CASE.path),
    statuses=st.lists(statuses, max_size=2).map(tuple),
    times=st.lists(st.floats(0, 9), max_size=2).map(tuple),
    costs=st.dictionaries(
        st.sampled_from(get_args(Payer)), st.builds(Cost, numbers, numbers, counts, counts), max_size=2
    ),
    given=texts,
)
events = st.builds(
    Event,
    st.sampled_from(get_args(Kind)),
    st.none() | objects,
    texts,
    objects,
    st.none() | objects,
    texts,
    texts,
    texts,
    st.sampled_from([None, 0.5]),
    turn=st.none() | counts,
    seq=counts,
    # Rounded to microseconds.
    t=st.sampled_from([0.0, 1.5]),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a case that is still being written."""
    path = tmp_path_factory.mktemp("run") / "run.sqlite"
    return RunWriter(path, RunHeader((SelectedSet(CASE.path, "s", (CASE.eval_id,)),)), Secrets())


def in_full(data: Any) -> str:
    """Data by its text: 1 == 1.0 == True."""
    return repr(dataclasses.asdict(data))


@given(results, st.lists(events, max_size=2), summaries)
def test_what_is_written_is_read(run, result, events, figures):
    named = [replace(event, path=CASE.path, set="s", case=CASE.eval_id) for event in events]
    run.start(CASE, "s", 0)
    for event in named:
        run.add_event(event)
    run.add_repeat(CASE, "s", 0, result)
    add_case(run, figures)
    run.commit()
    file = RunFile(run.path)
    [repeat] = file.repeats
    assert in_full(file.result(repeat.data)) == in_full(result)
    assert [in_full(event) for event in file.events_of(CASE).get(0, ())] == list(map(in_full, named))
    assert in_full(file.case(CASE).summary) == in_full(figures)
    with closing(sqlite3.connect(run.path)) as database:
        rows = database.execute("SELECT metric, score, threshold, status FROM scores").fetchall()
    written = {metric.name: (metric.score, metric.threshold, metric.status) for metric in result.metrics}
    assert {name: tuple(rest) for name, *rest in rows} == written


@pytest.mark.parametrize("value", [math.nan, math.inf, {"in": [math.nan]}])
@pytest.mark.parametrize("args", [{}, {"at": None}, {"at": "NaN"}, {"at": 1}, None])
def test_a_value_that_json_has_no_word_for_is_still_a_difference(run, value, args):
    calls = align_calls([Call("x", {"at": value})], [Call("x", args)] if args is not None else [])
    turn = TurnResult("these calls", tuple(calls), ResponseDiff(None, None))
    state = (StateDiff("at", value, None), StateDiff("at", value, "NaN"))
    run.add_repeat(CASE, "s", 0, RepeatResult(Status.FAILED, turns=(turn,), state=state))
    run.commit()
    [repeat] = RunFile(run.path).repeats
    read = RunFile(run.path).result(repeat.data)
    [call] = read.turns[0].calls
    assert call.op == ("missing" if args is None else "changed")
    assert [arg.op for arg in call.args] == [arg.op for arg in calls[0].args]
    assert [diff.actual for diff in read.state] == [None, "NaN"]


@pytest.mark.parametrize(
    "data",
    [
        "{}",
        '{"status": "GREEN"}',
        '{"status": "PASSED", "turns": [{}]}',
        '{"status": "PASSED", "metrics": 3}',
    ],
)
def test_a_result_of_another_shape_is_damage(tmp_path, data):
    log = store_run(tmp_path, [selected("s", ["a"])], [summary("s", "a", "PASSED")])
    change(log, f"INSERT INTO repeats VALUES (1, 0, 'PASSED', 1, '{data}')")
    with pytest.raises(ValueError, match="is damaged"):
        RunFile(log).results(1)
