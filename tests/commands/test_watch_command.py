"""`evaltui run --watch`, as a process of its own."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading

import pytest
from eval_data import make_case, make_turn, write_test_config

from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore

AGENT = "def root_agent(message, session):\n    return {!r}\n"
PATIENCE = 30


class Watch:
    """A process that watches; its lines come one by one."""

    def __init__(self, *arguments, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evaltui", "run", *arguments, "--watch"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        self._lines = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)

    def until(self, text):
        """Everything up to the first line that has the text."""
        seen = ""
        while text not in seen.rpartition("\n")[2]:
            try:
                line = self._lines.get(timeout=PATIENCE)
            except queue.Empty:
                pytest.fail(f"{text!r} did not come:\n{seen}")
            seen += ("\n" if seen else "") + line.rstrip("\n")
        return seen

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)


@pytest.fixture
def start():
    started = []

    def begin(*arguments, folder):
        started.append(Watch(*arguments, folder=folder))
        return started[-1]

    yield begin
    for one in started:
        one.process.kill()
        one.process.wait()


@pytest.fixture
def agent(tmp_path):
    folder = tmp_path / "my_agent"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT.format("no"))
    cases = [
        make_case(eval_id, make_turn("well?", answer, calls=[]))
        for eval_id, answer in (("agrees", "yes"), ("refuses", "no"))
    ]
    text = json.dumps({"eval_set_id": "talk", "eval_cases": cases})
    (folder / "talk.evalset.json").write_text(text)
    return folder


def test_a_save_is_followed_by_its_verdict_until_it_is_interrupted(agent, start):
    watch = start("my_agent", folder=agent.parent)
    assert "✗ agrees" in watch.until("1 passed, 1 failed")
    (agent / "agent.py").write_text("def root_agent(:\n")
    broken = watch.until("Previous results kept; retries on save")
    assert "agent.py:1: SyntaxError" in broken
    (agent / "agent.py").write_text(AGENT.format("yes"))
    said = watch.until("1 stale")
    # The case that is not run again may fail now.
    assert "1 passed  " in said
    assert "agent.py changed: runs 1 case, unknown number of live calls" in said
    assert "✓ agrees" in said
    assert "s after the save" in said
    text = (agent / "talk.evalset.json").read_text()
    (agent / "talk.evalset.json").write_text(text.replace('"text": "yes"', '"text": "yes, yes"'))
    assert "talk.evalset.json changed: 1 rescored without the agent" in watch.until("agrees")
    assert watch.interrupt() == 130


def test_a_save_that_runs_no_case_says_which_results_are_stale(agent, start):
    text = (agent / "talk.evalset.json").read_text()
    (agent / "talk.evalset.json").write_text(text.replace('"text": "yes"', '"text": "no"'))
    watch = start("my_agent", folder=agent.parent)
    watch.until("2 passed")
    (agent / "agent.py").write_text(AGENT.format("yes"))
    assert "agent.py changed: no case run" in watch.until("2 stale (unknown number of live calls)")


def test_cases_that_ran_and_are_stale_at_once_are_not_said_not_to_have_run(agent, start):
    """The agent reads a file that a process of its own changes."""
    (agent / "agent.py").write_text(
        "import subprocess\nfrom pathlib import Path\n\nNOTE = Path(__file__).with_name('note.txt')\n\n"
        "def root_agent(message, session):\n"
        "    NOTE.read_text()\n"
        "    subprocess.run(f'echo more >> \"{NOTE}\"', shell=True, check=True)\n"
        "    return 'no'\n"
    )
    (agent / "note.txt").write_text("note\n")
    watch = start("my_agent", folder=agent.parent)
    said = watch.until("2 stale (unknown number of live calls)")
    # A change that is seen before the cases are over cuts their run off, and they run again.
    of_last_run = said.rpartition("changed: runs")[2]
    assert "✓ refuses" in of_last_run
    assert "no case run" not in of_last_run
    assert "no current result" in of_last_run


def test_files_that_cannot_be_read_are_told(agent, start):
    """Else the last verdict seems to be that of the save."""
    eval_set = agent / "talk.evalset.json"
    text = eval_set.read_text()
    watch = start("my_agent", folder=agent.parent)
    watch.until("1 passed, 1 failed")
    (agent / "test_config.json").write_text('{"criteria"')
    assert "test_config.json changed: no case run" in watch.until(
        "! Cannot run: test_config.json:1: not valid JSON"
    )
    (agent / "test_config.json").unlink()
    watch.until("test_config.json changed: ")
    eval_set.write_text(text[:-1])
    watch.until("! Cannot run talk.evalset.json: line 1: not valid JSON")
    eval_set.write_text(text)
    assert "!" not in watch.until("talk.evalset.json changed: ")


def test_the_cases_that_are_named_are_run_after_every_save(agent, start):
    watch = start("my_agent", "talk:refuses", folder=agent.parent)
    assert "agrees" not in watch.until("1 passed")
    (agent / "agent.py").write_text(AGENT.format("yes"))
    said = watch.until("1 failed")
    assert "✗ refuses" in said
    assert "agrees" not in said
    assert watch.interrupt() == 130


def test_cases_of_renamed_and_new_sets_are_not_left_out_without_a_word(agent, start):
    talk, chat = agent / "talk.evalset.json", agent / "chat.evalset.json"
    watch = start("my_agent", folder=agent.parent)
    watch.until("1 passed, 1 failed")
    talk.rename(chat)
    # Their results are known by the ids of the cases.
    assert "not run" not in watch.until("chat.evalset.json and talk.evalset.json changed: nothing to run")
    (agent / "more.evalset.json").write_text(chat.read_text().replace('"talk"', '"more"'))
    watch.until("2 not run (more.evalset.json: agrees, more.evalset.json: refuses)")


@pytest.mark.parametrize("named", ["talk", "my_agent/talk.evalset.json", "talk:refuses"])
def test_a_named_set_that_is_gone_is_told(named, agent, start):
    watch = start("my_agent", named, folder=agent.parent)
    watch.until("1 passed")
    (agent / "talk.evalset.json").unlink()
    watch.until("! talk.evalset.json does not exist")
    (agent / "agent.py").write_text(AGENT.format("yes"))
    watch.until("! talk.evalset.json does not exist")


def test_it_runs_with_the_settings_of_the_moment(agent, start):
    project = agent.parent / "pyproject.toml"
    project.write_text('[tool.evaltui]\nresults-dir = "out"\n')
    options = ("--parallel", "3", "--workers", "1", "--timeout", "30", "--keep-runs", "1")
    watch = start("my_agent", *options, folder=agent.parent)
    watch.until("1 passed, 1 failed")
    settings = RunFile(RunStore(agent, agent.parent / "out").latest()).header.settings
    assert [getattr(settings, name) for name in ("parallel", "workers", "timeout", "keep_runs")] == [
        3,
        1,
        30.0,
        1,
    ]
    project.write_text("[tool.evaltui]\ntimeout = 0\n")
    (agent / "agent.py").write_text(AGENT.format("yes"))
    watch.until("note  pyproject.toml:2: tool.evaltui.timeout is 0. Give a number of seconds above 0")
    watch.until("2 stale")
    project.write_text('[tool.evaltui]\nresults-dir = "other"\n')
    (agent / "agent.py").write_text(AGENT.format("yes") + "# again\n")
    watch.until("after the save")
    assert RunFile(RunStore(agent, agent.parent / "other").latest()).header.number
    assert watch.interrupt() == 130


def test_what_cannot_go_together_is_wrong_use(agent, start):
    watch = start("my_agent", "--resume", "last", folder=agent.parent)
    watch.until("--resume cannot be used together with --watch")
    assert watch.process.wait(PATIENCE) == 2


def test_what_cannot_run_is_said_once(agent, start):
    criteria = {"response_match_score": 1.0, "safety_v1": 0.5}
    write_test_config(agent, criteria=criteria)
    watch = start("my_agent", "talk:refuses", folder=agent.parent)
    first = watch.until("1 not evaluated")
    assert first.index("– safety_v1  none of 1 case") < first.index("– refuses")
    (agent / "agent.py").write_text(AGENT.format("yes"))
    assert "none of 1 case" not in watch.until("1 failed")
    assert watch.interrupt() == 130
