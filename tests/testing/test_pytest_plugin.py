"""The pytest plugin as its users meet it: pytest is run on projects with agents and eval sets."""

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from eval_data import make_case, make_set, make_turn
from gemini_server import says

from evaltui import pytest_plugin
from evaltui.project.run_settings import RunSettings
from evaltui.runs import sets
from evaltui.runs.history import open_run
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from evaltui.testing import session
from tests.stored_runs import change, count

ROOT = Path(__file__).parents[2]
pytest_plugins = ["pytester"]
# The sessions inside name no scope for the loops of their fixtures.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestDeprecationWarning")

AGENT = """
import os, re
from evaltui import events

def root_agent(message, session):
    if message == "crash":
        raise RuntimeError("out of stock")
    if message == "exit":
        os._exit(3)
    print("heard", message)
    yield events.tool_call("find", {"what": message, "page": 1})
    yield events.tool_result("find", {"hits": 3})
    yield "found " + message
"""

# Every fifth of its runs does something else.
FLAKY = AGENT.replace("import os, re", "import os, itertools\nRUNS = itertools.count(1)").replace(
    'print("heard", message)', 'message = message if next(RUNS) % 5 else "nothing"'
)


def case(eval_id, message, answer=None, page=1):
    call = {"name": "find", "args": {"what": message, "page": page}}
    return make_case(eval_id, make_turn(message, answer or f"found {message}", [call]))


def eval_set(*cases):
    return json.dumps(make_set("basics", *cases), indent=2)


