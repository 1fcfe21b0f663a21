"""Spans of google-adk as it writes them: agents with a scripted model, run in this process.

    told = run("tools", ["Find a lamp"], CONTENT)

`told.spans` are what the OpenTelemetry SDK hands to an exporter, `told.logs` its log records.
"""

import asyncio
import os
from contextlib import contextmanager
from dataclasses import dataclass

from google.adk.agents import LlmAgent, LoopAgent, SequentialAgent
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool, LongRunningFunctionTool, exit_loop
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.agents.adapters.adk_scripted import ScriptedLlm, call, say

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SCHEMA = "ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN"
SPANS = {CAPTURE: "SPAN_AND_EVENT", SCHEMA: "2"}
BARE = {SCHEMA: "2"}
EVENTS_ONLY = {CAPTURE: "EVENT_ONLY", SCHEMA: "2"}
OLD = {SCHEMA: "1"}
OLD_BARE = {SCHEMA: "1", "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "false"}
_OURS = (CAPTURE, SCHEMA, "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS", "OTEL_SEMCONV_STABILITY_OPT_IN")


@dataclass(frozen=True)
class Reply:
    """Response of a person to the call of this name that waits for one."""

    name: str
    response: dict


@dataclass(frozen=True)
class Told:
    spans: tuple
    logs: tuple
    session: str


def find(what: str) -> dict:
    """Find things in the shop."""
    return {"found": [what], "count": 1}


def price(what: str, currency: str = "EUR") -> dict:
    """The price of a thing."""
    return {"amount": 12.5, "currency": currency}


def pending(what: str) -> dict:
    """Finds things later."""
    return {"status": "pending"}


def now() -> str:
    """The time."""
    return "14:05"


def broken() -> dict:
    """Always raises."""
    raise RuntimeError("the shop is closed")


def refusing() -> dict:
    """Says that it cannot."""
    return {"error": "no stock"}


def chunk(text, *, partial=True, thought=False):
    part = types.Part(text=text, thought=True) if thought else types.Part(text=text)
    return LlmResponse(content=types.Content(role="model", parts=[part]), partial=partial or None)


def _thinking(text, thought, tokens=None):
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=10, candidates_token_count=4, thoughts_token_count=tokens, total_token_count=14
    )
    parts = [types.Part(text=thought, thought=True), types.Part(text=text)]
    return LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)


def _agent(answers, tools=(), name="shop", **fields):
    return LlmAgent(
        name=name, model=ScriptedLlm(answers=answers), instruction="Sell things.", tools=list(tools), **fields
    )


def _tools():
    answers = {
        "Find a lamp": call(("find", {"what": "lamp"}, None)),
        "find()": say("There is one lamp."),
        "What does it cost?": call(("price", {"what": "lamp", "currency": "USD"}, None)),
        "price()": say("12.50 dollars."),
        "Thanks": say("You are welcome."),
        "What time is it?": call(("now", {}, None)),
        "now()": say("It is 14:05."),
    }
    return _agent(answers, [find, price, now])


def _parallel():
    answers = {
        "Compare": call(
            ("price", {"what": "lamp"}, None),
            ("find", {"what": "rug"}, None),
            ("price", {"what": "rug", "currency": "USD"}, None),
        ),
        "anything": say("The rug is cheaper."),
    }
    return _agent(answers, [find, price])


def _agent_tool():
    inner = _agent(
        {"anything": call(("find", {"what": "desk"}, None)), "find()": say("A desk it is.")},
        [find],
        name="expert",
    )
    answers = {
        "Which desk?": call(("expert", {"request": "Which desk?"}, None)),
        "expert()": say("The oak desk."),
    }
    return _agent(answers, [AgentTool(inner)])


def _transfer():
    other = _agent(
        {"anything": call(("price", {"what": "sofa"}, None)), "price()": say("The sofa costs 12.50.")},
        [price],
        name="sales",
    )
    answers = {
        "Sofa, please": call(("transfer_to_agent", {"agent_name": "sales"}, None)),
        "anything": say("What?"),
    }
    return _agent(answers, sub_agents=[other])


def _streaming():
    chunks = [chunk("hidden", thought=True), chunk("Hel"), chunk("lo "), chunk("world")]
    whole = LlmResponse(
        content=types.Content(
            role="model", parts=[types.Part(text="hidden", thought=True), types.Part(text="Hello world")]
        )
    )
    return _agent({"Hi": [*chunks[1:], whole], "Think aloud": [*chunks, whole]})


def _thoughts():
    return _agent({"Think": _thinking("Forty-two.", "Let me think about it.", 7)})


