"""google-adk agents from files on disk to verdicts, in real child processes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from eval_data import make_answers, make_case, make_set, make_turn

from evaltui import Status, evaluate
from evaltui.runner.plan import Happened, Update

pytest.importorskip("google.adk")
pytestmark = pytest.mark.adk

ECHO_MODEL = """
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types


    class Echo(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            said = llm_request.contents[-1].parts[-1].text
            if said == "raise":
                raise RuntimeError("Reauthentication is needed")
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="echo " + said)]))
"""

AGENT = """
    from google.adk.agents import LlmAgent
    from {place}echo import Echo

    {name} = LlmAgent(name="echo", model=Echo(model="echo"))
"""


HELLO = make_set("hello", make_case("one", make_turn("hello", "echo hello")))


def write(path: Path, source: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")


def package_with_relative_import(folder: Path) -> Path:
    write(folder / "bot/__init__.py", "from . import agent\n")
    write(folder / "bot/echo.py", ECHO_MODEL)
    write(folder / "bot/agent.py", AGENT.format(place=".", name="root_agent"))
    return folder / "bot"


def package_with_absolute_import(folder: Path) -> Path:
    write(folder / "bot/__init__.py", "")
    write(folder / "bot/echo.py", ECHO_MODEL)
    write(folder / "bot/agent.py", AGENT.format(place="bot.", name="root_agent"))
    return folder / "bot"


def folder_without_init(folder: Path) -> Path:
    write(folder / "bot/echo.py", ECHO_MODEL)
    write(folder / "bot/agent.py", AGENT.format(place="", name="root_agent"))
    return folder / "bot"


def single_file(folder: Path) -> Path:
    write(folder / "echo.py", ECHO_MODEL)
    write(folder / "bot.py", AGENT.format(place="", name="root_agent"))
    return folder / "bot.py"


def async_factory(folder: Path) -> Path:
    package_with_relative_import(folder)
    source = textwrap.dedent(AGENT.format(place=".", name="made"))
    source += "\n\nasync def get_agent_async():\n    return made, None\n"
    write(folder / "bot/agent.py", source)
    return folder / "bot"


def app(folder: Path) -> Path:
    package_with_relative_import(folder)
    source = textwrap.dedent(AGENT.format(place=".", name="made"))
    source += "\nfrom google.adk.apps import App\n\napp = App(name='bot', root_agent=made)\n"
    write(folder / "bot/agent.py", source)
    return folder / "bot"


def folder_with_a_hyphen(folder: Path) -> Path:
    return package_with_relative_import(folder).rename(folder / "my-bot")


LAYOUTS = [
    package_with_relative_import,
    package_with_absolute_import,
    folder_without_init,
    single_file,
    async_factory,
    app,
    folder_with_a_hyphen,
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
async def test_an_agent_is_found_however_it_is_laid_out(tmp_path, layout):
    result = await evaluate(layout(tmp_path), HELLO)
    assert result.cases[0].error is None
    assert result.status is Status.PASSED


async def test_a_yaml_agent_with_its_environment_file(tmp_path):
    write(tmp_path / ".env", "GREETING=from-the-env-file\n")
    write(
        tmp_path / "bot/tools.py",
        """
        import os

        def greet(callback_context):
            from google.genai import types
            return types.Content(role="model", parts=[types.Part(text=os.environ["GREETING"])])
        """,
    )
    write(
        tmp_path / "bot/root_agent.yaml",
        """
        agent_class: LlmAgent
        name: bot
        model: gemini-2.5-flash
        instruction: Be kind.
        before_agent_callbacks:
          - name: bot.tools.greet
        """,
    )
    sets = make_set("s", make_case("one", make_turn("hello", "from-the-env-file")))
    result = await evaluate(tmp_path / "bot", sets)
    assert result.cases[0].error is None
    assert result.status is Status.PASSED


TOOLSET = """
    import asyncio
    from pathlib import Path

    from google.adk.agents import LlmAgent
    from google.adk.tools.base_toolset import BaseToolset
    from google.adk.tools.function_tool import FunctionTool

    from .echo import Echo

    LOG = Path({log!r})


    def lookup(word: str) -> str:
        "Look a word up."
        return word


    class Careful(BaseToolset):
        opened_in = None
        closed = False

        async def get_tools(self, readonly_context=None):
            if self.opened_in is None:
                self.opened_in = asyncio.current_task()
                LOG.open("a").write("opened\\n")
            return [FunctionTool(lookup)]

        async def close(self):
            if self.closed or asyncio.current_task() is not self.opened_in:
                LOG.open("a").write("closed wrongly\\n")
                raise RuntimeError("closed twice or in another task")
            self.closed = True
            LOG.open("a").write("closed\\n")


    root_agent = LlmAgent(name="careful", model=Echo(model="echo"), tools=[Careful()])
