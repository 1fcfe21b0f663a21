"""Errors have a kind wherever they are reported, and `--retry-errors` runs those of a kind again."""

from __future__ import annotations

import csv
import json
import socket
import ssl
import urllib.error
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest
from command_line import call
from fake_runs import run_without_processes
from gemini_server import fails
from google.genai.errors import APIError
from numbered_cases import act, assert_same_run, logs_of, write_set

from evaltui.agents.call_recorder import NotRecordedError
from evaltui.agents.exception_kinds import kind_of
from evaltui.core.model.errors import ErrorKind
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from tests.eval_data import make_case, make_turn, write_eval_set, write_test_config
from tests.stored_runs import change

AGENT = """
    import asyncio
    import os
    import socket
    import urllib.request
    from pathlib import Path

    from google import genai

    FIXED = Path(__file__).parent.parent / "fixed"


    def ask(key):
        options = genai.types.HttpOptions(base_url=os.environ["GOOGLE_GEMINI_BASE_URL"])
        client = genai.Client(api_key=key, http_options=options)
        client.models.generate_content(model="gemini-test", contents="hello")


    async def root_agent(message, session):
        match "" if FIXED.exists() else message:
            case "rate_limit":
                ask(os.environ["GOOGLE_API_KEY"])
            case "config":
                ask("another key")
            case "network":
                with socket.socket() as nobody:
                    nobody.bind(("127.0.0.1", 0))
                    port = nobody.getsockname()[1]
                urllib.request.urlopen(f"http://127.0.0.1:{port}/")
            case "timeout":
                await asyncio.sleep(60)
            case "host_lost":
                os._exit(3)
            case "agent":
                raise KeyError("nothing there")
        return "right"
"""
JUDGE = """
import json
from pathlib import Path

FIXED = Path(__file__).parent.parent / "fixed"


def judge(prompt):
    if not FIXED.exists():
        raise RuntimeError("no verdict")
    return json.dumps({"reasoning": "", "is_the_agent_response_valid": "valid"})
"""
KINDS = [kind.value for kind in ErrorKind]


def case_of(kind: str) -> dict[str, Any]:
    return make_case(kind, make_turn(kind, "right"))


@pytest.fixture
def agent(write_agent, gemini):
    folder: Path = write_agent(AGENT)
    (folder / "judging.py").write_text(JUDGE)
    options = {"judge_model": "judging:judge", "num_samples": 1}
    criterion = {"threshold": 1.0, "judge_model_options": options}
    write_test_config(folder, final_response_match_v2=criterion)
    write_eval_set(folder, "all", *(case_of(kind) for kind in KINDS))
    gemini.respond = lambda request: fails(429, "slow down")
    return folder


def kinds_in(report: dict[str, Any]) -> dict[str, Any]:
    """By case; None for one that passed."""
    found = {}
    for case in report["cases"]:
        errors = [case["error"], *(metric["error"] for metric in case["metrics"])]
        found[case["eval_id"]] = next((one["kind"] for one in errors if one), None)
    return found


def test_every_kind_is_told_and_run_again(agent, tmp_path, capsys):
    def run(*words: str) -> dict[str, Any]:
        targets = [f"{kind}={tmp_path / kind}" for kind in ("json", "junit", "csv", "console")]
        reports = [word for target in targets for word in ("--report", target)]
        code = call("run", *words, agent, "--timeout", "2", *reports)
        report: dict[str, Any] = json.loads((tmp_path / "json").read_text())
        return report | {"code": code}

    first = run()
    assert first["code"] == 3
    assert kinds_in(first) == {kind: kind for kind in KINDS}
    suite = ET.parse(tmp_path / "junit")
    types = {one.get("name"): one.find("error").get("type") for one in suite.iter("testcase")}
    assert types == {kind: kind for kind in KINDS}
    rows = csv.DictReader((tmp_path / "csv").open())
    told = {row["eval_id"]: row["error_kind"] for row in rows if row["error_kind"]}
    assert told == {kind: kind for kind in KINDS}
    text = (tmp_path / "console").read_text()
    assert f"{len(KINDS)} errors ({', '.join(f'1 {kind}' for kind in KINDS)}) in" in text
    assert text.count("--retry-errors runs the case again") == 3
    # The folder that follows is the agent, no kind.
    (agent.parent / "fixed").touch()
    second = run("--retry-errors")
    passed = {kind for kind, found in kinds_in(second).items() if found is None}
    assert passed == {"rate_limit", "network", "host_lost"}
    assert second["totals"] == first["totals"] | {"error": 4, "passed": 3}
    assert run("--retry-errors=judge,agent", "--resume", "last")["totals"]["error"] == 2
    assert run("--retry-errors=all")["code"] == 0
    capsys.readouterr()
    assert call("run", agent, "--retry-errors=all") == 2
    assert "run is complete" not in capsys.readouterr().err
    last = RunStore(agent).latest()
    assert {one.id.eval_id for one in RunFile(last).cases} == set(KINDS)


