"""Failures of a run, grouped by their first difference: in every report, and marked in the workbench."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_eval_set, write_test_config

AGENT = """
from evaltui.events import tool_call


def root_agent(message, session):
    word, value = message.split()
    if word == "crash":
        raise ValueError(f"no order {value}")
    if word == "find":
        yield tool_call("find_orders", {"limit": json_of(value)})
    elif word == "pay":
        yield tool_call("pay", {"amount": 3})
    yield f"done {value}"


def json_of(text):
    import json

    return json.loads(text)
"""


def find(eval_id, limit, *, expected=5):
    calls = [{"name": "find_orders", "args": {"limit": expected}}]
    return make_case(eval_id, make_turn(f"find {limit}", f"done {limit}", calls))


CASES = [
    find("passes", 5),
    find("text_a", '"5"'),
    find("other_a", 6),
    find("text_b", '"7"'),
    make_case("crash_a", make_turn("crash 1", "done 1")),
    make_case("crash_b", make_turn("crash 2", "done 2")),
    make_case("unexpected", make_turn("pay 1", "done 1", [])),
    make_case("words_a", make_turn("say 1", "nothing of the kind")),
    make_case("words_b", make_turn("say 2", "something else")),
    make_case("words_c", make_turn("say 3", "again another text")),
]
# By hand: the largest first, then by the first case.
GROUPS = {
    "response_match_score below threshold": ["words_a", "words_b", "words_c"],
    "find_orders: argument limit (string, expected integer)": ["text_a", "text_b"],
    "agent.py:8 in root_agent: ValueError": ["crash_a", "crash_b"],
    "find_orders: argument limit differs": ["other_a"],
    "unexpected call pay": ["unexpected"],
}


@pytest.fixture
def folder(write_agent):
    folder = write_agent(AGENT)
    write_test_config(folder, tool_trajectory_avg_score=1.0, response_match_score=0.8)
    return folder


def report(folder, kind, tmp_path):
    path = tmp_path / f"report.{kind}"
    assert call("run", folder, "--report", f"{kind}={path}") == 1
    return path.read_text(encoding="utf-8")


def test_a_group_has_the_cases_with_one_first_difference_whatever_its_values(folder, tmp_path):
    write_eval_set(folder, "orders", *CASES)
    failures = json.loads(report(folder, "json", tmp_path))["failures"]
    groups = {group["reason"]: [case["eval_id"] for case in group["cases"]] for group in failures}
    assert groups == GROUPS
    assert [*groups] == [*GROUPS]
    assert {case["path"] for group in failures for case in group["cases"]} == {"orders.evalset.json"}


@pytest.mark.parametrize("kind", ["console", "markdown", "html"])
def test_a_report_for_people_lists_groups_of_several_cases(folder, tmp_path, kind):
    write_eval_set(folder, "orders", *CASES)
    text = report(folder, kind, tmp_path)
    assert "9 failures, 5 reasons" in text
    assert all(reason in text for reason in GROUPS)


def test_failures_that_share_no_reason_are_not_listed_twice(folder, tmp_path):
    write_eval_set(folder, "orders", CASES[1], CASES[4])
    assert "2 failures" not in report(folder, "console", tmp_path)


def test_groups_do_not_depend_on_the_order_of_cases(folder, tmp_path):
    by_order = set()
    for cases in permutations([CASES[1], CASES[3], CASES[4]]):
        write_eval_set(folder, "orders", *cases)
        failures = json.loads(report(folder, "json", tmp_path))["failures"]
        by_order.add(
            frozenset(
                (group["reason"], frozenset(case["eval_id"] for case in group["cases"])) for group in failures
            )
        )
    assert len(by_order) == 1
