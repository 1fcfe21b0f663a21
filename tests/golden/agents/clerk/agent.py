"""Keeps lists, and says what it was asked before: for chats and records."""

import os

from evaltui import events


async def root_agent(message, session):
    print("heard", message)
    if message == "raise":
        yield "I try"
        raise RuntimeError("the printer is out of paper")
    if message == "exit":
        os._exit(7)
    session.state["notes"] = [*session.state.get("notes", []), message]
    yield events.tool_call("write", {"note": message, "number": len(session.state["notes"])})
    yield events.tool_result("write", "ok")
    yield f"Noted, {len(session.state['notes'])} in all."
