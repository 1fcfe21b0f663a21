"""A project as agents-cli lays it out: its datasets are run, scored, compared and migrated as they are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evaltui.core.model.eval_set import full_text
from evaltui.project.eval_sets import load_eval_set
from tests.commands.command_line import call
from tests.project.layouts import PYPROJECT, write

AGENT = """
from evaltui import events

def root_agent(message, session):
    if "weather" in message:
        yield events.tool_call("get_weather", {"query": "San Francisco"})
        yield events.tool_result("get_weather", {"result": "foggy"})
    yield "The capital of France is Paris." if "capital" in message else "Hello!"
"""
CONFIG = """
metrics_to_run:
  - custom_response_quality
custom_metrics:
  - name: custom_response_quality
    custom_function_file: response_quality.py
  - name: agent_turn_count
    custom_function: |
      def evaluate(instance):
          return {'score': 1}
"""
QUALITY = """
def evaluate(instance):
    text = instance["response"]["parts"][0]["text"]
    return {"score": 5 if "Paris" in text else 2, "explanation": "good" if "Paris" in text else "vague"}
"""
THRESHOLD = """
evaltui:
  criteria:
    custom_response_quality: 4
"""
GREETING, WEATHER, CAPITAL = "Hello, what can you help me with?", "How is the weather?", "The capital?"
PARIS = {"response": {"role": "model", "parts": [{"text": "The capital of France is Paris."}]}}


def user(text):
    return {"role": "user", "parts": [{"text": text}]}


CASES = [
    {"eval_case_id": "greeting", "prompt": user(GREETING)},
    {"eval_case_id": "weather_query", "prompt": user(WEATHER)},
    {"eval_case_id": "capital_lookup", "prompt": user(CAPITAL), "reference": PARIS},
]


@pytest.fixture
def scaffold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "pyproject.toml", PYPROJECT.format(name="app"))
    write(tmp_path / "app" / "agent.py", AGENT)
    write(tmp_path / "tests" / "eval" / "response_quality.py", QUALITY)
    write(tmp_path / "tests" / "eval" / "datasets" / "basic-dataset.json", json.dumps({"eval_cases": CASES}))
    return tmp_path


def report(*words):
    code = call(*words, "--report", "json=report.json")
    data = json.loads(Path("report.json").read_text(encoding="utf-8"))
    return code, {case["eval_id"]: case for case in data["cases"]}


def statuses(cases):
    return {name: case["status"] for name, case in cases.items()}


def test_a_scaffold_is_run_without_a_false_verdict(scaffold):
    dataset = scaffold / "tests" / "eval" / "datasets" / "basic-dataset.json"
    before = dataset.read_bytes()
    code, cases = report("run", "app")
    assert code == 3
    undecided = {"greeting": "NOT_EVALUATED", "weather_query": "NOT_EVALUATED"}
    # What is not stated is not checked; of the reference, ADK's default criterion says something.
    assert statuses(cases) == {**undecided, "capital_lookup": "PASSED"}
    write(scaffold / "tests" / "eval" / "eval_config.yaml", CONFIG)
    code, cases = report("run", "app")
    assert code == 3
    assert set(statuses(cases).values()) == {"NOT_EVALUATED"}
    metric = cases["capital_lookup"]["metrics"][0]
    assert (metric["name"], metric["score"]) == ("custom_response_quality", 5.0)
    assert metric["reason"] == "good; no threshold; set evaltui.criteria.custom_response_quality"
    write(scaffold / "tests" / "eval" / "eval_config.yaml", CONFIG + THRESHOLD)
    code, cases = report("run", "app")
    assert code == 1
    assert statuses(cases) == {"greeting": "FAILED", "weather_query": "FAILED", "capital_lookup": "PASSED"}
    assert call("compare", "app", "last", "last") == 0
    assert call("lint", ".") == 0
    assert dataset.read_bytes() == before


def test_a_migrated_dataset_is_scored_alike(scaffold, capsys):
    dataset = "tests/eval/datasets/basic-dataset.json"
    assert call("migrate", dataset, "new.evalset.json") == 0
    write(scaffold / "test_config.json", '{"criteria": {"response_match_score": 0.8}}')
    code, cases = report("run", "app", "new.evalset.json")
    assert (code, statuses(cases)["capital_lookup"]) == (3, "PASSED")
    assert statuses(cases)["greeting"] == "NOT_EVALUATED"
    assert cases["greeting"]["metrics"][0]["reason"].endswith("no reference response, not checked")
    capsys.readouterr()
    assert call("lint", "new.evalset.json", "test_config.json") == 0
    assert capsys.readouterr().out == ""


def test_runs_that_agents_cli_recorded_are_scored(scaffold, capsys):
    weather = {"name": "get_weather", "args": {"query": "San Francisco"}}
    said = {"role": "model", "parts": [{"text": "The capital of France is Paris."}]}
    called = {"author": "app", "content": {"role": "model", "parts": [{"function_call": weather}]}}
    answered = {"author": "app", "content": said}
    traces = [
        CASES[1] | {"agent_data": {"turns": [{"events": [called, answered]}]}},
        CASES[2] | {"responses": [{"response": said}], "agent_data": {"turns": [{"events": [answered]}]}},
    ]
    write(scaffold / "traces.json", json.dumps({"eval_cases": traces}))
    expecting = [CASES[1] | {"reference_trajectory": [{"parts": [{"function_call": weather}]}]}, CASES[2]]
    dataset = scaffold / "tests" / "eval" / "datasets" / "basic-dataset.json"
    dataset.write_text(json.dumps({"eval_cases": expecting}), encoding="utf-8")
    code, cases = report("score", "traces.json", "--home", "app")
    assert code == 0
    assert statuses(cases) == {"weather_query": "PASSED", "capital_lookup": "PASSED"}
    capsys.readouterr()
    assert call("inspect", str(dataset)) == 2
    assert "`evaltui run` runs its cases" in capsys.readouterr().err


def test_each_response_of_a_case_is_scored_as_a_repeat(scaffold, capsys):
    texts = ("The capital of France is Paris.", "Hello!")
    events = [{"author": "user", "content": user(CAPITAL)}, {"author": "a", "content": PARIS["response"]}]
    several = {"responses": [{"response": {"role": "model", "parts": [{"text": text}]}} for text in texts]}
    other = {
        "responses": several["responses"][1:],
        "agent_data": {"turns": [{"turn_index": 0, "events": events}]},
    }
    stopped = [
        {"author": "app", "content": {"parts": [{kind: {"name": "find", **value}}]}}
        for kind, value in (("function_call", {"args": {}}), ("function_response", {"response": {}}))
    ]
    for name, run, code, shown in (
        # The agent failed in a tool, and after it.
        *(
            (name, {"agent_data": {"turns": [{"events": some}]}}, 3, "the agent failed or was stopped")
            for name, some in (("crashed", stopped[:1]), ("halted", stopped))
        ),
        ("several", several, 1, "1/2 flaky"),
        ("unread", {"responses": [{"response": None}, several["responses"][0]]}, 3, "1 not evaluated"),
        ("lost", {"responses": [several["responses"][0], None]}, 3, "1 not evaluated"),
        ("none", {"responses": [None]}, 2, "without responses or agent_data of a run"),
        ("first", {"responses": several["responses"][:1]}, 0, "1 passed"),
        ("other", other, 0, "another text in responses than in agent_data, which is scored: capital_lookup"),
    ):
        path = write(scaffold / f"{name}.json", json.dumps({"eval_cases": [{**CASES[2], **run}]}))
        assert call("score", path, "--home", "app", "--only-paired") == code
        printed = capsys.readouterr()
        assert shown in " ".join((printed.out + printed.err).split())


def test_a_run_is_exported_as_results_that_score_alike(scaffold):
    # Takes seconds, which every process of the tests would pay at the top.
    from agentplatform._genai.types import EvaluationDataset

    words = ("--config", str(write(scaffold / "c.json", '{"criteria": {"response_match_score": 0.8}}')))
    code, cases = report("run", "app", "--runs", "2", *words)
    assert call("report", "app", "last", "--report", "csv=results.csv") == 0
    assert call("export", "app", "--run", "last", "--format", "dataset", "-o", "traces.json") == 0
    scored_code, scored = report("score", "traces.json", "--home", "app", *words)
    assert (scored_code, statuses(scored)) == (code, statuses(cases))
    assert [len(case["repeats"]) for case in scored.values()] == [2, 2, 2]
    traces = EvaluationDataset.model_validate_json(Path("traces.json").read_text(encoding="utf-8"))
    actual = [(case.eval_case_id, case.responses[0].response.parts[0].text) for case in traces.eval_cases]
    assert actual[2:4] == [("weather_query", "Hello!"), ("weather_query", "Hello!")]
    call_event = traces.eval_cases[2].agent_data.turns[0].events[0]
    assert call_event.content.parts[0].function_call.name == "get_weather"
    assert [bool(case.reference) for case in traces.eval_cases] == [False] * 4 + [True] * 2
    # Only an import makes expectations of answers.
    assert call("import", "traces.json", "--into", "actual.evalset.json") == 0
    imported = load_eval_set("actual.evalset.json").eval_cases[1].conversation[0]
    assert full_text(imported.final_response) == "Hello!"


def test_a_dataset_is_imported_and_again_updates_its_cases(scaffold, capsys):
    dataset = scaffold / "tests" / "eval" / "datasets" / "basic-dataset.json"
    words = ("import", str(dataset), "--into", "new.evalset.json", "--yes")
    assert call(*words, "--strict") == 0
    cases = json.loads(dataset.read_text(encoding="utf-8"))["eval_cases"]
    cases[0] |= {"reference": PARIS, "system_instruction": user("Be brief.")}
    dataset.write_text(json.dumps({"eval_cases": cases}), encoding="utf-8")
    before = Path("new.evalset.json").read_bytes()
    assert call(*words, "--strict") == 1
    assert "eval_cases[0].system_instruction: not taken" in capsys.readouterr().err
    assert Path("new.evalset.json").read_bytes() == before
    assert call(*words) == 0
    assert "1 changed, 2 unchanged" in capsys.readouterr().out
    first, *_ = load_eval_set("new.evalset.json").eval_cases
    assert full_text(first.conversation[0].final_response) == "The capital of France is Paris."
    assert not first.checks_unspecified


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--set", "basic-dataset"], 2, "is an EvaluationDataset; make an eval set of it"),
        (["--set", "old"], 2, "convert it with `evaltui migrate`"),
        (["--set", "broken.evalset.json"], 2, "eval_cases[0].eval_id"),
        (["--set", "odd", "--strict"], 1, "eval_cases[0]: an EvaluationDataset cannot hold this: no message"),
        (["--set", "odd"], 2, "has no case that a dataset can hold"),
        (["--set", "nothing"], 2, "no eval set 'nothing'"),
        (["--set", "odd", "--run", "last"], 2, "name either a run (--run) or an eval set (--set)"),
        (["--set", "odd", "--format", "otlp"], 2, "--set: needs --format dataset"),
    ],
)
def test_an_export_that_is_refused_writes_nothing(scaffold, capsys, words, code, message):
    write(scaffold / "app" / "old.test.json", '[{"query": "Hi", "reference": "Hello!"}]')
    write(scaffold / "broken.evalset.json", '{"eval_set_id": "broken", "eval_cases": [{"conversation": []}]}')
    odd = {"eval_set_id": "odd", "eval_cases": [{"eval_id": "a", "conversation": []}]}
    write(scaffold / "app" / "odd.evalset.json", json.dumps(odd))
    assert call("export", "app", "--format", "dataset", "-o", "new.json", *words) == code
    assert message in capsys.readouterr().err
    assert not Path("new.json").exists()


@pytest.mark.parametrize("command", ["inspect", "import"])
def test_files_that_hold_no_trace_are_named(scaffold, capsys, command):
    write(scaffold / "s.json", '{"eval_set_id": "s", "eval_case_results": []}')
    more = ["--into", "new.evalset.json"] if command == "import" else []
    assert call(command, "s.json", *more) == 2
    assert "holds no spans, it is a result file of ADK. `evaltui report` and" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("case", "place"),
    [
        ({"reference": {"response": {"text": "Rome."}}}, "reference"),
        ({"reference": {"response": {"parts": ["Rome."]}}}, "reference"),
        ({"reference": {"response": ["Rome."]}}, "reference"),
        ({"reference": {"parts": [{"text": "Rome."}]}}, "reference"),
        ({"conversation_history": ["Hello"]}, "conversation_history[0]"),
        ({"conversation_history": [user("Hello")]}, "conversation_history[0]"),
        (
            {"agent_data": {"turns": [{"events": [{"author": "user", "parts": [{"text": "Hi"}]}]}]}},
            "agent_data",
        ),
        ({"agent_data": {"turns": [{"events": ["Hi"]}]}}, "agent_data"),
    ],
)
def test_what_a_dataset_states_and_cannot_be_read_is_an_error_with_its_place(scaffold, case, place, capsys):
    dataset = scaffold / "tests" / "eval" / "datasets" / "basic-dataset.json"
    dataset.write_text(json.dumps({"eval_cases": [{**CASES[2], **case}]}), encoding="utf-8")
    for words in (("run", "app"), ("lint", "."), ("migrate", str(dataset), "new.evalset.json")):
        assert call(*words) in (1, 2)
        said = "".join(capsys.readouterr())
        assert place in said
        assert "must " in said
    assert not Path("new.evalset.json").exists()


def test_pytest_names_the_datasets_beside_an_agent(scaffold):
    words = [sys.executable, "-m", "pytest", "-q", "--evaltui", "--collect-only"]
    for folders, is_named in ((["app"], True), (["app", "tests"], False)):
        run = subprocess.run([*words, *folders], cwd=scaffold, capture_output=True, text=True, check=False)
        named = "1 eval set of app not collected; name: tests/eval/datasets/basic-dataset.json" in run.stdout
        assert (named, "::greeting" in run.stdout) == (is_named, not is_named)


def test_a_failed_check_of_a_response_without_reference_is_no_unchecked_response(scaffold, capsys):
    check = {"set": "basic-dataset", "case": "greeting", "contains": ["Servus"]}
    config = {"criteria": {}, "evaltui": {"answers": [check]}}
    write(scaffold / "c.json", json.dumps(config))
    call("run", "app", "basic-dataset:greeting", "--config", "c.json")
    printed = capsys.readouterr().out
    assert "✗ greeting" in printed
    assert "no reference response  Hello!" in printed
    assert "response not checked" not in printed
