"""`evaltui score` on spans that google-adk wrote in this process."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.eval_data import make_case, make_turn, write_eval_set
from tests.golden.html_text import text_of_html

pytest.importorskip("google.adk")

from google.genai import types

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.eval_set import scored_text, tool_calls
from evaltui.core.model.outcome import Status
from evaltui.project.run_settings import RunSettings
from evaltui.runs.history import find_run, open_run
from evaltui.runs.store import RunStore
from tests.commands.command_line import call
from tests.traces import written_traces
from tests.traces.adk_spans import BARE, OLD, SPANS, run

pytestmark = pytest.mark.adk

LAMP = ("Find a lamp", [("find", {"what": "lamp"})], "There is one lamp.")
COST = ("What does it cost?", [("price", {"what": "lamp", "currency": "USD"})], "12.50 dollars.")
THANKS = ("Thanks", [], "You are welcome.")
TIME = ("What time is it?", [("now", {})], "It is 14:05.")


def case(eval_id, *turns):
    return make_case(
        eval_id,
        *[
            make_turn(user, answer, calls=[{"name": name, "args": args} for name, args in calls])
            for user, calls, answer in turns
        ],
    )


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    class Shop:
        def sets(self, *cases, **config):
            write_eval_set(tmp_path, "shop", *cases)
            if config:
                (tmp_path / "test_config.json").write_text(json.dumps(config))

        def trace(self, name, messages, environment=SPANS, session="s1", agent="tools"):
            path = tmp_path / name
            path.write_bytes(written_traces.otlp_json(run(agent, messages, environment, session)))
            return path

        def score(self, *words):
            code = call("score", *words, "--sets", "shop.evalset.json", "--report", "json=report.json")
            data = json.loads((tmp_path / "report.json").read_text())
            return code, {one["eval_id"]: one for one in data["cases"]}

        def last(self):
            return open_run(find_run(RunStore.of(tmp_path, RunSettings()), "last"))

    return Shop()


def metrics(case):
    return {
        one["name"]: (one["status"], one["reason"])
        for one in case["metrics"]
        if one["status"] != "INFORMATIONAL"
    }


def test_a_conversation_that_does_what_is_expected_passes_and_is_kept(shop):
    shop.sets(case("buy", LAMP, COST), case("time", TIME))
    traces = [shop.trace("a.json", [LAMP[0], COST[0]]), shop.trace("b.json", [TIME[0]], session="s2")]
    code, cases = shop.score(*traces)
    assert (code, [one["status"] for one in cases.values()]) == (0, ["PASSED", "PASSED"])
    kept = shop.last()
    assert kept.status is Status.PASSED
    assert kept.summary.circumstances.agent == "shop"
    (buy,) = (one for one in kept.summary.cases if one.eval_id == "buy")
    # What the workbench scores again, and accepts from.
    again = invocations_from_events(kept.events(buy)[0])
    assert [scored_text(one, thoughts=False) for one in again] == [LAMP[2], COST[2]]
    assert [call.args for one in again for call in tool_calls(one.intermediate_data)] == [
        LAMP[1][0][1],
        COST[1][0][1],
    ]
    assert list(kept.case(buy).repeats[0].actual) == again


@pytest.mark.parametrize("environment", [OLD, SPANS, BARE], ids=["old", "spans", "bare"])
def test_a_model_that_failed_without_a_response_is_an_error(shop, environment):
    shop.sets(case("buy", ("Hi", [], "")), criteria={"tool_trajectory_avg_score": 1.0})
    code, cases = shop.score(shop.trace("a.json", ["Hi"], environment, agent="blocked"))
    error = cases["buy"]["error"]
    assert (code, error["type"].upper(), error["message"]) == (3, "SAFETY", "no response of the model")


def test_a_trace_without_times_has_unknown_times_in_the_page(shop, tmp_path):
    shop.sets(case("time", TIME))
    trace = shop.trace("a.json", [TIME[0]])
    trace.write_text(re.sub(r'(TimeUnixNano": ?)"\d+"', r'\1"0"', trace.read_text()))
    code, _ = shop.score(trace, "--report", f"html={tmp_path / 'page.html'}")
    text = text_of_html((tmp_path / "page.html").read_text())
    assert code == 0
    assert "—" in text
    assert re.findall(r"\b0 m?s\b", text) == []


def test_missing_and_extra_turns_never_pass(shop):
    shop.sets(case("buy", LAMP, COST, THANKS), case("time", TIME))
    missing = shop.trace("a.json", [LAMP[0], THANKS[0]])
    extra = shop.trace("b.json", [TIME[0], THANKS[0]], session="s2")
    code, cases = shop.score(missing, extra)
    assert code == 3
    assert cases["buy"]["status"] == cases["time"]["status"] == "NOT_EVALUATED"
    said = metrics(cases["buy"])
    assert said["conversation"] == ("NOT_EVALUATED", 'turn 2 "What does it cost?" not in the trace')
    assert said["tool_trajectory_avg_score"][0] == said["response_match_score"][0] == "PASSED"
    assert metrics(cases["time"])["conversation"][1] == '1 turn in the trace, not in the case: "Thanks"'
    # Other turns are paired by what the user says, not by their numbers.
    assert [one["response"]["actual"] for one in cases["buy"]["turns"]] == [LAMP[2], None, THANKS[2]]
    code, cases = shop.score(missing, extra, "--adk-verdicts")
    assert code == 3


@pytest.mark.parametrize("named", ["session", "attribute", "alone"])
@pytest.mark.parametrize("said", ["Thanks", "Thanks!", "No thanks"])
def test_a_turn_of_another_message_is_never_the_turn_of_a_case(shop, tmp_path, named, said):
    """However the conversation is paired, and however like the message is."""
    shop.sets(case("bye", (said, [], THANKS[2])))
    trace = shop.trace("a.json", [THANKS[0]], session="bye" if named == "session" else "s1", agent="tools")
    words = [trace]
    if named == "attribute":
        trace.write_text(trace.read_text().replace("service.name", "mine").replace('"shop"', '"bye"'))
        words += ["--case-from", "mine"]
    code, cases = shop.score(*words)
    metric = metrics(cases["bye"])
    if said == THANKS[0]:
        assert (code, cases["bye"]["status"]) == (0, "PASSED")
        return
    assert (code, cases["bye"]["status"]) == (3, "NOT_EVALUATED")
    _, reason = metric["conversation"]
    assert f'turn 1 "{said}" not in the trace; 1 turn in the trace, not in the case: "Thanks"; ' in reason
    assert reason.endswith("import the conversation as another one (evaltui import)")
    assert metric["response_match_score"][0] == "NOT_EVALUATED"


def test_a_message_with_another_attachment_is_another_message(shop):
    picture = {"inline_data": {"mime_type": "image/png", "data": "AQ=="}}
    sent = [types.Part(text="Look"), types.Part(inline_data=types.Blob(mime_type="image/png", data=b"1"))]
    trace = shop.trace("a.json", [sent], agent="attachment")
    for parts, status in (
        ([picture], "PASSED"),
        ([], "NOT_EVALUATED"),
        ([picture, picture], "NOT_EVALUATED"),
        ([{"inline_data": {"mime_type": "image/gif", "data": "AQ=="}}], "NOT_EVALUATED"),
    ):
        look = case("look", ("Look", [], "A nice picture."))
        look["conversation"][0]["user_content"]["parts"] += parts
        shop.sets(look)
        code, cases = shop.score(trace)
        assert (code, cases["look"]["status"]) == (0 if status == "PASSED" else 3, status)
        assert (
            status == "PASSED"
            or '"Look [attachment not recorded: image/png]"' in metrics(cases["look"])["conversation"][1]
        )


def test_a_simulated_conversation_that_begins_otherwise_is_not_evaluated(shop):
    scenario = {"starting_prompt": "Find the lamp", "conversation_plan": "Buy it."}
    simulated = {"eval_id": "buy", "conversation_scenario": scenario}
    shop.sets(simulated, criteria={}, evaltui={"criteria": {"seconds": 1000}})
    trace = shop.trace("a.json", [LAMP[0], COST[0]], session="buy")
    code, cases = shop.score(trace)
    assert (code, cases["buy"]["status"]) == (3, "NOT_EVALUATED")
    assert 'turn 1 "Find the lamp" not in the trace' in metrics(cases["buy"])["conversation"][1]
    scenario["starting_prompt"] = LAMP[0]
    shop.sets(simulated, criteria={}, evaltui={"criteria": {"seconds": 1000}})
    code, cases = shop.score(trace)
    assert (code, cases["buy"]["status"]) == (0, "PASSED")


def test_the_state_after_another_conversation_is_not_the_final_one(shop, tmp_path):
    thanks = case("bye", THANKS)
    thanks["final_session_state"] = {"paid": True}
    shop.sets(thanks)
    trace = shop.trace("a.json", [THANKS[0], TIME[0]], session="bye")
    state = {"key": "evaltui.final_session_state", "value": {"stringValue": '{"paid": false}'}}
    document = json.loads(trace.read_text())
    for group in document["resourceSpans"]:
        for span in (span for scope in group["scopeSpans"] for span in scope["spans"]):
            span["attributes"] += [] if span.get("parentSpanId") else [state]
    trace.write_text(json.dumps(document))
    code, cases = shop.score(trace)
    assert (code, cases["bye"]["status"]) == (3, "NOT_EVALUATED")
    assert metrics(cases["bye"])["final_session_state"] == (
        "NOT_EVALUATED",
        "not compared: the conversation is another one",
    )


def test_content_that_was_not_captured_is_not_evaluated_with_the_variable(shop):
    shop.sets(case("buy", LAMP), case("thanks", THANKS))
    named = shop.trace("a.json", [LAMP[0]], BARE, session="buy")
    code, cases = shop.score(named, "--only-paired")
    said = metrics(cases["buy"])
    assert (code, cases["buy"]["status"]) == (3, "NOT_EVALUATED")
    assert said["tool_trajectory_avg_score"][0] == said["response_match_score"][0] == "NOT_EVALUATED"
    for _, reason in said.values():
        assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT" in reason
    assert said["tool_trajectory_avg_score"][1].startswith("names compared only")
    # Nothing was called: that is known, and so is a tool that nobody expects.
    code, cases = shop.score(shop.trace("b.json", [THANKS[0]], BARE, session="thanks"), "--only-paired")
    assert metrics(cases["thanks"])["tool_trajectory_avg_score"][0] == "PASSED"
    code, cases = shop.score(shop.trace("c.json", [LAMP[0]], BARE, session="thanks"), "--only-paired")
    assert (code, metrics(cases["thanks"])["tool_trajectory_avg_score"][0]) == (1, "FAILED")


def test_names_alone_are_compared_where_arguments_do_not_count(shop):
    criterion = {"threshold": 1.0, "ignore_args": True}
    shop.sets(case("buy", LAMP), criteria={"tool_trajectory_avg_score": criterion})
    code, cases = shop.score(shop.trace("a.json", [LAMP[0]], BARE))
    assert (code, cases["buy"]["status"]) == (0, "PASSED")


def test_an_unknown_response_is_no_difference(shop, tmp_path, capsys):
    shop.sets(case("buy", (LAMP[0], [], LAMP[2])), criteria={"tool_trajectory_avg_score": 1.0})
    reports = ("--report", "console", "--report", "markdown=report.md", "--report", "html=report.html")
    code, cases = shop.score(shop.trace("a.json", [LAMP[0]], BARE), *reports)
    assert (code, cases["buy"]["status"]) == (1, "FAILED")
    (turn,) = cases["buy"]["turns"]
    assert turn["response"] == {"expected": LAMP[2], "actual": None, "score": None, "is_unknown": True}
    shown = [capsys.readouterr().out, *((tmp_path / f"report.{kind}").read_text() for kind in ("md", "html"))]
    assert not any("no response" in text for text in shown)
    assert "actual unknown" in shown[-1]


def test_what_has_no_counterpart_is_named(shop, capsys):
    shop.sets(case("buy", LAMP), case("time", TIME))
    traces = [
        shop.trace("a.json", [LAMP[0]]),
        shop.trace("b.json", ["Find a lamb"], session="s2", agent="attachment"),
    ]
    code, cases = shop.score(*traces)
    assert code == 3
    assert metrics(cases["time"])["conversation"][1] == "no conversation in the traces is of this case"
    said = "".join(capsys.readouterr())
    assert "1 of 2 conversations matches no case:" in said
    assert 's2  "Find a lamb"  nearest case: buy' in said
    code, cases = shop.score(*traces, "--only-paired")
    assert (code, list(cases)) == (3, ["buy"])
    assert "1 case without a conversation left out" in "".join(capsys.readouterr())
    # What is scored alone is no more complete in a comparison.
    assert call("compare", "last", "last", "--fail-on-regression") == 3
    assert "run 2: 1 conversation matches no case" in "".join(capsys.readouterr())
    code, cases = shop.score(traces[0], "--only-paired")
    assert (code, list(cases)) == (0, ["buy"])


def test_a_turn_that_failed_is_an_error(shop):
    shop.sets(case("try", ("Try", [("broken", {})], "Done.")))
    code, cases = shop.score(shop.trace("a.json", ["Try"], agent="raising"))
    assert (code, cases["try"]["status"]) == (3, "ERROR")
    assert "the shop is closed" in cases["try"]["error"]["message"]
    assert cases["try"]["turns"][0]["calls"][0]["op"] == "same"


def test_repeats_shards_and_a_baseline(shop, capsys):
    criteria = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    repeats = {"runs": 5, "pass_if": "all"}
    shop.sets(
        case("buy", LAMP),
        case("time", TIME),
        case("thanks", THANKS),
        criteria=criteria,
        evaltui={"repeats": repeats},
    )
    for number in range(2):
        shop.trace(f"lamp{number}.json", [LAMP[0]], session=f"l{number}")
    shop.trace("time.json", [TIME[0]], session="t")
    shop.trace("thanks.json", [THANKS[0]], session="th")
    files = ("lamp0.json", "lamp1.json", "time.json", "thanks.json")
    capsys.readouterr()
    assert call("score", "time.json", "--sets", "shop.evalset.json", "--only-paired") == 0
    assert "(1 case, 1 run each, " in capsys.readouterr().out
    assert call("score", *files, "--sets", "shop.evalset.json") == 0
    assert "(3 cases, at most 2 runs each, " in capsys.readouterr().out
    code, cases = shop.score(*files)
    assert (code, [len(one["repeats"]) for one in cases.values()]) == (0, [2, 1, 1])
    parts = [shop.score(*files, "--shard", f"{part}/2") for part in (1, 2)]
    assert [code for code, _ in parts] == [0, 0]
    assert sorted(name for _, some in parts for name in some) == ["buy", "thanks", "time"]
    code, _ = shop.score(*files, "--baseline", "last", "--fail-on-regression")
    assert code == 0
    # The same question, answered by another agent.
    shop.trace("time.json", [TIME[0]], session="t", agent="attachment")
    capsys.readouterr()
    code, cases = shop.score(*files, "--baseline", "last", "--fail-on-regression")
    assert (code, cases["time"]["status"]) == (1, "FAILED")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{}", "holds no spans"),
        ('{"resourceSpans": []}', "no conversation of an agent in bad.json"),
        (None, "bad.json does not exist"),
    ],
)
def test_what_cannot_be_scored_is_wrong_use(shop, tmp_path, capsys, content, why):
    shop.sets(case("buy", LAMP))
    if content is not None:
        (tmp_path / "bad.json").write_text(content)
    assert call("score", "bad.json", "--sets", "shop.evalset.json") == 2
    said = capsys.readouterr().err
    assert said.startswith("evaltui score: ")
    assert why in said


@pytest.mark.parametrize(
    ("put", "why"),
    [
        (lambda path: path.symlink_to("nowhere"), "{path} does not exist"),
        (os.mkfifo, "{path}: no file and no folder"),
    ],
    ids=["a link to nowhere", "a pipe"],
)
@pytest.mark.parametrize("name", ["b.json", "deep/b"])
def test_what_cannot_be_read_in_a_folder_of_traces_is_not_left_out(shop, tmp_path, capsys, put, why, name):
    shop.sets(case("lamp", LAMP))
    (tmp_path / "traces" / "deep").mkdir(parents=True)
    shop.trace("traces/a.json", [LAMP[0]])
    put(tmp_path / "traces" / name)
    for words in (("score", "traces", "--sets", "shop.evalset.json", "--only-paired"), ("inspect", "traces")):
        assert call(*words) == 2
        assert why.format(path=Path("traces", name)) in capsys.readouterr().err


def test_a_function_of_unknown_calls_is_not_evaluated(shop, tmp_path):
    """An agent of which only its own span was recorded may have called anything."""
    (tmp_path / "judging.py").write_text(
        "def nothing_deleted(actual, expected, criterion):\n"
        "    calls = actual.intermediate_data.tool_uses if actual.intermediate_data else []\n"
        "    return not any(call.name == 'delete' for call in calls)\n"
    )
    function = {"function": "judging.nothing_deleted", "threshold": 1.0}
    shop.sets(case("lamp", LAMP), criteria={}, evaltui={"criteria": {"nothing_deleted": function}})
    messages = {"user": LAMP[0], "assistant": LAMP[2]}
    user, answer = (
        json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
        for role, text in messages.items()
    )
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "shop",
        "gen_ai.input.messages": user,
        "gen_ai.output.messages": answer,
    }
    span = {
        "traceId": "1" * 32,
        "spanId": "1" * 16,
        "name": "invoke_agent shop",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {}, "spans": [span]}]}]}))
    code, report = shop.score(trace)
    (metric,) = [metric for metric in report["lamp"]["metrics"] if metric["name"] == "nothing_deleted"]
    assert (code, metric["status"]) == (3, "NOT_EVALUATED")
    assert "the tool calls of turn 1 are unknown" in metric["reason"]
