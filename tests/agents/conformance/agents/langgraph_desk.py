"""The desk as a graph of LangGraph."""

from typing import Annotated

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import InjectedToolCallId, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from . import script

USAGE = {
    "input_tokens": 100,
    "output_tokens": 20,
    "total_tokens": 120,
    "input_token_details": {"cache_read": 40},
    "output_token_details": {"reasoning": 5},
}


class Rules(BaseChatModel):
    model: str = "rules"

    @property
    def _llm_type(self):
        return "rules"

    def bind_tools(self, tools, **settings):
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools], **settings)

    def _generate(self, messages, stop=None, run_manager=None, **settings):
        users = [at for at, one in enumerate(messages) if isinstance(one, HumanMessage)]
        last = messages[users[-1]]
        results = [one.text for one in messages[users[-1] :] if isinstance(one, ToolMessage)]
        files = sum(one["type"] != "text" for one in last.content_blocks)
        if last.text == "transfer":
            text, calls = "I look.", [("to_writer", {})]
        else:
            text, calls = script.answer(last.text, results, len(users), files)
        content = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": text}]
        made = [
            {"name": name, "args": args, "id": f"{len(messages)}-{number}"}
            for number, (name, args) in enumerate(calls)
        ]
        served = {"model_name": "rules-1"}
        message = AIMessage(content, tool_calls=made, usage_metadata=USAGE, response_metadata=served)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Because(Rules):
    def _generate(self, messages, stop=None, run_manager=None, **settings):
        return ChatResult(generations=[ChatGeneration(message=AIMessage("because"))])


other = create_agent(Because(), [], name="ask_other")


@tool
def note(item: str, call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Notes an item."""
    message = ToolMessage("noted", tool_call_id=call_id, name="note")
    return Command(update={"noted": item, "messages": [message]})


@tool
async def tally(item: str) -> str:
    """Tallies an item, in no state: only a command could change it."""
    return await script.tallied({}, item)


@tool
def ask_other(request: str) -> str:
    """Asks another agent."""
    return other.invoke({"messages": [HumanMessage(request)]})["messages"][-1].text


@tool
def to_writer(call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Hands over."""
    message = ToolMessage("handed over", tool_call_id=call_id, name="to_writer")
    return Command(goto="writer", graph=Command.PARENT, update={"messages": [message]})


class Desk(AgentState):
    noted: str


class Whole(MessagesState):
    noted: str


desk = create_agent(
    Rules(),
    [
        *map(tool, (script.price, script.meet, script.fail, script.wait, script.remove)),
        *map(tool, (script.give, script.roll)),
        note,
        tally,
        ask_other,
        to_writer,
    ],
    system_prompt="Be short.",
    name="desk",
    state_schema=Desk,
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"remove": True})],
)
graph = StateGraph(Whole)
graph.add_node("desk", desk, destinations=("writer",))
graph.add_node("writer", lambda state: {"messages": [AIMessage("written")]})
graph.add_edge(START, "desk")
root_agent = graph.compile(name="desk")
