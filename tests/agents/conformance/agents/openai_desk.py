"""The desk with the OpenAI Agents SDK."""

import json
from itertools import count

from agents import Agent, Model, ModelResponse, RunContextWrapper, Usage, function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from . import script

_numbers = count(1)
USAGE = Usage(
    requests=1,
    input_tokens=100,
    output_tokens=20,
    total_tokens=120,
    input_tokens_details=InputTokensDetails(cached_tokens=40, cache_write_tokens=0),
    output_tokens_details=OutputTokensDetails(reasoning_tokens=5),
)


def say(text):
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id=f"msg_{next(_numbers)}", type="message", role="assistant", status="completed", content=[part]
    )


def call(name, args):
    return ResponseFunctionToolCall(
        type="function_call", call_id=f"call_{next(_numbers)}", name=name, arguments=json.dumps(args)
    )


class Rules(Model):
    model = "rules"

    async def get_response(self, system_instructions, input, *args, **kwargs):
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        users = [at for at, one in enumerate(items) if one.get("role") == "user"]
        content = items[users[-1]]["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        said = " ".join(one["text"] for one in parts if "text" in one)
        later = items[users[-1] :]
        results = [str(one["output"]) for one in later if one.get("type") == "function_call_output"]
        files = sum("text" not in one for one in parts)
        if said == "transfer" and not results:
            text, calls = "I look.", [("transfer_to_writer", {})]
        else:
            text, calls = script.answer(said, results, len(users), files)
        thought = ResponseReasoningItem(
            id=f"rs_{next(_numbers)}", type="reasoning", summary=[{"type": "summary_text", "text": "hm"}]
        )
        # The SDK's own parameter of an agent that is a tool.
        calls = [(name, {"input": "why"} if name == "ask_other" else args) for name, args in calls]
        output = [thought, say(text), *(call(*one) for one in calls)]
        return ModelResponse(output=output, usage=USAGE, response_id=None)

    async def stream_response(self, *args, **kwargs):
        raise NotImplementedError("this desk is not streamed")
        yield


class Says(Rules):
    def __init__(self, text):
        self.text = text

    async def get_response(self, *args, **kwargs):
        return ModelResponse(output=[say(self.text)], usage=USAGE, response_id=None)


@function_tool
def note(context: RunContextWrapper[dict], item: str) -> str:
    """Notes an item."""
    context.context["noted"] = item
    return "noted"


@function_tool
async def tally(context: RunContextWrapper[dict], item: str) -> str:
    """Tallies an item."""
    return await script.tallied(context.context, item)


writer = Agent(name="writer", model=Says("written"))
other = Agent(name="ask_other", model=Says("because"))
root_agent = Agent(
    name="desk",
    model=Rules(),
    instructions="Be short.",
    tools=[
        function_tool(script.price),
        function_tool(script.meet),
        note,
        function_tool(script.fail, failure_error_function=None),
        function_tool(script.wait),
        function_tool(script.give),
        function_tool(script.roll),
        tally,
        function_tool(script.remove, needs_approval=True),
        other.as_tool(tool_name="ask_other", tool_description="Knows why."),
    ],
    handoffs=[writer],
)
