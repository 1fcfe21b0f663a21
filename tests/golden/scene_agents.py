"""The agents of the golden screens: folders of small files, each with what its scenes show."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs

from evaltui.workbench.cases import set_editing
from evaltui.workbench.workbench import Workbench
from tests.stored_matrix import write_matrix
from tests.traces.receiver.senders import session

SAMPLES = Path(__file__).parents[2] / "sample_agents"

PARROT = """
    def root_agent(message, session):
        return message
"""
# Each case of the clinic ends in its own way; the moody patient comes every second time.
CLINIC = """
    from pathlib import Path
    from evaltui.events import text, tool_call

    VISITS = Path(__file__).parent / ".visits"

    def root_agent(message, session):
        if message == "Is anybody there?":
            raise ConnectionError("the practice does not answer: [/boom] \\x1b[2J")
        if message == "Are you in the mood?":
            VISITS.touch()
            VISITS.write_text(VISITS.read_text() + "x")
            yield text("Yes, I am." if len(VISITS.read_text()) % 2 else "Not today.")
            return
        if message == "I need an appointment":
            session.state["visit"] = {"day": "Tuesday", "hour": 9}
            yield text("Let me see.")
            yield tool_call("find_slots", {"day": "Tuesday", "with": {"name": "Grey", "since": "2026-01-03"}})
            yield tool_call("notify", {"text": "日本語 🎉"})
            yield text("Tuesday at nine is free.")
            return
        print("asked:", message)
        yield text("We are open from nine to five.")
"""
KEYLESS = """
    from google.adk.agents import Agent

    root_agent = Agent(name="adder", model="gemini-2.5-flash", instruction="Add.")
"""
FINDER = """
    from evaltui import Agent, Rule, ScriptedModel

    def find(name: str) -> str:
        \"\"\"Looks a person up.\"\"\"
        return name

    model = ScriptedModel([Rule(user="", reply="Found.")])
    root_agent = Agent("finder", model=model, instruction="Find.", tools=[find])
"""
WAITING = """
    import time

    def root_agent(message, session):
        while message == "wait":
            time.sleep(0.01)
        return message
