"""Sessions and scenarios of google-adk: shown, made cases of, scored, and refused if they are unreadable."""

import asyncio
import json
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("google.adk")

from google.adk.evaluation.conversation_scenarios import ConversationScenarios
from google.adk.evaluation.eval_set import EvalSet
from google.adk.runners import Runner
from google.adk.sessions.session import Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from json_places import places, value_at

from evaltui.project.eval_sets import load_eval_set
from evaltui.traces.conversations import conversations_in
from evaltui.traces.formats.adk_session import read_session
from evaltui.traces.reading import read_file
from evaltui.traces.span import UnreadableTraceError
from tests.commands.command_line import call
from tests.environments import environment_python

pytestmark = pytest.mark.adk

# Its model answers by what came last.
AGENT = """
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools import LongRunningFunctionTool, ToolContext
    from google.genai import types

    def lookup(order: int, tool_context: ToolContext) -> dict:
        tool_context.state["lookups"] = tool_context.state.get("lookups", 0) + 1
        return {"city": tool_context.state.get("city")}

    def refund(order: int) -> dict:
        return {"status": "pending"}

    def crash(order: int) -> dict:
        raise RuntimeError("the desk is closed")

    class Scripted(BaseLlm):
        model: str = "scripted"

        async def generate_content_async(self, llm_request, stream=False):
            part = llm_request.contents[-1].parts[-1]
            if part.text in ("lookup", "refund", "crash"):
                made = types.Part(function_call=types.FunctionCall(name=part.text, args={"order": 7}))
            else:
                made = types.Part(text=f"Heard {part.text or part.function_response.response}")
            usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, total_token_count=12)
            content = types.Content(role="model", parts=[made])
            yield LlmResponse(content=content, usage_metadata=usage)

    tools = [lookup, LongRunningFunctionTool(refund), crash]
    root_agent = LlmAgent(name="desk", model=Scripted(), instruction="Serve {city}.", tools=tools)
"""
LINES = ["Hello desk", "lookup", "Thanks"]


@pytest.fixture
def desk(write_agent, monkeypatch):
    folder = write_agent(AGENT, name="desk")
    monkeypatch.chdir(folder)
    return folder


def first_case(folder):
    return load_eval_set(folder / "all.evalset.json").eval_cases[0]


@pytest.mark.parametrize("variable", ["", "EVALTUI_OLD_ADK_PYTHON"], ids=["this ADK", "the oldest ADK"])
def test_a_session_that_adk_run_stored_passes_as_a_case_of_its_agent(desk, variable, capsys):
    python = environment_python(variable) if variable else sys.executable
    run = [python, "-m", "google.adk.cli", "run", "desk", "--save_session", "--session_id", "saved"]
    subprocess.run(
        [*run, "--state", '{"city": "Oslo"}'],
        input="\n".join([*LINES, "exit\n"]),
        cwd=desk.parent,
        text=True,
        check=True,
    )
    stored, database = desk / "saved.session.json", desk / ".adk" / "session.db"
    session = Session.model_validate_json(stored.read_text())
    for file, name in ((stored, "ADK session"), (database, "ADK session database")):
        capsys.readouterr()
        assert call("inspect", file, "--format", "json") == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["files"][0]["formats"] == [name]
        (conversation,) = shown["conversations"]
        assert conversation["id"] == session.id
        assert conversation["session"] == {
            "app_name": session.app_name,
            "user_id": session.user_id,
            "state": {"city": "Oslo"},
            "unknown": ["lookups"],
            "shared": [],
        }
        assert [turn["user"] for turn in conversation["turns"]] == LINES
        assert [turn["calls"] for turn in conversation["turns"]] == [
            [],
            [{"name": "lookup", "args": {"order": 7}}],
            [],
        ]
        (desk / "all.evalset.json").unlink(missing_ok=True)
        assert call("import", file, "--into", "all.evalset.json") == 0
        assert "initial state of lookups unknown" in capsys.readouterr().out
        case = first_case(desk)
        assert (case.session_input.app_name, case.session_input.user_id) == ("desk", session.user_id)
        assert case.session_input.state == {"city": "Oslo"}
        assert call("run", desk) == 0
        assert call("score", file, "--sets", "all") == 0
    # The same session of both files is one.
    assert call("import", stored, database, "--into", "all") == 2
    assert "has it as case hello_desk" in capsys.readouterr().err
    text = (desk / "all.evalset.json").read_text()
    (desk / "all.evalset.json").write_text(text.replace('"order": 7', '"order": 8'))
    assert call("run", desk) == 1
    assert call("score", database, "--sets", "all") == 1


