from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_places import places, value_at

from evaltui.documents import values as values_
from evaltui.documents.case_file import Change
from evaltui.documents.document import JsonDocument
from evaltui.documents.edits import (
    Duplicate,
    EditError,
    Insert,
    Move,
    Put,
    PutText,
    Remove,
    Rename,
    alike,
    same,
)
from evaltui.documents.nodes import parse_nodes
from tests.changed_values import apply_to_data

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["a", "b", "é", "\\", '"']
)
keys = st.sampled_from(["a", "b", "c", "é", "eval_id"]) | st.text("xyz\\\n", max_size=3)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
cases = st.lists(st.dictionaries(keys, values, max_size=3), max_size=7)
sets = st.dictionaries(keys | st.sampled_from(["eval_cases", "evalCases"]), values, max_size=2).flatmap(
    lambda head: st.sampled_from(["eval_cases", "evalCases"]).flatmap(
        lambda key: cases.map(lambda some: {**head, key: some})
    )
)
SPACES = ["", "", " ", "\n", "\r\n  ", "\t", "   \n\n "]


def spelt(draw, value, level: int, style) -> str:
    """A value as text: in order, or (no style) with white space and spellings as they fall."""

    def space() -> str:
        return draw(st.sampled_from(SPACES))

    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    if isinstance(value, float) and draw(st.booleans()):
        return f"{value!r}" if "e" in repr(value) else f"{value!r}000E+00"
    if not isinstance(value, dict | list):
        return json.dumps(value)
    is_object = isinstance(value, dict)
    opening, closing = "{}" if is_object else "[]"
    pairs = list(value.items()) if is_object else [(None, item) for item in value]
    if is_object and pairs and draw(st.integers(0, 5)) == 0:
        pairs.insert(0, (pairs[-1][0], draw(scalars)))
    items = []
    for key, item in pairs:
        text = spelt(draw, item, level + 1, style)
        if key is not None:
            colon = f"{space()}:{space()}" if style is None else ": "
            text = json.dumps(key, ensure_ascii=draw(st.booleans())) + colon + text
        items.append(text)
    if not items:
        return opening + (space() if style is None else "") + closing
    if style is None:
        return opening + space() + f"{space()},{space()}".join(items) + space() + closing
    newline, indent = style
    inner, outer = newline + indent * (level + 1), newline + indent * level
    return opening + inner + ("," + inner).join(items) + outer + closing


@st.composite
def documents(draw) -> str:
    style = draw(st.sampled_from([None, None, ("\n", "  "), ("\r\n", "\t"), ("\n", "")]))
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    around = draw(st.sampled_from(SPACES)), draw(st.sampled_from(SPACES))
    return mark + around[0] + spelt(draw, draw(values | sets), 0, style) + around[1]


def paths(value):
    return [(), *places(value)]


@st.composite
def edits_of(draw, value):
    """Mostly an edit that can be done, of any kind."""
    path = draw(st.sampled_from(paths(value)))
    here = value_at(value, path)
    number = st.integers(0, 4)
    as_text = values.map(lambda one: json.dumps(one, indent=draw(st.sampled_from([None, 1]))))
    kinds = [st.builds(Put, st.just(path), values), st.builds(PutText, st.just(path), as_text)]
    if path:
        kinds += [st.just(Remove(path)), st.builds(Rename, st.just(path), keys)]
    if isinstance(here, dict):
        kinds += [st.builds(Put, keys.map(lambda key: (*path, key)), values)] * 2
        changed = st.dictionaries(keys, values, max_size=2).map(lambda more: {**here, **more})
        kinds += [st.builds(Put, st.just(path), changed)]
    if isinstance(here, list):
        index = st.integers(0, len(here))
        kinds += [
            st.builds(Insert, st.just(path), index, values),
            st.builds(Move, st.just(path), index, number),
            st.builds(Duplicate, st.just(path), index),
            st.builds(
                Put,
                st.just(path),
                index.flatmap(lambda cut: values.map(lambda new: [*here[:cut], new, *here[cut + 1 :]])),
            ),
        ]
    return draw(st.one_of(kinds))


