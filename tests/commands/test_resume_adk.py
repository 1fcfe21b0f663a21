"""Going on with a killed run of a google-adk App: its plugin counts what was run."""

import json
import signal
import subprocess
import sys

import pytest
from command_line import call
from waiting import wait_until

from evaltui.runs.store import RunStore
from tests.eval_data import make_case, make_turn, write_eval_set
from tests.stored_runs import count

pytest.importorskip("google.adk")
pytestmark = pytest.mark.adk

AGENT = """
    import asyncio
    from pathlib import Path

    from google.adk.agents import LlmAgent
    from google.adk.apps import App
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.genai import types

    BESIDE = Path(__file__).parent.parent


    class Counting(BasePlugin):
        async def before_model_callback(self, *, callback_context, llm_request):
            with (BESIDE / "calls.txt").open("a") as calls:
                calls.write(llm_request.contents[-1].parts[-1].text + "\\n")


    class Echo(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            said = llm_request.contents[-1].parts[-1].text
            while int(said) >= 8 and not (BESIDE / "go").exists():
                await asyncio.sleep(0.01)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))


    app = App(
        name="my_agent",
        root_agent=LlmAgent(name="echo", model=Echo(model="echo")),
        plugins=[Counting(name="counting")],
    )
"""


def one_case(number):
    return make_case(f"case_{number}", make_turn(str(number), str(number)))


def test_only_what_is_missing_is_run(write_agent, capsys):
    agent = write_agent(AGENT)
    write_eval_set(agent, "basics", *(one_case(number) for number in range(20)))
    command = [sys.executable, "-m", "evaltui", "run", str(agent), "--parallel", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def has_come() -> bool:
        assert process.poll() is None, process.communicate()
        log = RunStore(agent).latest()
        return log is not None and count(log, "cases") >= 8

    wait_until(has_come)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    calls = agent.parent / "calls.txt"
    calls.unlink()
    (agent.parent / "go").touch()
    assert call("run", agent, "--resume", "last", "--report", "json") == 0
    assert sorted(map(int, calls.read_text().split())) == list(range(8, 20))
    report = json.loads(capsys.readouterr().out)
    assert [(case["eval_id"], case["status"]) for case in report["cases"]] == [
        (f"case_{number}", "PASSED") for number in range(20)
    ]
