"""Results as tests in Python ask for them, and `AgentEvaluator` in the place of google-adk's."""

import json
from dataclasses import replace

import pytest

import evaltui
from evaltui import CasesFailedError, EvalConfig, EvalSet, evaluate, evaluate_sync
from evaltui.adk import AgentEvaluator
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult

AGENT = "def root_agent(message, session):\n    return 'found ' + message\n"
TEXT = {"criteria": {"response_match_score": 0.9}}


def case(eval_id, answer):
    turn = {"user_content": {"parts": [{"text": "hats"}]}, "final_response": {"parts": [{"text": answer}]}}
    return {"eval_id": eval_id, "conversation": [turn]}


GOOD, BAD = case("good", "found hats"), case("bad", "nothing at all")


def write_set(folder, *cases, name="basics.test.json"):
    path = folder / name
    path.write_text(json.dumps({"eval_set_id": "basics", "eval_cases": cases}))
    (folder / "test_config.json").write_text(json.dumps(TEXT))
    return path


WRONG = {
    "runs": (0, "x", 1.5, True),
    "pass_if": ("most", 7, 0),
    "parallel": (0, 1.5, None),
    "workers": (-1,),
    "timeout": (0, -1, "5", float("nan")),
    "record": ("nope", None),
    "tools": ("off",),
    "agent_name": (3,),
    "python": (3,),
    "home": (3,),
    "results_dir": (3, True),
    "limits": (3,),
}


async def test_a_wrong_setting_is_named_before_anything_runs(write_agent):
    agent = write_agent(AGENT)
    for name, value in ((name, value) for name, values in WRONG.items() for value in values):
        with pytest.raises(ValueError, match=f"^{name}: {value!r} is wrong: "):
            await evaluate(agent, [EvalSet(eval_set_id="s", eval_cases=[GOOD])], **{name: value})


@pytest.mark.parametrize("agent", [3, None, ["shop"], {}], ids=repr)
async def test_what_is_no_agent_is_said_by_its_type(agent):
    with pytest.raises(TypeError, match=rf"^an agent is a folder, .*, not of type {type(agent).__name__}$"):
        await evaluate(agent)


async def test_a_result_says_which_case_failed_and_why(write_agent):
    agent = write_agent(AGENT)
    result = await evaluate(agent, write_set(agent, GOOD, BAD))
    assert not result.passed
    assert result.case("good").passed
    assert result.case("bad").metric("response_match_score").score == 0
    bad, good = (result.case(name) for name in ("bad", "good"))
    assert [bool(one.metric("response_match_score")) for one in (bad, good)] == [False, True]
    assert [all(one.repeats) for one in (bad, good)] == [False, True]
    assert repr(result) == (
        "<RunResult FAILED: 1 of 2 passed | bad FAILED; response_match_score 0.00 < 0.90>"
    )
    assert repr(result.case("bad").repeats[0]) == "<RepeatResult FAILED; response_match_score 0.00 < 0.90>"
    assert repr(result.case("good").metrics[0]) == "<MetricResult response_match_score 1.00 ≥ 0.90; PASSED>"
    with pytest.raises(CasesFailedError, match=r"^bad FAILED: response 0\.00 < 0\.90$"):
        result.raise_if_failed()
    with pytest.raises(KeyError, match="worse is no case, only good, bad"):
        result.case("worse")
    with pytest.raises(KeyError, match="it has response_match_score"):
        result.case("bad").metric("safety_v1")


async def test_a_failure_names_the_differing_argument_and_no_secret(write_agent, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "f00d-secret-f00d")
    agent = write_agent(
        """
        import os
        from evaltui import events

        def root_agent(message, session):
            yield events.tool_call("find", {"key": os.environ["SHOP_API_KEY"]})
        """
    )
    case = {
        "eval_id": "find",
        "conversation": [
            {
                "user_content": {"parts": [{"text": "hats"}]},
                "intermediate_data": {"tool_uses": [{"name": "find", "args": {"key": "none"}}]},
            }
        ],
    }
    config = {"criteria": {"tool_trajectory_avg_score": 1.0}}
    result = await evaluate(agent, {"eval_set_id": "shop", "eval_cases": [case]}, config)
    with pytest.raises(CasesFailedError) as error:
        result.raise_if_failed()
    assert str(error.value) == 'find FAILED: find: key is "<SHOP_API_KEY>", expected "none"'


async def test_nothing_evaluated_has_not_passed(write_agent):
    result = evaltui.RunResult((), evaltui.Status.NOT_EVALUATED)
    assert not result.passed
    assert not result
    with pytest.raises(CasesFailedError, match="no case was run"):
        result.raise_if_failed()


async def test_a_crash_is_named(write_agent):
    agent = write_agent(
        "def root_agent(message, session):\n    raise RuntimeError('out of stock\\n::error::x')\n"
    )
    result = await evaluate(agent, write_set(agent, GOOD))
    assert "RuntimeError: out of stock ::error::x" in repr(result.case("good"))
    # pytest shows it, and CI takes the begin of a line for a command.
    assert "\n" not in repr(result)


def test_without_a_loop_by_its_dotted_name(write_agent, monkeypatch):
    agent = write_agent(AGENT)
    monkeypatch.chdir(agent.parent)
    result = evaluate_sync("my_agent", write_set(agent, GOOD), runs=2)
    assert result.passed
    assert result
    assert len(result.case("good").repeats) == 2
    assert evaluate_sync("my_agent.agent", agent / "basics.test.json").passed


