"""What cannot be judged is no pass in the workbench either."""

import pytest
from fake_runs import FakeRuns, says
from green_rows import AGENT, JUDGES, METRICS, ROWS
from test_freshness import page

from evaltui.core.model.case_id import CaseId
from evaltui.text.outcomes import NOT_RUN
from evaltui.workbench.state import Stage
from evaltui.workbench.workbench import Workbench

# One of a kind; the others differ in what the same code says of them.
DAILY = {
    "unknown and optional",
    "all metrics optional",
    "key given twice",
    "threshold false",
    "ids given twice",
    "empty conversation",
    "all turns context",
    "all turns skip",
    "twin",
    "raises",
}
PARAMS = [
    pytest.param(row, id=name, marks=() if name in DAILY else pytest.mark.thorough)
    for name, row in ROWS.items()
    if not row.words
]


@pytest.mark.parametrize("row", PARAMS)
async def test_no_case_of_it_is_shown_as_passed(row, write_agent):
    agent = write_agent(AGENT, metrics=METRICS, judges=JUDGES)
    row.write(agent)
    workbench = Workbench(agent)
    try:
        await workbench.open()
        workbench.runs.run_all()
        await workbench.runs.finished()
        statuses = [workbench.outcomes.status(key) for key in workbench.sets.every_case()]
        current = workbench.runs.current
        if current is None or current.stage is Stage.FAILED:
            # It was not begun, and says why.
            assert set(statuses) <= {NOT_RUN}
            assert workbench.messages.notice or current.remarks
        else:
            assert row.code != 2
            assert set(statuses) - {"PASSED"}
            assert workbench.outcomes.results.attention
    finally:
        await workbench.close()


def test_the_daily_ones_are_there():
    assert {name for name, row in ROWS.items() if not row.words} > DAILY


async def test_a_set_with_a_case_that_was_not_run_is_not_shown_as_passed(tmp_path, write_set, open_workbench):
    path = write_set(tmp_path, hi=("hi", "hi"), bad=("bye", "good day"))
    (tmp_path / "test_config.json").write_text('{"criteria": {"response_match_score": 0.8}}')
    workbench = await open_workbench(tmp_path, run_service=FakeRuns(says("hi")))

    async def shown_after(*cases):
        workbench.runs.run_cases("some", [CaseId(path.name, case) for case in cases])
        await workbench.runs.finished()
        return page(workbench, path.name)[0]

    assert "1/2 passed" in (first := await shown_after("hi"))
    assert "NOT RUN" in first
    assert "PASSED" not in first
    assert "FAILED" in await shown_after("bad")
