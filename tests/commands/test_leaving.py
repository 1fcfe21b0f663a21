"""Commands that are interrupted while they begin, and those that nobody listens to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from command_line import call as main_call
from eval_data import make_case, write_eval_set

EVALTUI = [sys.executable, "-m", "evaltui"]
ECHO = "async def root_agent(message, session):\n    return message\n"
# Sends a signal to the process as soon as it imports a module.
INTERRUPTING = """
    import os, signal, sys

    class Interrupting:
        @staticmethod
        def find_spec(name, path, target=None):
            if name == os.environ["INTERRUPTED_BY"]:
                os.kill(os.getpid(), getattr(signal, os.environ["INTERRUPT"]))

    sys.meta_path.insert(0, Interrupting)
"""


@pytest.fixture
def agent(write_agent) -> Path:
    folder: Path = write_agent(ECHO)
    content = {"parts": [{"text": "hello"}]}
    write_eval_set(
        folder,
        "talk",
        *(
            make_case(f"case_{number}", {"user_content": content, "final_response": content})
            for number in range(3)
        ),
    )
    return folder


def call(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    given = {"capture_output": True, "text": True, "check": False, "stdin": subprocess.DEVNULL} | options
    return subprocess.run([*EVALTUI, *map(str, words)], **given)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("evaltui.commands.options", "SIGINT"),
        pytest.param("evaltui.cli", "SIGINT", marks=pytest.mark.thorough),
        pytest.param("evaltui.commands.run", "SIGINT", marks=pytest.mark.thorough),
        pytest.param("evaltui.commands.run", "SIGTERM", marks=pytest.mark.thorough),
        pytest.param("evaltui.commands.job", "SIGINT", marks=pytest.mark.thorough),
        pytest.param("evaltui.commands.job", "SIGHUP", marks=pytest.mark.thorough),
    ],
)
def test_interrupted_while_it_begins_it_leaves_without_a_word(agent, tmp_path, module, number):
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(INTERRUPTING))
    environ = {"PYTHONPATH": str(tmp_path), "INTERRUPTED_BY": module, "INTERRUPT": number}
    ran = call("run", agent, env=os.environ | environ)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


def test_a_reader_that_has_seen_enough_does_not_change_the_verdict(agent):
    report = agent.parent / "out.json"
    words = [*EVALTUI, "run", str(agent), "--report", "console", "--report", f"json={report}"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        ran = subprocess.run(words, stdout=nobody, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(json.loads(report.read_text())["cases"]) == 3


needs_full = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="a device that is always full is there on Linux only"
)


@needs_full
def test_a_report_that_cannot_be_written_is_no_pass(agent, tmp_path, capsys):
    junit = tmp_path / "junit.xml"
    assert main_call("run", agent, "--report", "json=/dev/full", "--report", f"junit={junit}") == 3
    said = capsys.readouterr().err
    assert "--report json: /dev/full cannot be written: No space left on device" in said
    assert junit.read_text().startswith("<?xml")


@needs_full
@pytest.mark.thorough
def test_a_full_disk_behind_standard_output_is_no_pass(agent):
    with Path("/dev/full").open("wb") as full:
        ran = call("run", agent, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert ran.returncode == 3
    assert "--report console: stdout cannot be written: No space left on device" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [
        ("0<&-", ["chat"], 0),
        ("1>&-", ["run"], 0),
        ("1>&-", ["run", "--report", "junit=-"], 2),
        ("0<&- 1>&- 2>&-", ["run"], 0),
        ("0<&- 1>&-", ["record", "talk", "--case", "new", "--turns", "-"], 2),
    ],
)
def test_streams_that_are_closed_are_no_traceback(agent, closed, words, code):
    command, *more = words
    line = f'exec "$@" {closed}'
    shell = ["sh", "-c", line, "sh", *EVALTUI, command, str(agent), *more]
    ran = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert (ran.returncode, "Traceback" in ran.stderr) == (code, False), ran.stderr
