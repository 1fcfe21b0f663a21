"""Problems as editors and CI services read them."""

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from evaltui.commands.lint import render_problems
from evaltui.core.model.problems import DUPLICATE_ID, Problem

PROBLEM = DUPLICATE_ID.at(("eval_cases", 1, "eval_id"), "duplicate id 'a'", "sets/a b.evalset.json", line=39)


def unescaped(text):
    for code in ("%3A", "%2C", "%0A", "%0D", "%25"):
        text = text.replace(code, chr(int(code[1:], 16)))
    return text


@given(st.text(min_size=1).filter(lambda name: Path(name).as_posix() == name), st.text())
def test_nothing_in_a_problem_ends_its_command_early(file, message):
    problem = replace(Problem.warning((), message), file=file, line=7)
    text = render_problems([problem], "github")
    assert text.endswith("\n")
    assert "\n" not in text[:-1]
    assert "\r" not in text
    head, _, body = text[len("::warning file=") : -1].partition("::")
    name, _, line = head.partition(",line=")
    assert (unescaped(name), line, unescaped(body)) == (file, "7", message)


def test_sarif_has_a_result_per_problem():
    nowhere = Problem.warning((), "no eval sets")
    run = json.loads(render_problems([PROBLEM, nowhere], "sarif"))["runs"][0]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    first, second = run["results"]
    assert first["ruleId"] == "duplicate-id"
    assert {first["ruleId"], second["ruleId"]} <= rules
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "sets/a%20b.evalset.json"},
        "region": {"startLine": 39},
    }
    assert "locations" not in second
