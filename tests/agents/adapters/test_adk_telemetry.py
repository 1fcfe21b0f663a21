"""What ADK writes out for OpenTelemetry is written where somebody listens, and only there."""

import pytest

pytest.importorskip("google.adk")
from adk_scripted import ScriptedLlm, chat, say
from google.adk.agents import LlmAgent
from google.adk.telemetry import tracing
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

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
