"""Whether a module is there, without importing it: as finding the function would say."""

import subprocess
import sys
from pathlib import Path

import pytest

from evaltui.runner.metric_checks import has_module

NAMES = [
    "my_agent.metrics",
    "agent.metrics",
    "metrics",
    "my_agent.deep.er",
    "agent.deep.er",
    "beside",
    "agents.my_agent.metrics",
    "json.decoder",
    "math",
    "agent",
    "my_agent",
    "my_agent.nothing",
    "agent.nothing",
    "nothing",
    "json.nothing",
    "metrics.nothing",
    "__main__.x",
]
FIND = """
import sys
from pathlib import Path
from evaltui.agents.functions import FunctionNotFoundError, find_function
for name in sys.argv[2:]:
    try:
        find_function(name, "no such function", Path(sys.argv[1]))
    except FunctionNotFoundError as error:
        print("no module" not in str(error))
"""


@pytest.fixture(params=[True, False], ids=["package", "plain folder"])
def agent(request, tmp_path: Path) -> Path:
    folder = tmp_path / "agents" / "my_agent"
    (folder / "deep").mkdir(parents=True)
    for name in ("agent", "metrics", "deep/er"):
        # Whoever imports one of them is found out.
        (folder / f"{name}.py").write_text("import sys\nsys.modules['imported by a test'] = sys\n")
    (folder.parent / "beside.py").touch()
    if request.param:
        (folder / "__init__.py").touch()
    return folder


def test_what_would_be_found_is_there(agent):
    done = subprocess.run(
        [sys.executable, "-P", "-c", FIND, agent, *NAMES], capture_output=True, text=True, check=True
    )
    found = dict(zip(NAMES, done.stdout.split(), strict=True))
    assert {name: str(has_module(name, agent)) for name in NAMES} == found
    assert "imported by a test" not in sys.modules


def test_a_module_that_is_written_later_is_there_then(agent):
    assert not has_module("my_agent.later", agent)
    (agent / "later.py").touch()
    assert has_module("my_agent.later", agent)
