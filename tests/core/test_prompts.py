"""Prompts: found by name, filled with foreign text as it is."""

from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.prompts import Prompt, fence, prompt


def test_values_are_inserted_as_they_are():
    told = Prompt("test/1", "Judge $answer, said in $turn. It costs $$5.")

    filled = told.fill(answer="$turn {turn} \\1 %s", turn="turn 2")

    assert filled == "Judge $turn {turn} \\1 %s, said in turn 2. It costs $5."


def test_a_prompt_says_its_name_and_version():
    assert prompt("final_response_match").id == "final_response_match/1"
    assert {"conversation", "expected", "answer"} <= set(_placeholders("final_response_match"))


def test_an_unknown_prompt_is_an_error():
    with pytest.raises(LookupError, match="no prompt no_such_prompt"):
        prompt("no_such_prompt")


def test_every_file_is_a_prompt_that_can_be_filled():
    files = [file.name for file in resources.files(prompt.__module__).iterdir() if file.name.endswith(".txt")]
    names = {name.split(".")[0] for name in files}

    assert {"rubric_final_response", "rubric_tool_use", "rubric_trajectory"} <= names
    for name in names:
        values = {placeholder: f"<{placeholder}>" for placeholder in _placeholders(name)}
        filled = prompt(name).fill(**values)
        assert "$" not in filled
        assert all(value in filled for value in values.values())


def _placeholders(name):
    from string import Template

    return Template(prompt(name).template).get_identifiers()


@given(st.text())
def test_a_text_cannot_end_its_fence(text):
    first, *inner, last = fence(text).split("\n")

    assert "\n".join(inner) == text
    assert first.startswith("<text ")
    assert last == first.replace("<text", "</text")
    assert last not in text
    assert fence(text) == fence(text)


def test_a_text_that_knows_its_mark_gets_another():
    mark = fence("x").split("\n")[0]

    assert fence(f"{mark} x").split("\n")[0] != mark
