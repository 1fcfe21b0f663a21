"""An import that fails in every turn is not worked through in every turn."""

import sys

import pytest

pytest.importorskip("google.adk")

from evaltui.runner.child.adapters.adk import missing as adk_missing

pytestmark = pytest.mark.adk

REMOTE = "google.adk.agents.remote_a2a_agent"


@pytest.fixture
def asked(monkeypatch):
    """Loads the finder anew; `asked` are the modules that Python went on to look for."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    names = []

    class Watch:
        def find_spec(self, fullname, path, target=None):
            names.append(fullname)

    monkeypatch.setattr(sys, "meta_path", [Watch(), *sys.meta_path])
    adk_missing.fail_fast_without_a2a.__wrapped__()
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


def test_with_a2a_nothing_is_in_the_way(monkeypatch):
    monkeypatch.setattr(adk_missing, "find_spec", lambda name: object())
    before = list(sys.meta_path)
    adk_missing.fail_fast_without_a2a.__wrapped__()
    assert sys.meta_path == before
