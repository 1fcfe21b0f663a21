"""ADK's remote agents are not imported, or looked for, only to see that an agent is none of them."""

import sys

import pytest

pytest.importorskip("google.adk")

from evaltui.agents.adapters.adk import adapter

pytestmark = pytest.mark.adk

REMOTE = "google.adk.agents.remote_a2a_agent"
HOME = "google.adk.a2a.agent._remote_a2a_agent"
CHECK = "google.adk.workflow.utils._workflow_graph_utils"


@pytest.mark.parametrize(
    ("importer", "has_a2a", "is_loaded", "is_sought"),
    [
        (CHECK, False, False, False),
        ("my_agent.agent", False, False, False),
        # With the SDK, only the check of ADK itself is in vain, and only while no agent can be of the class.
        (CHECK, True, False, False),
        ("my_agent.agent", True, False, True),
        ("google.adk.agents.config_agent_utils", True, False, True),
        (CHECK, True, True, True),
    ],
)
def test_remote_agents_are_looked_for_where_one_may_be(monkeypatch, importer, has_a2a, is_loaded, is_sought):
    sought = []

    class Watch:
        def find_spec(self, fullname, path, target=None):
            sought.append(fullname)

    # Not to be found behind this: what counts is that Python goes on looking.
    finders = [one for one in sys.meta_path if getattr(one, "__name__", "") != "PathFinder"]
    monkeypatch.setattr(sys, "meta_path", [Watch(), *finders])
    monkeypatch.setattr(adapter, "find_spec", lambda name: object() if has_a2a else None)
    monkeypatch.delitem(sys.modules, REMOTE, raising=False)
    if is_loaded:
        monkeypatch.setitem(sys.modules, HOME, sys)
    else:
        monkeypatch.delitem(sys.modules, HOME, raising=False)
    adapter.skip_import_of_remote_agents.__wrapped__()
    with pytest.raises(ModuleNotFoundError) as caught:
        exec(f"import {REMOTE}", {"__name__": importer})
    assert (caught.value.name, REMOTE in sought) == (REMOTE if is_sought else "a2a", is_sought)
