"""Slow work in threads that gives way to the keys: in Python, threads take turns at one lock.

A thread that computes keeps that lock for milliseconds each time the screen has to wait for anything, which
a key does a dozen times before it is answered.
"""

from __future__ import annotations

import time

# Seconds after a key in which the screen is at work, and for which a thread lets it have the lock.
_AT_WORK = 0.15
_REST = 0.02

_pressed_at = 0.0


def key_pressed() -> None:
    """The screen is about to answer a key."""
    global _pressed_at
    _pressed_at = time.monotonic()


def give_way() -> None:
    """To be called every few milliseconds of work. A key that is held down slows the work, and stops none."""
    if time.monotonic() - _pressed_at < _AT_WORK:
        time.sleep(_REST)
