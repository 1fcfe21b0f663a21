"""Every key of every format, misspelt or with another value, is refused, named, or without effect."""

from __future__ import annotations

import copy
import csv
import io
import json
import re
import zlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import call
from eval_data import make_case, make_set, make_turn

import evaltui
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.content import Part
from evaltui.core.model.datasets import _PART, _PLACES
from evaltui.core.model.eval_config import _DEFINITION_KEYS
from evaltui.core.model.eval_set import EvalSet
from evaltui.core.model.json_values import camel
from evaltui.core.model.model_errors import objects_in
from evaltui.core.model.old_formats import _SESSION_KEYS, _TEXT_KEYS, _TOOL_KEYS, _TURN_KEYS
from evaltui.core.model.problems import EvalSetError
from tests.every_key import CONFIG, DATASET, EVAL_CONFIG, NOT_RUN, OLD_SET, ROWS, SET, SETTINGS, SUITE

pytest_plugins = "pytester"
AGENT = """
    def root_agent(message, session): return message
    def judge(prompt, *config): return ""
    def brief(actual, expected, criterion): return 1.0
    def adks(metric, actual, expected, scenario=None): return 1.0
"""
MATCH = {"criteria": {"response_match_score": 0.5}}
PLAIN = make_set("orders", make_case("one", make_turn("hi", "hi")))
FORMATS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "eval set": ("orders.evalset.json", SET, {"test_config.json": MATCH}),
    "config": ("test_config.json", CONFIG, {"orders.evalset.json": SET}),
    "old test": ("orders.test.json", OLD_SET[0]["data"], {"test_config.json": MATCH}),
    "old eval set": ("orders.test.json", OLD_SET, {"test_config.json": MATCH}),
    "dataset": ("orders.evalset.json", DATASET, {"eval_config.json": {"metrics_to_run": ["rouge_1"]}}),
    "config of agents-cli": ("eval_config.json", EVAL_CONFIG, {"orders.evalset.json": DATASET}),
    "YAML of agents-cli": ("eval_config.yaml", EVAL_CONFIG, {"orders.evalset.json": DATASET}),
    "settings": ("pyproject.toml", SETTINGS, {"orders.evalset.json": PLAIN, "test_config.json": MATCH}),
}
IMPORTED = {
    **{f"rows of {name}": ("rows.jsonl", row) for name, row in ROWS.items()},
    "CSV": ("rows.csv", ROWS["columns"]),
    "promptfoo": ("suite.yaml", SUITE),
}
# Keys that the user invents, or that a function of the user's, a tool or a model may read.
INVENTED = (
    *("*state.*", "*.args.*", "*.response.ok*", "*.response.other", "*tool_input.*", "*agent_details.*"),
    *("*.agents.*", "*rubric_groups.*", "*evaltui.set.*", "*model_configuration.*", "*json_schema.*"),
    *("*.imports[[]].map.*", "*.imports[[]].cases.*", "*prices.m", "*criteria.mine.*", "*criteria.adks.*"),
    *("*judge_model_generation_config.*", "*evaltui.case.*", "*state_delta.*"),
    *("variants.*", "*limits.m"),
    # Of imports: variables, settings of the other tool, and members of messages.
    *(
        "*vars*",
        "*input.*",
        "*messages[[]]*.other",
        "*metadata.*",
        "*scenarios[[]].other",
        "*calls[[]].other",
    ),
    *("*value.other", "*function.other", "*messages[[]]*.type", "*functionCall.id"),
)
# Values of any kind that nothing decides by: the guide has them as ignored, or they are other programs'.
UNREAD = (
    *("*turn_id", "*turn_index", "*creation_timestamp", "*event_time", "*active_tools", "*.agents"),
    *("*test_case_title", "*importance", "*group_id", "*display_name", "*mock_tool_output", "*rubric_id"),
    *("*return_raw_output", "*aggregate_summary_fn", "*rubric_group_key"),
    # Read by google-adk in both kinds.
    *("*judge_model_options", "*.match_type", "*.prompt", "*.content", "*reference.response"),
    # True as 1, as google-adk has it.
    *("*num_samples", "*parallelism_limit", "*max_allowed_invocations", "*metric_value_info.interval.*"),
    *("*duration", "*_token_count"),
    *("tests[[]].threshold", "*assert[[]]*.value", "*.weight", "*value.ignore"),
    *("*function.arguments", "*functionResponse.response", "*content[[]].text"),
)
VALUES = (None, "zzz", -7.25, True, ["zzz"], {"zzz": 1}, "", [], {})


