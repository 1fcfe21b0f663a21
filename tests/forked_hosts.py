"""Hosts that are copies of one process in which the libraries of their agents have been imported.

Importing them is nearly all of what a host with a small agent costs. A copy is a process of its own, with its
own guard, pipes, environment and working folder. What importing itself shows is not seen in it, nor what is
seen from outside: its command line and the environment it began with. Tests of that use `fresh_hosts`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from evaltui.agents import bootstrap

TEMPLATE = Path(__file__).with_name("host_template.py")
NAME = bootstrap.NAME
_MODELS = (
    "AutomaticFunctionCallingConfig",
    "Candidate",
    "Content",
    "FunctionCall",
    "FunctionDeclaration",
    "FunctionResponse",
    "GenerateContentConfig",
    "GenerateContentResponse",
    "GenerateContentResponseUsageMetadata",
    "HttpOptions",
    "HttpResponse",
    "HttpRetryOptions",
    "LiveConnectConfig",
    "Tool",
    "UserContent",
    "_GenerateContentParameters",
)
HOST_LIBRARIES = (
    f"{NAME}.events",
    f"{NAME}.agents.guard",
    f"{NAME}.agents.host",
    f"{NAME}.agents.model_client",
    f"{NAME}.agents.adapters.function",
    f"{NAME}.agents.adapters.native",
    f"{NAME}.agents.native.gemini",
    f"{NAME}.agents.adapters.custom_metric",
    # What google-genai and ADK themselves import in the first turn; its models are completed then, too.
    "anyio._backends._asyncio",
    "google.auth.aio.credentials",
    "google.genai._automatic_function_calling_util",
    "httpcore",
    *(f"google.genai.types:{model}" for model in _MODELS),
)
# Where google-adk is not installed these are left out; hosts do without them, too.
ADK_LIBRARIES = (
    f"{NAME}.agents.adapters.adk.adapter",
    "google.adk.agents.config_agent_utils",
    "google.adk.agents.llm_agent",
    "google.adk.agents._agent_router",
    "google.adk.agents.remote_a2a_agent",
    "google.adk.auth.auth_preprocessor",
    "google.adk.flows.llm_flows.auto_flow",
    "google.adk.models.google_llm",
    "google.adk.tools.agent_tool",
    "google.adk.tools.google_search_tool",
    "google.adk.workflow._llm_agent_wrapper",
    "google.adk.workflow._node_runner_utils",
    "google.adk.workflow._workflow",
)


def can_fork() -> bool:
    """Whether the system tells who waits for a process that it is not the parent of."""
    return hasattr(os, "pidfd_open")


class ForkedHosts:
    """Stands for `subprocess` where guards are started: `Popen` makes a copy of the template."""

    PIPE = subprocess.PIPE

    def __init__(self, *libraries: str, python: str = sys.executable) -> None:
        """`libraries` are imported besides those of every host where they are installed. A copy of a process
        without google-adk is made in half the time."""
        self._executable = python
        self._libraries = (*HOST_LIBRARIES, *libraries)
        self._control: socket.socket | None = None
        # Of the tests, not what one of them has set when it is the first that needs a host.
        self._python = _python()

    def _begin(self) -> socket.socket:
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(self._executable, "-P", "-u", TEMPLATE),
                    *(Path(bootstrap.__file__).parent, str(theirs.fileno()), *self._libraries),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        return control

    def close(self) -> None:
        if self._control is not None:
            self._control.close()
            self._process.wait()

    def Popen(self, command: Sequence[str], **settings: Any) -> ForkedGuard | subprocess.Popen[bytes]:
        """A real one where another Python would start, or with other settings."""
        if _python() != self._python:
            return subprocess.Popen(command, **settings)
        if self._control is None:
            self._control = self._begin()
        return self._fork(self._control, command, **settings)

    def _fork(
        self,
        control: socket.socket,
        command: Sequence[str],
        *,
        stdin: int,
        stdout: int,
        stderr: int,
        pass_fds: Sequence[int],
        env: Mapping[str, str],
        cwd: Path | None,
        start_new_session: bool,
    ) -> ForkedGuard:
        assert command[:-1] == bootstrap.command(self._executable, "guard")
        assert (stdout, stderr, start_new_session) == (self.PIPE, self.PIPE, True)
        folder = os.open(cwd or ".", os.O_RDONLY)
        (said, says), (complained, complains) = os.pipe(), os.pipe()
        request = json.dumps(dict(env)).encode()
        socket.send_fds(control, [request], [folder, stdin, says, complains, *pass_fds])
        for descriptor in (folder, says, complains):
            os.close(descriptor)
        number, (process,), _, _ = socket.recv_fds(control, 64, 1)
        return ForkedGuard(int(number), process, os.fdopen(said, "rb"), os.fdopen(complained, "rb"))


def _python() -> tuple[str, dict[str, str]]:
    """Which Python starts, and what it reads when it does."""
    return sys.executable, {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}


class ForkedGuard:
    """What is used of a `subprocess.Popen`."""

    def __init__(self, pid: int, process: int, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.pid = pid
        self.stdout, self.stderr = stdout, stderr
        self.returncode: int | None = None
        self._process = process

    def wait(self) -> int:
        """Its exit code is known to its own parent only."""
        select.select([self._process], [], [])
        self.returncode = 0
        os.close(self._process)
        return 0

    def kill(self) -> None:
        if self.returncode is None:
            signal.pidfd_send_signal(self._process, signal.SIGKILL)
