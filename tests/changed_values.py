"""Changes of values as they are made in files: in a copy, whose edits must lead to the same value."""

import json

from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.set import SetEditor
from evaltui.documents.edits import (
    Duplicate,
    Insert,
    Move,
    Put,
    PutText,
    Remove,
    Rename,
    alike,
    at_path,
    check_index,
    json_value,
)
from evaltui.documents.values import copy_of, duplicate, edits_of, insert, move, put, remove, rename


def after(value, copy):
    """What a copy of a value has become; the value is the same as before, and its text comes to that."""
    assert alike(copy_of(value), value)
    document = JsonDocument(json.dumps(value, indent=1))
    changed = document.edited(edits_of_same(document, value, copy))
    assert alike(json.loads(changed.text), json.loads(json.dumps(copy)))
    return json.loads(changed.text)


def edits_of_same(document, value, copy):
    assert alike(document.value, value)
    return edits_of(copy)


def changed(value, change, editor=lambda copy: copy):
    """A value after a change; `editor` is made of its copy."""
    before, copy = json.dumps(value), copy_of(value)
    change(editor(copy))
    assert json.dumps(value) == before
    return after(value, copy)


def changed_case(data, change):
    """A set after a change of its first case."""
    return changed(data, change, lambda copy: SetEditor(copy).case(0))


def changed_set(data, config, change):
    """A set and its config after a change."""
    before, eval_set = json.dumps([data, config]), SetEditor.copied(data, config)
    change(eval_set)
    assert json.dumps([data, config]) == before
    return after(data, eval_set.data), after(config, eval_set.config)


def apply_to_data(data, edits):
    """The data after edits; it itself stays as it is."""
    copy = copy_of(data)
    for edit in edits:
        match edit:
            case Put(path=(), value=value):
                copy = copy_of(json_value(value, ()))
            case PutText(path=(), text=text):
                copy = copy_of(json.loads(text))
            case Put(path, value):
                put(copy, path, value)
            case PutText(path, text):
                put(copy, path, json.loads(text))
            case Insert(path, index, value):
                check_index(at_path(copy, path), path, index, at_end=True)
                insert(copy, path, index, value)
            case Remove(path):
                remove(copy, path)
            case Move(path, index, to):
                move(copy, path, index, to)
            case Duplicate(path, index):
                duplicate(copy, path, index)
            case Rename(path, key):
                rename(copy, path, key)
    return json_value(copy, ())
