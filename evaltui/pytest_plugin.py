"""The pytest plugin: eval sets are test files, their cases tests. It does nothing until it is asked to.

Every pytest loads it where evaltui is installed, so it imports nothing but pytest and the standard library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evaltui.testing.options import (
    AGENT,
    FAILURE,
    FLAGS,
    NOT_EVALUATED,
    OF_USER,
    RUN_OPTIONS,
    has_terminal,
    marker_of,
    registered,
)

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult
    from evaltui.testing.case_runs import CaseRuns
    from evaltui.testing.fixture import Evaluator

SET_SUFFIXES = (".evalset.json", ".test.json")
_OF_BUILDS = ("build", "dist")
_NO_CASE = "has no parameter evaltui_case, so no case of its marker evaltui would run"
_PLUGIN = "evaltui-session"
_CONTROLLER = "evaltui-controller"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("evaltui", "eval sets of LLM agents (evaltui)")
    text = "Collect eval sets as tests"
    group.addoption("--evaltui", action="store_true", default=None, help=text)
    parser.addini("evaltui", text, type="bool", default=False)
    group.addoption(
        "--evaltui-accept",
        action="store_true",
        help="Accept what failing cases did as expected, after showing the changes to the files",
    )
    group.addoption(
        "--evaltui-review",
        action="store_true",
        help="As --evaltui-accept, asking case by case; needs a terminal",
    )
    for option in FLAGS:
        group.addoption(f"--evaltui-{option.name}", dest=option.dest, action="store_true", help=option.help)
        parser.addini(option.dest, option.help, type="bool", default=False)
    for option in (AGENT, *RUN_OPTIONS, NOT_EVALUATED):
        flag = f"--evaltui-{option.name}"
        group.addoption(flag, dest=option.dest, metavar=option.metavar, help=option.help)
        parser.addini(option.dest, option.help)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # Plugins register theirs after this.
    config.stash[OF_USER] = frozenset(registered(config))
    config.addinivalue_line(
        "markers",
        "evaltui(agent, sets=(), config=None): a test per case of these eval sets; every eval case has it",
    )
    for flag in ("accept", "review"):
        if config.getoption(f"evaltui_{flag}"):
            _refuse_to_write(config, f"--evaltui-{flag}")
    for option in (AGENT, *RUN_OPTIONS, NOT_EVALUATED):
        if config.getoption(option.dest) == "":
            raise pytest.UsageError(f"--evaltui-{option.name}: the value is empty")
    if any(config.getoption(option.dest) for option in (AGENT, *RUN_OPTIONS, *FLAGS, NOT_EVALUATED)):
        # What makes no sense is refused before anything is collected.
        runs_of(config)


def _refuse_to_write(config: pytest.Config, flag: str) -> None:
    """Raises pytest.UsageError where nobody looks at what would be written."""
    if os.environ.get("CI"):
        raise pytest.UsageError(f"{flag} changes files; it is refused where CI is set")
    if config.getoption("numprocesses", None) or config.getoption("tx", None):
        raise pytest.UsageError(f"{flag} needs all results in one process; leave out -n")
    if flag == "--evaltui-review" and not has_terminal(config):
        raise pytest.UsageError(f"{flag} asks questions; it needs a terminal")


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


def _is_asked(config: pytest.Config) -> bool:
    """Whether eval sets are collected that nobody names."""
    return bool(config.getoption("evaltui") or config.getini("evaltui"))


def _is_in_loop(folder: Path) -> bool:
    """Whether a path goes through a link to one of its own parents, which pytest follows without end."""
    return len({*map(os.path.realpath, (folder, *folder.parents))}) <= len(folder.parents)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells the workers of pytest-xdist where they meet, should they come to eval cases."""
    plugins = node.config.pluginmanager
    if not plugins.hasplugin(_CONTROLLER):
        from evaltui.testing.workers import Controller

        controller = Controller(
            node.config, lambda session, folder: runs_of(node.config).merge(session, folder)
        )
        plugins.register(controller, _CONTROLLER)
    node.workerinput |= plugins.get_plugin(_CONTROLLER).worker_input()


