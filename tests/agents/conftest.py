from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an agent in a folder `bot`."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bot").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bot"\n')
    return tmp_path
