"""Operation of an agent, as a span records it, the same for every layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evaltui.core.model.json_values import ABSENT
from evaltui.traces.layouts.limits import json_attribute
from evaltui.traces.span import OtelSpan, count_of

Json = dict[str, Any]
OperationKind = Literal["agent", "model", "tool", "other"]

CAPTURE = (
    "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT where the agent runs, and export "
    "its traces again"
)
"""Remedy for content that an agent with OpenTelemetry's own conventions did not record."""


CHOICES = (
    "a response has several choices, and the trace does not say which one the agent took: request one "
    "(n = 1), or record the output of the agent"
)
"""Remedy for the response of a model that was asked for several."""


# smolagents has its own beside them, LlamaIndex has no `args`.
_OF_FUNCTION = {"args", "kwargs", "sanitize_inputs_outputs"}


@dataclass(slots=True)
class Operation:
    """One span as it is read. What the span does not say is None or ABSENT: unknown, not empty."""

    kind: OperationKind
    name: str = ""
    """Name of the agent, the tool or the model."""
    version: str = ""
    """The model that the response names; "" where the span names none."""
    agent: str = ""
    """Who did it, where the span says so."""
    conversation: str = ""
    inputs: list[Json] | None = None
    """Contents as genai has them, in JSON: what it was given."""
    outputs: list[Json] | None = None
    """Messages of its answer."""
    input_value: Any = None
    output_value: Any = None
    """The values as recorded, in a layout where any JSON may stand for a message: `inputs` and `outputs` may
    be members of a text that is JSON. None in other layouts."""
    whole: bool = False
    """Whether the text in `outputs` is one answer, which no pieces go before."""
    instruction: str = ""
    tools: list[Json] = field(default_factory=list)
    config: Json = field(default_factory=dict)
    arguments: Any = ABSENT
    """Arguments of a tool call, JSON."""
    result: Any = ABSENT
    call_id: str = ""
    response_id: str = ""
    """The id that the model's provider gave the response; "" for none."""
    is_output: bool = False
    """Whether a tool's work is the agent's output: the agent calls nothing for it."""
    usage: Json | None = None
    """Tokens, as genai's usage metadata."""
    calls_tools: bool = False
    """Whether the model ended in order to call tools."""
    error: str = ""
    """The type of an error; "" for none."""
    is_adk: bool = False
    is_cut: bool = False
    """Whether content was cut by a limit, or is one of several choices: `remedy` names it then."""
    lacks_attachment: bool = False
    """Whether what it answered had data that the span does not hold."""
    is_unread: bool = False
    """Whether what it answered is recorded in a form that is not read, so that its calls are unknown."""
    is_guess: bool = False
    """Whether the span does not name the kind of its operation."""
    is_run: bool = True
    """Whether an agent's span is one run of it, not a function around several."""
    is_elided: bool = False
    """Whether google-adk's own attributes of a model call are without content: `{}` is no value then."""
    remedy: str = CAPTURE
    """Remedy for content that is not here, a sentence without its dot."""

    @property
    def has_output(self) -> bool:
        """Whether the span has what it returned, also in a form that is read as no message."""
        return self.outputs is not None or self.output_value not in (None, "", "null")

    def take_none_of_choices(self) -> None:
        """Makes the response unknown: it has several choices."""
        self.outputs, self.is_cut, self.remedy = None, True, CHOICES


_TEXTS = (
    "name",
    "version",
    "agent",
    "instruction",
    "tools",
    "config",
    "call_id",
    "response_id",
    "calls_tools",
    "error",
)


@dataclass(frozen=True)
class Layout:
    """The names of attributes in one convention, declared by its module."""

    read: Callable[[OtelSpan], Operation | None]
    """Reads a span; None for a span in another layout."""
    content: tuple[str, ...]
    """Prefixes of its attributes."""
    messages: tuple[str, ...] = ()
    """Prefixes of attributes with messages, which no other spans have."""
    kind: str = ""
    """The attribute that names the kind of an operation; "" for none."""
    session: str = ""
    """The attribute that names the session on spans of any kind; "" for none."""


