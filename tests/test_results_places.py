"""Where results of Python runs go: run logs, google-adk's managers, and what google-adk hands to ours."""

import json
import sys

import pytest
from eval_data import make_case, make_set, make_turn, write_eval_set

from evaltui import EvalCase, evaluate, evaluate_sync, generate_responses
from evaltui.adk import AgentEvaluator, EvaluationGenerator
from evaltui.runs.history import open_run
from evaltui.runs.listing import read_row, stored_runs
from evaltui.runs.store import RunStore
from tests.commands.command_line import call
from tests.storage_server import storage

TEXT = {"criteria": {"response_match_score": 0.9}}
SOURCE = """
def root_agent(message, session):
    if message == "crash":
        raise RuntimeError("out of stock")
    return "found " + message
"""


def turn(message, answer=None):
    return make_turn(message, answer or f"found {message}")


GOOD, BAD, CRASH = (
    make_case("good", turn("hats")),
    make_case("bad", turn("cats", "no")),
    make_case("crash", turn("crash")),
)
SET = make_set("basics", GOOD, BAD)


@pytest.fixture
def agent(write_agent):
    folder = write_agent(SOURCE)
    write_eval_set(folder, "basics", GOOD, BAD)
    (folder / "test_config.json").write_text(json.dumps(TEXT))
    return folder


def test_a_run_is_kept_as_the_command_keeps_it(agent, tmp_path, capsys):
    out = tmp_path / "out"
    result = evaluate_sync(agent, "basics", runs=2, results_dir=out)
    assert call("run", agent, "--runs", 2, "--results-dir", out) == 1
    capsys.readouterr()
    newer, older = stored_runs(RunStore(agent, out))
    assert older == result.log
    assert call("runs", agent, "--results-dir", out) == 0
    assert capsys.readouterr().out.count("1 passed, 1 failed · basics\n") == 2
    rows = [read_row(path) for path in (older, newer)]
    assert [(row.number, row.totals.counts, row.sets) for row in rows] == [
        (number, rows[0].totals.counts, rows[0].sets) for number in (1, 2)
    ]
    kept = open_run(older)
    assert [kept.case(one.id).status for one in result.cases] == ["PASSED", "FAILED"]
    assert not (agent / ".evaltui").exists()
    assert call("run", agent, "--results-dir", "gs://results") == 2
    assert "run logs need a folder" in capsys.readouterr().err
    assert evaluate_sync(agent, "basics").log is None


def test_a_config_that_is_given_is_no_default(agent, tmp_path, capsys):
    out = tmp_path / "out"
    evaluate_sync(agent, "basics", {"criteria": {"response_match_score": 0.5}}, results_dir=out)
    assert call("report", agent, "--results-dir", out, "--report", "json") == 0
    (basics,) = json.loads(capsys.readouterr().out)["sets"]
    assert basics["config"] == {
        "path": None,
        "effective": {"criteria": {"response_match_score": 0.5}},
        "defaulted": [],
    }
    call("report", agent, "--results-dir", out)
    assert "config  as in the run log: response_match_score 0.5" in capsys.readouterr().out


async def test_responses_are_generated_without_scores(agent):
    good, crash = await generate_responses(agent, [EvalCase.model_validate(GOOD), CRASH], repeat_num=2)
    assert [[one.final_response.parts[0].text for one in turns] for turns in good.responses] == [
        ["found hats"], ["found hats"]
    ]  # fmt: skip
    assert (good.errors, good.eval_case.eval_id, good.eval_set_id) == ([None, None], "good", "cases")
    assert repr(good) == "<CaseResponses good ×2>"
    assert [error.message for error in crash.errors] == ["out of stock"] * 2
    assert "RuntimeError: out of stock" in repr(crash)
    [empty] = await generate_responses(agent, [make_case("empty")], repeat_num=1)
    assert empty.responses == [[]]
    assert "conversation is empty" in empty.errors[0].message
    [here] = await generate_responses(lambda message, session: "found hats", [GOOD], repeat_num=1)
    assert here.responses[0][0].final_response == good.responses[0][0].final_response


async def test_the_generator_of_adk_by_its_import_line(agent):
    found = await EvaluationGenerator.generate_responses(SET, str(agent), repeat_num=1)
    assert [(one.eval_case.eval_id, len(one.responses)) for one in found] == [("good", 1), ("bad", 1)]
    with pytest.raises(RuntimeError, match="out of stock"):
        await EvaluationGenerator.generate_responses({**SET, "eval_cases": [CRASH]}, str(agent), 1)


