"""Run-wide settings: the table of pyproject.toml, the options of the same names, and what is wrong."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path

import pytest

from evaltui.commands.parser import parser_of
from evaltui.core.model.config import OwnPrice
from evaltui.project.lint import lint
from evaltui.project.run_settings import SETTINGS, RunSettings, SettingsError, run_settings

# Of each setting: what may be given, in TOML, with what it means.
VALUES = {
    "python": {'"python3"': "python3", '".venv"': ".venv"},
    "parallel": {"1": 1, "1_000": 1000, "9" * 30: int("9" * 30)},
    "workers": {"2": 2, "0x10": 16},
    "timeout": {"1": 1, "0.5": 0.5, "1e300": 1e300, "9" * 30: 1e30},
    "record": {f'"{mode}"': mode for mode in ("auto", "replay", "record", "off")},
    "tools": {f"'{mode}'": mode for mode in ("live", "record", "stub")},
    "results-dir": {'"out"': "out", '"../a b/c"': "../a b/c", '"/nowhere/x"': "/nowhere/x"},
    "keep-runs": {"1": 1, "12": 12},
    "budget": {"'5USD'": "5USD", '"2Mtok"': "2Mtok"},
    "scheduler": {'"local:3"': "local:3", '"tls://head:8786"': "tls://head:8786", '"off"': "off"},
}
# What nothing takes, and what only some do.
NEVER = ("true", "[]", "{}", '""', '" "', "nan", "inf", "-inf", "1979-05-27", "0", "-1", "[1]", '"\\u0000"')
WRONG = {
    "python": (*NEVER, "3"),
    "parallel": (*NEVER, '"four"', '"4"', "4.0", "1e3"),
    "workers": (*NEVER, '"2"', "2.5"),
    "timeout": (*NEVER, '"60"', f"1{'0' * 400}"),
    "record": (*NEVER, '"reply"', '"Auto"', "1"),
    "tools": (*NEVER, '"off"', "1"),
    "results-dir": (*NEVER, "1"),
    "keep-runs": (*NEVER, '"all"', "1.5"),
    "budget": (*NEVER, "5", '"5"', '"5EUR"', '"0USD"'),
    "scheduler": (*NEVER, "8786", '"local:0"', '"head:8786"'),
}


@pytest.fixture
def agent(tmp_path) -> Path:
    """An agent two folders below the root of its project."""
    folder = tmp_path / "project" / "agents" / "desk"
    folder.mkdir(parents=True)
    (folder / "agent.py").write_text("root_agent = print\n")
    return folder


def table(agent: Path, text: str) -> Path:
    path = agent.parents[1] / "pyproject.toml"
    path.write_text(f"[tool.evaltui]\n{text}\n")
    return path


def problem(agent: Path, **given) -> str:
    with pytest.raises(SettingsError) as raised:
        run_settings(agent, given)
    return str(raised.value)


def test_each_is_a_field_an_option_of_run_and_one_of_the_workbench():
    assert {one.attribute for one in SETTINGS.values()} < {one.name for one in fields(RunSettings)}
    assert VALUES.keys() == WRONG.keys() == SETTINGS.keys()
    for parser in (parser_of("run"), parser_of("evaltui")):
        assert {f"--{name}" for name in SETTINGS} <= parser._option_string_actions.keys()


def test_without_a_table_the_defaults_apply_as_the_table_of_the_guide_has_them(agent):
    assert run_settings(agent) == RunSettings()
    stated = {name: one.default for name, one in SETTINGS.items()}
    defaults = RunSettings().to_json()
    for name in ("parallel", "timeout", "record", "keep-runs"):
        assert stated[name] == f"{defaults[name]:g}" if name == "timeout" else str(defaults[name])
    assert {name for name, value in defaults.items() if value is None} == {
        *("python", "workers", "tools", "results-dir", "budget", "scheduler")
    }


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in VALUES for text in VALUES[name]])
def test_a_table_has_it(name, text, agent):
    path = table(agent, f"{name} = {text}")
    value = VALUES[name][text]
    expected = path.parent / value if name == "results-dir" else value
    settings = run_settings(agent)
    assert settings == RunSettings(**{SETTINGS[name].attribute: expected}, file=path)
    assert run_settings(agent / "agent.py") == settings
    assert json.dumps(settings.to_json())


@pytest.mark.parametrize("name", SETTINGS)
def test_an_option_goes_first(name, agent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (in_table, *_), (*_, given) = VALUES[name], VALUES[name].values()
    table(agent, f"{name} = {in_table}")
    options = parser_of("run").parse_args([str(agent), f"--{name}", str(given)])
    expected = tmp_path / given if name == "results-dir" else given
    assert getattr(run_settings(agent, vars(options)), SETTINGS[name].attribute) == expected


def test_an_option_that_nobody_gave_changes_nothing(agent):
    table(agent, "".join(f"{name} = {next(iter(values))}\n" for name, values in VALUES.items()))
    options = parser_of("run").parse_args([str(agent)])
    assert run_settings(agent, vars(options)) == run_settings(agent)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in WRONG for text in WRONG[name]])
def test_a_wrong_value_is_named_with_its_line(name, text, agent):
    path = table(agent, f"# a comment\n{name} = {text}")
    message = problem(agent)
    assert message.startswith(f"{path}:3: tool.evaltui.{name} is ")
    assert message.endswith(f". Give {SETTINGS[name].kind.description}")
    assert len(message) < 120 + len(str(path))
    assert [one.located() for one in lint([agent]) if one.line] == [message]
    # Whether or not an option goes first.
    assert problem(agent, parallel=3, timeout=4.0) == message


@pytest.mark.parametrize("name", SETTINGS)
def test_a_wrong_option_is_refused(name, agent, capsys):
    wrong = {"python": (), "results-dir": ("", " ")}.get(name, ("", "x", "-1", "0", "nan", "inf", "9" * 5000))
    for text in wrong:
        with pytest.raises(SystemExit) as raised:
            parser_of("run").parse_args([str(agent), f"--{name}={text}"])
        assert raised.value.code == 2
        assert f"--{name}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "meant"),
    [(f"{name}s", name) for name in SETTINGS]
    + [(name.replace("-", "_"), name) for name in SETTINGS if "-" in name],
)
def test_an_unknown_key_names_the_nearest(key, meant, agent):
    path = table(agent, f"{key} = 1")
    assert problem(agent) == f"{path}:2: tool.evaltui.{key} is unknown. Did you mean {meant}?"


def test_an_unknown_key_that_is_like_none_gets_all_of_them(agent):
    path = table(agent, "[tool.evaltui.zzzzzz]\nx = 1")
    message = (
        f"{path}:2: tool.evaltui.zzzzzz is unknown. Known: {', '.join(SETTINGS)}, variants, prices, limits"
    )
    assert problem(agent) == message


def test_prices_are_a_table_by_model(agent):
    text = """timeout = 5
