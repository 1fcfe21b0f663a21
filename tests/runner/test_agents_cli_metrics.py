"""Metrics of agents-cli: code and prompts of an `eval_config.yaml`, called with its instances."""

from __future__ import annotations

import json
from textwrap import indent

import pytest

from evaltui import evaluate
from evaltui.core.model.outcome import MetricResult, Status
from tests.project.layouts import write

AGENT = """
from evaltui import events


async def root_agent(message, session):
    yield events.tool_call("find", {"what": message})
    yield events.tool_result("find", {"n": 1})
    yield "Hello!"
"""
JUDGE = 'def ask(prompt):\n    return {answer!r}.replace("PROMPT", repr(prompt).replace(chr(34), ""))\n'
HI = {"role": "user", "parts": [{"text": "Hi"}]}
HELLO = {"response": {"role": "model", "parts": [{"text": "Hello!"}]}}
CASE = {
    "eval_case_id": "a",
    "prompt": HI,
    "reference": HELLO,
    "context": "c",
    "note": [1],
    "draft": '{"score": 4}',
}
TURNS = [{"turn_index": n, "events": [{"author": "user", "content": HI}]} for n in range(2)]
SEEN = "import json\ndef evaluate(instance):\n    return {'score': 1, 'explanation': json.dumps(instance)}\n"
OK, BAD, INFO = Status.PASSED, Status.FAILED, Status.INFORMATIONAL


def yaml_of(definition: str, name: str = "mine", criteria: str = "") -> str:
    block = f"evaltui:\n  criteria: {criteria}\n" if criteria else ""
    body = indent(definition, "    ")
    return f"metrics_to_run: [{name}]\ncustom_metrics:\n  - name: {name}\n{body}\n{block}"


def inline(code: str) -> str:
    return "custom_function: |\n" + indent(code, "  ")


async def scored(folder, config: str, case=CASE, agent: str = AGENT) -> MetricResult:
    """The result of the metric of a config in a project of agents-cli."""
    write(folder / "pyproject.toml")
    write(folder / "app" / "agent.py", agent)
    write(folder / "tests/eval/eval_config.yaml", config)
    path = write(folder / "tests/eval/datasets/basic.json", json.dumps({"eval_cases": [case]}))
    result = await evaluate(folder / "app", path)
    return result.cases[0].repeats[0].metrics[0]


@pytest.mark.parametrize("case", [CASE, {"eval_case_id": "b", "agent_data": {"turns": TURNS}, "note": 2}])
async def test_a_function_gets_the_instance_of_the_evaluation_sdk(tmp_path, case):
    types = pytest.importorskip("agentplatform._genai.types")
    result = await scored(tmp_path, yaml_of(inline(SEEN)), case)
    instance = json.loads(result.reason.partition("; no threshold")[0])
    # As its CustomMetricHandler makes it of a case that agents-cli ran.
    data = {**instance, "responses": [{"response": instance["response"]}]}
    del data["response"]
    read = types.EvalCase.model_validate(data)
    assert instance == {
        **read.model_dump(exclude={"responses"}, mode="json", exclude_none=True),
        "response": HELLO["response"],
    }
    kept = {name: value for name, value in case.items() if name != "agent_data"}
    assert kept.items() <= instance.items()
    turns = instance["agent_data"]["turns"]
    assert [turn["turn_index"] for turn in turns] == [0, 1][: len(turns)]
    parts = [next(iter(event["content"]["parts"][0])) for event in turns[-1]["events"]]
    # Events of a single message are those of the agent alone.
    message = [] if "prompt" in case else ["text"]
    assert parts == [*message, "function_call", "function_response", "text"]


