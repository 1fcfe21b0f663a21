"""agentevals, beside which thorough tests read and score the same."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

_RELEASE = "agentevals-cli==0.11.0"


def _pip(python, *words):
    """Skips the test where the release cannot be had."""
    done = subprocess.run([python, "-m", "pip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{_RELEASE} cannot be had: {done.stderr.strip().splitlines()[-1]}")


class Agentevals:
    """An installed release in an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self._bin = folder / "venv" / "bin"
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        _pip(self._bin / "python", "install", "-q", _RELEASE)

    def verdicts(self, traces, eval_set, metrics, threshold):
        """Of each trace, the score and the status of each metric."""
        asked = [word for name in metrics for word in ("-m", name)]
        words = ["run", *traces, "-e", eval_set, *asked, "-t", str(threshold), "-o", "json"]
        done = subprocess.run([self._bin / "agentevals", *words], capture_output=True, text=True, check=False)
        return [
            {one["metric_name"]: (one["score"], one["eval_status"]) for one in trace["metrics"]}
            for trace in json.loads(done.stdout)["traces"]
        ]


@pytest.fixture(scope="session")
def agentevals(tmp_path_factory):
    return Agentevals(tmp_path_factory.mktemp("agentevals"))


@pytest.fixture(scope="session")
def agentevals_source(tmp_path_factory):
    """The folder of the source of the release, with its samples and tests."""
    folder = tmp_path_factory.mktemp("source")
    words = ["download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder), _RELEASE]
    _pip(sys.executable, *words)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")
