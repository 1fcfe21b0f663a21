"""`evaltui chat` through a pipe and in a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requesting_agents
from command_line import call

AGENT = """
    import asyncio, os

    async def root_agent(message, session):
        session.state["turns"] = session.state.get("turns", 0) + 1
        print("heard", message)
        if message == "raise":
            yield "I try"
            raise RuntimeError("judge 500")
        if message == "die":
            os._exit(7)
        if message == "wait":
            yield "I wait"
            await asyncio.sleep(1000)
        for word in ("turn", str(session.state["turns"])):
            yield word + " "
        yield f"after {len(session.history)}: {message!r}"
"""
PATIENCE = 30.0


@pytest.fixture
def agent(write_agent) -> Path:
    return write_agent(AGENT)


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "evaltui", "chat", *map(str, words)]


def talk(agent: Path, said: str | bytes, *options: object) -> subprocess.CompletedProcess[str]:
    given = said.encode() if isinstance(said, str) else said
    done = subprocess.run(command(agent, *options), input=given, capture_output=True, timeout=60)
    return subprocess.CompletedProcess((), done.returncode, done.stdout.decode(), done.stderr.decode())


def test_it_begins_with_the_session_that_is_given(agent, tmp_path):
    session = tmp_path / "session.json"
    session.write_text('{"app_name": "home", "user_id": "ada", "state": {"turns": 6}}')
    # What is no text is replaced.
    done = talk(agent, b"caf\xe9\n", "--initial-session", session)
    assert done.stdout.splitlines() == ["turn 7 after 0: 'caf\ufffd'", "  state  turns  6 → 7"]


def test_a_turn_may_take_too_long(agent):
    done = talk(agent, "wait\nlast", "--timeout", 2)
    assert done.returncode == 3
    assert "in root_agent: TimeoutError: no response within 2 s" in done.stderr
    assert "turn 1 after 0: 'last'" in done.stdout


def test_a_reader_that_goes_away_ends_it(agent):
    talking = subprocess.Popen(
        command(agent), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert talking.stdin is not None
    assert talking.stdout is not None
    assert talking.stderr is not None
    talking.stdin.write(b"hello\n")
    talking.stdin.flush()
    talking.stdout.readline()
    talking.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        talking.stdin.write(b"more\n" * 5)
        talking.stdin.close()
    assert talking.wait(PATIENCE) == 1
    assert b"Traceback" not in talking.stderr.read()
    talking.stderr.close()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["my_agent", "--timeout", "0"], "--timeout"),
        (["my_agent", "--initial-session", "nowhere.json"], "nowhere.json: no such file"),
        (["my_agent", "--initial-session", "bad.json"], "bad.json:1: state: must be an object"),
        (["my_agent", "--initial-session", "broken.json"], "broken.json:1: not valid JSON"),
        (["my_agent", "--initial-session", "typo.json"], "typo.json:1: sate: "),
        (["my_agent", "--initial-session", "twice.json"], "twice.json:2: state: given more than once"),
    ],
)
def test_wrong_use_is_two_with_one_line_that_says_what(agent, tmp_path, monkeypatch, words, says, capsys):
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text('{"state": 1}')
    Path("typo.json").write_text('{"sate": {"a": 1}}')
    Path("twice.json").write_text('{"state": {"a": 1},\n"state": {}}')
    Path("broken.json").write_text("{")
    assert call("chat", *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert len(err.splitlines()) == 1


class Terminal:
    """A chat in a pseudo terminal."""

    def __init__(self, agent: Path) -> None:
        self._ours, theirs = pty.openpty()
        self._program = subprocess.Popen(
            command(agent),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
            env={**os.environ, "NO_COLOR": "1", "TERM": "xterm"},
        )
        os.close(theirs)
        self.shown = ""
        self._seen = 0

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, text: str) -> None:
        """Wait until this is shown, after what was waited for before."""
        end = time.monotonic() + PATIENCE
        while (found := self.shown.find(text, self._seen)) < 0:
            assert time.monotonic() < end, f"{text!r} is not shown:\n{self.shown}"
            if select.select([self._ours], [], [], 0.1)[0]:
                self.shown += os.read(self._ours, 4096).decode(errors="replace")
        self._seen = found + len(text)

    def ends_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        with contextlib.suppress(OSError):
            while self._program.poll() is None and time.monotonic() < end:
                # A program that ends waits until what it has written is read.
                if select.select([self._ours], [], [], 0.1)[0]:
                    self.shown += os.read(self._ours, 4096).decode(errors="replace")
        return time.monotonic() < end

    def ended(self) -> int:
        """The exit code."""
        with contextlib.suppress(OSError):
            while select.select([self._ours], [], [], PATIENCE)[0] and (data := os.read(self._ours, 4096)):
                self.shown += data.decode(errors="replace")
        return self._program.wait(PATIENCE)

    def close(self) -> None:
        self._program.kill()
        self._program.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(agent):
    opened = Terminal(agent)
    yield opened
    opened.close()


@pytest.mark.e2e
def test_in_a_terminal_it_prompts_and_ctrl_c_cancels_a_turn(terminal):
    terminal.until("this is root_agent")
    terminal.until("> ")
    terminal.type("hello\n")
    terminal.until("turn 1 after 0: 'hello'")
    terminal.until("> ")
    terminal.type("wait\n")
    terminal.until("I wait")
    terminal.type("\x03")
    terminal.until("turn 2 cancelled")
    terminal.until("> ")
    # Pasted, it is one message.
    terminal.type("\x1b[200~one\ntwo\x1b[201~\r")
    terminal.until("turn 2 after 2: 'one\\ntwo'")
    terminal.until("> ")
    terminal.type("\x04")
    assert terminal.ended() == 0
    assert "Traceback" not in terminal.shown


@pytest.mark.e2e
def test_ctrl_c_at_the_prompt_leaves(terminal):
    terminal.until("> ")
    terminal.type("half a message")
    terminal.until("half a message")
    # Python's line editor misses a signal that comes while it draws a letter: then one presses it again.
    terminal.type("\x03")
    if not terminal.ends_within(5):
        terminal.type("\x03")
    assert terminal.ended() == 0
    assert "Traceback" not in terminal.shown


@pytest.mark.adk
def test_lines_respond_to_what_the_agent_asks(tmp_path):
    pytest.importorskip("google.adk")
    folder = requesting_agents.write_agent(tmp_path / "booking", requesting_agents.BOOKING)
    done = talk(folder, 'hi\nOslo\n{"name": "Ada", "age": 5}\nhi\n/message hi\nOslo\nAda\nhi\n')
    assert done.stdout.splitlines()[:8] == [
        "  output  begin  begun",
        "  state  begun = 1",
        "? Where to?",
        "  takes  text or JSON",
        "? Who goes to Oslo?",
        '  payload  {"to": "Oslo"}',
        "  takes  {name: string, age: integer}",
        "Booked for Ada, 5.",
    ]
    # What the call does not take ends the conversation: the next line was written for what follows.
    assert done.returncode == 3
    assert done.stdout.splitlines()[-3] == "? Who goes to Oslo?"
    assert "must be JSON, {name: string, age: integer}" in done.stderr
    assert "adk_request_input still waits for a response" in done.stderr