def test_files_of_an_old_format_are_migrated(tmp_path):
    old, new = tmp_path / "old.test.json", tmp_path / "new.evalset.json"
    old.write_text(json.dumps([{"query": "hats", "expected_tool_use": [], "reference": "found hats"}]))
    AgentEvaluator.migrate_eval_data_to_new_schema(str(old), str(new))
    assert evaluate_sync(lambda message, session: "found hats", new, TEXT).passed


@pytest.fixture
def bucket(monkeypatch):
    pytest.importorskip("google.adk.evaluation.gcs_eval_set_results_manager")
    with storage("results") as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "shop")
        yield server


@pytest.mark.adk
@pytest.mark.compat
def test_a_bucket_gets_the_layout_of_google_adk(agent, bucket):
    from google.adk.evaluation.gcs_eval_set_results_manager import GcsEvalSetResultsManager

    result = evaluate_sync(agent, ["basics", make_case("other", turn("hats"))], results_dir="gs://results")
    assert [one.status for one in result.cases] == ["PASSED", "FAILED", "PASSED"]
    assert all(one.startswith("my_agent/evals/eval_history/my_agent_") for one in bucket.buckets["results"])
    manager = GcsEvalSetResultsManager("results")
    kept = [manager.get_eval_set_result("my_agent", one) for one in manager.list_eval_set_results("my_agent")]
    assert sorted((one.eval_set_id, len(one.eval_case_results)) for one in kept) == [
        ("basics", 2), ("cases", 1)
    ]  # fmt: skip
    [basics] = (one for one in kept if one.eval_set_id == "basics")
    assert [one.final_eval_status.name for one in basics.eval_case_results] == ["PASSED", "FAILED"]


@pytest.mark.adk
@pytest.mark.compat
@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("gs://elsewhere", "`elsewhere` does not exist"),
        ("gs://results/inner", "is not gs://BUCKET"),
        ("gs://", "BUCKET"),
    ],
)
def test_a_bucket_that_cannot_be_used_ends_it_before_it_begins(agent, bucket, place, says):
    told = []
    with pytest.raises(ValueError, match=says):
        evaluate_sync(agent, "basics", results_dir=place, on_update=told.append)
    assert told == []


