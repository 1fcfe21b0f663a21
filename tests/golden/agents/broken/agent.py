"""Fails in the way that it is asked for."""

import asyncio
import os


async def root_agent(message, session):
    if message == "raise":
        raise RuntimeError("out of stock")
    if message == "exit":
        os._exit(3)
    if message == "hang":
        await asyncio.get_running_loop().create_future()
    return message