@pytest.mark.parametrize(
    ("failure", "kind", "others"),
    [
        ('raise ConnectionError("503")', "network", "judge,config"),
        ('raise RuntimeError("broken")', "judge", "network,config"),
        ('return "I cannot tell."', "judge", "network,config"),
    ],
)
def test_a_verdict_that_errors_of_a_judge_prevented_is_run_again(
    agent, tmp_path, capsys, failure, kind, others
):
    """Fewer than half of the votes: the case is not evaluated, for an error."""
    judge = JUDGE.replace('raise RuntimeError("no verdict")', failure)
    judge = judge.replace("    if not FIXED", "    ASKED.append(1)\n    if len(ASKED) > 2 and not FIXED")
    (agent / "judging.py").write_text(judge.replace("FIXED =", "ASKED = []\nFIXED ="))
    options = {"judge_model": "judging:judge", "num_samples": 5}
    criterion = {"threshold": 1.0, "judge_model_options": options}
    write_test_config(agent, final_response_match_v2=criterion)

    def run(*words: str) -> dict[str, Any]:
        code = call("run", agent, *words, "--report", f"json={tmp_path / 'json'}")
        return json.loads((tmp_path / "json").read_text()) | {"code": code}

    first = run("all:judge")
    assert (first["code"], first["totals"]["not_evaluated"]) == (3, 1)
    assert kinds_in(first) == {"judge": kind}
    (metric,) = [one for one in first["cases"][0]["metrics"] if one["name"] == "final_response_match_v2"]
    assert "3 of 5 votes without a verdict" in metric["reason"]
    (agent.parent / "fixed").touch()
    assert call("run", agent, f"--retry-errors={others}") == 2
    assert run(f"--retry-errors={kind}")["code"] == 0
    capsys.readouterr()
    assert call("run", agent, "--retry-errors=all") == 2


def _raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as raised:
        return raised


def _handled(first: BaseException, then: BaseException) -> BaseException:
    then.__context__ = first
    return then


def _status(status: int) -> APIError:
    return APIError(status, {"error": {"code": status, "message": "no", "status": "X"}})


class _Odd(Exception):
    status = 429

    @property
    def response(self) -> object:
        raise RuntimeError("never")

    @property
    def error_kind(self) -> object:
        raise RuntimeError("never")


