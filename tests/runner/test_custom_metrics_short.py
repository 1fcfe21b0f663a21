"""Metric functions in short form: one turn at a time, under `evaltui.criteria`."""

from __future__ import annotations

import re

from eval_data import make_case, make_set, make_turn

from evaltui import EvalConfig, Status, evaluate
from evaltui.core.model.errors import ErrorKind

ECHO = "def root_agent(message, session):\n    return message\n"

# Nothing is imported from anywhere: an invocation and a criterion are what their attributes say.
METRICS = """
    import asyncio


    def text(invocation):
        return "".join(part.text or "" for part in invocation.final_response.parts)


    def brevity(actual, expected, criterion):
        return 1.0 if len(text(actual)) <= criterion.limit else 0.0


    async def same(actual, expected, criterion):
        await asyncio.sleep(0)
        return text(actual) == text(expected)


    def words(actual, expected, criterion):
        assert criterion.threshold == 2 and criterion.lower_is_better
        return len(text(actual).split())


    def greeting(actual, expected, criterion):
        return 1.0 if text(actual).startswith("good") else None


    def never(actual, expected, criterion):
        return None


    def raises(actual, expected, criterion):
        return 1 / (len(text(actual)) - 4)


    async def raises_later(actual, expected, criterion):
        await asyncio.sleep(0)
        raise RuntimeError("no model")


    def adks_form(eval_metric, actual_invocations, expected_invocations, conversation_scenario):
        return 1.0


    wrong_type = lambda actual, expected, criterion: "1.0"
    nan = lambda actual, expected, criterion: float("nan")
    two = lambda actual, expected: 1.0
"""


def config(**criteria) -> EvalConfig:
    own = {
        name: {"threshold": 1.0, "function": f"my_agent.metrics.{name}", **more}
        for name, more in criteria.items()
    }
    return EvalConfig.model_validate(
        {"criteria": {"response_match_score": 0.5}, "evaltui": {"criteria": own}}
    )


def conversation(*says: str) -> dict:
    return make_set("s", make_case("one", *(make_turn(text, text) for text in says)))


async def metrics_of(agent, eval_set, config, **more):
    result = await evaluate(agent, eval_set, config, **more)
    return {one.name: one for one in result.cases[0].metrics}


async def test_the_mean_over_turns_is_held_against_the_threshold(write_agent):
    agent = write_agent(ECHO, metrics=METRICS)
    asked = config(
        brevity={"threshold": 0.5, "limit": 13},
        same={},
        words={"threshold": 2, "lower_is_better": True},
        greeting={},
        never={},
    )
    metrics = await metrics_of(agent, conversation("good morning", "how are you all"), asked)
    found = {
        name: (
            metrics[name].status,
            metrics[name].score,
            [turn.score for turn in metrics[name].per_invocation],
        )
        for name in asked.evaltui.criteria
    }
    assert found == {
        "brevity": (Status.PASSED, 0.5, [1.0, 0.0]),
        "same": (Status.PASSED, 1.0, [1.0, 1.0]),
        "words": (Status.FAILED, 3.0, [2.0, 4.0]),
        "greeting": (Status.PASSED, 1.0, [1.0, None]),
        "never": (Status.NOT_EVALUATED, None, [None, None]),
    }
    assert metrics["brevity"].threshold == 0.5
    assert metrics["words"].reason == "failed in turn 2"
    assert [turn.status for turn in metrics["words"].per_invocation] == [Status.PASSED, Status.FAILED]


async def test_what_goes_wrong_is_an_error_of_that_metric_and_says_in_which_turn(write_agent):
    agent = write_agent(ECHO, metrics=METRICS)
    names = ("raises", "raises_later", "wrong_type", "nan", "adks_form", "two", "absent", "same")
    metrics = await metrics_of(agent, conversation("four", "fives"), config(**{name: {} for name in names}))
    statuses = {name: metrics[name].status for name in names}
    assert statuses == {**dict.fromkeys(names, Status.ERROR), "same": Status.PASSED}
    assert {metrics[name].error.kind for name in names[:6]} == {ErrorKind.JUDGE}
    raised = metrics["raises"]
    assert re.fullmatch(
        r"turn 1: metrics\.py:\d+ in raises: ZeroDivisionError: division by zero", raised.reason
    )
    assert "len(text(actual)) - 4" in raised.error.traceback
    assert [(turn.status, turn.score) for turn in raised.per_invocation] == [
        (Status.ERROR, None),
        (Status.PASSED, 1.0),
    ]
    said = "my_agent.metrics.wrong_type returned a str; it must return a number, True, False or None"
    assert said in metrics["wrong_type"].reason
    assert re.search(r"metrics\.py:\d+", metrics["wrong_type"].reason)
    assert "returned nan, which is not a score" in metrics["nan"].reason
    for name in ("adks_form", "two"):
        assert "does not take the three arguments (actual, expected, criterion)" in metrics[name].reason
    assert "belongs under custom_metrics" in metrics["adks_form"].reason
    assert "no function absent" in metrics["absent"].reason


async def test_context_turns_are_not_asked_about_and_adk_has_no_such_metrics(write_agent):
    agent = write_agent(ECHO, metrics=METRICS)
    asked = config(raises={"threshold": 0.5})
    mark = {"set": "s", "case": "one", "turn": 0, "mode": "context"}
    marked = EvalConfig.model_validate(
        {"criteria": asked.criteria, "evaltui": {"criteria": asked.evaltui.criteria, "turns": [mark]}}
    )
    metric = (await metrics_of(agent, conversation("four", "fives"), marked))["raises"]
    assert (metric.status, [turn.score for turn in metric.per_invocation]) == (Status.PASSED, [None, 1.0])
    assert metric.per_invocation[0].reason.startswith("context turn, not scored")
    assert "raises" not in await metrics_of(agent, conversation("fives"), asked, adk_verdicts=True)


TOLD = """
    def told(actual, expected, criterion):
        (clerk,) = actual.app_details.agent_details.values()
        (tool,) = clerk.tool_declarations
        names = [one.name for one in tool.function_declarations]
        return float((clerk.name, clerk.instructions, names) == ("clerk", "Be kind.", ["look_up"]))
"""
CLERK = """
    from evaltui import Agent, Rule, ScriptedModel


    def look_up(order: str) -> dict:
        return {"order": order}


    model = ScriptedModel([Rule(user="", reply="It shipped.")])
    root_agent = Agent(name="clerk", model=model, instruction="Be kind.", tools=[look_up])
"""


async def test_a_function_gets_instructions_and_tools_which_results_do_not_keep(write_agent):
    agent = write_agent(CLERK, metrics=TOLD)
    (case,) = (await evaluate(agent, conversation("hi"), config(told={}))).cases
    metric = case.metric("told")
    assert (metric.score, metric.reason) == (1.0, "")
    assert case.repeats[0].actual[0].app_details is None
