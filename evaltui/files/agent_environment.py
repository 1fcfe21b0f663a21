"""The environment of an agent's process, and its way to Gemini."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from evaltui.core.metrics.gemini_access import GeminiAccess, gemini_access
from evaltui.files.folders import env_file, loads_env_file


def gemini_here(environment: Mapping[str, str]) -> GeminiAccess:
    """How a process of this machine with this environment reaches Gemini."""
    return gemini_access(environment, default_credentials=_has_default_credentials(environment))


def environment_of(agent_dir: Path) -> Mapping[str, str]:
    """The environment variables of the agent's process, with those of its .env file."""
    path = env_file(agent_dir) if loads_env_file() else None
    if path is None:
        return os.environ
    from dotenv import dotenv_values

    added = {name: value for name, value in dotenv_values(path).items() if value is not None}
    return added | dict(os.environ)


def _has_default_credentials(environment: Mapping[str, str]) -> bool:
    """Whether Google's library would find credentials, judged by files and variables."""
    if key_file := environment.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return Path(key_file).is_file()
    config = environment.get("CLOUDSDK_CONFIG")
    gcloud = Path(config) if config else Path.home() / ".config" / "gcloud"
    if (gcloud / "application_default_credentials.json").is_file():
        return True
    # On Google's own machines, which say so, there is a server for them.
    return "K_SERVICE" in environment or "GCE_METADATA_HOST" in environment or _is_on_compute_engine()


def _is_on_compute_engine() -> bool:
    try:
        name = Path("/sys/class/dmi/id/product_name").read_text(encoding="utf-8")
    except OSError:
        return False
    return name.startswith("Google")
