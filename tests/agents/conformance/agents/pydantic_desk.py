"""The desk with Pydantic AI."""

from dataclasses import dataclass, field

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RequestUsage

from . import script

USAGE = {
    "input_tokens": 100,
    "output_tokens": 20,
    "cache_read_tokens": 40,
    "details": {"reasoning_tokens": 5},
}


@dataclass
class Deps:
    noted: str = ""
    known: int = 0
    tallies: list[str] = field(default_factory=list)


def rules(messages, info):
    last = messages[-1].parts
    results = [str(one.content) for one in last if one.part_kind in ("tool-return", "retry-prompt")]
    prompts = [one for message in messages for one in message.parts if one.part_kind == "user-prompt"]
    content = prompts[-1].content
    items = [content] if isinstance(content, str) else content
    said = " ".join(one for one in items if isinstance(one, str))
    files = sum(not isinstance(one, str) for one in items)
    text, calls = script.answer(said, results, len(prompts), files)
    made = [
        ToolCallPart(name, args, tool_call_id=f"{len(messages)}-{number}")
        for number, (name, args) in enumerate(calls)
    ]
    parts = [ThinkingPart("hm"), TextPart(text), *made]
    return ModelResponse(parts=parts, usage=RequestUsage(**USAGE), model_name="rules-1")


def because(messages, info):
    return ModelResponse(parts=[TextPart("because")])


other = Agent(FunctionModel(because), name="ask_other")
root_agent = Agent(
    FunctionModel(rules, model_name="rules"),
    name="desk",
    deps_type=Deps,
    instructions="Be short.",
    output_type=[str, DeferredToolRequests],
)
for function in (script.price, script.meet, script.fail, script.wait, script.give, script.roll):
    root_agent.tool_plain(function)
root_agent.tool_plain(requires_approval=True)(script.remove)


@root_agent.tool
def note(ctx: RunContext[Deps], item: str) -> str:
    """Notes an item."""
    ctx.deps.noted = item
    return "noted"


@root_agent.tool
async def tally(ctx: RunContext[Deps], item: str) -> str:
    """Tallies an item."""
    return await script.tallied(vars(ctx.deps), item)


@root_agent.tool_plain
async def ask_other(request: str) -> str:
    """Asks another agent."""
    return (await other.run(request)).output