def prefer(first: Operation, second: Operation) -> Operation:
    """One operation that two spans tell of; what the first one does not say comes from the second."""
    if first.outputs is None:
        first.is_unread |= second.is_unread
    for name in ("inputs", "outputs", "input_value", "output_value", "usage"):
        if getattr(first, name) is None:
            setattr(first, name, getattr(second, name))
    for name in ("arguments", "result"):
        if getattr(first, name) is ABSENT:
            setattr(first, name, getattr(second, name))
    first.lacks_attachment |= second.lacks_attachment
    if second.is_cut and not first.is_cut:
        first.is_cut, first.remedy = True, second.remedy
    for name in _TEXTS:
        if not getattr(first, name):
            setattr(first, name, getattr(second, name))
    return first


def usage_of(
    prompt: Any, output: Any, *, cached: Any = None, thoughts: Any = None, total: Any = None
) -> Json | None:
    """Numbers of tokens as genai's usage metadata; `output` has the thoughts, too. None for none."""
    counts = {
        "prompt_token_count": count_of(prompt),
        "candidates_token_count": count_of(output),
        "cached_content_token_count": count_of(cached),
        "thoughts_token_count": count_of(thoughts),
        "total_token_count": count_of(total),
    }
    usage = {name: value for name, value in counts.items() if value is not None}
    if not usage:
        return None
    candidates, thought = usage.get("candidates_token_count"), usage.get("thoughts_token_count")
    if candidates is not None and thought:
        usage["candidates_token_count"] = max(candidates - thought, 0)
    if "total_token_count" not in usage:
        usage["total_token_count"] = (usage.get("prompt_token_count") or 0) + (candidates or 0)
    return usage


def as_arguments(value: Any) -> Any:
    """Arguments of a call as an object; ABSENT for anything else, which does not tell their names."""
    value = json_attribute(value)
    return value if isinstance(value, dict) else ABSENT


def of_function(value: Any) -> Any:
    """The arguments of a Python function that are recorded as `args` and `kwargs`; ABSENT for those by place,
    whose names are not recorded. Others stay as they are."""
    if not isinstance(value, dict) or "kwargs" not in value or not value.keys() <= _OF_FUNCTION:
        return value
    return ABSENT if value.get("args") else value["kwargs"]


def of_langchain(value: Any) -> Any:
    """The arguments of a tool of LangChain, beside which OpenLLMetry records metadata. Others stay as they
    are."""
    if not isinstance(value, dict) or not {"input_str", "metadata"} <= value.keys():
        return value
    return langchain_inputs(value)


def langchain_inputs(recorded: Json) -> Any:
    """The arguments in what OpenLLMetry records of a tool of LangChain, which has no `inputs` where there are
    none."""
    return recorded.get("inputs", {} if recorded.get("input_str") == "{}" else ABSENT)


def as_result(value: Any) -> Any:
    """The response of a tool as an object; ABSENT where it is unknown. The text `null` is a known value."""
    if value is None or value == "":
        return ABSENT
    value = json_attribute(value)
    return value if isinstance(value, dict) or value is ABSENT else {"result": value}


def calls_in(contents: Sequence[Json]) -> list[Json]:
    return [
        part["function_call"] for content in contents for part in content["parts"] if "function_call" in part
    ]


def responses_in(contents: Sequence[Json]) -> list[Json]:
    return [
        part["function_response"]
        for content in contents
        for part in content["parts"]
        if "function_response" in part
    ]


def makes_own_calls(operation: Operation) -> bool:
    """Whether a model's answer has calls and their results: its provider has made them."""
    outputs = operation.outputs or ()
    return 0 < len(calls_in(outputs)) <= len(responses_in(outputs))