@pytest.fixture
def project(pytester, monkeypatch):
    """A project with one agent; its set has a case that passes and one that does not."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    agent = pytester.mkdir("shop")
    (agent / "__init__.py").write_text("from . import agent\n")
    (agent / "agent.py").write_text(AGENT)
    write(agent, case("good one", "hats"), case("late", "coats", page=2))
    return agent


def write(agent, *cases, name="basics.evalset.json"):
    path = agent / name
    path.write_text(eval_set(*cases))
    return path


def statuses(result):
    """Outcome by the last part of the node id, from the lines of `-rA`."""
    lines = [line.split(" ", 1) for line in result.outlines if line.split(" ")[0].isupper()]
    return {rest.partition("::")[2].partition(" - ")[0]: word for word, rest in lines if "::" in rest}


def test_a_session_that_does_not_ask_has_no_eval_sets(pytester, project):
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1)
    assert "evaltui" not in result.stdout.str().replace("plugins: ", "").partition("collected")[2]
    assert not (project / ".evaltui").exists()


@pytest.mark.parametrize(
    "asked",
    [("--evaltui",), ("shop/basics.evalset.json",), ("shop/basics.evalset.json::late", "--evaltui"), "ini"],
    ids=["option", "file", "node", "ini"],
)
def test_asked_for_each_case_is_a_test(pytester, project, asked):
    if asked == "ini":
        pytester.makeini("[pytest]\nevaltui = true\nasyncio_default_fixture_loop_scope = function\n")
        asked = ()
    result = pytester.runpytest_inprocess("-rA", *asked)
    expected = {"good one": "PASSED", "late": "FAILED"}
    if "::" in str(asked):
        expected.pop("good one")
    assert statuses(result) == expected


def line_of(agent, eval_id):
    lines = (agent / "basics.evalset.json").read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if f'"{eval_id}"' in line) - 1


def test_a_session_shows_reports_and_stores_each_case(pytester, project):
    commands = "coats\n::stop-commands::x\n##vso[task.complete]"
    late, odd = case("late", commands, page=2), case("a\x1b[31m\n::b", "hats")
    write(project, late, case("broken", "crash"), case("gone", "exit"), case("good one", "hats"), odd)
    write(project, case("other", "gloves"), case("deselected", "gloves"), name="more.test.json")
    words = ("--deselect", "shop/more.test.json::deselected", "--evaltui-parallel", "1")
    result = pytester.runpytest_inprocess("--evaltui", "-rA", "--junitxml=out.xml", *words)
    undecided = {"broken": "ERROR", "gone": "ERROR"}
    passed = dict.fromkeys(("good one", r"a\x1b[31m\n·b", "other"), "PASSED")
    assert statuses(result) == {"late": "FAILED", **undecided, **passed}
    result.stdout.fnmatch_lines(
        [
            "*RuntimeError: out of stock*",
            "*≠ find*",
            "*page*2*→*1*",
            f"{project}/basics.evalset.json:{line_of(project, 'late')}",
            "*agent output*",
            "heard coats",
            "\\::stop-commands::x",
            "FAILED shop/basics.evalset.json::late - find: page is 1, expected 2*",
            "*1 failed, 3 passed, 1 deselected, 2 errors*",
        ]
    )
    shown = result.stdout.str()
    assert not [line for line in result.outlines if line.strip().startswith("::") or "##vso[" in line]
    assert "INTERNALERROR" not in shown
    suite = ET.parse("out.xml").getroot()[0]
    assert (suite.get("errors"), suite.get("failures"), suite.get("tests")) == ("2", "1", "6")
    scores = {
        one.get("name"): one.get("value") for one in suite.iterfind("testcase[@name='good one']//property")
    }
    assert scores["tool_trajectory_avg_score"] == "1"
    (log,) = (project / ".evaltui" / "runs").glob("*.sqlite")
    assert log == RunStore.of(project, RunSettings()).latest()
    assert [(one.eval_set_id, len(one.eval_ids)) for one in RunFile(log).header.sets] == [
        ("basics", 5),
        ("basics", 1),
    ]


def test_a_metric_that_cannot_run_is_an_error_or_skipped(pytester, project):
    (project / "test_config.json").write_text('{"criteria": {"safety_v1": 0.5}}')
    write(project, case("one", "hats"))
    assert pytester.runpytest_inprocess("--evaltui").parseoutcomes() == {"errors": 1}
    skipping = pytester.runpytest_inprocess("--evaltui", "--evaltui-not-evaluated", "skip", "-rs")
    assert skipping.parseoutcomes() == {"skipped": 1}
    assert "safety_v1" in skipping.stdout.str()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-k", "coats"), {"late": "FAILED"}),
        (("-k", "find and not late"), {"good one": "PASSED"}),
        (("-m", "evaltui"), {"good one": "PASSED", "late": "FAILED"}),
        (("-m", "not evaltui"), {}),
        (("--deselect", "shop/basics.evalset.json::late"), {"good one": "PASSED"}),
        (("--strict-markers", "-p", "no:xdist"), {"good one": "PASSED", "late": "FAILED"}),
    ],
)
def test_cases_are_selected_as_other_tests(pytester, project, words, expected):
    assert statuses(pytester.runpytest_inprocess("--evaltui", "-rA", *words)) == expected


def test_last_failed_and_stepwise_know_cases(pytester, project):
    pytester.runpytest_inprocess("--evaltui")
    assert statuses(pytester.runpytest_inprocess("--evaltui", "-rA", "--lf")) == {"late": "FAILED"}
    (project / "basics.evalset.json").write_text(eval_set(case("good one", "hats"), case("late", "coats")))
    assert statuses(pytester.runpytest_inprocess("--evaltui", "-rA", "--lf")) == {"late": "PASSED"}


def test_the_first_failure_ends_the_run(pytester, project):
    write(project, case("late", "coats", page=2), *(case(f"case {n}", "hats") for n in range(30)))
    result = pytester.runpytest_inprocess("--evaltui", "-x", "--evaltui-parallel", "1")
    result.assert_outcomes(failed=1)
    assert 0 < count(RunStore.of(project, RunSettings()).latest(), "repeats") < 31


def test_repeats_stay_inside_a_test(pytester, project):
    result = pytester.runpytest_inprocess("--evaltui", "-rA", "--evaltui-runs", "3", "-k", "good")
    result.assert_outcomes(passed=1)
    assert count(RunStore.of(project, RunSettings()).latest(), "repeats") == 3


BROKEN = {
    "no JSON": ("{", "basics.evalset.json:1", 1),
    "not a set": ('{"a": 1}', "eval_cases", 1),
    "twin ids": (eval_set(case("a", "x"), case("a", "y")), "duplicate id", 2),
    "no list": ('{"eval_set_id": "s", "eval_cases": 3}', "eval_cases", 1),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_set_is_an_error_that_says_where(pytester, project, kind):
    text, says, errors = BROKEN[kind]
    (project / "basics.evalset.json").write_text(text)
    write(project, case("other", "hats"), name="more.evalset.json")
    result = pytester.runpytest_inprocess("--evaltui", "--continue-on-collection-errors")
    assert result.parseoutcomes() == {"errors": errors, "passed": 1}
    assert says in result.stdout.str()
    assert "def " not in result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str()


def test_the_errors_of_a_set_are_looked_for_once(pytester, project, monkeypatch):
    """Not once for each of its cases, of which a set may have thousands."""
    read = []
    load = sets.read_set
    monkeypatch.setattr(
        sets, "read_set", lambda folder, path, *rest: read.append(path) or load(folder, path, *rest)
    )
    write(project, *(case("twin", "hats") for _ in range(9)))
    result = pytester.runpytest_inprocess("--evaltui")
    assert result.parseoutcomes() == {"errors": 9}
    # By the run, and for its errors.
    assert read == [project / "basics.evalset.json"] * 2


def test_json_of_others_is_left_alone_and_sets_may_have_any_name(pytester, project):
    (project / "jest.test.json").write_text('{"suites": []}')
    (project / "package.json").write_text("{}")
    write(project, case("good too", "hats"), name="orders.json")
    pytester.runpytest_inprocess("--evaltui", "-k", "good").assert_outcomes(passed=2, deselected=1)


def test_an_agent_that_cannot_be_told_is_asked_for(pytester, project):
    other = pytester.mkdir("other")
    (other / "agent.py").write_text(AGENT)
    tests = pytester.mkdir("tests")
    write(tests, case("a", "hats"))
    result = pytester.runpytest_inprocess("--evaltui", "tests")
    assert "--evaltui-agent DIR" in result.stdout.str()
    pytester.runpytest_inprocess("--evaltui", "tests", "--evaltui-agent", "shop").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "words",
    [
        ("--evaltui-runs", "none"),
        ("--evaltui-pass-if", "most"),
        ("--evaltui-confidence", "1"),
        ("--evaltui-max-runs", "20"),
        ("--evaltui-runs", "3", "--evaltui-confidence", "0.95"),
        ("--evaltui-record", "maybe"),
        ("--evaltui-timeout", "-1"),
        ("--evaltui-not-evaluated", "pass"),
        ("--evaltui-accept", "-n", "2"),
        ("--evaltui-review", "-n", "2"),
        ("--evaltui-review",),
        ("--evaltui-fail-on-regression",),
        ("--evaltui-fail-on-regression", "--evaltui-baseline", "1", "--evaltui-not-evaluated", "skip"),
        ("--evaltui-agent", "http://127.0.0.1:1/app"),
        ("--evaltui-agent", "gone"),
        ("--evaltui-config", "gone.json"),
        ("--evaltui-config", "cut.json"),
        ("--evaltui-config", "wrong.json"),
        *((f"--evaltui-{name}", "") for name in ("baseline", "config", "record", "runs")),
    ],
    ids=" ".join,
)
def test_an_option_that_makes_no_sense_is_refused(pytester, project, words, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    pytester.path.joinpath("cut.json").write_text("{")
    pytester.path.joinpath("wrong.json").write_text('{"criteria": {"tool_trajectory_avg_score": "much"}}')
    result = pytester.runpytest_inprocess("--evaltui", *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [one for one in result.errlines if words[0] in one]
    assert words[-1] in line or words[0] != "--evaltui-config"


def test_a_case_is_run_until_it_is_decided_and_undecided_is_never_skipped(pytester, project):
    words = ("--evaltui", "--evaltui-confidence", "0.95", "--evaltui-not-evaluated", "skip")
    pytester.runpytest_inprocess(*words).assert_outcomes(passed=1, failed=1)
    (project / "agent.py").write_text(FLAKY)
    result = pytester.runpytest_inprocess(*words, "--evaltui-max-runs", "20", "-k", "good")
    result.assert_outcomes(errors=1, deselected=1)
    assert "undecided between pass rates 0.7 and 0.9 (95% confidence)" in result.stdout.str()


def test_accepting_shows_the_change_and_is_refused_under_ci(pytester, project, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    result = pytester.runpytest_inprocess("--evaltui", "--evaltui-accept")
    result.stdout.fnmatch_lines(['-*"page": 2*', '+*"page": 1*', "accepted 1 case*"])
    pytester.runpytest_inprocess("--evaltui").assert_outcomes(passed=2)
    before = (project / "basics.evalset.json").read_bytes()
    monkeypatch.setenv("CI", "true")
    refused = pytester.runpytest_inprocess("--evaltui", "--evaltui-accept")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert (project / "basics.evalset.json").read_bytes() == before


WRONG_MARKERS = {
    'agent="nowhere"': "nowhere does not exist",
    "agent=3": "agent is 3, expected a folder",
    "sets=3": "missing 1 required positional argument: 'agent'",
    'agent="shop", sets=[3]': "sets is [3], expected files or set ids",
    'agent="shop", sets="gone"': "'gone'",
    'agent="shop", config="gone.json"': "gone.json does not exist",
    'agent="shop", config={}': "config is {}, expected a file",
    'agent="shop", set="basics"': "unexpected keyword argument 'set'",
}


def test_a_wrong_marker_is_an_error_of_one_line(pytester, project):
    for number, given in enumerate(WRONG_MARKERS):
        text = f"import pytest\n\n@pytest.mark.evaltui({given})\ndef test_case(evaltui_case): pass\n"
        pytester.path.joinpath(f"test_{number}.py").write_text(text)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=len(WRONG_MARKERS))
    for number, text in enumerate(WRONG_MARKERS.values()):
        (line,) = [one for one in result.outlines if one.startswith(f"test_{number}.py::test_case: ")]
        assert text in line
    assert not any(one.startswith("E  ") for one in result.outlines)


MARKED = """
import pytest

