"""`evaltui record`: what it records passes, and what cannot be recorded leaves every file as it was."""

from __future__ import annotations

import importlib.util
import io
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call
from eval_data import make_case

from evaltui.project.eval_sets import load_eval_set

SAMPLES = Path(__file__).parents[2] / "sample_agents"
AGENT = """
    import asyncio
    from evaltui import events

    async def root_agent(message, session):
        if message == "wait":
            print("waits")
            await asyncio.sleep(1000)
        session.state["said"] = session.state.get("said", []) + [message]
        yield events.tool_call("count", {"in": message})
        yield events.tool_result("count", len(session.state["said"]))
        yield f"message {len(session.state['said'])}: {message}"
"""
EMPTY_SET = {"eval_set_id": "basics", "eval_cases": [make_case("old")]}


@pytest.fixture
def agent(write_agent, monkeypatch) -> Path:
    folder = write_agent(AGENT)
    (folder / "basics.evalset.json").write_text(json.dumps(EMPTY_SET, indent=4))
    monkeypatch.chdir(folder.parent)
    Path("turns.txt").write_text("one\r\n  more\r\n\n \ntwo\n")
    return folder


def record(
    agent: Path, name: object, case: str = "new", turns: object = "turns.txt", *options: object
) -> int:
    code = call("record", agent, name, "--case", case, "--turns", turns, *options)
    assert isinstance(code, int)
    return code


def files(agent: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(agent.glob("*.json"))}


SAID = {
    "calculator": "3 times 4\n\nwhat was the last result?",
    "home_automation": "turn off the bedroom light\n\ngood night\n\nhow warm is the kitchen?",
    "travel_desk": "I am Ada from Rome\n\nfly to Oslo on 2026-05-01\n\nwhat can I do in Oslo\n\nbook 2 seats",
}


@pytest.mark.parametrize(
    "sample", ["calculator", "home_automation", pytest.param("travel_desk", marks=pytest.mark.adk)]
)
def test_what_is_recorded_of_the_sample_agents_passes_at_once(sample, tmp_path, monkeypatch, capsys):
    if sample == "travel_desk" and importlib.util.find_spec("google.adk") is None:
        pytest.skip("needs google-adk")
    agent = tmp_path / sample
    shutil.copytree(SAMPLES / sample, agent)
    turns = tmp_path / "turns.txt"
    turns.write_text(SAID[sample])
    assert record(agent, "recorded.evalset.json", "all", turns) == 0
    assert call("run", agent, "recorded") == 0
    assert "1 passed" in capsys.readouterr().out


def test_a_session_without_a_user_gets_the_one_of_google_adk(agent, monkeypatch):
    Path("session.json").write_text('{"state": {"said": []}}')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hi")))
    assert record(agent, "basics", "second", "-", "--initial-session", "session.json") == 0
    case = load_eval_set(agent / "basics.evalset.json").eval_cases[1]
    assert (case.session_input.app_name, case.session_input.user_id) == ("my_agent", "test_user_id")


@pytest.mark.parametrize("option", ["--turns", "--initial-session"])
def test_a_file_that_is_no_text_is_wrong_use(agent, option, capsys):
    Path("latin.txt").write_bytes(b"caf\xe9")
    before = files(agent)
    assert record(agent, "basics", "new", "turns.txt", option, "latin.txt") == 2
    assert "not UTF-8" in capsys.readouterr().err
    assert files(agent) == before


def test_two_sets_of_the_same_id_must_be_told_apart(agent, capsys):
    (agent / "eval").mkdir()
    (agent / "eval" / "other.evalset.json").write_text(json.dumps(EMPTY_SET))
    assert record(agent, "basics") == 2
    assert "several sets" in capsys.readouterr().err


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "evaltui", "record", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_interrupted_recording_writes_nothing(agent):
    Path("turns.txt").write_text("wait")
    before = files(agent)
    recording = start(agent, "basics", "--case", "new", "--turns", "turns.txt")
    assert recording.stderr is not None
    assert recording.stderr.readline() == "| waits\n"
    recording.send_signal(signal.SIGINT)
    out, err = recording.communicate(timeout=30)
    assert (recording.returncode, out, err) == (130, "> wait\n", "")
    assert files(agent) == before


def test_of_two_that_begin_the_same_set_none_loses_its_case(agent):
    words = ("--turns", "turns.txt")
    both = [start(agent, "fresh.evalset.json", "--case", name, *words) for name in ("one", "two")]
    for one in both:
        one.communicate(timeout=60)
        assert one.returncode == 0
    cases = load_eval_set(agent / "fresh.evalset.json").eval_cases
    assert {case.eval_id for case in cases} == {"one", "two"}


def test_an_unwritable_file_is_told(agent, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evaltui.documents.saving.replace_all", full)
    assert record(agent, "basics") == 2
    assert "cannot be written: No space left on device" in capsys.readouterr().err


def test_a_case_that_can_never_pass_is_recorded_and_said(agent, capsys):
    (agent / "agent.py").write_text("def root_agent(message, session):\n    return '👍'\n")

    assert record(agent, "basics", "thumb") == 0

    told = capsys.readouterr().err
    assert "case thumb never passes: turns 1, 2 expect a response without words" in told
    assert load_eval_set(agent / "basics.evalset.json").eval_cases[-1].eval_id == "thumb"
