import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.runner.child.adapters.base import copy_state, state_delta

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
STATE = st.dictionaries(st.text(), JSON, max_size=4)


@given(STATE)
def test_a_copy_is_equal_and_survives_json(state):
    copied = copy_state(state)
    assert copied == state
    assert json.loads(json.dumps(copied)) == state


def test_a_copy_shares_nothing():
    state = {"a": [{"b": 1}]}
    copied = copy_state(state)
    state["a"][0]["b"] = 2
    assert copied == {"a": [{"b": 1}]}


def test_tuples_become_lists():
    assert copy_state({"a": (1, (2,))}) == {"a": [1, [2]]}


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"orders": [{"due": date(2026, 1, 1)}]}, "state.orders[0].due is a date, which JSON cannot hold"),
        ({"a b": {1, 2}}, "state['a b'] is a set, which JSON cannot hold"),
        ({"x": {1: "a"}}, "state.x has the key 1, but JSON keys are strings"),
    ],
)
def test_what_json_cannot_hold_is_named(state, sentence):
    with pytest.raises(TypeError) as raised:
        copy_state(state)
    assert str(raised.value) == sentence


@given(STATE, STATE)
def test_a_delta_makes_the_one_state_of_the_other(before, after):
    delta = state_delta(before, after)
    assert {key: value for key, value in (before | delta).items() if key in after} == after
    assert {key for key in delta if key not in after} == set(before) - set(after)
    assert state_delta(after, after) == {}


def test_what_was_removed_is_null():
    assert state_delta({"a": 1, "b": 2}, {"b": 3, "c": 4}) == {"a": None, "b": 3, "c": 4}
