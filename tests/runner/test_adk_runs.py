"""google-adk agents from files on disk to verdicts, in real child processes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from evaltui import EvalCase, EvalConfig, EvalSet, RunResult, Status, evaluate
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


def talks(eval_id: str, says: str, answer: str) -> EvalCase:
    return EvalCase.model_validate(
        {
            "eval_id": eval_id,
            "conversation": [
                {
                    "user_content": {"role": "user", "parts": [{"text": says}]},
                    "final_response": {"role": "model", "parts": [{"text": answer}]},
                }
            ],
        }
    )


HELLO = EvalSet(eval_set_id="hello", eval_cases=[talks("one", "hello", "echo hello")])


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
    sets = EvalSet(eval_set_id="s", eval_cases=[talks("one", "hello", "from-the-env-file")])
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


def one_bad_case_of_six() -> EvalSet:
    cases = [talks(f"case_{number}", f"hello {number}", f"echo hello {number}") for number in range(6)]
    cases[1] = talks("case_1", "raise", "echo raise")
    return EvalSet(eval_set_id="six", eval_cases=cases)


async def test_one_bad_case_among_many_good_ones_and_toolsets_closed_once(tmp_path):
    agent = package_with_relative_import(tmp_path)
    log = tmp_path / "log"
    write(agent / "agent.py", TOOLSET.format(log=str(log)))
    verdicts = set()
    events: list[str] = []

    def watch(update: Update) -> None:
        if isinstance(update, Happened) and update.event.case == "case_1":
            events.append(update.event.kind)

    for _ in range(5):
        result = await evaluate(agent, one_bad_case_of_six(), parallel=3, on_update=watch)
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


def statuses(result: RunResult) -> list[Status]:
    return [case.status for case in result.cases]


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
    assert statuses(await evaluate(agent, HELLO, agent_name="helper")) == [Status.PASSED]
    wrong = await evaluate(agent, HELLO, agent_name="helpr")
    assert wrong.cases[0].error is not None
    assert "helper" in wrong.cases[0].error.message


async def test_adk_types_reach_a_custom_metric_that_uses_them(tmp_path):
    agent = package_with_relative_import(tmp_path)
    write(
        agent / "metrics.py",
        """
        from google.adk.evaluation.eval_case import Invocation
        from google.adk.evaluation.eval_metrics import EvalMetric, EvalStatus
        from google.adk.evaluation.evaluator import EvaluationResult, PerInvocationResult

        def strict(eval_metric, actual_invocations, expected_invocations, conversation_scenario):
            assert isinstance(eval_metric, EvalMetric)
            assert all(isinstance(one, Invocation) for one in actual_invocations + expected_invocations)
            turns = [PerInvocationResult(actual_invocation=one, score=1.0, eval_status=EvalStatus.PASSED)
                     for one in actual_invocations]
            return EvaluationResult(overall_score=1.0, overall_eval_status=EvalStatus.PASSED,
                                    per_invocation_results=turns)
        """,
    )
    config = EvalConfig.model_validate(
        {
            "criteria": {"strict": {"threshold": 0.8}},
            "custom_metrics": {"strict": {"code_config": {"name": "bot.metrics.strict"}}},
        }
    )
    result = await evaluate(agent, HELLO, config)
    metric = result.cases[0].metrics[0]
    assert (metric.name, metric.status, metric.reason) == ("strict", Status.PASSED, metric.reason)
