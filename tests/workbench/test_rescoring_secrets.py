"""A case with a secret in it is not scored by a log that has no secrets."""

from __future__ import annotations

import pytest

from evaltui import CaseResult, EvalCase, EvalConfig, Invocation, Status
from evaltui.core.model.outcome import RepeatResult
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.secrets import Secrets
from evaltui.workbench.result.rescoring import score_again
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef

RIGHT, WRONG = (f"sk-{letter * 24}" for letter in "ab")


def turn(key: str, text: str = "Done.") -> dict[str, object]:
    return {
        "user_content": {"parts": [{"text": "Log in"}]},
        "final_response": {"parts": [{"text": text}]},
        "intermediate_data": {"tool_uses": [{"name": "log_in", "args": {"key": key}}]},
    }


def case(key: str, text: str = "Done.") -> StoredCase:
    return StoredCase.of(EvalCase.model_validate({"eval_id": "one", "conversation": [turn(key, text)]}))


def config(**evaltui: object) -> EvalConfig:
    return EvalConfig.model_validate({"criteria": {"tool_trajectory_avg_score": 1.0}, "evaltui": evaltui})


def scored(status: Status) -> CaseOutcome:
    result = CaseResult("one", status, (), eval_set_id="s", repeats=(RepeatResult(status, ()),))
    return CaseOutcome(ResultInMemory.of(result), RunRef(1), case(RIGHT), config())


async def again(last: CaseOutcome, now: StoredCase, by: EvalConfig) -> CaseOutcome:
    secrets = Secrets()
    actual = {0: (secrets.masked(Invocation.model_validate(turn(WRONG))),)}
    return await score_again(last, actual, now, by, secrets)


@pytest.mark.parametrize("key", [RIGHT, WRONG])
async def test_a_failure_does_not_become_a_pass_because_both_keys_are_masked(key):
    new = await again(scored(Status.FAILED), case(key, "Well done."), config())
    assert (new.result.status, new.undecided) == (Status.FAILED, True)
    # Nor by the next edit.
    later = await again(new, case(key, "Very well done."), config())
    assert (later.result.status, later.undecided) == (Status.FAILED, True)


async def test_a_pass_is_not_shown_as_one_by_another_key():
    new = await again(scored(Status.PASSED), case(WRONG), config())
    assert new.undecided


async def test_what_the_key_does_not_decide_is_scored_at_once():
    passed = await again(scored(Status.PASSED), case(RIGHT, "Well done."), config())
    assert (passed.result.status, passed.undecided) == (Status.PASSED, False)
    rule = {"tool": "log_in", "arg": "key", "match": "ignore"}
    relaxed = await again(scored(Status.FAILED), case(RIGHT), config(rules=[rule]))
    assert (relaxed.result.status, relaxed.undecided) == (Status.PASSED, False)
