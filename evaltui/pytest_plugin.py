"""The pytest plugin: eval sets are test files, their cases tests. It does nothing until it is asked to.

Every pytest loads it where evaltui is installed, so it imports nothing but pytest and the standard library.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evaltui.testing.options import AGENT, NOT_EVALUATED, RUN_OPTIONS

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult
    from evaltui.testing.case_runs import CaseRuns
    from evaltui.testing.fixture import Evaluator

SET_SUFFIXES = (".evalset.json", ".test.json")
_PLUGIN = "evaltui-session"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("evaltui", "eval sets of LLM agents (evaltui)")
    text = "Collect eval sets (*.evalset.json, *.test.json) as tests"
    group.addoption("--evaltui", action="store_true", default=None, help=text)
    parser.addini("evaltui", text, type="bool", default=False)
    group.addoption(
        "--evaltui-accept",
        action="store_true",
        help="Accept what failing cases did as expected, after showing the changes to the files",
    )
    group.addoption("--evaltui-adk-verdicts", action="store_true", help="Use ADK's verdicts unchanged")
    for option in (AGENT, *RUN_OPTIONS, NOT_EVALUATED):
        flag = f"--evaltui-{option.name}"
        group.addoption(flag, dest=option.dest, metavar=option.metavar, help=option.help)
        parser.addini(option.dest, option.help)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "evaltui(agent, sets=(), config=None): a test per case of these eval sets; every eval case has it",
    )
    if config.getoption("evaltui_accept"):
        if os.environ.get("CI"):
            raise pytest.UsageError("--evaltui-accept changes files; it is refused where CI is set")
        if config.getoption("numprocesses", None):
            raise pytest.UsageError("--evaltui-accept needs all results in one process; leave out -n")
    if any(config.getoption(option.dest) for option in (AGENT, *RUN_OPTIONS, NOT_EVALUATED)):
        # What makes no sense is refused before anything is collected.
        runs_of(config)


def runs_of(config: pytest.Config) -> CaseRuns:
    """The runs that the cases of this pytest session are in; the first who asks makes it one with eval cases.

    Raises pytest.UsageError.
    """
    session = config.pluginmanager.get_plugin(_PLUGIN)
    if session is None:
        from evaltui.testing.session import EvaltuiSession

        session = EvaltuiSession(config)
        config.pluginmanager.register(session, _PLUGIN)
    runs: CaseRuns = session.runs
    return runs


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(SET_SUFFIXES):
        return None
    config = parent.config
    is_named = parent.session.isinitpath(file_path)
    if not (is_named or config.getoption("evaltui") or config.getini("evaltui")):
        return None
    from evaltui.testing.items import EvalSetNode, is_eval_set

    if not is_named and not is_eval_set(file_path):
        return None
    node: pytest.Collector = EvalSetNode.from_parent(parent, path=file_path, runs=runs_of(config))
    return node


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "evaltui_case" not in metafunc.fixturenames:
        return
    from evaltui.testing.fixture import cases_of_marker

    cases = cases_of_marker(metafunc.definition, runs_of(metafunc.config))
    metafunc.parametrize("evaltui_case", cases, ids=[one.id.eval_id for one in cases], indirect=True)


@pytest.fixture
def evaltui_case(request: pytest.FixtureRequest) -> CaseResult:
    """The result of one case of the eval sets that the test's marker `evaltui` names."""
    result: CaseResult = runs_of(request.config).result(request.param, request.session)
    return result


@pytest.fixture
def evaltui(request: pytest.FixtureRequest) -> Evaluator:
    """Runs agents: `await evaltui.run(agent, sets)`, or `evaltui.run_sync(agent, sets)`."""
    from evaltui.testing.fixture import Evaluator

    return Evaluator(runs_of(request.config), request.path.parent)
