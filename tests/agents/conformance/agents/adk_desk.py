"""The desk with google-adk."""

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import AgentTool, FunctionTool, ToolContext
from google.genai import types

from . import script

USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=100,
    cached_content_token_count=40,
    candidates_token_count=15,
    thoughts_token_count=5,
    total_token_count=120,
)


class Rules(BaseLlm):
    model: str = "rules"

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts
        results = [str(one.function_response.response) for one in last if one.function_response]
        said = " ".join(one.text for one in last if one.text)
        files = sum(one.inline_data is not None for one in last)
        users = [one for one in llm_request.contents if one.role == "user" and one.parts[0].text]
        if said == "transfer":
            text, calls = "I look.", [("transfer_to_agent", {"agent_name": "writer"})]
        else:
            text, calls = script.answer(said, results, len(users), files)
        parts = [types.Part(text="hm", thought=True), types.Part(text=text)]
        parts += [types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in calls]
        yield LlmResponse(
            content=types.Content(role="model", parts=parts), usage_metadata=USAGE, model_version="rules-1"
        )


class Says(Rules):
    text: str

    async def generate_content_async(self, llm_request, stream=False):
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=self.text)]))


def note(item: str, tool_context: ToolContext) -> str:
    """Notes an item."""
    tool_context.state["noted"] = item
    return "noted"


async def tally(item: str, tool_context: ToolContext) -> str:
    """Tallies an item."""
    return await script.tallied(tool_context.state, item)


root_agent = LlmAgent(
    name="desk",
    model=Rules(),
    instruction="Be short.",
    tools=[
        script.price,
        script.meet,
        note,
        script.fail,
        script.wait,
        script.give,
        script.roll,
        tally,
        FunctionTool(script.remove, require_confirmation=True),
        AgentTool(LlmAgent(name="ask_other", description="Knows why.", model=Says(text="because"))),
    ],
    sub_agents=[LlmAgent(name="writer", description="Writes.", model=Says(text="written"))],
)
