"""How runs of earlier sittings are called."""

from __future__ import annotations

from datetime import datetime


def when(started: datetime) -> str:
    """By the user's clock: `2026-11-20 14:03:12`"""
    return f"{started.astimezone():%Y-%m-%d %H:%M:%S}"


def run_title(started: datetime, name: str) -> str:
    """`run of 2026-11-20 14:03:12`, or with a name `run baseline of 2026-11-20 14:03:12`"""
    return f"run {name} of {when(started)}" if name else f"run of {when(started)}"
