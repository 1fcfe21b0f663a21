"""Runs on the workers of a scheduler come to what they come to on this machine."""

from __future__ import annotations

import json
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from commands.command_line import call
from distributed import Client, Event
from eval_data import make_case, make_turn, write_eval_set
from runner.cluster.clusters import cluster_here

from evaltui.runs.run_file import RunFile

AGENT = """
    import os
    from evaltui import Agent, Rule, ScriptedModel

    def price(item: str) -> dict:
        "The price of an item."
        print("looking up", item)
        if item == "exit":
            os._exit(3)
        if item == "raise":
            raise KeyError(item)
        return {"price": len(item)}

    root_agent = Agent(
        name="shop",
        model=ScriptedModel([
            Rule(after_tool="price", reply="here it is"),
            Rule(user="price of (.*)", call=lambda situation: ("price", {"item": situation[1]})),
            Rule(user=".*", reply="hello"),
        ]),
        tools=[price],
    )
"""


def turn(text: str, response: str, item: str = "") -> dict[str, object]:
    return make_turn(text, response, [{"name": "price", "args": {"item": item}}] if item else [])


def cases() -> list[dict[str, object]]:
    greetings = [(f"hello_{number}", [turn("hi", "hello")]) for number in range(12)]
    others = [
        ("other_answer", [turn("hi", "good morning")]),
        ("two_turns", [turn("hi", "hello"), turn("price of tea", "here it is", "tea")]),
        ("other_call", [turn("price of tea", "here it is", "coffee")]),
        ("exits", [turn("price of exit", "here it is", "exit")]),
        ("raises", [turn("price of raise", "here it is", "raise")]),
    ]
    return [make_case(name, *turns) for name, turns in (*others, *greetings)]


@pytest.fixture
def shop(write_agent) -> Path:
    folder = write_agent(AGENT, name="shop")
    write_eval_set(folder, "shop", *cases())
    return folder


def report(folder: Path, *options: str) -> tuple[int, dict[str, object]]:
    """The exit code, and of each case what does not depend on time."""
    path = folder / "report.json"
    code = call("run", folder, "--record", "off", "--report", f"json={path}", *options)
    data = json.loads(path.read_text())
    return code, {one["eval_id"]: comparable(one) for one in data["cases"]}


def comparable(case: dict) -> dict[str, object]:
    error = case["error"] and {key: case["error"][key] for key in ("type", "message", "where")}
    actual = [one["actual"] for one in case["repeats"]]
    return {"status": case["status"], "error": error, "turns": case["turns"], "said": texts_in(actual)}


def texts_in(data: object) -> list[str]:
    if isinstance(data, dict):
        found = [data["text"]] if isinstance(data.get("text"), str) else []
        return found + [text for one in data.values() for text in texts_in(one)]
    return [text for one in data for text in texts_in(one)] if isinstance(data, list) else []


def test_verdicts_and_log_are_those_of_this_machine(shop, scheduler):
    here = report(shop)
    there = report(shop, "--scheduler", scheduler)
    assert there == here
    statuses = {name: case["status"] for name, case in there[1].items() if case["status"] != "PASSED"}
    assert statuses == {"other_answer": "FAILED", "other_call": "FAILED", "exits": "ERROR", "raises": "ERROR"}
    log = max((shop / ".evaltui" / "runs").glob("*.sqlite"), key=lambda path: path.name)
    assert len(list(RunFile(log).repeats)) == len(list(RunFile(log).cases)) == len(cases())


def test_a_scheduler_that_does_not_answer_is_said(shop, capsys, monkeypatch):
    monkeypatch.setattr("evaltui.runner.dask.workers._CONNECT_TIMEOUT", 0.5)
    assert call("run", shop, "--record", "off", "--scheduler", "tcp://127.0.0.1:9") == 3
    assert "tcp://127.0.0.1:9: no Dask scheduler answers" in capsys.readouterr().err


