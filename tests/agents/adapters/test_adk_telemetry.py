"""What ADK writes out for OpenTelemetry is written where somebody listens, and only there."""

import pytest

pytest.importorskip("google.adk")
from adk_scripted import ScriptedLlm, chat, say
from google.adk import telemetry
from google.adk.agents import LlmAgent
from google.adk.telemetry import tracing
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

from evaltui.agents.adapters.adk import adapter as adk
from evaltui.agents.adapters.adk.adapter import AdkAdapter

pytestmark = pytest.mark.adk

MESSAGES = "set_operation_details_attributes_from_request"


@pytest.fixture
def written(monkeypatch):
    """The requests that ADK has written out, a turn making one."""
    # What has run in this process before may have set providers.
    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    monkeypatch.setattr(metrics, "get_meter_provider", metrics.NoOpMeterProvider)
    monkeypatch.setattr(_logs, "get_logger_provider", _logs.NoOpLoggerProvider)
    requests = []
    write = getattr(tracing, MESSAGES)

    def watched(attributes, request):
        requests.append(request)
        return write(attributes, request)

    monkeypatch.setattr(tracing, MESSAGES, watched)
    return requests


def agent(**fields):
    return AdkAdapter(LlmAgent(name="helper", model=ScriptedLlm(answers={"anything": say("hi")}), **fields))


async def test_where_nobody_listens_no_request_is_written_out(written):
    await chat(agent(), "hello", "again")
    assert written == []


@pytest.mark.parametrize(
    ("where", "asked", "provider"),
    [
        (trace, "get_tracer_provider", TracerProvider),
        (metrics, "get_meter_provider", MeterProvider),
        (_logs, "get_logger_provider", LoggerProvider),
    ],
)
async def test_where_somebody_listens_adk_does_as_ever(monkeypatch, written, where, asked, provider):
    monkeypatch.setattr(where, asked, provider)
    await chat(agent(), "hello", "again")
    assert len(written) == 2


async def test_spans_are_those_of_adk_itself(monkeypatch):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr(tracing, "tracer", provider.get_tracer("adk"))
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    await chat(agent(), "hello")
    (inference,) = [
        span for span in exporter.get_finished_spans() if span.name.startswith("generate_content")
    ]
    assert "hello" in inference.attributes["gen_ai.input.messages"]


async def test_a_provider_that_the_agent_sets_later_is_seen_in_the_next_turn(monkeypatch, written):
    def listen(callback_context):
        monkeypatch.setattr(trace, "get_tracer_provider", TracerProvider)

    await chat(agent(after_agent_callback=listen), "hello", "again")
    assert len(written) == 1


async def test_an_adk_that_has_dropped_the_older_convention_does_as_ever(monkeypatch, written):
    class OneConvention(BaseModel, extra="forbid"):
        pass

    monkeypatch.setattr(telemetry, "TelemetryConfig", OneConvention)
    monkeypatch.setattr(adk, "_short_telemetry", adk._short_telemetry.__wrapped__)
    await chat(agent(), "hello", "again")
    assert len(written) == 2
