"""Content that the limits of OpenTelemetry have cut or dropped: it is unknown, as what was not captured.

A span does not say that a value was cut. Texts of JSON that end too early tell at which length that happened,
and texts of that length are cut, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from evaltui.core.model.json_values import ABSENT
from evaltui.traces.span import OtelSpan, SpanEvent

_TOO_LONG = (
    "values were cut: raise or unset OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT and "
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT where the agent runs, and export its traces again"
)
_TOO_MANY = (
    "attributes were dropped (droppedAttributesCount): raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT where the agent "
    "runs, and export its traces again"
)
_CLOSING = {"{": "}", "[": "]", '"': '"'}
# A literal, a number or an escape that ends too early, or an ellipsis in the place of the rest.
_BROKEN_END = re.compile(r"[\w.+\-…\\]{0,9}\Z")


def json_attribute(value: Any) -> Any:
    """The value of a JSON text: the text itself where it is no JSON, ABSENT where it was cut."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except RecursionError:
        return ABSENT
    except json.JSONDecodeError as error:
        if value.lstrip()[:1] not in _CLOSING or error.msg == "Extra data":
            return value
        is_cut = error.msg.startswith("Unterminated string") or _BROKEN_END.match(value.rstrip(), error.pos)
        return ABSENT if is_cut else value


def leave_out_cut(spans: Sequence[OtelSpan]) -> None:
    """Removes the values of spans of one trace that were cut; their names are in `cut` then."""
    holders = list(_holders(spans))
    texts = [text for holder in holders for text in texts_in(holder.attributes)]
    longest = max(map(len, texts), default=0)
    lengths = {len(text) for text in texts if _ends_too_early(text, longest)}
    if not lengths:
        return
    for holder in holders:
        # Of the texts in a log record, each is cut by itself.
        cut = {
            name
            for name, value in holder.attributes.items()
            if any(_is_cut(text, lengths) for text in texts_in(value))
        }
        if cut:
            holder.cut |= cut
            holder.attributes = {name: value for name, value in holder.attributes.items() if name not in cut}


def _holders(spans: Sequence[OtelSpan]) -> Iterator[OtelSpan | SpanEvent]:
    for span in spans:
        yield span
        yield from (event for event in span.events if event.name.startswith("gen_ai."))


def texts_in(value: Any) -> Iterator[str]:
    """The texts in a value."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value


def _ends_too_early(text: str, longest: int) -> bool:
    closing = _CLOSING.get(text[:1])
    # Whole JSON is not read twice.
    is_suspect = closing is not None and (text.rstrip()[-1] != closing or len(text) in (1, longest))
    return is_suspect and json_attribute(text) is ABSENT


def _is_cut(text: str, lengths: Collection[int]) -> bool:
    if len(text) not in lengths:
        return False
    return text[:1] not in ("{", "[") or not isinstance(json_attribute(text), dict | list)


def lacks(span: OtelSpan, *prefixes: str) -> bool:
    """Whether attributes with such names may have been there: they were cut, or some were dropped."""
    return span.dropped > 0 or any(name.startswith(prefixes) for name in span.cut)


def limit_of(span: OtelSpan) -> str:
    """The remedy for the content of a span that a limit has cut; "" where none has."""
    if (
        span.cut
        or any(event.cut for event in span.events)
        or any(json_attribute(value) is ABSENT for value in span.attributes.values())
    ):
        return _TOO_LONG
    return _TOO_MANY if span.dropped else ""
