"""However a command ends: nothing that the agent started is left, what is finished is kept and can be
resumed, and the exit code says how it was."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import json
import os
import pty
import resource
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from host_processes import is_running
from terminal import Screen
from waiting import wait_until

from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore

pytestmark = pytest.mark.e2e

PATIENCE = 100.0
EVALTUI = (sys.executable, "-m", "evaltui")
# It starts a plain child, one in a session of its own, and one that has left its parent, both without a name
# for whose they are. `stay` ends only where nobody asks it to stay.
AGENT = """
import asyncio, os, shutil, subprocess
from pathlib import Path

NOTES = Path(os.environ["NOTES"])
SLEEP = shutil.which("sleep")

def leave_behind():
    plain = subprocess.Popen([SLEEP, "1000"])
    apart = subprocess.Popen([SLEEP, "1000"], start_new_session=True, env={})
    reads, writes = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writes, str(os.getpid()).encode())
            os.execve(SLEEP, ["sleep", "1000"], {})
        os._exit(0)
    os.wait()
    # A file that is read and changed during the run would make results stale.
    daemon = os.read(reads, 100).decode()
    (NOTES / "new").write_text(f"{plain.pid} {apart.pid} {daemon}")
    (NOTES / "new").rename(NOTES / "pids")

async def root_agent(message, session):
    if message == "big":
        print("x" * 300_000)
    if message in ("stay", "big") and "STAYS" in os.environ:
        leave_behind()
    if message == "stay" and "STAYS" in os.environ:
        await asyncio.sleep(1000)
    return message