"""


async def test_one_bad_case_among_many_good_ones_and_toolsets_closed_once(tmp_path):
    agent = package_with_relative_import(tmp_path)
    log = tmp_path / "log"
    messages = ("hello", "raise", *["hello"] * 4)
    write(agent / "agent.py", TOOLSET.format(log=str(log)))
    verdicts = set()
    events: list[str] = []

    def watch(update: Update) -> None:
        if isinstance(update, Happened) and update.event.case == "case_1":
            events.append(update.event.kind)

    for _ in range(5):
        result = await evaluate(
            agent, make_answers(*messages, answer="echo hello"), parallel=3, on_update=watch
        )
        verdicts.add(tuple(case.status for case in result.cases))
        error = result.cases[1].error
        assert error is not None
        assert error.message == "Reauthentication is needed"
        assert error.where.startswith("echo.py:")
        assert "has no len" not in error.traceback
    assert verdicts == {(Status.PASSED, Status.ERROR, *[Status.PASSED] * 4)}
    assert events[:2] == ["user", "model_request"]
    lines = log.read_text().splitlines()
    assert "closed wrongly" not in lines
    assert lines.count("opened") == lines.count("closed") > 0


async def test_a_sub_agent_is_run_by_its_name(tmp_path):
    agent = package_with_relative_import(tmp_path)
    write(
        agent / "agent.py",
        """
        from google.adk.agents import LlmAgent
        from .echo import Echo

        helper = LlmAgent(name="helper", model=Echo(model="echo"))
        root_agent = LlmAgent(name="root", model="gemini-2.5-flash", sub_agents=[helper])
        """,
    )
    assert (await evaluate(agent, HELLO, agent_name="helper")).passed
    wrong = await evaluate(agent, HELLO, agent_name="helpr")
    assert wrong.cases[0].error is not None
    assert "helper" in wrong.cases[0].error.message


async def test_an_initial_state_that_adk_drops_is_refused(tmp_path):
    state = {"app_name": "a", "user_id": "u", "state": {"n": 1, "temp:n": 2}}
    case = make_case("one", make_turn("hello", "echo hello"), session_input=state)
    result = await evaluate(package_with_relative_import(tmp_path), make_set("state", case))
    assert "the session state (temp:n) cannot be set: google-adk drops it" in result.cases[0].error.message


COUNTING = """
    import asyncio
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    running = []


    class Counting(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            running.append(self)
            waits_long = "wait" in llm_request.contents[-1].parts[-1].text
            for _ in range(8_000 if waits_long else 20):
                await asyncio.sleep(0.005)
                if len(running) > 1:
                    break
            said = "alone" if len(running) == 1 else "beside others"
            await asyncio.sleep(0.01)
            running.remove(self)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))


    root_agent = LlmAgent(name="counting", model=Counting(model="counting"))
"""


@pytest.mark.parametrize(
    ("limit", "message", "said"), [({"seconds": 60}, "hi", {"alone"}), ({}, "wait", {"beside others"})]
)
async def test_a_case_whose_time_is_limited_shares_no_event_loop(tmp_path, limit, message, said):
    write(tmp_path / "bot.py", COUNTING)
    config = {"criteria": {"response_match_score": 0.0}, "evaltui": {"criteria": limit}}
    run = await evaluate(tmp_path / "bot.py", make_answers(message, message), config, parallel=2, workers=1)
    assert {case.repeats[0].turns[0].response.actual for case in run.cases} == said