class Desk:
    """An agent of google-adk whose sessions are in a database."""

    def __init__(self, path):
        module = {}
        exec("\n".join(line[4:] for line in AGENT.splitlines()), module)
        self.service = SqliteSessionService(str(path))
        self._runner = Runner(app_name="desk", agent=module["root_agent"], session_service=self.service)

    async def create(self, session_id, user="ada", **state):
        names = {"app_name": "desk", "user_id": user, "session_id": session_id}
        await self.service.create_session(**names, state=state)

    async def say(self, session_id, message, user="ada", **fields):
        if isinstance(message, str):
            message = types.Part(text=message)
        content = types.Content(role="user", parts=[message])
        turn = self._runner.run_async(user_id=user, session_id=session_id, new_message=content, **fields)
        return [event async for event in turn]

    async def rewind(self, session_id, event):
        await self._runner.rewind_async(
            user_id="ada", session_id=session_id, rewind_before_invocation_id=event.invocation_id
        )


async def _sessions(path):
    desk = Desk(path)
    for session_id, user in (("talk", "ada"), ("twin", "ada"), ("twin", "bob"), ("empty", "ada")):
        await desk.create(session_id, user, city="Oslo", **{"user:lang": user})
    for user in ("ada", "bob"):
        await desk.say("twin", f"I am {user}", user)
    await desk.say("talk", "Hello", state_delta={"mood": "calm"})
    (called, *_) = await desk.say("talk", "refund")
    (refund,) = called.get_function_calls()
    response = types.FunctionResponse(id=refund.id, name="refund", response={"status": "done"})
    await desk.say("talk", types.Part(function_response=response))
    with pytest.raises(RuntimeError):
        await desk.say("talk", "crash")
    (rewound,) = await desk.say("talk", "Nonsense")
    await desk.rewind("talk", rewound)
    await desk.say("talk", "Bye", state_delta={"mood": "angry"})


def test_sessions_of_a_database_are_listed_and_chosen_by_id(desk, capsys):
    database = desk / "session.db"
    asyncio.run(_sessions(database))
    # ADK writes meanwhile; what it has not committed is not there.
    with sqlite3.connect(database) as writer:
        writer.execute("DELETE FROM events")
        assert call("inspect", database) == 0
        writer.rollback()
    shown = capsys.readouterr().out
    for line in (
        "session.db   ADK session database   4 sessions",
        "note  session empty: no message of a user; left out",
        "conversation desk/ada/twin   1 turn",
        "conversation desk/bob/twin   1 turn",
        "conversation talk   5 turns   2 calls",
        'app desk   user ada   state before the first turn {"user:lang": "ada", "mood": "calm"}',
        'response to refund: {"status": "done"}',
        "! RuntimeError: the desk is closed",
        # Where google-adk rewinds, it forgets the state that a session began with.
        "state of city, mood set before the turn: a case has no place for it",
        "initial state of city unknown: the session changed it",
        "initial state of user:lang is the last one; other sessions may have changed it",
        "missing  model calls: a session has no requests to models",
    ):
        assert line in shown
    assert "Nonsense" not in shown
    assert call("import", database, "--into", "all.evalset.json", "--conversation", "talk") == 0
    assert "turn 4 left out: ended with RuntimeError: the desk is closed" in capsys.readouterr().out
    case = first_case(desk)
    assert [turn.user_content.parts[0].text for turn in case.conversation] == ["Hello", "refund", None, "Bye"]
    assert case.session_input.state == {"user:lang": "ada", "mood": "calm"}
    assert call("import", database, "--into", "all", "--conversation", "talk", "--turns", "5") == 0
    later = load_eval_set(desk / "all.evalset.json").eval_cases[1]
    assert later.session_input.state == {"user:lang": "ada", "mood": "calm"}


def event(author, text="", **fields):
    content = {"content": {"parts": [{"text": text}]}} if text else {}
    return {"author": author, **content, **fields}


