import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from evaltui.agents.threads import in_thread

VARIABLE = contextvars.ContextVar("VARIABLE", default=0)


async def test_a_blocking_function_leaves_the_loop_free():
    released = threading.Event()

    async def release():
        released.set()

    waited, _ = await asyncio.gather(in_thread(released.wait, 10), release())
    assert waited


async def test_a_context_that_is_given_is_kept_from_call_to_call():
    context = contextvars.copy_context()
    await in_thread(VARIABLE.set, 5, context=context)
    assert await in_thread(VARIABLE.get, context=context) == 5
    assert VARIABLE.get() == 0


async def test_an_executor_that_is_given_is_used():
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="own") as executor:
        thread = await in_thread(threading.current_thread, executor=executor)
    assert thread.name.startswith("own")


async def test_stop_iteration_does_not_hang():
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(in_thread(next, iter(())), 5)
