"""Threads in the agent's process: blocking code of the user's, and the context of a case in threads."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")


async def in_thread(
    function: Callable[..., Result],
    *args: object,
    executor: Executor | None = None,
    context: Context | None = None,
) -> Result:
    """Calls a function in a thread, in `context` or in a copy of the caller's context, so that other cases go
    on.

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


@functools.cache
def carry_contexts() -> None:
    """Lets threads and tasks of thread pools work in the context of the code that starts them.

    By default a thread begins with an empty context (before Python 3.14), in which nobody would see its calls
    of models: a replay would make them.
    """
    threads: Any = threading.Thread
    pools: Any = ThreadPoolExecutor
    start, submit = threads.start, pools.submit

    @functools.wraps(start)
    def start_in_context(self: threading.Thread) -> None:
        # A method of an instance, which a subclass may override.
        self.run = functools.partial(copy_context().run, self.run)  # type: ignore[method-assign]
        start(self)

    @functools.wraps(submit)
    def submit_in_context(
        self: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **named: Any
    ) -> Any:
        return submit(self, copy_context().run, function, *args, **named)

    threads.start = start_in_context
    pools.submit = submit_in_context
