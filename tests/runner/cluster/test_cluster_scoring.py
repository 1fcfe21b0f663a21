"""Custom metrics and judges on workers: they come to what they come to on this machine."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from commands.command_line import call
from eval_data import write_eval_set
from gemini_server import KEY, Answer, GeminiServer, Hold, Request, says
from runner.cluster.clusters import Run, cluster

from tests.numbered_cases import one_case, without_times
from tests.waiting import wait_until

AGENT = """
    def root_agent(message, session):
        return "wrong" if message.endswith("3") else "right"
"""
# Which processes computed it is written beside it, where that is asked for.
METRICS = """
    import os
    import psutil
    from my_helpers import length

    def exact(actual, expected, criterion):
        if path := os.environ.get("ANCESTORS"):
            with open(path, "a") as file:
                print(*(one.pid for one in psutil.Process().parents()), file=file)
        if text(actual) == "wrong":
            print("not as expected")
        return 1.0 if length(text(actual)) == length(text(expected)) else 0.5

    def fails(actual, expected, criterion):
        if text(actual) == "wrong":
            raise KeyError("nothing like this")
        return 1.0

    def text(turn):
        return turn.final_response.parts[0].text

    def judge(prompt):
        verdict = "invalid" if "wrong" in prompt else "valid"
        return '{"reasoning": "as it is", "is_the_agent_response_valid": "%s"}' % verdict