EXCEPTIONS = {
    "of the user": (KeyError("x"), "agent"),
    "a status of the user's": (_Odd(), "agent"),
    "exit": (SystemExit(429), "agent"),
    "429": (_status(429), "rate_limit"),
    "503": (_status(503), "network"),
    "401": (_status(401), "config"),
    "400": (_status(400), "agent"),
    "a wrong key": (APIError(400, {"error": {"details": [{"reason": "API_KEY_INVALID"}]}}), "config"),
    "wrapped": (_raised(RuntimeError("no answer"), _status(429)), "rate_limit"),
    "while another was handled": (_handled(_status(429), ValueError("fallback")), "rate_limit"),
    "in a group": (ExceptionGroup("two", [KeyError("x"), _status(503)]), "network"),
    "refused": (ConnectionRefusedError(), "network"),
    "no such host": (socket.gaierror(), "network"),
    "certificate": (ssl.SSLError(), "network"),
    "httpx": (httpx.ConnectError("no"), "network"),
    "httpx, too late": (httpx.ReadTimeout("no"), "network"),
    "httpx, status": (
        httpx.HTTPStatusError("no", request=httpx.Request("GET", "http://a"), response=httpx.Response(429)),
        "rate_limit",
    ),
    "urllib": (urllib.error.URLError("no"), "network"),
    "urllib, status": (urllib.error.HTTPError("http://a", 404, "no", {}, None), "agent"),  # type: ignore[arg-type]
    "too late": (TimeoutError(), "timeout"),
    "asyncio": (TimeoutError(), "timeout"),
    "recording": (NotRecordedError("no"), "config"),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_the_kind_of_an_exception(name):
    error, kind = EXCEPTIONS[name]
    assert kind_of(error) == kind


def test_an_exception_that_is_its_own_cause_ends():
    error = KeyError("x")
    error.__cause__ = error
    assert kind_of(error) is ErrorKind.AGENT


def test_errors_without_a_kind_are_run_again_by_all(write_agent, monkeypatch, capsys):
    run_without_processes(monkeypatch, act)
    agent = write_agent("root_agent = lambda message: message")
    write_test_config(agent, response_match_score=1.0)
    write_set(agent, "first", [0, 1, 7])
    (log,) = logs_of(agent, [])
    change(log, "UPDATE repeats SET result = json_set(result, '$.error.kind', NULL) WHERE status = 'ERROR'")
    assert call("run", agent, "--retry-errors") == 2
    said = capsys.readouterr().err
    assert "no errors of kind host_lost, network, rate_limit" in said
    (again,) = logs_of(agent, ["--retry-errors=all"])
    assert RunFile(again).header.resumed == log.stem
    assert_same_run(again, RunStore(agent).latest())
    for words in (["--retry-errors=often"], ["--retry-errors", "--runs", "2"], ["--retry-errors", "--watch"]):
        assert call("run", agent, *words) == 2
    said = capsys.readouterr().err
    assert "'often' is not a kind of error: agent, timeout, rate_limit" in said
    assert "--retry-errors: the run keeps its own options; leave out --runs" in said
    assert "--retry-errors cannot be used together with --watch" in said


def test_a_missing_key_is_one_sentence_in_every_report(write_agent, tmp_path, monkeypatch, capsys):
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    agent = write_agent(
        """
        from google.adk.agents import Agent

        root_agent = Agent(name="adder", model="gemini-2.5-flash", instruction="Add.")
        """,
        name="adder",
    )
    cases = (make_case(name, make_turn(name, "3", calls=[name])) for name in ("one", "two"))
    write_eval_set(agent, "sums", *cases)
    reports = [tmp_path / name for name in ("junit", "markdown", "html")]
    asked = (part for path in reports for part in ("--report", f"{path.name}={path}"))
    assert call("run", agent, "--report", "console", *asked) == 3
    printed = capsys.readouterr().out
    sentence = "GOOGLE_API_KEY is not set. Set it in adder/.env or the environment."
    junit, markdown, page = (report.read_text(encoding="utf-8") for report in reports)
    for text in (printed, junit, markdown):
        assert sentence in text
        assert "Traceback" not in text
        assert "ValueError" not in text
    # Nothing is said of what was expected, as nothing was done.
    assert printed.count(f"  {sentence}\n\n  also two\n") == 1
    # What ADK has printed is in the trace.
    error = page.partition('class="error-box"')[2].partition("</div>")[0]
    assert sentence in error
    assert "Traceback" not in error


TOOLS = """
    import os
    import time

    from evaltui import Agent, Rule, ScriptedModel


    def look(where: str) -> str:
        "Look."
        return "nothing"


    def leave(way: str) -> str:
        "Leave at once, or never."
        os._exit(3) if way == "exit" else time.sleep(60)


    model = ScriptedModel([
        Rule(user=".*", call=("look", {"where": "here"})),
        Rule(after_tool="look", call=("leave", {"way": "WAY"})),
    ])
    root_agent = Agent("desk", model, tools=[look, leave])
"""


@pytest.mark.parametrize("way", ["exit", "hang"])
def test_a_case_that_is_cut_off_names_the_tool_that_was_running(write_agent, capsys, way):
    folder = write_agent(TOOLS.replace("WAY", way))
    write_eval_set(folder, "set", make_case("case", make_turn("hello", "right")))
    assert call("run", folder, "--timeout", "2", "--report", "json") == 3
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert "tool leave was running" in case["error"]["message"]
    assert "look" not in case["error"]["message"]