RETURNED = {
    "a number": ("4", 4.0, INFO, ""),
    "a truth value": ("True", 1.0, INFO, ""),
    "a dict": ("{'score': 0.5, 'explanation': 'so so'}", 0.5, INFO, "so so"),
    "a number in quotes": ("{'score': '2'}", 2.0, INFO, ""),
    "no score": ("{'score': None, 'explanation': 'why'}", None, Status.NOT_EVALUATED, "why"),
    "a result of the SDK": (
        "type('R', (), {'metric_name': 'm', 'score': 3, 'explanation': 'x'})()",
        3.0,
        INFO,
        "x",
    ),
    "a text": ("'good'", None, Status.ERROR, "evaluate returned a str"),
    "no number": ("{'score': 'good'}", None, Status.ERROR, "the score 'good' is not a number"),
    "infinite": ("float('inf')", None, Status.ERROR, "the score is inf"),
}


@pytest.mark.parametrize("name", RETURNED)
async def test_a_function_gives_a_score_without_a_verdict(tmp_path, name):
    returned, score, status, reason = RETURNED[name]
    config = yaml_of(inline(f"def evaluate(instance):\n    return {returned}\n"))
    result = await scored(tmp_path, config)
    assert (result.score, result.status, result.threshold) == (score, status, None)
    assert reason in result.reason
    hint = "no threshold; set evaltui.criteria.mine"
    assert result.reason.endswith(hint) is (status is INFO)


@pytest.mark.parametrize(
    ("criteria", "status"),
    [
        ("{mine: 4}", OK),
        ("{mine: 4.5}", BAD),
        ("{mine: {threshold: 4.5, lower_is_better: true}}", OK),
        ("{mine: {threshold: 3, lower_is_better: true}}", BAD),
    ],
)
async def test_a_threshold_of_evaltui_gives_a_verdict(tmp_path, criteria, status):
    write(tmp_path / "tests/eval/quality.py", "def evaluate(instance):\n    return 4\n")
    result = await scored(tmp_path, yaml_of("custom_function_file: quality.py", criteria=criteria))
    assert (result.score, result.status) == (4.0, status)
    assert "no threshold" not in result.reason


