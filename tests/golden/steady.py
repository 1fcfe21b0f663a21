"""What makes golden screens the same on every machine and at any time."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs
import pytest

from evaltui.text import figures
from evaltui.tui.main import bars

# Figures that are different in every run have one form.
_FIGURES: dict[Callable[..., str], Callable[..., str]] = {
    figures.show_duration: lambda seconds: "—" if seconds is None else "1 s",
    figures.show_elapsed: lambda seconds: "0:01",
    figures.show_moment: lambda at, now: "9 s ago",
    figures.show_clock: lambda at, now: "today 12:00",
    figures.show_growth: lambda before, after: "+9%",
    figures.show_local: lambda at: "2026-01-02 03:04",
}


@contextmanager
def steady() -> Iterator[None]:
    """Nothing of this machine, of its user or of the time is on the screen."""
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(prefix="evaltui-golden-") as folder,
    ):
        for name in ("NO_COLOR", "COLORTERM", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS", "VISUAL", "EDITOR"):
            patch.delenv(name, raising=False)
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
            patch.delenv(name, raising=False)
        patch.setenv("UV_PROJECT_ENVIRONMENT", sys.prefix)
        patch.setenv("XDG_STATE_HOME", folder)
        patch.setenv("XDG_CONFIG_HOME", folder)
        patch.setattr(platformdirs, "user_config_path", lambda name: Path(folder, name))
        for show, fixed in _FIGURES.items():
            # Wherever it was imported.
            patch.setattr(show, "__code__", fixed.__code__)
        # Messages stay until the next one.
        patch.setattr(bars, "_MESSAGE_SECONDS", 1e9)
        yield
