"""ADK's remote agents are not imported, or looked for, only to see that an agent is none of them."""

import sys

import pytest

pytest.importorskip("google.adk")

from evaltui.agents.adapters.adk import adapter as adk_missing

pytestmark = pytest.mark.adk

REMOTE = "google.adk.agents.remote_a2a_agent"
HOME = "google.adk.a2a.agent._remote_a2a_agent"


@pytest.fixture
def asked(monkeypatch):
    """Loads the finder anew; `asked` are the modules that Python went on to look for."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    names = []

    class Watch:
        def find_spec(self, fullname, path, target=None):
            names.append(fullname)

    monkeypatch.setattr(sys, "meta_path", [Watch(), *sys.meta_path])
    adk_missing.skip_import_of_remote_agents.__wrapped__()
    return names


@pytest.fixture
def without_a2a(monkeypatch):
    monkeypatch.setattr(adk_missing, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, REMOTE, raising=False)


def test_without_a2a_it_fails_at_once_and_says_what_is_missing(without_a2a, asked):
    with pytest.raises(ModuleNotFoundError, match="No module named 'a2a'") as caught:
        __import__(REMOTE)
    assert caught.value.name == "a2a"
    assert not [name for name in asked if "a2a" in name]


def test_other_modules_are_looked_for_as_ever(without_a2a, asked):
    with pytest.raises(ModuleNotFoundError):
        __import__("no_such_module_anywhere")
    assert asked == ["no_such_module_anywhere"]


@pytest.fixture
def with_a2a(monkeypatch):
    """The SDK is there, and nothing of the process has asked for ADK's remote agents yet."""
    monkeypatch.setattr(adk_missing, "find_spec", lambda name: object())
    for module in (REMOTE, HOME):
        monkeypatch.delitem(sys.modules, module, raising=False)


def asking(module: str):
    """What happens when code of a module imports the remote agents."""
    with pytest.raises(ModuleNotFoundError) as caught:
        exec(f"import {REMOTE}", {"__name__": module})
    return caught.value


def test_with_a2a_adk_itself_asks_in_vain_while_no_agent_can_be_one(with_a2a, asked):
    assert asking("google.adk.workflow.utils._workflow_graph_utils").name == "a2a"
    assert REMOTE not in asked


@pytest.mark.parametrize("module", ["my_agent.agent", "google.adk.agents.config_agent_utils"])
def test_with_a2a_everybody_else_gets_them(with_a2a, asked, monkeypatch, module):
    # Not to be found behind this: what counts is that Python goes on looking.
    monkeypatch.setattr(sys, "meta_path", [one for one in sys.meta_path if not _finds_files(one)])
    assert asking(module).name == REMOTE
    assert REMOTE in asked


def test_adk_gets_them_once_their_class_is_loaded(with_a2a, asked, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [one for one in sys.meta_path if not _finds_files(one)])
    monkeypatch.setitem(sys.modules, HOME, sys)
    assert asking("google.adk.workflow.utils._workflow_graph_utils").name == REMOTE
    assert REMOTE in asked


def _finds_files(finder: object) -> bool:
    return getattr(finder, "__name__", "") == "PathFinder"
