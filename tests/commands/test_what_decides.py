"""A stored result counts as of now only while everything that its run read is as it was then."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from command_line import call
from eval_data import make_case, make_turn

from evaltui.workbench.state import Stage
from evaltui.workbench.workbench import Workbench

AGENT = """
    import importlib, sqlite3
    from pathlib import Path

    HERE = Path(__file__).parent

    def root_agent(message, session):
        {body}
        return "hi"
"""
READS = "(HERE / {name!r}).read_text()"
JUDGED = {
    "criteria": {
        "final_response_match_v2": {
            "threshold": 0.5,
            "judge_model_options": {"judge_model": "checks.judge:good", "num_samples": 1},
        }
    }
}
METRIC = {"evaltui": {"criteria": {"own": {"threshold": 1.0, "function": "checks.metrics.own"}}}}
JUDGE = """
def good(prompt):
    return '{"is_the_agent_response_valid": "valid"}'
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def desk(tmp_path, write_agent):
    """Makes the project of an agent whose tool runs `body`, with two cases."""

    def make(body="pass", config=None):
        write(tmp_path / "pyproject.toml", "[project]\nname = 'shop'\nversion = '1'\n")
        folder = write_agent(AGENT.format(body=body), name="desk")
        cases = [make_case(eval_id, make_turn("hi", "hi")) for eval_id in ("a", "b")]
        write(folder / "s.evalset.json", json.dumps({"eval_set_id": "s", "eval_cases": cases}))
        write(folder / "test_config.json", json.dumps(config or {"criteria": {"response_match_score": 0.5}}))
        return folder

    return make


@asynccontextmanager
async def opened(folder):
    workbench = Workbench(folder)
    await workbench.open()
    await workbench.outcomes.restore()
    try:
        yield workbench
    finally:
        await workbench.close()


async def reasons(workbench):
    """Why each result is stale; empty for one of now."""
    await workbench.outcomes.compare_files()
    states = [workbench.outcomes.freshness(case) for case in workbench.sets.every_case()]
    assert None not in states
    return [state.reasons if state.is_stale else () for state in states]


def reopened(folder):
    async def look():
        async with opened(folder) as workbench:
            return await reasons(workbench)

    return asyncio.run(look())


async def run_all(workbench, folder, meanwhile=None):
    run = workbench.runs.start("all", {folder / "s.evalset.json": None})
    if meanwhile is not None:
        await meanwhile(run)
    await workbench.runs.finished()
    assert run.stage is Stage.FINISHED


CHECKS = {
    "metric": (METRIC, "metrics.py", "def own(actual, expected, criterion):\n    return 1.0\n"),
    "judge": (JUDGED, "judge.py", JUDGE),
}


@pytest.mark.parametrize("kind", CHECKS)
def test_functions_that_only_scoring_imports(desk, tmp_path, kind, capsys):
    config, name, text = CHECKS[kind]
    folder, checks = desk(config=config), tmp_path / "checks"
    write(checks / "__init__.py", "")
    write(checks / name, text)
    assert call("run", folder, "s:a") == 0
    assert call("run", folder) == 0
    assert reopened(folder) == [(), ()]
    first, _ = sorted((folder / ".evaltui" / "runs").glob("*.sqlite"))
    write(checks / name, text + "# other\n")
    assert reopened(folder) == [(f"../checks/{name}",)] * 2
    assert call("run", folder, "s:b") == 0
    *_, second = sorted((folder / ".evaltui" / "runs").glob("*.sqlite"))
    capsys.readouterr()
    assert call("merge", first, second, "-o", tmp_path / "merged.sqlite") == 2
    assert f"../checks/{name} changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name",
    [
        *("kb.jsonl", "kb.tsv", "kb.ini", "kb.rst", "kb.mustache", "kb.prompty", "prompt", "p.TXT", "p.Md"),
        *(".prompts/p.jsonl", ".hidden.txt", ".env.local", "recordings/p.txt", "kb.sqlite", "picture.png"),
    ],
)
def test_data_and_prompts_in_the_agents_folder_whatever_their_names(desk, name):
    folder = desk()
    write(folder / name, "before")
    assert call("run", folder) == 0
    assert reopened(folder) == [(), ()]
    write(folder / name, "after")
    assert reopened(folder) == [(name,)] * 2


