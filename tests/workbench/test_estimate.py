"""How long a run will still take."""

import time

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.state import Run

CASES = [CaseId("a.evalset.json", f"case_{number}") for number in range(10)]


@pytest.mark.parametrize(("done", "expected"), [(0, None), (2, None), (3, 70 / 3), (5, 10), (10, None)])
def test_the_estimate_waits_for_three_cases(done, expected, monkeypatch):
    run = Run(1, "all", selected=frozenset(CASES), done=set(CASES[:done]))
    run.working_since = time.monotonic() - 10
    monkeypatch.setattr(time, "monotonic", lambda: run.working_since + 10)
    assert run.seconds_left == (None if expected is None else pytest.approx(expected))
