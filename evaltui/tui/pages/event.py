"""Everything that is known of an event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaltui.core.model.events import Event
from evaltui.text.values import show_duration, visible, visible_lines
from evaltui.tui.pages.json_value import write_json
from evaltui.tui.pages.span_row import tokens_of
from evaltui.tui.pages.writer import Page

_LONGEST_TEXT = 20_000


def write_events(page: Page, events: Sequence[Event]) -> None:
    """One after the other; where there are several, each with its kind above it."""
    for event in events:
        if len(events) > 1:
            page.blank()
            page.row((event.kind.replace("_", " ").capitalize(), "accent"))
        write_event(page, event)
    if not events:
        page.text([("nothing but what ran inside of it is known", "dim")])


def write_response(page: Page, events: Sequence[Event]) -> None:
    """What a model or a tool has answered, as a value."""
    answers = [event for event in events if event.kind in ("model_response", "tool_result", "error")]
    if not answers:
        waiting = (
            "no answer yet, or none that is known" if events else "only models and tools have a response"
        )
        page.text([(waiting, "dim")])
    for event in answers:
        write_event(page, event)


def write_event(page: Page, event: Event) -> None:
    """When and how long, its texts as they are meant to be read, then all of it as JSON."""
    facts = {
        "agent": visible(event.agent),
        "branch": visible(event.branch),
        "at": f"{event.t:.3f} s of the run",
        "took": "" if event.duration is None else show_duration(event.duration),
        "tokens": tokens_of(event.usage),
        "tool call": "inside a tool call" if event.data.get("nested") else "",
    }
    for label, value in facts.items():
        if value:
            page.labelled(label, [(value, "")])
    for title, text in _texts(event):
        page.blank()
        page.row((title, "bold"))
        for line in visible_lines(text[:_LONGEST_TEXT]):
            page.block([(line, "")], 2)
        if len(text) > _LONGEST_TEXT:
            page.row((f"  … {len(text) - _LONGEST_TEXT:,} characters are left out here", "yellow"))
    page.blank()
    page.row(("JSON", "bold"))
    write_json(page, event.to_json())


def _texts(event: Event) -> list[tuple[str, str]]:
    parts: list[dict[str, Any]] = (event.content or {}).get("parts") or []
    texts = [("Thought" if part.get("thought") else "Text", str(part.get("text") or "")) for part in parts]
    texts += [("Instruction", _instruction(event.data.get("system_instruction")))]
    texts += [("Error", str(event.data.get("traceback") or event.data.get("message") or ""))]
    return [(title, text) for title, text in texts if text]


def _instruction(given: object) -> str:
    """A text; in ADK it may be a whole content, which the JSON shows."""
    return given if isinstance(given, str) else ""
