"""The line that says how far a run is."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace

import pytest

from evaltui.commands.progress import Progress, RunProgress, progress_line
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.limits import CallRate, Limit
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status
from evaltui.core.model.spending import Cost, ModelSpending, Spending
from evaltui.runner.limiter import Limiter
from evaltui.runner.plan import AtWork, CaseDone, CaseStarted, RepeatDone, Scaled

RUN = RunProgress(
    120,
    done=Counter(PASSED=10, FAILED=2),
    cost=Cost(0.011),
    rate=CallRate(48.0, 60.0),
    scale=Scaled(2, 8, 31),
    seconds=7.0,
    working=6.0,
)
WHOLE = (
    "12/120, 2 failed · 0:07, about 54 s left · $0.011 · calls/min 48 of 60 · "
    "2 machines, 8 hosts, 31 in flight"
)


def test_everything_that_is_known():
    assert progress_line(RUN, 200) == WHOLE


def test_what_does_not_fit_is_left_out_from_the_right_end():
    without_scale = WHOLE.rpartition(" · ")[0]
    short = f"{without_scale} · 31 in flight"
    for columns in range(17, len(WHOLE) + 1):
        line = progress_line(RUN, columns)
        assert len(line) <= columns
        if line != short:
            assert line == WHOLE[: len(line)]
            assert (WHOLE + " · ")[len(line) :].startswith(" · ")
    assert progress_line(RUN, 90) == short
    assert progress_line(RUN, 80) == without_scale
    assert progress_line(replace(RUN, scale=Scaled(0, 0, 0)), 90) == f"{without_scale} · no worker"
    assert progress_line(RUN, 9) == "12/120, 2"


@pytest.mark.parametrize(
    ("cost", "shown"),
    [(None, ""), (Cost(None, unpriced=2), ""), (Cost(0.0), "$0"), (Cost(0.5, unseen=1), "$0.500+")],
)
def test_an_unknown_cost_is_not_nothing(cost, shown):
    run = RunProgress(3, cost=cost, seconds=1.0)
    assert progress_line(run, 80) == " · ".join(filter(None, ["0/3 · 0:01", shown]))


@pytest.mark.parametrize(
    ("done", "carried", "left"),
    # The cases that an earlier run had finished do not count for the pace.
    [(2, 0, None), (3, 0, 14.0), (10, 0, None), (5, 3, None), (6, 3, 8.0)],
)
def test_the_time_that_is_left(done, carried, left):
    run = RunProgress(10, done=Counter(PASSED=done), carried=carried, working=6.0)
    assert run.seconds_left == (None if left is None else pytest.approx(left))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_run_that_is_followed(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    names = [CaseId("a", f"case_{number}") for number in range(6)]
    terminal = Terminal()
    progress = Progress(terminal, 6, "flash")
    result = RepeatResult(
        Status.PASSED, spent=Spending((ModelSpending("agent", "gemini", calls=1, usd=0.002),))
    )

    def end(name: CaseId) -> None:
        progress.on_update(CaseDone(CaseResult(name.eval_id, Status.PASSED, repeats=(result,), path="a")))

    # Of an earlier run.
    end(names[0])
    progress.on_update(AtWork(lambda: pytest.fail("killed"), 1, lambda: CallRate(3.0, 60.0)))
    for name in names[1:5]:
        progress.on_update(CaseStarted(name, "a", 0))
        now[0] += 1
        progress.on_update(RepeatDone(name, "a", 0, result))
        end(name)
        now[0] += 1
    progress.on_update(CaseStarted(names[5], "a", 0))
    last = terminal.getvalue().rpartition("\x1b[2K")[2]
    assert last == "flash · 5/6 · 0:08, about 2 s left · $0.0080 · calls/min 3 of 60 · case_5"


def test_the_clock_goes_on_while_nothing_happens(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    terminal = Terminal()
    progress = Progress(terminal, 6)
    for seconds in (1.0, 0.5, 0.5, 60.0):
        now[0] += seconds
        progress.tick()
    assert terminal.getvalue().split("\r\x1b[2K") == ["", "0/6 · 0:01", "0/6 · 0:02", "0/6 · 1:02"]
    silent = io.StringIO()
    Progress(silent, 6).tick()
    assert not silent.getvalue()


def test_calls_per_minute_are_those_of_the_nearest_limit():
    now = [0.0]
    limits = (Limit("*", rpm=100), Limit("gemini-*", rpm=3), Limit("*", tpm=1_000_000))
    limiter = Limiter(limits, lambda: now[0])
    assert Limiter(limits[2:], lambda: now[0]).rate() is None
    for model in ("gemini-a", "gemini-b", "other"):
        limiter.ask(model, 10)
    limiter.let_go()
    assert limiter.rate() == CallRate(2, 3)
    now[0] = 61.0
    assert limiter.rate() in (CallRate(0, 100), CallRate(0, 3))


def test_a_part_of_a_call_per_minute():
    limiter = Limiter((Limit("*", rpm=0.5),), lambda: 0.0)
    limiter.ask("any", 10)
    limiter.let_go()
    assert limiter.rate() == CallRate(pytest.approx(0.5), pytest.approx(0.5))
