"""Commands with the URL of an agent in place of its folder."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from misbehaving_server import MisbehavingServer, event, refuses, says, streams

from evaltui import evaluate
from evaltui.project.agent_address import AgentAddress
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from evaltui.workbench.workbench import Workbench
from tests.stored_runs import interrupt

TOKEN = "Bearer zebra-4711"


def case(eval_id, message="hi"):
    return make_case(eval_id, make_turn(message, "hello", calls=[]))


@pytest.fixture
def home(tmp_path):
    write_eval_set(tmp_path, "desk", *(case(name) for name in "abcd"))
    write_test_config(tmp_path, response_match_score=0.5)
    (tmp_path / ".env").write_text(f"MY_CREDENTIAL='{TOKEN}'\n")
    return tmp_path


@pytest.fixture
def server():
    with MisbehavingServer() as server:
        yield server


def report_of(home):
    return json.loads((home / "out.json").read_text())


def run(url, home, *words):
    return call("run", url, "--home", home, "--report", f"json={home / 'out.json'}", *words)


def test_each_case_has_its_own_error_and_nothing_holds_a_credential(server, home, capfd):
    said = "the token is zebra-4711, all of it Bearer zebra-4711"
    server.turns += [
        says("hello"),
        streams(event("hel"), end="reset"),
        refuses(401, detail=said),
        streams(event(said), event("hello")),
    ]
    code = run(server.url, home, "--parallel", "1", "--header-env", "X-Token=MY_CREDENTIAL")
    assert code == 3
    assert {request.headers.get("X-Token") for request in server.requests} == {TOKEN}
    cases = {one["eval_id"]: one for one in report_of(home)["cases"]}
    assert [one["status"] for one in cases.values()] == ["PASSED", "ERROR", "ERROR", "PASSED"]
    assert cases["b"]["error"]["type"] == "ConnectionLostError"
    assert cases["b"]["error"]["where"] == f"POST {server.url.removesuffix('/desk')}/run_sse"
    masked = "401 Unauthorized: the token is <MY_CREDENTIAL>, all of it <MY_CREDENTIAL>"
    assert cases["c"]["error"]["message"] == f"{masked}. Check the value of MY_CREDENTIAL"
    paths = [path for path in home.rglob("*") if path.suffix in (".json", ".sqlite")]
    assert len(paths) > 3
    written = [path.read_text(errors="replace") for path in paths]
    out, err = capfd.readouterr()
    assert not any("zebra" in text for text in (*written, out, err))
    (log,) = (home / ".evaltui" / "runs").glob("*.sqlite")
    assert RunFile(log).header.url == server.url
    assert call("runs", server.url, "--home", home) == 0
    assert "2 passed, 2 errors" in capfd.readouterr().out
    assert call("compare", server.url, "--home", home, "last", "last") == 0


def test_a_turn_that_takes_too_long_says_what_was_asked(server, home):
    server.turns.append(streams(event("hel"), end="held"))
    assert run(server.url, home, "desk:a", "--timeout", "0.5") == 3
    error = report_of(home)["cases"][0]["error"]
    assert (error["type"], error["message"]) == ("TimeoutError", "no response within 0.5 s")
    assert error["where"].endswith("/run_sse")


def test_a_server_that_is_not_there_is_one_error(home, capsys):
    with MisbehavingServer() as server:
        url = server.url
    assert run(url, home, "--report", "console") == 3
    out = capsys.readouterr().out
    assert out.count("Start the server or check the address\n") == 1
    assert "also b, c, d" in out
    assert {one["error"]["type"] for one in report_of(home)["cases"]} == {"UnreachableError"}


def test_times_of_models_and_what_is_stubbed_are_unknown(server, home):
    assert run(server.url, home, "desk:a") == 0
    (scored,) = report_of(home)["cases"]
    details = next(one for one in scored["metrics"] if one["name"] == "invocation_duration_v1")["details"]
    assert details["total_seconds"] > 0
    assert (details["model_seconds"], details["tool_seconds"]) == (None, None)
    config = {"criteria": {"response_match_score": 0.5}, "evaltui": {"tools": {"send_mail": "stub"}}}
    (home / "test_config.json").write_text(json.dumps(config))
    assert run(server.url, home, "desk:a") == 3
    (error,) = (one["error"] for one in report_of(home)["cases"])
    assert error["message"].startswith("the agent is behind a network and calls its models and tools there;")


def test_recordings_of_the_project_are_off(server, home, capsys):
    (home / "pyproject.toml").write_text('[tool.evaltui]\nrecord = "auto"\n')
    assert run(server.url, home, "--report", "console") == 0
    assert capsys.readouterr().out.count("recordings auto: off for an agent behind a network") == 1
    assert not (home / "recordings").exists()


def test_chat_and_record(server, home, capsys, monkeypatch):
    server.turns += [says("hello"), says("hello")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hi\n")))
    assert call("chat", server.url, "--home", home) == 0
    assert "hello" in capsys.readouterr().out
    # Whatever is made on the server is deleted there.
    assert server.sent("/apps/desk/users/", "DELETE") == server.sent("/apps/desk/users/") == 1
    turns = home / "turns.txt"
    turns.write_text("hi\n")
    assert call("record", server.url, "desk", "--home", home, "--case", "new", "--turns", turns) == 0
    stored = json.loads((home / "desk.evalset.json").read_text())["eval_cases"][-1]
    assert stored["conversation"][0]["final_response"]["parts"] == [{"text": "hello"}]
    assert run(server.url, home, "desk:new") == 0


def test_a_run_is_not_resumed_with_another_agent(server, home, capsys):
    server.turns.append(refuses(500))
    assert run(server.url, home, "--parallel", "1") == 3
    assert call("run", f"{server.url}2", "--home", home, "--resume", "last") == 2
    assert "no runs of" in capsys.readouterr().err
    assert call("run", f"{server.url}2", "--home", home, "--resume", RunStore(home).latest()) == 2
    assert f"the run is of {server.url}." in capsys.readouterr().err
    assert call("run", server.url, "--home", home, "--resume", "last") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["http://me:secret@h/x"], "holds credentials. Give them in a variable: --header-env"),
        (["http://h/x?token=secret"], "has a query or a fragment"),
        (["http://h/x#secret"], "has a query or a fragment"),
        (["http://"], "http:// is not the address of an agent"),
        (["http://h:99999/x"], "the address of the agent cannot be read"),
        (["http://h/x", "--header-env", "A=NOT_THERE"], "A=NOT_THERE: NOT_THERE is not set. Set it in"),
        (["http://h/x", "--header-env", "A=Bearer secret"], "--header-env takes NAME=VARIABLE"),
        (["http://h/x", "--header-env", "Authorization"], "--header-env takes NAME=VARIABLE"),
        (["http://h/x", "--header-env", "Host=HOME"], "the header Host is set by evaltui"),
        (["http://h/x", "--record", "auto"], "--record auto: an agent behind a network"),
        (["http://h/x", "--tools", "stub"], "--tools stub: an agent behind a network"),
        (["http://h/x", "--agent", "sub"], "--agent: an agent behind a network is run as it is served"),
        (["http://h/x", "--home", "not there"], "--home: not there is not a folder"),
        (["my_agent", "--home", "."], "--home needs an agent with a URL"),
        (["localhost:8000/my_app"], "does not exist. Did you mean http://localhost:8000/my_app?"),
    ],
)
def test_wrong_use_is_told_without_a_credential(words, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (Path("my_agent")).mkdir()
    assert call("run", *words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "secret" not in err


@pytest.mark.parametrize(
    ("events", "says"),
    [((), "the response is empty"), ((event("hel", partial=True),), "ends in the middle of a text")],
)
def test_a_response_without_a_whole_event_is_an_error(server, home, events, says):
    write_test_config(home, tool_trajectory_avg_score=1.0)
    server.turns.append(streams(*events))
    assert run(server.url, home, "desk:a") == 3
    error = report_of(home)["cases"][0]["error"]
    assert (error["type"], says in error["message"]) == ("MalformedResponseError", True)


def test_an_error_code_of_the_server_is_an_error(server, home):
    write_test_config(home, tool_trajectory_avg_score=1.0)
    failed = {"author": "desk", "id": "e", "invocationId": "i", "errorCode": "SAFETY", "errorMessage": "no"}
    server.turns.append(streams(failed))
    assert run(server.url, home, "desk:a") == 3
    error = report_of(home)["cases"][0]["error"]
    assert (error["type"], error["message"]) == ("SAFETY", "no")


def test_only_the_home_is_searched_for_eval_sets(server, home, capsys):
    (home / "pyproject.toml").touch()
    folders = [home / name for name in ("evals_a", "evals_b", "empty")]
    for folder in folders:
        folder.mkdir()
    for folder in folders[:2]:
        write_eval_set(folder, folder.name, case("a"))
    write_test_config(folders[0], response_match_score=0.5)
    server.turns += [says("hello")] * 2
    assert call("run", server.url, "--home", folders[0], "--report", f"json={home / 'out.json'}") == 0
    assert [one["eval_set_id"] for one in report_of(home)["cases"]] == ["evals_a"]
    assert len(asyncio.run(evaluate(server.url, home=folders[0])).cases) == 1
    workbench = Workbench(AgentAddress(folders[0], url=server.url))
    asyncio.run(workbench.sets.read())
    assert [eval_set.eval_set_id for eval_set in workbench.sets.workspace.sets] == ["evals_a"]
    capsys.readouterr()
    assert call("run", server.url, "--home", folders[2]) == 2
    assert " ".join(capsys.readouterr().err.split()).endswith("in the folder itself, eval*/ and test*/ in it")
    (home / "turns.txt").write_text("hi\n")
    words = ("--home", folders[0], "--case", "b", "--turns", home / "turns.txt")
    assert call("record", server.url, "evals_b", *words) == 2
    assert "no eval set 'evals_b'" in capsys.readouterr().err


def test_results_are_of_the_metric_that_scored_them(server, home):
    metric = home / "checks" / "metrics.py"
    metric.parent.mkdir()
    (metric.parent / "__init__.py").touch()
    metric.write_text("def own(actual, expected, criterion):\n    return 1.0\n")
    own = {"own": {"threshold": 1.0, "function": "checks.metrics.own"}}
    (home / "test_config.json").write_text(json.dumps({"criteria": {}, "evaltui": {"criteria": own}}))
    server.turns += [says("hello")] * 4
    assert run(server.url, home) == 0

    async def reasons():
        workbench = Workbench(AgentAddress(home, url=server.url))
        await workbench.open()
        await workbench.outcomes.restore()
        found = [workbench.outcomes.freshness(case) for case in workbench.sets.every_case()]
        await workbench.close()
        return {one.reasons if one.is_stale else () for one in found}

    assert asyncio.run(reasons()) == {()}
    metric.write_text("def own(actual, expected, criterion):\n    return 0.0\n")
    assert asyncio.run(reasons()) == {("checks/metrics.py",)}
    interrupt(RunStore(home).latest(), 2)
    assert run(server.url, home, "--resume", "last") == 2
