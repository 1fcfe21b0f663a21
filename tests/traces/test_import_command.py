"""`evaltui inspect` and `evaltui import`, on spans that google-adk wrote in this process."""

import importlib.util
import json
import textwrap

import pytest

pytest.importorskip("google.adk")

from evaltui.project.eval_sets import load_eval_set
from tests.commands.command_line import call
from tests.traces import adk_spans, written_traces
from tests.traces.adk_spans import BARE, EVENTS_ONLY, OLD, SPANS, run

pytestmark = pytest.mark.adk

# The model answers by what came last; tools have ids of their own in each run.
AGENT = """
    import uuid
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    def find(what: str) -> dict:
        return {"found": [what], "key": "sk-very-secret-value"}

    def price(what: str) -> dict:
        return {"amount": 12.5}

    class Scripted(BaseLlm):
        model: str = "scripted"

        async def generate_content_async(self, llm_request, stream=False):
            part = llm_request.contents[-1].parts[-1]
            calls = {"Compare": ["find", "price", "find"], "Find a lamp": ["find"]}.get(part.text, [])
            parts = [types.Part(function_call=types.FunctionCall(
                name=name, args={"what": f"{name} {number}"}, id=uuid.uuid4().hex
            )) for number, name in enumerate(calls)]
            said = part.text or f"{part.function_response.name} says so"
            yield LlmResponse(content=types.Content(role="model", parts=parts or [types.Part(text=said)]))

    root_agent = LlmAgent(name="shop", model=Scripted(), instruction="Sell.", tools=[find, price])
"""
SAID = ["Find a lamp", "Compare", "Thanks"]


@pytest.fixture
def shop(write_agent, monkeypatch):
    """The folder of an agent, which `run` knows as `own`."""
    folder = write_agent(AGENT, name="shop")
    (folder / ".env").write_text("SHOP_API_KEY=sk-very-secret-value\n")
    spec = importlib.util.spec_from_loader("shop_of_test", loader=None)
    module = importlib.util.module_from_spec(spec)
    exec(textwrap.dedent(AGENT), vars(module))
    monkeypatch.setitem(adk_spans.AGENTS, "own", lambda: module.root_agent)
    monkeypatch.chdir(folder)
    return folder


def write(folder, name, *told):
    path = folder / name
    path.write_bytes(b"\n".join(written_traces.otlp_json(one) for one in told))
    return path


@pytest.mark.parametrize(
    "environment", [SPANS, pytest.param(OLD, marks=pytest.mark.thorough)], ids=["schema 2", "schema 1"]
)
def test_what_is_imported_runs_green_on_the_agent_that_made_the_trace(shop, environment, capsys):
    trace = write(shop, "trace.json", run("own", SAID, environment))
    assert call("import", trace, "--into", "shop.evalset.json") == 0
    assert "find_a_lamp  3 turns of conversation s1" in capsys.readouterr().out
    text = (shop / "shop.evalset.json").read_text()
    # Ids of calls are others in every run; what the agent's .env keeps secret stays there.
    assert '"id"' not in text
    assert "sk-very-secret-value" not in text
    assert call("lint", shop) == 0
    assert call("run", shop) == 0
    capsys.readouterr()
    # The only turn that differs is seen.
    (shop / "shop.evalset.json").write_text(text.replace('"price 1"', '"price 2"'))
    assert call("run", shop) == 1


