"""`evaltui listen`: what google-adk exports is scored against the nearest case of the agent's sets."""

import asyncio
import json
import signal
import socket
import subprocess
import sys

import pytest

from tests.eval_data import write_eval_set

pytest.importorskip("google.adk")

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from evaltui.commands.listen import _SessionOutput
from evaltui.core.model.outcome import Status
from evaltui.core.secrets import Secrets
from evaltui.project.agent_address import AgentAddress
from evaltui.project.interpreters import OWN
from evaltui.runner.plan import CaseStarted
from evaltui.runs import sessions
from evaltui.runs.history import open_run
from evaltui.runs.run_file import RunFile
from evaltui.runs.selection import RunRequest
from evaltui.runs.sessions import Address, open_listener
from evaltui.runs.store import RunStore
from tests.commands.command_line import call
from tests.traces.adk_spans import BARE, EVENTS_ONLY, SPANS, run
from tests.traces.test_score_command import COST, LAMP, THANKS, TIME, case

pytestmark = pytest.mark.adk


def export(url, told, token=""):
    """Every sender waits for the disk, which other work may hold up."""
    more = {"headers": {"Authorization": f"Bearer {token}"} if token else {}, "timeout": 60}
    assert OTLPSpanExporter(f"{url}/v1/traces", **more).export(told.spans).name == "SUCCESS"
    if told.logs:
        assert OTLPLogExporter(f"{url}/v1/logs", **more).export(told.logs).name == "SUCCESS"


async def received(folder, *told):
    """What is said of the sessions that were sent, by their ids."""
    request = RunRequest(AgentAddress(folder, interpreter=OWN))
    async with open_listener(request, Address(port=0, token="a-token")) as listener:
        for one in told:
            await asyncio.to_thread(export, listener.url, one, "a-token")
        return {one.id: one async for one in listener.last_sessions()}


async def test_sessions_of_google_adk_are_scored_and_stored(tmp_path):
    polite = case("polite", (f"{THANKS[0]} again", *THANKS[1:]))
    write_eval_set(tmp_path, "shop", case("lamp", LAMP, COST), case("clock", TIME), polite)
    messages = [LAMP[0], COST[0]]
    found = await received(
        tmp_path,
        await asyncio.to_thread(run, "tools", messages, SPANS, "same"),
        await asyncio.to_thread(run, "tools", messages, EVENTS_ONLY, "logs"),
        await asyncio.to_thread(run, "tools", messages, BARE, "bare"),
        await asyncio.to_thread(run, "tools", [TIME[0]], SPANS, "clock"),
        await asyncio.to_thread(run, "parallel", ["Compare"], SPANS, "new"),
        await asyncio.to_thread(run, "tools", [THANKS[0]], SPANS, "thanks"),
        await asyncio.to_thread(run, "raising", ["Try", "Stock?"], SPANS, "failed"),
    )
    assert found["same"].result.status is Status.PASSED
    assert found["same"].case.eval_id == "lamp"
    assert found["clock"].result.status is Status.PASSED
    # Content may come in log records only. What was not captured is unknown.
    assert found["logs"].result.status is Status.PASSED
    assert any("CAPTURE_MESSAGE_CONTENT" in one for one in found["bare"].remarks)
    assert found["bare"].result is None
    assert "message is not in the trace" in found["bare"].problem
    assert found["new"].new_patterns == (("price", "find", "price"),)
    assert (found["new"].case, found["new"].result) == (None, None)
    assert found["thanks"].new_patterns == ()
    # The turns of a case that a session is only like are not missing in it.
    assert found["thanks"].case_in_words == "like polite"
    assert "no case begins like it" in found["thanks"].why
    assert "not in the trace" not in found["thanks"].why
    # No case can expect what a turn did that failed.
    assert found["failed"].new_patterns == (("refusing",),)

    logs = RunStore.of_sessions(tmp_path).files()
    stored = {RunFile(log).header.session: open_run(log) for log in logs}
    assert stored.keys() == {"same", "clock", "logs", "thanks"}
    statuses = {case.status for one in stored.values() for case in one.summary.cases.values()}
    assert statuses == {Status.PASSED, Status.NOT_EVALUATED}
    assert found["same"].log in RunStore.of_sessions(tmp_path).files()
    assert not RunStore(tmp_path).files()
    assert not list(tmp_path.rglob("*evalset_result*"))


async def test_a_session_that_goes_on_is_scored_anew_by_the_sets_as_they_are_now(tmp_path):
    write_eval_set(tmp_path, "shop", case("lamp", LAMP, COST))
    told = await asyncio.to_thread(run, "tools", [LAMP[0], COST[0]], SPANS, "talk")
    first = told.spans[0].context.trace_id
    turns = [
        tuple(one for one in told.spans if (one.context.trace_id == first) == mine) for mine in (True, False)
    ]
    request = RunRequest(AgentAddress(tmp_path, interpreter=OWN))
    seen = []
    async with open_listener(request, Address(port=0)) as listener:
        for spans in turns:
            exporter = OTLPSpanExporter(f"{listener.url}/v1/traces", timeout=60)
            await asyncio.to_thread(exporter.export, spans)
            seen += [one async for one in listener.last_sessions()]
        write_eval_set(tmp_path, "shop", case("lamp", LAMP, (COST[0], [("price", {"what": "rug"})], "?")))
        await asyncio.to_thread(exporter.export, turns[0])
        seen += [one async for one in listener.last_sessions()]
    assert [one.turns for one in seen] == [1, 2, 2]
    assert [one.result.status for one in seen] == [Status.NOT_EVALUATED, Status.PASSED, Status.FAILED]