{above}
@pytest.mark.evaltui{arguments}
def test_case({fixture}):
    pass
"""
MARKED_FOR_NOTHING = {
    "has no parameter evaltui_case": {"above": "", "arguments": '("shop")', "fixture": ""},
    "has 2 markers evaltui": {
        "above": '@pytest.mark.evaltui("mall")',
        "arguments": '("shop")',
        "fixture": "evaltui_case",
    },
}


@pytest.mark.parametrize("text", MARKED_FOR_NOTHING)
def test_a_marker_whose_cases_would_not_run_is_an_error(pytester, project, text):
    pytester.makepyfile(MARKED.format(**MARKED_FOR_NOTHING[text]))
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*::test_case: *{text}*"])


@pytest.mark.parametrize("at", ["class", "test"])
def test_a_test_of_unittest_cannot_have_cases(pytester, project, at):
    of_class, of_test = ('@pytest.mark.evaltui("shop")' if at == where else "" for where in ("class", "test"))
    pytester.makepyfile(
        f"""
        import unittest
        import pytest

        {of_class}
        class Shop(unittest.TestCase):
            {of_test}
            def test_case(self):
                pass

        class Other(unittest.TestCase):
            @pytest.mark.evaltui
            def test_case(self):
                pass
        """
    )
    result = pytester.runpytest_inprocess("--continue-on-collection-errors")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["*::Shop*: has no parameter evaltui_case, *unittest*"])


def test_a_marker_may_name_tests_and_stand_on_a_class(pytester, project):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.evaltui
        def test_run(evaltui):
            assert evaltui.run_sync("shop", "basics:good one")

        @pytest.mark.evaltui("mall")
        class TestShop:
            @pytest.mark.evaltui("shop", "basics:good one")
            def test_case(self, evaltui_case):
                assert evaltui_case

            def test_other(self):
                pass
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=3)


def test_a_case_is_true_where_it_passed(pytester, project):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.evaltui("shop")
        def test_case(evaltui_case):
            assert evaltui_case
        """
    )
    result = pytester.runpytest_inprocess("-rA")
    assert statuses(result) == {"test_case[good one]": "PASSED", "test_case[late]": "FAILED"}