def test_a_file_that_was_added_and_one_in_a_linked_folder(desk, tmp_path):
    folder = desk()
    write(tmp_path / "elsewhere" / "p.jsonl", "before")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "linked" / "again").symlink_to(folder)
    assert call("run", folder) == 0
    write(folder / "prompts" / "new.jsonl", "{}")
    write(tmp_path / "elsewhere" / "p.jsonl", "after")
    assert reopened(folder) == [("linked/p.jsonl", "prompts/new.jsonl")] * 2


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("importlib.import_module('common')", "common.py"),
        ("(HERE.parent / 'prompts' / 'p.md').read_text()", "prompts/p.md"),
        ("(HERE / 'cases.jsonl').read_text()", "desk/cases.jsonl"),
        ("sqlite3.connect(HERE.parent / 'prices' / 'kb')", "prices/kb"),
    ],
)
def test_what_the_agent_reads_elsewhere_in_its_project(desk, tmp_path, body, name):
    folder, path = desk(body), tmp_path / name
    seen = os.path.relpath(path, folder)
    write(path, "before = 1\n")

    async def sitting():
        async with opened(folder) as workbench:
            await run_all(workbench, folder)
            assert await reasons(workbench) == [(), ()]
            write(path, "after = 1\n")
            assert await reasons(workbench) == [(seen,)] * 2

    asyncio.run(sitting())
    assert reopened(folder) == [(seen,)] * 2
    path.unlink()
    assert reopened(folder) == [(seen,)] * 2
    write(path, "before = 1\n")
    assert reopened(folder) == [(), ()]


def test_what_the_agent_looked_for_elsewhere_in_its_project(desk, tmp_path, capsys):
    """A prompt that was not there is not the one that is there now."""
    folder = desk("try: (HERE.parent / 'prompts' / 'more.md').read_text()\n        except OSError: pass")
    assert call("run", folder) == 0
    assert reopened(folder) == [(), ()]
    write(tmp_path / "prompts" / "more.md", "after")
    assert reopened(folder) == [("../prompts/more.md",)] * 2
    assert call("run", folder, "--resume", "last") == 2
    assert "../prompts/more.md changed" in capsys.readouterr().err
    assert call("run", folder) == 0
    assert reopened(folder) == [(), ()]
    (tmp_path / "prompts" / "more.md").unlink()
    assert reopened(folder) == [("../prompts/more.md",)] * 2


def test_what_the_agent_reads_on_workers_of_this_machine(desk, tmp_path):
    pytest.importorskip("distributed")
    folder = desk("(HERE.parent / 'prompts' / 'p.md').read_text()")
    path = write(tmp_path / "prompts" / "p.md", "before")
    command = [sys.executable, "-m", "evaltui", "run", folder, "--scheduler", "local:1"]
    assert subprocess.run(command, check=False).returncode == 0
    assert reopened(folder) == [(), ()]
    write(path, "after")
    assert reopened(folder) == [("../prompts/p.md",)] * 2


def test_functions_that_only_scoring_imports_on_workers(desk, tmp_path):
    pytest.importorskip("distributed")
    config, name, text = CHECKS["metric"]
    folder, checks = desk(config=config), tmp_path / "checks"
    write(checks / "__init__.py", "")
    write(checks / name, text)
    command = [sys.executable, "-m", "evaltui", "run", folder, "--scheduler", "local:1"]
    assert subprocess.run(command, check=False).returncode == 0
    write(checks / name, text + "# other\n")
    assert reopened(folder) == [(f"../checks/{name}",)] * 2


@pytest.mark.parametrize("name", ["prompt.md", "kb.jsonl", ".env", "../prompts/p.md"])
def test_a_file_that_somebody_edits_while_a_run_goes_on(desk, name):
    folder = desk(
        f"{READS.format(name=name)}; (HERE / '.evaltui' / 'reached').touch()\n"
        "        while not (HERE / '.evaltui' / 'go').exists(): __import__('time').sleep(0.01)"
    )
    path = write(folder / name, "A=before")

    async def edit(run):
        while not (folder / ".evaltui" / "reached").exists():
            await asyncio.sleep(0.01)
        write(path, "A=after")
        write(folder / ".evaltui" / "go", "")

    async def sitting():
        async with opened(folder) as workbench:
            await run_all(workbench, folder, edit)
            assert await reasons(workbench) == [(name,)] * 2
            assert any(f"{name} changed during the run" in note for note in workbench.runs.current.remarks)

    asyncio.run(sitting())
    assert reopened(folder) == [(name,)] * 2


WRITES = {
    "a log": "(HERE / 'log').open('a').write('x')",
    "a counter": "p = HERE / 'count.dat'; before = p.read_text() if p.exists() else ''; "
    "p.write_text(str(int(before or 0) + 1))",
    "a memory": "p = HERE / f'{id(session)}.new'; p.write_text(str(id(session))); p.replace(HERE / 'm')",
    "a database": "db = sqlite3.connect(HERE / 'kb.db'); db.execute('create table if not exists t (x)'); "
    "db.execute('insert into t values (1)'); db.commit()",
}


@pytest.mark.parametrize("what", WRITES)
def test_what_the_agent_writes_itself_makes_no_result_stale(desk, what):
    folder = desk(WRITES[what])
    assert call("run", folder) == 0

    async def sitting():
        async with opened(folder) as workbench:
            for _ in range(2):
                assert await reasons(workbench) == [(), ()]
                await run_all(workbench, folder)
                assert not workbench.runs.current.remarks
            assert await reasons(workbench) == [(), ()]

    asyncio.run(sitting())
    assert reopened(folder) == [(), ()]


WRITES_ANEW = {"a file for each session": "(HERE / f'{__import__(\"uuid\").uuid4()}.out').write_text('x')"}


