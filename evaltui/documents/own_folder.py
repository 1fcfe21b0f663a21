"""The folder `.evaltui` of an agent: private to its user, ignored by git, never behind a link."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

OWN_FOLDER = ".evaltui"

_PRIVATE = 0o700


def make_own_folder(folder: Path, *inner: str) -> Path:
    """Creates `.evaltui` in an agent's folder, or a folder in it, private and ignored by git.

    Raises OSError, also for a link, whose target could be anywhere.
    """
    own = folder / OWN_FOLDER
    make_private_folder(own)
    keep_out_of_git(own)
    for name in inner:
        own /= name
        make_private_folder(own)
    return own


def path_inside(folder: Path, path: Path) -> str | None:
    """A file as seen from a folder, with `/`; None for one outside it, links resolved."""
    folder, real = folder.resolve(), path.resolve()
    return real.relative_to(folder).as_posix() if real.is_relative_to(folder) else None


def make_private_folder(folder: Path) -> None:
    """Creates a folder, if it is missing, that only its user can read. Raises OSError, also for a link."""
    refuse_link(folder)
    folder.mkdir(mode=_PRIVATE, exist_ok=True)
    if stat.S_IMODE(folder.stat().st_mode) != _PRIVATE:
        # Not every file system has modes.
        with suppress(OSError):
            folder.chmod(_PRIVATE)


def refuse_link(path: Path) -> None:
    """Raises OSError where a file or folder is a link: a write would go elsewhere."""
    if path.is_symlink():
        raise OSError(f"{path} is a link, which is not followed")


def keep_out_of_git(folder: Path) -> None:
    """Makes git ignore a folder, unless it has a `.gitignore`. Raises OSError."""
    ignore = folder / ".gitignore"
    if not os.path.lexists(ignore):
        ignore.write_text("*\n", encoding="utf-8")