def test_tests_in_python_ask_for_cases_and_runs(pytester, project):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.evaltui(agent="shop", sets="basics")
        def test_case(evaltui_case):
            scores = {one.name: one.score for one in evaltui_case.metrics}
            assert scores["tool_trajectory_avg_score"] == 1

        def test_run(evaltui):
            result = evaltui.run_sync("shop", "shop/basics.evalset.json")
            assert [case.status for case in result.cases] == ["PASSED", "FAILED"]

        def test_object(evaltui, tmp_path):
            def agent(message, session):
                return "found " + message

            config = {"criteria": {"response_match_score": 1}}
            for sets in ("shop/basics.evalset.json", ["shop/basics.evalset.json"], "shop"):
                result = evaltui.run_sync(agent, sets, config, results_dir=tmp_path)
                assert result.in_process and result.case("good one").passed, result
            assert len(list(tmp_path.rglob("*.sqlite"))) == 3
        """
    )
    result = pytester.runpytest_inprocess("-rA")
    assert statuses(result) == {
        "test_case[good one]": "PASSED",
        "test_case[late]": "FAILED",
        "test_run": "PASSED",
        "test_object": "PASSED",
    }
    result.stdout.fnmatch_lines(["*evaltui result*", "*find: page is 1, expected 2*", "*page*2*→*1*"])


def test_runs_in_tests_have_the_config_and_the_python_of_the_session(pytester, project):
    pytester.makepyfile(
        """
        def test_run(evaltui):
            assert evaltui.run_sync("shop", "basics:late").passed

        def test_own_config(evaltui):
            config = {"criteria": {"tool_trajectory_avg_score": 1}}
            assert not evaltui.run_sync("shop", "basics:late", config).passed
        """
    )
    lax = pytester.path / "lax.json"
    lax.write_text('{"criteria": {"response_match_score": 1}}')
    assert pytester.runpytest_inprocess().parseoutcomes() == {"failed": 1, "passed": 1}
    pytester.runpytest_inprocess(f"--evaltui-config={lax}").assert_outcomes(passed=2)
    result = pytester.runpytest_inprocess("--evaltui-python=gone/bin/python")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*no Python at gone/bin/python*"])


@pytest.mark.parametrize("kind", BROKEN)
def test_the_marker_leaves_out_no_set_that_cannot_be_read(pytester, project, kind):
    text, says, _ = BROKEN[kind]
    (project / "basics.evalset.json").write_text(text)
    write(project, case("good", "hats"), name="more.evalset.json")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.evaltui("shop")
        def test_case(evaltui_case):
            assert evaltui_case.passed
        """
    )
    result = pytester.runpytest_inprocess()
    assert result.ret != 0
    assert result.parseoutcomes()["errors"]
    assert says in result.stdout.str()


