"""Projects as they are laid out, with an agent that answers `hello` and an eval set that expects it."""

from __future__ import annotations

import json
from pathlib import Path

from eval_data import make_case, make_turn

AGENT = "def root_agent(message, session):\n    return 'hello'\n"
PYPROJECT = '[project]\nname = "{name}"\nversion = "0.1.0"\n'


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def eval_set(set_id: str, answer: str = "hello") -> str:
    return json.dumps({"eval_set_id": set_id, "eval_cases": [make_case("greets", make_turn("hi", answer))]})


def criteria(**thresholds: float) -> str:
    return json.dumps({"criteria": thresholds})


def starter_pack(root: Path) -> Path:
    """agent-starter-pack: the package is `app`, the criteria are above the sets; returns the agent."""
    write(root / "pyproject.toml", PYPROJECT.format(name="my-agent"))
    write(root / "app" / "__init__.py", "from .agent import root_agent\n")
    write(root / "app" / "agent.py", AGENT)
    write(root / "deployment" / "README.md")
    write(root / "tests" / "integration" / "test_agent.py")
    write(root / "tests" / "eval" / "eval_config.json", criteria(response_match_score=0.5))
    write(root / "tests" / "eval" / "evalsets" / "basic.evalset.json", eval_set("basic"))
    return root / "app"


def adk_sample(root: Path) -> Path:
    """adk-samples: a project for each agent, in one repository; `eval` is beside the package."""
    (root / ".git").mkdir(parents=True)
    project = root / "python" / "agents" / "customer-service"
    write(project / "pyproject.toml", PYPROJECT.format(name="customer-service"))
    write(project / "customer_service" / "__init__.py", "from . import agent\n")
    write(project / "customer_service" / "agent.py", AGENT)
    write(project / "customer_service" / "tools" / "__init__.py")
    write(project / "eval" / "__init__.py", '"""Evaluation of the agent."""\n')
    write(project / "eval" / "test_eval.py")
    write(project / "eval" / "eval_data" / "simple.test.json", eval_set("simple"))
    write(project / "eval" / "eval_data" / "test_config.json", criteria(response_match_score=0.4))
    return project / "customer_service"


def uv_package(root: Path) -> Path:
    """`uv init --package shopbot`, an agent in its package, and eval sets where tests are."""
    (root / ".git").mkdir(parents=True)
    write(root / "pyproject.toml", PYPROJECT.format(name="shopbot"))
    write(root / ".python-version", "3.12\n")
    write(root / "src" / "shopbot" / "__init__.py", 'def main() -> None:\n    print("Hello from shopbot!")\n')
    write(root / "src" / "shopbot" / "agent.py", AGENT)
    write(root / "tests" / "eval" / "orders.evalset.json", eval_set("orders"))
    return root / "src" / "shopbot"


DESK = """
from {shared} import GREETING
from my_app.tools import shout

def root_agent(message, session):
    session.state["module"] = __name__
    return shout(GREETING)
"""


def nested_agents(root: Path, shared: str = "my_app.shared") -> Path:
    """`src/my_app/agents/desk` and `.../till`, which use modules of the package above; returns the first."""
    write(root / "pyproject.toml", PYPROJECT.format(name="my-app"))
    package = root / "src" / "my_app"
    for folder in (package, package / "agents", package / "agents" / "desk", package / "agents" / "till"):
        write(folder / "__init__.py")
    write(package / "tools.py", "def shout(text):\n    return text.upper()\n")
    write(package / "shared.py", "GREETING = 'hello'\n")
    write(package / "agents" / "desk" / "agent.py", DESK.format(shared=shared))
    write(package / "agents" / "desk" / "greets.evalset.json", eval_set("greets", "HELLO"))
    write(package / "agents" / "till" / "agent.py", AGENT)
    return package / "agents" / "desk"
