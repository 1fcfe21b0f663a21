"""What every test may rely on: no network but loopback, no keys of the machine, small agents on disk."""

from __future__ import annotations

import gc
import os
import socket
import sys
import textwrap
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import platformdirs
import pytest
from forked_hosts import ADK_LIBRARIES, ForkedHosts, can_fork
from gemini_server import GeminiServer

from evaltui.runner import host as host_module
from evaltui.runner.starting import WarmHosts
from evaltui.workbench.keymap import use_keys

_KEYS = (
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_GENAI_USE_VERTEXAI",
)


# The same examples every day, so that a red test is the work of a change; other ones in every `--thorough`.
hypothesis.settings.register_profile("everyday", max_examples=25, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=200, deadline=None)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addoption("--thorough", action="store_true", help="also run the proofs that take minutes")
    if not pluginmanager.hasplugin("xdist"):
        # Without it (`-p no:xdist`) the configured options are known, and the tests run in this process.
        parser.addoption("--numprocesses")
        parser.addoption("--dist")


def pytest_configure(config: pytest.Config) -> None:
    # Else each of the many processes of the tests would compile this checkout for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    hypothesis.settings.load_profile("thorough" if config.getoption("--thorough") else "everyday")
    # Agents run in the Python of the tests, also those of this checkout, which may have another `.venv`.
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        os.environ.pop(name, None)
    # There pytest cuts no line of its summary, and evaltui's plugin refuses to write files.
    for name in ("CI", "BUILD_NUMBER"):
        os.environ.pop(name, None)
    os.environ["UV_PROJECT_ENVIRONMENT"] = sys.prefix
    # Each client of google-genai would read the authorities of the world three times, which takes 60 ms.
    os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("unused_certificate.pem"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--thorough"):
        return
    long = {item for item in items if item.get_closest_marker("thorough")} | _other_sizes(items)
    config.hook.pytest_deselected(items=[item for item in items if item in long])
    items[:] = [item for item in items if item not in long]


def _other_sizes(items: list[pytest.Item]) -> set[pytest.Item]:
    """Of a test that is the same at several sizes of the screen, all but one, which is the same every day."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and hasattr(item, "callspec")
            and [*item.callspec.params] == ["size"]
        ):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {
        item
        for name, sizes in tests.items()
        for number, item in enumerate(sizes)
        if number != zlib.crc32(name.encode()) % len(sizes)
    }


@pytest.fixture(autouse=True)
def keys_of_the_registry() -> Iterator[None]:
    """Texts name the keys of the registry, whatever a test has chosen."""
    yield
    use_keys({})


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Garbage is not looked for in the modules and tests that are there now; the app does the same."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One more than there are cores: tests wait for processes that they start. None for one file alone."""
    files = {argument.partition("::")[0] for argument in config.args}
    if len(files) == 1 and files.pop().endswith(".py"):
        return 0
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether the long proofs were asked for: generated tests take more rounds then."""
    return bool(request.config.getoption("--thorough"))


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no settings"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "no state"))


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            raise AssertionError(f"a test reached out to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def no_settings_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Where the settings of the user would be; it does not exist yet."""
    folder = tmp_path_factory.mktemp("config") / "evaltui"
    monkeypatch.setattr(platformdirs, "user_config_path", lambda name: folder)
    monkeypatch.setattr(platformdirs, "user_state_path", lambda name: folder.with_name("state"))
    return folder


@pytest.fixture(autouse=True)
def no_warm_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No host is kept ready after the last run of a test. Tests of that have a fixture of this name."""
    monkeypatch.setattr(WarmHosts, "prepare", lambda self: None)


@pytest.fixture(autouse=True)
def garbage_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands put that off for the sake of their process; this one goes on after them."""
    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setattr(gc, "freeze", lambda: None)


@pytest.fixture(scope="session")
def host_template() -> Iterator[ForkedHosts]:
    hosts = ForkedHosts(*ADK_LIBRARIES)
    yield hosts
    hosts.close()


@pytest.fixture(autouse=True)
def forked_hosts(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    host_template: ForkedHosts,
    thorough: bool,
) -> None:
    """Hosts need not import libraries, see `forked_hosts`; with --thorough each one is started anew."""
    if can_fork() and not thorough and "fresh_hosts" not in request.fixturenames:
        monkeypatch.setattr(host_module, "subprocess", host_template)


@pytest.fixture
def fresh_hosts() -> None:
    """Each host is started as it is for users: what that shows is what the test is about."""


WriteAgent = Callable[..., Path]


@pytest.fixture
def write_agent(tmp_path: Path) -> WriteAgent:
    """Writes an agent package and returns its folder; further keywords are more files in it."""

    def write(source: str, name: str = "my_agent", **files: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        (folder / "agent.py").write_text(textwrap.dedent(source), encoding="utf-8")
        for stem, text in files.items():
            (folder / f"{stem}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        return folder

    return write


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[GeminiServer]:
    """A Gemini API on this machine, which google-genai talks to in this process and in its children."""
    with GeminiServer() as server:
        server.use(monkeypatch)
        yield server