def test_without_its_libraries_a_bucket_says_what_to_install(agent, monkeypatch):
    for name in ("google.adk.evaluation.gcs_eval_set_results_manager", "google.cloud.storage"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'google-adk\[gcp\]'"):
        evaluate_sync(agent, "basics", results_dir="gs://results")


ADK_AGENT = """
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

class Model(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        last = request.contents[-1].parts[-1]
        if last.function_response or last.text != "hats":
            part = types.Part(text="found hats")
        else:
            part = types.Part(function_call=types.FunctionCall(name="find", args={"what": "hats"}))
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=7, total_token_count=9)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)

def find(what: str) -> dict:
    return {"hits": 3}

root_agent = LlmAgent(name="desk", model=Model(model="m"), tools=[find])
"""


@pytest.fixture
def desk(write_agent, monkeypatch):
    folder = write_agent(ADK_AGENT, name="kept_agent")
    (folder / "__init__.py").write_text("from . import agent\n")
    write_eval_set(folder, "basics", GOOD, BAD)
    (folder / "test_config.json").write_text(json.dumps(TEXT))
    monkeypatch.syspath_prepend(folder.parent)
    return folder


@pytest.mark.adk
@pytest.mark.compat
async def test_what_google_adk_evaluates_is_a_run_of_ours(desk, tmp_path):
    theirs = pytest.importorskip("google.adk.evaluation.agent_evaluator").AgentEvaluator
    from google.adk.evaluation.eval_config import EvalConfig as AdkConfig
    from google.adk.evaluation.eval_set import EvalSet as AdkSet

    from evaltui.adk import EvaltuiResultsManager

    manager = EvaltuiResultsManager(desk.parent)
    config = AdkConfig.model_validate(TEXT)
    with pytest.raises(AssertionError):
        await theirs.evaluate_eval_set(
            "kept_agent",
            AdkSet.model_validate(SET),
            eval_config=config,
            num_runs=2,
            app_name="kept_agent",
            eval_set_results_manager=manager,
        )
    # For google-adk it is there as ever.
    [result_id] = manager.list_eval_set_results("kept_agent")
    kept = manager.get_eval_set_result("kept_agent", result_id)
    assert len(kept.eval_case_results) == 4
    # Here it is one run, of the cases of the set's file.
    [log] = stored_runs(RunStore(desk))
    row = read_row(log)
    assert (row.number, row.status, dict(row.totals.counts), row.selected) == (
        1,
        "FAILED",
        {"PASSED": 1, "FAILED": 1},
        2,
    )
    assert row.totals.tokens == 2 * (14 + 7)
    run = open_run(log)
    by_id = {one.eval_id: one for one in run.summary.cases}
    good = run.case(by_id["good"])
    assert by_id["good"].path == "basics.evalset.json"
    assert [len(one.actual) for one in good.repeats] == [1, 1]
    [diff] = good.turns[0].calls
    assert (diff.op, diff.actual.name) == ("extra", "find")
    assert [one.kind for one in run.events(by_id["good"])[0]][:3] == ["user", "tool_call", "tool_result"]
    assert run.case(by_id["bad"]).metric("response_match_score").score == 0
    # Our own run of it is compared with theirs.
    own = await evaluate(desk, "basics", runs=2, results_dir=tmp_path / "out")
    assert [one.status for one in own.cases] == ["PASSED", "FAILED"]
    with pytest.raises(ValueError, match="app_name"):
        manager.save_eval_set_result("../up", "s", [])


@pytest.mark.adk
@pytest.mark.compat
@pytest.mark.thorough
def test_the_server_of_adk_web_writes_runs_of_ours(desk):
    pytest.importorskip("google.adk.cli.dev_server")
    from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
    from google.adk.auth.credential_service.in_memory_credential_service import InMemoryCredentialService
    from google.adk.cli.dev_server import DevServer
    from google.adk.cli.utils.agent_loader import AgentLoader
    from google.adk.evaluation.local_eval_sets_manager import LocalEvalSetsManager
    from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
    from google.adk.sessions.in_memory_session_service import InMemorySessionService
    from starlette.testclient import TestClient

    from evaltui.adk import EvaltuiResultsManager

    agents = str(desk.parent)
    server = DevServer(
        agent_loader=AgentLoader(agents),
        session_service=InMemorySessionService(),
        memory_service=InMemoryMemoryService(),
        artifact_service=InMemoryArtifactService(),
        credential_service=InMemoryCredentialService(),
        eval_sets_manager=LocalEvalSetsManager(agents_dir=agents),
        eval_set_results_manager=EvaltuiResultsManager(agents),
        agents_dir=agents,
    )
    client = TestClient(server.get_fast_api_app(), client=("127.0.0.1", 5000))
    metric = {"metricName": "response_match_score", "threshold": 0.9, "criterion": {"threshold": 0.9}}
    asked = client.post("/dev/apps/kept_agent/eval-sets/basics/run", json={"eval_metrics": [metric]})
    assert asked.status_code == 200, asked.text
    assert len(client.get("/dev/apps/kept_agent/eval-results").json()["evalResultIds"]) == 1
    [log] = stored_runs(RunStore(desk))
    row = read_row(log)
    assert (dict(row.totals.counts), row.sets[0].eval_ids) == ({"PASSED": 1, "FAILED": 1}, ("good", "bad"))


@pytest.mark.adk
@pytest.mark.compat
async def test_a_manager_of_google_adk_keeps_what_our_evaluator_finds(agent):
    manager_of = pytest.importorskip("google.adk.evaluation.local_eval_set_results_manager")
    manager = manager_of.LocalEvalSetResultsManager(agents_dir=str(agent.parent))
    given = {"eval_config": TEXT, "num_runs": 1, "eval_set_results_manager": manager}
    with pytest.raises(ValueError, match="app_name"):
        await AgentEvaluator.evaluate_eval_set(str(agent), SET, **given)
    with pytest.raises(AssertionError, match="bad FAILED"):
        await AgentEvaluator.evaluate_eval_set(str(agent), SET, app_name="shop", **given)
    [result_id] = manager.list_eval_set_results("shop")
    kept = manager.get_eval_set_result("shop", result_id)
    assert [one.eval_id for one in kept.eval_case_results] == ["good", "bad"]