@pytest.fixture
def answering() -> Iterator[Callable[[bytes | None], str]]:
    """Something else than a scheduler: what it says to whoever connects; None hangs up."""
    with ExitStack() as stack:

        def answer(said: bytes | None) -> str:
            class Other(socketserver.BaseRequestHandler):
                def handle(self) -> None:
                    if said is not None:
                        self.request.sendall(said)
                        with suppress(OSError):
                            while self.request.recv(1 << 16):
                                pass

            class Server(socketserver.ThreadingTCPServer):
                daemon_threads = True

            server = stack.enter_context(Server(("127.0.0.1", 0), Other))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            return f"tcp://127.0.0.1:{server.server_address[1]}"

        yield answer


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", " is no Dask scheduler", id="a web server"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", " is no Dask scheduler", id="ssh"),
        pytest.param(bytes(64), " is no Dask scheduler", id="zeros"),
        pytest.param(b"", ": no Dask scheduler answers", id="silence"),
        pytest.param(None, ": no Dask scheduler answers", id="hangs up"),
    ],
)
def test_what_answers_and_is_no_scheduler_is_said(shop, capsys, monkeypatch, answering, said, told):
    monkeypatch.setattr("evaltui.runner.dask.workers._CONNECT_TIMEOUT", 1.0)
    address = answering(said)
    assert call("run", shop, "--record", "off", "--scheduler", address) == 3
    errors = " ".join(capsys.readouterr().err.split())
    assert f"{address}{told}" in errors
    assert "Traceback" not in errors


def test_an_agent_that_cannot_be_imported_needs_no_cluster(write_agent, capsys):
    folder = write_agent("import nothing_like_this\n", name="broken")
    write_eval_set(folder, "one", *cases()[:2])
    assert call("run", folder, "--record", "off", "--scheduler", "tcp://127.0.0.1:9") == 3
    assert "nothing_like_this" in capsys.readouterr().out


def test_dask_is_imported_with_a_scheduler_only():
    code = (
        "import sys, evaltui.commands.job, evaltui.commands.run, evaltui.runner.execution; "
        "print(sorted({'dask', 'distributed'} & sys.modules.keys()))"
    )
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout == "[]\n"


SHIPPED = """
    import os
    from pathlib import Path

    def root_agent(message, session):
        here = Path(__file__).parent
        return " ".join([
            (here / "data.txt").read_text(),
            str((here / ".env").exists()),
            os.environ.get("SHIPPED", "nothing"),
            os.environ.get("KEPT", "nothing"),
            "there" if "dask" in str(here) else "here",
        ])
"""


def test_workers_have_the_files_of_the_agent_and_no_secret_but_those_named(write_agent, scheduler):
    folder = write_agent(SHIPPED, name="shipped")
    (folder / "data.txt").write_text("data")
    (folder / ".env").write_text("SHIPPED=one\nKEPT=two\n")
    write_eval_set(folder, "one", make_case("one", turn("hi", "data False one nothing there")))
    code, found = report(folder, "--scheduler", scheduler, "--ship-env", "SHIPPED")
    assert found["one"]["said"][-1] == "data False one nothing there"
    assert code == 0


def test_a_variable_that_is_not_set_cannot_be_sent(shop, capsys):
    assert call("run", shop, "--scheduler", "local:1", "--ship-env", "NOWHERE_SET") == 2
    assert "NOWHERE_SET is not set" in capsys.readouterr().err


def test_a_worker_that_computes_for_others_holds_up_no_case(shop):
    with cluster_here(2) as cluster, Client(cluster, set_as_default=False) as other:
        is_over = Event(client=other)
        worker = next(iter(cluster.workers.values())).address
        computing = other.submit(is_over.wait, 200, workers=[worker], pure=False)
        assert report(shop, "--scheduler", cluster.scheduler_address) == report(shop)
        assert not computing.done()
        is_over.set()
        computing.result()