def delta(**values):
    return {"actions": {"stateDelta": values}}


SAID = [event("user", "Hi"), event("desk", "Hello")]
SESSION = {"id": "s", "appName": "desk", "userId": "ada", "state": {"city": "Oslo"}, "events": SAID}
CALL = {"functionCall": {"name": "find", "args": {}}}
RESPONSE = {"functionResponse": {"name": "find", "response": {}}}


@pytest.mark.parametrize(
    ("state", "events", "initial", "unknown", "messages", "untold"),
    [
        ({"city": "Oslo"}, SAID, {"city": "Oslo"}, (), ["Hi"], [[]]),
        # `adk web` changes the state by an event without a content.
        (
            {"a": 1, "b": 3},
            [event("user", **delta(b=2)), *SAID, event("user", **delta(b=3)), *SAID],
            {"a": 1, "b": 2},
            (),
            ["Hi", "Hi"],
            [[], []],
        ),
        # It renames a session by an event that sets the whole state.
        (
            {"a": 1, "b": 3, "__session_metadata__": {"displayName": "x"}},
            [
                *SAID,
                event("user", **delta(a=1, b=2, __session_metadata__={})),
                *SAID,
                event("desk", **delta(b=3)),
            ],
            {"a": 1, "b": 2},
            (),
            ["Hi", "Hi"],
            [[], []],
        ),
        ({"a": 2, "_adk_x": 1}, [*SAID, event("desk", "Well", **delta(a=2))], {}, ("a",), ["Hi"], [[]]),
        ({}, [event("user", "Hi", **delta(a=None, **{"temp:x": 1})), SAID[1]], {}, (), ["Hi"], [[]]),
        # The agent failed before and after a call.
        (
            {},
            [SAID[0], SAID[0], {"author": "desk", "content": {"parts": [CALL]}}],
            {},
            (),
            ["Hi", "Hi"],
            [["answers", "tool calls"]] * 2,
        ),
        # The agent failed, or was stopped, after a tool; a tool may also end a turn.
        (
            {},
            [
                *(SAID[0], event("desk", content={"parts": [CALL]})),
                event("desk", content={"parts": [RESPONSE]}),
                *(SAID[0], event("desk", content={"parts": [CALL]})),
                event("desk", content={"parts": [RESPONSE]}, actions={"skipSummarization": True}),
            ],
            {},
            (),
            ["Hi", "Hi"],
            [["answers", "tool calls"], []],
        ),
        # The times are those of the begins of two agents in parallel, whose responses a third one may join.
        (
            {},
            [
                *(SAID[0], event("x", "Slow", branch="all.x"), event("x", "Slow", branch="all.x.y")),
                *(SAID[0], event("x", "Slow", branch="all.x"), event("y", "Fast", branch="all.y")),
                *(SAID[0], event("x", "Slow", branch="all.x"), event("y", "Fast", branch="all.y")),
                event("desk", "Both"),
            ],
            {},
            (),
            ["Hi", "Hi", "Hi"],
            [[], ["answers"], []],
        ),
        # A result that a node of a workflow passes on is no message, a compaction is none either.
        (
            {},
            [
                *SAID,
                event("user", "Result", nodeInfo={"path": "flow@1/find@1"}),
                event("user", actions={"compaction": {}}),
            ],
            {},
            (),
            ["Hi"],
            [[]],
        ),
        ({}, [event("desk", "Welcome"), *SAID], {}, (), ["Hi"], [[]]),
    ],
)
def test_turns_and_the_state_before_them_are_those_of_the_events(
    state, events, initial, unknown, messages, untold
):
    recorded = read_session({**SESSION, "state": state, "events": events})
    (conversation,) = conversations_in([recorded]).conversations
    assert (conversation.session.state, conversation.session.unknown) == (initial, unknown)
    assert list(conversation.messages) == messages
    assert [sorted(set(turn.untold) - {"model calls"}) for turn in conversation.turns] == untold
    assert conversation.final_state == {key: state[key] for key in state if not key.startswith("_")}


def test_events_of_one_id_are_several_steps():
    events = [event("user", "Hi"), event("desk", "Draft", id="1"), event("desk", "Hello", id="1")]
    (conversation,) = conversations_in([read_session({**SESSION, "events": events})]).conversations
    steps = [step.data["step"] for step in conversation.events if step.kind == "text"]
    assert len(steps) == len(set(steps)) == 2


