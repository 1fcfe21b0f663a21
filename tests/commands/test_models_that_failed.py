"""Models that fail with nothing but an error code: no such turn passes or becomes a case."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from command_line import call
from environments import environment_python
from eval_data import make_case, make_turn, write_eval_set, write_test_config

NATIVE = """
    from evaltui import Agent
    from evaltui.agents.native.models import ModelResponse
    from google.genai import types

    class Model:
        name = "failing"

        async def generate(self, request, on_text):
            words = (request.contents[-1].parts[0].text or "").split()
            if "thoughts" in words:
                parts = [types.Part(text="Hm.", thought=True)]
                return ModelResponse(parts, finish_reason="MAX_TOKENS")
            if "fail" in words:
                return ModelResponse(finish_reason="MALFORMED_FUNCTION_CALL", finish_message="print(1)")
            return ModelResponse([types.Part(text="ok")], finish_reason="STOP")

    root_agent = Agent(name="desk", model=Model(), instruction="")
"""
ADK = """
    from google.adk.agents import BaseAgent, LlmAgent, ParallelAgent, SequentialAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    class Model(BaseLlm):
        model: str = "failing"
        fails: bool = True

        async def generate_content_async(self, llm_request, stream=False):
            if not self.fails:
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="ok")]))
            elif "thoughts" in llm_request.contents[0].parts[0].text:
                thought = types.Part(text="Hm.", thought=True)
                content = types.Content(role="model", parts=[thought])
                yield LlmResponse(content=content, finish_reason="MAX_TOKENS")
            else:
                yield LlmResponse(error_code="MALFORMED_FUNCTION_CALL", error_message="print(1)")

    def agent(name, fails):
        return LlmAgent(name=name, model=Model(fails=fails))

    ROOTS = {
        "alone": lambda: agent("a", True),
        "recovers": lambda: SequentialAgent(name="s", sub_agents=[agent("a", True), agent("b", False)]),
        "ends": lambda: SequentialAgent(name="s", sub_agents=[agent("a", False), agent("b", True)]),
        "beside": lambda: ParallelAgent(name="p", sub_agents=[agent("a", True), agent("b", False)]),
    }
    root_agent = ROOTS["KIND"]()
"""

GRAPH = """
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langgraph.graph import START, MessagesState, StateGraph

    class Model(BaseChatModel):
        @property
        def _llm_type(self):
            return "failing"

        def _generate(self, messages, stop=None, run_manager=None, **settings):
            said = messages[-1].text
            if said == "raise":
                raise RuntimeError("no such model")
            refusal = {"refusal": "I will not."} if said == "refuse" else {}
            message = AIMessage("ok" if said == "hi" else "", additional_kwargs=refusal)
            info = {"finish_reason": "content_filter" if said == "filter" else "stop"}
            return ChatResult(generations=[ChatGeneration(message=message, generation_info=info)])

    def answer(state):
        try:
            return {"messages": [Model().invoke(state["messages"])]}
        except RuntimeError:
            return {}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    root_agent = graph.compile()
"""


def write_set(folder, *messages: str) -> None:
    turns = [make_turn(message) for message in messages]
    write_eval_set(folder, "desk", make_case("a", *[{**turn, "intermediate_data": {}} for turn in turns]))
    write_test_config(folder, tool_trajectory_avg_score=1.0)


def scored(folder, capsys, *words: str) -> tuple[int, dict[str, Any]]:
    code = call("run", folder, "--report", "json", *words)
    out, err = capsys.readouterr()
    assert out, err
    (case,) = json.loads(out)["cases"]
    return code, case


@pytest.fixture
def native(write_agent):
    folder = write_agent(NATIVE)
    write_set(folder, "hi", "fail", "hi")
    return folder


def test_a_case_with_a_failed_model_is_an_error(native, capsys):
    code, case = scored(native, capsys)
    assert (code, case["status"]) == (3, "ERROR")
    error = case["error"]
    assert (error["type"], error["message"]) == ("MALFORMED_FUNCTION_CALL", "print(1)")
    code, case = scored(native, capsys, "--adk-verdicts")
    assert (code, case["status"]) == (0, "PASSED")


def test_thoughts_are_no_response(native, capsys):
    write_set(native, "thoughts")
    code, case = scored(native, capsys)
    assert (code, case["error"]["type"], case["error"]["message"]) == (
        3,
        "MAX_TOKENS",
        "no response of the model",
    )


def test_no_case_is_recorded_of_it(native, tmp_path, capsys):
    turns = tmp_path / "turns.txt"
    turns.write_text("hi\n\nfail\n")
    before = (native / "desk.evalset.json").read_bytes()
    assert call("record", native, "desk", "--case", "b", "--turns", turns) == 3
    assert "turn 2 failed: MALFORMED_FUNCTION_CALL: print(1)" in capsys.readouterr().err
    assert (native / "desk.evalset.json").read_bytes() == before


def test_a_chat_with_it_had_errors(native, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"fail\nhi\n")))
    assert call("chat", native) == 3
    out, err = capsys.readouterr()
    assert "turn 1 failed: MALFORMED_FUNCTION_CALL: print(1)" in err
    assert "ok" in out


@pytest.mark.adk
@pytest.mark.parametrize(
    ("kind", "message", "error"),
    [
        ("alone", "hi", "MALFORMED_FUNCTION_CALL"),
        ("alone", "thoughts", "MAX_TOKENS"),
        ("recovers", "hi", None),
        ("ends", "hi", "MALFORMED_FUNCTION_CALL"),
        ("beside", "hi", "MALFORMED_FUNCTION_CALL"),
    ],
)
def test_agents_of_adk_recover_only_where_they_go_on(kind, message, error, write_agent, capsys):
    pytest.importorskip("google.adk")
    folder = write_agent(ADK.replace("KIND", kind))
    write_set(folder, message)
    code, case = scored(folder, capsys)
    assert (code, (case["error"] or {}).get("type")) == ((3, error) if error else (0, None))
    assert scored(folder, capsys, "--adk-verdicts")[0] == 0


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("hi", None),
        ("filter", ("CONTENT_FILTER", "no response of the model")),
        ("refuse", ("REFUSAL", "I will not.")),
        ("raise", ("RuntimeError", "no such model")),
    ],
)
def test_graphs_whose_model_failed_are_errors(message, error, write_agent, capsys, fresh_hosts):
    folder = write_agent(GRAPH)
    write_set(folder, message)
    python = environment_python("EVALTUI_FRAMEWORKS_PYTHON")
    code, case = scored(folder, capsys, "--python", python)
    found = case["error"] and (case["error"]["type"], case["error"]["message"])
    assert (code, found) == (3 if error else 0, error)
