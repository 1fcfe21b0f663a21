from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gemini_server import GeminiServer


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[GeminiServer]:
    """A Gemini API on this machine, which google-genai talks to in this process and in its children."""
    with GeminiServer() as server:
        server.use(monkeypatch)
        yield server


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an agent in a folder `bot`."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bot").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bot"\n')
    return tmp_path
