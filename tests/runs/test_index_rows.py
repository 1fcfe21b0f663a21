"""The figures of results in a log: those that whole results have, read without making these."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from evaltui.runs.index_rows import logged_case_at, logged_cases, logged_figures
from evaltui.runs.log import RunLog
from evaltui.runs.log_reader import read_header
from hypothesis import given
from hypothesis import strategies as st
from large_runs import write_run

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.events import VERSION
from evaltui.core.model.outcome import Status
from evaltui.core.model.spending import Cost
from evaltui.core.secrets import Secrets

SET = {"path": "s.evalset.json", "eval_set_id": "s", "eval_ids": []}
HEADER = {"started": "2026-01-02T03:04:05+00:00", "event_version": VERSION, "sets": [SET]}

texts = st.one_of(st.sampled_from(["a", 'a "b"', "{c}", "", "ä", "\\", "\ud800"]), st.text(max_size=5))
numbers = st.one_of(st.integers(0, 9), st.floats(0, 1e9), st.floats(0, 1e-6))
costs = st.builds(Cost, usd=st.none() | st.floats(0, 9), unseen=st.integers(0, 2))


@st.composite
def summaries(draw):
    runs = draw(st.sampled_from([1, 1, 1, 3]))
    passed = draw(st.integers(0, runs))
    return CaseSummary(
        "s",
        draw(texts),
        draw(st.sampled_from(Status)),
        runs,
        passed,
        draw(st.sampled_from(["all", "all", "majority", "0.5"])),
        passed == runs,
        draw(st.dictionaries(texts, numbers, max_size=2)),
        draw(st.none() | numbers),
        draw(st.none() | numbers),
        draw(st.sampled_from([0.0, 0.0, 1.5])),
        draw(st.sampled_from(["", "0123abcd", 'a"b'])),
        draw(st.dictionaries(texts, texts, max_size=1)),
        draw(st.sampled_from(["s.evalset.json", "s.evalset.json", "other.json", ""])),
        times=(0.5,) * runs if runs > 1 else (),
        costs=draw(st.just({}) | costs.map(lambda one: {"agent": one})),
    )


def log_of(folder, some):
    path = folder / "run.sqlite"
    path.unlink(missing_ok=True)
    log = RunLog.create_at(path, HEADER, Secrets())
    for one in some:
        log.result(one)
    log.close()
    return path


def figures_in(path):
    """Of each result, or what is said of the damage; whether made from whole results or not."""
    header = read_header(path)
    direct, whole = [], []
    problems = {}
    for name, found, of_log in (("direct", direct, logged_figures), ("whole", whole, logged_cases)):
        try:
            found.extend(of_log(path, header))
        except ValueError as error:
            problems[name] = str(error)
    return direct, whole, problems


@given(st.lists(summaries(), max_size=6))
def test_figures_are_those_of_the_whole_results(tmp_path_factory, some):
    path = log_of(tmp_path_factory.mktemp("log"), some)
    direct, whole, problems = figures_in(path)
    assert problems == {}
    assert len(direct) == len(whole)
    header = read_header(path)
    for figures, logged in zip(direct, whole, strict=True):
        assert logged_case_at(path, header, figures.place) == logged
        assert figures.id == logged.id
        for name in figures._fields[2:]:
            mine, theirs = getattr(figures, name), getattr(logged.summary, name)
            assert (name, mine, type(mine) in (dict, type(theirs))) == (name, theirs, True)


def test_a_result_as_nearly_all_are_is_not_made_as_a_whole(tmp_path, monkeypatch):
    path = write_run(tmp_path / "run.sqlite", 50, failed=7)
    made = []
    known = CaseSummary.from_json
    monkeypatch.setattr(CaseSummary, "from_json", lambda data: made.append(1) or known(data))
    assert [one.status for one in logged_figures(path, read_header(path))].count("FAILED") == 8
    assert made == []
    assert len(list(logged_cases(path, read_header(path)))) == len(made) == 50


DAMAGES = [
    (b'"seconds":0.006', b'"seconds":"x"'),
    (b'"seconds":0.006', b'"seconds":00.6'),
    (b'"status":"PASSED"', b'"status":"GOOD"'),
    (b'"status":"PASSED"', b'"status":"PASSED","status":"FAILED"'),
    (b'"scores":{"tool', b'"scores":{"x":"y","tool'),
    (b'"scores":{', b'"scores":{,'),
    (b'"costs":{"agent":{"unseen":1}}', b'"costs":{"agent":{"unseen":"1"}}'),
    (b'"costs":{"agent":{"unseen":1}}', b'"costs":{"agent":1}'),
    (b'"events":[', b'"events":[999999999999,'),
    (b'"events":[', b'"events":[0'),
    (b'"repeats_at":[', b'"repeats_at":[-'),
    (b'"eval_set_id":"echoes","status"', b'"eval_set_id":"\xff","status"'),
    (b'"eval_id":', b'"eval_id" :'),
]


@pytest.mark.parametrize(("before", "after"), DAMAGES)
def test_a_damaged_result_is_told_as_it_is_of_whole_results(tmp_path, before, after):
    path = write_run(tmp_path / "run.sqlite", 10)
    # What stands behind it is wrong now, so that the results are found line by line.
    path.write_bytes(path.read_bytes().replace(before, after))
    direct, whole, problems = figures_in(path)
    assert [one.id for one in direct] == [one.id for one in whole]
    assert problems.get("direct") == problems.get("whole")


def test_a_log_cut_anywhere_has_the_figures_up_to_the_cut(tmp_path):
    text = write_run(tmp_path / "run.sqlite", 3).read_bytes()
    path = tmp_path / "cut.sqlite"
    for end in range(text.index(b"\n") + 1, len(text), 7):
        path.write_bytes(text[:end])
        direct, whole, problems = figures_in(path)
        assert problems == {}
        assert [one.id for one in direct] == [one.id for one in whole]
        lines = [line for line in text[:end].split(b"\n") if line.startswith(b'{"kind":"case_result"')]
        assert len(direct) == sum(map(_is_json, lines))


def _is_json(line):
    with suppress(ValueError):
        return isinstance(json.loads(line), dict)
    return False