"""
HELPERS = "length = len\n"
CONFIG = {
    "criteria": {
        "rubric_based_final_response_quality_v1": {
            "threshold": 1.0,
            "judge_model_options": {"judge_model": "gemini-judge", "num_samples": 3},
            "rubrics": [{"rubric_id": "right", "rubric_content": {"text_property": "It is right."}}],
        },
        "final_response_match_v2": {
            "threshold": 1.0,
            "judge_model_options": {"judge_model": "metrics:judge", "num_samples": 2},
        },
        "response_match_score": 0.5,
    },
    "evaltui": {
        "criteria": {
            "exact": {"threshold": 1.0, "function": "metrics.exact"},
            "fails": {"threshold": 1.0, "function": "metrics.fails"},
        },
        "prices": {"gemini-judge": {"input_mtok": 1.0, "output_mtok": 2.0}},
    },
}
COUNT = 12


def respond(request: Request) -> Answer:
    verdict = "no" if "wrong" in request.said else "yes"
    return says(f"Property: It is right.\nRationale: see there.\nVerdict: {verdict}", usage=USAGE)


USAGE = {"promptTokenCount": 400, "candidatesTokenCount": 100, "totalTokenCount": 500}


@pytest.fixture
def judged(write_agent, gemini: GeminiServer) -> Path:
    gemini.respond = respond
    folder = write_agent(AGENT, name="judged", metrics=METRICS)
    # Beside the agent, and imported by its metrics alone.
    (folder.parent / "pyproject.toml").write_text("")
    (folder.parent / "my_helpers.py").write_text(HELPERS)
    write_eval_set(folder, "judged", *map(one_case, range(COUNT)))
    (folder / "test_config.json").write_text(json.dumps(CONFIG))
    return folder


def report_of(folder: Path, *options: str, record: str = "off") -> tuple[int, dict[str, Any]]:
    path = folder / "report.json"
    code = call("run", folder, "--record", record, "--report", f"json={path}", *options)
    return code, json.loads(path.read_text())


def comparable(report: dict[str, Any]) -> dict[str, Any]:
    """Without times, and without where it ran."""
    for case in report["cases"]:
        for repeat in case["repeats"]:
            for metric in (*repeat["metrics"], *case["metrics"]):
                (metric.get("error") or {}).pop("traceback", None)
    return {
        name: value
        for name, value in without_times(report).items()
        if name not in ("log", "started", "settings", "notes")
    }


def test_metrics_and_judges_come_to_the_same_on_workers(judged, scheduler, gemini: GeminiServer):
    code, here = report_of(judged)
    asked = len(gemini.requests)
    assert asked == 3 * COUNT
    there_code, there = report_of(judged, "--scheduler", scheduler)
    assert (there_code, len(gemini.requests)) == (code, 2 * asked)
    assert comparable(there) == comparable(here)
    (of_case_3,) = (case for case in there["cases"] if case["eval_id"] == "case_3")
    statuses = {metric["name"]: metric["status"] for metric in of_case_3["metrics"]}
    assert (statuses["exact"], statuses["fails"]) == ("PASSED", "ERROR")
    assert "not as expected" in Path(there["log"]).read_text(errors="replace")


@pytest.mark.thorough
def test_what_judges_answer_on_workers_is_recorded_and_replayed(judged, scheduler, gemini: GeminiServer):
    _, recorded = report_of(judged, "--scheduler", scheduler, record="auto")
    assert len(gemini.requests) == 3 * COUNT
    _, replayed = report_of(judged, record="auto")
    assert len(gemini.requests) == 3 * COUNT
    assert replayed["judge_calls"] == {"live": 0, "replayed": 5 * COUNT}
    assert [case["status"] for case in replayed["cases"]] == [case["status"] for case in recorded["cases"]]


@pytest.mark.parametrize("ships", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_key_that_workers_do_not_have_is_said(judged, scheduler, gemini: GeminiServer, monkeypatch, ships):
    (judged / ".env").write_text(f"GOOGLE_API_KEY={KEY}\n")
    monkeypatch.delenv("GOOGLE_API_KEY")
    shipped = ["--ship-env", "GOOGLE_API_KEY"] if ships else []
    _, report = report_of(judged, "--scheduler", scheduler, *shipped)
    found = {
        (metric["status"], metric["reason"])
        for case in report["cases"]
        for metric in case["metrics"]
        if metric["name"] == "rubric_based_final_response_quality_v1" and case["eval_id"] != "case_3"
    }
    assert len(found) == 1
    status, reason = found.pop()
    if ships:
        assert status == "PASSED"
    else:
        assert status == "NOT_EVALUATED"
        assert reason.startswith(
            "GOOGLE_API_KEY is not set on the workers. Send such variables with --ship-env"
        )
        assert gemini.requests == []


def clients_of(server: GeminiServer, among: list[psutil.Process]) -> list[psutil.Process]:
    """Those whose descendants are connected to a server."""
    port = int(server.url.rpartition(":")[2])

    def is_connected(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return any(one.raddr and one.raddr.port == port for one in process.net_connections("tcp"))
        return False

    return [one for one in among if any(map(is_connected, one.children(recursive=True)))]


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("fresh_hosts")
def test_metrics_and_judges_are_computed_by_workers_and_outlive_one(
    judged, gemini: GeminiServer, monkeypatch, tmp_path
):
    """The worker of the first judge dies before the answer: another one asks again."""
    pids = tmp_path / "pids"
    monkeypatch.setenv("ANCESTORS", str(pids))
    hold = Hold()
    gemini.script(says("never read").after(hold))
    run = Run(judged, "--record", "off", "--scheduler", "local:2", "--parallel", "1")
    wait_until(hold.reached.is_set)
    workers = run.own_workers()
    (asking,) = clients_of(gemini, workers)
    asking.kill()
    wait_until(lambda: not asking.is_running())
    hold.release()
    code, said = run.end()
    assert (code, said) == (1, "")
    expected = {(f"case_{number}", "FAILED" if number == 3 else "PASSED"): 1 for number in range(COUNT)}
    assert run.results() == expected
    assert 3 * COUNT <= len(gemini.requests) <= 3 * COUNT + 6
    known = {one.pid for one in workers}
    lines = [set(map(int, line.split())) for line in pids.read_text().splitlines()]
    assert len(lines) >= COUNT
    assert all(run.process.pid in line for line in lines)
    # The one that was killed was started anew.
    assert all(len(line & known) <= 1 for line in lines)
    assert any(line & known for line in lines)


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("fresh_hosts")
def test_a_case_whose_scheduler_is_lost_while_it_is_judged_is_resumed(judged, gemini: GeminiServer):
    hold = Hold()
    gemini.script(says("never read").after(hold))
    with cluster(2) as started:
        run = Run(judged, "--record", "off", "--scheduler", started.address, "--parallel", "1")
        wait_until(hold.reached.is_set)
        started.scheduler.kill()
        code, said = run.end()
    hold.release()
    assert code == 3
    assert f"{started.address}: the scheduler was lost" in said
    assert "Traceback" not in said
    assert run.results().total() < COUNT
    again = Run(judged, "--resume", "last", "--scheduler", "local:2")
    assert again.end()[0] == 1
    assert again.results().total() == COUNT


@pytest.mark.thorough
def test_a_budget_that_judges_use_up_is_kept_to_on_workers(judged, scheduler, gemini: GeminiServer):
    options = ("--scheduler", scheduler, "--allow-unmetered")
    code, report = report_of(judged, *options, "--budget", "5000tok")
    assert code == 3
    assert any("budget of" in note for note in report["notes"])
    asked = len(gemini.requests)
    assert 8 <= asked < 3 * COUNT
    assert call("run", judged, "--resume", "last", *options, "--budget", "1Mtok") == 1
    # Of a case that was left, what its judges had answered is asked again.
    assert 3 * COUNT <= len(gemini.requests) <= 3 * COUNT + 8 * 3