"""


def case(says: str) -> dict[str, object]:
    turn = {
        "user_content": {"role": "user", "parts": [{"text": says}]},
        "final_response": {"role": "model", "parts": [{"text": says}]},
    }
    return {"eval_id": says, "conversation": [turn]}


class Program:
    """A command in a terminal of its own, which controls it, so that the end of one is felt by the other."""

    def __init__(self, words: list[str], environ: dict[str, str], *, hup: bool, limit: int | None) -> None:
        self.screen = Screen(100, 30)
        self.shown = ""
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

        def prepare() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if not hup:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        self.process = subprocess.Popen(
            [*EVALTUI, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environ,
            start_new_session=True,
            preexec_fn=prepare,
        )
        os.close(theirs)
        self._woken, self._wakes = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with contextlib.suppress(OSError):
            while self._woken not in select.select([self._terminal, self._woken], [], [])[0]:
                data = os.read(self._terminal, 1 << 16)
                if not data:
                    return
                text = decoder.decode(data)
                self.shown += text
                self.screen.feed(text)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def until(self, condition: Callable[[], object]) -> None:
        def came() -> bool:
            if condition():
                return True
            assert self.process.poll() is None, self.shown[-3000:]
            return False

        wait_until(came, lambda: self.shown[-3000:], PATIENCE)

    def hang_up(self) -> None:
        """The terminal is gone."""
        if self._reader.is_alive():
            os.write(self._wakes, b".")
            self._reader.join()
        with contextlib.suppress(OSError):
            os.close(self._terminal)

    def ended(self) -> int:
        code = self.process.wait(PATIENCE)
        # What it said at last.
        self._reader.join(0.5)
        return code

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.hang_up()


class Bench:
    """An agent, its eval set, and the programs that work with it."""

    def __init__(self, folder: Path, agent: Path) -> None:
        self.folder = folder
        self.agent = agent
        self.report = folder / "report.json"
        self.notes = folder / "notes"
        self.notes.mkdir()
        self._opened: list[Program] = []

    def write_set(self, *says: str, name: str = "talk", more: str = "") -> Path:
        path = self.agent / f"{name}.evalset.json"
        cases = [case(one) for one in says]
        path.write_text(json.dumps({"eval_set_id": name, "description": more, "eval_cases": cases}))
        return path

    def start(self, front: str, *, hup: bool = True, limit: int | None = None) -> Program:
        agent, set_file = str(self.agent), str(self.agent / "talk.evalset.json")
        turns = self.folder / "turns.txt"
        turns.write_text("first\n\nstay\n")
        words = {
            "run": [
                "run",
                agent,
                "--parallel",
                "1",
                "--report",
                "console",
                "--report",
                f"json={self.report}",
            ],
            "watch": ["run", agent, "--watch", "--parallel", "1"],
            "chat": ["chat", agent],
            "record": ["record", agent, set_file, "--case", "new", "--turns", str(turns)],
            "workbench": [agent, "--parallel", "1"],
        }[front]
        program = Program(words, self._environ() | {"STAYS": "1"}, hup=hup, limit=limit)
        self._opened.append(program)
        if front == "workbench":
            program.until(lambda: "○ first" in program.screen.text())
            program.type("R")
        if front == "chat":
            program.until(lambda: "> " in program.shown)
            program.type("stay\n")
        return program

    def _environ(self) -> dict[str, str]:
        own = {"NOTES": str(self.notes), "TERM": "xterm-256color", "XDG_CONFIG_HOME": str(self.folder)}
        return {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")} | own

    def has_begun(self) -> bool:
        """Whether the agent has started what it leaves behind, and what was before that is kept."""
        return (self.notes / "pids").exists()

    def first_is_kept(self) -> bool:
        logs = RunStore(self.agent).files()
        return bool(logs) and any(one.id.eval_id == "first" for one in RunFile(logs[-1]).cases)

    def left_behind(self) -> list[int]:
        return [pid for pid in map(int, (self.notes / "pids").read_text().split()) if is_running(pid)]

    def resume(self) -> subprocess.CompletedProcess[str]:
        words = [*EVALTUI, "run", str(self.agent), "--resume", RunStore(self.agent).files()[-1].stem]
        return subprocess.run(words, env=self._environ(), capture_output=True, text=True, check=False)

    def close(self) -> None:
        for program in self._opened:
            program.close()


@pytest.fixture
def bench(tmp_path: Path, write_agent: Callable[..., Path]) -> Iterator[Bench]:
    opened = Bench(tmp_path, write_agent(AGENT))
    yield opened
    opened.close()


def send(number: signal.Signals, times: int = 1) -> Callable[[Program], None]:
    def end(program: Program) -> None:
        for _ in range(times):
            program.process.send_signal(number)
            time.sleep(0.05)

    return end


ENDS: dict[str, Callable[[Program], None]] = {
    "SIGINT": send(signal.SIGINT),
    "SIGINT five times": send(signal.SIGINT, 5),
    "SIGTERM": send(signal.SIGTERM),
    "SIGTERM twice": send(signal.SIGTERM, 2),
    "SIGHUP": send(signal.SIGHUP),
    "SIGKILL": send(signal.SIGKILL),
    "terminal gone": Program.hang_up,
}
FRONTS = ("run", "watch", "chat", "record", "workbench")
KEEPS_LOG = ("run", "watch", "workbench")
EVERY_DAY = [("run", "SIGINT five times"), ("chat", "SIGTERM"), ("workbench", "terminal gone")]
ROWS = [
    pytest.param(front, how, marks=() if (front, how) in EVERY_DAY else pytest.mark.thorough)
    for front in FRONTS
    for how in ENDS
]


@pytest.mark.parametrize(("front", "how"), ROWS)
def test_nothing_is_left_and_what_is_finished_is_kept(bench, front, how, thorough):
    """Ctrl-C in a chat cancels the turn that goes on: a second one, at the prompt, leaves with 0."""
    eval_set = bench.write_set("first", "stay")
    before = eval_set.read_text()
    program = bench.start(front)
    program.until(lambda: bench.has_begun() and (front not in KEEPS_LOG or bench.first_is_kept()))
    if front == "chat" and how.startswith("SIGINT"):
        program.process.send_signal(signal.SIGINT)
        program.until(lambda: "turn 1 cancelled" in program.shown)
        program.until(lambda: "> " in program.shown.partition("turn 1 cancelled")[2])
        program.process.send_signal(signal.SIGINT)
        expected = 0
    else:
        ENDS[how](program)
        expected = -signal.SIGKILL if how == "SIGKILL" else 130
    assert program.ended() == expected, program.shown[-2000:]
    if how == "SIGKILL":
        # It cannot wait for the guards.
        wait_until(lambda: not bench.left_behind())
    assert bench.left_behind() == []
    assert "Traceback" not in program.shown
    assert eval_set.read_text() == before
    if front == "run" and how != "SIGKILL":
        report = json.loads(bench.report.read_text())
        assert "interrupted: 1 of 2" in json.dumps(report)
        assert "interrupted: 1 of 2" in program.shown or how == "terminal gone"
    if front in KEEPS_LOG:
        kept = RunFile(RunStore(bench.agent).files()[-1])
        assert [one.id.eval_id for one in kept.cases] == ["first"]
        assert kept.ending is None
    if front == "run" or (front in KEEPS_LOG and thorough):
        resumed = bench.resume()
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
        assert ": 1 result kept" in resumed.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("front", ["watch", "chat", "workbench"])
def test_a_terminal_that_is_gone_ends_it_where_sighup_is_ignored(bench, front):
    """As started with nohup: what nobody can type to or read any more does not go on."""
    bench.write_set("first")
    program = bench.start(front, hup=False)
    if front == "chat":
        # Between turns: a turn that goes on is not cut off.
        program.until(bench.has_begun)
        program.process.send_signal(signal.SIGINT)
        program.until(lambda: "turn 1 cancelled" in program.shown)
    else:
        program.until(bench.first_is_kept)
    if front == "workbench":
        program.until(lambda: "✓ first" in program.screen.text())
        # What was edited is not lost with the terminal.
        program.type("d")
        program.until(lambda: list(bench.agent.glob(".evaltui/unsaved/*.json")))
        program.type("\x1b")
    program.hang_up()
    assert program.ended() == (0 if front == "chat" else 130)
    assert len(list(bench.agent.glob(".evaltui/unsaved/*.json"))) == (front == "workbench")


@pytest.mark.thorough
@pytest.mark.parametrize("front", ["run", "watch", "record", "workbench"])
def test_a_disk_that_is_full_is_told_and_costs_no_result(bench, front):
    """No file may get larger than this, which is what a full disk comes to."""
    big = bench.write_set("first", "big", more="d" * 90_000 if front == "record" else "")
    before = big.read_text()
    program = bench.start(front, limit=80_000)
    if front == "record":
        (bench.folder / "turns.txt").write_text("first\n")
        assert program.ended() == 2
        assert "cannot be written" in program.shown
    elif front == "run":
        assert program.ended() == 0, program.shown
        assert "Run log incomplete" in program.shown
    elif front == "watch":
        program.until(lambda: "2 passed" in program.shown)
        program.process.send_signal(signal.SIGTERM)
        assert program.ended() == 130
    else:
        program.until(lambda: "✓ big" in program.screen.text())
        program.type("q")
        assert program.ended() == 0
    assert "Traceback" not in program.shown
    assert big.read_text() == before
    assert not (bench.notes / "pids").exists() or bench.left_behind() == []
    if front in KEEPS_LOG:
        kept = RunFile(RunStore(bench.agent).files()[-1])
        assert [one.id.eval_id for one in kept.cases] == ["first"]
        resumed = bench.resume()
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr


@pytest.mark.thorough
def test_a_real_disk_that_is_full(tmp_path, write_agent):
    agent = write_agent(AGENT)
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        agent = _moved(agent, disk)
        bench = Bench(tmp_path, agent)
        bench.write_set("first", "big")
        program = bench.start("run")
        assert program.ended() == 0, program.shown
        assert "Run log incomplete" in program.shown
        assert "database or disk is full" in program.shown
        assert [one.id.eval_id for one in RunFile(RunStore(agent).files()[-1]).cases] == ["first"]
        program.close()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _moved(agent: Path, disk: Path) -> Path:
    moved = disk / agent.name
    moved.mkdir()
    for file in agent.glob("*.py"):
        (moved / file.name).write_text(file.read_text())
    return moved
