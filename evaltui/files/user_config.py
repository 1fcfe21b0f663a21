"""The user's own settings: the keys they chose, and the theme they saw last."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import platformdirs

from evaltui.files.atomic import write_atomically


def config_file(name: str) -> Path:
    """Where a file of settings is, or would be."""
    return platformdirs.user_config_path("evaltui") / name


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; none where there is no such file. Raises ValueError with a sentence."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def last_theme() -> str | None:
    """The theme chosen last; None where none was, or its file is broken."""
    try:
        theme = read_toml(config_file("theme.toml")).get("theme")
    except ValueError:
        return None
    return theme if isinstance(theme, str) else None


def remember_theme(theme: str) -> None:
    """Raises OSError where the settings cannot be written."""
    path = config_file("theme.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    # A JSON string of printable characters is a TOML string.
    write_atomically(path, f"theme = {json.dumps(theme)}\n")
