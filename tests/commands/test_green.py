"""Whatever is asked for and cannot be judged, is missing or is broken: no run of it ends with 0."""

import json
from pathlib import Path

import pytest
from command_line import call
from green_rows import AGENT, JUDGES, MATCH, METRICS, ROWS, RUNS, Row, judged

from evaltui.commands import run

# They take longest, and differ in what a judge answers only.
LONG = {
    "nothing recorded",
    "response to a call that does not wait",
    *(f"judge: {name}" for name in ("mute", "other", "angry", "quotes", "breaks_off", "twice")),
}
PARAMS = [
    pytest.param(row, id=name, marks=pytest.mark.thorough if name in LONG else ())
    for name, row in ROWS.items()
]


class NotStarted:
    """A host that must not be needed: what is refused is refused before anything runs."""

    async def kill(self) -> None:
        """Nothing to end."""


@pytest.fixture
def agent(write_agent) -> Path:
    return write_agent(AGENT, metrics=METRICS, judges=JUDGES)


@pytest.mark.parametrize("config", [{"criteria": MATCH}, judged("good")], ids=["computed", "judged"])
def test_what_is_judged_passes(agent, config, capsys):
    Row(config).write(agent)
    assert call("run", agent) == 0
    if config == {"criteria": MATCH}:
        assert call("run", agent, *RUNS["--baseline"]) == 0


@pytest.mark.parametrize("row", PARAMS)
def test_what_is_not_judged_does_not(agent, row, capsys, monkeypatch):
    row.write(agent)
    if row.code == 2:
        monkeypatch.setattr(run, "spawn_host", lambda _: NotStarted())
    code = call("run", agent, *row.words)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert code in (row.code if isinstance(row.code, tuple) else (row.code,)), out + err
    if code == 2:
        assert err.startswith("evaltui run: ")


def test_a_metric_without_a_score_keeps_the_case_from_passing(agent, capsys):
    """All in one run, which is quicker: the worst of them is the case's verdict."""
    names = ("none", "text", "nan", "infinite", "raises", "outside")
    interval = {"min_value": 0, "max_value": 1}
    metrics = {
        name: {"function": f"my_agent.metrics.{name}", "threshold": 0.5, "interval": interval}
        for name in (*names, "good")
    }
    Row({"criteria": MATCH, "evaltui": {"criteria": metrics}}).write(agent)
    assert call("run", agent, "--report", "json") == 3
    (found,) = json.loads(capsys.readouterr().out)["cases"]
    statuses = {metric["name"]: metric["status"] for metric in found["metrics"]}
    assert {statuses[name] for name in names} <= {"ERROR", "NOT_EVALUATED"}
    assert statuses["good"] == statuses["response_match_score"] == "PASSED"
