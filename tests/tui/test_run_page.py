"""The page of a run that goes on and of a set after one, as text."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runs import FakeRuns, says
from pilots import screen_lines, screen_text, turn, until, write_cases
from test_result_page import ASK, EXPECTED, MADE, called, event, lines_of, outcome

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.cases.view import CaseTree
from evaltui.tui.result.running import FailedCase, RunningCase, waiting_line, write_running
from evaltui.tui.result.selected import write_set_results
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.result.set_results import results_of_set
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import EarlierResult, Run, Traffic
from evaltui.workbench.workbench import Workbench

PATH = "home.evalset.json"


def run_of(count, done=0):
    run = Run(19, "all", selected=frozenset(CaseId(PATH, f"case_{number}") for number in range(count)))
    run.done.update(sorted(run.selected)[:done])
    run.parallel, run.hosts = 4, 2
    return run


def text(line):
    return "".join(part for part, _ in line)


def asked(t, **data):
    return event("model_request", 0, t, model="gemini-2.5-flash", **data)


def answered(t, seconds, tokens):
    return replace(event("model_response", 0, t), duration=seconds, usage={"total_token_count": tokens})


def test_a_run_says_how_far_it_is_and_what_each_case_waits_for():
    run = run_of(16, done=5)
    run.counts.update({"PASSED": 4, "FAILED": 1})
    flying = [
        RunningCase("night", 2, [called(0.2, 1, ASK)]),
        RunningCase("day", 1, []),
        RunningCase("late", 1, [asked(0.1)], (2, 5)),
        RunningCase("early", 1, [asked(0.1)], is_judged=True),
    ]
    page = Page(78)
    write_running(page, run, flying, [])
    lines = lines_of(page)
    assert lines[0].startswith(" ◐ RUNNING   5/16 done")
    assert lines[1].strip("━─ ") == ""
    assert lines[3] == " requests/min —   latency —   tokens —   cost —"
    assert lines[5].split() == ["In", "flight", "parallel", "4,", "2", "hosts"]
    assert lines[6].startswith("  ◐ night  turn 2 of 2   tool ask")
    assert lines[7].startswith("  ◐ day    turn 1 of 1   starting")
    assert lines[8].startswith("  ◐ late   repeat 3 of 5 waiting for gemini-2.5-flash")
    assert lines[9].startswith("  ◐ early  turn 1 of 1   judge")


def test_a_request_that_came_too_soon_says_when_it_is_sent_again():
    refused = event("error", 0, 3.0, type="ClientError", retrying=True, wait=4.0, code=429)
    other = event("error", 0, 3.0, type="ServerError", retrying=True, wait=4.0, code=503)
    assert text(waiting_line([asked(1.0), refused], 5.0)) == "rate limit, retry in 2 s"
    assert text(waiting_line([asked(1.0), other], 5.0)) == "ServerError, retry in 2 s"


def test_requests_latency_and_tokens_over_time():
    traffic = Traffic()
    assert traffic.requests_per_minute(10) is None
    assert traffic.latency(10) is None
    for one in (asked(1.0), answered(2.0, 1.0, 100), asked(70.0), answered(70.5, 0.5, 50)):
        traffic.on_event(one)
    traffic.on_event(asked(71.0, replayed=True))
    traffic.on_event(event("error", 0, 72.0, code=429, retrying=True))
    assert traffic.requests_per_minute(80) == 1
    assert traffic.latency(80) == pytest.approx(0.5)
    assert (traffic.tokens, traffic.rate_limits) == (150, 1)
    assert traffic.requests_over_time(79, 4) == [1, 0, 0, 1]
    assert traffic.latency_over_time(79, 4) == [1.0, None, None, 0.5]
    assert traffic.tokens_over_time(0, 10) == [150]


def test_calls_that_wait_side_by_side_throttle_the_run_once():
    run = run_of(16)
    for t, waited in ((20.0, 8.0), (21.0, 9.5), (40.0, 2.0), (41.0, 0.2)):
        response = event("model_response", 0, t, throttled=waited)
        run.traffic.on_event(replace(response, duration=1.0))
    assert run.traffic.throttled == 10 + 2
    page = Page(78)
    write_running(page, run, [], [])
    assert any("throttled 12 s" in line for line in lines_of(page))


@pytest.mark.parametrize("width", [30, 78, 105, 106, 180])
def test_a_run_fits_every_width(width):
    run = run_of(16)
    run.began -= 30
    for one in (asked(0.0), answered(20.5, 0.5, 1200), event("error", 0, 21.6, code=429, retrying=True)):
        run.traffic.on_event(one)
    page = Page(width, 180)
    write_running(page, run, [RunningCase("night", 2, [asked(0.1)])], [])
    text = " ".join(lines_of(page))
    assert width < 78 or "1 rate limit" in text
    assert "1,200" in text


def test_a_wide_run_has_cards_and_its_failures_the_newest_first():
    run = run_of(16, done=5)
    for one in (asked(0.0), answered(0.5, 0.5, 1200), event("error", 0, 0.6, code=429, retrying=True)):
        run.traffic.on_event(one)
    failed = [FailedCase(CaseId(PATH, name), "home", outcome(EXPECTED, MADE)) for name in ("first", "second")]
    run.failures = [one.case for one in failed]
    page = Page(116, 180)
    write_running(page, run, [], failed[::-1])
    lines = lines_of(page)
    assert lines[3].split() == ["requests/min", "1", "rate", "limit", "latency", "tokens", "cost"]
    assert lines[4].split()[0::2] == ["1", "500", "█", "█"] or lines[4].split()[:2] == ["1", "█"]
    assert [link.opens.eval_id for link in page.links] == ["second", "first"]
    assert lines[page.links[0].first].split() == ["✗", "home", "›", "second", "2", "differences"]


class Known:
    """Outcomes of the cases of a set, and what they were before."""

    def __init__(self, found, before=None):
        self._found, self._before = found, before or {}

    def get(self, case):
        return self._found.get(case.eval_id)

    def _earlier(self, case):
        status = self._before.get(case.eval_id)
        scored = self.get(case)
        return status and EarlierResult(status, "run 17", scored.stored, scored.config)

    def counts_of(self, path):
        return Counter(str(scored.status) for scored in self._found.values())

    def passed(self, path):
        return self.counts_of(path)["PASSED"]

    def history(self, case):
        return None

    def results_of_set(self, eval_set):
        of_now = {CaseId(eval_set.case_path, eval_id) for eval_id in self._found}
        return results_of_set(eval_set, self.get, self._earlier, of_now)


def set_page(width, found, before=None, cases=("good", "bad", "slow", "new")):
    stored = tuple(StoredCase.of_data({"eval_id": name, "conversation": []}) for name in cases)
    eval_set = EvalSetFile(Path(PATH), PATH, "home", "home", "evals", "eval set", stored)
    page = Page(width, 180)
    write_set_results(page, eval_set, (), Known(found, before))
    return page


def timed(scored, seconds):
    repeats = (RepeatResult(scored.result.status, seconds=seconds),)
    return replace(scored, ref=ResultInMemory.of(replace(scored.result, repeats=repeats)))


GOOD, BAD = outcome(EXPECTED, EXPECTED), outcome(EXPECTED, MADE)
FOUND = {"good": timed(GOOD, 1.0), "bad": timed(BAD, 2.0), "slow": timed(GOOD, 9.0)}


def test_a_set_says_what_did_not_pass_what_changed_and_what_was_slow():
    page = set_page(116, FOUND, {"bad": Status.PASSED, "good": Status.FAILED, "slow": Status.PASSED})
    lines = [" ".join(line.strip(" ─").split()) for line in lines_of(page)]
    assert lines[0] == "✗ FAILED 2/4 passed ✓ 2 ✗ 1 ○ 1 run 18"
    assert lines[3] == "pass rate 21–94% time mean 4 s tokens cost"
    assert lines[4].startswith("67% ━")
    assert lines[lines.index("Did not pass 1") + 1].startswith("✗ bad 2 differences turn 2: set")
    changes = lines.index("Since run 17")
    assert lines[changes + 1 : changes + 3] == ["✗ → ✓ good", "✓ → ✗ bad"]
    metrics = lines.index("Metrics")
    assert lines[metrics + 1].split()[:2] == ["✗", "tool_trajectory"]
    assert lines[metrics + 1].endswith("2/3 mean 0.83")
    assert [line.split()[1] for line in lines[lines.index("Slowest") + 1 :]] == ["slow", "bad", "good"]
    assert [link.opens.eval_id for link in page.links] == ["bad", "good", "bad", "slow", "bad", "good"]


@pytest.mark.parametrize("width", [40, 78, 116])
def test_no_line_of_a_set_is_too_long(width):
    lines = lines_of(set_page(width, FOUND | {"bad": BAD}))
    assert lines[0].startswith(" ✗ FAILED   2/4 passed")


def test_a_set_without_results_says_how_to_run_it():
    assert lines_of(set_page(78, {})) == [" ○ NOT RUN    4 cases   s  Run set"]


async def test_the_page_of_a_set_ends_with_its_run(tmp_path):
    write_cases(tmp_path, "home", {"good": [turn("Hello", "Hello.")], "other": [turn("Ho", "Ho.")]})
    app = WorkbenchApp(Workbench(tmp_path, run_service=FakeRuns()))
    async with app.run_test(size=(160, 45)) as pilot:
        bench = app.workbench
        await until(pilot, lambda: bool(bench.sets.listed))
        await pilot.press("g", "up", "3", "s")
        await until(pilot, lambda: bench.runs.current is not None and not bench.runs.is_running)
        await until(pilot, lambda: "2/2 passed" in screen_text(app))
        assert "RUNNING" not in screen_text(app)


async def test_a_case_that_fails_since_the_last_run_is_tinted_once_and_enter_goes_to_it(
    tmp_path, every_frame
):
    write_cases(tmp_path, "home", {"good": [turn("Hello", "Hello.")], "other": [turn("Ho", "Ho.")]})
    fakes = FakeRuns()
    app = WorkbenchApp(Workbench(tmp_path, run_service=fakes))
    async with app.run_test(size=(160, 45)) as pilot:
        bench = app.workbench
        await until(pilot, lambda: bool(bench.sets.listed))
        await pilot.press("R")
        await until(pilot, lambda: bench.outcomes.counts()["PASSED"] == 2)
        await until(pilot, lambda: not bench.runs.is_running)
        fakes.act = says("no")
        tree, roles = app.screen.query_one(CaseTree), set()
        seen = tree.row_role
        tree.row_role = lambda number: roles.add(seen(number)) or seen(number)
        await pilot.press("R")
        await until(pilot, lambda: not bench.runs.is_running and "act" in roles)
        await until(pilot, lambda: not bench.outcomes.newly_failing)
        await pilot.press("g", "up", "3")
        await until(pilot, lambda: "Did not pass" in screen_text(app))
        assert "✓ → ✗" in screen_text(app)
        await pilot.press("down", "down", "enter")
        assert bench.navigation.selection.eval_id == "other"


async def test_a_metric_that_was_not_evaluated_has_not_failed(tmp_path):
    write_cases(tmp_path, "home", {"good": [turn("Hello", "Hello.")], "other": [turn("Ho", "Ho.")]})
    criteria = {"response_match_score": 0.8, "my_metric": 0.5}
    custom = {"my_metric": {"code_config": {"name": "metrics.mine"}}}
    block = {"optional": ["my_metric"]}
    config = {"criteria": criteria, "custom_metrics": custom, "evaltui": block}
    (tmp_path / "test_config.json").write_text(json.dumps(config))
    app = WorkbenchApp(Workbench(tmp_path, run_service=FakeRuns()))
    async with app.run_test(size=(160, 45)) as pilot:
        bench = app.workbench
        await until(pilot, lambda: bool(bench.sets.listed))
        await pilot.press("g", "up", "3", "s")
        await until(pilot, lambda: "2/2 passed" in screen_text(app) and "my_metric" in screen_text(app))
        line = next(line for line in screen_lines(app) if "my_metric" in line)
        assert "2 not evaluated" in line
        assert "✗" not in line
