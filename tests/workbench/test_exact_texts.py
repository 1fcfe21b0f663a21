"""What nobody typed stays as it is, to the character, when a case is edited as JSON."""

import json

import pytest

from evaltui.documents.style import in_one_line, laid_out
from evaltui.workbench.workbench import Workbench

ECHO = "def root_agent(message, session):\n    return message\n"
CASE = (
    '{"eval_id": "one", "conversation": [], "x": 1e3, "y": "\\u00e9\\/ {",'
    ' "z": {"a": [], "b": {}, "c": [1, {"d": null}]}}'
)
LAID_OUT = """{
  "eval_id": "one",
  "conversation": [],
  "x": 1e3,
  "y": "\\u00e9\\/ {",
  "z": {
    "a": [],
    "b": {},
    "c": [
      1,
      {
        "d": null
      }
    ]
  }
}"""


def test_a_line_of_json_is_laid_out_and_back_with_every_token_as_it_is_spelled():
    assert laid_out(CASE) == laid_out(LAID_OUT) == LAID_OUT
    assert in_one_line(LAID_OUT, CASE) == CASE
    tight = CASE.replace(", ", ",").replace('": ', '":')
    assert in_one_line(LAID_OUT, tight) == tight


async def the_case(folder, text):
    path = folder / "cases.evalset.json"
    path.write_bytes(text.encode())
    workbench = Workbench(folder)
    await workbench.open()
    workbench.editing.data(path)
    workbench.selected.follow()
    return workbench, path, workbench.selected


def apply(workbench, text, row=()):
    """Makes a text the JSON of the case, or the arguments of a call."""
    assert workbench.drafting.open(row, "json", workbench.selected.json_field(row), text)
    assert workbench.drafting.apply()


async def saved(workbench, path, text):
    """The bytes on disk once the JSON of the case is this."""
    apply(workbench, text)
    assert await workbench.editing.save(path)
    return path.read_bytes()


def in_a_set(case):
    return '{"eval_set_id": "cases", "eval_cases": [' + case + "]}\n"


SEPARATORS = "\u2028\u2029\x85\x7f\ufeff"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_a_set_with_odd_characters_gets_what_was_typed_and_nothing_else(write_agent, newline):
    case = LAID_OUT.replace("\\/ {", SEPARATORS).replace("\n", "\n    ")
    before = in_a_set(f"\n    {case}\n  ").replace("\n", newline)
    workbench, path, selected = await the_case(write_agent(ECHO), before)
    shown = selected.text()
    json.loads(shown)
    assert "\r" not in shown
    apply(workbench, shown)
    apply(workbench, shown.replace("\n", "\r\n"))
    assert workbench.editing.undo_label is None
    after = await saved(workbench, path, shown.replace('"x": 1e3,', '"new": 1,\n  "x": 1e3,'))
    assert after.decode() == before.replace('"x": 1e3,', f'"new": 1,{newline}      "x": 1e3,')
    workbench.editing.undo()
    assert workbench.editing.open_file(path).document.text == before


async def test_a_key_put_first_in_a_case_on_one_line_changes_nothing_else(write_agent):
    before = in_a_set(CASE)
    workbench, path, selected = await the_case(write_agent(ECHO), before)
    assert selected.text() == LAID_OUT
    after = await saved(workbench, path, '{ "first": 1.0,' + LAID_OUT[1:])
    assert after.decode() == before.replace('{"eval_id"', '{"first": 1.0, "eval_id"')


@pytest.mark.parametrize("other", ['{"n": true}', '{"n": 1.0}', '{"m": 2, "n": 1}'])
async def test_arguments_are_compared_as_json_text_is(write_agent, other):
    call = {"tool_uses": [{"name": "find", "args": {"n": 1, "m": 2} if "m" in other else {"n": 1}}]}
    turn = {"user_content": {"parts": [{"text": "hello"}]}, "intermediate_data": call}
    case = json.dumps({"eval_id": "one", "conversation": [turn]})
    workbench, path, selected = await the_case(write_agent(ECHO), in_a_set(case))
    row = ("turn", 0, "call", 0)
    shown = selected.json_field(row).text
    apply(workbench, shown, row)
    apply(workbench, json.dumps(json.loads(shown)), row)
    assert workbench.editing.undo_label is None
    apply(workbench, other, row)
    assert json.dumps(json.loads(other)) in workbench.editing.open_file(path).document.text
