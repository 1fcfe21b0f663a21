"""The desk as an `evaltui.Agent`."""

from evaltui import Agent, ToolContext
from evaltui.agents.native.models import ModelResponse
from evaltui.core.model.content import FunctionCall, Part, UsageMetadata

from . import script

USAGE = UsageMetadata(
    prompt_token_count=100,
    cached_content_token_count=40,
    candidates_token_count=15,
    thoughts_token_count=5,
    total_token_count=120,
)


class Rules:
    name = "rules"

    async def generate(self, request, on_text):
        last = request.contents[-1].parts
        results = [str(one.function_response.response) for one in last if one.function_response]
        said = " ".join(one.text for one in last if one.text)
        files = sum(one.inline_data is not None for one in last)
        users = [one for one in request.contents if one.role == "user" and one.parts[0].text]
        text, calls = script.answer(said, results, len(users), files)
        for word in text.split():
            on_text(word)
        parts = [Part(text="hm", thought=True), Part(text=text)]
        parts += [Part(function_call=FunctionCall(name=name, args=args)) for name, args in calls]
        return ModelResponse(parts, usage=USAGE, model_version="rules-1")


def note(item: str, context: ToolContext) -> str:
    """Notes an item."""
    context.state["noted"] = item
    return "noted"


async def tally(item: str, context: ToolContext) -> str:
    """Tallies an item."""
    return await script.tallied(context.state, item)


def ask_other(request: str) -> str:
    """Asks nobody: an agent is no tool of this one."""
    return "because"


tools = [
    ask_other,
    script.give,
    script.roll,
    tally,
    script.price,
    script.meet,
    note,
    script.fail,
    script.wait,
]
root_agent = Agent("desk", model=Rules(), instruction="Be short.", tools=tools)