def objects(data, path=()):
    if isinstance(data, dict):
        yield path, data
    for step, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, dict | list):
            yield from objects(value, (*path, step))


def named(path):
    return re.sub(r"\.?(\d+)(?=\.|$)", "[]", ".".join(map(str, path)))


def changed(data, path, change):
    data = copy.deepcopy(data)
    place = data
    for step in path:
        place = place[step]
    members = change(place)
    place.clear()
    place.update(members)
    return data


def kind_of(value):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if is_number else type(value).__name__


def mutants(data, *, empty_is_absent=False):
    """The place, the key to be named, whether silence is right, and the data."""
    for path, members in objects(data):
        place = named((*path, "other"))
        free = any(fnmatchcase(place, pattern) for pattern in INVENTED)
        yield place, "other", free, changed(data, path, lambda place: {**place, "other": 1})
        for key, value in members.items():
            place = named((*path, key))
            free = any(fnmatchcase(place, pattern) for pattern in INVENTED)
            for other in {key[:1] + key[2:], key.capitalize(), key.replace("_", "-"), camel(key)} - {key, ""}:
                is_free = free or (other == camel(key) and "_" in key)
                renamed = lambda place: {other if name == key else name: item for name, item in place.items()}  # noqa: B023, E731
                yield place, other, is_free, changed(data, path, renamed)
            unread = free or any(fnmatchcase(place, pattern) for pattern in UNREAD)
            for item in VALUES:
                is_absent = item is None or (empty_is_absent and not item)
                is_right = unread or is_absent or kind_of(item) == kind_of(value)
                yield place, key, is_right, changed(data, path, lambda place: {**place, key: item})  # noqa: B023


def toml(value):
    """A value in TOML, which has no null."""
    if isinstance(value, dict):
        items = (f"{json.dumps(key)} = {toml(item)}" for key, item in value.items() if item is not None)
        return f"{{{', '.join(items)}}}"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


def csv_of(row):
    out = io.StringIO()
    cells = [item if isinstance(item, str) else json.dumps(item) for item in row.values()]
    csv.writer(out).writerows([row, cells])
    return out.getvalue()


DUMPS = {
    ".yaml": yaml.safe_dump,
    ".json": lambda data: json.dumps(data, indent=1),
    ".csv": csv_of,
    ".toml": lambda data: "\n".join(
        ["[tool.evaltui]", *(f"{key} = {toml(item)}" for key, item in data.items() if item is not None)]
    ),
}


def told(agent, capsys):
    """The refusals of a run, the errors of lint, and all lines of lint."""
    code = call("run", agent, "--estimate")
    refused = capsys.readouterr().err.splitlines() if code else []
    call("lint", agent)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(str(agent.parent))]
    others = ("nothing to run", "see `evaltui help")
    refusals = [line.removeprefix("evaltui run: ") for line in refused]
    refusals = [line for line in refusals if not any(text in line for text in others)]
    return refusals, [line.replace(" error:", "", 1) for line in lines if ": error: " in line], lines


@pytest.fixture
def write(write_agent):
    folder = write_agent(AGENT, fn="def evaluate(instance): return 1")

    def written(file, data, others=()):
        for name, content in {file: data, **dict(others)}.items():
            (folder / name).write_text(DUMPS.get(Path(name).suffix, json.dumps)(content))
        return folder

    return written


@pytest.mark.timeout(900)
@pytest.mark.parametrize("form", FORMATS)
def test_no_key_is_silent_in_run_or_lint(form, write, thorough, capsys):
    file, data, others = FORMATS[form]
    agent = write(file, data, others)
    refusals, errors, usual = told(agent, capsys)
    assert [*refusals, *errors] == []
    wrong = []
    every = 1 if thorough else {"YAML of agents-cli": 160, "config": 60}.get(form, 20)
    for number, (place, key, is_free, mutant) in enumerate(mutants(data)):
        if (number + zlib.crc32(form.encode())) % every:
            continue
        write(file, mutant)
        refusals, errors, lines = told(agent, capsys)
        if sorted(refusals) != sorted(errors):
            wrong.append((place, key, "run and lint differ", refusals, errors))
        elif not is_free and {*lines} <= {*usual}:
            wrong.append((place, key, "silent"))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("form", IMPORTED)
