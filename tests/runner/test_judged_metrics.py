"""Judged metrics in a whole run, by a judge of the user's own: what they find, and that it is found again."""

from recorded_runs import turn, write_set

from evaltui import EvalConfig, Status, evaluate

AGENT = """
    from evaltui import Agent, Rule, ScriptedModel


    def look_up(order: str) -> dict:
        return {"order": order, "status": "shipped"}


    model = ScriptedModel(
        [
            Rule(after_tool="look_up", reply="Your order shipped. It arrives on Monday."),
            Rule(user="Where", call=("look_up", {"order": "A1"})),
            Rule(user="Thanks", reply="You are welcome."),
        ]
    )
    root_agent = Agent(name="clerk", model=model, instruction="Be kind.", tools=[look_up])
"""
# Its reasons are what it was told, which can be looked up in the results.
JUDGE = r"""
    import json
    import re


    def answer(prompt):
        told = str([word for word in ("Be kind.", "look_up", "shipped", "Thanks") if word in prompt])
        if '"label"' not in prompt:
            return json.dumps({"for": ["all"], "against": [], "reason": told, "score": 1})
        found = []
        for number, text in re.findall(r'{"sentence": (\d+), "text": "(.*?)"}', prompt):
            label = "unsupported" if "Monday" in text else "supported"
            found.append({"sentence": int(number), "reason": told, "label": label})
        return json.dumps({"sentences": found})
"""
NAMES = [
    "hallucinations_v1",
    "response_evaluation_score",
    "safety_v1",
    "multi_turn_task_success_v1",
    "multi_turn_trajectory_quality_v1",
    "multi_turn_tool_use_quality_v1",
]
OPTIONS = {"judge_model": "my_agent.judge:answer"}


async def test_every_metric_of_conversations_is_judged_and_replayed(write_agent):
    agent = write_agent(AGENT, judge=JUDGE)
    path = write_set(agent, {"one": [turn("Where is A1?", "It shipped."), turn("Thanks", "Welcome.")]})
    criteria = {name: {"threshold": 1.0, "judge_model_options": OPTIONS} for name in NAMES}
    config = EvalConfig.model_validate({"criteria": criteria})

    async def judged(record):
        result = await evaluate(agent, path, config, record=record, workers=1)
        return {one.name: one for one in result.cases[0].metrics if one.name in NAMES}

    metrics = await judged("record")
    assert {name: (one.score, one.status, one.error) for name, one in metrics.items()} == {
        **dict.fromkeys(NAMES, (1.0, Status.PASSED, None)),
        "hallucinations_v1": (0.75, Status.FAILED, None),
    }
    sentences = [found.subject for found in metrics["hallucinations_v1"].per_invocation[0].judgements]
    assert sentences == ["Your order shipped.", "It arrives on Monday."]
    for one in metrics.values():
        found = one.per_invocation[-1].judgements[0]
        told = ["look_up", "shipped", "Thanks"]
        knows_agents = one.name.startswith(("multi_turn", "hallucinations"))
        assert found.rationale == str((["Be kind."] if knows_agents else []) + told)

    again = await judged("replay")
    for name, one in again.items():
        assert (one.judge.replayed, one.score) == (one.judge.asked, metrics[name].score)
