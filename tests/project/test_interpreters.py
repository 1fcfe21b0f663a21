"""Which Python an agent runs in: found from its project, asked for, or remembered."""

from __future__ import annotations

import json
import shlex
import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock

import pytest

from evaltui.project.interpreters import (
    OWN,
    InterpreterError,
    choose_interpreter,
    find_interpreter,
)
from evaltui.project.packages import install_command, site_packages
from evaltui.project.run_settings import SettingsError

VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "UV_PROJECT_ENVIRONMENT")


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent two folders below the root of its project."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "project"
    folder = project / "src" / "bot"
    folder.mkdir(parents=True)
    (project / "pyproject.toml").write_text('[project]\nname = "bot"\n')
    (folder / "agent.py").write_text("root_agent = print\n")
    return folder


def environment(folder: Path, version: str = "3.12.1") -> Path:
    """A virtual environment, as far as it is looked at; its executable."""
    executable = folder / "bin" / "python"
    executable.parent.mkdir(parents=True)
    executable.symlink_to(sys.executable)
    (folder / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {version}\n")
    return executable


def test_without_anything_it_is_evaltuis_own(agent):
    found = find_interpreter(agent)
    assert found == OWN
    assert found.executable is None


@pytest.mark.parametrize("place", ["", "src", "src/bot"])
def test_an_environment_at_or_above_the_agent(place, agent):
    executable = environment(agent.parents[1] / place / ".venv")
    for agent_dir in (agent, agent / "agent.py"):
        found = find_interpreter(agent_dir)
        assert (found.path, found.executable, found.reason) == (executable, executable, ".venv")


def test_the_nearest_environment_wins(agent):
    environment(agent.parents[1] / ".venv")
    nearest = environment(agent / ".venv")
    assert find_interpreter(agent).path == nearest


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"VIRTUAL_ENV": "active"}, "VIRTUAL_ENV"),
        ({"CONDA_PREFIX": "active", "CONDA_DEFAULT_ENV": "work"}, "conda"),
        ({"CONDA_PREFIX": "active", "CONDA_DEFAULT_ENV": "base"}, ""),
        ({"VIRTUAL_ENV": "gone"}, ""),
    ],
)
def test_the_active_environment(variables, reason, agent, tmp_path, monkeypatch):
    executable = environment(tmp_path / "active")
    for name, value in variables.items():
        monkeypatch.setenv(name, value if name == "CONDA_DEFAULT_ENV" else str(tmp_path / value))
    found = find_interpreter(agent)
    assert found.reason == reason
    assert found.path == (executable if reason else Path(sys.executable))


def test_the_environment_of_the_project_goes_before_the_active_one(agent, tmp_path, monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", str(environment(tmp_path / "active").parents[1]))
    of_project = environment(agent.parents[1] / ".venv")
    assert find_interpreter(agent).path == of_project


def test_uvs_own_place_for_the_environment(agent, monkeypatch):
    environment(agent.parents[1] / ".venv")
    executable = environment(agent.parents[1] / "envs" / "py")
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "envs/py")
    found = find_interpreter(agent)
    assert (found.path, found.reason) == (executable, "UV_PROJECT_ENVIRONMENT")


