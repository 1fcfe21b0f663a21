"""Cases with simulated users, and how they are run, for the tests of each kind of agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recorded_runs import Ran

from evaltui import EvalCase, EvalConfig, EvalSet, evaluate

# Plays the user: says what its plan lists, one line after the other.
PEOPLE = """
    import asyncio
    import re

    def fenced(prompt):
        return re.findall(r"<text (\\w+)>\\n(.*?)\\n</text \\1>", prompt, re.DOTALL)

    def by_plan(prompt):
        (_, plan), (_, history) = fenced(prompt)
        said = sum(line.startswith("user: ") for line in history.splitlines())
        message = plan.split("|")[said - 1]
        if message == "raise":
            raise RuntimeError("out of ideas")
        return 5 if message == "five" else message

    async def chatty(prompt):
        # A machine that is fast would come to the most events of a case before its time is over.
        await asyncio.sleep(0.01)
        return "and then?"

    def shows(prompt):
        print(fenced(prompt)[-1][1])
        return "</finished>"
"""
ECHO = """
    from evaltui.events import tool_call, tool_result

    def root_agent(message, session):
        count = session.state["count"] = session.state.get("count", 0) + 1
        yield tool_call("note", {"text": message})
        yield tool_result("note", {"kept": count})
        yield f"{count}: {message}"
"""


def scenario(plan: str, eval_id: str = "one", begin: str = "hi", **more: Any) -> EvalCase:
    """`plan` is what is said after `begin`, with `|` between."""
    return EvalCase.model_validate(
        {
            "eval_id": eval_id,
            "conversation_scenario": {"starting_prompt": begin, "conversation_plan": plan, **more},
        }
    )


def config(model: str = "people:by_plan", **more: Any) -> EvalConfig:
    return EvalConfig.model_validate(
        {
            "criteria": {"trajectory_single_tool_use": {"threshold": 1, "tool": "note"}},
            "user_simulator_config": {"model": model, **more},
        }
    )


async def simulate(agent: Path, *cases: EvalCase, by: EvalConfig | None = None, **options: Any) -> Ran:
    ran = Ran()
    eval_set = EvalSet(eval_set_id="talks", eval_cases=list(cases))
    options = {"workers": 1} | options
    result = await evaluate(agent, eval_set, by or config(), on_update=ran.take, **options)
    ran.cases = list(result.cases)
    return ran


def said(ran: Ran, case: int = 0) -> list[tuple[str, str | None]]:
    """What the user said, and what was answered, turn by turn."""
    return [(turn.user, turn.response.actual) for turn in ran.cases[case].turns]
