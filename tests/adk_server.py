"""google-adk's own `adk api_server`, in a process of its own on this machine.

with AdkServer(folder_of_agents) as server:
    url = server.url_of("travel_desk")
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

_PATIENCE = 60.0


class AdkServer:
    """Serves the agents of a folder until it is left; `log` is what it has printed."""

    def __init__(self, agents: Path, port: int | None = None) -> None:
        self._agents = agents
        self._log = agents / "server.log"
        self.port = port or free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def url_of(self, app: str) -> str:
        return f"{self.url}/{app}"

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def sessions(self, app: str, user: str) -> list[Any]:
        import json

        with urllib.request.urlopen(f"{self.url}/apps/{app}/users/{user}/sessions") as response:
            return json.loads(response.read())

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "google.adk.cli", "api_server", "--port", str(self.port)]
        in_memory = ["--session_service_uri", "memory://", "--artifact_service_uri", "memory://"]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, *in_memory, str(self._agents)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"OTEL_SDK_DISABLED": "true", "PYTHONUNBUFFERED": "1"},
            )
        deadline = time.monotonic() + _PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(f"adk api_server did not start:\n{self.log}")
            time.sleep(0.05)
        return self

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
