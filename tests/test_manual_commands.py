"""Every command line of README and guide does what the page shows; see `manual_console`."""

from __future__ import annotations

import ast
import asyncio
import difflib
import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evaltui.core.model.events import Event
from evaltui.core.schemas.generating import schema_of
from evaltui.project import guide
from evaltui.reports.json_report import report_schema
from tests.closed_schemas import closed
from tests.commands.command_line import call
from tests.manual import PAGES, REWRITE, ROOT
from tests.manual_console import run, shown_lines, steps_of, with_outputs

# They install into an environment, and run this test.
SETUP = "python3 -m venv .venv && .venv/bin/pip install -q -e "
SETUPS = (SETUP, "pip install --find-links wheels 'evaltui[adk]'")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    # The names of columns and of folders are as long for everybody.
    shutil.copytree(
        ROOT / "sample_agents",
        tmp_path / "sample_agents",
        ignore=shutil.ignore_patterns(".*", "__pycache__", "recordings"),
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    return tmp_path


def commands_of(page):
    return [command for step in steps_of(page.read_text(encoding="utf-8")) for command in step.commands]


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_do_as_it_says(page, folder):
    text = page.read_text(encoding="utf-8")
    now = with_outputs(text, folder, ROOT, SETUPS)
    if os.environ.get(REWRITE):
        page.write_text(now, encoding="utf-8")
    elif now != text:
        lines = text.splitlines(), now.splitlines()
        difference = "\n".join(difflib.unified_diff(*lines, page.name, "now", lineterm=""))
        pytest.fail(f"run: python -m tests.manual\n{difference}", pytrace=False)


def test_a_page_shows_the_parts_of_an_output_that_it_names():
    output = "one\ntwo\nthree\nfour\nfive\n"
    assert shown_lines(output, "") == ["one", "two", "three", "four", "five"]
    assert shown_lines(output, ' "two" 1 "four" 2') == ["...", "two", "...", "four", "five"]
    with pytest.raises(ValueError, match="six"):
        shown_lines(output, ' "six" 1')


def test_an_output_is_written_and_stays_where_only_times_differ(folder):
    page = '<!-- output "passed" 1 -->\n```console\n$ evaltui run sample_agents/calculator\n```\n'
    written = with_outputs(page, folder, ROOT)
    assert re.search(r"\n\.\.\.\n4 passed in .*\n", written)
    earlier = re.sub(r" in [\d.]+ m?s", " in 77 s", written)
    assert with_outputs(earlier, folder, ROOT) == earlier
    with pytest.raises(AssertionError, match="exits with 0"):
        with_outputs(page.replace("calculator\n", "calculator  # exit 1\n"), folder, ROOT)
    with pytest.raises(AssertionError, match="output"):
        with_outputs(page.partition("\n")[2].replace("\n```\n", "\nx\n```\n"), folder, ROOT)


def code_of(name, language):
    page = (guide.FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_agents_of_the_guide_run(folder):
    native, model, function, *_ = code_of("agents", "python")
    scripted = native.replace('model="gemini-3.5-flash-lite"', "model=model").partition("root_agent")
    Path("native.py").write_text(f"{model}\n{''.join(scripted)}", encoding="utf-8")
    Path("function.py").write_text(function, encoding="utf-8")
    assert run('echo "Milk!" | evaltui chat native.py') == (
        0,
        '  → remember  item "milk"\n  ← remember  {"result": "milk is on the list"}\n'
        '  state  list = ["milk"]\nMilk is on the list.\n',
    )
    code, out = run("echo hi | evaltui chat function.py")
    assert code == 0
    assert "I found 3 pages." in out


def test_the_metric_of_the_guide_scores(folder):
    own = Path("my_agent")
    own.mkdir()
    (own / "agent.py").write_text(code_of("agents", "python")[2], encoding="utf-8")
    (own / "metrics.py").write_text(code_of("criteria", "python")[0], encoding="utf-8")
    config = next(block for block in code_of("criteria", "json") if "brevity" in block)
    (own / "test_config.json").write_text(f'{{"criteria": {{}}, {config}}}', encoding="utf-8")
    turn = '{"user_content": {"role": "user", "parts": [{"text": "hi"}]}}'
    case = f'{{"eval_id": "short", "conversation": [{turn}]}}'
    (own / "a.evalset.json").write_text(f'{{"eval_set_id": "a", "eval_cases": [{case}]}}', encoding="utf-8")
    assert call("run", "my_agent", "--report", "json=out.json") == 0
    [scored] = json.loads(Path("out.json").read_text(encoding="utf-8"))["cases"]
    assert scored["metrics"][0]["name"] == "brevity"
    assert scored["metrics"][0]["status"] == "PASSED"


def objects_at(value, path):
    """The objects of a report at a path such as `cases[].turns[]`."""
    for step in path.split(".") if path else ():
        values = value if isinstance(value, list) else [value]
        found = [one[step.removesuffix("[]")] for one in values]
        value = [inner for one in found for inner in one] if step.endswith("[]") else found
    return value if isinstance(value, list) else [value]


def test_the_json_report_has_the_keys_of_the_page(folder, capfd):
    page = (guide.FOLDER / "files.md").read_text(encoding="utf-8")
    table = page.partition("| in the JSON report |")[2].partition("\n\n")[0]
    call("run", "sample_agents/home_automation", "thermostat")
    call(
        "run", "sample_agents/home_automation", "thermostat", "--baseline", "last", "--report", "json=1.json"
    )
    call("run", "sample_agents/library_desk", "--report", "json=2.json")
    compared, judged = (json.loads(Path(name).read_text(encoding="utf-8")) for name in ("1.json", "2.json"))
    of_reports, of_events = closed(report_schema()), closed(schema_of(Event, "event", "event"))
    for one in (compared, judged):
        assert [error.message for error in of_reports.iter_errors(one)] == []
        with closing(sqlite3.connect(one["log"])) as run:
            events = [json.loads(text) for (text,) in run.execute("SELECT event FROM events")]
        assert events
        assert [error for event in events for error in of_events.iter_errors(event)] == []
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)
    assert len(rows) > 10
    assert rows[0][0] == "top level"
    for place, keys in rows:
        path = "" if place == "top level" else place.strip("`")
        always, _, sometimes = (re.findall(r"`(\w+)`", part) for part in keys.partition(";"))
        found = objects_at(compared, path)
        if not path.startswith("comparison"):
            found += objects_at(judged, path)
        assert found, path
        for one in found:
            assert set(always) <= set(one) <= {*always, *sometimes}, path


def test_two_commands_set_everything_up():
    readme = [command.line for command in commands_of(PAGES[0]) if "venv" in command.line]
    opens, tests = readme
    assert opens.endswith(".venv/bin/evaltui sample_agents/home_automation")
    assert tests.endswith(".venv/bin/python -m pytest")
    assert all(line.startswith(SETUP) for line in readme)


async def test_the_code_of_the_page_on_python_runs(folder):
    """As one program, from top to bottom."""
    names = {}
    for block in code_of("python", "python"):
        if "needs google-adk" in block:
            pytest.importorskip("google.adk.evaluation.local_eval_set_results_manager")
        if "evaluate_sync(" in block:
            # A part of its own: where no event loop runs.
            await asyncio.to_thread(exec, block, {})
            continue
        code = compile(block, "python.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if (waiting := eval(code, names)) is not None:
            await waiting
    assert names["result"].passed
