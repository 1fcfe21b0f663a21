"""What edits would do to the lines of a file, before they are done."""

import json

from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.jsondoc.chunks import Chunks
from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.edits import Insert, Move, Put, Remove
from evaltui.core.jsondoc.parted_text import PartedText
from evaltui.core.jsondoc.splices import Splice, changed_lines

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
    assert shown(document.preview([Put(("calls", 0, "args", "degrees"), "19")]).lines) == [
        '3 - {"name": "f", "args": {"room": "Kitchen", "degrees": 19}},',
        '3 + {"name": "f", "args": {"room": "Kitchen", "degrees": "19"}},',
    ]
    assert document.text == CALLS


def test_a_line_that_comes_moves_the_numbers_behind_it():
    document = JsonDocument(CALLS)
    edits = [Insert(("calls",), 1, {"name": "h", "args": {}}), Put(("text",), "y")]
    assert shown(document.preview(edits).lines) == [
        '4 + {"name": "h", "args": {}},',
        '6 - "text": "x"',
        '7 + "text": "y"',
    ]


def test_a_value_that_goes_is_shown_from_its_beginning_to_its_end():
    calls = [{"name": name, "args": {"room": name}} for name in ("f", "g", "h")]
    document = JsonDocument(json.dumps({"calls": calls}, indent=2))
    f, g = (
        shown(document.preview([Remove(("calls", 0))]).lines),
        shown(document.preview([Remove(("calls", 1))]).lines),
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
    inserted = shown(document.preview([Insert(("calls",), 1, calls[0])]).lines)
    assert (inserted[0], inserted[-1]) == ("9 + {", "14 + },")
    moved = shown(document.preview([Move(("calls",), 1, 0)]).lines)
    assert [line for line in moved if line.endswith(("{", "},")) and "args" not in line] == [
        "3 + {",
        "8 + },",
        "9 - {",
        "14 - },",
    ]


def test_what_edits_take_back_is_no_change():
    document = JsonDocument(CALLS)
    assert document.preview([Put(("text",), "longer"), Put(("text",), "x")]).lines == ()
    assert document.preview([Move(("calls",), 0, 1), Move(("calls",), 1, 0)]).lines == ()


def test_a_text_without_line_breaks_is_one_line():
    document = JsonDocument('{"a": 1, "b": 2}')
    assert shown(document.preview([Remove(("a",)), Put(("b",), 3)]).lines) == [
        '1 - {"a": 1, "b": 2}',
        '1 + {"b": 3}',
    ]


def test_line_ends_of_windows_are_not_shown():
    document = JsonDocument(CALLS.replace("\n", "\r\n"))
    changes = document.preview([Put(("text",), "y")]).lines
    assert [change.text for change in changes] == ['  "text": "x"', '  "text": "y"']


letters = st.text(alphabet="ab\n", max_size=6)


@given(
    st.text(alphabet="ab\n", max_size=30), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6), letters))
)
def test_the_changes_lead_from_the_old_lines_to_the_new_ones(text, steps):
    after, splices = text, []
    for place, length, new in steps:
        start = min(place, len(after))
        splices.append(Splice(start, after[start : start + length], new))
        after = splices[-1].apply(after)
    changes = changed_lines([text], [after], splices)
    old, new = lines_of(text), lines_of(after)
    gone = {change.number: change.text for change in changes if change.op == "-"}
    come = {change.number: change.text for change in changes if change.op == "+"}
    assert all(old[number - 1] == line for number, line in gone.items())
    assert all(new[number - 1] == line for number, line in come.items())
    kept = [line for number, line in enumerate(old, 1) if number not in gone]
    assert kept == [line for number, line in enumerate(new, 1) if number not in come]


@given(
    st.lists(st.text(alphabet="ab\n", max_size=6), min_size=1, max_size=9),
    st.data(),
)
def test_a_text_in_parts_is_looked_through_as_a_whole_one(parts, data):
    whole, parted = "".join(parts), PartedText(parts)
    place = st.integers(0, len(whole))
    start, end = sorted((data.draw(place), data.draw(place)))
    assert len(parted) == len(whole)
    assert parted.between(start, end) == whole[start:end]
    assert parted.line_breaks(start, end) == whole.count("\n", start, end)
    assert parted.line_start(end) == whole.rfind("\n", 0, end) + 1
    found = whole.find("\n", end)
    assert parted.line_end(end) == (len(whole) if found < 0 else found + 1)


def test_the_text_of_a_large_set_is_not_put_together_to_show_a_change(monkeypatch):
    cases = [{"eval_id": str(number), "conversation": []} for number in range(50)]
    document = JsonDocument(json.dumps({"eval_set_id": "s", "eval_cases": cases}, indent=1))
    monkeypatch.delattr(Chunks, "text")
    changes = document.preview([Put(("eval_cases", n, "conversation"), [n]) for n in range(50)]).lines
    assert len(changes) == 50 * (1 + 3)


def lines_of(text):
    return text.split("\n")[: None if text and not text.endswith("\n") else -1]


def test_many_places_of_a_long_text():
    data = {"cases": [{"id": n, "text": "x"} for n in range(300)]}
    document = JsonDocument(json.dumps(data, indent=1))
    changes = document.preview([Put(("cases", n, "text"), "y") for n in range(300)]).lines
    assert len(changes) == 600
