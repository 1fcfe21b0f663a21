"""What an agent imports of its project belongs to it: other results are stale once it changes."""

from __future__ import annotations

import os
import textwrap

import pytest

from evaltui.project.agent_files import AgentFiles, changed_files, files_of
from evaltui.project.modules import ImportedFiles
from tests.project.layouts import PYPROJECT, nested_agents, write


def outside(agent):
    """The files that are found, as seen from the agent's folder."""
    found = ImportedFiles(agent).outside(agent.rglob("*.py"))
    return [os.path.relpath(path, agent) for path in found]


@pytest.mark.parametrize("shared", ["my_app.shared", "...shared"])
def test_modules_of_the_package_that_an_agent_is_in(tmp_path, shared):
    assert outside(nested_agents(tmp_path, shared)) == [
        "../../__init__.py", "../../shared.py", "../../tools.py"
    ]  # fmt: skip


def test_modules_that_those_import(tmp_path):
    folder = nested_agents(tmp_path)
    package = tmp_path / "src" / "my_app"
    write(package / "tools.py", "from . import prices, nothing\ndef shout(text): ...\n")
    write(package / "prices.py", "import my_app.tools, os, json as j\nfrom settings import LIMIT\n")
    write(tmp_path / "settings.py", "import no_such_library.part\n")
    assert outside(folder) == [
        "../../../../settings.py",
        *("../../__init__.py", "../../prices.py", "../../shared.py", "../../tools.py"),
    ]


IMPORTS = """
    # from my_app import in_a_comment
    import my_app.a as one, my_app.b
    def later():
        from my_app.c import (
            x,  # a comment
            y as z,
        )
        from my_app import (d, e as f)
    try: import nothing
    except ImportError: from  my_app . g import h
    from my_app.h import *
    from plain.deep import module
"""


def test_every_form_of_an_import(tmp_path):
    folder = nested_agents(tmp_path)
    package = tmp_path / "src" / "my_app"
    for name in "abcdeh":
        write(package / f"{name}.py")
    write(tmp_path / "src" / "plain" / "deep" / "module.py")
    write(tmp_path / "src" / "plain" / "deep" / "other.py")
    write(package / "in_a_comment.py")
    write(folder / "agent.py", textwrap.dedent(IMPORTS))
    found = {
        os.path.relpath(path, tmp_path / "src")
        for path in ImportedFiles(folder).outside([folder / "agent.py"])
    }
    assert found == {
        "my_app/__init__.py", *(f"my_app/{name}.py" for name in "abcdeh"), "plain/deep/module.py"
    }  # fmt: skip


def test_modules_of_another_project_in_the_workspace(tmp_path):
    write(tmp_path / "pyproject.toml", '[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    nested_agents(tmp_path / "packages" / "app")
    write(tmp_path / "packages" / "till" / "pyproject.toml", PYPROJECT.format(name="till"))
    agent = write(tmp_path / "packages" / "till" / "src" / "till" / "agent.py", "from my_app import tools\n")
    assert outside(agent.parent) == [
        "../../../app/src/my_app/__init__.py",
        "../../../app/src/my_app/tools.py",
    ]


def test_what_is_installed_is_not_of_the_project(tmp_path):
    folder = nested_agents(tmp_path)
    write(tmp_path / ".venv" / "lib" / "python3" / "site-packages" / "library.py")
    write(folder / "agent.py", "import library\n")
    assert outside(folder) == []


def test_a_change_is_seen_and_told_by_name(tmp_path):
    folder = nested_agents(tmp_path)
    files = AgentFiles(folder)
    before, fingerprints = files.contents(), files_of(folder)
    write(tmp_path / "src" / "my_app" / "tools.py", "def shout(text):\n    return text\n")
    write(tmp_path / "src" / "my_app" / "agents" / "till" / "agent.py", "# of another agent\n")
    assert changed_files(before, files.contents()) == ("../../tools.py",)
    assert changed_files(fingerprints, files_of(folder)) == ("../../tools.py",)
