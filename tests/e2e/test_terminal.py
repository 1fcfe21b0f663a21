"""The real program in a real terminal."""

import json
import shutil
import subprocess
import sys
import time
import uuid

import psutil
import pytest

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]

AGENT = """
def root_agent(message, session):
    return "echo " + message
"""


class Terminal:
    """A tmux session of its own server, 80x24, that runs one command."""

    def __init__(self, command, folder):
        self._tmux = ["tmux", "-L", f"evaltui-{uuid.uuid4().hex}", "-f", "/dev/null"]
        shell = f"{command}; echo exit code $?; read -r"
        self._call("new-session", "-d", "-x", "80", "-y", "24", "-c", str(folder), shell)

    def _call(self, *arguments):
        done = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def press(self, *keys):
        self._call("send-keys", *keys)

    def wait_for(self, text):
        deadline = time.monotonic() + 30
        while text not in (screen := self._call("capture-pane", "-p")):
            assert time.monotonic() < deadline, f"{text!r} did not come:\n{screen}"
            time.sleep(0.05)
        return screen

    def terminate(self):
        """Ask the program, a child of the terminal's shell, to end."""
        shell = int(self._call("display-message", "-p", "#{pane_pid}"))
        (program,) = psutil.Process(shell).children()
        program.terminate()

    def close(self):
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def terminal(write_agent):
    folder = write_agent(AGENT, name="parrot")
    conversation = [
        {
            "user_content": {"role": "user", "parts": [{"text": "hi"}]},
            "final_response": {"role": "model", "parts": [{"text": "echo hi"}]},
            "intermediate_data": {"tool_uses": []},
        }
    ]
    eval_set = {
        "eval_set_id": "talk",
        "eval_cases": [{"eval_id": "repeats_it", "conversation": conversation}],
    }
    (folder / "talk.evalset.json").write_text(json.dumps(eval_set), encoding="utf-8")
    terminal = Terminal(f"{sys.executable} -m evaltui parrot", folder.parent)
    yield terminal
    terminal.close()


def test_run_a_case_see_the_verdict_and_leave(terminal):
    terminal.wait_for("○ repeats_it")
    terminal.press("r")
    terminal.wait_for("✓ repeats_it")
    terminal.press("Enter")
    screen = terminal.wait_for("✓ passed")
    assert "parrot · root_agent · function" in screen
    terminal.press("q")
    assert "exit code 0" in terminal.wait_for("exit code")


def test_ended_from_outside_it_gives_the_terminal_back(terminal):
    terminal.wait_for("○ repeats_it")
    terminal.terminate()
    assert "exit code 143" in terminal.wait_for("exit code")
