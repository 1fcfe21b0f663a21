"""The secrets that an agent may have got hold of."""

from __future__ import annotations

import os
from pathlib import Path

from evaltui.core.secrets import Secrets
from evaltui.files.folders import env_file


def secrets_of(agent_dir: Path) -> Secrets:
    """Those of this process, and of the agent's `.env`, which only hosts load."""
    from dotenv import dotenv_values

    found = env_file(agent_dir)
    try:
        own = dotenv_values(found) if found else {}
    except (OSError, ValueError):
        # The agent could not read it either.
        own = {}
    return Secrets(os.environ, {name: value for name, value in own.items() if value})
