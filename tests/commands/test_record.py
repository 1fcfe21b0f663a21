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

from evaltui.files.eval_sets import load_eval_set

SAMPLES = Path(__file__).parents[2] / "sample_agents"
AGENT = """
    import asyncio
    from evaltui import events

    async def root_agent(message, session):
        if message == "raise":
            raise RuntimeError("judge 500")
        if message == "wait":
            print("waits")
            await asyncio.sleep(1000)
        session.state["said"] = session.state.get("said", []) + [message]
        yield events.tool_call("count", {"in": message})
        yield events.tool_result("count", len(session.state["said"]))
        yield f"message {len(session.state['said'])}: {message}"
"""
EMPTY_SET = {"eval_set_id": "basics", "eval_cases": [{"eval_id": "old", "conversation": []}]}


@pytest.fixture
def agent(write_agent, monkeypatch) -> Path:
    folder = write_agent(AGENT)
    (folder / "basics.evalset.json").write_text(json.dumps(EMPTY_SET, indent=4))
    (folder / "dated.test.json").write_text('[{"query": "hello", "reference": "hi"}]')
    (folder / "broken.evalset.json").write_text('{"eval_set_id": "broken", "eval_cases": 1}')
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


def test_a_new_set_goes_to_the_agent_and_its_case_passes(agent, capsys):
    assert record(agent, "fresh.evalset.json", "Ünï code") == 0
    out, err = capsys.readouterr()
    path = agent / "fresh.evalset.json"
    assert out.splitlines() == [
        "> one",
        "    more",
        '  → count  in "one\\n  more"',
        '  state  said = ["one\\n  more"]',
        '  ← count  {"result": 1}',
        "message 1: one",
        "  more",
        "> two",
        '  → count  in "two"',
        '  state  said  ["one\\n  more"] → ["one\\n  more", "two"]',
        '  ← count  {"result": 2}',
        "message 2: two",
        f"{path}: case Ünï code with 2 turns",
    ]
    assert err == ""
    eval_set = load_eval_set(path)
    assert eval_set.eval_set_id == "fresh"
    assert [case.eval_id for case in eval_set.eval_cases] == ["Ünï code"]
    assert eval_set.eval_cases[0].session_input is None
    assert call("run", agent, "fresh") == 0


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


def test_a_set_that_exists_gets_one_more_case_and_keeps_the_rest(agent, monkeypatch):
    before = (agent / "basics.evalset.json").read_text()
    Path("session.json").write_text('{"state": {"said": ["zero"]}, "user_id": "ada"}')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("grüße\n".encode())))
    assert record(agent, "basics", "second", "-", "--initial-session", "session.json") == 0
    path = agent / "basics.evalset.json"
    last_case = before.rindex("}", 0, before.rindex("]")) + 1
    assert path.read_text().startswith(before[:last_case] + ",")
    assert path.read_text().endswith(before[last_case:])
    case = load_eval_set(path).eval_cases[1]
    assert case.eval_id == "second"
    assert case.session_input.model_dump(exclude_none=True) == {
        "app_name": "my_agent",
        "user_id": "ada",
        "state": {"said": ["zero"]},
    }
    assert case.conversation[0].final_response.parts[0].text == "message 2: grüße"
    # By its file, seen from the agent's folder.
    assert record(agent, "basics.evalset.json", "third") == 0
    assert [case.eval_id for case in load_eval_set(path).eval_cases] == ["old", "second", "third"]


WRONG_USES = {
    "no such agent": (["nowhere", "basics"], {}, "nowhere does not exist"),
    "above the agent": ([".", "basics"], {}, "is the parent of an agent; use my_agent"),
    "no such set": (["my_agent", "basic"], {}, "Did you mean basics"),
    "no file": (["my_agent", "zzz"], {}, "name its file: NAME.evalset.json"),
    "id of a new set": (["my_agent", "a b.evalset.json"], {}, "letters"),
    "no folder": (["my_agent", "nowhere/a.evalset.json"], {}, "nowhere does not exist"),
    "same id": (["my_agent", "basics"], {"--case": "old"}, "already has a case 'old'"),
    "no id": (["my_agent", "basics"], {"--case": ""}, "Case id is missing"),
    "old format": (["my_agent", "dated"], {}, "evaltui migrate"),
    "no set": (["my_agent", "broken"], {}, "eval_cases: must be a list"),
    "no turns": (["my_agent", "basics"], {"--turns": "nowhere.txt"}, "nowhere.txt cannot be read"),
    "empty turns": (["my_agent", "basics"], {"--turns": "empty.txt"}, "empty.txt is empty"),
    "no text": (["my_agent", "basics"], {"--turns": "latin.txt"}, "not UTF-8"),
    "no session": (["my_agent", "basics"], {"--initial-session": "latin.txt"}, "not UTF-8"),
}


@pytest.mark.parametrize("kind", WRONG_USES)
def test_wrong_use_is_two_with_one_line_and_nothing_is_written(agent, kind, capsys):
    Path("empty.txt").write_text(" \n\n\t\n")
    Path("latin.txt").write_bytes(b"caf\xe9")
    before = files(agent)
    words, options, says = WRONG_USES[kind]
    given = {"--case": "new", "--turns": "turns.txt"} | options
    assert call("record", *words, *(word for option in given.items() for word in option)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert len(err.splitlines()) == 1
    assert files(agent) == before


def test_two_sets_of_the_same_id_must_be_told_apart(agent, capsys):
    (agent / "eval").mkdir()
    (agent / "eval" / "other.evalset.json").write_text(json.dumps(EMPTY_SET))
    assert record(agent, "basics") == 2
    assert "several sets" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "name", "says"),
    [
        (
            "raise",
            "basics",
            ["nothing recorded: turn 2 failed: agent.py:", "RuntimeError: judge 500"],
        ),
    ],
)
def test_a_failing_turn_is_three_and_nothing_is_written(agent, said, name, says, capsys):
    Path("turns.txt").write_text(f"one\n\n{said}\n\ntwo")
    before = files(agent)
    assert record(agent, name) == 3
    out, err = capsys.readouterr()
    assert "message 1: one" in out
    assert all(text in err for text in says)
    assert files(agent) == before


def test_an_agent_that_cannot_be_imported_is_three(write_agent, agent, capsys):
    write_agent("import nowhere\n")
    assert record(agent, "basics") == 3
    assert "Cannot load agent: agent.py:1: ModuleNotFoundError" in capsys.readouterr().err


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
    def full(changes):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evaltui.files.saving.write_all", full)
    assert record(agent, "basics") == 2
    assert "cannot be written: No space left on device" in capsys.readouterr().err


def test_a_case_that_can_never_pass_is_recorded_and_said(agent, capsys):
    (agent / "agent.py").write_text("def root_agent(message, session):\n    return '👍'\n")

    assert record(agent, "basics", "thumb") == 0

    told = capsys.readouterr().err
    assert "case thumb never passes: turns 1, 2 expect a response without words" in told
    assert load_eval_set(agent / "basics.evalset.json").eval_cases[-1].eval_id == "thumb"
