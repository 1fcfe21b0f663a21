"""What happens around the workbench while its golden screens are taken: another program writes a file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from textual import events
from textual.pilot import Pilot

Deed = Callable[[Pilot[int]], Awaitable[None]]


def _replaces(name: str, old: str, new: str) -> Deed:
    """Another program changes a text in a file of the agent."""

    async def replace(pilot: Pilot[int]) -> None:
        path = Path(pilot.app.workbench.agent.dir, name)
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    return replace


async def _type_path(pilot: Pilot[int]) -> None:
    pilot.app.post_message(events.Paste(str(pilot.app.workbench.agent.dir / "trace.json")))
    await pilot.pause()


async def _listen(pilot: Pilot[int]) -> None:
    """At a port that is free."""
    pilot.app.workbench.received.start(0)


DEEDS: dict[str, Deed] = {
    "theirs": _replaces("talk.evalset.json", "I am fine, thank you.", "Fine, and you?"),
    "another answer": _replaces(
        "agent.py",
        "return message",
        'return {"how are you?": "I am fine, thank you.", "one": "1"}.get(message, message)',
    ),
    "path of the trace": _type_path,
    "listen": _listen,
    "agent changes": _replaces("agent.py", "def", "# Changed.\ndef"),
}
