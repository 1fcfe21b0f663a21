"""User settings, the remembered state of an agent's folder, and the environment and secrets of an agent."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import platformdirs
from dotenv import dotenv_values

from evaltui.core.metrics.gemini_access import GeminiAccess, gemini_access
from evaltui.core.secrets import Secrets
from evaltui.documents.files import write_atomically, write_privately
from evaltui.documents.own_folder import make_own_folder
from evaltui.project.folders import agent_folder, env_file, loads_env_file, own_folder


def config_file(name: str) -> Path:
    """The path of a settings file, existing or not."""
    return platformdirs.user_config_path("evaltui") / name


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; none for a missing file. Raises ValueError with a sentence."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def tables_in(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; none where it is missing or broken."""
    try:
        return read_toml(path)
    except ValueError:
        return {}


def last_theme() -> str | None:
    """The theme chosen last; None where none was, or its file is broken."""
    theme = tables_in(config_file("theme.toml")).get("theme")
    return theme if isinstance(theme, str) else None


def remember_theme(theme: str) -> None:
    """Raises OSError where the settings cannot be written."""
    # A JSON string of printable characters is a TOML string.
    _write("theme.toml", f"theme = {json.dumps(theme)}\n")


def _write(name: str, text: str) -> None:
    path = config_file(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)


_LAYOUT = "layout.toml"


def last_sizes(names: Iterable[str]) -> dict[str, int]:
    """Sizes in cells or rows that the user gave to parts of the screen; empty where the file is broken."""
    sizes = tables_in(config_file(_LAYOUT))
    return {name: sizes[name] for name in names if isinstance(sizes.get(name), int)}


def remember_sizes(sizes: Mapping[str, int]) -> None:
    """Raises OSError where the settings cannot be written."""
    _write(_LAYOUT, "".join(f"{name} = {size}\n" for name, size in sizes.items()))


_RECENT = "recent.json"
_MAX_RECENT = 5


def recent_agents() -> list[Path]:
    """The agents that were opened last, the newest first; those that are gone are left out."""
    try:
        paths = json.loads(config_file(_RECENT).read_text(encoding="utf-8"))
        return [path for path in map(Path, paths) if path.exists()]
    except (OSError, ValueError, TypeError):
        return []


def remember_agent(agent_dir: Path) -> None:
    """Raises OSError where the settings cannot be written."""
    recent = [agent_dir.resolve(), *(path for path in recent_agents() if path != agent_dir.resolve())]
    _write(_RECENT, json.dumps([str(path) for path in recent[:_MAX_RECENT]]) + "\n")


_NAME = "settings.json"


def remembered_config(agent_dir: Path) -> Path | None:
    """The config that was chosen for all sets of an agent, whether or not it is still there."""
    config = _remembered(agent_dir).get("config")
    return agent_folder(agent_dir) / config if isinstance(config, str) and config else None


def remember_config(agent_dir: Path, config: Path | None) -> None:
    """Remembers a config for all sets of an agent; None: each set has its own. Raises OSError."""
    folder = agent_folder(agent_dir)
    # Seen from the agent, so that the project can be moved.
    seen = None if config is None else os.path.relpath(config.resolve(), folder.resolve())
    _remember(agent_dir, "config", seen)


def remembered_python(agent_dir: Path) -> Path | None:
    """The Python that was chosen for an agent, whether or not it is still there."""
    python = _remembered(agent_dir).get("python")
    return Path(python) if isinstance(python, str) and python else None


def remember_python(agent_dir: Path, executable: Path | None) -> None:
    """Remember a Python for an agent, or that it is found again. Raises OSError."""
    _remember(agent_dir, "python", None if executable is None else str(executable))


def last_view(agent_dir: Path) -> Mapping[str, Any]:
    """The last view of an agent, as `remember_view` stored it; empty for none."""
    view = _remembered(agent_dir).get("view")
    return view if isinstance(view, dict) else {}


def remember_view(agent_dir: Path, view: Mapping[str, Any]) -> None:
    """Remembers the view of an agent, if its folder has a folder of evaltui. Raises OSError."""
    if own_folder(agent_dir).is_dir():
        _remember(agent_dir, "view", view)


def _remembered(agent_dir: Path) -> dict[str, Any]:
    if own_folder(agent_dir).is_symlink():
        return {}
    try:
        settings = json.loads((own_folder(agent_dir) / _NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}


def _remember(agent_dir: Path, name: str, value: str | Mapping[str, Any] | None) -> None:
    settings = _remembered(agent_dir)
    if settings.get(name) != value:
        text = json.dumps(settings | {name: value}, indent=2) + "\n"
        write_privately(make_own_folder(agent_folder(agent_dir)) / _NAME, text)


def secrets_of(agent_dir: Path) -> Secrets:
    """The secrets of this process and of the agent's `.env`, which only hosts load."""
    named_values = ({name: value} for name, value in _SECRET_VALUES)
    return Secrets(os.environ, env_values(agent_dir), *named_values, named=_SECRET_VARIABLES)


# Variables that hosts of this process set, with secret values. There may be two of a name.
_SECRET_VALUES: dict[tuple[str, str], None] = {}


def keep_secret_values(variables: Iterable[tuple[str, str]]) -> None:
    """Masks these values of variables from now on, for any environment."""
    _SECRET_VALUES.update(dict.fromkeys(variables))


# Variables whose values are secrets, whatever their names say: the user has said so when this process began.
_SECRET_VARIABLES: set[str] = set()


def keep_secret(variables: Iterable[str]) -> None:
    """From now on, the values of these variables are masked."""
    _SECRET_VARIABLES.update(variables)


def env_values(agent_dir: Path) -> dict[str, str]:
    """The variables of the agent's `.env`; empty where it cannot be read."""
    file = env_file(agent_dir)
    try:
        own = dotenv_values(file) if file else {}
    except (OSError, ValueError):
        own = {}
    return {name: value for name, value in own.items() if value}


def gemini_here(environment: Mapping[str, str]) -> GeminiAccess:
    """How a process of this machine with this environment reaches Gemini."""
    return gemini_access(environment, default_credentials=_has_default_credentials(environment))


def environment_of(agent_dir: Path) -> Mapping[str, str]:
    """The environment variables of the agent's process, with those of its .env file."""
    return env_values(agent_dir) | dict(os.environ) if loads_env_file() else os.environ


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
