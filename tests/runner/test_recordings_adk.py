"""Recordings of google-adk agents with google-adk's own Gemini class, in real child processes."""

from __future__ import annotations

import textwrap

import pytest
from gemini_server import calls, says
from recorded_runs import NO_NETWORK, recorded_file, run, turn, write_set

from evaltui import EvalConfig

pytest.importorskip("google.adk")
pytestmark = pytest.mark.adk

AGENT = textwrap.dedent(NO_NETWORK) + textwrap.dedent(
    """
    from datetime import datetime
    from pathlib import Path
    from google.adk.agents import LlmAgent
    from google.adk.apps import App
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.agent_tool import AgentTool
    from google.adk.tools.tool_context import ToolContext

    def note(line):
        with Path(__file__).with_name("log.txt").open("a") as file:
            file.write(line + "\\n")

    def area(width: int, height: int, tool_context: ToolContext) -> dict:
        '''The area of a rectangle.'''
        note("tool")
        tool_context.state["last"] = width * height
        return {"area": width * height}

    class Watcher(BasePlugin):
        async def before_tool_callback(self, *, tool, tool_args, tool_context):
            note(f"before {tool.name}")

        async def after_tool_callback(self, *, tool, tool_args, tool_context, result):
            note(f"after {tool.name}")

        async def before_model_callback(self, *, callback_context, llm_request):
            note("model")

    def instruction(context):
        return f"Measure. It is {datetime.now().isoformat()}. Last: {context.state.get('last')}"

    geometer = LlmAgent(
        name="geometer", description="Measures.", model="gemini-test", instruction=instruction, tools=[area]
    )
    desk = LlmAgent(name="desk", model="gemini-test", instruction="Ask.", tools=[AgentTool(geometer)])
    app = App(name="my_agent", root_agent=desk, plugins=[Watcher("watcher")])
    """
)


def respond(request):
    if "Measure" in request.instruction:
        if request.results:
            return says(f"{request.results[-1]['response']['area']}")
        return calls("area", {"width": 2, "height": 3})
    if request.results:
        return says("It is 6.")
    return calls("geometer", {"request": "2 by 3"})


def log(agent):
    path = agent / "log.txt"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


async def test_nested_agents_are_replayed_with_the_agent_s_own_callbacks_and_without_a_network(
    write_agent, gemini, monkeypatch
):
    gemini.respond = respond
    agent = write_agent(AGENT)
    case = [turn(said, "It is 6.", ("geometer", {"request": "2 by 3"})) for said in ("2 by 3?", "Again?")]
    path = write_set(agent, {"one": case, "two": case})

    first = await run(path, "auto", parallel=2)
    assert first.statuses == ["PASSED", "PASSED"], first.cases[0].error
    assert first.calls.live == 16
    happened = sorted(log(agent))
    assert happened.count("tool") == 4
    text = recorded_file(path).read_text()

    for name in ("GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("NO_NETWORK", "1")
    for _ in range(2):
        played = await run(path, "replay", parallel=2)
        assert played.verdicts() == first.verdicts()
        assert (played.calls.live, played.calls.replayed, played.calls.stubbed_tools) == (0, 16, 4)
        # Everything but the tool itself has run: what it does to the state is in the next instruction.
        assert sorted(log(agent)) == [line for line in happened if line != "tool"]
    assert len(gemini.requests) == 16
    (stubbed, *_) = played.of_kind("tool_result")
    assert stubbed.data["nested"]
    assert stubbed.data["stubbed"] == "recording"
    assert recorded_file(path).read_text() == text


async def test_a_plugin_that_forgives_does_not_hide_that_something_was_not_recorded(write_agent, gemini):
    forgiving = AGENT.replace(
        "class Watcher(BasePlugin):",
        "class Watcher(BasePlugin):\n"
        "    async def on_model_error_callback(self, *, callback_context, llm_request, error):\n"
        "        from google.adk.models.llm_response import LlmResponse\n"
        "        from google.genai import types\n"
        "        return LlmResponse(content=types.ModelContent('It is 6.'))\n",
    )
    gemini.respond = respond
    path = write_set(write_agent(forgiving), {"one": [turn("2 by 3?", "It is 6.")]})
    (case,) = (await run(path, "replay")).cases
    assert case.status == "ERROR"
    assert case.error.type == "NotRecordedError"


ASKING = """
    import time
    from google.adk.agents import LlmAgent
    from google.adk.models.google_llm import Gemini
    from google.adk.models.llm_request import LlmRequest
    from google.genai import types

    async def measure(shape: str) -> str:
        '''The area of a shape.'''
        time.sleep(0.2)
        request = LlmRequest(model="gemini-other", contents=[types.UserContent(shape)])
        async for response in Gemini(model="gemini-other").generate_content_async(request):
            text = response.content.parts[0].text
        return text

    root_agent = LlmAgent(name="desk", model="gemini-test", instruction="Ask.", tools=[measure])
"""
LIMITS = {"tokens": 25, "cost_usd": 25 / 1e6, "seconds": 0.1}


async def test_limits_of_a_tool_that_asks_a_model_are_not_evaluated_where_it_is_stubbed(write_agent, gemini):
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 5}
    gemini.script(
        calls("measure", {"shape": "2 by 3"}, usage=usage),
        says("6", usage=usage),
        says("It is 6.", usage=usage),
    )
    path = write_set(
        write_agent(ASKING), {"one": [turn("2 by 3?", "It is 6.", ("measure", {"shape": "2 by 3"}))]}
    )
    prices = {name: {"input_mtok": 1, "output_mtok": 1} for name in ("gemini-test", "gemini-other")}
    config = EvalConfig.model_validate({"criteria": {}, "evaltui": {"criteria": LIMITS, "prices": prices}})

    (recorded,) = (await run(path, "auto", config=config)).cases
    (replayed,) = (await run(path, "replay", config=config)).cases

    assert {recorded.metric(name).status for name in LIMITS} == {"FAILED"}
    assert {replayed.metric(name).status for name in LIMITS} == {"NOT_EVALUATED"}