def test_a_text_beside_a_call_is_shown_as_no_response(tmp_path, capsys):
    calling = event("desk", content={"parts": [{"text": "I look."}, CALL]})
    ending = event("desk", content={"parts": [RESPONSE]}, actions={"skipSummarization": True})
    (tmp_path / "s.json").write_text(json.dumps({**SESSION, "events": [SAID[0], calling, ending]}))
    assert call("inspect", tmp_path / "s.json", "--format", "json") == 0
    (conversation,) = json.loads(capsys.readouterr().out)["conversations"]
    assert conversation["turns"][0]["response"] is None


@pytest.mark.parametrize(
    ("state", "is_other"), [({"city": "Oslo"}, False), ({"city": "Rome"}, True), ({}, True)]
)
def test_another_initial_state_than_that_of_the_case_is_noted(tmp_path, monkeypatch, capsys, state, is_other):
    monkeypatch.chdir(tmp_path)
    recorded = {**SESSION, "state": {"city": "Oslo"}, "events": SAID}
    Path("s.session.json").write_text(json.dumps(recorded))
    assert call("import", "s.session.json", "--into", "all.evalset.json", "--yes") == 0
    data = json.loads(Path("all.evalset.json").read_text())
    data["eval_cases"][0]["session_input"]["state"] = state
    Path("all.evalset.json").write_text(json.dumps(data))
    capsys.readouterr()
    call("score", "s.session.json", "--sets", "all", "--home", ".")
    assert ("another initial state than the case (city)" in capsys.readouterr().out) is is_other


def _database(script):
    def write(path):
        with sqlite3.connect(path) as database:
            database.executescript(f"CREATE TABLE sessions (app_name, user_id, id, state); {script}")

    return write


EVENTS = "CREATE TABLE events (app_name, user_id, session_id, timestamp, event_data);"
METADATA = "CREATE TABLE adk_internal_metadata (key, value);"
STATES = "CREATE TABLE app_states (app_name, state); CREATE TABLE user_states (app_name, user_id, state);"
ROW = "'desk', 'ada', 's'"
ONE = f"INSERT INTO sessions VALUES ({ROW}, '{{}}'); INSERT INTO events VALUES ({ROW}, 1, "


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({**SESSION, "events": {}}, "events: must be a list"),
        ({**SESSION, "events": [{}]}, "events[0].author: missing"),
        ({**SESSION, "events": [event("user", timestamp=1e300)]}, "events[0].timestamp: "),
        ({**SESSION, "events": [event("user", content={"parts": [{"text": 1}]})]}, "content.parts[0].text"),
        (
            {**SESSION, "events": [event("desk", usageMetadata={"totalTokenCount": "x"})]},
            "Metadata.totalTokenC",
        ),
        ({**SESSION, "id": None}, "id: must be a string"),
        ({"scenarios": [{"starting_prompt": "Hi"}]}, "scenarios[0].conversation_plan: missing"),
        (
            {"scenarios": [{"startingPrompt": "Hi", "conversationPlan": "x", "userPersona": "TROLL"}]},
            "scenarios[0].userPersona: unknown persona 'TROLL'",
        ),
        (
            _database("CREATE TABLE events (id, actions);"),
            "pickled events. Convert it: adk migrate session --source_db_url sqlite:///",
        ),
        (
            _database(f"{EVENTS}{METADATA} INSERT INTO adk_internal_metadata VALUES ('schema_version', '2')"),
            "schema 2, expected is schema 1. Update evaltui",
        ),
        (_database(f"{EVENTS}{ONE}'')"), "cannot be read: no such table: app_states"),
        (_database(f"{EVENTS}{STATES}{ONE}'{{')"), "session s: Expecting property name"),
        (_database(f"{EVENTS}{STATES}{ONE}'{{}}')"), "session s: events[0].author: missing"),
    ],
)
def test_a_file_that_is_wrong_or_of_another_version_is_refused(tmp_path, content, complaint, capsys):
    path = tmp_path / "x.json"
    if callable(content):
        content(path)
    else:
        path.write_text(json.dumps(content))
    for words in (("inspect", path), ("import", path, "--into", tmp_path / "new.evalset.json")):
        assert call(*words) == 2
        assert complaint in capsys.readouterr().err
    assert not (tmp_path / "new.evalset.json").exists()


