"""Looks for goods and orders them: calls, state, two turns."""

from evaltui import Agent, Rule, ScriptedModel, ToolContext

PRICES = {"lamp": 12.5, "table": 80}


def find(what: str, context: ToolContext) -> dict[str, float | str]:
    """Find goods."""
    context.state["seen"] = [*context.state.get("seen", []), what]
    return {"what": what, "price": PRICES[what]}


def order(what: str, number: int, context: ToolContext) -> dict[str, int]:
    """Order goods."""
    context.state["ordered"] = {what: number}
    return {"order": 4711}


RULES = [
    Rule(user=r"(?i)find a (\w+)", call=lambda s: ("find", {"what": s[1]})),
    Rule(after_tool="find", reply=lambda s: "A {what} costs {price:g} dollars.".format(**s.results[-1])),
    Rule(user=r"(?i)order (\d) (\w+)s", call=lambda s: ("order", {"what": s[2], "number": int(s[1])})),
    Rule(after_tool="order", reply=lambda s: f"That is order {s.results[-1]['order']}."),
    Rule(user=r"(?i)thank", reply="You are welcome."),
]

root_agent = Agent(
    name="shop", model=ScriptedModel(RULES), instruction="Sell furniture.", tools=[find, order]
)
