"""What the file of an eval set is called wherever a case is named, and which file that is."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from evaltui.files.folders import agent_folder


def case_path(agent_dir: Path, set_path: Path) -> str:
    """The path of `CaseId`: as seen from the agent's folder, with `/` on every system."""
    folder = agent_folder(agent_dir)
    if set_path.is_relative_to(folder) and ".." not in set_path.parts:
        # Also once the current folder is gone, of which nothing relative can be made absolute.
        return set_path.relative_to(folder).as_posix()
    return _relative(str(folder.absolute()), str(set_path.absolute()))


@lru_cache(maxsize=4096)
def _relative(folder: str, path: str) -> str:
    # Either may have been named through a link. A link to a set is a set of its own, with a config beside it.
    real_folder, (parent, name) = os.path.realpath(folder), os.path.split(path)
    real_path = os.path.join(os.path.realpath(parent), name)  # noqa: PTH118
    seen = [_from(folder, path), _from(real_folder, path), _from(real_folder, real_path)]
    return next((one for one in seen if not one.startswith("../")), seen[-1])


def _from(folder: str, path: str) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def file_of(agent_dir: Path, path: str) -> Path:
    """The file that a path of `CaseId` stands for."""
    folder = agent_folder(agent_dir).absolute()
    if path.startswith("../"):
        # What is above a link is not what is above the folder.
        folder = folder.resolve()
    return Path(os.path.normpath(folder / path))
