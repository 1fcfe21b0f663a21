"""Interrupted runs of many cases: results stay in the log, and that of a resumed run says where each is."""

from __future__ import annotations

import gc

import pytest
from large_runs import SET, eval_id, write_run

from evaltui.core.compare.run_summary import summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.secrets import Secrets
from evaltui.runs.history import case_of, open_run
from evaltui.runs.known_repeats import finished_repeats
from evaltui.runs.merging import copy_repeats
from evaltui.runs.run_file import Ending, RunFile

CASES = 20


@pytest.fixture
def log(tmp_path):
    return write_run(tmp_path / "run.sqlite", CASES, failed=2)


def test_the_results_of_an_interrupted_run_are_read_when_they_are_asked_for(log):
    gc.collect()
    before = sum(type(one) is RepeatResult for one in gc.get_objects())
    finished, _ = finished_repeats(log)
    held = sum(type(one) is RepeatResult for one in gc.get_objects())
    assert held - before <= 1
    assert list(finished) == [CaseId(SET, eval_id(number)) for number in range(CASES)]
    known = finished[CaseId(SET, eval_id(1))]
    assert (list(known), 0 in known, 1 in known, known.expects) == ([0], True, False, {f"{1:012x}"})
    result = known[0]
    assert (result.status, result.turns[0].response.score) == (Status.PASSED, 1.0)
    assert "please say 1 to me" in str(result.actual)
    assert list(known.first(0)) == []


def test_a_run_of_a_case_that_was_made_again_counts(log):
    case = CaseId(SET, eval_id(3))
    log.write_bytes(log.read_bytes()[: log.read_bytes().index(b'{"kind":"index"')])
    finished, _ = finished_repeats(log)
    earlier = open_run(log)
    again = RunLog.create_at(log.with_name("again.sqlite"), RunFile(log).header.data, Secrets())
    for _ in range(2):
        for _ in copy_repeats(log, {(case, 0)}, again):
            pass
    again.add_case(summarize(earlier.case(case)))
    again.close()
    found, _ = finished_repeats(again.path)
    assert list(found) == [case]
    assert found[case][0] == finished[case][0] == earlier.case(case).repeats[0]


def test_the_events_of_a_case_that_was_taken_over_are_a_short_stretch(log, tmp_path):
    earlier = open_run(log)
    taken = {(case, 0) for case in earlier.summary.cases}
    later = RunLog.create_at(tmp_path / "later.sqlite", RunFile(log).header.data, Secrets())
    for _ in copy_repeats(log, taken, later):
        pass
    # The results follow when all is copied.
    for summary in earlier.summary.cases.values():
        later.add_case(summary)
    later.close(Ending("FAILED", 1.0))
    cases = RunFile(later.path).cases
    assert len(cases) == CASES
    each = later.path.stat().st_size // CASES
    for one in cases:
        assert one.events is not None
        assert one.events[1] - one.events[0] < each
        assert case_of(later.path, one) == earlier.case(one.id)