def test_conversations_and_turns_are_chosen(shop, capsys):
    told = [run("own", SAID[at:], SPANS, session=f"s{at}") for at in range(3)]
    trace = write(shop, "trace.json", *told)
    assert call("import", trace, "--into", "all.evalset.json", "--dry-run") == 0
    assert not (shop / "all.evalset.json").exists()
    assert call("import", trace, "--into", "all.evalset.json") == 0
    assert [case.eval_id for case in cases(shop)] == ["find_a_lamp", "compare", "thanks"]
    one = ("import", trace, "--into", "all", "--conversation", "s0")
    assert call(*one, "--case", "end", "--turns", "2-") == 0
    assert [len(case.conversation) for case in cases(shop)] == [3, 2, 1, 2]
    assert [case.eval_id for case in cases(shop)][3:] == ["end"]
    before = (shop / "all.evalset.json").read_bytes()
    capsys.readouterr()
    for words, complaint in (
        ((*one, "--case", "end"), "already has a case 'end'"),
        ((*one[:-1], "s9"), "no conversation 's9'"),
        ((*one[:-2], "--case", "x"), "--case is for one conversation, there are 3"),
        ((*one, "--turns", "3-4"), "the conversation has 3 turns"),
        ((*one, "--turns", "two"), "'two' is not a choice of turns"),
        ((*one[:3], "nowhere", *one[4:]), "no eval set 'nowhere'"),
        (("import", shop / "agent.py", "--into", "all"), "agent.py"),
    ):
        assert call(*words) == 2
        assert complaint in capsys.readouterr().err
    assert (shop / "all.evalset.json").read_bytes() == before


def cases(folder):
    return load_eval_set(folder / "all.evalset.json").eval_cases


def test_a_case_of_the_name_that_a_trace_has_is_refused_and_all_with_it(shop, capsys):
    told = [run("own", ["Thanks"], SPANS, session=f"s{number}") for number in range(2)]
    trace = write(shop, "trace.json", *told)
    lines = trace.read_text().replace("\n", "", 0).splitlines()
    named = {"key": "evaltui.eval.case.id", "value": {"stringValue": "polite"}}
    document = json.loads(lines[1])
    document["resourceSpans"][0]["resource"]["attributes"].append(named)
    trace.write_text(f"{lines[0]}\n{json.dumps(document)}\n")
    assert call("import", trace, "--into", "all.evalset.json") == 0
    assert [case.eval_id for case in cases(shop)] == ["thanks", "polite"]
    # Another turn, and the case that the trace names is not this one.
    path = shop / "all.evalset.json"
    path.write_text(path.read_text().replace("Thanks", "Thank you"))
    assert call("import", trace, "--into", "all.evalset.json") == 2
    assert "already has a case 'polite'" in capsys.readouterr().err
    assert len(cases(shop)) == 2


def test_a_conversation_is_imported_once(shop, capsys):
    """Twins would leave each trace of them without a case: both begin like it."""
    trace = write(shop, "trace.json", *(run("own", SAID, SPANS, session=f"s{number}") for number in range(2)))
    imports = ("import", trace, "--into", "all.evalset.json")
    assert call(*imports) == 0
    assert "conversation s1 left out: all.evalset.json has it as case find_a_lamp" in capsys.readouterr().err
    assert call(*imports) == 2
    refused = capsys.readouterr()
    assert not refused.out
    assert refused.err.count("left out: all.evalset.json has it as case find_a_lamp") == 2
    assert len(cases(shop)) == 1
    # What is new is added.
    other = write(shop, "other.json", run("own", ["Thanks"], SPANS, session="s3"))
    assert call("import", trace, other, *imports[2:]) == 0
    assert [case.eval_id for case in cases(shop)] == ["find_a_lamp", "thanks"]
    # Asked for by name it is, too, with a note.
    capsys.readouterr()
    assert call(*imports, "--conversation", "s1", "--case", "again") == 0
    assert "case find_a_lamp has the same turns" in capsys.readouterr().out
    # What an agent of today says in the same conversation is another case.
    path = shop / "all.evalset.json"
    path.write_text(path.read_text().replace("find says so", "find said so"))
    assert call(*imports, "--conversation", "s0") == 0
    assert "case find_a_lamp has the same messages of the user" in capsys.readouterr().out


def test_what_a_trace_does_not_hold_is_said_with_what_brings_it(shop, capsys):
    trace = write(shop, "bare.json", run("own", SAID, BARE))
    assert call("inspect", trace) == 0
    shown = capsys.readouterr().out
    assert "conversation s1   3 turns   4 calls" in shown
    assert "missing  arguments (turns 1, 2), tool results (turns 1, 2), " in shown
    assert " the user's message, response, intermediate responses (turns 1, 2): set OTEL_" in shown
    assert shown.count("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT") == 1
    assert call("import", trace, "--into", "all.evalset.json") == 2
    assert "turn 1: the user's message was not recorded: set OTEL_" in capsys.readouterr().err
    assert not (shop / "all.evalset.json").exists()
    # With log records alone the messages are known, and arguments only where a model asked for the call.
    trace = write(shop, "events.json", run("own", SAID, EVENTS_ONLY))
    assert call("inspect", trace, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["formats"] for one in found["files"]] == [["OTLP JSON"]]
    (conversation,) = found["conversations"]
    assert [turn["user"] for turn in conversation["turns"]] == SAID
    assert [len(turn["calls"]) for turn in conversation["turns"]] == [1, 3, 0]


