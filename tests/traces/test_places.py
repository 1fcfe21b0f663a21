"""What `evaltui inspect`, the report of `evaltui score` and the trace of the workbench say of one trace."""

import json
import re

import pytest

pytest.importorskip("google.adk")

from evaltui.core.trace.spans import SpanTree
from evaltui.runs.run_file import RunFile
from tests.commands.command_line import call
from tests.eval_data import write_eval_set
from tests.traces.test_incomplete_traces import as_otlp
from tests.traces.test_losses import CALLS, read
from tests.traces.whole_traces import WHOLE

pytestmark = pytest.mark.adk


def scoped(one):
    """A span as OTLP, with its scope: it tells what wrote the span."""
    spans = {"scope": {"name": one.scope}, "spans": [as_otlp(one)]}
    return {"resourceSpans": [{"scopeSpans": [spans]}]}


def inspected(turn):
    calls = [(one["name"], one.get("args")) for one in turn["calls"]]
    return turn["user"], calls, turn["response"] or "", turn["error"] is not None


def text_of(content):
    parts = (content or {}).get("parts") or ()
    return "\n".join(part["text"] for part in parts if part.get("text") and not part.get("thought"))


def reported(turn):
    events = (turn.get("intermediate_data") or {}).get("invocation_events") or ()
    parts = [part for event in events for part in (event.get("content") or {}).get("parts") or ()]
    calls = [part["function_call"] for part in parts if part.get("function_call")]
    named = [(one["name"], one.get("args")) for one in calls]
    return text_of(turn["user_content"]), named, text_of(turn.get("final_response"))


def traced(tree, number):
    inside = [one for one in tree.spans if one.turn == number]
    calls = [one.event("tool_call") for one in inside if one.call is not None]
    named = [event.content["parts"][0]["function_call"] for event in calls]
    (turn,) = [one for one in tree.turns if one.turn == number]
    user = text_of(turn.event("user").content)
    return user, [(one["name"], one.get("args")) for one in named], turn.failed


@pytest.mark.parametrize("source", WHOLE)
def test_three_places_say_the_same_of_a_trace(source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.json").write_text("\n".join(json.dumps(scoped(one)) for one in WHOLE[source]()))
    assert call("inspect", "t.json", "--format", "json") == 0
    (shown,) = json.loads(capsys.readouterr().out)["conversations"]
    assert call("inspect", "t.json") == 0
    (heading,) = re.findall(r"^conversation .*", capsys.readouterr().out, re.MULTILINE)
    (found,) = read(WHOLE[source]())
    contents = [{"user_content": turn.events[0].content} for turn in found.turns]
    write_eval_set(tmp_path, "s", {"eval_id": "c", "conversation": contents})
    call("score", "t.json", "--sets", "s.evalset.json", "--report", "json=r.json")
    (case,) = json.loads((tmp_path / "r.json").read_text())["cases"]
    (repeat,) = case["repeats"]
    assert len(shown["turns"]) == len(repeat["actual"]) == len(found.turns)
    (log,) = tmp_path.glob(".evaltui/runs/*.sqlite")
    tree = SpanTree()
    tree.add(RunFile(log).events(1)[0])
    for number, (turn, actual) in enumerate(zip(shown["turns"], repeat["actual"], strict=True)):
        user, calls, response, has_failed = inspected(turn)
        # Of unknown calls, a result has none.
        known = [] if CALLS in turn["missing"] and not reported(actual)[1] else calls
        assert reported(actual) == (user, known, response)
        assert traced(tree, number) == (user, calls, has_failed)
    counted = re.search(r"tool calls (\d+)", capsys.readouterr().out)
    known = all(CALLS not in turn["missing"] for turn in shown["turns"])
    count = sum(len(turn["calls"]) for turn in shown["turns"])
    assert re.search(rf"   {count if known else '—'} calls?\b", heading)
    if counted and known:
        assert int(counted[1]) == count