"""


def turn(message: str, answer: str | None, *calls: dict[str, Any]) -> dict[str, Any]:
    """A turn of a case; None for an answer that nobody expects."""
    expected = {} if answer is None else {"final_response": {"role": "model", "parts": [{"text": answer}]}}
    return {
        "user_content": {"role": "user", "parts": [{"text": message}]},
        **expected,
        "intermediate_data": {"tool_uses": list(calls)},
    }


def write_set(path: Path, cases: dict[str, list[dict[str, Any]]], **more: Any) -> None:
    """An eval set file of cases, id to turns."""
    path.parent.mkdir(exist_ok=True)
    data = {
        "eval_set_id": path.name.partition(".")[0],
        "eval_cases": [{"eval_id": eval_id, "conversation": turns} for eval_id, turns in cases.items()],
        **more,
    }
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _write(folder: Path, code: str) -> None:
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "agent.py").write_text(textwrap.dedent(code).lstrip("\n"), encoding="utf-8")


def sample(name: str) -> Callable[[Path], Path]:
    """Copies a sample agent."""

    def copy(parent: Path) -> Path:
        ignored = shutil.ignore_patterns(".*", "__pycache__", "recordings")
        return Path(shutil.copytree(SAMPLES / name, parent / name, ignore=ignored))

    return copy


def keyless(parent: Path) -> Path:
    """Has a model of Gemini and no key for it."""
    folder = parent / "adder"
    _write(folder, KEYLESS)
    write_set(folder / "sums.evalset.json", {"one": [turn("1 and 2", "3")], "two": [turn("2 and 2", "4")]})
    return folder


def parrot(parent: Path) -> Path:
    """Says what it hears."""
    folder = parent / "parrot"
    _write(folder, PARROT)
    write_set(
        folder / "talk.evalset.json",
        {
            "greeting": [turn("hello", "hello")],
            "question": [turn("how are you?", "I am fine, thank you.")],
            "long": [turn("one", "one"), turn("two", "two", {"name": "count", "args": {"to": 2}})],
        },
    )
    return folder


def clinic(parent: Path) -> Path:
    """Cases of every outcome, in sets with configs of their own."""
    folder = parent / "clinic"
    _write(folder, CLINIC)
    slots = {
        "name": "find_slots",
        "args": {"day": "Monday", "with": {"name": "Grey", "since": "2026-01-01"}},
    }
    write_set(
        folder / "desk.evalset.json",
        {
            "opening_hours": [turn("When are you open?", "We are open from nine to five.")],
            "appointment": [
                turn("When are you open?", "We are open from nine to five."),
                turn("I need an appointment", "Monday at ten is free.", slots),
            ],
            "no_answer": [turn("Is anybody there?", "Yes.")],
        },
    )
    write_set(
        folder / "eval_moods" / "moods.evalset.json", {"mood": [turn("Are you in the mood?", "Yes, I am.")]}
    )
    write_set(folder / "eval_safety" / "safety.evalset.json", {"harmless": [turn("Open today?", None)]})
    configs = {
        "eval_moods": {
            "criteria": {"response_match_score": 0.8},
            "evaltui": {"repeats": {"runs": 4, "pass_if": 0.5}},
        },
        "eval_safety": {"criteria": {"safety_v1": 0.5}},
    }
    # One case after the other, or moods would change in between.
    (folder / "pyproject.toml").write_text("[tool.evaltui]\nparallel = 1\nworkers = 1\n", encoding="utf-8")
    for name, config in configs.items():
        (folder / name / "test_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return folder


def newcomer(parent: Path) -> Path:
    """No eval set yet."""
    folder = parent / "newcomer"
    _write(folder, FINDER)
    return folder


def broken(parent: Path) -> Path:
    """Cannot be imported, and one of its sets cannot be read."""
    folder = parent / "broken"
    _write(folder, 'MODEL = {}["model"]\n')
    write_set(folder / "talk.evalset.json", {"greeting": [turn("hello", "hello")]})
    (folder / "torn.evalset.json").write_text('{"eval_set_id": "torn",\n', encoding="utf-8")
    return folder


def waiting(parent: Path) -> Path:
    """One of its cases does not end by itself."""
    folder = parent / "waiting"
    _write(folder, WAITING)
    cases = {"quick": [turn("hello", "hello")], "endless": [turn("wait", "Done.")]}
    write_set(folder / "talk.evalset.json", cases)
    return folder


def home(parent: Path) -> Path:
    """Has the stored runs of a matrix of variants."""
    folder = parent / "home"
    _write(folder, PARROT)
    write_matrix(folder)
    return folder


def old_files(parent: Path) -> Path:
    """A set of an old format, and a recorded trace."""
    folder = parent / "archive"
    _write(folder, PARROT)
    write_set(folder / "talk.evalset.json", {"greeting": [turn("hello", "hello")]})
    old = [
        {
            "query": "hello",
            "expected_tool_use": [],
            "reference": "hello",
            "expected_intermediate_agent_responses": [],
        }
    ]
    (folder / "older.test.json").write_text(json.dumps(old, indent=2), encoding="utf-8")
    (folder / "trace.json").write_text(json.dumps(session(1, "Do you sell lamps?", "Yes, and rugs.")))
    return folder


async def crash(agent: Path) -> None:
    """Edits in a session that has ended without saving."""
    workbench = Workbench(agent)
    await workbench.open()
    set_editing.duplicate(workbench.editing)
    # The lock ends with the process; this one goes on.
    workbench.editing.open_file(agent / "talk.evalset.json").recovery.lock.release()


async def wrong_keys(_: Path) -> None:
    """The user has chosen keys that clash."""
    path = platformdirs.user_config_path("evaltui") / "keys.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('[keys]\nrun = "R"\nnonsense = "x"\nsave = 5\n', encoding="utf-8")
