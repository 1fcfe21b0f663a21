"""The archive of an agent: what is in it, and what never is."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from evaltui.files import bundles
from evaltui.files.bundles import Bundle, bundle_of


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
        "agents/desk/.evaltui/runs/1.jsonl": "{}",
        "agents/desk/__pycache__/agent.pyc": "",
        "agents/desk/recordings/one.jsonl": "{}",
        "agents/desk/model.bin": "0" * 2000,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
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
        "common/prices.py",
        *(f"agents/{name}" for name in ("__init__.py", "desk/__init__.py", "desk/agent.py")),
        "agents/desk/data/prices.csv",
    }
    assert bundle.agent == "agents/desk"
    assert bundle.too_large == ("agents/desk/model.bin",)
    assert bundle.elsewhere == (str(outside.resolve()),)


def test_the_fingerprint_is_that_of_the_files_alone(project, tmp_path):
    desk = project / "agents" / "desk"
    before = bundle_of(desk, []).fingerprint
    (desk / "agent.py").touch()
    (desk / ".env").write_text("GOOGLE_API_KEY=other\n")
    assert bundle_of(desk, []).fingerprint == before
    (desk / "agent.py").write_text("PRICE = 4\n")
    assert bundle_of(desk, []).fingerprint != before


def test_it_is_unpacked_once(project, tmp_path):
    bundle = bundle_of(project / "agents" / "desk", [])
    folder = bundle.unpack(tmp_path / "cache")
    assert (folder / "data" / "prices.csv").read_text() == "tea,3\n"
    written = (folder / "agent.py").stat().st_ino
    assert bundle.unpack(tmp_path / "cache") == folder
    assert (folder / "agent.py").stat().st_ino == written
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_single_file(tmp_path):
    (tmp_path / "bot.py").write_text("root_agent = print\n")
    (tmp_path / "diary.txt").touch()
    bundle = bundle_of(tmp_path / "bot.py", [tmp_path / "bot.py"])
    assert (names(bundle), bundle.agent) == ({"bot.py"}, "bot.py")
