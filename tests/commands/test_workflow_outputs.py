"""A workflow of google-adk that returns a value and says nothing, from chat to verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import call

pytest.importorskip("google.adk")
pytestmark = pytest.mark.adk

AGENT = """
    from google.adk import Workflow

    def start(node_input):
        return {"greeting": "HELLO", "to": "you"}

    root_agent = Workflow(name="flow", edges=[("START", start)])
"""
OUTPUT = '{"greeting":"HELLO","to":"you"}'
HINT = 'Set "outputs": "score" in the evaltui block of the config to score it'


def write_config(folder: Path, outputs: str) -> None:
    config = {"criteria": {"response_match_score": 0.8}, "evaltui": {"outputs": outputs}}
    (folder / "test_config.json").write_text(json.dumps(config))


def expected_in(path: Path) -> str:
    (case,) = json.loads(path.read_text())["eval_cases"]
    text: str = case["conversation"][0]["final_response"]["parts"][0]["text"]
    return text


def test_an_output_is_shown_and_scored_on_request(write_agent, capsys, tmp_path):
    folder = write_agent(AGENT)
    (tmp_path / "turns").write_text("go")
    write_config(folder, "ignore")
    assert call("record", folder, "new.evalset.json", "--case", "c", "--turns", tmp_path / "turns") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:2] == ["> go", f"  output  start  {OUTPUT}"]
    assert f"case c fails: turn 1 has no text, but an output. {HINT}" in err
    assert expected_in(folder / "new.evalset.json") == OUTPUT

    kinds = ("json", "junit", "csv", "markdown", "html")
    reports = [f"--report={kind}={tmp_path / kind}" for kind in kinds]
    assert call("run", folder, *reports) == 1
    out = capsys.readouterr().out
    assert "no response" not in out
    # The line of the case, the title of its details, the reason of the metric, the row of the response.
    assert out.count("no text, but an output") == 4
    for kind in kinds:
        assert "no text, but an output" in (tmp_path / kind).read_text(), kind
    turn = json.loads((tmp_path / "json").read_text())["cases"][0]["turns"][0]
    assert (turn["response"]["actual"], turn["unscored"]) == ("", [{"author": "output", "text": OUTPUT}])
    assert '<span class="bold">start</span><span class="muted"> → </span>' in (tmp_path / "html").read_text()

    write_config(folder, "score")
    assert call("run", folder, "--report", f"json={tmp_path / 'json'}") == 0
    turn = json.loads((tmp_path / "json").read_text())["cases"][0]["turns"][0]
    assert (turn["response"]["actual"], turn["unscored"]) == (OUTPUT, [])
