"""Runs blocking code of the user's in a thread, so that other cases go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context, copy_context
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(
    function: Callable[..., Result],
    *args: object,
    executor: Executor | None = None,
    context: Context | None = None,
) -> Result:
    """Calls a function in a thread, in `context` or in a copy of the caller's context.

    Raises what the function raises, but RuntimeError for a StopIteration: a future refuses it, and before
    Python 3.12 awaiting that future never ends.
    """
    context = context or copy_context()
    timeouts: list[TimeoutError] = []

    def call() -> Result:
        try:
            return context.run(function, *args)
        except StopIteration as error:
            raise RuntimeError("StopIteration was raised outside of a generator") from error
        except TimeoutError as error:
            timeouts.append(error)
            raise

    try:
        return await asyncio.get_running_loop().run_in_executor(executor, call)
    except TimeoutError:
        # The future raises another TimeoutError, without the traceback of the function.
        if timeouts:
            raise timeouts[0] from None
        raise