def test_an_initial_state_that_no_trace_has_is_said_where_cases_of_the_agent_have_one(shop, capsys):
    trace = write(shop, "trace.json", run("own", SAID, SPANS))
    words = ("import", trace, "--into", "all.evalset.json", "--dry-run")
    turns = [{"user_content": {"parts": [{"text": "Hi"}]}}]
    for state, is_said in (({}, False), ({"user": "ada"}, True)):
        session = {"app_name": "shop", "user_id": "u", "state": state}
        other = {"eval_set_id": "o", "eval_cases": [{"eval_id": "o", "conversation": turns}]}
        other["eval_cases"][0]["session_input"] = session
        (shop / "other.evalset.json").write_text(json.dumps(other))
        assert call(*words) == 0
        assert ("initial state not in the trace" in capsys.readouterr().out) == is_said
    assert call(*words[:-1], "--strict") == 1


def test_a_turn_that_failed_is_left_out_and_said(shop, capsys):
    trace = write(shop, "trace.json", run("raising", ["Try", "Stock?"], SPANS))
    assert call("import", trace, "--into", "all.evalset.json") == 0
    assert "turn 1 left out: ended with RuntimeError: the shop is closed" in capsys.readouterr().out
    assert [len(case.conversation) for case in cases(shop)] == [1]
    assert call("import", trace, "--into", "all", "--case", "x", "--turns", "1-2") == 2
    assert "turn 1: ended with RuntimeError" in capsys.readouterr().err


def test_a_conversation_without_a_turn_for_a_case_is_left_out_and_said(shop, capsys):
    failed, other = run("raising", ["Try"], SPANS, "failed"), run("own", SAID, SPANS, "other")
    trace = write(shop, "trace.json", failed, other)
    assert call("import", trace, "--into", "all.evalset.json") == 0
    assert "conversation failed left out: turn 1: ended with RuntimeError" in capsys.readouterr().err
    assert len(cases(shop)) == 1
    assert call("import", trace, "--into", "all.evalset.json", "--conversation", "failed") == 2


def test_arguments_that_were_not_recorded_are_not_expected(shop, capsys):
    """Calls of a turn without arguments are unknown as a whole: an expected `{}` would never match."""
    trace = write(shop, "trace.json", run("own", ["Find a lamp"], SPANS))
    document = json.loads(trace.read_text())
    for group in document["resourceSpans"]:
        for span in (span for scope in group["scopeSpans"] for span in scope["spans"]):
            span["attributes"] = [
                one
                for one in span["attributes"]
                if one["key"] not in ("gen_ai.tool.call.arguments", "gen_ai.output.messages")
                or "says so" in str(one)
            ]
            for one in span["attributes"]:
                if one["key"] == "gen_ai.input.messages" and "tool_call" in str(one):
                    messages = json.loads(one["value"]["stringValue"])
                    messages = [message for message in messages if message["role"] == "user"]
                    one["value"]["stringValue"] = json.dumps(messages)
    document.pop("resourceLogs", None)
    trace.write_text(json.dumps(document))
    assert call("import", trace, "--into", "all.evalset.json") == 0
    assert "turn 1: arguments not recorded, so not expected: set OTEL_" in capsys.readouterr().out
    (case,) = cases(shop)
    assert case.conversation[0].intermediate_data is None
    # Without its mark, no calls would be expected, and the case would fail.
    config = json.loads((shop / "test_config.json").read_text())
    assert config["evaltui"]["turns"] == [{"set": "all", "case": "find_a_lamp", "turn": 0, "mode": "skip"}]
    assert call("run", shop) == 0
