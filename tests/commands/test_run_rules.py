"""`evaltui run` with a rule whose regex takes for ever: it ends, and names the rule."""

import json

from command_line import call
from eval_data import make_case, make_turn, write_eval_set

from evaltui.core.model.regexes import Patience

AGENT = """
    from evaltui import events

    async def root_agent(message, session):
        yield events.tool_call("find", {"query": "a" * 60 + "b"})
        yield events.tool_result("find", 1)
        yield "Found."
"""


def test_a_rule_that_takes_too_long_is_an_error_that_names_file_and_rule(
    write_agent, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(Patience, "__init__", lambda self, left=0.02: setattr(self, "left", left))
    agent = write_agent(AGENT)
    rule = {"tool": "find", "arg": "query", "match": {"regex": "(a|aa)+$"}}
    config = agent / "test_config.json"
    config.write_text(
        json.dumps({"criteria": {"tool_trajectory_avg_score": 1.0}, "evaltui": {"rules": [rule]}}, indent=1)
    )
    write_eval_set(
        agent,
        "s",
        make_case("one", make_turn("Find it", "Found.", calls=[{"name": "find", "args": {"query": "x"}}])),
    )
    report = tmp_path / "report.json"

    assert call("run", agent, "--report", f"json={report}") == 3

    (case,) = json.loads(report.read_text())["cases"]
    assert case["status"] == "ERROR"
    assert case["metrics"][0]["reason"].startswith(
        f"{config}: evaltui.rules[0].match.regex: (a|aa)+$ takes longer than 2 s on an argument of find"
    )
    assert call("lint", agent) == 0
    assert "rules[0].match.regex: can be very slow" in capsys.readouterr().out