@pytest.fixture
def of_poetry(agent, tmp_path, monkeypatch):
    """How the environments of the project begin: a project of Poetry, where starting `poetry` fails."""
    project = agent.parents[1]
    (project / "poetry.lock").touch()
    for name in ("POETRY_CACHE_DIR", "POETRY_VIRTUALENVS_PATH", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("POETRY_CONFIG_DIR", str(tmp_path / "config"))
    started = Mock(side_effect=AssertionError("something was started"))
    monkeypatch.setattr("evaltui.project.interpreters.subprocess.run", started)
    digest = urlsafe_b64encode(sha256(str(project.resolve()).encode()).digest()).decode()[:8]
    return tmp_path / "cache" / "pypoetry" / "virtualenvs" / f"bot-{digest}-py"


def test_the_environment_of_poetry_is_found_without_starting_it(agent, of_poetry):
    executable = environment(Path(f"{of_poetry}3.12"))
    found = find_interpreter(agent)
    assert (found.path, found.reason) == (executable, "Poetry")


def test_of_several_environments_of_poetry_one_is_chosen(agent, of_poetry):
    first, second = (environment(Path(f"{of_poetry}{minor}")) for minor in ("3.11", "3.12"))
    with pytest.raises(InterpreterError, match=f"{first.parents[1]} and {second.parents[1]}. Choose with"):
        find_interpreter(agent)
    (of_poetry.parent / "envs.toml").write_text(f'[{of_poetry.name[:-3]}]\nminor = "3.11"\n')
    assert find_interpreter(agent).path == first


@pytest.mark.parametrize("where", ["poetry.toml", "config.toml", "POETRY_VIRTUALENVS_PATH", "cache"])
def test_poetrys_settings_say_where_environments_are(where, agent, of_poetry, tmp_path, monkeypatch):
    folder = tmp_path / "elsewhere"
    executable = environment(folder / "virtualenvs" / f"{of_poetry.name}3.12")
    setting = f'cache-dir = "{folder}"\n[virtualenvs]\npath = "{{cache-dir}}/virtualenvs"\n'
    if where == "poetry.toml":
        (agent.parents[1] / "poetry.toml").write_text(setting)
    elif where == "config.toml":
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "config.toml").write_text(setting)
    elif where == "cache":
        monkeypatch.setenv("POETRY_CACHE_DIR", str(folder))
    else:
        monkeypatch.setenv(where, str(folder / "virtualenvs"))
    assert find_interpreter(agent).path == executable


def test_the_project_says_which(agent):
    environment(agent.parents[1] / ".venv")
    executable = environment(agent.parents[1] / "other")
    pyproject = agent.parents[1] / "pyproject.toml"
    pyproject.write_text('[tool.evaltui]\npython = "other"\n')
    found = find_interpreter(agent)
    assert (found.path, found.reason) == (executable, "pyproject.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('python = "gone"', "tool.evaltui.python: no Python at gone. Give an executable"),
        ("python = 3", ":2: tool.evaltui.python is 3. Give a path or a command"),
        ("python = ", "cannot be read: Invalid value (at line 2, column 10)"),
    ],
)
def test_a_project_that_says_it_wrongly(text, message, agent):
    pyproject = agent.parents[1] / "pyproject.toml"
    pyproject.write_text(f"[tool.evaltui]\n{text}\n")
    with pytest.raises((InterpreterError, SettingsError)) as raised:
        find_interpreter(agent)
    assert str(raised.value).startswith("project/pyproject.toml:")
    assert message in str(raised.value)


def test_what_is_asked_for_goes_before_everything(agent, tmp_path, monkeypatch):
    environment(agent.parents[1] / ".venv")
    executable = environment(tmp_path / "asked")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python-of-bot").symlink_to(executable)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    for asked in (str(executable), str(tmp_path / "asked"), "asked"):
        assert find_interpreter(agent, asked).path == executable
    assert find_interpreter(agent, "python-of-bot").path == tmp_path / "bin" / "python-of-bot"
    with pytest.raises(InterpreterError, match="--python: no Python at nowhere"):
        find_interpreter(agent, "nowhere")


def test_what_was_asked_for_is_remembered_until_it_is_to_be_found_again(agent, tmp_path):
    of_project = environment(agent.parents[1] / ".venv")
    executable = environment(tmp_path / "asked")
    assert choose_interpreter(agent).path == of_project
    assert not (agent / ".evaltui").exists()

    assert choose_interpreter(agent, "asked").path == executable
    assert find_interpreter(agent).path == executable
    settings = json.loads((agent / ".evaltui" / "settings.json").read_text())
    assert settings["python"] == str(executable)

    assert choose_interpreter(agent, "auto").path == of_project
    assert find_interpreter(agent).path == of_project


def test_a_remembered_one_that_is_gone_is_passed_over(agent, tmp_path):
    executable = environment(tmp_path / "asked")
    choose_interpreter(agent, "asked")
    executable.unlink()
    assert find_interpreter(agent) == OWN


def test_one_that_is_too_old(agent):
    environment(agent.parents[1] / ".venv", "3.10.4")
    with pytest.raises(
        InterpreterError, match=r"Python 3\.10 is too old \(from \.venv\)\. Agents need 3\.11"
    ):
        find_interpreter(agent)


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("uv.lock", "uv sync"),
        ("poetry.lock", "poetry install"),
        ("other.lock", "python3 -m venv --clear .venv"),
    ],
)
def test_an_environment_that_has_lost_its_python(lock, command, agent):
    executable = environment(agent.parents[1] / ".venv")
    (agent.parents[1] / lock).touch()
    executable.unlink()
    executable.symlink_to("/nowhere")
    message = (
        f"{executable.parents[1]}: its Python is missing (from .venv). Make the environment anew: {command}"
    )
    for left in (True, False):
        with pytest.raises(InterpreterError) as raised:
            find_interpreter(agent)
        assert str(raised.value) == message
        if left:
            executable.unlink()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_called_like_an_environment_and_is_none_is_passed_over(kind, agent):
    path = agent.parents[1] / ".venv"
    path.write_text("bot-environment\n") if kind == "file" else path.mkdir()
    assert find_interpreter(agent) == OWN


