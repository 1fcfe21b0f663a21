"""The packages of a Python: where they are, and what installs another one."""

from __future__ import annotations

from pathlib import Path

from .folders import project_root

_LIBRARIES = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "lib/python3/dist-packages")


def site_packages(executable: Path) -> list[Path]:
    """Where the libraries of a Python are installed, as far as its folders tell."""
    environment = executable.absolute().parent.parent
    if not (environment / "pyvenv.cfg").is_file():
        environment = executable.resolve().parent.parent
    folders = (*_LIBRARIES, "Lib/site-packages")
    return sorted(one for name in folders for one in environment.glob(name) if one.is_dir())


def install_command(folder: Path, package: str, executable: Path) -> str:
    """What installs a package for the agent in a folder, in a shell."""
    root = project_root(folder) or folder
    if (root / "uv.lock").is_file():
        return f"uv add {package}"
    if (root / "poetry.lock").is_file():
        return f"poetry add {package}"
    if any((one / "pip").is_dir() for one in site_packages(executable)):
        return f"{executable} -m pip install {package}"
    # As in environments that uv has made.
    return f"uv pip install --python {executable} {package}"


def remake_command(folder: Path) -> str:
    """What makes the environment of the project of a folder, in a shell there."""
    root = project_root(folder) or folder
    if (root / "uv.lock").is_file():
        return "uv sync"
    if (root / "poetry.lock").is_file():
        return "poetry install"
    return "python3 -m venv --clear .venv"
