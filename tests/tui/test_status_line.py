"""The run in the status line, as text, at two widths."""

import time
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from evaltui.core.compare.totals import Totals
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import ErrorInfo
from evaltui.project.agent_address import AgentAddress
from evaltui.runner.plan import Scaled
from evaltui.runs.listing import RunRow
from evaltui.text.lines import draw
from evaltui.tui.main.status import header_ends, run_line, status_line
from evaltui.tui.start.page import write_broken
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.state import Run, Stage
from evaltui.workbench.workbench import Workbench

CASES = [CaseId("home.evalset.json", f"case_{number}") for number in range(16)]


def shown(run, width):
    workbench = Workbench(Path("nowhere"))
    workbench.runs.current = run
    return draw(run_line(workbench, width), color=False)


def run(stage, done, running=0, **more):
    now = time.monotonic()
    return Run(
        19,
        "all sets",
        stage=stage,
        selected=frozenset(CASES),
        done=set(CASES[:done]),
        running=set(CASES[done : done + running]),
        began=now - 7,
        **more,
    )


@pytest.mark.parametrize(
    ("width", "bar"),
    [(160, "━━━━━━━━━━━━━━━━━━━━━━──────────"), (80, "━━━━━───")],
)
def test_a_run_that_goes_on(width, bar):
    going = run(Stage.RUNNING, 7, 4, counts=Counter(PASSED=5, FAILED=2), working_since=time.monotonic() - 7)
    assert shown(going, width) == f"◐ Run 19 all sets  {bar}  7/16   4 in flight   0:07, about 9 s left"


def test_a_run_on_a_cluster():
    going = run(Stage.RUNNING, 7, 4, scale=Scaled(2, 8, 31))
    assert shown(going, 160).endswith("7/16   0:07   2 machines, 8 hosts, 31 in flight")
    assert shown(going, 80).endswith("7/16   0:07   2 machines, 8 hosts, 31 in flight")
    going.working_since = time.monotonic() - 7
    assert shown(going, 80).endswith("7/16   0:07, about 9 s left   31 in flight")
    going.stage = Stage.CANCELLING
    assert "left" not in shown(going, 160)


def test_what_is_left_is_never_nothing():
    going = run(Stage.RUNNING, 15, 1, working_since=time.monotonic() - 0.1)
    assert shown(going, 160).endswith("0:07, about 1 s left")


def test_two_finished_cases_say_nothing_of_the_time_left():
    going = run(Stage.RUNNING, 2, 1, counts=Counter(PASSED=2), working_since=time.monotonic() - 7)
    assert shown(going, 160).endswith("2/16   1 in flight   0:07")


@pytest.mark.parametrize(
    ("stage", "counts", "width", "line"),
    [
        (Stage.FINISHED, {"FAILED": 2, "ERROR": 3}, 80, "✗ Run 19: 2 failed, 3 errors in 7 s"),
        (Stage.FINISHED, {"PASSED": 16}, 80, "✓ Run 19: 16 passed in 7 s"),
        (Stage.FAILED, {}, 160, "! Run 19 failed to start"),
    ],
)
def test_a_run_that_is_over(stage, counts, width, line):
    ended = run(stage, 7, counts=Counter(counts))
    ended.ended = ended.began + 7
    assert shown(ended, width) == line


def test_a_run_that_was_stopped_at_its_budget():
    ended = run(Stage.FINISHED, 7, counts=Counter(PASSED=7), is_stopped=True, remarks=["9 cases not run"])
    ended.ended = ended.began + 7
    line = "– Run 19 stopped after 7 of 16; finished results are kept"
    assert shown(ended, 160).startswith(line)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"selected": 12}, "✗ Run 18 baseline of today 14:05: 7 passed, 5 failed in 14.5 s"),
        ({}, "✗ Run 18 baseline of today 14:05: 7 passed, 5 failed, 4 not evaluated in 14.5 s"),
        ({"ending": "interrupted"}, "– Run 18 baseline of today 14:05: interrupted after 12 of 16"),
        ({"ending": "going on"}, "◐ Run 18 baseline of today 14:05: started in another process"),
        ({"problem": "damaged"}, "! Run 18 baseline of today 14:05 is unreadable"),
    ],
)
def test_the_last_run_of_an_earlier_sitting(fields, text):
    today = datetime.now().astimezone().replace(hour=14, minute=5)
    counts = {"PASSED": 7, "FAILED": 5}
    fields = {"selected": 16, "seconds": 14.5, **fields}
    row = RunRow(Path("x"), today, 18, ("baseline",), totals=Totals(counts), **fields)
    workbench = Workbench(Path("nowhere"))
    workbench.outcomes.last_run = row
    assert draw(run_line(workbench, 160), color=False) == text


def test_a_conversation_is_not_begun_to_see_whether_it_waits():
    workbench = Workbench(Path("nowhere"))
    assert status_line(workbench, 100) == run_line(workbench, 100)
    assert not workbench.has_chat


async def test_the_header_of_an_agent_behind_a_network_has_its_url(tmp_path):
    url = "http://127.0.0.1:8000/my_app"
    workbench = Workbench(AgentAddress(tmp_path, url=url))
    workbench.agent.imported({"name": "my_app", "framework": "adk_api", "python": "3.12.1"})
    assert draw(header_ends(workbench, url, 80)[0], color=False) == f" {url}  ADK api_server"
    refused = "connection refused. Start the server or check the address"
    workbench.agent.failed(ErrorInfo("UnreachableError", refused, where=f"GET {url}", kind=None))
    assert draw(header_ends(workbench, url, 80)[0], color=False) == f" {url}  ! cannot be loaded"
    page = Page(80)
    write_broken(page, workbench.agent, workbench.agent.error)
    shown = " ".join(draw(line, color=False) for line in page.lines)
    assert "Cannot load agent" in shown
    assert refused.split()[0] in shown
    assert f"GET {url}" in shown
    await workbench.close()