async def test_a_session_whose_scoring_is_cancelled_comes_again(tmp_path, monkeypatch):
    write_eval_set(tmp_path, "shop", case("lamp", LAMP))
    told = await asyncio.to_thread(run, "tools", [LAMP[0]], SPANS, "talk")
    request = RunRequest(AgentAddress(tmp_path, interpreter=OWN))
    real = sessions.run

    async def follow(listener):
        return [one.id async for one in listener.last_sessions()]

    async with open_listener(request, Address(port=0)) as listener:
        await asyncio.to_thread(export, listener.url, told)

        async def cancelled(request, sets, on_update, host):
            def update(one):
                if isinstance(one, CaseStarted):
                    task.cancel()
                on_update(one)

            return await real(request, sets, update, host)

        monkeypatch.setattr(sessions, "run", cancelled)
        task = asyncio.create_task(follow(listener))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not RunStore.of_sessions(tmp_path).files()
        monkeypatch.setattr(sessions, "run", real)
        assert await follow(listener) == ["talk"]
        assert await follow(listener) == []


def test_the_command_ends_cleanly_and_says_why_it_cannot_begin(tmp_path, capsys):
    write_eval_set(tmp_path, "shop", case("lamp", LAMP))
    (tmp_path / "broken.evalset.json").write_text("{")
    told = run("tools", [LAMP[0]], SPANS, "talk")
    (tmp_path / ".env").write_text("LISTEN_TOKEN=zebra-4711\n")
    words = [sys.executable, "-m", "evaltui", "listen", str(tmp_path), "--port", "0", "--format", "json"]
    words += ["--token-env", "LISTEN_TOKEN"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        first = process.stderr.readline()
        with pytest.raises(AssertionError, match="FAILURE"):
            export(first.split()[2], told)
        export(first.split()[2], told, "zebra-4711")
        assert call("listen", tmp_path, "--port", 0) == 2
        assert "listens already" in capsys.readouterr().err
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "1 session, " in err.splitlines()[-1]
    (line,) = map(json.loads, out.splitlines())
    assert (line["session"], line["case"]["eval_id"], line["status"]) == ("talk", "lamp", "PASSED")
    assert any("broken.evalset.json left out" in one for one in line["remarks"])

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert call("listen", tmp_path, "--port", port) == 2
        assert f"port {port} of 127.0.0.1 is in use" in capsys.readouterr().err
    for wrong, said in [
        (("--host", "0.0.0.0"), "--token"),
        (("--host", "0.0.0.0", "--token", ""), "empty"),
        (("--token", "ü"), "ASCII"),
        (("--token", "x", "--token-env", "X"), "not allowed with"),
        (("--token-env", "NO_SUCH_TOKEN"), "NO_SUCH_TOKEN: it is not set"),
        (("--port", "65536"), "not a port"),
        (("--host", "203.0.113.1", "--token", "x", "--port", "0"), "203.0.113.1"),
    ]:
        assert call("listen", tmp_path, *wrong) == 2
        assert said in capsys.readouterr().err, wrong
    assert call("listen", tmp_path / "none") == 2
    assert "does not exist" in capsys.readouterr().err


async def test_a_note_of_every_session_is_printed_once(capsys):
    async def heard():
        for number in range(3):
            yield sessions.ScoredSession(f"talk-{number}", (), 1, remarks=("no content", f"only {number}"))

    for is_json, times in ((False, 1), (True, 3)):
        told = _SessionOutput(Secrets({}), is_json=is_json)
        await told.follow(heard())
        out = capsys.readouterr().out
        assert [out.count(said) for said in ("no content", "only 0", "only 2")] == [times, 1, 1]


async def test_one_config_for_all_sets_scores_sessions(tmp_path):
    (tmp_path / "strict.json").write_text('{"criteria": {"response_match_score": 1.0}}')
    other = (LAMP[0], LAMP[1], "Something else.")
    write_eval_set(tmp_path, "shop", case("lamp", other))
    told = await asyncio.to_thread(run, "tools", [LAMP[0]], SPANS, "talk")
    request = RunRequest(AgentAddress(tmp_path, interpreter=OWN))
    async with open_listener(request, Address(port=0), tmp_path / "strict.json") as listener:
        await asyncio.to_thread(export, listener.url, told)
        (session,) = [one async for one in listener.last_sessions()]
    assert session.result.status is Status.FAILED
    assert "tool_trajectory_avg_score" not in [metric.name for metric in session.result.metrics]