def test_the_tests_that_the_guide_prints_pass(pytester, project):
    shutil.copytree(ROOT / "sample_agents" / "calculator", pytester.path / "calculator")
    text = (ROOT / "evaltui" / "guide" / "pytest.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (pytester.mkdir("own") / "test_own.py").write_text(block)
    pytester.runpytest_inprocess("own").assert_outcomes(passed=6)


def test_the_package_of_an_agent_is_not_imported_into_pytest(pytester, project, monkeypatch):
    """Its framework may be installed where the agent runs and nowhere else."""
    monkeypatch.setenv("PID_OF_PYTEST", str(os.getpid()))
    (project / "__init__.py").write_text(
        """
import os
if os.getpid() == int(os.environ["PID_OF_PYTEST"]):
    raise ImportError("No module named 'framework'")
from . import agent
"""
    )
    result = pytester.runpytest_inprocess("-rA", "shop/basics.evalset.json")
    assert statuses(result) == {"good one": "PASSED", "late": "FAILED"}


def test_the_agent_has_the_environment_of_the_session_without_what_pytest_says_of_tests(
    pytester, project, monkeypatch
):
    monkeypatch.setenv("SHOP", "open")
    names = ["PYTEST_CURRENT_TEST", "SHOP"]
    (project / "agent.py").write_text(
        f"import os\n\ndef root_agent(message, session):\n    return str([*map(os.environ.get, {names})])\n"
    )
    (project / "test_config.json").write_text('{"criteria": {"response_match_score": 1}}')
    write(project, case("variables", "hats", answer="[None, 'open']"))
    pytester.runpytest_inprocess("--evaltui").assert_outcomes(passed=1)


@pytest.fixture
def temporary(pytester, monkeypatch):
    """The folder of temporary files of sessions with workers."""
    folder = pytester.mkdir("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_the_shards_of_xdist_workers_are_one_stored_run(pytester, project, temporary):
    """With their failures as they are without xdist, and nothing left behind."""
    write(project, *(case(f"case {n}", "hats", page=1 + (n == 3)) for n in range(6)))
    result = pytester.runpytest_subprocess("--evaltui", "-n", "2")
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*≠ find*",
            f"{project}/basics.evalset.json:{line_of(project, 'case 3')}",
            "*agent output*",
            "heard hats",
            "evaltui: 6 cases of shop in *",
            "FAILED shop/basics.evalset.json::case 3 - find: page is 1, expected 2*",
        ]
    )
    (log,) = (project / ".evaltui" / "runs").glob("*.sqlite")
    run = open_run(log)
    assert [case.eval_id for case in run.summary.cases] == [f"case {n}" for n in range(6)]
    assert (run.status, run.file.header.shards, run.file.header.parts) == ("FAILED", None, ())
    assert not [*temporary.glob("evaltui-*")]


# The second worker reads the config after the first one has begun.
CHANGING = """
import pathlib, time
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session):
    if getattr(session.config, "workerinput", {}).get("workerid") == "gw1":
        folder = pathlib.Path(session.config.workerinput["evaltui_folder"])
        while not [*folder.glob("0/shard-1/**/*.sqlite")]:
            time.sleep(0.05)
        config = pathlib.Path("shop/test_config.json")
        config.write_text('{"criteria": {"response_match_score": 0.0}}')
"""


