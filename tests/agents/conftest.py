from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hosts_of_agents import HostsOfAgents

from evaltui.runner import host as host_module


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an agent in a folder `bot`."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bot").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bot"\n')
    return tmp_path


@pytest.fixture(scope="session")
def hosts_of_agents() -> Iterator[HostsOfAgents]:
    hosts = HostsOfAgents()
    yield hosts
    hosts.close()


@pytest.fixture
def fork_hosts_of(
    hosts_of_agents: HostsOfAgents, monkeypatch: pytest.MonkeyPatch, forked_hosts: None
) -> Callable[[str], None]:
    """Has hosts of a kind of agent be copies of a process in its Python, where hosts are copies at all."""

    def fork(kind: str) -> None:
        hosts = hosts_of_agents.of(kind)
        if hosts is not None and host_module.subprocess is not subprocess:
            monkeypatch.setattr(host_module, "subprocess", hosts)

    return fork
