"""agentevals, beside which thorough tests score the same."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_RELEASE = "agentevals-cli==0.11.0"


class Agentevals:
    """An installed release in an environment of its own, and its source."""

    def __init__(self, folder: Path) -> None:
        self._bin = folder / "venv" / "bin"
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([self._bin / "pip", "install", "-q", _RELEASE], check=True)
        self._folder = folder

    def source(self) -> Path:
        """The source of the release, unpacked."""
        import tarfile

        words = ["download", "-q", "--no-deps", "--no-binary", ":all:", "-d", self._folder, _RELEASE]
        subprocess.run([self._bin / "pip", *words], check=True)
        (archive,) = self._folder.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(self._folder, filter="data")
        return self._folder / archive.name.removesuffix(".tar.gz")

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