def test_a_session_whose_workers_saw_different_configs_fails(pytester, project, temporary):
    write(project, case("one", "hats"), case("two", "hats"))
    pytester.makeconftest(CHANGING)
    result = pytester.runpytest_subprocess("--evaltui", "-n", "2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["evaltui: Run not stored: *config*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


# Cases about coats wait until a worker has crashed.
WAITING = """
import asyncio, pathlib
from evaltui import events

HERE = pathlib.Path(__file__).parent

async def root_agent(message, session):
    while message == "coats" and not (HERE / "crashed").exists():
        await asyncio.sleep(0.05)
    yield events.tool_call("find", {"what": message, "page": 1})
    yield events.tool_result("find", {"hits": 3})
    yield "found " + message
    (HERE / f"{session.id}.found").touch()
"""
CRASH = """
import os, pathlib, time

def test_crash():
    shop = pathlib.Path("shop")
    while len([*shop.glob("*.found")]) < 4:
        time.sleep(0.1)
    time.sleep(1)
    (shop / "crashed").touch()
    os._exit(1)
"""


def test_a_worker_of_xdist_that_crashes_loses_only_its_unfinished_cases(pytester, project, temporary):
    """Its tests go on elsewhere; the cases that it had not finished did not run."""
    (project / "agent.py").write_text(WAITING)
    quick, slow = (
        [case(f"{name} {n}", name) for n in range(count)] for name, count in (("hats", 4), ("coats", 2))
    )
    write(project, *quick, *slow)
    (pytester.mkdir("crashing") / "test_crash.py").write_text(CRASH)
    result = pytester.runpytest_subprocess("--evaltui", "-n", "2", "-rA")
    result.assert_outcomes(passed=5, failed=1, errors=1)
    (log,) = (project / ".evaltui" / "runs").glob("*.sqlite")
    summary = open_run(log).summary
    assert len(summary.cases) == 6
    (lost,) = [one.eval_id for one in summary.unfinished]
    assert lost.startswith("coats")
    result.stdout.fnmatch_lines(
        [
            f"*ERROR at setup of {lost} *",
            "a worker of pytest-xdist ended before its cases",
            "evaltui: interrupted: 5 of 6 cases finished",
            "evaltui: 5 cases of shop in *",
        ]
    )
    assert not [*temporary.glob("evaltui-*")]


def test_workers_of_xdist_share_a_budget(pytester, project, temporary, gemini):
    (project / "agent.py").write_text(
        "from evaltui import Agent\nroot_agent = Agent('parrot', 'gemini-test')\n"
    )
    pytester.makepyprojecttoml('[tool.evaltui]\nbudget = "60tok"\nparallel = 2\n')
    write(project, *(case(f"case {n}", "hats") for n in range(12)))
    calls = []
    gemini.respond = lambda request: calls.append(request) or says("right")
    result = pytester.runpytest_subprocess("--evaltui", "-n", "2")
    # A call has 13 tokens, and the last one of each worker may be beyond its part.
    assert len(calls) == 6
    result.assert_outcomes(failed=6, errors=6)
    result.stdout.fnmatch_lines(["evaltui: 1/2 of the budget for each worker"])


def test_a_failure_that_the_baseline_has_too_is_expected(pytester, project):
    """Only a regression fails the session, as with `evaltui run`."""
    pytester.runpytest_inprocess("--evaltui")
    options = ("--evaltui", "--evaltui-baseline", "last", "--evaltui-fail-on-regression", "-rx")
    same = pytester.runpytest_inprocess(*options)
    assert (same.ret, same.parseoutcomes()) == (0, {"passed": 1, "xfailed": 1})
    same.stdout.fnmatch_lines(["compared with *", "XFAIL *::late - no regression from *: find: page is 1*"])
    # Another failure of another case, and the same case with another expectation.
    write(project, case("good one", "hats", page=3), case("late", "coats", page=4))
    worse = pytester.runpytest_inprocess(*options)
    assert worse.parseoutcomes() == {"failed": 2}
    without = pytester.runpytest_inprocess("--evaltui", "--evaltui-baseline", "last")
    assert without.parseoutcomes() == {"failed": 2}
    unknown = pytester.runpytest_inprocess("--evaltui", "--evaltui-baseline", "nope")
    assert unknown.parseoutcomes() == {"errors": 2}
    assert "no run 'nope'" in unknown.stdout.str()


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_session_that_has_no_case_of_its_baseline_fails(pytester, project, workers):
    write(project, case("early", "hats"), case("late", "coats"))
    pytester.runpytest_inprocess("--evaltui")
    write(project, case("new", "hats"), case("newer", "caps"))
    options = ("--evaltui", "--evaltui-baseline", "1", *workers)
    gated = pytester.runpytest_subprocess(*options, "--evaltui-fail-on-regression")
    assert (gated.ret, gated.parseoutcomes()) == (pytest.ExitCode.TESTS_FAILED, {"passed": 2})
    gated.stdout.fnmatch_lines(
        ["evaltui: --evaltui-fail-on-regression: no case has a result in both run 1 and run 2, *"]
    )
    assert pytester.runpytest_subprocess(*options).ret == 0


def test_a_run_that_cannot_be_stored_excuses_no_repeat_without_a_verdict(pytester, project, monkeypatch):
    write(project, case("late", "coats", page=2))
    options = ("--evaltui", "--evaltui-runs", "2", "--evaltui-parallel", "1", "--evaltui-workers", "1")
    pytester.runpytest_inprocess(*options)
    (base,) = RunStore(project).files()
    base = base.rename(pytester.path / base.name)
    shutil.rmtree(project / ".evaltui")
    (project / ".evaltui").touch()
    monkeypatch.setenv("XDG_STATE_HOME", os.devnull)
    gate = (*options, "--evaltui-baseline", str(base), "--evaltui-fail-on-regression")
    assert pytester.runpytest_inprocess(*gate).parseoutcomes() == {"xfailed": 1}
    crash = "SEEN = []\n\ndef root_agent(message, session):\n    SEEN.append(message)\n    "
    crash += "message = message if len(SEEN) == 1 else 'crash'"
    (project / "agent.py").write_text(AGENT.replace("def root_agent(message, session):", crash))
    assert pytester.runpytest_inprocess(*gate).parseoutcomes() == {"failed": 1}


def test_workers_of_xdist_and_their_session_have_one_baseline(pytester, project):
    """The last run was of cases by their ids, and is not of all cases of the set."""
    pytester.runpytest_inprocess("--evaltui")
    write(project, case("good one", "hats"), case("late", "coats"))
    pytester.runpytest_inprocess("--evaltui")
    last = RunStore(project).files()[-1]
    change(last, "UPDATE sets SET whole = 0")
    write(project, case("good one", "hats"), case("late", "coats", page=2))
    options = ("--evaltui", "--evaltui-baseline", "last", "--evaltui-fail-on-regression", "-n", "2")
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=1, xfailed=1)
    result.stdout.fnmatch_lines(["compared with run 1 (2 cases, 1 pass)"])


