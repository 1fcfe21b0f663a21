"""What the workbench remembers of an agent from one time to the next."""

from __future__ import annotations

import json
import os
from pathlib import Path

from evaltui.files.atomic import write_privately
from evaltui.files.folders import agent_folder, make_own_folder, own_folder

_NAME = "settings.json"


def remembered_config(agent_dir: Path) -> Path | None:
    """The config that was chosen for all sets of an agent, whether or not it is still there."""
    folder = agent_folder(agent_dir)
    if own_folder(agent_dir).is_symlink():
        return None
    try:
        settings = json.loads((own_folder(agent_dir) / _NAME).read_text(encoding="utf-8"))
        return folder / str(settings["config"]) if settings["config"] else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def remember_config(agent_dir: Path, config: Path | None) -> None:
    """Remember a config for all sets of an agent, or that each has its own again. Raises OSError."""
    folder = agent_folder(agent_dir)
    if config is None and remembered_config(agent_dir) is None:
        return
    # Seen from the agent, so that the project can be moved.
    seen = None if config is None else os.path.relpath(config.resolve(), folder.resolve())
    write_privately(make_own_folder(agent_dir) / _NAME, json.dumps({"config": seen}, indent=2) + "\n")