@pytest.mark.parametrize("what", [*WRITES, *WRITES_ANEW])
def test_what_the_agent_writes_in_a_later_run_makes_no_result_stale(desk, what):
    folder = desk((WRITES | WRITES_ANEW)[what])
    assert call("run", folder, "s:a") == 0
    first = max(path.stat().st_mtime for path in folder.iterdir())
    assert call("run", folder, "s:b") == 0
    for path in set(folder.iterdir()) - {folder / "agent.py"}:
        # As if the runs were hours apart.
        if path.is_file() and path.stat().st_mtime > first:
            os.utime(path, (first + 7200, first + 7200))
    assert reopened(folder) == [(), ()]


@pytest.mark.parametrize(
    ("name", "opened_as"),
    [
        ("kb.db", "HERE / 'kb.db'"),
        ("../kb.db", "HERE.parent / 'kb.db'"),
        ("../k b.db", "HERE.parent.joinpath('k b.db').as_uri() + '?mode=ro', uri=True"),
    ],
)
def test_a_database_that_the_agent_only_reads_is_part_of_it(desk, name, opened_as):
    folder = desk(f"sqlite3.connect({opened_as}).execute('select * from t').fetchall()")
    with sqlite3.connect(folder / name) as database:
        database.execute("create table t (x)")
    database.close()
    assert call("run", folder) == 0
    assert reopened(folder) == [(), ()]
    with sqlite3.connect(folder / name) as database:
        database.execute("insert into t values (1)")
    database.close()
    assert reopened(folder) == [(name,)] * 2


def test_a_file_that_another_program_reads_is_part_of_it_however_old_the_one_in_its_place(desk):
    folder = desk("__import__('subprocess').run(['cat', HERE / 'kb.json'])")
    (folder / "kb.json").write_text("1")
    assert call("run", folder) == 0
    older = folder.parent / "older.json"
    older.write_text("2")
    os.utime(older, (1e9, 1e9))
    older.rename(folder / "kb.json")
    assert reopened(folder) == [("kb.json",)] * 2


def test_reports_in_the_agents_folder_are_no_part_of_it(desk):
    folder = desk()
    kinds = {"json": "json", "junit": "xml", "csv": "csv", "markdown": "md", "html": "html"}
    assert call("run", folder) == 0
    for kind, suffix in kinds.items():
        assert call("report", folder, "last", "--report", f"{kind}={folder / f'out.{suffix}'}") == 0
    assert {path.name for path in folder.glob("out.*")} == {f"out.{suffix}" for suffix in kinds.values()}
    os.utime(folder / "out.csv", (2e9, 2e9))
    assert reopened(folder) == [(), ()]


def test_other_reports_in_the_agents_folder_are_no_part_of_it(desk):
    folder = desk()
    kinds = {"json": "json", "csv": "csv", "markdown": "md", "html": "html"}
    reports = [
        word for kind, suffix in kinds.items() for word in ("--report", f"{kind}={folder / f'm.{suffix}'}")
    ]
    assert call("run", folder, "--variant", "base", "--variant", "other:env.SHOP=2", *reports) == 0
    runs = sorted(path.stem for path in (folder / ".evaltui" / "runs").glob("*.sqlite"))
    assert call("compare", folder, *runs, "--report", f"json={folder / 'compared.json'}") == 0
    assert {path.name for path in folder.glob("m.*")} == {f"m.{suffix}" for suffix in kinds.values()}
    assert reopened(folder) == [(), ()]


def test_durations_estimates_gaps_and_traces_in_the_agents_folder_are_no_part_of_it(desk):
    folder = desk()
    assert call("run", folder, "--store-durations", folder / "durations.json") == 0
    assert call("run", folder, "--estimate", "--report", f"json={folder / 'estimate.json'}") == 0
    assert call("export", folder, "--run", "last", "-o", folder / "traces.json") == 0
    call("gaps", folder, "--report", f"json={folder / 'gaps.json'}")
    assert {"durations.json", "estimate.json", "gaps.json", "traces.json"} <= {
        path.name for path in folder.iterdir()
    }
    assert reopened(folder) == [(), ()]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kb.json", '{"version": 1, "files": [{"path": "WHERE"}]}'),
        ("routes.json", '{"version": 1, "agent": "WHERE", "started": true}'),
        ("ways.json", '{"version": 1, "runs": {"WHERE.json": ["20261201"]}}'),
        ("cases.json", '{"version": 1, "cases": ["WHERE"]}'),
        ("limits.json", '{"WHERE.json": {"seconds": 1}}'),
        ("spans.json", '{"resourceSpans": [{"resource": "WHERE"}]}'),
        ("last.xml", '<?xml version="1.0"?><testsuites name="WHERE"></testsuites>'),
    ],
)
def test_data_that_begins_like_a_report_is_part_of_it(desk, name, text):
    folder = desk(READS.format(name=name))
    write(folder / name, text)
    assert call("run", folder) == 0
    assert reopened(folder) == [(), ()]
    write(folder / name, text.replace("WHERE", "elsewhere"))
    assert reopened(folder) == [(name,)] * 2
