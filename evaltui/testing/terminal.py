"""The terminal that pytest was started in. Every pytest loads this: nothing of evaltui is imported here."""

from __future__ import annotations

import sys

import pytest


def has_terminal(config: pytest.Config) -> bool:
    """Whether somebody can be asked."""
    _release(config)
    return sys.stdin.isatty()


def ask(config: pytest.Config, question: str) -> str:
    """Asks a question and returns the answer in lower case; "" where the terminal is gone. Raises
    KeyboardInterrupt."""
    _release(config)
    try:
        return input(question).strip().lower()
    except EOFError:
        return ""


def _release(config: pytest.Config) -> None:
    """Give back what pytest has captured. It begins anew by itself with the next phase of a test."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
