"""Waits in its second case for what does not come, and says in a file that it does."""

import asyncio
from pathlib import Path


async def root_agent(message, session):
    if message == "wait" and not Path("go_on").exists():
        Path("waits").write_text("yes\n")
        await asyncio.sleep(1_000)
    return message
