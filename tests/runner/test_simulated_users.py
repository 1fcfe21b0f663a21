"""Cases whose user is simulated: native agents and functions in child processes, models on this machine."""

from __future__ import annotations

import asyncio
import json

import pytest
from eval_data import make_case, make_set, make_turn
from gemini_server import Answer, Hold, chunk, fails, says
from recorded_runs import recorded_file, run
from simulated_cases import ECHO, PEOPLE, config, said, scenario, simulate

from evaltui import EvalConfig, Status, evaluate
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.events import SIMULATED_USER

NATIVE = """
    from evaltui import Agent, Rule, ScriptedModel

    def note(text: str) -> str:
        '''Keep a text.'''
        return "kept"

    RULES = [
        Rule(user="(?i)thank", reply="You are welcome."),
        Rule(user=".*", call=lambda s: ("note", {"text": s[0]})),
        Rule(user=".*", after_tool="note", reply=lambda s: f"I noted: {s[0]}"),
    ]
    root_agent = Agent("clerk", ScriptedModel(RULES), "Note.", [note])
"""


@pytest.fixture
def echo(write_agent):
    return write_agent(ECHO, people=PEOPLE)


@pytest.fixture
def native(write_agent):
    return write_agent(NATIVE, people=PEOPLE)


async def test_a_native_agent_and_its_simulated_user(native):
    ran = await simulate(native, scenario("a lamp|thank you|Bye. </FINISHED>"))

    (case,) = ran.cases
    assert case.error is None
    assert case.status is Status.PASSED
    assert said(ran) == [
        ("hi", "I noted: hi"),
        ("a lamp", "I noted: a lamp"),
        ("thank you", "You are welcome."),
    ]
    assert [turn.expectation for turn in case.turns] == ["simulated"] * 3
    assert (
        case.stopped == case.repeats[0].stopped == "the simulated user ended the conversation after 3 turns"
    )


async def test_what_happened_is_told_in_order_and_the_users_model_is_seen(echo):
    ran = await simulate(echo, scenario("more|</finished>"))

    (case,) = ran.cases
    kinds = [(event.kind, event.turn) for event in ran.events if event.kind in ("user", "model_request")]
    assert kinds == [("user", 0), ("model_request", 0), ("user", 1), ("model_request", 1)]
    requests = ran.of_kind("model_request")
    assert {event.agent for event in requests} == {SIMULATED_USER}
    assert (requests[0].data["model"], requests[0].data["prompt"]) == ("people:by_plan", "simulated_user/1")
    answers = [event.content["parts"][0]["text"] for event in ran.of_kind("model_response")]
    assert answers == ["more", "</finished>"]
    last = ran.events[-1]
    assert (last.kind, last.data["stopped"], last.data["text"]) == ("console", "signal", case.stopped)
    # The model calls of a function are unknown, and those of the user are not taken for them.
    assert {one.name: one.score for one in case.metrics}["inference_call_count_v1"] is None


@pytest.mark.parametrize(("most", "turns"), [(1, 1), (3, 3)])
async def test_the_limit_ends_the_conversation_and_it_is_scored(echo, most, turns):
    by = config("people:chatty", max_allowed_invocations=most)
    ran = await simulate(echo, scenario(""), by=by)
    (case,) = ran.cases
    assert case.status is Status.PASSED
    assert len(case.turns) == turns
    assert case.stopped == f"stopped at the limit of {turns} turn{'s' * (turns > 1)}"


@pytest.mark.parametrize(("begin", "most"), [("Never mind </finished>", 20), ("hi", 0)])
async def test_where_nothing_is_said_nothing_passes(echo, begin, most):
    by = config("people:chatty", max_allowed_invocations=most)
    ran = await simulate(echo, scenario("x", begin=begin), by=by)
    (case,) = ran.cases
    assert (case.status is Status.PASSED, case.turns) == (False, ())
    assert case.stopped.endswith("0 turns")


async def test_without_a_limit_it_goes_on_until_the_case_takes_too_long(native):
    by = config("people:chatty", max_allowed_invocations=-1)
    ran = await simulate(native, scenario(""), by=by, timeout=3)
    (case,) = ran.cases
    assert case.status is Status.ERROR
    assert case.error.type == "TimeoutError"
    assert len(case.turns) > 20
    assert case.stopped == ""


async def test_a_user_who_has_no_message_is_an_error_and_what_was_said_is_kept(echo):
    plans = {
        "a lamp|raise": "the simulated user has no next message: out of ideas",
        "a lamp|five": "people:by_plan returned a int; it must return its answer as a str",
        "a lamp| ": "the simulated user sent nothing after 2 turns",
    }
    ran = await simulate(echo, *(scenario(plan, f"case{n}") for n, plan in enumerate(plans)))
    for number, (case, message) in enumerate(zip(ran.cases, plans.values(), strict=True)):
        assert case.status is Status.ERROR
        assert (case.error.type, case.error.kind) == ("SimulatedUserError", ErrorKind.JUDGE)
        assert message in case.error.message
        assert said(ran, number) == [("hi", "1: hi"), ("a lamp", "2: a lamp")]
        assert case.stopped == ""
    assert ran.cases[0].error.where.startswith("people.py:")
    assert "out of ideas" in ran.cases[0].error.traceback