@pytest.hookimpl(wrapper=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> Generator[None, Any, Any]:
    """A failing case comes from a worker of pytest-xdist as it was there, not as plain text."""
    failure = data.pop(FAILURE, None)
    report = yield
    if failure is not None:
        from evaltui.testing.items import FailureLines

        report.longrepr = FailureLines.from_json(failure)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> Generator[None, Any, Any]:
    """Enters folders of eval sets that a run enters, and pytest takes for those of a build by their names."""
    is_ignored = yield
    if not is_ignored or collection_path.name not in _OF_BUILDS or not _is_asked(config):
        return is_ignored
    from evaltui.testing.items import is_folder_of_sets

    is_named = any(Path(path).absolute() == collection_path for path in config.getoption("ignore") or ())
    return is_named or not is_folder_of_sets(collection_path, config.rootpath)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    name = file_path.name.lower()
    if ".json" not in name and ".evalset" not in name:
        return None
    config = parent.config
    is_named = parent.session.isinitpath(file_path)
    if not (is_named or (_is_asked(config) and not _is_in_loop(file_path.parent))):
        return None
    from evaltui.project.workspace import is_set, is_set_for_pytest
    from evaltui.testing.items import EvalSetNode, name_skipped

    has_name = name.endswith(SET_SUFFIXES)
    is_one = has_name or is_set(file_path) if is_named else is_set_for_pytest(file_path, config.rootpath)
    if not is_one:
        if not has_name:
            name_skipped(file_path, runs_of(config))
        return None
    node: pytest.Collector = EvalSetNode.from_parent(parent, path=file_path, runs=runs_of(config))
    return node


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Fails a folder with eval sets that cannot be collected, unless only something in it is asked for, and a
    class of unittest whose tests have the marker."""
    report = yield
    config, session = collector.config, collector.session
    if isinstance(collector, pytest.Class) and (problem := _marked_for_nothing(collector, report.result)):
        report.outcome, report.longrepr = "failed", problem
    if isinstance(collector, pytest.Directory) and _is_asked(config) and not _is_in_loop(collector.path):
        from evaltui.testing.items import name_sets_elsewhere, not_collected

        path = collector.path
        is_passed = session.isinitpath(path, with_parents=True) and not session.isinitpath(path)
        if session.isinitpath(path):
            name_sets_elsewhere(path, session, runs_of(config))
        if not is_passed and (problems := not_collected(path, config.rootpath)):
            report.outcome, report.longrepr = "failed", "\n".join(problems)
    return report


def _marked_for_nothing(collector: pytest.Class, tests: list[Any] | None) -> str:
    """The test of a class of unittest that names eval sets, of which it would get no case; "" for none."""
    unittest = sys.modules.get("unittest")
    if unittest is None or not issubclass(collector.obj, unittest.TestCase):
        return ""
    marked = (node.nodeid for node in (collector, *(tests or ())) if _names_sets(node))
    return next((f"{name}: {_NO_CASE}; unittest passes none to its tests" for name in marked), "")


def _names_sets(node: pytest.Item | pytest.Collector) -> bool:
    """Whether a test or a class has the marker with eval sets."""
    return any(marker.name == "evaltui" and (marker.args or marker.kwargs) for marker in node.own_markers)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    test = metafunc.definition
    if "evaltui_case" not in metafunc.fixturenames:
        if _names_sets(test):
            raise pytest.Collector.CollectError(f"{test.nodeid}: {_NO_CASE}")
        return
    from evaltui.testing.fixture import cases_of_marker

    cases = [
        pytest.param(
            to_test,
            id=to_test.id.eval_id,
            marks=[marker for tag in to_test.tags if (marker := marker_of(metafunc.config, tag)) is not None],
        )
        for to_test in cases_of_marker(test, runs_of(metafunc.config))
    ]
    metafunc.parametrize("evaltui_case", cases, indirect=True)


@pytest.fixture
def evaltui_case(request: pytest.FixtureRequest) -> CaseResult:
    """The result of one case of the eval sets that the test's marker `evaltui` names."""
    runs = runs_of(request.config)
    result = runs.result(request.param, request.session).result
    if not result.passed:
        from evaltui.testing.items import details

        # Shown where the test fails.
        request.node.add_report_section(
            "setup", "evaltui result", details(runs.masked(request.param, result))
        )
    return result


@pytest.fixture
def evaltui(request: pytest.FixtureRequest) -> Evaluator:
    """Runs agents: `await evaltui.run(agent, sets)`, or `evaltui.run_sync(agent, sets)`."""
    from evaltui.testing.fixture import Evaluator

    return Evaluator(runs_of(request.config), request.path.parent)
