"""Expected values that Python's reader of JSON takes and JSON has no word for: NaN and Infinity."""

import json

import pytest
from command_line import call
from eval_data import make_case
from fake_runs import run_without_processes

from evaltui.core.model.eval_set import Invocation

USER = {"role": "user", "parts": [{"text": "hi"}]}


def act(case, repeat):
    """Calls `f` without arguments, or as the id of the case says."""
    args = {"null": {"n": None}, "text": {"n": "NaN"}}.get(case.eval_id, {})
    said = {"final_response": {"role": "model", "parts": [{"text": "done"}]}}
    made = {"intermediate_data": {"tool_uses": [{"name": "f", "args": args}]}}
    return [Invocation.model_validate({"user_content": USER, **said, **made})]


@pytest.mark.parametrize(
    ("value", "shown"), [("NaN", "NaN"), ("-Infinity", "-Infinity"), ('{"in": [NaN]}', '{"in": [NaN]}')]
)
def test_a_case_that_expects_them_fails_and_the_others_have_verdicts(
    write_agent, monkeypatch, capsys, value, shown
):
    agent = write_agent("")
    done = {"final_response": {"role": "model", "parts": [{"text": "done"}]}}
    cases = [
        make_case(
            eval_id,
            {
                "user_content": USER,
                **done,
                "intermediate_data": {"tool_uses": [{"name": "f", "args": args}]},
            },
        )
        for eval_id, args in (
            ("absent", {"n": "?"}),
            ("null", {"n": "?"}),
            ("text", {"n": "?"}),
            ("fine", {}),
        )
    ]
    cases.append({**cases[-1], "eval_id": "state", "final_session_state": {"n": "?"}})
    path = agent / "s.evalset.json"
    text = json.dumps({"eval_set_id": "s", "eval_cases": cases}, indent=1)
    path.write_text(text.replace('"?"', value))
    run_without_processes(monkeypatch, act)
    assert call("run", agent) == 1
    out = capsys.readouterr().out
    assert f"f: n is null, expected {shown}" in out
    assert f'f: n is "NaN" (string), expected {shown}' in out or value.startswith("{")
    assert "✗ absent" in out
    assert "✓ fine" in out
    assert call("report", agent, "last", "--report", "json") == 0
    statuses = {case["eval_id"]: case["status"] for case in json.loads(capsys.readouterr().out)["cases"]}
    state = statuses.pop("state")
    assert statuses == {"absent": "FAILED", "null": "FAILED", "text": "FAILED", "fine": "PASSED"}
    assert state != "PASSED"
    assert call("lint", agent) == 0
    out = capsys.readouterr().out
    assert f"{shown.strip('{}[]').split('[')[-1]} is not JSON, and no value of an agent equals it" in out
    assert out.count("is not JSON") == 4
