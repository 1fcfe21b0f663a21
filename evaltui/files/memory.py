"""Memory that is needed no more, given back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """glibc keeps what is freed between things that stay, 50 MB of a set of 20; others give it back."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
