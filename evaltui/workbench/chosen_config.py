"""Whether the sets of an agent are scored by their own configs or by one for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaltui.files.settings import remember_config, remembered_config
from evaltui.text.values import visible

OWN = "own"


@dataclass(frozen=True)
class ChosenConfig:
    """`path` is the one config for all sets, None where each has its own; `note` what is to be said of it."""

    path: Path | None
    note: str = ""


def choose_config(agent_dir: Path, given: str | None) -> ChosenConfig:
    """What is `given` as `--config`, a file or `own`, and remembered then; None for what was given last.

    Raises ValueError for a file that is not there.
    """
    if given is None:
        last = remembered_config(agent_dir)
        if last is None:
            return ChosenConfig(None)
        name = visible(last.name)
        if not last.is_file():
            return ChosenConfig(None, f"{name} is gone: each set is scored by its own config again")
        return ChosenConfig(last, f"All sets are scored by {name}, as last time; --config own ends that")
    path = None if given == OWN else Path(given)
    if path is not None and not path.is_file():
        raise ValueError(f"--config {given}: no such file")
    try:
        remember_config(agent_dir, path)
    except OSError as error:
        return ChosenConfig(path, f"--config cannot be remembered: {error}")
    return ChosenConfig(path)