[tool.evaltui.prices]
my-llm = { input_mtok = 1, output_mtok = 2.5 }
"openai/gpt-4o" = { input_mtok = 2, output_mtok = 10, cached_input_mtok = 0 }
"""
    table(agent, text)
    found = run_settings(agent)
    assert found.timeout == 5
    assert found.prices["my-llm"] == OwnPrice(input_mtok=1, output_mtok=2.5)
    assert found.prices["openai/gpt-4o"].cached_input_mtok == 0


@pytest.mark.parametrize(
    ("text", "line", "wrong"),
    [
        ("prices = 3", 2, " is 3. Give a table: [tool.evaltui.prices]"),
        ("prices.m = 3", 2, ".m: "),
        ("prices.m = {}", 2, ".m.input_mtok: Field required"),
        ("prices.m = {input_mtok = -1, output_mtok = 2}", 2, ".m.input_mtok: "),
        ('prices.m = {input_mtok = 1, output_mtok = "2"}', 2, ".m.output_mtok: is not a number"),
        ("prices.m = {input_mtok = 1, output_mtok = nan}", 2, ".m.output_mtok: "),
        ("prices.m = {input_mtok = 1, output_mtok = 2, input = 1}", 2, ".m.input: "),
        ("timeout = 5\n[tool.evaltui.prices.m]\ninput_mtok = true\noutput_mtok = 2", 4, ".m.input_mtok: "),
    ],
)
def test_wrong_prices_are_told_with_their_line(text, line, wrong, agent):
    path = table(agent, text)
    first = problem(agent).splitlines()[0]
    assert first.startswith(f"{path}:{line}: tool.evaltui.prices{wrong}"), first


def test_every_problem_is_told(agent):
    path = table(agent, 'parallel = "four"\ntimeout = 0\nnonsense_here = 1')
    lines = problem(agent).splitlines()
    assert [line.split(" ")[0] for line in lines] == [f"{path}:{number}:" for number in (2, 3, 4)]
    assert lines[0] == f'{path}:2: tool.evaltui.parallel is "four". Give a whole number above 0'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tool.evaltui.parallel = 0", 1),
        ("[tool]\nevaltui = { timeout = 3, parallel = 0 }", 2),
        ("[project]\nparallel = 4\n[tool.evaltui]\n# parallel\nparallel = 0", 5),
        ("[tool.evaltui]\nparallel = [\n0]", 3),
        ('[tool.evaltui]\r\npython = """\r\nparallel"""\r\nparallel = 0', 4),
    ],
)
def test_the_line_in_any_form_of_toml(text, line, agent):
    path = agent.parents[1] / "pyproject.toml"
    path.write_text(text)
    place = f"{path}:{line}" if "[\n" not in text else f"{path}"
    assert problem(agent).startswith(f"{place}: tool.evaltui.parallel is ")


@pytest.mark.parametrize("name", ["evaltiu", "Evaltui", "evaltui2", "evalui"])
@pytest.mark.parametrize(
    "table", ["[tool.{}]", "[project]\n\n[tool . '{}'.prices.m]", "[tool.evaltui]\n[tool.{}]"]
)
def test_a_table_with_nearly_the_name_is_refused(name, table, agent):
    path = agent.parents[1] / "pyproject.toml"
    path.write_text(table.format(name))
    told = [problem for problem in lint([agent]) if problem.line]
    assert [problem.message for problem in told] == [f"tool.{name} is unknown. Did you mean tool.evaltui?"]
    assert problem(agent) == told[0].located()


@pytest.mark.parametrize("text", ['tool.evaltui = "python"', "[tool]\nevaltui = [1]", "[[tool.evaltui]]"])
def test_what_is_no_table(text, agent):
    (agent.parents[1] / "pyproject.toml").write_text(text)
    assert problem(agent).endswith("Give a table: [tool.evaltui]")


@pytest.mark.parametrize(
    "content",
    [
        b"[tool.evaltui]\nparallel = ",
        b"[tool.evaltui]\nparallel = 1\nparallel = 2",
        b"\xff\xfe evaltui",
        b"[project]\nname = ",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n",
        b"evaltui = " + b"9" * 5000,
        b"evaltui = " + b"[" * 3000 + b"]" * 3000,
    ],
)
def test_what_cannot_be_read(content, agent):
    path = agent.parents[1] / "pyproject.toml"
    path.write_bytes(content)
    if content.startswith(b"\xff"):
        content = b""
    assert problem(agent).startswith(f"{path}: cannot be read: ")


def test_a_file_that_cannot_be_opened(agent):
    path = agent.parents[1] / "pyproject.toml"
    path.symlink_to(path)
    assert problem(agent).startswith(f"{path}: cannot be read: Too many levels")
    path.unlink()
    path.mkdir()
    assert problem(agent) == f"{path}: cannot be read: a folder has this name"
    path.rmdir()
    os.mkfifo(path)
    assert problem(agent) == f"{path}: cannot be read: a pipe has this name, not a file"


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'\n", 'tool = "evaltui"', "[tool]\n"])
def test_files_of_others_are_passed_over(text, agent):
    table(agent, "parallel = 7")
    (agent.parent / "pyproject.toml").write_text(text)
    assert run_settings(agent).parallel == 7


def test_the_nearest_table_counts_also_an_empty_one(agent):
    table(agent, "parallel = 7\ntimeout = 3")
    (agent.parent / "pyproject.toml").write_text("[tool.evaltui]\nparallel = 2\n")
    assert (run_settings(agent).parallel, run_settings(agent).timeout) == (2, 300.0)
    (agent / "pyproject.toml").write_text("[tool.evaltui]\n")
    assert run_settings(agent) == RunSettings(file=agent / "pyproject.toml")


def test_a_results_folder_must_be_able_to_be_one(agent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project" / "file").write_text("")
    path = table(agent, 'results-dir = "file/inner"')
    reason = f"{path.parent / 'file'} is not a folder"
    assert path.is_relative_to(tmp_path)
    # A place is told as seen from the current folder.
    assert problem(agent) == f"project/pyproject.toml:2: tool.evaltui.results-dir: {reason}"
    table(agent, "")
    assert problem(agent, results_dir=Path("project/file")) == f"--results-dir: {reason}"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    for name in ("loop", "broken"):
        reason = f"{tmp_path / name} is not a folder"
        assert problem(agent, results_dir=Path(name, "x")) == f"--results-dir: {reason}"
    assert "File name too long" in problem(agent, results_dir=Path("x" * 300))
    home = run_settings(agent, {"results_dir": Path("~/x")}).results_dir
    assert home == Path.home() / "x"
    assert (
        run_settings(agent, {"results_dir": Path("~nobody-here/x")}).results_dir
        == tmp_path / "~nobody-here/x"
    )


def test_lint_finds_the_tables_of_every_agent_once(agent, tmp_path):
    other = agent.parent / "other"
    other.mkdir()
    (other / "agent.py").write_text("root_agent = print\n")
    shared = table(agent, "parallel = 0")
    (other / "pyproject.toml").write_text("[tool.evaltui]\nworkers = 0\n")
    expected = [
        f"{shared}:2: tool.evaltui.parallel is 0. Give a whole number above 0",
        f"{other / 'pyproject.toml'}:2: tool.evaltui.workers is 0. Give a whole number above 0",
    ]
    assert [one.located() for one in lint([agent.parent]) if one.line] == expected
    assert [one.located() for one in lint([shared])] == expected[:1]
