import asyncio

import pytest

pytest.importorskip("google.adk")
from adk_scripted import Chat, ScriptedLlm, call, chat, say
from google.adk.agents import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool

from evaltui.agents.adapters.adk.adapter import AdkAdapter

pytestmark = pytest.mark.adk


def ping() -> str:
    """Answers."""
    return "pong"


class Fussy(BaseToolset):
    """As an MCP connection: may be closed once only, by the task that opened it."""

    def __init__(self, tools=(ping,), **fields):
        super().__init__(**fields)
        self.tools = [tool if isinstance(tool, AgentTool) else FunctionTool(func=tool) for tool in tools]
        self.opened_by = None
        self.asked = 0
        self.closed = 0

    async def get_tools(self, readonly_context=None):
        self.asked += 1
        self.opened_by = self.opened_by or asyncio.current_task()
        return self.tools

    async def close(self):
        self.closed += 1
        assert self.closed == 1, "closed twice"
        assert asyncio.current_task() is self.opened_by, "closed by another task"


class Unreachable(Fussy):
    async def get_tools(self, readonly_context=None):
        raise ConnectionError("server is down")


def agent(answers, name="root", **fields):
    return LlmAgent(name=name, description=name, model=ScriptedLlm(answers=answers), **fields)


async def test_parallel_cases_share_toolsets_that_are_opened_and_closed_once(capsys):
    inner, outer = Fussy(), Fussy(tool_name_prefix="my")
    asker = agent({"anything": call(("ping", {})), "ping()": say("inside")}, name="asker", tools=[inner])
    root = agent(
        {
            "go": call(("asker", {"request": "x"}), ("my_ping", {})),
            "my_ping()": say("done"),
            "bad": ConnectionResetError("Reauthentication is needed"),
        },
        tools=[outer, AgentTool(asker)],
    )
    adapter = AdkAdapter(root)
    info = await adapter.open()
    assert [tool.name for tool in info.tools] == ["my_ping", "asker"]

    async def case(message):
        talk = Chat(adapter)
        try:
            await talk.send(message)
        except ConnectionResetError as error:
            return str(error)
        finally:
            await talk.session.close()
        return talk.texts()[-1]

    ends = await asyncio.gather(*(asyncio.create_task(case("bad" if n == 1 else "go")) for n in range(6)))
    assert ends == ["done", "Reauthentication is needed", "done", "done", "done", "done"]
    assert (inner.closed, outer.closed) == (0, 0)
    assert inner.opened_by is outer.opened_by is asyncio.current_task()
    await adapter.close()
    await adapter.close()
    assert (inner.closed, outer.closed) == (1, 1)
    assert capsys.readouterr().err == ""


async def test_toolsets_are_found_everywhere_in_the_tree_and_shared_ones_once():
    shared, deep, hidden, around = Fussy(), Fussy(), Fussy(), Fussy(tools=[])
    helper = agent({}, name="helper", tools=[hidden, shared, around])
    around.tools.append(AgentTool(helper))
    deepest = agent({}, name="deepest", tools=[deep, around])
    root = agent({}, tools=[shared], sub_agents=[agent({}, name="middle", sub_agents=[deepest])])
    adapter = AdkAdapter(root)
    info = await adapter.open()
    # Those of an agent in a tool are called inside it.
    assert [tool.name for tool in info.tools] == ["ping", "helper"]
    assert [toolset.asked for toolset in (shared, deep, hidden, around)] == [1, 1, 1, 1]
    await adapter.close()
    assert [toolset.closed for toolset in (shared, deep, hidden, around)] == [1, 1, 1, 1]


async def test_a_toolset_that_cannot_be_opened_is_a_note_and_the_agent_still_runs():
    broken = Unreachable()
    adapter = AdkAdapter(agent({"anything": say("without tools")}, tools=[broken, ping]))
    info = await adapter.open()
    assert info.notes == ("Unreachable of agent root could not be opened: ConnectionError: server is down",)
    assert [tool.name for tool in info.tools] == ["ping"]
    assert (await chat(adapter, "hi")).texts() == ["without tools"]


async def test_an_error_while_closing_is_told_and_the_others_are_closed(capsys):
    class Stuck(Fussy):
        async def close(self):
            raise OSError("still in use")

    fussy = Fussy()
    adapter = AdkAdapter(agent({}, tools=[fussy, Stuck()]))
    await adapter.open()
    await adapter.close()
    assert fussy.closed == 1
    assert "Stuck could not be closed: OSError: still in use" in capsys.readouterr().err
