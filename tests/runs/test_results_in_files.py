"""Results, events and summaries come back from a run's file as they were, whatever is in them."""

from __future__ import annotations

import dataclasses
import math
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_runs import add_case, change, selected, store_run, summary

from evaltui.core.compare.diff import align_calls
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import (
    Call,
    RepeatResult,
    StateDiff,
    Status,
    TurnResult,
)
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.core.secrets import Secrets
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter

CASE = CaseId("s.evalset.json", "case")

# Lone surrogates as well.
texts = st.text(st.characters(codec=None), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=4,
)
# As reports have seconds and dollars.
rounded = st.integers(0, 9000).map(lambda milliseconds: milliseconds / 1000)
calls = st.lists(
    st.builds(Call, st.sampled_from("ab"), st.none() | st.dictionaries(texts, values, max_size=2)), max_size=3
)


def any_of(hint: Any, *places: str) -> st.SearchStrategy[Any]:
    """Values of a type; `places` are the names of the fields that they are in, the innermost last."""
    origin, arguments = get_origin(hint), get_args(hint)
    name = places[-1] if places else ""
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        fields = {
            field.name: any_of(hints[field.name], *places, field.name) for field in dataclasses.fields(hint)
        }
        return st.builds(hint, **fields | FIXED.get(hint, {}))
    if origin is tuple:
        return st.lists(any_of(arguments[0], *places), max_size=2 if len(places) < 3 else 1).map(tuple)
    if origin in (Mapping, dict):
        # Keys are Unicode.
        keys = st.text(max_size=8) if arguments[0] is str else any_of(arguments[0])
        return st.dictionaries(keys, any_of(arguments[1], *places), max_size=2)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is not None:
        return st.one_of(*(any_of(part, *places) for part in arguments))
    if hint is float:
        return rounded if name.endswith(("seconds", "throttled", "usd")) else st.floats(0, 1)
    simple = {str: texts, int: st.integers(0, 9), bool: st.booleans(), NoneType: st.none(), Any: values}
    return simple[hint] if hint in simple else st.sampled_from(hint)


# What other fields decide, or the case of the run.
FIXED: dict[Any, dict[str, Any]] = {
    RepeatResult: {"actual": st.just(())},
    TurnResult: {"calls": st.builds(align_calls, calls, calls).map(tuple)},
    CaseSummary: {
        "eval_set_id": st.just("s"),
        "eval_id": st.just(CASE.eval_id),
        "path": st.just(CASE.path),
    },
    # Rounded to microseconds.
    Event: {"repeat": st.just(0), "t": st.just(1.5), "duration": st.sampled_from([None, 0.5])},
}
SURROGATES = re.compile("[\ud800-\udfff]")
results, summaries, events = map(any_of, (RepeatResult, CaseSummary, Event))


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
    written = {
        SURROGATES.sub("\N{REPLACEMENT CHARACTER}", metric.name): (
            metric.score,
            metric.threshold,
            metric.status,
        )
        for metric in result.metrics
    }
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
