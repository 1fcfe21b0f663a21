"""Variants of agents of google-adk, run against servers that answer by model, temperature and instruction."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from gemini_server import says
from variant_agents import write_cases

from tests.commands.command_line import call

pytest.importorskip("google.adk")
pytestmark = [pytest.mark.adk, pytest.mark.thorough]

GEMINI = """
    from google.adk.agents import LlmAgent

    writer = LlmAgent(name="writer", instruction="Write.")
    root_agent = LlmAgent(name="root", model="gemini-a", instruction="Greet.", sub_agents=[writer])
"""
LITELLM = """
    import os
    from google.adk.agents import LlmAgent
    from google.adk.models.lite_llm import LiteLlm

    model = LiteLlm(model="openai/small", api_base=os.environ["LOCAL_SERVER"], api_key="k")
    root_agent = LlmAgent(name="desk", model=model, instruction="Greet.")
"""


def scores(folder, capsys, *variants):
    """What each variant changed, and the score of its only case."""
    words = [word for variant in ("base", *variants) for word in ("--variant", variant)]
    assert call("run", folder, *words, "--report", "json") in (0, 1)
    document = json.loads(capsys.readouterr().out)
    [row] = document["cases"]
    applied = [[one["what"] for one in variant["applied"]] for variant in document["variants"]]
    return applied, [one["score"] for one in row["results"]]


def test_models_fields_and_instructions_of_gemini(write_agent, monkeypatch, tmp_path, capsys, gemini):
    folder = write_agent(GEMINI)
    write_cases(folder, "gemini-a None Greet.")
    (tmp_path / "short.md").write_text("Shorter.\n")
    monkeypatch.chdir(tmp_path)

    def respond(request):
        temperature = (request.body.get("generationConfig") or {}).get("temperature")
        return says(f"{request.model} {temperature} {request.instruction.split()[0]}")

    gemini.respond = respond
    applied, found = scores(
        folder, capsys, "b:model=gemini-b", "w:model.writer=gemini-b", "hot:config.temperature=0.9",
        "short:instruction=short.md",
    )  # fmt: skip
    assert [request.model for request in gemini.requests].count("gemini-b") == 1
    assert any(request.instruction.startswith("Shorter.") for request in gemini.requests)
    assert applied == [
        [],
        ["root.model"],
        ["writer.model"],
        ["root.config.temperature", "writer.config.temperature"],
        ["root.instruction"],
    ]
    assert found[0] == found[2] == 1.0
    assert all(score < 1.0 for score in (found[1], found[3], found[4]))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = {"role": "assistant", "content": f"{asked['model']} {asked.get('temperature')}"}
        answer = {
            "id": "1", "object": "chat.completion", "created": 1, "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": said}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        }  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Nothing to tell."""


def test_models_of_litellm(write_agent, monkeypatch, capsys):
    pytest.importorskip("litellm")
    folder = write_agent(LITELLM)
    write_cases(folder, "small None")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("LOCAL_SERVER", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        applied, found = scores(folder, capsys, "big:model=openai/big", "hot:config.temperature=0.9")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert applied == [[], ["desk.model"], ["desk.config.temperature"]]
    assert found[0] == 1.0
    assert max(found[1:]) < 1.0
