"""What is proposed for two values that differ."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.compare.proposals import arg_paths, proposals
from evaltui.core.model.arg_rule import parse_arg_path
from evaltui.core.model.json_values import ABSENT


def kinds(expected, actual):
    return [
        next(iter(one.match)) if isinstance(one.match, dict) else one.match
        for one in proposals(expected, actual)
    ]


def regex_of(expected, actual):
    return next((one.match["regex"] for one in proposals(expected, actual) if "regex" in one.match), None)


@pytest.mark.parametrize(
    ("expected", "actual", "wanted"),
    [
        ("late", "open", ["any_of", "regex", "type", "ignore"]),
        ("Kitchen", "kitchen", ["any_of", "case_insensitive", "regex", "type", "ignore"]),
        (19, 19.5, ["any_of", "approx", "type", "ignore"]),
        (19, "19", ["any_of", "regex", "type", "ignore"]),
        (19, "nineteen", ["any_of", "regex", "ignore"]),
        ([1], [2, 1], ["any_of", "subset", "type", "ignore"]),
        ([1], [2], ["any_of", "type", "ignore"]),
        ({"a": {}}, {"a": {"b": 1}}, ["any_of", "subset", "type", "ignore"]),
        (True, False, ["any_of", "type", "ignore"]),
        (None, "x", ["any_of", "ignore"]),
        ("x", ABSENT, ["ignore"]),
        (ABSENT, None, ["ignore"]),
    ],
)
def test_the_kinds_that_make_sense_the_most_specific_first(expected, actual, wanted):
    assert kinds(expected, actual) == wanted


@pytest.mark.parametrize(
    ("expected", "actual", "regex"),
    [
        ("2026-01-01", "2026-02-03", r"\d{4}-\d\d-\d\d"),
        ("report 2026-01-01.pdf", "report 2026-02-03.pdf", r"report \d{4}-\d\d-\d\d\.pdf"),
        ("ORD-17", "ORD-8", r"ORD-\d+"),
        ("order17", "order8", r"order\d+"),
        ("id=a1f (x)", "id=07c (x)", r"id=\w+ \(x\)"),
        ("a_17", "b_3", r"[^\W_]+_\d+"),
        ("late orders", "open orders", r"\w+ orders"),
        ("SELECT a FROM t WHERE b=5", "SELECT a FROM t LIMIT 3", "SELECT a FROM t .+"),
        ("to:\nAnn", "to:\nBob\nCleo", "(?s)to:\\n.+"),
        ("order", "order 17", "order.*"),
        ("ab", "a-c", None),
        ("19:30", "20:00:01.5", r"\d\d:\d\d(:\d\d(\.\d+)?)?"),
    ],
)
def test_a_regex_keeps_what_both_have_in_common(expected, actual, regex):
    found = regex_of(expected, actual)
    assert found == (None if regex is None else regex.replace("\\n", "\n"))
    assert found is None or (re.fullmatch(found, expected) and re.fullmatch(found, actual))


def test_uuids_and_moments_become_their_form():
    uuids = "123e4567-e89b-12d3-a456-426614174000", "00000000-e89b-12d3-A456-42661417400f"
    assert re.fullmatch(regex_of(*uuids), "ffffffff-ffff-ffff-ffff-ffffffffffff")
    assert not re.fullmatch(regex_of(*uuids), "ffffffff-ffff-ffff-ffff-fffffffffff")
    moments = "2026-01-01T10:00:00Z", "2026-01-02T11:22:33.5+01:00"
    assert re.fullmatch(regex_of(*moments), "1999-12-31 23:59")


@pytest.mark.parametrize(
    ("expected", "actual", "tolerance"),
    [(19, 20, 1), (0.1, 0.4, 0.5), (100, 1833, 2000), (1.0, 1.003, 0.005), (-5, 5, 10), (1e-9, 3e-9, 2e-9)],
)
def test_a_tolerance_is_the_difference_rounded_up(expected, actual, tolerance):
    (approx,) = (one.match["approx"] for one in proposals(expected, actual) if "approx" in one.match)
    assert approx == {"abs": tolerance}


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_proposed_regex_is_not_anything_at_all(expected, actual):
    assert regex_of(expected, actual) not in (".+", ".*", "(?s).+", "(?s).*")


def test_where_a_rule_can_be_put():
    assert arg_paths(("filter", "as_of")) == ["filter.as_of", "filter", "*"]
    assert arg_paths(("items", 0, "id")) == ["items[0].id", "items[*].id", "items[*]", "items", "*"]
    assert arg_paths(("a.b",)) == ["['a.b']", "*"]
    assert arg_paths(()) == ["*"]
    assert all(parse_arg_path(one) is not None for one in arg_paths(("a", 1, "b.c", 2)))