def check_in_step(document: JsonDocument, expected) -> None:
    value = json.loads(document.text.removeprefix("\ufeff"))
    assert same(value, json.loads(json.dumps(expected)))
    fresh = JsonDocument(document.text)
    assert fresh.has_text_of(document)
    assert (fresh.key, len(fresh.chunks)) == (document.key, len(document.chunks))
    for path in paths(value):
        assert document.text_at(path) == fresh.text_at(path)
        assert document.line_of(path) == fresh.line_of(path)


@given(st.data())
def test_the_text_always_has_the_edited_value_and_undo_restores_the_bytes(data):
    text = data.draw(documents())
    document = JsonDocument(text)
    undo = []
    for _ in range(data.draw(st.integers(1, 5))):
        edit = data.draw(edits_of(document.value))
        try:
            expected = apply_to_data(document.value, [edit])
        except EditError:
            continue
        after = document.edited([edit])
        check_in_step(after, expected)
        undo.append(Change.between(document, after))
        document = after
    after = document
    for change in reversed(undo):
        document = change.inverse.applied(document)
    assert document.text == text
    for change in undo:
        document = change.applied(document)
    assert document.text == after.text


@given(st.data())
def test_everything_outside_an_edited_field_stays(data):
    text = data.draw(documents())
    document = JsonDocument(text)
    path = data.draw(st.sampled_from(paths(document.value)))
    node = parse_nodes(text).way_to(path)[-1]
    after = document.edited([Put(path, data.draw(values))])
    assert after.text == text[: node.start] + after.text_at(path) + text[node.end :]


@given(st.data())
def test_chunks_are_shared_with_any_text_that_is_like_it(data):
    text = data.draw(documents())
    document = JsonDocument(text)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 4)))
    new = data.draw(
        st.sampled_from(["", "1", ",", '"', "[]", ":", " ", ', "k": 1', ", 2", "}, {", "]", "\n"])
    )
    changed = text[:start] + new + text[end:]
    try:
        expected = json.loads(changed.removeprefix("\ufeff"))
    except ValueError:
        with pytest.raises(ValueError):
            JsonDocument(changed, document)
    else:
        check_in_step(JsonDocument(changed, document), expected)


def change(copy, edit):
    """Does an edit to a copy of a value."""
    match edit:
        case Put(path, value):
            values_.put(copy, path, value)
        case PutText(path, text):
            values_.put(copy, path, json.loads(text))
        case Insert(path, index, value):
            values_.insert(copy, path, index, value)
        case Remove(path):
            values_.remove(copy, path)
        case Move(path, index, to):
            values_.move(copy, path, index, to)
        case Duplicate(path, index):
            values_.duplicate(copy, path, index)
        case Rename(path, key):
            values_.rename(copy, path, key)


@given(st.data())
def test_what_is_done_to_a_copy_is_done_to_the_text(data):
    document = JsonDocument(data.draw(documents()))
    copy, expected, edits = values_.copy_of(document.value), document.value, []
    for _ in range(data.draw(st.integers(1, 4))):
        edit = data.draw(edits_of(expected))
        if isinstance(edit, Put | PutText) and not edit.path:
            continue
        try:
            expected = apply_to_data(expected, [edit])
        except EditError:
            continue
        change(copy, edit)
        edits.append(edit)
    after = document.edited(values_.edits_of(copy))
    assert alike(after.value, expected)
    if len(edits) == 1 and not isinstance(edits[0], PutText):
        # Equal elements of a list stand for each other, however they are written.
        direct = document.edited(edits)
        lists = [value_at(expected, path) for path in paths(expected)]
        twins = any(len({*map(json.dumps, one)}) < len(one) for one in lists if isinstance(one, list))
        assert after.text == direct.text or twins
