"""Every command line of README and guide does what the page shows.

A command exits with 0, or as its comment says: `# exit 1`. Lines below it are its output: `...` alone is any
number of lines, `…` the rest of a line. The commands of a page run one after another in one folder with the
sample agents. Commands that open a screen or never end are parsed.
"""

from __future__ import annotations

import ast
import asyncio
import io
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from evaltui.cli import _COMMANDS
from evaltui.commands.parser import parser_of
from evaltui.core.model.events import Event
from evaltui.core.schemas.generating import schema_of
from evaltui.files import guide
from evaltui.reports.json_report import report_schema
from tests.closed_schemas import closed
from tests.commands.command_line import call
from tests.manual import PAGES, ROOT

BLOCK = re.compile(r"^```(console|sh|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IN_CI = "- run: "
EXIT = re.compile(r"#.*\bexit (\d)")
# They install into an environment, and run this test.
SETUP = "python3 -m venv .venv && .venv/bin/pip install -q -e "
SETUPS = (SETUP, "pip install 'evaltui[adk]'")


@dataclass
class Command:
    line: str
    shown: list[str]
    in_ci: bool = False
    """A step of a CI job; the agent it names is the reader's."""

    @property
    def words(self):
        return shlex.split(self.line, comments=True)

    @property
    def exit_code(self):
        found = EXIT.search(self.line)
        return int(found[1]) if found else 0

    @property
    def only_parsed(self):
        endless = self.words[1] not in _COMMANDS or self.words[1] == "serve" or "--watch" in self.words
        return self.in_ci or (self.words[0] == "evaltui" and endless)


def commands_of(page):
    found = []
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if kind == "yaml":
                assert line.startswith(IN_CI), line
                found.append(Command(line.removeprefix(IN_CI), [], in_ci=True))
            elif kind == "sh":
                found.append(Command(line, []))
            elif line.startswith("$ "):
                found.append(Command(line.removeprefix("$ "), []))
            else:
                found[-1].shown.append(line)
    return found


def parse(words):
    if words[0] in _COMMANDS:
        return parser_of(words[0]).parse_intermixed_args(words[1:])
    return parser_of("evaltui").parse_intermixed_args(words)


def run(command, monkeypatch, capfd):
    """evaltui runs in this process, other programs in a shell. Returns exit code and standard output."""
    source, _, line = command.line.rpartition(" | ")
    line, _, file = line.partition(" > ")
    words = shlex.split(line, comments=True)
    if words[0] != "evaltui":
        # That of the environment that runs this test.
        line = f"{sys.executable} -m {command.line}" if words[0] == "pytest" else command.line
        done = subprocess.run(line, shell=True, capture_output=True, text=True)
        return done.returncode, done.stdout
    if source:
        given = subprocess.run(source, shell=True, capture_output=True, check=True).stdout
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    capfd.readouterr()
    code = call(*words[1:])
    out = capfd.readouterr().out
    if file:
        Path(file).write_text(out, encoding="utf-8")
    return code, "" if file else out


def as_pattern(shown):
    """A regex for the output; without lines shown, any output is right."""
    if not shown:
        return ".*"
    lines = (r"(?:.*\n)*?" if line == "..." else re.escape(line).replace("…", ".*") + "\n" for line in shown)
    return "".join(lines)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(
        ROOT / "sample_agents",
        tmp_path / "sample_agents",
        ignore=shutil.ignore_patterns(".*", "__pycache__", "recordings"),
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_do_as_it_says(page, folder, monkeypatch, capfd):
    for command in commands_of(page):
        if command.line.startswith(SETUPS):
            continue
        if command.only_parsed:
            options = parse(command.words[1:])
            if not command.in_ci and not isinstance(options.agent_dir, str):
                assert options.agent_dir.exists()
            continue
        if "needs google-adk" in command.line:
            pytest.importorskip("google.adk")
        code, out = run(command, monkeypatch, capfd)
        assert code == command.exit_code, command.line
        assert re.fullmatch(as_pattern(command.shown), out, re.DOTALL if not command.shown else 0), (
            f"{command.line} prints now:\n{out}"
        )


def code_of(name, language):
    page = (guide.FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_agents_of_the_guide_run(folder, monkeypatch, capfd):
    native, model, function, *_ = code_of("agents", "python")
    scripted = native.replace('model="gemini-2.5-flash"', "model=model").partition("root_agent")
    Path("native.py").write_text(f"{model}\n{''.join(scripted)}", encoding="utf-8")
    Path("function.py").write_text(function, encoding="utf-8")
    assert run(Command('echo "Milk!" | evaltui chat native.py', []), monkeypatch, capfd) == (
        0,
        '  → remember  item "milk"\n  ← remember  {"result": "milk is on the list"}\n'
        '  state  list = ["milk"]\nMilk is on the list.\n',
    )
    code, out = run(Command("echo hi | evaltui chat function.py", []), monkeypatch, capfd)
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
    page = (guide.FOLDER / "formats.md").read_text(encoding="utf-8")
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
