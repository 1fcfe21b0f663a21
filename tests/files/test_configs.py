from __future__ import annotations

import pytest

from evaltui.core.model.config import DEFAULT_CRITERIA
from evaltui.core.model.problems import EvalSetError
from evaltui.files.configs import find_config


def criteria(found):
    return {metric.metric_name: metric.threshold for metric in found.config.metrics()}


@pytest.fixture
def set_path(tmp_path):
    folder = tmp_path / "agent" / "eval"
    folder.mkdir(parents=True)
    return folder / "x.evalset.json"


def test_without_a_file_the_defaults_apply(set_path):
    (set_path.parent.parent / "test_config.json").write_text('{"criteria": {"safety_v1": 1}}')
    found = find_config(set_path)
    assert (found.path, found.defaulted) == (None, True)
    assert criteria(found) == DEFAULT_CRITERIA


def test_the_file_beside_the_set_applies(set_path):
    own = set_path.parent / "test_config.json"
    own.write_bytes(b'\xef\xbb\xbf{"criteria": {"safety_v1": 0.5},\r\n"criterai": 1}')
    found = find_config(set_path)
    assert (found.path, found.defaulted, criteria(found)) == (own, False, {"safety_v1": 0.5})
    assert [(str(problem), problem.file) for problem in found.problems] == [
        ("line 2: criterai: unknown key, ignored", str(own))
    ]
    own.write_text('{"evaltui": {"criteria": {"safety_v1": 1}},\n"criterai": 1}')
    (problem,) = find_config(set_path).problems
    assert str(problem) == "line 2: criterai: unknown key. Did you mean criteria?"
    assert problem.file == str(own)


def test_an_explicit_file_applies_to_every_set(set_path, tmp_path):
    (set_path.parent / "test_config.json").write_text("broken")
    strict = tmp_path / "strict.json"
    strict.write_text('{"criteria": {"safety_v1": 1}}')
    found = find_config(set_path, strict)
    assert (found.path, found.defaulted, criteria(found)) == (strict, False, {"safety_v1": 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"criteria": {"safety_v1": 1},}', "not valid JSON: a comma before the closing bracket"),
        ('{\n"criteria": {"m": "x"}}', ':2: criteria.m: must be a number or an object, is the string "x"'),
        ("[]", ":1: must be an object, is a list"),
    ],
)
@pytest.mark.parametrize("is_explicit", [True, False])
def test_a_broken_file_is_never_replaced_by_the_defaults(set_path, text, message, is_explicit):
    file = set_path.parent / "test_config.json"
    file.write_text(text)
    with pytest.raises(EvalSetError) as caught:
        find_config(set_path, file if is_explicit else None)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{file}:")


def test_an_explicit_file_must_exist(set_path, tmp_path):
    with pytest.raises(EvalSetError, match=r"nowhere\.json: no such file"):
        find_config(set_path, tmp_path / "nowhere.json")
    with pytest.raises(EvalSetError, match="cannot be read: a folder has this name"):
        find_config(set_path, tmp_path)