async def test_a_user_whom_nobody_plays_is_an_error(echo):
    ran = await simulate(echo, scenario("x"), by=config("people:nobody"))
    assert "has no function nobody" in ran.cases[0].error.message
    assert said(ran) == [("hi", "1: hi")]


async def test_an_agent_that_breaks_is_an_error_of_its_own(write_agent):
    agent = write_agent(
        "def root_agent(message, session):\n    return {'hi': 'Yes?'}[message]", people=PEOPLE
    )
    ran = await simulate(agent, scenario("more"))
    assert (ran.cases[0].error.type, ran.cases[0].error.kind) == ("KeyError", ErrorKind.AGENT)
    assert said(ran) == [("hi", "Yes?"), ("more", "")]


@pytest.mark.parametrize("calls", [False, True])
async def test_the_user_hears_of_calls_only_where_that_is_asked_for(echo, calls):
    ran = await simulate(echo, scenario(""), by=config("people:shows", include_function_calls=calls))
    heard = [event.data["text"] for event in ran.of_kind("console") if event.data["source"] == "stdout"]
    told = ['root_agent calls the tool note with {"text": "hi"}', "", 'the tool note returns {"kept": 1}', ""]
    assert heard == ["user: hi", "", *(told if calls else ()), "root_agent: 1: hi"]


async def test_state_repeats_and_sides(echo):
    cases = [scenario("a|b|</finished>", f"case{n}") for n in range(3)]
    ran = await simulate(echo, *cases, runs=2, parallel=4)
    for case in ran.cases:
        assert [len(repeat.turns) for repeat in case.repeats] == [3, 3]
        assert [repeat.final_state for repeat in case.repeats] == [{"count": 3}] * 2


async def test_a_user_who_is_to_speak_is_not_evaluated_and_nobody_is_asked(echo):
    by = EvalConfig.model_validate({"user_simulator_config": {"type": "llm_audio"}})
    ran = await simulate(echo, scenario("x"), by=by)
    (case,) = ran.cases
    assert case.status is Status.NOT_EVALUATED
    assert "llm_audio" in case.metrics[0].reason
    assert ran.events == []


# Through google-genai's own client


async def test_gemini_plays_the_user(echo, gemini):
    gemini.script(
        fails(429, "slow down", retry_delay="0s"),
        says("a ", "lamp", thought="what do I want?"),
        says("Thanks </finished>"),
    )
    by = config(
        "gemini-test", model_configuration={"temperature": 0.2, "thinkingConfig": {"thinkingBudget": 9}}
    )
    ran = await simulate(echo, scenario("Get a lamp.", user_persona="EXPERT"), by=by)

    assert said(ran) == [("hi", "1: hi"), ("a lamp", "2: a lamp")]
    assert ran.cases[0].status is Status.PASSED
    assert gemini.unused == 0
    first, second = gemini.requests[1:]
    assert "Get a lamp." in first.said
    assert "user: hi\n\nroot_agent: 1: hi" in first.said
    assert "root_agent: 2: a lamp" in second.said
    sent = first.body["generationConfig"]
    assert (sent["temperature"], list(sent["thinkingConfig"].values())) == (0.2, [9])
    assert (ran.calls.live, ran.calls.replayed) == (2, 0)


NO_ANSWERS = {
    "Get nothing.": (Answer([chunk(finishReason="STOP")]), "without text"),
    "Get refused.": (Answer([chunk(finishReason="SAFETY")]), "SAFETY"),
    "Get blocked.": (
        Answer([{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}]),
        "PROHIBITED_CONTENT",
    ),
    "Get too many.": (fails(429, "no more", retry_delay="0s"), "(tried 5 times): 429"),
    "Get not allowed.": (fails(403, "not you"), "403"),
    "Get half.": (
        Answer([chunk({"text": "Thank you </fini"}, finishReason="MAX_TOKENS")]),
        "its message was cut off (MAX_TOKENS)",
    ),
}


async def test_no_answer_is_an_error_of_the_user(echo, gemini):
    gemini.respond = lambda request: next(
        answer for plan, (answer, _) in NO_ANSWERS.items() if plan in request.said
    )
    cases = [scenario(plan, plan) for plan in NO_ANSWERS]
    ran = await simulate(echo, *cases, by=config("gemini-test"))
    for number, case in enumerate(ran.cases):
        assert case.status is Status.ERROR
        assert case.error.type == "SimulatedUserError"
        assert NO_ANSWERS[case.eval_id][1] in case.error.message
        assert said(ran, number) == [("hi", "1: hi")]


