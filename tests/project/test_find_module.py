"""Agents by their dotted names: in the project, in its workspace, and among what the Python has installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evaltui.project.modules import ModuleNotThereError, find_module
from tests.project.layouts import AGENT, PYPROJECT, nested_agents, write


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing in it; each test may add what is gone afterwards."""
    folder = tmp_path_factory.mktemp("python") / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


@pytest.fixture
def packages(environment: Path):
    (folder,) = environment.glob("lib/python3*/site-packages")
    before = set(folder.iterdir())
    yield folder
    for one in set(folder.iterdir()) - before:
        shutil.rmtree(one) if one.is_dir() else one.unlink()


def found(name: str, environment: Path, here: Path) -> str:
    """What is found, as seen from a folder; or what is said."""
    try:
        return find_module(name, environment / "bin" / "python", here).relative_to(here.resolve()).as_posix()
    except ModuleNotThereError as error:
        return str(error).replace(str(environment), ".venv")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("my_app.agents.desk", "src/my_app/agents/desk"),
        ("my_app.agents.desk.agent", "src/my_app/agents/desk/agent.py"),
        ("my_app.agents:desk_agent", "src/my_app/agents"),
        ("my_app.tools:Tools.agent", "src/my_app/tools.py"),
        ("scripts.plain", "scripts/plain"),
    ],
)
@pytest.mark.parametrize("here", [".", "src", "src/my_app/agents"])
def test_a_module_of_the_project_is_found_from_anywhere_in_it(name, path, here, tmp_path, environment):
    nested_agents(tmp_path)
    write(tmp_path / "scripts" / "plain" / "agent.py", AGENT)
    where = find_module(name, environment / "bin" / "python", tmp_path / here)
    assert where == tmp_path.resolve() / path


def test_a_module_of_another_member_of_the_workspace_is_found(tmp_path, environment):
    write(tmp_path / "pyproject.toml", '[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    nested_agents(tmp_path / "packages" / "app")
    write(tmp_path / "packages" / "till" / "pyproject.toml", PYPROJECT.format(name="till"))
    for here in (tmp_path, tmp_path / "packages" / "till"):
        where = find_module("my_app.agents.desk", environment / "bin" / "python", here)
        assert where == tmp_path.resolve() / "packages/app/src/my_app/agents/desk"


@pytest.mark.parametrize("kind", ["path", "finder"])
def test_a_module_of_an_editable_install_elsewhere_is_found(kind, tmp_path, environment, packages):
    folder = nested_agents(tmp_path / "elsewhere")
    here = tmp_path / "here"
    here.mkdir()
    source = tmp_path / "elsewhere" / "src"
    if kind == "path":
        write(packages / "my_app.pth", f"# of uv\nimport sys\n{source}\n")
    if kind == "finder":
        # As those of setuptools, which only Python itself can ask.
        write(packages / "loads.py", f"import sys\nsys.path.append({str(source)!r})\n")
        write(packages / "my_app.pth", "import loads\n")
    assert find_module("my_app.agents.desk", environment / "bin" / "python", here) == folder
    write(source / "my_app" / "__init__.py", "raise RuntimeError('imported')\n")
    assert find_module("my_app.agents.desk", environment / "bin" / "python", here) == folder


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my_app.agents.dsk", "no module my_app.agents.dsk; {where}. Did you mean my_app.agents.desk?"),
        ("my_ap.agents.desk", "no module my_ap.agents.desk; {where}. Did you mean my_app.agents.desk?"),
        ("agents.desk", "no module agents.desk; {where}. Did you mean my_app.agents.desk?"),
        ("nothing.like.it", "no module nothing.like.it; {where}"),
        (
            "src/my_app",
            "'src/my_app' is not a dotted name such as my_app.agents.desk. Give a path without -m",
        ),
        ("my-app", "'my-app' is not a dotted name such as my_app.agents.desk"),
        (".desk", "'.desk' is not a dotted name such as my_app.agents.desk"),
        ("desk:", "'desk:' is not a dotted name such as my_app.agents.desk"),
        ("", "'' is not a dotted name such as my_app.agents.desk"),
    ],
)
def test_what_is_not_there_is_said_with_where_it_was_looked_for(name, said, tmp_path, environment):
    nested_agents(tmp_path)
    where = "searched in ., src, and in the packages of .venv/bin/python"
    assert found(name, environment, tmp_path) == said.format(where=where)