def _raising():
    answers = {
        "Try": call(("broken", {}, None)),
        "Stock?": call(("refusing", {}, None)),
        "refusing()": say("None left."),
    }
    return _agent(answers, [broken, refusing])


def _attachment():
    return _agent({"anything": say("A nice picture.")})


def _painter():
    answer = say("A lamp.")
    answer.content.parts.append(types.Part(inline_data=types.Blob(mime_type="image/png", data=b"1")))
    return _agent({"anything": answer})


def _waiting():
    """A person confirms the call, and the call is made."""
    answers = {"Which price?": call(("price", {"what": "lamp"}, None)), "price()": say("12.50 euros.")}
    return _agent(answers | {"Thanks": say("Fine.")}, [FunctionTool(price, require_confirmation=True)])


def _long_running():
    """A person gives the result of the call."""
    answers = {"Find a lamp": call(("pending", {"what": "lamp"}, None)), "pending()": say("One lamp.")}
    return _agent(answers | {"Thanks": say("Fine.")}, [LongRunningFunctionTool(pending)])


def _sequence():
    def member(name, answer):
        return _agent({"anything": say(answer)}, name=name)

    return SequentialAgent(
        name="pair", sub_agents=[member("writer", "A draft."), member("editor", "A text.")]
    )


def _replaced():
    """A callback has the user read another response."""
    return _agent(
        {"anything": say("Secret.")}, after_model_callback=lambda callback_context, llm_response: say("No.")
    )


def _loop():
    member = _agent({"anything": call(("exit_loop", {}, None))}, [exit_loop])
    return LoopAgent(name="again", sub_agents=[member], max_iterations=3)


def _refused():
    return _agent({"anything": LlmResponse(error_code="SAFETY", error_message="no")})


def _blocked():
    return _agent({"anything": LlmResponse(error_code="SAFETY", error_message="no", finish_reason="SAFETY")})


AGENTS = {
    "refused": _refused,
    "blocked": _blocked,
    "tools": _tools,
    "parallel": _parallel,
    "agent_tool": _agent_tool,
    "transfer": _transfer,
    "streaming": _streaming,
    "thoughts": _thoughts,
    "raising": _raising,
    "attachment": _attachment,
    "painter": _painter,
    "sequence": _sequence,
    "waiting": _waiting,
    "replaced": _replaced,
    "loop": _loop,
    "long_running": _long_running,
}


_exporters = []


def _exporters_of_this_process():
    if not _exporters:
        spans, logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
        resource = Resource.create({"service.name": "shop"})
        # A process has one of each for good, and a server of google-adk may have set them.
        if not isinstance(trace.get_tracer_provider(), TracerProvider):
            trace.set_tracer_provider(TracerProvider(resource=resource))
        if not isinstance(_logs.get_logger_provider(), LoggerProvider):
            _logs.set_logger_provider(LoggerProvider(resource=resource))
        trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
        _logs.get_logger_provider().add_log_record_processor(SimpleLogRecordProcessor(logs))
        _exporters.extend((spans, logs))
    return _exporters


@contextmanager
def _environment(values):
    before = {name: os.environ.pop(name, None) for name in _OURS}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def run(agent, messages, environment, session="s1"):
    """What a conversation of one of the AGENTS leaves behind."""
    spans, logs = _exporters_of_this_process()
    spans.clear()
    logs.clear()
    with _environment(environment):
        asyncio.run(_converse(AGENTS[agent](), messages, session, streaming=agent == "streaming"))
    told = Told(spans.get_finished_spans(), logs.get_finished_logs(), session)
    spans.clear()
    logs.clear()
    return told


async def _converse(agent, messages, session, *, streaming):
    from google.adk.agents.run_config import RunConfig, StreamingMode

    runner = InMemoryRunner(agent, app_name="shop")
    await runner.session_service.create_session(app_name="shop", user_id="u", session_id=session)
    config = RunConfig(streaming_mode=StreamingMode.SSE if streaming else StreamingMode.NONE)
    waiting = {}
    for message in messages:
        if isinstance(message, Reply):
            response = types.FunctionResponse(
                id=waiting[message.name], name=message.name, response=message.response
            )
            message = [types.Part(function_response=response)]
        parts = message if isinstance(message, list) else [types.Part(text=message)]
        content = types.Content(role="user", parts=parts)
        try:
            async for event in runner.run_async(
                user_id="u", session_id=session, new_message=content, run_config=config
            ):
                waiting |= {one.name: one.id for one in event.get_function_calls()}
        except RuntimeError:
            # A tool raised, which ends the turn.
            pass
    await runner.close()
