"""Names in what frameworks record, and requests under the names that they had."""

import copy

import pytest

from evaltui.core.model.renaming import Renaming, names_in, rename_places, renamed_text
from evaltui.core.recordings.entry import JsonRequest
from evaltui.core.recordings.renaming import under_earlier_names

TOOL, ARGUMENT = ("tool", "find", "search"), ("argument", "find.what", "goods")
AGENT = ("agent", "billing", "accounts")

ADK = {"content": {"parts": [{"function_call": {"name": "find", "args": {"what": "x", "n": {"what": 1}}}}]}}
PYDANTIC = {
    "message": {"parts": [{"part_kind": "tool-call", "tool_name": "find", "args": '{"what": "what"}'}]}
}
OPENAI = {
    "output": [{"type": "function_call", "name": "find", "arguments": '{"n":1,"what":2}', "call_id": ""}]
}
LANGCHAIN = {"message": {"tool_calls": [{"name": "find", "args": {"what": 1}, "type": "tool_call"}]}}
AS_OPENAI = {
    "additional_kwargs": {"tool_calls": [{"function": {"name": "find", "arguments": '{"what": 1}'}}]}
}
CLAUDE = {"content": [{"type": "tool_use", "name": "find", "input": {"what": 1}}]}
HANDOFF = {"output": [{"type": "function_call", "name": "transfer_to_billing", "arguments": "{}"}]}
RESULT = {"function_response": {"name": "find", "response": {"name": "find", "what": 1}}}


@pytest.mark.parametrize(
    ("data", "words", "old", "new"),
    [
        (ADK, TOOL, "'name': 'find'", "'name': 'search'"),
        (ADK, ARGUMENT, "'args': {'what'", "'args': {'goods'"),
        (PYDANTIC, TOOL, "'find'", "'search'"),
        (PYDANTIC, ARGUMENT, '{"what":', '{"goods":'),
        (OPENAI, TOOL, "'find'", "'search'"),
        (OPENAI, ARGUMENT, '"what":2', '"goods":2'),
        (LANGCHAIN, TOOL, "'find'", "'search'"),
        (LANGCHAIN, ARGUMENT, "'what'", "'goods'"),
        (AS_OPENAI, TOOL, "'find'", "'search'"),
        (AS_OPENAI, ARGUMENT, '"what"', '"goods"'),
        (CLAUDE, ARGUMENT, "'what'", "'goods'"),
        (HANDOFF, AGENT, "transfer_to_billing", "transfer_to_accounts"),
        (RESULT, TOOL, "{'name': 'find', 'response'", "{'name': 'search', 'response'"),
        (RESULT, ARGUMENT, "", ""),
    ],
)
def test_names_in_recorded_responses(data, words, old, new):
    data = copy.deepcopy(data)
    expected = str(data).replace(old, new) if old else str(data)
    assert (expected == str(data)) is (not old)
    assert len(list(rename_places(names_in(data), Renaming.of(*words)))) == bool(old)
    assert str(data) == expected


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("find_order, refind_order", ("tool", "find_order", "get"), "get, refind_order"),
        ("find `find` 'find' \"find\" “find” `find(x)` `find x`", TOOL, None),
        ("Find billing in “billing”", AGENT, "Find billing in “accounts”"),
        ("`find` needs `what`", ARGUMENT, "`find` needs `goods`"),
        ("find needs `what`, not what", ARGUMENT, "find needs `goods`, not what"),
        ("find_it gets a_b", ("argument", "find_it.a_b", "c"), "find_it gets c"),
        ("another gets a_b", ("argument", "find_it.a_b", "c"), "another gets a_b"),
    ],
)
def test_names_in_texts(text, words, expected):
    in_quotes = "find `search` 'search' \"search\" “search” `search(x)` `find x`"
    assert renamed_text(text, Renaming.of(*words)) == (in_quotes if expected is None else expected)


DECLARED = {
    "name": "search",
    "description": "Looks for goods.\n\nArgs:\n  goods: what to look for",
    "parameters": {
        "title": "searchParams",
        "properties": {"goods": {"title": "Goods"}},
        "required": ["goods"],
    },
}


def test_a_request_is_looked_for_under_every_earlier_name():
    called = {"function_call": {"id": "1", "name": "search", "args": {"goods": "x"}}}
    quoted = {"text": "[desk] called tool `search` with parameters:\n{'a': 1, 'goods': 2}"}
    request = JsonRequest("m", [{"parts": [called, quoted]}], "Use search", [DECLARED], {"search": 1})
    renamed = [Renaming.of(*TOOL), Renaming.of("argument", "search.zoo", "goods")]
    variants = list(under_earlier_names(request, renamed))
    assert len(variants) == 6
    words = variants[3]
    (declared,) = words.tools
    assert declared["name"] == "find"
    assert declared["parameters"] == {
        "title": "findParams",
        "properties": {"zoo": {"title": "Zoo"}},
        "required": ["zoo"],
    }
    assert declared["description"].endswith("zoo: what to look for")
    assert words.instruction == "Use find"
    assert words.config == request.config
    (content,) = words.contents
    assert content["parts"][0]["function_call"] == {"id": "1", "name": "find", "args": {"zoo": "x"}}
    assert content["parts"][1]["text"].endswith("`find` with parameters:\n{'a': 1, 'zoo': 2}")
    assert request.contents[0]["parts"] == [called, quoted]
