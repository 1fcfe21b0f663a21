"""A desk that does a bit of everything that the OpenAI Agents SDK has, with a scripted model of its own."""

import functools
import json
import os
import socket
from itertools import count

from agents import (
    Agent,
    FunctionTool,
    GuardrailFunctionOutput,
    Model,
    ModelResponse,
    RunContextWrapper,
    Runner,
    TracingProcessor,
    Usage,
    add_trace_processor,
    flush_traces,
    function_tool,
    input_guardrail,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseFunctionWebSearch,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic import BaseModel

_numbers = count(1)


def say(text):
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id=f"msg_{next(_numbers)}", type="message", role="assistant", status="completed", content=[part]
    )


def call(name, **args):
    return ResponseFunctionToolCall(
        type="function_call", call_id=f"call_{next(_numbers)}", name=name, arguments=json.dumps(args)
    )


def think(text):
    summary = [{"type": "summary_text", "text": text}]
    return ResponseReasoningItem(
        id=f"rs_{next(_numbers)}", type="reasoning", summary=summary, encrypted_content="opaque"
    )


class Scripted(Model):
    """`script` makes the output of what the user said last and the results since then."""

    def __init__(self, script):
        self.script = script

    model = "scripted"

    async def get_response(self, system_instructions, input, *args, **kwargs):
        print("model asked", flush=True)
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        said = max(at for at, item in enumerate(items) if item.get("role") == "user")
        results = [item["output"] for item in items[said:] if item.get("type") == "function_call_output"]
        output = self.script(items[said]["content"], results)
        output = output if isinstance(output, list) else [output]
        usage = Usage(
            requests=1,
            input_tokens=100,
            output_tokens=20,
            total_tokens=120,
            input_tokens_details=InputTokensDetails(cached_tokens=64, cache_write_tokens=0),
            output_tokens_details=OutputTokensDetails(reasoning_tokens=8),
        )
        return ModelResponse(output=output, usage=usage, response_id=None)

    async def stream_response(self, *args, **kwargs):
        raise NotImplementedError("this desk is not streamed")
        yield


class Order(BaseModel):
    id: int
    state: str


@function_tool
def find_order(context: RunContextWrapper[dict], order_id: int) -> Order:
    """Finds an order."""
    print("find_order runs", flush=True)
    context.context["last"] = order_id
    return Order(id=order_id, state="shipped")


@function_tool
def boom(order_id: int) -> str:
    """Fails, and its model is told."""
    raise KeyError(f"order {order_id}")


async def by_hand(mark, context, arguments):
    return f"{mark} {arguments}"


SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
stamp = FunctionTool("stamp", "Made without a function.", SCHEMA, functools.partial(by_hand, "stamped"))


async def is_large(context, arguments, call_id):
    return arguments["euros"] > 100


@function_tool(needs_approval=is_large)
def spend(euros: int) -> str:
    """Spends money, large sums with approval only."""
    return f"spent {euros}"


class Kept(TracingProcessor):
    """A processor of the user's own."""

    def __init__(self):
        self.spans = []

    def on_span_end(self, span):
        self.spans.append(span.span_data.type)

    def on_trace_start(self, trace): ...
    def on_trace_end(self, trace): ...
    def on_span_start(self, span): ...
    def shutdown(self): ...
    def force_flush(self): ...


kept = Kept()
add_trace_processor(kept)


@function_tool
def send_traces() -> str:
    """Sends the traces that there are; whom it would reach, and whether the own processor has any."""
    reached, look_up = [], socket.getaddrinfo

    def refuse(host, *args, **kwargs):
        reached.append(host)
        raise OSError(host)

    socket.getaddrinfo = refuse
    os.environ["OPENAI_API_KEY"] = "sk-of-nobody-0123456789"
    try:
        flush_traces()
    finally:
        socket.getaddrinfo = look_up
        del os.environ["OPENAI_API_KEY"]
    return f"{reached} {'function' in kept.spans}"


@function_tool
def remember(context: RunContextWrapper[dict], note: str) -> str:
    """Keeps a note."""
    context.context["notes"] = [*context.context.get("notes", []), note]
    return "kept"


@function_tool(needs_approval=True)
def pay_back(context: RunContextWrapper[dict], order_id: int) -> str:
    """Pays back what an order cost."""
    context.context["paid_back"] = order_id
    return f"paid back {order_id}"


def pay_back_script(said, results):
    if said == "never mind":
        return say("All right.")
    if not results or "assistant" in results[-1]:
        return call("pay_back", order_id=7)
    return say(f"Refund: {results[-1]}.")


refunds = Agent(name="refunds", model=Scripted(pay_back_script), tools=[pay_back])
bulk = Agent(
    name="bulk",
    model=Scripted(lambda said, results: call("remember", note="bulk")),
    tools=[remember],
    tool_use_behavior="stop_on_first_tool",
)
receipts = Agent(
    name="receipts",
    model=Scripted(lambda said, results: say('{"id": 7, "state": "paid"}')),
    output_type=Order,
)


def translate_script(said, results):
    return say(f"auf Deutsch: {results[-1]}") if results else call("remember", note=said)


translator = Agent(name="translator", model=Scripted(translate_script), tools=[remember])
guard = Agent(name="guard", model=Scripted(lambda said, results: say("yes" if "weather" in said else "no")))


@input_guardrail
async def only_orders(context, agent, given):
    said = given[-1]["content"] if isinstance(given, list) else given
    judged = await Runner.run(guard, said)
    return GuardrailFunctionOutput(
        output_info=judged.final_output, tripwire_triggered=judged.final_output == "yes"
    )


CALLS = {
    "order": lambda: call("find_order", order_id=7),
    "both": lambda: [call("find_order", order_id=7), call("remember", note="both")],
    "beside": lambda: [call("find_order", order_id=7), call("translate", input="hello")],
    "boom": lambda: call("boom", order_id=7),
    "loop": lambda: call("remember", note="again"),
    "stamp": lambda: [call("stamp"), call("spend", euros=5)],
    "traces": lambda: call("send_traces"),
    "refund": lambda: call("transfer_to_refunds"),
    "bulk": lambda: call("transfer_to_bulk"),
    "receipt": lambda: call("transfer_to_receipts"),
    "translate": lambda: call("translate", input="hello"),
    "think": lambda: [think("The user wants me to think."), call("find_order", order_id=3)],
    "search": lambda: [
        ResponseFunctionWebSearch(
            id="ws_1", type="web_search_call", status="completed", action={"type": "search", "query": "news"}
        ),
        say("Nothing new."),
    ],
}


def script(said, results):
    said = said if isinstance(said, str) else " ".join(part.get("text", part["type"]) for part in said)
    word = next((word for word in CALLS if word in said), None)
    if word is None or (results and word != "loop"):
        return say(f"{said}: {'; '.join(map(str, results))}" if results else f"You said {said!r}.")
    return CALLS[word]()


root_agent = Agent(
    name="desk",
    instructions="You are a desk.",
    model=Scripted(script),
    tools=[
        find_order,
        boom,
        send_traces,
        spend,
        stamp,
        remember,
        translator.as_tool(tool_name="translate", tool_description="Translates a text."),
    ],
    handoffs=[refunds, bulk, receipts],
    input_guardrails=[only_orders],
)
