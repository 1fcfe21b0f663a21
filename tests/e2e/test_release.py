"""The wheel is complete, has the metadata of a release, and opens the demo where it is installed."""

import os
import re
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from terminal import Terminal

ROOT = Path(__file__).parents[2]
SOURCES = subprocess.run(
    ["git", "ls-files", "evaltui"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel as GitHub builds it for a tag."""
    folder = tmp_path_factory.mktemp("wheel")
    of_github = {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "someone/evaltui",
        "GITHUB_REF_NAME": "v1",
    }
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **of_github}, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel):
    packed = zipfile.ZipFile(wheel).namelist()
    assert {name for name in packed if ".dist-info/" not in name} == set(SOURCES)
    assert any(name.endswith("/licenses/LICENSE") for name in packed)


def test_the_metadata_names_license_and_addresses(metadata):
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    addresses = dict(address.split(", ", 1) for address in metadata.get_all("Project-URL"))
    assert addresses["Changelog"] == "https://github.com/someone/evaltui/blob/v1/CHANGELOG.md"
    assert f"## {metadata['Version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_link_of_the_readme_is_absolute_and_leads_to_a_file(metadata):
    text = metadata.get_payload(decode=True).decode()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 5
    assert [link for link in links if not link.startswith(("https://", "http://", "#"))] == []
    for kind, path in re.findall(r"https://github\.com/someone/evaltui/(raw|blob)/v1/([^)#\s]+)", text):
        assert (ROOT / path).is_file(), path
        assert (kind == "raw") == path.endswith(".svg")


@pytest.mark.e2e
def test_an_installed_wheel_opens_the_demo(wheel, tmp_path):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    libraries = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*install, "--no-index", "--no-deps", str(wheel)], check=True)
    # Its dependencies come from here; evaltui does not, since path files in this folder are not followed.
    here = [path for path in sys.path if Path(path).name == "site-packages"]
    Path(libraries, "libraries.pth").write_text("\n".join(here), encoding="utf-8")
    where = subprocess.run(
        [python, "-c", "import evaltui; print(evaltui.__file__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert where.startswith(str(environment.resolve()))
    terminal = Terminal([str(environment / "bin" / "evaltui"), "demo"], tmp_path)
    try:
        terminal.wait_for("Accept it: it becomes expected")
        terminal.press("ctrl+q")
        assert terminal.exit_code() == 0
    finally:
        terminal.close()
