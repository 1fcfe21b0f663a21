"""The values that a function agent may yield besides text: see `evaltui.core.model.events`."""

from .core.model.events import Event, text, tool_call, tool_result, transfer

__all__ = ["Event", "text", "tool_call", "tool_result", "transfer"]
