"""A case whose expected answers have no word is known never to pass, wherever it is made or read."""

import pytest
from eval_data import make_case, write_eval_set, write_test_config

from evaltui.core.metrics.response_match import never_passes
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.outcome import Status
from evaltui.core.scoring import score_case
from evaltui.project.lint import lint

PICTURE = {"inline_data": {"mime_type": "image/png", "data": "AAAA"}}


def turn(*parts):
    answer = {"final_response": {"role": "model", "parts": list(parts)}} if parts else {}
    return {"user_content": {"role": "user", "parts": [{"text": "Hello"}]}, **answer}


def asking(*parts):
    """A turn that ends with a request to the user."""
    calls = [{"name": "adk_request_confirmation", "args": {}}]
    return turn(*parts) | {"intermediate_data": {"tool_uses": calls}}


def case(*turns):
    return EvalCase.model_validate(make_case("one", *list(turns)))


WORDS = turn({"text": "Hi there"})


@pytest.mark.parametrize(
    ("turns", "threshold"),
    [
        ([turn({"text": "👍"})], 0.8),
        ([turn({"text": "…!?"})], 0.01),
        ([turn({"text": ""})], 0.8),
        ([turn(PICTURE)], 0.8),
        ([turn({"text": "I think", "thought": True})], 0.8),
        ([turn()], 0.8),
        ([WORDS, turn({"text": "👍"})], 0.8),
        ([WORDS, turn({"text": "👍"})], 0.5),
        ([WORDS], 1.0),
        ([turn({"text": "👍"})], 0.0),
        ([WORDS, turn(PICTURE, {"text": "ok"})], 1.0),
        ([asking(), WORDS], 0.8),
        ([asking({"text": "👍"}), WORDS], 0.8),
        ([asking(), turn()], 0.8),
    ],
)
async def test_it_is_said_of_the_cases_that_fail_even_by_what_they_expect(turns, threshold):
    config = EvalConfig.model_validate({"criteria": {"response_match_score": threshold}})
    one = case(*turns)
    scored = await score_case(one, one.conversation, config)

    assert bool(never_passes(one, config, ())) is (scored.metrics[0].status is Status.FAILED)


def test_the_turns_the_metric_and_what_to_do_are_named():
    config = EvalConfig.default()

    assert never_passes(case(WORDS, turn({"text": "👍"})), config, ()) == (
        "never passes: turn 2 expects a response without words; response_match_score scores it 0 "
        "(threshold 0.8). Mark it as context, or remove response_match_score from the config"
    )
    assert never_passes(case(WORDS, turn({"text": "👍"})), config, {1}) == ""
    assert "turns 1, 2, 3 and 2 more expect" in never_passes(case(*[turn()] * 5), config, ())
    assert never_passes(case(turn()), EvalConfig(criteria={"tool_trajectory_avg_score": 1.0}), ()) == ""


def test_lint_says_so(tmp_path):
    path = write_eval_set(tmp_path, "one", make_case("one", turn({"text": "👍"})))
    (problem,) = lint([path])
    assert problem.message.startswith("never passes: turn 1 expects a response without words")

    write_eval_set(tmp_path, "one", make_case("one", WORDS, turn({"text": "👍"})))
    write_test_config(tmp_path, criteria={"response_match_score": 0.8}, evaltui={"turns": [context(1)]})
    assert lint([path]) == []


def context(number):
    return {"set": "one", "case": "one", "turn": number, "mode": "context"}


SCORE = "tool_trajectory_avg_score"


@pytest.mark.parametrize(
    ("criteria", "optional", "state", "passes"),
    [
        ({SCORE: 1.0}, [], {}, False),
        ({SCORE: 1.0}, [SCORE], {}, False),
        ({SCORE: 1.0}, [], {"a": 1}, False),
        ({SCORE: 1.0}, [SCORE], {"a": 1}, True),
        ({}, [], {"a": 1}, True),
        ({SCORE: 1.0, "response_match_score": 0.8}, [], {}, False),
    ],
)
@pytest.mark.parametrize("mode", ["context", "skip"])
async def test_lint_names_a_case_whose_turns_are_all_marked(
    mode, criteria, optional, state, passes, tmp_path
):
    data = make_case("one", WORDS, WORDS, final_session_state=state)
    path = write_eval_set(tmp_path, "one", data)
    block = {"turns": [context(0), context(1) | {"mode": mode}], "optional": optional}
    write_test_config(tmp_path, criteria=criteria, evaltui=block)
    names = [problem.message for problem in lint([path]) if problem.path[:1] == ("eval_cases",)]
    passes = passes or (mode == "skip" and bool(state or len(criteria) > 1))
    what = {"context": "context; nothing", "skip": "skip or context; no calls"}[mode]
    assert names == ([] if passes else [f"never passes: all turns are {what} to score"])

    config = EvalConfig.model_validate({"criteria": criteria, "evaltui": block})
    one = EvalCase.model_validate(data)
    scored = await score_case(one, one.conversation, config, eval_set_id="one", final_state=state)
    assert (scored.status is Status.PASSED) is passes
