"""Agents that are objects: evaluated in the process that made them, as they are in a process of their own."""

import asyncio
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from evaltui import Agent, Rule, ScriptedModel, evaluate, evaluate_sync, events, generate_responses
from evaltui.runs.run_file import RunFile

TEXT = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.9}}
SOURCE = """
from evaltui import events

def root_agent(message, session):
    session.state["asked"] = session.state.get("asked", 0) + 1
    if message == "crash":
        raise RuntimeError("out of stock")
    if message == "leave":
        raise SystemExit(3)
    yield events.tool_call("find", {"what": message})
    yield events.tool_result("find", {"hits": 3})
    yield "found " + message
"""


def turn(message, answer=None):
    return {
        "user_content": {"parts": [{"text": message}]},
        "final_response": {"parts": [{"text": answer or f"found {message}"}]},
        "intermediate_data": {"tool_uses": [{"name": "find", "args": {"what": message}}]},
    }


def case(eval_id, *turns, **more):
    return {"eval_id": eval_id, "conversation": list(turns)} | more


CASES = [
    case("good", turn("hats"), turn("cats"), final_session_state={"asked": 2}),
    case("bad", turn("hats", "nothing at all")),
    case("crash", turn("hats"), turn("crash")),
    case("leave", turn("leave")),
    case("empty"),
]
SET = {"eval_set_id": "basics", "eval_cases": CASES}
GOOD = {"eval_set_id": "basics", "eval_cases": [case("good", turn("hats"))]}


def agent_of(source):
    made = {}
    exec(source, made)
    return made["root_agent"]


async def found(message, session):
    yield events.tool_call("find", {"what": message})
    yield events.tool_result("find", {"hits": 3})
    yield f"found {message}"


class Shop:
    def __call__(self, message, session):
        return found(message, session)


def find(what: str) -> dict:
    """Look something up."""
    return {"hits": 3}


RULES = [Rule("hats", call=("find", {"what": "hats"})), Rule(after_tool="find", reply="found hats")]


def native(model=None):
    return Agent(name="shop", model=model or ScriptedModel(RULES), instruction="", tools=[find])


def without_times(result):
    """All that a run says of its cases but how long they took, and in which file an agent stands."""

    def timeless(error):
        return error and replace(error, traceback="", where="")

    return [
        (
            one.id.eval_id,
            one.status,
            [
                replace(metric, error=timeless(metric.error))
                for metric in one.metrics
                if metric.name != "invocation_duration_v1"
            ],
            timeless(one.error),
            one.turns,
            one.state,
            [repeat.final_state for repeat in one.repeats],
        )
        for one in result.cases
    ]


def surroundings():
    """What of this process an evaluation could leave changed."""
    signals = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    return [*sys.path], dict(os.environ), Path.cwd(), signals, [*sys.path_hooks]


async def test_an_object_is_judged_as_an_agent_in_a_process_of_its_own(write_agent):
    apart = await evaluate(write_agent(SOURCE), SET, TEXT, runs=2)
    before, tasks = surroundings(), asyncio.all_tasks()
    here = await evaluate(agent_of(SOURCE), SET, TEXT, runs=2)
    assert (surroundings(), asyncio.all_tasks()) == (before, tasks)
    assert without_times(here) == without_times(apart)
    assert [one.status for one in here.cases] == ["PASSED", "FAILED", "ERROR", "ERROR", "NOT_EVALUATED"]
    assert (here.in_process, apart.in_process) == (True, False)
    assert repr(here).startswith("<RunResult FAILED, run in this process: 1 of 5 passed | bad FAILED;")
    assert "in this process" not in repr(apart)


@pytest.mark.parametrize("agent", [found, Shop(), native()], ids=["function", "callable", "native"])
def test_every_kind_of_object_without_a_loop(agent):
    threads = threading.active_count()
    for _ in range(2):
        result = evaluate_sync(agent, GOOD, TEXT)
        assert result.passed, result
    assert threading.active_count() <= threads + 1