BROKEN = {
    "raises": ("def evaluate(instance):\n\n    return instance['x']\n", "KeyError", "7"),
    "is no Python": ("def evaluate(instance):\n    return (\n", "SyntaxError", "6"),
    "has no evaluate": ("x = 1\n", "TypeError", None),
    "fails to load": ("import nosuchmodule\n", "ModuleNotFoundError", "5"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("is_file", [False, True])
async def test_an_error_of_a_function_has_its_line_in_the_file_of_the_user(tmp_path, name, is_file):
    code, kind, line = BROKEN[name]
    write(tmp_path / "tests/eval/quality.py", "\n\n\n\n" + code)
    config = yaml_of("custom_function_file: quality.py" if is_file else inline(code))
    result = await scored(tmp_path, config)
    assert (result.status, result.error.type) == (Status.ERROR, kind)
    if line is not None:
        file = "quality.py" if is_file else "eval_config.yaml"
        assert f'{file}", line {line}' in result.error.traceback
        assert "concurrent/futures" not in result.error.traceback
    if name == "raises":
        assert result.error.where == f"{file}:{line} in evaluate"


@pytest.mark.parametrize("quoting", ["'{}'", '"{}"'])
async def test_code_in_quotes_runs_as_well(tmp_path, quoting):
    code = "def evaluate(instance): return 3" if "'" in quoting else "def evaluate(i):\\n  return 3"
    result = await scored(tmp_path, yaml_of("custom_function: " + quoting.format(code)))
    assert result.score == 3.0


JUDGED = {
    "the mean of its answers": ('{"score": 2, "explanation": "so"}', "{prompt} {response}", 2.0, INFO),
    "the filled prompt": (
        '{"score": 1, "explanation": "PROMPT"}',
        "P={prompt} R={response} REF={reference} C={context} N={note[0]} X={ other } {1}",
        1.0,
        INFO,
    ),
    "no JSON": ("good", "{response}", None, Status.ERROR),
    "an answer that the prompt states": (
        '{"score": 1}',
        'Polite? {response} {"score": 1} if so, {"score": 0} if not',
        1.0,
        INFO,
    ),
    "a quotation of the case": ('{"score": 4}', "{draft}", None, Status.ERROR),
    "a preamble": ('Here is my evaluation:\n```json\n{"score": 2}\n```', "{response}", 2.0, INFO),
    "a score in a sentence": ('I would not say {"score": 5}. It is 1.', "{response}", None, Status.ERROR),
    "a correction": ('{"score": 5} {"correction": "should be 1"}', "{response}", None, Status.ERROR),
    "a list of another score": ('{"score": 5} [{"score": 1}]', "{response}", None, Status.ERROR),
    "a key in another case": ('{"score": 5}\n{"Score": 1}', "{response}", None, Status.ERROR),
    "a key twice in two cases": ('{"score": 5, "Score": 1}', "{response}", None, Status.ERROR),
    "a score below a member that the prompt names": (
        '{"score": 5, "parts": [{"score": 2}]}',
        "Give each of the parts a score, then all of {response}",
        5.0,
        INFO,
    ),
    "a score beside another member": (
        '{"quoted": {"score": 1}, "score": 5}',
        "{response}",
        None,
        Status.ERROR,
    ),
    "a score and its correction": (
        '{"score": 5, "correction": "should be 1"}',
        "{response}",
        None,
        Status.ERROR,
    ),
    "only a score below another member": ('{"quoted": {"score": 1}}', "{response}", None, Status.ERROR),
    "two scores": ('{"score": 1} {"score": 2}', "{response}", None, Status.ERROR),
}


@pytest.mark.parametrize("name", JUDGED)
async def test_a_judge_of_agents_cli_scores_the_conversation(tmp_path, name):
    answer, template, score, status = JUDGED[name]
    write(tmp_path / "app" / "judges.py", JUDGE.format(answer=answer))
    definition = f"prompt_template: '{template}'\njudge_model: app.judges:ask\njudge_model_sampling_count: 2"
    result = await scored(tmp_path, yaml_of(definition))
    assert (result.score, result.status) == (score, status)
    assert (result.judge.model, result.judge.asked) == ("app.judges:ask", 2)
    if name == "the filled prompt":
        (turn,) = result.per_invocation
        assert "P=Hi R=Hello! REF=Hello! C=c N=1 X={ other } {1}" in turn.reason


@pytest.mark.parametrize(("score", "status"), [(5, BAD), (1, OK)])
async def test_a_judge_of_agents_cli_may_say_that_lower_is_better(tmp_path, score, status):
    write(tmp_path / "app" / "judges.py", JUDGE.format(answer=f'{{"score": {score}}}'))
    config = yaml_of(
        "prompt_template: 'Harm of {response}'\njudge_model: app.judges:ask",
        criteria="{mine: {threshold: 2, lower_is_better: true}}",
    )
    result = await scored(tmp_path, config)
    assert (result.score, result.status, result.lower_is_better) == (score, status, True)
    assert {turn.status for turn in result.per_invocation} == {status}


@pytest.mark.parametrize("name", ["reference", "refrence", "prompt.text"])
async def test_a_placeholder_without_its_member_is_not_judged(tmp_path, name):
    definition = f"prompt_template: '{{{name}}}'\njudge_model: app.judges:ask"
    write(tmp_path / "app" / "judges.py", JUDGE.format(answer="{}"))
    result = await scored(tmp_path, yaml_of(definition), {"eval_case_id": "a", "prompt": HI})
    assert (result.status, result.judge) == (Status.NOT_EVALUATED, None)
    assert result.reason == f"the case has no {{{name}}}, which prompt_template reads"


async def test_without_a_response_no_function_is_called(tmp_path):
    silent = "async def root_agent(message, session):\n    return\n    yield\n"
    result = await scored(tmp_path, yaml_of(inline("raise RuntimeError")), agent=silent)
    assert (result.status, result.reason) == (Status.NOT_EVALUATED, "no response text")
