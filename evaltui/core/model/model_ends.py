"""Models with an announced end, each with the source and the day of what it says: such a table ages."""

from __future__ import annotations

from typing import NamedTuple

from evaltui.core.model.served import plain_name


class ModelEnd(NamedTuple):
    """The announced end of models."""

    names: tuple[str, ...]
    end: str
    """Day of the end, `2026-12-01`."""
    successor: str
    """The model that the source names instead; "" where it names none."""
    source: str
    read: str
    """Day of what the source says."""


_GOOGLE = "ai.google.dev/gemini-api/docs/deprecations"
_FIREBASE = "firebase.google.com/docs/ai-logic/locations"
_OPENAI = "developers.openai.com/api/docs/deprecations"
_CLAUDE = "platform.claude.com/docs/en/release-notes/overview"
# Of a page of its provider that could not be read itself, the page that quotes it.
_QUOTED = "dev.to/aideprecations"

MODEL_ENDS = (
    ModelEnd(("gemini-2.5-flash",), "2026-12-01", "gemini-3.5-flash-lite", _QUOTED, "2026-11-10"),
    ModelEnd(("gemini-2.5-pro",), "2026-12-01", "gemini-3.8-flash", _QUOTED, "2026-11-10"),
    ModelEnd(
        (
            "gemini-2.0-flash",
            "gemini-2.0-flash-001",
            "gemini-2.0-flash-lite",
            "gemini-2.0-flash-lite-001",
        ),
        "2026-06-01",
        "gemini-3.1-flash-lite",
        _FIREBASE,
        "2026-06-18",
    ),
    ModelEnd(("gemini-3-pro-preview",), "2026-03-09", "gemini-3.1-pro-preview", _GOOGLE, "2026-11-30"),
    ModelEnd(
        ("gemini-2.5-pro-preview-03-25", "gemini-2.5-pro-preview-05-06", "gemini-2.5-pro-preview-06-05"),
        "2025-12-02",
        "gemini-3.1-pro-preview",
        _GOOGLE,
        "2026-11-30",
    ),
    ModelEnd(("gpt-5", "gpt-5-2025-08-07"), "2026-12-11", "gpt-6.1-sol", _OPENAI, "2026-11-30"),
    ModelEnd(("gpt-5-mini", "gpt-5-mini-2025-08-07"), "2026-12-11", "gpt-6.1-terra", _OPENAI, "2026-11-30"),
    ModelEnd(("gpt-5-nano", "gpt-5-nano-2025-08-07"), "2026-12-11", "", _OPENAI, "2026-11-30"),
    ModelEnd(("claude-sonnet-4-20250514",), "2026-06-15", "claude-sonnet-4-6", _CLAUDE, "2026-06-17"),
    ModelEnd(("claude-opus-4-20250514",), "2026-06-15", "claude-opus-4-8", _CLAUDE, "2026-06-17"),
)


def end_of(model: str) -> ModelEnd | None:
    """The announced end of a model; None where none is known."""
    return next((row for row in MODEL_ENDS if plain_name(model) in row.names), None)
