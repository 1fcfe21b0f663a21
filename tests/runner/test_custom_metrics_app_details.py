"""What metric functions of the user's get to know of the agents."""

from evaltui import EvalConfig, EvalSet, evaluate

AGENT = """
    from evaltui import Agent, Rule, ScriptedModel


    def look_up(order: str) -> dict:
        return {"order": order}


    model = ScriptedModel([Rule(user="", reply="It shipped.")])
    root_agent = Agent(name="clerk", model=model, instruction="Be kind.", tools=[look_up])
"""
METRICS = """
    def told(actual, expected, criterion):
        (clerk,) = actual.app_details.agent_details.values()
        (tool,) = clerk.tool_declarations
        names = [one.name for one in tool.function_declarations]
        return float((clerk.name, clerk.instructions, names) == ("clerk", "Be kind.", ["look_up"]))
"""


async def test_a_metric_function_is_told_of_instructions_and_tools_which_results_do_not_keep(write_agent):
    agent = write_agent(AGENT, metrics=METRICS)
    criterion = {"threshold": 1.0, "function": "my_agent.metrics.told"}
    config = EvalConfig.model_validate({"criteria": {}, "evaltui": {"criteria": {"told": criterion}}})
    turn = {"user_content": {"role": "user", "parts": [{"text": "hi"}]}}
    cases = [{"eval_id": "c", "conversation": [turn]}]
    eval_set = EvalSet.model_validate({"eval_set_id": "s", "eval_cases": cases})

    (case,) = (await evaluate(agent, eval_set, config)).cases
    metric = next(one for one in case.metrics if one.name == "told")
    assert (metric.score, metric.reason) == (1.0, "")
    assert case.repeats[0].actual[0].app_details is None