def test_one_that_is_not_executable(agent):
    executable = environment(agent.parents[1] / ".venv")
    executable.unlink()
    executable.write_text("")
    with pytest.raises(InterpreterError, match=r"not executable \(from \.venv\)"):
        find_interpreter(agent)


def test_the_workbench_opens_whatever_was_found(agent):
    environment(agent.parents[1] / ".venv", "3.10.4")
    for asked in (None, "auto"):
        found = choose_interpreter(agent, asked)
        assert "Python 3.10 is too old" in found.problem
        assert found.executable is None
    with pytest.raises(InterpreterError, match="--python"):
        choose_interpreter(agent, "nowhere")


def test_one_that_is_none(agent, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert "cannot be started as a Python" in find_interpreter(agent, str(broken)).problem
    with pytest.raises(InterpreterError, match="cannot be started as a Python"):
        choose_interpreter(agent, str(broken))


def test_evaltuis_own_environment_is_its_own_wherever_it_was_found(agent, monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert find_interpreter(agent).executable is None


def test_a_command_can_be_pasted_whatever_the_folder_is_called(agent, tmp_path):
    executable = environment(tmp_path / "my env")
    command = install_command(agent, "yarl", executable)
    assert shlex.split(command) == ["uv", "pip", "install", "--python", str(executable), "yarl"]


@pytest.mark.parametrize("receipt", ["uv-receipt.toml", "pipx_metadata.json"])
def test_nothing_is_installed_where_evaltui_is_a_tool(receipt, agent, tmp_path):
    executable = environment(tmp_path / "tool")
    (tmp_path / "tool" / receipt).touch()
    assert install_command(agent, "yarl", executable) == "uv add yarl"
    (agent.parents[1] / "pyproject.toml").unlink()
    assert install_command(agent, "yarl", executable) == "python3 -m venv .venv && .venv/bin/pip install yarl"


@pytest.mark.parametrize(
    ("lock", "has_pip", "command"),
    [
        ("uv.lock", False, "uv add yarl"),
        ("poetry.lock", False, "poetry add yarl"),
        (None, True, "{python} -m pip install yarl"),
        (None, False, "uv pip install --python {python} yarl"),
    ],
)
def test_what_installs_a_package(lock, has_pip, command, agent, tmp_path):
    executable = environment(tmp_path / "env")
    packages = tmp_path / "env" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    assert site_packages(executable) == [packages]
    if has_pip:
        (packages / "pip").mkdir()
    if lock:
        (agent.parents[1] / lock).touch()
    assert install_command(agent, "yarl", executable) == command.format(python=executable)


@pytest.fixture
def member(agent, tmp_path):
    """The folder of an agent in a member of a uv workspace, and the root of that."""
    root = tmp_path / "workspace"
    folder = root / "packages" / "till" / "src" / "till"
    folder.mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    (root / "uv.lock").touch()
    (root / "packages" / "till" / "pyproject.toml").write_text('[project]\nname = "the-till"\n')
    return folder, root


def test_a_member_of_a_workspace_has_its_environment_or_that_of_all(member, monkeypatch):
    folder, root = member
    of_all = environment(root / ".venv")
    assert find_interpreter(folder).path == of_all
    own = environment(root / "packages" / "till" / ".venv")
    assert find_interpreter(folder).path == own
    elsewhere = environment(root / "envs" / "py")
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "envs/py")
    assert find_interpreter(folder).path == elsewhere


def test_a_package_is_added_to_the_member_that_needs_it(member):
    folder, root = member
    python = environment(root / ".venv")
    assert install_command(folder, "yarl", python) == "uv add --package the-till yarl"
    (root / "packages" / "till" / "pyproject.toml").write_text("[broken")
    assert install_command(folder, "yarl", python) == "uv add --package till yarl"