def test_a_worker_of_xdist_excuses_no_failure_of_sets_whose_config_only_another_shard_has(pytester, project):
    (project / "basics.evalset.json").unlink()
    for word in ("hats", "coats"):
        write(project, case(word, word, page=2), name=f"{word}.evalset.json")
    config = project / "test_config.json"
    config.write_text('{"criteria": {"tool_trajectory_avg_score": 0.9}}')
    pytester.runpytest_inprocess("--evaltui")
    options = ("--evaltui", "--evaltui-baseline", "1", "--evaltui-fail-on-regression", "-n", "2")
    pytester.runpytest_subprocess(*options).assert_outcomes(xfailed=2)
    config.write_text('{"criteria": {"tool_trajectory_avg_score": 1.0}}')
    pytester.runpytest_subprocess(*options).assert_outcomes(failed=2)


def test_errors_and_what_all_cases_prove_together_are_no_expected_failures(pytester, project, gemini):
    messages = ("hats", "coats", "caps", "gloves", "shoes", "socks")
    write(project, *(case(message, message) for message in messages))
    options = ("--evaltui", "--evaltui-workers", "1", "--evaltui-baseline", "last", "--evaltui-runs")
    pytester.runpytest_inprocess("--evaltui", "--evaltui-runs", "3")
    # Right once only: of one case that may be chance, of six it is not.
    once = "SEEN = []\n\ndef root_agent(message, session):\n    SEEN.append(message)\n    "
    once += 'message = message if SEEN.count(message) == 1 else "nothing"'
    code = AGENT.replace("def root_agent(message, session):", once)
    (project / "agent.py").write_text(code)
    gate = (*options, "3", "--evaltui-fail-on-regression")
    worse = pytester.runpytest_inprocess(*gate)
    assert worse.parseoutcomes() == {"failed": 6}
    single = pytester.runpytest_inprocess(*gate, "-k", "hats", "-rx")
    assert (single.ret, single.parseoutcomes()) == (0, {"xfailed": 1, "deselected": 5})
    single.stdout.fnmatch_lines(
        [
            "evaltui: --baseline last is *. Skipped: * (6 regressions from *)",
            "XFAIL *no evidence of a regr*: p = 0.2*",
        ]
    )
    # Which run is the baseline is not why a case was not run.
    (project / "agent.py").write_text("from evaltui import Agent\nroot_agent = Agent('p', 'gemini-test')\n")
    pytester.makepyprojecttoml('[tool.evaltui]\nbudget = "20tok"\nparallel = 1\n')
    gemini.respond = lambda request: says("right")
    cut_off = pytester.runpytest_inprocess(*gate, "-rE")
    cut_off.stdout.fnmatch_lines(
        ["evaltui: --baseline last is *", "ERROR *::socks - 6 cases not run: budget*"]
    )
    (project / "agent.py").write_text("raise ImportError('shop')")
    broken = pytester.runpytest_inprocess(*options, "2", "--evaltui-fail-on-regression")
    assert broken.parseoutcomes() == {"errors": 6}


