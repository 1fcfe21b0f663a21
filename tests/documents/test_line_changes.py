"""What edits would do to the lines of a file, before they are done."""

import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from evaltui.documents.document import JsonDocument
from evaltui.documents.edits import EditError, Insert, Move, Put, Remove
from evaltui.documents.line_changes import changed_lines
from tests.changed_values import apply_to_data

CALLS = """{
  "calls": [
    {"name": "f", "args": {"room": "Kitchen", "degrees": 19}},
    {"name": "g", "args": {}}
  ],
  "text": "x"
}
"""


def shown(changes):
    return [f"{change.number} {change.op} {change.text.strip()}" for change in changes]


def test_a_changed_value_is_the_old_line_and_the_new_one():
    document = JsonDocument(CALLS)
    assert shown(changed_lines(document, document.edited([Put(("calls", 0, "args", "degrees"), "19")]))) == [
        '3 - {"name": "f", "args": {"room": "Kitchen", "degrees": 19}},',
        '3 + {"name": "f", "args": {"room": "Kitchen", "degrees": "19"}},',
    ]
    assert document.text == CALLS


def test_a_line_that_comes_moves_the_numbers_behind_it():
    document = JsonDocument(CALLS)
    edits = [Insert(("calls",), 1, {"name": "h", "args": {}}), Put(("text",), "y")]
    assert shown(changed_lines(document, document.edited(edits))) == [
        '4 + {"name": "h", "args": {}},',
        '6 - "text": "x"',
        '7 + "text": "y"',
    ]


def test_a_value_that_goes_is_shown_from_its_beginning_to_its_end():
    calls = [{"name": name, "args": {"room": name}} for name in ("f", "g", "h")]
    document = JsonDocument(json.dumps({"calls": calls}, indent=2))
    f, g = (
        shown(changed_lines(document, document.edited([Remove(("calls", 0))]))),
        shown(changed_lines(document, document.edited([Remove(("calls", 1))]))),
    )
    assert [line.split(" ", 1)[1] for line in g] == [
        "- {",
        '- "name": "g",',
        '- "args": {',
        '- "room": "g"',
        "- }",
        "- },",
    ]
    assert (f[0], f[-1], g[0], g[-1]) == ("3 - {", "8 - },", "9 - {", "14 - },")
    inserted = shown(changed_lines(document, document.edited([Insert(("calls",), 1, calls[0])])))
    assert (inserted[0], inserted[-1]) == ("9 + {", "14 + },")
    moved = shown(changed_lines(document, document.edited([Move(("calls",), 1, 0)])))
    assert [line for line in moved if line.endswith(("{", "},")) and "args" not in line] == [
        "3 + {",
        "8 + },",
        "9 - {",
        "14 - },",
    ]


def test_what_edits_take_back_is_no_change():
    document = JsonDocument(CALLS)
    assert changed_lines(document, document.edited([Put(("text",), "longer"), Put(("text",), "x")])) == ()
    moves = [Move(("calls",), 0, 1), Move(("calls",), 1, 0)]
    assert changed_lines(document, document.edited(moves)) == ()


def test_a_text_without_line_breaks_is_one_line():
    document = JsonDocument('{"a": 1, "b": 2}')
    assert shown(changed_lines(document, document.edited([Remove(("a",)), Put(("b",), 3)]))) == [
        '1 - {"a": 1, "b": 2}',
        '1 + {"b": 3}',
    ]


def test_line_ends_of_windows_are_not_shown():
    document = JsonDocument(CALLS.replace("\n", "\r\n"))
    changes = changed_lines(document, document.edited([Put(("text",), "y")]))
    assert [change.text for change in changes] == ['  "text": "x"', '  "text": "y"']


numbers = st.integers(0, 6)
edits = st.one_of(
    st.builds(
        lambda at, new: Put(("eval_cases", at, "n"), new), numbers, st.sampled_from([1, [2, 3], {"k": 4}])
    ),
    st.builds(lambda at: Remove(("eval_cases", at)), numbers),
    st.builds(lambda at: Insert(("eval_cases",), at, {"eval_id": "new", "n": 5}), numbers),
    st.builds(lambda at, to: Move(("eval_cases",), at, to), numbers, numbers),
    st.builds(lambda new: Put(("name",), new), st.sampled_from(["x", ["y"]])),
)


@given(st.lists(edits, max_size=4), st.sampled_from([None, 1]))
def test_the_changes_lead_from_the_old_lines_to_the_new_ones(steps, indent):
    cases = [{"eval_id": str(number), "n": number} for number in range(5)]
    before = after = JsonDocument(json.dumps({"name": "s", "eval_cases": cases}, indent=indent) + "\n")
    for edit in steps:
        with suppress(EditError):
            apply_to_data(after.value, [edit])
            after = after.edited([edit])
    changes = changed_lines(before, after)
    old, new = before.text.splitlines(), after.text.splitlines()
    gone = {change.number: change.text for change in changes if change.op == "-"}
    come = {change.number: change.text for change in changes if change.op == "+"}
    assert all(old[number - 1] == line for number, line in gone.items())
    assert all(new[number - 1] == line for number, line in come.items())
    kept = [line for number, line in enumerate(old, 1) if number not in gone]
    assert kept == [line for number, line in enumerate(new, 1) if number not in come]


def test_many_places_of_a_long_text():
    data = {"cases": [{"id": n, "text": "x"} for n in range(300)]}
    document = JsonDocument(json.dumps(data, indent=1))
    changes = changed_lines(document, document.edited([Put(("cases", n, "text"), "y") for n in range(300)]))
    assert len(changes) == 600
