"""A calculator that works offline: a scripted model stands in for a real one, and every case passes.

Give the agent `model="gemini-2.5-flash"` to see how a real model does.
"""

from evaltui import Agent, Rule, ScriptedModel, ToolContext


def multiply_numbers(a: int, b: int, context: ToolContext) -> int:
    """Multiply two integers.

    Args:
        a: The first factor.
        b: The second factor.
    """
    context.state["previous_calculation"] = a * b
    return a * b


def add_numbers(a: int, b: int, context: ToolContext) -> int:
    """Add two integers.

    Args:
        a: The first summand.
        b: The second summand.
    """
    context.state["previous_calculation"] = a + b
    return a + b


def recall_result(context: ToolContext) -> int | None:
    """The result of the calculation before, if there was one."""
    return context.state.get("previous_calculation")


TIMES = r"(?i)(?P<a>-?\d+) times (?P<b>-?\d+)"
PLUS = r"(?i)(?P<a>-?\d+) plus (?P<b>-?\d+)"


def numbers(situation):
    return {"a": int(situation["a"]), "b": int(situation["b"])}


def result(situation):
    return situation.results[-1]["result"]


RULES = [
    Rule(user=TIMES, call=lambda s: ("multiply_numbers", numbers(s))),
    Rule(
        user=TIMES,
        after_tool="multiply_numbers",
        reply=lambda s: f"Okay, {s['a']} times {s['b']} is {result(s)}.",
    ),
    Rule(user=PLUS, call=lambda s: ("add_numbers", numbers(s))),
    Rule(
        user=PLUS, after_tool="add_numbers", reply=lambda s: f"Okay, {s['a']} plus {s['b']} is {result(s)}."
    ),
    Rule(user=r"(?i)last result", call=("recall_result", {})),
    Rule(after_tool="recall_result", reply=lambda s: f"The last result was {result(s)}."),
]

root_agent = Agent(
    name="calculator",
    model=ScriptedModel(RULES),
    instruction=(
        "You are a calculator. Calculate with your tools, never in your head. Answer in the form "
        "'Okay, 2 times 3 is 6.' When asked for the last result, look it up with recall_result."
    ),
    tools=[multiply_numbers, add_numbers, recall_result],
)
