"""Timers that tick once."""

from __future__ import annotations

from collections.abc import Callable

from textual.message_pump import MessagePump
from textual.timer import Timer


def once(pump: MessagePump, seconds: float, callback: Callable[[], object]) -> Timer:
    """Call something after a while.

    Textual leaves out the ticks for which it is too late when a timer begins. A timer that ticks once would
    never tick where its time has passed by then, because it is short or the process was held up.
    """
    timer = pump.set_timer(seconds, callback)
    timer._skip = False
    return timer
