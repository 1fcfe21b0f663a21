"""Cases with turns that respond to calls: recorded, run, and those that respond to nothing."""

import asyncio
import json

import pytest

from evaltui import EvalSet, Status, evaluate
from evaltui.cli import main
from evaltui.project.eval_sets import load_eval_set

RESPONSE = {"id": "x", "name": "approve", "response": {"ok": True}}


def responds(*messages):
    turns = [{"user_content": {"role": "user", "parts": [part]}} for part in messages]
    return EvalSet.model_validate(
        {"eval_set_id": "set", "eval_cases": [{"eval_id": "one", "conversation": turns}]}
    )


@pytest.mark.adk
@pytest.mark.thorough
def test_what_is_recorded_from_a_file_passes_whatever_ids_its_calls_have(tmp_path, capsys):
    pytest.importorskip("google.adk")
    from requesting_agents import DESK, write_agent

    folder = write_agent(tmp_path / "desk", DESK)
    turns = tmp_path / "turns.txt"
    turns.write_text('pay pay\n\nno\n\n/message hello\n\n/respond {"confirmed":\n true}\n\napprove\n\nfine\n')
    with pytest.raises(SystemExit) as left:
        main(["record", str(folder), "new.evalset.json", "--case", "one", "--turns", str(turns)])
    assert left.value.code == 0
    assert "? Confirm pay(amount=3)?" in capsys.readouterr().out
    path = folder / "new.evalset.json"
    case = load_eval_set(path).eval_cases[0]
    responses = [turn.user_content.parts[0].function_response for turn in case.conversation]
    assert [one and (one.name, one.response) for one in responses] == [
        None,
        ("adk_request_confirmation", {"confirmed": False}),
        None,
        ("adk_request_confirmation", {"confirmed": True}),
        None,
        ("approve", {"result": "fine"}),
    ]
    # A turn that responds to what does not wait, in a case of its own.
    data = json.loads(path.read_text("utf-8"))
    wrong = json.loads(
        json.dumps(data["eval_cases"][0]).replace('"approve", "response"', '"wire", "response"')
    )
    data["eval_cases"].append(wrong | {"eval_id": "wrong"})
    path.write_text(json.dumps(data), encoding="utf-8")
    one, other = asyncio.run(evaluate(folder, path)).cases
    assert one.status is Status.PASSED, one
    assert other.status is Status.ERROR
    assert "turn 6 responds to wire, but only approve waits for a response there" in str(
        other.repeats[0].error
    )
    as_adk = asyncio.run(evaluate(folder, path, adk_verdicts=True)).cases[0]
    assert as_adk.status is Status.FAILED
    assert "turn 2 responds to a call of an earlier run" in str(as_adk.repeats[0].error)


async def test_a_native_agent_that_waits_for_nothing_is_an_error(write_agent):
    agent = write_agent(
        """
        from evaltui import Agent, Rule, ScriptedModel
        root_agent = Agent(name="desk", model=ScriptedModel([Rule(user=".*", reply="ok")]))
        """
    )
    (case,) = (await evaluate(agent, responds({"text": "hi"}, {"function_response": RESPONSE}))).cases
    assert case.status is Status.ERROR
    assert "turn 2 responds to approve, but no call waits" in str(case.repeats[0].error)


async def test_a_callable_gets_the_response_in_its_session(write_agent):
    agent = write_agent(
        """
        def root_agent(message, session):
            given = session.content.parts[0].function_response
            return f"{given.name} {given.response}" if given else "waiting"
        """
    )
    (case,) = (await evaluate(agent, responds({"text": "hi"}, {"function_response": RESPONSE}))).cases
    said = [turn.response.actual for turn in case.repeats[0].turns]
    assert said == ["waiting", "approve {'ok': True}"]