def test_wrong_types_anywhere_in_a_session_are_read_or_refused(tmp_path):
    wrong = (None, 7, "x", [], {}, True, -1, 1e400, [[]], {"a": {"b": 1}}, "\ud800")
    choice, path = random.Random(5), tmp_path / "x.json"
    content = {"parts": [{"functionResponse": {"id": "1", "name": "find", "response": {}}}, CALL]}
    usage = {
        "usageMetadata": {"totalTokenCount": 1},
        "longRunningToolIds": ["1"],
        "nodeInfo": {"path": "a/b"},
    }
    full = {**delta(a=1), **usage, "invocationId": "i", "timestamp": 1.0, "content": content}
    document = {**SESSION, "events": [*SAID, event("desk", **full), event("user", **full)]}
    for *above, last in list(places(document)):
        changed = json.loads(json.dumps(document))
        value_at(changed, above)[last] = choice.choice(wrong)
        path.write_text(json.dumps(changed))
        try:
            read = conversations_in(read_file(path))
        except UnreadableTraceError:
            continue
        for conversation in read.conversations:
            for number in range(len(conversation.turns)):
                json.dumps([conversation.state_after(number), conversation.session.state])


def test_scenarios_become_cases_of_a_simulated_user(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scenarios = [
        {"starting_prompt": "Hi", "conversation_plan": "Ask for a refund."},
        {"startingPrompt": "Hi", "conversationPlan": "Complain.", "userPersona": "EXPERT"},
    ]
    path = tmp_path / "conversation_scenarios.json"
    path.write_text(json.dumps({"scenarios": scenarios}))
    assert call("inspect", path) == 0
    assert "ADK scenarios   2 scenarios" in capsys.readouterr().out
    assert call("import", path, "--into", "new.evalset.json") == 0
    written = EvalSet.model_validate_json((tmp_path / "new.evalset.json").read_text())
    assert [case.eval_id for case in written.eval_cases] == ["hi", "hi_2"]
    expected = ConversationScenarios.model_validate_json(path.read_text()).scenarios
    assert [case.conversation_scenario for case in written.eval_cases] == expected
    assert call("import", path, "--into", "new") == 2
    assert "scenario 'Hi' left out: new.evalset.json has it as case hi_2" in capsys.readouterr().err
    assert call("import", path, "--into", "new", "--case", "x") == 2
    assert "--case is for one conversation, there are 2" in capsys.readouterr().err
    assert call("score", path, "--sets", "new") == 2
    assert "no conversation of an agent in" in capsys.readouterr().err


def stored_later(rng):
    """A session as it is stored after each of its turns, of which some are rewound."""
    events, state = [], {"city": "Oslo"}
    for moment in range(1, rng.randrange(3, 8)):
        name = f"i{moment}"
        if len(events) > 2 and rng.random() < 0.4:
            before = rng.choice([event["invocation_id"] for event in events if "content" in event])
            actions = {"rewind_before_invocation_id": before, "state_delta": {}}
            events.append({"author": "user", "invocation_id": f"r{moment}", "actions": actions})
        state = state | {"last": moment}
        for author, delta in (("user", {}), ("desk", {"last": moment})):
            about = {"id": f"{name}-{author}", "invocation_id": name, "timestamp": moment}
            content = {
                "role": author,
                "parts": [{"text": rng.choice(["Hi", "Thanks", f"{author} {moment}"])}],
            }
            events.append({**about, "author": author, "content": content, "actions": {"state_delta": delta}})
        yield {"id": "s", "app_name": "desk", "user_id": "ada", "state": state, "events": list(events)}


def test_a_session_that_was_stored_several_times_is_the_last_one(thorough):
    rng = random.Random(None if thorough else 3)
    for _ in range(200 if thorough else 20):
        stored = list(stored_later(rng))
        documents = [*rng.sample(stored, rng.randrange(len(stored))), stored[-1]]
        rng.shuffle(documents)
        alone, several = (conversations_in(map(read_session, some)) for some in (stored[-1:], documents))
        assert several == alone
