"""Which object of an agent's modules is the agent: an App goes before any root agent."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from eval_data import make_case, make_turn, write_eval_set

from evaltui import Status, evaluate
from evaltui.agents.adapters.base import AgentLoadError
from evaltui.agents.loading import load_agent

_PRINT = """\
import asyncio, sys
from pathlib import Path
from evaltui.agents.loading import import_agent
found = import_agent(Path(sys.argv[1]))
print(getattr(found, "name", None) or getattr(found, "__name__", found))
"""
# An App as far as loading looks: importing google-adk for the real one takes seconds.
_APPS = """\
class App:
    def __init__(self, name):
        self.name = name

App.__module__ = "google.adk.apps.app"
"""


def found_in(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", _PRINT, str(folder)], capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


@pytest.fixture
def write_package(tmp_path):
    def write(**files: str) -> Path:
        folder = tmp_path / "shop"
        folder.mkdir()
        for stem, text in {"apps": _APPS, **files}.items():
            (folder / f"{stem}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        return folder

    return write


_AGENT_WITH_APP = """
    from .apps import App

    def root_agent(message, session): ...

    app = App("the app")
"""
_AGENT = "def root_agent(message, session): ...\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            {"__init__": "from .agent import root_agent", "agent": _AGENT_WITH_APP},
            "the app",
            id="init names root",
        ),
        pytest.param(
            {"__init__": "from . import agent", "agent": _AGENT_WITH_APP}, "the app", id="init imports"
        ),
        pytest.param({"__init__": "", "agent": _AGENT_WITH_APP}, "the app", id="empty init"),
        pytest.param({"agent": _AGENT_WITH_APP}, "the app", id="no init"),
        pytest.param(
            {"__init__": "from .agent import app", "agent": _AGENT_WITH_APP}, "the app", id="init names app"
        ),
        pytest.param(
            {
                "__init__": "from .apps import App\nfrom .agent import root_agent\napp = App('own')",
                "agent": _AGENT,
            },
            "own",
            id="app of the package",
        ),
        pytest.param(
            {
                "__init__": "from . import main as agent\nroot_agent = agent.root_agent",
                "main": _AGENT_WITH_APP,
            },
            "the app",
            id="a module of another name as agent",
        ),
        pytest.param(
            {"__init__": "from .agent import root_agent", "agent": f"app = object()\n{_AGENT}"},
            "root_agent",
            id="an app of something else",
        ),
        pytest.param(
            {
                "__init__": "from .root_agent import NAME\nfrom . import agent",
                "root_agent": "NAME = 1",
                "agent": _AGENT,
            },
            "root_agent",
            id="a module called root_agent",
        ),
        pytest.param(
            {"__init__": _AGENT, "agent": "raise RuntimeError('not asked for')"},
            "root_agent",
            id="a module that nothing imports stays so",
        ),
        pytest.param(
            {"__init__": "from . import agent", "agent": "async def get_agent_async(): ..."},
            "get_agent_async",
            id="made asynchronously",
        ),
    ],
)
def test_the_app_is_found_before_any_root_agent(write_package, files, expected):
    assert found_in(write_package(**files)) == expected


_REAL = """
    from google.adk.agents import BaseAgent
    from google.adk.apps import App
    from google.adk.events import Event
    from google.adk.plugins.base_plugin import BasePlugin
    from google.genai import types

    class Greeter(BaseAgent):
        async def _run_async_impl(self, ctx):
            yield Event(author=self.name, content=types.ModelContent("from the agent"))

    class Polite(BasePlugin):
        async def on_event_callback(self, *, invocation_context, event):
            event.content = types.ModelContent("from the plugin")
            return event

    root_agent = Greeter(name="greeter")
    app = App(name="shop", root_agent=root_agent, plugins=[Polite(name="polite")])
"""


@pytest.mark.thorough
async def test_the_plugins_of_an_app_run_where_the_package_names_the_root_agent_only(write_package):
    folder = write_package(__init__="from .agent import root_agent", agent=_REAL)
    turn = make_turn("hi", "from the plugin")
    path = write_eval_set(folder, "a", make_case("c", turn))
    result = await evaluate(folder, path)
    assert [case.status for case in result.cases] == [Status.PASSED]


def test_an_a2a_agent_without_the_sdk_says_what_to_install(monkeypatch, tmp_path):
    for name in ["a2a", *sys.modules]:
        if name.partition(".")[0] == "a2a" or ".adapters.remote.a2a" in name:
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "evaltui.agents.adapters.remote.a2a", raising=False)
    load = {"agent_dir": str(tmp_path), "url": "a2a:http://127.0.0.1:1", "headers": []}
    with pytest.raises(AgentLoadError, match=r"A2A agents need a2a-sdk 1.0 or later: .* 'evaltui\[a2a\]'"):
        load_agent(load)