@pytest.mark.compat
async def test_a_data_frame_has_a_row_per_metric(write_agent):
    pytest.importorskip("pandas")
    agent = write_agent(AGENT)
    frame = (await evaluate(agent, write_set(agent, GOOD, BAD), runs=2)).to_pandas()
    text = frame[frame.metric == "response_match_score"]
    assert list(zip(text.eval_id, text.repeat, text.score, strict=True)) == [
        ("good", 0, 1.0), ("good", 1, 1.0), ("bad", 0, 0.0), ("bad", 1, 0.0)
    ]  # fmt: skip


@pytest.mark.compat
async def test_a_data_frame_has_what_failed_to_run(write_agent):
    pytest.importorskip("pandas")
    agent = write_agent("def root_agent(message, session):\n    raise RuntimeError('out of stock')\n")
    result = await evaluate(agent, write_set(agent, GOOD, BAD))
    not_run = CaseResult.not_run(CaseId("basics.test.json", "late"), "basics")
    frame = replace(result, cases=(*result.cases, not_run)).to_pandas()
    rows = zip(frame.eval_id, frame.case_status, frame.status, frame.metric, strict=True)
    assert [*rows] == [
        ("good", "ERROR", "ERROR", None),
        ("bad", "ERROR", "ERROR", None),
        ("late", "NOT_EVALUATED", "NOT_EVALUATED", None),
    ]
    assert "out of stock" in frame.reason[0]


async def test_the_evaluator_of_adk_by_its_import_line(write_agent, capsys):
    agent = write_agent(AGENT)
    write_set(agent, GOOD)
    assert len((await AgentEvaluator.evaluate(str(agent), str(agent))).case("good").repeats) == 2
    write_set(agent, GOOD, BAD)
    with pytest.raises(AssertionError, match="bad FAILED"):
        await AgentEvaluator.evaluate(str(agent), str(agent), num_runs=1)
    assert "nothing at all" in capsys.readouterr().out
    with pytest.raises(AssertionError):
        await AgentEvaluator.evaluate(str(agent), str(agent), num_runs=1, print_detailed_results=False)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"num_runs": 0}, "num_runs"),
        ({"artifact_service": object()}, "artifact_service"),
        ({"output_file": "out.csv"}, "output_file"),
    ],
)
async def test_what_it_cannot_do_is_refused(write_agent, given, says):
    agent = write_agent(AGENT)
    with pytest.raises(ValueError, match=says):
        await AgentEvaluator.evaluate(str(agent), str(write_set(agent, GOOD)), **given)


async def test_a_folder_in_which_a_file_cannot_be_reached_is_refused(write_agent, tmp_path):
    agent = write_agent(AGENT)
    folder, shared = tmp_path / "cases", tmp_path / "shared"
    folder.mkdir()
    write_set(folder, GOOD)
    (folder / "more").symlink_to(shared)
    with pytest.raises(ValueError, match="more: no such file or folder"):
        await AgentEvaluator.evaluate(str(agent), str(folder))
    shared.mkdir()
    write_set(shared, BAD, name="More.TEST.json")
    with pytest.raises(CasesFailedError, match="bad"):
        await AgentEvaluator.evaluate(str(agent), str(folder))


async def test_a_folder_without_test_files_is_refused(write_agent):
    agent = write_agent(AGENT)
    with pytest.raises(ValueError, match=r"no \*\.test\.json"):
        await AgentEvaluator.evaluate(str(agent), str(agent))


@pytest.mark.adk
@pytest.mark.compat
async def test_models_of_google_adk_and_its_own_evaluator_agree(write_agent, monkeypatch):
    theirs = pytest.importorskip("google.adk.evaluation.agent_evaluator").AgentEvaluator
    from google.adk.evaluation.eval_config import EvalConfig as AdkConfig
    from google.adk.evaluation.eval_set import EvalSet as AdkSet

    source = """
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.genai import types

    class Model(BaseLlm):
        async def generate_content_async(self, request, stream=False):
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="found hats")]))

    root_agent = LlmAgent(name="desk", model=Model(model="m"))
    """
    agent = write_agent(source, name="moved_agent")
    (agent / "__init__.py").write_text("from . import agent\n")
    monkeypatch.syspath_prepend(agent.parent)
    for evaluator in (theirs, AgentEvaluator):
        for cases, passes in (([GOOD], True), ([GOOD, BAD], False)):
            given = AdkSet.model_validate({"eval_set_id": "basics", "eval_cases": cases})
            config = AdkConfig.model_validate(TEXT)
            evaluating = evaluator.evaluate_eval_set("moved_agent", given, eval_config=config, num_runs=1)
            if passes:
                await evaluating
            else:
                with pytest.raises(AssertionError):
                    await evaluating


async def test_models_of_ours_are_taken_as_well(write_agent):
    agent = write_agent(AGENT)
    given = EvalSet.model_validate({"eval_set_id": "basics", "eval_cases": [GOOD]})
    result = await AgentEvaluator.evaluate_eval_set(
        str(agent), given, eval_config=EvalConfig.model_validate(TEXT)
    )
    assert result.passed
    with pytest.raises(ValueError, match="eval_config is required"):
        await AgentEvaluator.evaluate_eval_set(str(agent), given)


def test_the_config_of_a_test_file_is_found(tmp_path):
    config = AgentEvaluator.find_config_for_test_file(write_set(tmp_path, GOOD))
    assert config.criteria.keys() == {"response_match_score"}
