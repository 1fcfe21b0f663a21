"""`evaltui serve` as people use it: a real server, real sessions, a real browser."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from environments import browser_path
from playwright.sync_api import Browser, Page, WebSocket, expect, sync_playwright

pytestmark = pytest.mark.thorough

SAMPLE = Path(__file__).parents[2] / "sample_agents" / "calculator"
PATIENCE = 60.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?<>=$]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b.")


@pytest.fixture
def agent(tmp_path) -> Path:
    """The calculator, one of whose cases expects another answer."""
    folder = tmp_path / "calculator"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns(".evaltui", "__pycache__"))
    path = folder / "calculator.evalset.json"
    text = path.read_text(encoding="utf-8")
    assert "12 times 11 is 132" in text
    path.write_text(text.replace("12 times 11 is 132", "no idea at all, sorry"), encoding="utf-8")
    return folder


class Server:
    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def sessions(self, *, recursive: bool = False) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=recursive)


def served(agent: Path, *words: str) -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, "-m", "evaltui", "serve", str(agent), "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    url = re.search(r"http://\S+", process.stdout.readline())
    assert url, process.stderr.read()
    server = Server(process, url[0])
    yield server
    left = server.sessions(recursive=True)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    assert "Traceback" not in process.stderr.read()
    _, alive = psutil.wait_procs(left, PATIENCE)
    assert not alive


@pytest.fixture
def server(agent) -> Iterator[Server]:
    yield from served(agent)


@pytest.fixture
def read_only(agent) -> Iterator[Server]:
    yield from served(agent, "--read-only")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = browser_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page, and what its terminal was sent."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self.complaints: list[str] = []
        self._sent = b""
        own = server.url.partition("/?")[0]
        page.on("websocket", self._listen)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda one: self.complaints.append(one.text) if "Policy" in one.text else None)
        page.on("request", lambda one: None if one.url.startswith(own) else self.complaints.append(one.url))
        page.goto(server.url)
        assert page.url == f"{own}/"
        expect(page.locator("body")).to_have_class(re.compile("-first-byte"), timeout=PATIENCE * 1000)

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._received)

    def _received(self, payload: str | bytes) -> None:
        if isinstance(payload, bytes):
            self._sent += payload

    def sees(self, text: str) -> None:
        """Waits until this is shown, and forgets all up to there."""
        deadline = time.monotonic() + PATIENCE
        while text not in (shown := _ESCAPES.sub("", self._sent.decode(errors="replace"))):
            assert time.monotonic() < deadline, (text, shown[-2000:])
            self.page.wait_for_timeout(20)
        self._sent = b""

    def forget(self) -> None:
        self._sent = b""

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def close(self) -> None:
        self.page.close()
        assert self.complaints == []


def test_a_case_is_run_its_difference_seen_renamed_and_saved(browser, server, agent):
    tab = Tab(browser.new_page(viewport={"width": 1400, "height": 900}), server)
    path = agent / "calculator.evalset.json"
    tab.sees("multiply_12_by_11")
    tab.press("r")
    tab.sees("no idea at all")
    tab.press("3", "E")
    tab.sees("No $EDITOR in a browser")
    tab.press("1", "F2")
    tab.sees("Rename")
    tab.press("End", "Control+u")
    tab.page.keyboard.type("twelve_times_eleven")
    tab.press("Enter")
    tab.sees("twelve_times_eleven")
    tab.press("Control+s")
    tab.sees("Saved calculator.evalset.json")
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["eval_cases"][0]["eval_id"] == "twelve_times_eleven"
    # What is not saved is offered to the next session, whose journal is its own.
    tab.press("d")
    tab.sees("1 unsaved")
    other = Tab(browser.new_page(), server)
    other.sees("twelve_times_eleven")
    assert len({file.stem for file in (agent / ".evaltui" / "unsaved").iterdir()}) == 1
    other.close()
    tab.page.reload()
    tab.sees("of an earlier session")
    tab.close()


def test_to_look_at_only_from_a_phone(browser, read_only, agent):
    before = {path: path.read_bytes() for path in agent.rglob("*") if path.is_file()}
    tab = Tab(browser.new_page(viewport={"width": 390, "height": 844}), read_only)
    tab.sees("multiply_12_by_11")
    tab.press("r")
    tab.sees("Read-only")
    tab.press("q")
    expect(tab.page.get_by_role("button", name="Start again")).to_be_focused(timeout=PATIENCE * 1000)
    with tab.page.expect_navigation():
        tab.press("Enter")
    tab.forget()
    tab.sees("multiply_12_by_11")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    tab.close()
    assert {path: path.read_bytes() for path in agent.rglob("*") if path.is_file()} == before


def test_a_page_of_somebody_else_gets_no_session(browser, server, agent, tmp_path):
    context = browser.new_context()
    tab = Tab(context.new_page(), server)
    tab.sees("multiply_12_by_11")
    count = len(server.sessions())
    evil = context.new_page()
    (tmp_path / "evil.html").write_text("<title>evil</title>")
    evil.goto((tmp_path / "evil.html").as_uri())
    url = server.url.partition("/?")[0].replace("http", "ws", 1)
    for host in (url, url.replace("127.0.0.1", "localhost")):
        closed = evil.evaluate(
            """url => new Promise((resolve) => {
                const socket = new WebSocket(url + "/ws?width=80&height=24");
                socket.onopen = () => resolve("open");
                socket.onerror = () => resolve("refused");
            })""",
            host,
        )
        assert closed == "refused"
    assert len(server.sessions()) == count
    tab.close()