@pytest.mark.parametrize(
    ("answers", "passing"),
    [("yq", {"first"}), ("ny", {"second"}), ("a", {"first", "second"}), ("?n?n", set()), ("y", set())],
    ids=["quit", "no", "all", "other keys", "interrupt"],
)
def test_a_review_asks_case_by_case(pytester, project, monkeypatch, answers, passing):
    monkeypatch.delenv("CI", raising=False)
    write(project, case("first", "hats", page=2), case("second", "coats", page=2))
    given = iter(answers)

    def answer(config, question):
        try:
            return next(given)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(pytest_plugin, "has_terminal", lambda config: True)
    monkeypatch.setattr(session, "ask", answer)
    result = pytester.runpytest_inprocess("--evaltui", "--evaltui-review")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["first (1 of 2)", '-*"page": 2*', '+*"page": 1*'])
    assert next(given, None) is None
    again = statuses(pytester.runpytest_inprocess("--evaltui", "-rA"))
    assert {name for name, status in again.items() if status == "PASSED"} == passing
    assert not [*(project / ".evaltui" / "recovery").glob("*")]


def test_a_session_that_asks_for_no_eval_sets_imports_nothing_of_evaltui(pytester):
    write(pytester.path, case("one", "hats"))
    pytester.makepyfile(
        """
        import sys

        TESTING = ("evaltui.testing", "evaltui.testing.options")

        def test_it():
            ours = {name for name in sys.modules if name.startswith("evaltui")}
            assert ours == {"evaltui", "evaltui.pytest_plugin", *TESTING}
            assert not {"textual", "google.genai", "pydantic"} & sys.modules.keys()
        """
    )
    words = ["-p", "no:hypothesispytest", "-p", "no:xdist", "-q"]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def tag(project, **tags):
    config = {"criteria": {"tool_trajectory_avg_score": 1.0}}
    entries = [{"set": "basics", "case": name, "tags": found} for name, found in tags.items()]
    (project / "test_config.json").write_text(json.dumps(config | {"evaltui": {"tags": entries}}))


def collected(pytester, *words):
    result = pytester.runpytest_inprocess("--collect-only", "-q", "--strict-markers", *words)
    return {line.rpartition("::")[2] for line in result.outlines if "::" in line}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("-m", "smoke"), {"late"}),
        (("-m", "evaltui and not smoke"), {"good", "odd"}),
        (("-m", "slow or p.0"), {"late", "odd"}),
        (("-k", "smoke"), {"late"}),
        (("-k", "skip"), {"good"}),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_tags_are_markers(pytester, project, words, wanted):
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nmarkers = slow: of the user\n")
    write(project, case("good", "hats"), case("late", "coats"), case("odd", "socks"))
    tag(project, good=["skip"], late=["smoke", "slow"], odd=["p.0", "_x"])
    assert collected(pytester, "--evaltui", *words) == wanted


def test_tests_of_the_marker_have_the_tags_of_their_cases(pytester, project):
    tag(project, late=["smoke"])
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.evaltui("shop")
        def test_case(evaltui_case):
            pass
        """
    )
    assert collected(pytester, "-m", "smoke") == {"test_case[late]"}


def test_a_tag_does_nothing_but_choose(pytester, project):
    write(project, case("late", "coats"))
    tag(project, late=["skip", "xfail"])
    pytester.runpytest_inprocess("--evaltui").assert_outcomes(passed=1)
