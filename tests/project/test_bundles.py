"""The archive of an agent: what is in it, and what never is."""

from __future__ import annotations

import errno
import os
import subprocess
import textwrap
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from evaltui.project import bundles
from evaltui.project.bundles import Bundle, bundle_of
from tests.project.layouts import write


@pytest.fixture
def project(tmp_path) -> Path:
    root = tmp_path / "shop"
    for name, text in {
        "pyproject.toml": "[project]\nname = 'shop'\n",
        "secrets.txt": "of the project",
        "common/__init__.py": "",
        "common/prices.py": "PRICE = 3\n",
        "agents/__init__.py": "",
        "agents/desk/__init__.py": "",
        "agents/desk/agent.py": "from common.prices import PRICE\n",
        "agents/desk/data/prices.csv": "tea,3\n",
        "agents/desk/.env": "GOOGLE_API_KEY=secret\n",
        "agents/desk/.venv/lib/x.py": "",
        "agents/desk/env/pyvenv.cfg": "",
        "agents/desk/env/lib/x.py": "",
        "agents/desk/node_modules/x.js": "",
        "agents/desk/.evaltui/runs/1.sqlite": "{}",
        "agents/desk/__pycache__/agent.pyc": "",
        "agents/desk/recordings/one.jsonl": "{}",
        "agents/desk/model.bin": "0" * 2000,
    }.items():
        write(root / name, text)
    return root


def names(bundle: Bundle) -> set[str]:
    return set(zipfile.ZipFile(BytesIO(bundle.archive)).namelist())


def test_code_and_data_and_what_is_imported_of_the_project(project, monkeypatch):
    monkeypatch.setattr(bundles, "LARGE", 1000)
    outside = project.parent / "lib.py"
    outside.touch()
    bundle = bundle_of(project / "agents" / "desk", [project / "common" / "prices.py", outside])
    assert names(bundle) == {
        "pyproject.toml",
        *("common/__init__.py", "common/prices.py"),
        *(f"agents/{name}" for name in ("__init__.py", "desk/__init__.py", "desk/agent.py")),
        "agents/desk/data/prices.csv",
    }
    assert bundle.agent == "agents/desk"
    assert bundle.notes == (
        "not sent to workers, larger than 0 MB: agents/desk/model.bin",
        f"not sent to workers, outside of the project: {outside.resolve()}",
    )


def of_project(bundle: Bundle) -> set[str]:
    return {name for name in names(bundle) if not name.startswith(("agents/", "pyproject"))}


@pytest.mark.parametrize(
    "place", ["common", "src/common", "company/common"], ids=["root", "src", "without __init__"]
)
def test_packages_are_whole(project, place):
    """What is imported later, and data that is read."""
    for name in ("__init__.py", "a.py", "inner/b.py", "table.txt", ".env", "__pycache__/a.pyc"):
        write(project / place / name)
    bundle = bundle_of(project / "agents" / "desk", [project / place / "a.py"])
    wanted = {f"{place}/{name}" for name in ("__init__.py", "a.py", "inner/b.py", "table.txt")}
    assert of_project(bundle) == wanted | {"common/__init__.py", "common/prices.py"}


def test_the_package_that_the_agent_is_in_is_whole(project):
    write(project / "agents" / "helper.py")
    write(project / "agents" / "till" / "table.txt")
    assert "agents/till/table.txt" in names(
        bundle_of(project / "agents" / "desk", [project / "agents" / "helper.py"])
    )


def test_a_module_without_a_package_is_one_file(project):
    write(project / "rates.py")
    write(project / "hidden" / "pyvenv.cfg")
    write(project / "hidden" / "one.py")
    write(project / "hidden" / "other.py")
    write(project / "agents" / "desk" / "agent.py")
    imported = [project / "rates.py", project / "hidden" / "one.py"]
    assert of_project(bundle_of(project / "agents" / "desk", imported)) == {"rates.py", "hidden/one.py"}


@pytest.mark.parametrize("agent", ["agents/desk", "agents/desk/agent.py"], ids=["folder", "file"])
def test_what_is_imported_in_functions_is_sent(project, agent):
    code = """
        def tool():
            import rates.tea
            import helper
    """
    write(project / "agents" / "desk" / "agent.py", textwrap.dedent(code))
    write(project / "agents" / "desk" / "helper.py")
    write(project / "rates" / "tea.py", "def rate():\n    from taxes import of_tea\n")
    write(project / "rates" / "of_tea.csv")
    write(project / "taxes.py")
    bundle = bundle_of(project / agent, [])
    assert of_project(bundle) == {"rates/tea.py", "rates/of_tea.csv", "taxes.py"}
    assert "agents/desk/helper.py" in names(bundle)