async def test_advice_on_a_user_names_its_own_setting(echo, gemini):
    gemini.models = ["gemini-test"]
    ran = await simulate(echo, scenario("one", "plan"), by=config("gemini-gone"))
    assert "Check `model` of user_simulator_config for a misspelt" in ran.cases[0].error.message


async def test_a_slow_user_is_ended_in_time(native, gemini):
    gemini.respond = lambda request: Answer([chunk({"text": "Well"}), Hold()])
    ran = await simulate(native, scenario("x"), by=config("gemini-test"), timeout=1.5)
    (case,) = ran.cases
    assert case.error.type == "TimeoutError"
    assert said(ran) == [("hi", "I noted: hi")]


async def test_cancelling_the_run_while_the_user_thinks(echo, gemini):
    hold = Hold()
    gemini.respond = lambda request: Answer([hold])
    running = asyncio.create_task(simulate(echo, scenario("x"), by=config("gemini-test")))
    await asyncio.to_thread(hold.reached.wait, 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    hold.release()


# Recordings


@pytest.fixture
def recorded(write_agent, gemini):
    """A set with a simulated user and an agent that both ask Gemini."""
    agent = write_agent("from evaltui import Agent\nroot_agent = Agent('clerk', 'gemini-clerk', 'Answer.')")
    path = agent / "talks.evalset.json"
    case = scenario("Get a lamp.").model_dump(exclude_none=True, mode="json")
    path.write_text(json.dumps({"eval_set_id": "talks", "eval_cases": [case]}))

    def respond(request):
        if request.model == "gemini-clerk":
            return says(f"You said {request.said}.")
        return says("</finished>" if "You said a lamp" in request.said else "a lamp")

    gemini.respond = respond
    return path


BY = EvalConfig.model_validate(
    {
        "criteria": {"trajectory_single_tool_use": {"threshold": 0, "tool": "note"}},
        "user_simulator_config": {"model": "gemini-user"},
    }
)


async def test_what_the_user_said_is_recorded_and_replayed(recorded, gemini, monkeypatch):
    first = await run(recorded, "record", BY)
    asked = len(gemini.requests)
    assert asked == 4
    lines = [json.loads(line) for line in recorded_file(recorded).read_text().splitlines()]
    users = [line for line in lines if line.get("agent") == SIMULATED_USER]
    assert [(line["turn"], line["responses"][0]["parts"][0]["text"]) for line in users] == [
        (0, "a lamp"),
        (1, "</finished>"),
    ]

    monkeypatch.delenv("GOOGLE_API_KEY")
    again = await run(recorded, "replay", BY)
    assert len(gemini.requests) == asked
    assert (again.calls.live, again.calls.replayed) == (0, 4)
    assert again.verdicts() == first.verdicts()
    assert [case.stopped for case in again.cases] == [case.stopped for case in first.cases]
    assert first.cases[0].stopped == "the simulated user ended the conversation after 2 turns"


async def test_a_replay_says_what_the_user_asks_that_was_not_recorded(recorded, gemini):
    await run(recorded, "record", BY)
    asked = len(gemini.requests)
    data = json.loads(recorded.read_text())
    data["eval_cases"][0]["conversation_scenario"]["conversation_plan"] = "Get two lamps."
    recorded.write_text(json.dumps(data))

    again = await run(recorded, "replay", BY)

    (case,) = again.cases
    assert len(gemini.requests) == asked
    assert case.error.type == "NotRecordedError"
    assert "the model call of simulated user in turn 1 is not in recordings/talks.jsonl" in case.error.message
    assert said(again) == [("hi", "You said hi.")]


async def test_a_function_whose_code_changed_is_another_user(recorded):
    by = BY.model_copy(update={"user_simulator_config": config("people:play").user_simulator_config})
    for name, live in (("Ann", 1), ("Ann", 0), ("Bo", 1)):
        source = f"def play(prompt):\n    return 'I am {name}. </finished>'\n"
        (recorded.parent / "people.py").write_text(source)
        assert (await run(recorded, "auto", by)).calls.live == live + (live and name == "Ann")


async def test_cases_with_turns_and_without_side_by_side(echo):
    simulated = scenario("</finished>", "simulated").model_dump()
    fixed = make_set("both", make_case("fixed", make_turn("hi")), simulated)
    result = await evaluate(echo, fixed, config(), workers=1)
    assert [(case.eval_id, case.status, case.stopped) for case in result.cases] == [
        ("fixed", Status.PASSED, ""),
        ("simulated", Status.PASSED, "the simulated user ended the conversation after 1 turn"),
    ]
