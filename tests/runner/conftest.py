from __future__ import annotations

from collections.abc import Iterator

import pytest
from gemini_server import GeminiServer


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[GeminiServer]:
    """A Gemini API on this machine, which google-genai talks to in this process and in its children."""
    with GeminiServer() as server:
        server.use(monkeypatch)
        yield server