async def test_the_twin_without_a_loop_says_what_to_do_where_one_runs():
    with pytest.raises(RuntimeError, match="await evaluate"):
        evaluate_sync(found, GOOD, TEXT)


async def test_objects_run_side_by_side_in_the_loop_that_asks():
    loops = set()
    under_way = most = 0

    async def agent(message, session):
        nonlocal under_way, most
        loops.add(asyncio.get_running_loop())
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        yield f"found {message}"

    cases = {"eval_set_id": "many", "eval_cases": [case(f"{n}", turn("hats")) for n in range(8)]}
    await asyncio.gather(*(evaluate(agent, cases, {"criteria": {"response_match_score": 1}}) for _ in "ab"))
    assert loops == {asyncio.get_running_loop()}
    assert 4 < most <= 8


async def test_what_takes_too_long_is_cancelled_and_says_where_it_was():
    async def agent(message, session):
        if message == "hats":
            await asyncio.Event().wait()
        yield f"found {message}"

    tasks = asyncio.all_tasks()
    cases = {"eval_set_id": "s", "eval_cases": [case("late", turn("hats")), case("good", turn("cats"))]}
    result = await evaluate(agent, cases, {"criteria": {"response_match_score": 1}}, timeout=0.2)
    assert asyncio.all_tasks() == tasks
    late = result.case("late").error
    assert (late.type, late.message) == ("TimeoutError", "no response within 0.2 s")
    assert late.where.startswith("test_agent_objects.py:")
    assert result.case("good").passed


async def test_what_ignores_that_it_is_cancelled_is_named_and_heard_no_more():
    let_go = asyncio.Event()

    async def agent(message, session):
        while not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await let_go.wait()
        yield "found hats"

    told = []
    result = await evaluate(agent, GOOD, TEXT, timeout=0.1, on_update=told.append)
    assert "goes on in this process" in result.case("good").error.message
    heard = len(told)
    let_go.set()
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0)
    assert len(told) == heard


async def test_a_cancelled_evaluation_leaves_nothing_but_its_log(tmp_path):
    begun = asyncio.Event()

    async def agent(message, session):
        begun.set()
        await asyncio.Event().wait()
        yield "never"

    tasks = asyncio.all_tasks()
    evaluating = asyncio.create_task(evaluate(agent, GOOD, TEXT, home=tmp_path, results_dir=tmp_path / "out"))
    await begun.wait()
    evaluating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await evaluating
    assert asyncio.all_tasks() == tasks
    [log] = (tmp_path / "out").rglob("*.sqlite")
    assert RunFile(log).ending is None


def test_recordings_are_made_and_replayed(tmp_path):
    asked = []

    class Model:
        name = "counted"

        async def generate(self, request, *given):
            asked.append(request)
            return await ScriptedModel(RULES).generate(request, *given)

    path = tmp_path / "basics.evalset.json"
    path.write_text(json.dumps(GOOD))
    agent = native(Model())
    assert evaluate_sync(agent, path, TEXT, home=tmp_path, record="record").passed
    assert len(asked) == 2
    assert evaluate_sync(agent, path, TEXT, home=tmp_path, record="replay").passed
    assert len(asked) == 2