THREADS = """
    import asyncio
    import threading
    from concurrent.futures import ThreadPoolExecutor
    from google.adk.agents import BaseAgent
    from google.adk.events.event import Event
    from google.adk.models.google_llm import Gemini
    from google.adk.models.llm_request import LlmRequest
    from google.genai import types

    POOL = ThreadPoolExecutor(1)

    async def ask(question):
        request = LlmRequest(model="gemini-test", contents=[types.UserContent(question)])
        async for response in Gemini(model="gemini-test").generate_content_async(request):
            return response.content.parts[0].text

    class Threads(BaseAgent):
        async def _run_async_impl(self, ctx):
            question, answers = ctx.user_content.parts[0].text, []
            thread = threading.Thread(target=lambda: answers.append(asyncio.run(ask(question))))
            thread.start()
            thread.join()
            answers.append(POOL.submit(lambda: asyncio.run(ask("more"))).result())
            content = types.ModelContent(" ".join(answers))
            yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)

    root_agent = Threads(name="threads")
"""


async def test_models_that_are_called_in_threads_are_counted_and_replayed(write_agent, gemini):
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 5}
    gemini.respond = lambda request: says("so", usage=usage)
    path = write_set(write_agent(THREADS), {"one": [turn("what?", "so so")], "two": [turn("why?", "so so")]})
    config = EvalConfig.model_validate({"criteria": {}, "evaltui": {"criteria": {"tokens": 15}}})
    for mode, requested in (("auto", 4), ("replay", 4)):
        done = await run(path, mode, config=config)
        assert [case.metric("tokens").score for case in done.cases] == [20, 20]
        assert len(gemini.requests) == requested
    assert (done.calls.live, done.calls.replayed) == (0, 4)


WITHIN = """
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types
    from pydantic import BaseModel, Field

    asked = []

    class Price(BaseModel):
        amount: int = Field(serialization_alias="Amount")
        note: str | None = None

    def price(item: str) -> Price:
        '''The price of an item, another one each time.'''
        asked.append(item)
        return Price(amount=len(asked))

    inner = LlmAgent(name="inner", model="gemini-test", instruction="Inner.", tools=[price])

    async def ask(item: str) -> str:
        '''Asks another agent.'''
        runner = InMemoryRunner(inner)
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
        message = types.UserContent(item)
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass
        return event.content.parts[0].text

    root_agent = LlmAgent(name="desk", model="gemini-test", instruction="Ask.", tools=[ask, price])
"""


async def test_a_tool_that_runs_an_agent_and_results_of_any_class_are_replayed(write_agent, gemini):
    def respond(request):
        if not request.results:
            return calls("price" if "Inner" in request.instruction else "ask", {"item": "tea"})
        if request.results[-1]["name"] == "ask":
            return calls("price", {"item": "tea"})
        return says(f"It is {request.results[-1]['response']}.")

    gemini.respond = respond
    path = write_set(write_agent(WITHIN), {"one": [turn("tea?", "It is {'result': {'amount': 2}}.")]})
    config = EvalConfig(criteria={"response_match_score": 1.0})
    recorded = await run(path, "record", config)
    assert recorded.statuses == ["PASSED"], recorded.cases[0].turns
    replayed = await run(path, "replay", config)
    assert replayed.verdicts() == recorded.verdicts()
    assert (replayed.calls.live, replayed.calls.stubbed_tools) == (0, 2)
