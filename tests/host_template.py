"""A process that has imported what agents need, and becomes the guard of a host in a copy of itself.

Started as `python -P -u host_template.py FD [--without-adk]`, FD being the socket to `forked_hosts`. A
request is the environment of a guard as JSON, with the descriptors of its working folder, standard input,
output, error and channel; the answer is the number of the new process, with a descriptor that tells when it
has ended.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from evaltui.agents import bootstrap

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
_LIBRARIES = (
    f"{bootstrap.NAME}.events",
    f"{bootstrap.NAME}.agents.guard",
    f"{bootstrap.NAME}.agents.host",
    f"{bootstrap.NAME}.agents.model_client",
    f"{bootstrap.NAME}.agents.adapters.function",
    f"{bootstrap.NAME}.agents.adapters.native",
    f"{bootstrap.NAME}.agents.native.gemini",
    f"{bootstrap.NAME}.agents.adapters.custom_metric",
    # What google-genai and ADK themselves import in the first turn; its models are completed then, too.
    "anyio._backends._asyncio",
    "google.auth.aio.credentials",
    "google.genai._automatic_function_calling_util",
    "httpcore",
    *(f"google.genai.types:{model}" for model in _MODELS),
)
# Where google-adk is not installed these are left out; hosts do without them, too.
_LIBRARIES_OF_ADK = (
    f"{bootstrap.NAME}.agents.adapters.adk.adapter",
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
# Bytes: an environment.
_LONGEST_REQUEST = 1 << 20
_DESCRIPTORS = 5


def serve(control: socket.socket, libraries: Sequence[str]) -> NoReturn:
    # Nothing of evaltui may be there under its public name, as in a host.
    for name in [one for one in sys.modules if one.partition(".")[0] == bootstrap.PUBLIC_NAME]:
        del sys.modules[name]
    bootstrap.make_known()
    preloading = importlib.import_module(f"{bootstrap.NAME}.agents.preloading")
    for library in libraries:
        with suppress(ImportError, KeyError):
            preloading.run_import_step(library)
    # A host tells what it brought in when it is closed: where the libraries lie is looked up once.
    preloading.Environment().steps()
    gc.collect()
    gc.freeze()
    ended, ends = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(ends, False)
    signal.set_wakeup_fd(ends, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    while True:
        ready, _, _ = select.select([control, ended], [], [])
        if control in ready:
            request, given, _, _ = socket.recv_fds(control, _LONGEST_REQUEST, _DESCRIPTORS)
            if not request:
                os._exit(0)
            guard = os.fork()
            if guard == 0:
                signal.set_wakeup_fd(-1)
                for descriptor in (control.detach(), ended, ends):
                    os.close(descriptor)
                _become_guard(json.loads(request), *given)
            process = os.pidfd_open(guard)
            socket.send_fds(control, [b"%d" % guard], [process])
            for descriptor in (process, *given):
                os.close(descriptor)
        if ended in ready:
            os.read(ended, 1 << 12)
            _forget_ended()


def _forget_ended() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_guard(
    environ: dict[str, str], folder: int, stdin: int, stdout: int, stderr: int, channel: int
) -> None:
    """Be as if started as `python -P -u bootstrap.py guard FD`."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.fchdir(folder)
    for standard, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.close(folder)
    os.set_inheritable(channel, True)
    for name in os.environ.keys() - environ.keys():
        del os.environ[name]
    os.environ.update(environ)
    sys.argv = [bootstrap.__file__, str(channel)]
    importlib.import_module(f"{bootstrap.NAME}.agents.guard").main()


if __name__ == "__main__":
    with_adk = sys.argv[2:] != ["--without-adk"]
    serve(socket.socket(fileno=int(sys.argv[1])), (*_LIBRARIES, *_LIBRARIES_OF_ADK * with_adk))