async def test_a_function_that_plays_the_user_changes_nothing_here(tmp_path, monkeypatch):
    (tmp_path / "played_users.py").write_text(
        "said = []\n\ndef play(prompt):\n    said.append(prompt)\n"
        "    return 'cats' if len(said) == 1 else '</finished>'\n"
    )
    (tmp_path / ".env").write_text("OF_THE_ENV_FILE=1\n")
    monkeypatch.syspath_prepend(tmp_path)
    scenario = {"starting_prompt": "hats", "conversation_plan": "Ask for cats, too."}
    played = {"eval_set_id": "played", "eval_cases": [{"eval_id": "two", "conversation_scenario": scenario}]}
    config = {
        "criteria": {"response_match_score": 0.5},
        "user_simulator_config": {"model": "played_users:play"},
    }
    before = surroundings()
    [case] = await generate_responses(found, played, config, repeat_num=1, home=tmp_path)
    assert surroundings() == before
    assert case.errors == [None]
    assert [one.user_content.parts[0].text for one in case.responses[0]] == ["hats", "cats"]
    config["user_simulator_config"]["model"] = "played_users:nobody"
    [case] = await generate_responses(found, played, config, repeat_num=1, home=tmp_path)
    assert "played_users:nobody" in case.errors[0].message


@pytest.mark.parametrize(
    ("agent", "given", "says"),
    [
        (found, {"workers": 2}, "workers"),
        (found, {"python": "python3"}, "python: the agent runs in this process"),
        (found, {"home": "nowhere"}, "nowhere is not a folder"),
        (found, {"agent_name": "sub"}, "sub"),
        (42, {}, "int"),
        (None, {}, "NoneType"),
        (json, {}, "module"),
        ("no_such_module", {}, "no_such_module"),
        (".", {"home": "."}, "home"),
    ],
)
async def test_what_cannot_be_is_refused_before_anything_runs(agent, given, says):
    tasks = asyncio.all_tasks()
    with pytest.raises((TypeError, ValueError), match=says):
        await evaluate(agent, GOOD, TEXT, **given)
    assert asyncio.all_tasks() == tasks


def test_lists_of_runs_say_that_it_was_in_process(tmp_path, capsys):
    from evaltui.runs.listing import read_row
    from evaltui.tui.runs.page import write_run
    from evaltui.tui.widgets.writer import Page
    from tests.commands.command_line import call

    out = tmp_path / "out"
    log = evaluate_sync(found, GOOD, TEXT, home=tmp_path, results_dir=out).log
    assert log.is_file()
    assert call("runs", tmp_path, "--results-dir", out) == 0
    assert capsys.readouterr().out.splitlines()[1] == "    1 passed · in process · basics:good"
    for kind in ("console", "json", "html", "markdown"):
        assert call("report", log, "--report", f"{kind}={tmp_path / kind}") == 0
        assert "run in the process that evaluated it" in (tmp_path / kind).read_text(), kind
    page = Page(80)
    write_run(page, read_row(log), None)
    assert any("run in the process that evaluated it" in text for line in page.lines for text, _ in line)
    (tmp_path / "agent.py").write_text("root_agent = print\n")
    assert call("run", tmp_path, "--resume", log) == 2
    assert "the agent was an object" in capsys.readouterr().err


@pytest.mark.adk
async def test_an_agent_of_google_adk_is_its_owners_again():
    pytest.importorskip("google.adk")
    from google.adk.agents import LlmAgent
    from google.adk.tools.base_toolset import BaseToolset
    from google.adk.tools.function_tool import FunctionTool

    from tests.agents.adapters.adk_scripted import ScriptedLlm, say
    from tests.agents.adapters.adk_scripted import call as calls

    class Tools(BaseToolset):
        closed = 0

        async def get_tools(self, readonly_context=None):
            return [FunctionTool(find)]

        async def close(self):
            self.closed += 1

    answers = {"hats": calls(("find", {"what": "hats"})), "find()": say("found hats")}
    tools = Tools()
    agent = LlmAgent(name="shop", model=ScriptedLlm(answers=answers), tools=[tools])
    for times in (1, 2):
        result = await evaluate(agent, GOOD, TEXT)
        assert result.passed, result
        assert tools.closed == times
        assert "close" not in vars(tools)
    sub = LlmAgent(name="desk", model="none", sub_agents=[agent.model_copy(update={"parent_agent": None})])
    assert (await evaluate(sub, GOOD, TEXT, agent_name="shop")).passed
