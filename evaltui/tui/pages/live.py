"""What a case that is running has done so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaltui.core.model.events import Event, describe_response
from evaltui.text.lines import Span
from evaltui.text.values import show_value, visible, visible_block
from evaltui.tui.pages.calls import inline_args
from evaltui.tui.pages.writer import Page

# This page is written anew for every few events; the trace has all of them.
_MOST = 200


def write_live(page: Page, events: Sequence[Event]) -> None:
    turn: int | None = None
    if len(events) > _MOST:
        page.row((f"  … {len(events) - _MOST} events before: t shows them all", "dim"))
    for event in events[-_MOST:]:
        if event.turn is not None and event.turn != turn:
            turn = event.turn
            page.blank()
            page.row((f"Turn {turn + 1}", "bold"))
        _write_event(page, event)
    page.row(("  …", "accent"))


def _write_event(page: Page, event: Event) -> None:
    for part in (event.content or {}).get("parts") or []:
        if event.kind == "user":
            page.labelled("user", [(_text(part), "")])
        elif event.kind == "tool_call":
            call = part.get("function_call") or {}
            name: Span = (visible(str(call.get("name", ""))), "bold")
            page.hanging([("  → ", "accent"), name, (inline_args(call.get("args")), "dim")], 6)
        elif event.kind == "tool_result":
            response = (part.get("function_response") or {}).get("response")
            page.text([(show_value(response, 200), "dim")], [("  ← ", "dim")])
        elif event.kind == "text" and part.get("text"):
            page.labelled(visible(event.agent) or "agent", [(_text(part), "")])
    if event.kind == "console":
        page.labelled(str(event.data.get("source", "")), [(visible(str(event.data.get("text", ""))), "dim")])


def _text(part: dict[str, Any]) -> str:
    if response := part.get("function_response"):
        return describe_response(response)
    return visible_block(str(part.get("text") or ""))