def test_links_to_folders_are_followed(project, tmp_path):
    write(tmp_path / "elsewhere" / "prompts" / "one.txt")
    write(tmp_path / "elsewhere" / "tools.py")
    desk = project / "agents" / "desk"
    before = names(bundle_of(desk, []))
    (desk / "linked").symlink_to(tmp_path / "elsewhere")
    (desk / "itself").symlink_to(desk)
    (tmp_path / "elsewhere" / "back").symlink_to(desk / "data")
    bundle = bundle_of(desk, [tmp_path / "elsewhere" / "tools.py"])
    assert names(bundle) - before == {
        f"agents/desk/linked/{name}" for name in ("prompts/one.txt", "tools.py", "back/prices.csv")
    }
    assert bundle.notes == ()


def test_files_that_the_agent_opened_here_and_workers_do_not_get_are_named(project):
    desk = project / "agents" / "desk"
    write(desk / ".prompts" / "system.txt")
    opened = [desk / ".prompts" / "system.txt", *desk.rglob("*.csv"), desk / "gone.txt", desk / "agent.py"]
    assert bundle_of(desk, [], opened).notes == ("opened here, and not sent to workers: .prompts/system.txt",)


def test_the_folder_with_most_of_much_is_named(project, monkeypatch):
    monkeypatch.setattr(bundles, "MUCH", 3000)
    desk = project / "agents" / "desk"
    assert bundle_of(desk, []).notes == ()
    write(desk / "data" / "one" / "a.txt", "0" * 2000)
    write(desk / "data" / "two" / "b.txt", "0" * 2000)
    (note,) = bundle_of(desk, []).notes
    assert note == (
        "sent to each worker: 6 KB, most of it in shop/agents/desk/data. Hidden folders are not sent"
    )


def test_the_folder_that_the_run_is_started_in(project, tmp_path, monkeypatch):
    desk = project / "agents" / "desk"
    for here, folder in [(desk / "data", "agents/desk/data"), (project, "."), (tmp_path, None)]:
        monkeypatch.chdir(here)
        assert bundle_of(desk, []).folder == folder
    # Nothing of it is sent.
    monkeypatch.chdir(desk / "recordings")
    assert bundle_of(desk, []).folder is None


def test_the_fingerprint_is_that_of_the_files_alone(project, tmp_path):
    desk = project / "agents" / "desk"
    before = bundle_of(desk, []).fingerprint
    (desk / "agent.py").touch()
    (desk / ".env").write_text("GOOGLE_API_KEY=other\n")
    assert bundle_of(desk, []).fingerprint == before
    (desk / "agent.py").write_text("PRICE = 4\n")
    assert bundle_of(desk, []).fingerprint != before


def test_a_single_file(tmp_path):
    (tmp_path / "bot.py").write_text("root_agent = print\n")
    (tmp_path / "diary.txt").touch()
    bundle = bundle_of(tmp_path / "bot.py", [tmp_path / "bot.py"])
    assert (names(bundle), bundle.agent) == ({"bot.py"}, "bot.py")


def test_what_can_be_executed_can_be_so_on_a_worker(project, tmp_path):
    script = project / "agents" / "desk" / "count.sh"
    write(script, "#!/bin/sh\necho 3\n")
    script.chmod(0o755)
    bundle_of(project / "agents" / "desk", []).unpack(tmp_path / "worker")
    folder = tmp_path / "worker" / "agents" / "desk"
    assert subprocess.run([folder / "count.sh"], capture_output=True, check=True).stdout == b"3\n"
    assert not os.access(folder / "agent.py", os.X_OK)


def test_files_are_unpacked_whole_or_not_at_all(project, tmp_path, monkeypatch):
    bundle = bundle_of(project / "agents" / "desk", [])
    folder = tmp_path / "scratch" / "one"
    folder.parent.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", full_disk)
        with pytest.raises(OSError, match="No space left"):
            bundle.unpack(folder)
    assert list(folder.parent.iterdir()) == []
    bundle.unpack(folder)
    bundle.unpack(folder)
    assert list(folder.parent.iterdir()) == [folder]
    assert (folder / "agents" / "desk" / "data" / "prices.csv").read_text() == "tea,3\n"


def full_disk(path: Path, target: Path) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
