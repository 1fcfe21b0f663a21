"""A function of the user's is found by its path, wherever one stands."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PRINT = """
    import sys
    from pathlib import Path
    from evaltui.agents.functions import FunctionNotFoundError, find_function
    try:
        print(find_function(sys.argv[1], sys.argv[2], Path(sys.argv[3]))())
    except FunctionNotFoundError as error:
        print(f"not found: {error}")
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def call(tmp_path):
    """Calls a function in a process of its own that stands somewhere else."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def call(folder, path):
        module, _, name = path.rpartition(".")
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PRINT), module, name, str(folder)],
            cwd=elsewhere,
            capture_output=True,
            text=True,
            timeout=50,
        )
        return ran.stdout.strip() or ran.stderr

    return call


def make(folder, *, package):
    (folder / "sub").mkdir(parents=True)
    if package:
        (folder / "__init__.py").touch()
        (folder / "sub" / "__init__.py").touch()
    (folder / "agent.py").write_text("def own():\n    return 'agent.py'\n")
    (folder / "words.py").write_text("WORD = 'metrics.py'\n")
    (folder / "metrics.py").write_text("LIMIT = 3\nfrom .words import WORD\ndef brief():\n    return WORD\n")
    (folder / "sub" / "metrics.py").write_text("def deep():\n    return 'sub'\n")
    (folder / "broken.py").write_text("import no_such_library\n")
    return folder


@pytest.mark.parametrize("package", [True, False])
@pytest.mark.parametrize("name", ["my_agent", "agent", "colorsys"])
def test_every_spelling_in_a_package_and_in_a_plain_folder(tmp_path, call, name, package):
    folder = make(tmp_path / "agents" / name, package=package)
    found = {
        path: call(folder, path)
        for path in (
            f"{name}.metrics.brief",
            "agent.metrics.brief",
            "agent.sub.metrics.deep",
            "agent.own",
            "agent.agent.own",
            f"agents.{name}.metrics.brief",
        )
    }
    assert found == {
        f"{name}.metrics.brief": "metrics.py",
        "agent.metrics.brief": "metrics.py",
        "agent.sub.metrics.deep": "sub",
        "agent.own": "agent.py",
        "agent.agent.own": "agent.py",
        f"agents.{name}.metrics.brief": "metrics.py",
    }


def test_modules_in_the_folder_and_beside_it(tmp_path, call):
    folder = make(tmp_path / "my_agent", package=True)
    (tmp_path / "shared.py").write_text("def brief():\n    return 'beside'\n")
    assert call(folder, "sub.metrics.deep") == "sub"
    assert call(folder, "shared.brief") == "beside"
    assert call(folder, "os.getpid").isdecimal()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("my_agent.metrics.brieff", "metrics.py has no function brieff. Did you mean brief?"),
        ("agent.metrics.LIMIT", "metrics.py is not a function but of type int"),
        ("agent.metric.brief", "no module agent.metric"),
        ("nowhere.metrics.brief", "no module nowhere.metrics"),
        ("agent.broken.brief", "ModuleNotFoundError: No module named 'no_such_library'"),
    ],
)
def test_what_is_not_found_is_told(tmp_path, call, path, says):
    assert says in call(make(tmp_path / "my_agent", package=True), path)