def test_no_key_is_silent_in_an_import(form, tmp_path, thorough, capsys):
    file, data = IMPORTED[form]
    into = tmp_path / "n.evalset.json"
    mapping = [f"--map={name}={name}" for name in data] if "columns" in form or form == "CSV" else []

    def told_of_import(content):
        for name in (into.name, "test_config.json"):
            (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / file).write_text(DUMPS.get(Path(file).suffix, json.dumps)(content))
        code = call("import", tmp_path / file, "--into", into, "--yes", *mapping)
        return code, "".join(capsys.readouterr())

    usual = told_of_import(data)
    assert usual[0] == 0, usual[1]
    wrong = []
    for number, (place, key, is_free, mutant) in enumerate(mutants(data, empty_is_absent=True)):
        if not thorough and (number + zlib.crc32(form.encode())) % 40:
            continue
        got = told_of_import(mutant)
        if (got == usual and not is_free) or "Traceback" in got[1]:
            wrong.append((place, key, got[1][-300:]))
    assert not wrong, "\n".join(map(str, wrong))


def test_the_samples_have_every_key_of_their_readers():
    for model, data in ((EvalSet, SET), (EvalConfig, CONFIG)):
        keys: dict[Any, set[str]] = {}
        for _, members, models in objects_in(model, data):
            for one in models:
                keys.setdefault(one, set()).update(members)
        for one, given in keys.items():
            unread = {"live_model_config", "metrics_to_run"} | ({*one.model_fields} if one is Part else set())
            assert one.__module__.startswith("google.") or {*one.model_fields} - given <= unread, one
    old = OLD_SET[0]["data"][0]
    assert (*OLD_SET[0],) == _SESSION_KEYS
    assert (*old,) == _TURN_KEYS
    assert {*old["expected_tool_use"][0]} == {*_TOOL_KEYS, "mock_tool_output"}
    assert (*old["expected_intermediate_agent_responses"][0],) == _TEXT_KEYS
    definitions = {key for one in EVAL_CONFIG["custom_metrics"] for key in one}
    assert {*_DEFINITION_KEYS} - {*NOT_RUN, "rubric_group_name"} <= definitions
    assert {*_PART} == {*Part.model_fields}
    keys = {key for _, members in objects(DATASET["eval_cases"]) for key in members}
    assert {key for _, members in objects(_PLACES) for key in members} - {*_PART, "*"} <= keys


@pytest.mark.parametrize("form", [form for form in FORMATS if not form.startswith(("YAML", "settings"))])
def test_every_front_end_tells_the_same(form, write, capsys, pytester, recwarn):
    file, data, others = FORMATS[form]
    others = {name: PLAIN if content is SET else content for name, content in others.items()}
    small = {"eval set": PLAIN, "config": MATCH}.get(form, data)
    agent = write(file, small, others)
    _, _, usual = told(agent, capsys)
    kinds = {}
    for _, _, is_free, mutant in mutants(small):
        write(file, mutant)
        refusals, _, lines = told(agent, capsys)
        news = [line.replace(" warning:", "", 1) for line in lines if line not in usual]
        if not is_free and news:
            kinds.setdefault(bool(refusals), (mutant, refusals or news))
        if len(kinds) == 2:
            break
    for is_refused, (mutant, texts) in kinds.items():
        write(file, mutant)
        recwarn.clear()
        if is_refused:
            with pytest.raises(EvalSetError) as refused:
                evaltui.evaluate_sync(agent)
            assert str(refused.value).splitlines() == texts
        else:
            evaltui.evaluate_sync(agent)
            assert {*texts} <= {str(one.message) for one in recwarn}
        code = call("run", agent, "--report", "json=-")
        out, err = capsys.readouterr()
        assert (code == 2) is is_refused
        assert texts[0] in err if is_refused else {*texts} <= {*json.loads(out)["notes"]}
        result = pytester.runpytest_inprocess("--evaltui", agent)
        assert not is_refused or result.ret != 0
        shown = re.sub(r"\s+", "", result.stdout.str())
        for text in texts[:1] if is_refused else texts:
            assert re.sub(r"\s+", "", text.partition(f"{agent.name}/")[2]) in shown
